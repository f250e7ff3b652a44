//! The command line's contract: exit status, where output goes, and what errors say.

use slabplan_tests::cli::slabplan;
use slabplan_tests::paths;

const MODEL: &str = "fixtures/models/adam_mlp_step/tpu.after.hlo";

struct Run {
    status: i32,
    stdout: String,
    stderr: String,
}

#[track_caller]
fn run(args: &[&str]) -> Run {
    let output = slabplan(args);
    Run {
        status: output.status.code().expect("not killed by a signal"),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

/// Refused with status 2, nothing on standard output, and a message with all of these words.
#[track_caller]
fn refused(args: &[&str], words: &[&str]) {
    let r = run(args);
    assert_eq!(r.status, 2, "{args:?}: {}{}", r.stdout, r.stderr);
    assert_eq!(r.stdout, "", "{args:?}");
    for word in words {
        assert!(
            r.stderr.contains(word),
            "{args:?}: no `{word}` in {}",
            r.stderr
        );
    }
    assert!(!r.stderr.contains("panicked"), "{}", r.stderr);
}

fn temp(name: &str, bytes: &[u8]) -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    std::fs::write(&path, bytes).unwrap();
    let path = path.to_string_lossy().into_owned();
    (folder, path)
}

#[test]
fn plan_has_the_contract_fields() {
    let r = run(&["plan", MODEL, "--json"]);
    assert_eq!(r.status, 0, "{}", r.stderr);
    let json: serde_json::Value = serde_json::from_str(&r.stdout).unwrap();
    for field in [
        "module",
        "instructions",
        "target",
        "accounting",
        "schedule",
        "spaces",
        "copies_inserted",
        "checked",
        "fits",
        "seconds",
    ] {
        assert!(!json[field].is_null(), "{field}");
    }
    for field in [
        "space",
        "name",
        "capacity_bytes",
        "slab_bytes",
        "lower_bound_bytes",
        "optimal",
        "temp_bytes",
        "argument_bytes",
        "output_bytes",
        "alias_bytes",
        "constant_bytes",
        "logical_bytes_at_peak",
        "padded_bytes_at_peak",
        "buffers",
        "peak_instruction",
    ] {
        assert!(!json["spaces"][0][field].is_null(), "{field}");
    }
    for field in ["parse", "analyse", "schedule", "pack", "check", "total"] {
        assert!(json["seconds"][field].is_number(), "{field}");
    }
    assert_eq!(json["checked"], true);
    assert_eq!(json["target"], "tpu-v5e");
}

#[test]
fn what_does_not_fit_ends_with_status_1() {
    let r = run(&["plan", MODEL, "--limit", "4KiB"]);
    assert_eq!(r.status, 1, "{}", r.stderr);
    assert!(r.stdout.contains("does not fit: hbm needs"), "{}", r.stdout);
    let r = run(&["plan", MODEL, "--capacity", "vmem=1", "--json"]);
    assert_eq!(r.status, 1, "{}", r.stderr);
    let json: serde_json::Value = serde_json::from_str(&r.stdout).unwrap();
    assert_eq!(json["fits"], false);
}

#[test]
fn a_plan_file_is_checked_against_its_module() {
    for ending in ["json", "txt"] {
        let (_folder, path) = temp(&format!("plan.{ending}"), b"");
        assert_eq!(run(&["plan", MODEL, "-o", &path]).status, 0);
        let r = run(&["check", MODEL, &path]);
        assert_eq!(r.status, 0, "{}{}", r.stdout, r.stderr);
        refused(
            &["check", "fixtures/rules/h02_carry_modified.hlo", &path],
            &["the plan is for module"],
        );
    }
}

#[test]
fn a_wrong_plan_ends_with_status_1() {
    let (_folder, path) = temp("plan.json", b"");
    assert_eq!(run(&["plan", MODEL, "-o", &path]).status, 0);
    let text = std::fs::read_to_string(&path).unwrap();
    let mut plan: serde_json::Value = serde_json::from_str(&text).unwrap();
    for buffer in plan["buffers"].as_array_mut().unwrap() {
        buffer["offset"] = 0.into();
    }
    std::fs::write(&path, plan.to_string()).unwrap();
    let r = run(&["check", MODEL, &path, "--json"]);
    assert_eq!(r.status, 1, "{}", r.stderr);
    let json: serde_json::Value = serde_json::from_str(&r.stdout).unwrap();
    assert_eq!(json["valid"], false);
    assert!(!json["violations"].as_array().unwrap().is_empty());
}

#[test]
fn a_right_plan_that_does_not_fit_ends_with_status_1() {
    let (_folder, path) = temp("plan.json", b"");
    assert_eq!(run(&["plan", MODEL, "-o", &path]).status, 0);
    let r = run(&["check", MODEL, &path, "--limit", "1KiB"]);
    assert_eq!(r.status, 1, "{}", r.stderr);
    assert!(r.stdout.contains("the plan is right"), "{}", r.stdout);
    assert!(r.stdout.contains("does not fit: hbm needs"), "{}", r.stdout);
    let inputs = "fixtures/models/adam_mlp_step/inputs.safetensors";
    let r = run(&[
        "run", MODEL, "--inputs", inputs, "--limit", "1KiB", "--json",
    ]);
    assert_eq!(r.status, 1, "{}", r.stderr);
    let json: serde_json::Value = serde_json::from_str(&r.stdout).unwrap();
    assert_eq!(json["fits"], false);
}

#[test]
fn a_byte_order_mark_is_passed_over() {
    let text = std::fs::read(paths::root().join("fixtures/rules/h02_carry_modified.hlo")).unwrap();
    let (_folder, path) = temp("marked.hlo", &[b"\xef\xbb\xbf", &text[..]].concat());
    assert_eq!(run(&["verify", &path]).status, 0);
}

#[test]
fn two_results_do_not_go_to_one_file() {
    let (_folder, path) = temp("out.json", b"as it was");
    refused(
        &["plan", MODEL, "-o", &path, "--emit-module", &path],
        &["the same file"],
    );
    assert_eq!(std::fs::read(&path).unwrap(), b"as it was");
}

#[test]
fn csv_is_refused_where_it_would_lose_pairs() {
    let problem = br#"{"buffers": [{"id": "a", "live": [[0, 2]], "size": 4}, {"id": "b", "live": [[1, 3]], "size": 4}],
        "may_share": [["a", "b"]]}"#;
    let (folder, path) = temp("problem.json", problem);
    let out = folder.path().join("out.csv");
    refused(
        &["pack", &path, "-o", out.to_str().unwrap()],
        &["may_share", ".json"],
    );
    assert!(!out.exists());
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_device_is_an_error() {
    for args in [
        &["verify", MODEL][..],
        &["verify", MODEL, "--json"],
        &["plan", MODEL],
        &["print", MODEL],
    ] {
        let full = std::fs::File::options()
            .write(true)
            .open("/dev/full")
            .unwrap();
        let mut command = std::process::Command::new(slabplan_tests::cli::binary());
        let command = command.args(args).current_dir(paths::root()).stdout(full);
        let output = command.output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{args:?}: {stderr}");
        assert!(stderr.contains("standard output"), "{args:?}: {stderr}");
    }
}

#[test]
fn run_compares_with_expected_results() {
    let folder = "fixtures/models/adam_mlp_step";
    let inputs = format!("{folder}/inputs.safetensors");
    let expected = format!("{folder}/expected.safetensors");
    let r = run(&[
        "run", MODEL, "--inputs", &inputs, "--expect", &expected, "--poison",
    ]);
    assert_eq!(r.status, 0, "{}{}", r.stdout, r.stderr);
    assert!(r.stdout.contains("results are as expected"), "{}", r.stdout);
    let exact = ["--rtol", "0", "--atol", "0"];
    let args = [
        &["run", MODEL, "--inputs", &inputs, "--expect", &expected][..],
        &exact,
    ]
    .concat();
    let r = run(&args);
    assert_eq!(
        r.status, 1,
        "no program rounds as JAX does to the last bit: {}",
        r.stdout
    );
    refused(&["run", MODEL], &["--inputs"]);
    refused(&["run", MODEL, "--inputs", &expected], &["arg0"]);
}

#[test]
fn print_is_what_was_read() {
    let r = run(&["print", MODEL]);
    assert_eq!(r.status, 0);
    let text = std::fs::read_to_string(paths::root().join(MODEL)).unwrap();
    assert_eq!(r.stdout, text);
}

#[test]
fn wrong_input_is_refused_with_place_and_remedy() {
    refused(&["plan", "no/such/file.hlo"], &["no/such/file.hlo"]);
    let (_f, empty) = temp("m.hlo", b"");
    refused(&["plan", &empty], &["empty input"]);
    let (_f, binary) = temp("m.pb", &[0, 159, 146, 150, 1, 2, 3]);
    refused(&["plan", &binary], &["neither HLO text"]);
    let (_f, gzip) = temp("m.gz", &[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 1, 2, 3]);
    refused(&["plan", &gzip], &["gzip"]);
    let text = "HloModule m\nENTRY e {\n  x = f32[4] parameter(0)\n  ROOT y = f32[4] negat(x)\n}\n";
    let (_f, wrong) = temp("m.hlo", text.as_bytes());
    refused(&["plan", &wrong], &["m.hlo:4:19", "negat", "^^^^^"]);
    let text =
        "HloModule m\nENTRY e {\n  x = f32[4] parameter(0)\n  ROOT y = f32[5] negate(x)\n}\n";
    let (_f, wrong) = temp("m.hlo", text.as_bytes());
    refused(&["verify", &wrong], &["m.hlo:4:8", "f32[5]"]);
}

#[test]
fn hostile_input_is_refused() {
    let deep = "(".repeat(10_000_000);
    let (_f, path) = temp(
        "m.hlo",
        format!("HloModule m\nENTRY e {{ x = {deep}").as_bytes(),
    );
    refused(&["verify", &path], &["deep"]);
    let huge = "HloModule m\nENTRY e { ROOT x = f32[9223372036854775807,2] parameter(0) }";
    let (_f, path) = temp("m.hlo", huge.as_bytes());
    refused(&["plan", &path], &["2^63"]);
}

#[test]
fn wrong_calls_are_refused() {
    refused(&["plan"], &["MODULE"]);
    refused(&["plan", MODEL, "--target", "tpu-v9"], &["tpu-v5e"]);
    refused(&["plan", MODEL, "--limit", "lots"], &["lots"]);
    refused(
        &["plan", MODEL, "--capacity", "nowhere=1G"],
        &["nowhere", "hbm"],
    );
    refused(&["plan", MODEL, "-o", "plan.xml"], &[".json"]);
    refused(&["plan", MODEL, "--accounting", "gpu"], &["slab", "xla"]);
}

#[test]
fn help_and_version_are_answers() {
    for args in [&["--help"][..], &["plan", "--help"], &["--version"]] {
        let r = run(args);
        assert_eq!(r.status, 0, "{args:?}");
        assert!(!r.stdout.is_empty(), "{args:?}");
    }
}

#[test]
fn transforms_are_kept_where_they_pay_and_check_repeats_them() {
    const PADDED: &str = "fixtures/padding/convolution_3d_two_channels.hlo";
    let flags = ["--layouts", "memory", "--fuse", "--rewrite"];
    let r = run(&[
        &["plan", PADDED, "--explain-rewrites", "--advice"],
        &flags[..],
    ]
    .concat());
    assert_eq!(r.status, 0, "{}", r.stderr);
    for words in ["as given", "kept", "rewrites:", "padding at the peak"] {
        assert!(r.stdout.contains(words), "no `{words}` in {}", r.stdout);
    }
    let (_folder, plan) = temp("plan.json", b"");
    let r = run(&[&["plan", PADDED, "-o", &plan], &flags[..]].concat());
    assert_eq!(r.status, 0, "{}", r.stderr);
    let r = run(&[&["check", PADDED, &plan], &flags[..]].concat());
    assert_eq!(r.status, 0, "{}{}", r.stdout, r.stderr);
    // Prepared otherwise it is another program.
    assert_ne!(run(&["check", PADDED, &plan]).status, 0);
    refused(
        &["plan", PADDED, "--explain-rewrites"],
        &["--rewrite", "required"],
    );
}

#[test]
fn contradictory_layouts_are_reported_and_the_program_is_planned_as_it_is() {
    let text = "HloModule m, input_output_alias={ {}: (0, {}, may-alias) }, \
                entry_computation_layout={(f32[16,16]{1,0})->f32[16,16]{0,1}}
ENTRY e { p = f32[16,16] parameter(0) ROOT n = f32[16,16] negate(p) }";
    let (_folder, path) = temp("m.hlo", text.as_bytes());
    let r = run(&["plan", &path, "--layouts", "memory"]);
    assert_eq!(r.status, 0, "{}", r.stderr);
    assert!(
        r.stdout.contains("note: layouts stay as they are"),
        "{}",
        r.stdout
    );
}
