//! The commands `run` and `simulate`: what they say of wrong input, of devices and of memory.

use slabplan_tests::cli::slabplan;
use slabplan_tests::paths;

const MODEL: &str = "fixtures/models/adam_mlp_step/tpu.after.hlo";

/// Exit status, standard output, standard error.
fn run(args: &[&str]) -> (i32, String, String) {
    let output = slabplan(args);
    let text = |bytes| String::from_utf8(bytes).unwrap();
    let status = output.status.code().expect("not killed by a signal");
    (status, text(output.stdout), text(output.stderr))
}

/// Ends with this status, and says these words.
#[track_caller]
fn says(args: &[&str], status: i32, words: &[&str]) {
    let (found, stdout, stderr) = run(args);
    assert_eq!(found, status, "{args:?}: {stdout}{stderr}");
    for word in words {
        assert!(
            stdout.contains(word) || stderr.contains(word),
            "{args:?}: no `{word}` in {stdout}{stderr}"
        );
    }
    assert!(!stderr.contains("panicked"), "{stderr}");
}

/// A file with a module, and a file of arrays for it.
struct Files {
    _folder: tempfile::TempDir,
    module: String,
    inputs: String,
}

fn files(module: &str, arrays: &[(&str, &[f32])]) -> Files {
    use slabplan::exec::HostArray;
    use slabplan::exec::io::write_arrays;
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
    let (hlo, inputs) = (path("m.hlo"), path("in.safetensors"));
    std::fs::write(&hlo, module).unwrap();
    let arrays: Vec<(String, HostArray)> = arrays
        .iter()
        .map(|(name, values)| {
            let array = HostArray::from_f32(values, &[values.len() as u64]).unwrap();
            ((*name).to_owned(), array)
        })
        .collect();
    write_arrays(inputs.as_ref(), &arrays).unwrap();
    Files {
        _folder: folder,
        module: hlo,
        inputs,
    }
}

/// A loop without end.
const FOREVER: &str = "HloModule forever
c { s = f32[4] parameter(0)
  ROOT t = pred[] constant(true) }
b { s = f32[4] parameter(0)
  ROOT n = f32[4] negate(s) }
ENTRY e { x = f32[4] parameter(0)
  ROOT w = f32[4] while(x), condition=c, body=b }";

const NEGATE: &str =
    "HloModule m\nENTRY e {\n  x = f32[4] parameter(0)\n  ROOT y = f32[4] negate(x)\n}\n";

#[test]
fn wrong_arrays_are_refused_by_name() {
    let x: &[f32] = &[1.0, 2.0, 3.0, 4.0];
    let call = |arrays: &[(&str, &[f32])], words: &[&str]| {
        let f = files(NEGATE, arrays);
        says(
            &["run", &f.module, "--target", "cpu", "--inputs", &f.inputs],
            2,
            words,
        );
    };
    call(&[], &["arg0"]);
    call(&[("arg1", x)], &["arg0"]);
    call(&[("arg0", &x[..3])], &["arg0", "f32[4]"]);
    let text = NEGATE.replace("f32", "s32");
    let f = files(&text, &[("arg0", x)]);
    says(
        &["run", &f.module, "--target", "cpu", "--inputs", &f.inputs],
        2,
        &["arg0", "s32[4]"],
    );
}

#[test]
fn a_number_where_nan_is_expected_differs() {
    let f = files(NEGATE, &[("arg0", &[1.0, f32::NAN, 3.0, 4.0])]);
    let expected = |values: &[f32]| files(NEGATE, &[("out0", values)]);
    let base = [
        "run", &f.module, "--target", "cpu", "--inputs", &f.inputs, "--expect",
    ];
    let same = expected(&[-1.0, f32::NAN, -3.0, -4.0]);
    says(&[&base[..], &[&same.inputs]].concat(), 0, &["as expected"]);
    for wrong in [[-1.0, 2.0, -3.0, -4.0], [f32::NAN, f32::NAN, -3.0, -4.0]] {
        let wrong = expected(&wrong);
        says(
            &[&base[..], &[&wrong.inputs]].concat(),
            1,
            &["1 of 4 elements differ"],
        );
    }
}

#[test]
fn what_is_larger_than_the_device_ends_with_status_1() {
    let inputs = "fixtures/models/adam_mlp_step/inputs.safetensors";
    let base = ["run", MODEL, "--inputs", inputs];
    says(
        &[&base[..], &["--limit", "4KiB"]].concat(),
        1,
        &["does not fit", "is fullest at"],
    );
    // Half of what it needs: the fraction is of the limit.
    says(
        &[
            &base[..],
            &["--memory-fraction", "0.0001", "--limit", "1MiB"],
        ]
        .concat(),
        1,
        &["does not fit"],
    );
    says(
        &[
            &base[..],
            &[
                "--memory-fraction",
                "0.75",
                "--preallocate",
                "on",
                "--limit",
                "64MiB",
            ],
        ]
        .concat(),
        0,
        &["ran in"],
    );
    says(
        &[&base[..], &["--memory-fraction", "1.5"]].concat(),
        2,
        &["not a fraction"],
    );
}

#[test]
fn devices_are_named_and_counted() {
    let folder = "fixtures/models/ring_of_four";
    let (module, inputs) = (
        format!("{folder}/tpu.after.hlo"),
        format!("{folder}/inputs.safetensors"),
    );
    let base = [
        "run", &module, "--inputs", &inputs, "--async", "random", "--seed", "5",
    ];
    says(
        &[&base[..], &["--devices", "tpu:3,tpu:2,tpu:1,tpu:0"]].concat(),
        0,
        &["on tpu:3 to tpu:0"],
    );
    says(
        &[&base[..], &["--devices", "tpu:0,tpu:1"]].concat(),
        2,
        &["4 devices", "names 2"],
    );
    says(
        &[&base[..], &["--devices", "gpu:0"]].concat(),
        2,
        &["gpu:0", "tpu:0"],
    );
    says(
        &[&base[..], &["--devices", "tpu:0,tpu:0,tpu:1,tpu:2"]].concat(),
        2,
        &["twice"],
    );
}

/// What JAX prints before compilation does not say how many devices it is for.
#[test]
fn a_module_without_a_count_runs_on_the_devices_named() {
    let text = "HloModule m
add { x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT z = f32[] add(x, y) }
ENTRY e {
  x = f32[4] parameter(0)
  ROOT sum = f32[4] all-reduce(x), channel_id=1, replica_groups={{0,1}}, use_global_device_ids=true, to_apply=add
}
";
    let inputs: [(&str, &[f32]); 2] = [
        ("dev0.arg0", &[1.0, 2.0, 3.0, 4.0]),
        ("dev1.arg0", &[10.0, 20.0, 30.0, 40.0]),
    ];
    let f = files(text, &inputs);
    let sums: &[f32] = &[11.0, 22.0, 33.0, 44.0];
    let expected = files(text, &[("dev0.out0", sums), ("dev1.out0", sums)]);
    let base = ["run", &f.module, "--target", "cpu", "--inputs", &f.inputs];
    let compared = [&base[..], &["--expect", &expected.inputs]].concat();
    says(
        &[&compared[..], &["--devices", "cpu:0,cpu:1"]].concat(),
        0,
        &["on cpu:0 to cpu:1", "as expected"],
    );
    says(
        &base,
        2,
        &["m.hlo:7:8", "num_partitions", "name the devices"],
    );

    let many = text.replace("HloModule m", "HloModule m, num_partitions=1000000000000");
    let f = files(&many, &inputs);
    says(&["run", &f.module], 2, &["from 1 to 4096 devices"]);
}

#[test]
fn numbers_out_of_range_are_wrong_values() {
    for (option, value, said) in [
        ("--rtol", "-1", "not a tolerance"),
        ("--atol", "nan", "not a tolerance"),
        ("--threads", "0", "not a number of threads"),
        ("--limit", "-5", "not a size"),
        ("--seed", "-1", "--seed"),
    ] {
        says(&["run", MODEL, option, value], 2, &[said, "invalid value"]);
    }
}

/// What files that are not there are called once, not twice.
#[test]
fn causes_are_told_once() {
    for args in [
        &["run", MODEL, "--inputs", "/nowhere.npz"][..],
        &["plan", MODEL, "--target", "/nowhere.toml"],
    ] {
        let (status, _, stderr) = run(args);
        assert_eq!(status, 2, "{stderr}");
        assert_eq!(stderr.matches("No such file").count(), 1, "{stderr}");
    }
}

#[test]
fn the_memory_of_the_machine_limits_slabs_arguments_and_results() {
    let f = files(NEGATE, &[("arg0", &[1.0; 4])]);
    let base = ["run", &f.module, "--target", "cpu", "--inputs", &f.inputs];
    let within = |limit| [&base[..], &["--host-memory", limit]].concat();
    // Two arrays of 16 bytes in the slab and outside of it.
    says(
        &within("40"),
        2,
        &["32B for arguments and results", "may take 40B"],
    );
    says(&within("4KiB"), 0, &["ran in"]);
    // No machine has this much.
    let vast = "HloModule m\nENTRY e {\n  x = f32[] parameter(0)\n  ROOT y = f32[2000000,2000000] broadcast(x), dimensions={}\n}\n";
    let f = files(vast, &[]);
    says(
        &["run", &f.module, "--target", "cpu", "--limit", "64TiB"],
        2,
        &["14.55TiB", "run a smaller module"],
    );
    let f = files(NEGATE, &[("arg0", &[1.0; 4])]);
    says(
        &[
            "run",
            &f.module,
            "--target",
            "cpu",
            "--inputs",
            &f.inputs,
            "--limit",
            "4096TiB",
            "--preallocate",
            "on",
        ],
        2,
        &["does not give 4.00PiB at once"],
    );
}

#[test]
fn what_never_ends_is_stopped_and_what_is_unknown_is_named() {
    let f = files(FOREVER, &[("arg0", &[1.0; 4])]);
    says(
        &[
            "run",
            &f.module,
            "--target",
            "cpu",
            "--inputs",
            &f.inputs,
            "--max-steps",
            "1000",
        ],
        2,
        &["stopped after 1000 steps"],
    );
    for (target, remedy) in [
        ("tpu_custom_call", "interpret=True"),
        ("xla_python_cpu_callback", "take the callback out"),
        ("my_kernel", "docs/operations.md"),
    ] {
        let text = NEGATE.replace(
            "negate(x)",
            &format!("custom-call(x), custom_call_target=\"{target}\""),
        );
        let f = files(&text, &[("arg0", &[1.0; 4])]);
        says(
            &["run", &f.module, "--target", "cpu", "--inputs", &f.inputs],
            2,
            &[&format!("{target:?}"), remedy],
        );
    }
}

/// Ctrl-C once: the run ends before its next instruction, with words and the status of a failure.
#[test]
#[cfg(target_os = "linux")]
fn an_interrupt_stops_a_run_that_never_ends() {
    use std::process::{Command, Stdio};
    use std::time::Duration;
    let f = files(FOREVER, &[("arg0", &[1.0; 4])]);
    let child =
        slabplan_tests::cli::command(&["run", &f.module, "--target", "cpu", "--inputs", &f.inputs])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
    let pid = child.id().to_string();
    // The kernel says which signals the process handles, as a mask of bits: SIGINT is the second.
    let handles_interrupts = || {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let mask = status.lines().find_map(|l| l.strip_prefix("SigCgt:"));
        mask.is_some_and(|m| u64::from_str_radix(m.trim(), 16).unwrap_or(0) & 2 != 0)
    };
    while !handles_interrupts() {
        std::thread::sleep(Duration::from_millis(5));
    }
    let sent = Command::new("kill").args(["-INT", &pid]).status().unwrap();
    assert!(sent.success());
    let output = child.wait_with_output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(stderr.contains("stopped on request, before %"), "{stderr}");
}

#[test]
fn simulate_compares_allocators() {
    let (status, stdout, stderr) = run(&["simulate", MODEL, "--json"]);
    assert_eq!(status, 0, "{stderr}");
    let json: serde_json::Value = serde_json::from_str(&stdout).unwrap();
    let rows = json["allocators"].as_array().unwrap();
    let names: Vec<&str> = rows
        .iter()
        .map(|r| r["allocator"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["bfc", "caching", "bump"]);
    for row in rows {
        let number = |field: &str| row[field].as_u64().unwrap_or_else(|| panic!("{field}"));
        assert_eq!(
            number("peak_used_bytes"),
            json["static"]["peak_used_bytes"].as_u64().unwrap()
        );
        assert!(number("peak_reserved_bytes") >= number("peak_used_bytes"));
        assert_eq!(number("calls"), number("allocations") + number("frees"));
        assert!(number("allocations") >= number("frees"));
    }
    // BFC's first region.
    assert_eq!(rows[0]["peak_reserved_bytes"], 2 << 20);
    says(
        &["simulate", MODEL, "--allocator", "bfc"],
        0,
        &["static plan", "bfc", "over the plan"],
    );
    says(
        &[
            "simulate",
            MODEL,
            "--allocator",
            "caching",
            "--limit",
            "1MiB",
        ],
        1,
        &["caching runs out of memory at %", "largest free block"],
    );
    says(
        &["simulate", MODEL, "--space", "nowhere"],
        2,
        &["nowhere", "hbm"],
    );
}

#[test]
fn simulate_takes_every_module_of_the_corpus() {
    let Some(corpus) = paths::shared("corpus") else {
        eprintln!("the corpus is absent: not simulated");
        return;
    };
    let modules = paths::files(&corpus, &["after_optimizations.txt.gz"]);
    assert!(!modules.is_empty());
    // The smallest of them here; all of them are simulated by hand before a release.
    let mut by_size: Vec<_> = modules
        .into_iter()
        .map(|m| (std::fs::metadata(&m).map_or(u64::MAX, |d| d.len()), m))
        .collect();
    by_size.sort();
    for (_, module) in by_size.iter().take(8) {
        let module = module.to_string_lossy();
        let (status, stdout, stderr) = run(&["simulate", &module, "--effort", "fast", "--json"]);
        assert!(status < 2, "{module}: {stderr}");
        let json: serde_json::Value = serde_json::from_str(&stdout).unwrap();
        for row in json["allocators"].as_array().unwrap() {
            assert!(row["fits"].is_boolean(), "{module}");
        }
    }
}
