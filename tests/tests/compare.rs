//! `slabplan compare`: the figures of both plans, worked out by hand on `fixtures/assignments`, and wrong input.

use serde_json::Value;
use slabplan_tests::cli::slabplan;
use slabplan_tests::paths;

const MODULE: &str = "fixtures/assignments/chain.hlo";
const RIGHT: &str = "fixtures/assignments/right.txt";

/// Status, standard output, standard error.
fn compare(assignment: &str, more: &[&str]) -> (i32, String, String) {
    let mut args = vec!["compare", MODULE, "--xla-assignment", assignment];
    args.extend(more);
    let output = slabplan(&args);
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    let (out, err) = (text(output.stdout), text(output.stderr));
    assert!(!err.contains("panicked"), "{err}");
    (output.status.code().unwrap(), out, err)
}

fn json(assignment: &str) -> Value {
    let (status, out, err) = compare(assignment, &["--json"]);
    assert_eq!(status, 0, "{out}{err}");
    serde_json::from_str(&out).unwrap()
}

/// The assignment in a file of its own.
fn with_file(name: &str, bytes: &[u8], test: impl FnOnce(&str)) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    std::fs::write(&path, bytes).unwrap();
    test(&path.to_string_lossy());
}

/// `a`, `b`, `c` of 128 bytes each; `a` is live until `c`, which may lie on it. XLA has a heap of 256 bytes beside
/// the argument and the output of 128 each. The output is idle until `r` is written, so that one of `a` and `b` can
/// lie there, and slabplan needs a heap of 128.
#[test]
fn figures_worked_out_by_hand() {
    let json = json(RIGHT);
    assert_eq!(json["module"], "chain");
    assert_eq!(json["target"], "cpu");
    assert_eq!(json["copies"], Value::Array(Vec::new()));
    let spaces = json["spaces"].as_array().unwrap();
    assert_eq!(spaces.len(), 1);
    let (ours, xla) = (&spaces[0]["ours"], &spaces[0]["xla"]);
    for side in [ours, xla] {
        assert_eq!(side["argument_bytes"], 128);
        assert_eq!(side["output_bytes"], 128);
        assert_eq!(side["alias_bytes"], 0);
        assert_eq!(side["constant_bytes"], 0);
        assert_eq!(side["table_bytes"], 0);
        assert_eq!(side["fragmentation_bytes"], 0);
        assert_eq!(side["padding_bytes_at_peak"], 0);
    }
    assert_eq!(xla["temp_bytes"], 256);
    assert_eq!(xla["total_bytes"], 512);
    assert_eq!(xla["lower_bound_bytes"], 256);
    assert_eq!(xla["buffers_at_peak"], 2);
    assert_eq!(ours["temp_bytes"], 128);
    assert_eq!(ours["total_bytes"], 384);
    assert_eq!(spaces[0]["one_slab_bytes"], 384);
    // Why: something lies in the output in our plan and in the heap in XLA's.
    let lodged = &spaces[0]["lodged_in_one"];
    assert!(!lodged["ours"].as_array().unwrap().is_empty());
    assert_eq!(lodged["ours"][0]["bytes"], 128);
    assert_eq!(lodged["xla"], Value::Array(Vec::new()));
    // That is all of the difference of the heaps.
    let causes = &spaces[0]["causes"];
    assert_eq!(causes["difference_bytes"], 128);
    assert_eq!(causes["inside_idle_allocations_bytes"], 128);
    for other in [
        "results_on_operands_bytes",
        "live_at_one_peak_bytes",
        "no_tables_bytes",
        "tighter_packing_bytes",
    ] {
        assert_eq!(causes[other], 0, "{other}");
    }
}

/// `c` takes the bytes of `a`, of which `c` is the last reader: a share that XLA's plan has.
#[test]
fn who_shared_is_named() {
    let (status, text, _) = compare(RIGHT, &[]);
    assert_eq!(status, 0);
    insta::assert_snapshot!("chain", text);
}

/// Our own plan as XLA's: no difference anywhere.
#[test]
fn a_proto_of_our_own_plan_is_the_same_plan() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("plan.pb");
    let path = path.to_string_lossy();
    let args = ["--target", "cpu", "--accounting", "xla", "-o", &path];
    let output = slabplan(&[&["plan", MODULE][..], &args].concat());
    assert!(output.status.success());
    let json = json(&path);
    let space = &json["spaces"][0];
    for (key, value) in space["ours"].as_object().unwrap() {
        assert_eq!(&space["xla"][key], value, "{key}");
    }
    for list in ["live_at_one_peak", "shared_in_one", "lodged_in_one"] {
        for side in ["ours", "xla"] {
            assert_eq!(space[list][side], Value::Array(Vec::new()), "{list} {side}");
        }
    }
    let (_, text, _) = compare(&path, &[]);
    let all = text
        .lines()
        .find(|l| l.trim_start().starts_with("all "))
        .unwrap();
    assert!(all.ends_with("same"), "{all}");
}

/// An assignment that is wrong of itself is judged before it is compared.
#[test]
fn offsets_that_overlap_are_an_answer() {
    let text = std::fs::read_to_string(paths::root().join(RIGHT)).unwrap();
    let text = text.replace(
        "<2 b @0> (size=128,offset=128)",
        "<2 b @0> (size=128,offset=64)",
    );
    with_file("a.txt", text.as_bytes(), |path| {
        let (status, out, _) = compare(path, &[]);
        assert_eq!(status, 1, "{out}");
        assert!(
            out.contains("XLA's assignment is not a right plan"),
            "{out}"
        );
        assert!(out.contains("%b") && out.contains("%a"), "{out}");
    });
}

#[track_caller]
fn refused(name: &str, bytes: &[u8], words: &[&str]) {
    with_file(name, bytes, |path| {
        let (status, out, err) = compare(path, &[]);
        assert_eq!((status, out.as_str()), (2, ""), "{err}");
        for word in words {
            assert!(err.contains(word), "no `{word}` in {err}");
        }
    });
}

#[test]
fn what_is_no_assignment_of_the_module_is_refused() {
    let text = std::fs::read_to_string(paths::root().join(RIGHT)).unwrap();
    let other = text.replace("<2 b @0>", "<2 fusion.7 @0>");
    refused(
        "a.txt",
        other.as_bytes(),
        &["a.txt:8:12", "no instruction %fusion.7", "another module?"],
    );
    refused(
        "a.txt",
        &text.as_bytes()[..text.len() - 30],
        &["a.txt:9:", "expected"],
    );
    refused("a.txt", b"", &["empty input"]);
    refused("a.pb.gz", &[0x1f, 0x8b, 8, 0, 0], &["broken gzip data"]);
    refused("a.pb", &[0x0a, 0x7f, 0x12, 0x01], &["truncated"]);
}
