//! XLA's assignments that are wrong: each is refused or judged with a message that says where.
//!
//! `fixtures/assignments/right.txt` is right; every case changes one thing of it, of its proto, or of
//! the file as a whole.

use slabplan_ir::check::{InPlace, check_with};
use slabplan_tests::cli::slabplan;
use slabplan_tests::{paths, xla};

const MODULE: &str = "fixtures/assignments/chain.hlo";
const RIGHT: &str = include_str!("../../fixtures/assignments/right.txt");

struct Run {
    status: i32,
    stdout: String,
    stderr: String,
}

#[track_caller]
fn judge(name: &str, bytes: &[u8], more: &[&str]) -> Run {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    std::fs::write(&path, bytes).unwrap();
    let path = path.to_string_lossy();
    let mut args = vec!["check", MODULE, "--xla-assignment", &path];
    args.extend(more);
    let output = slabplan(&args);
    let run = Run {
        status: output.status.code().expect("not killed by a signal"),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    };
    assert!(!run.stderr.contains("panicked"), "{}", run.stderr);
    run
}

/// `right.txt` with one text replaced by another.
#[track_caller]
fn changed(from: &str, to: &str) -> String {
    assert_eq!(RIGHT.matches(from).count(), 1, "`{from}` is not there once");
    RIGHT.replace(from, to)
}

/// Refused with status 2 and a message with these words.
#[track_caller]
fn refused(name: &str, bytes: &[u8], words: &[&str]) {
    let run = judge(name, bytes, &[]);
    assert_eq!(run.status, 2, "{}{}", run.stdout, run.stderr);
    assert_eq!(run.stdout, "");
    for word in words {
        assert!(run.stderr.contains(word), "no `{word}` in {}", run.stderr);
    }
}

/// Judged wrong, with status 1 and these words.
#[track_caller]
fn wrong(text: &str, words: &[&str]) {
    let run = judge("a.txt", text.as_bytes(), &[]);
    assert_eq!(run.status, 1, "{}{}", run.stdout, run.stderr);
    for word in words {
        assert!(run.stdout.contains(word), "no `{word}` in {}", run.stdout);
    }
}

#[test]
fn a_right_one_passes() {
    let run = judge("a.txt", RIGHT.as_bytes(), &[]);
    assert_eq!(run.status, 0, "{}{}", run.stdout, run.stderr);
    assert!(run.stdout.contains("the plan is right"), "{}", run.stdout);
    assert!(!run.stdout.contains("promise"), "{}", run.stdout);
}

/// `%b` reads `%a` back to front: on the same bytes it is taken at XLA's word, and said so. `%a` is read
/// again by `%c`, so that here it is lost; with `%c` reading `%b` alone it is not.
#[test]
fn in_place_without_proof_is_counted_apart() {
    let text = changed(
        "<2 b @0> (size=128,offset=128)",
        "<2 b @0> (size=128,offset=0)",
    );
    wrong(&text, &["%c needs %a", "%b", "[lost]"]);
    let folder = tempfile::tempdir().unwrap();
    let module = std::fs::read_to_string(paths::root().join(MODULE)).unwrap();
    let module = module.replace("add(%a, %b)", "add(%b, %b)");
    let module_path = folder.path().join("m.hlo");
    let assignment = folder.path().join("a.txt");
    std::fs::write(&module_path, module).unwrap();
    std::fs::write(&assignment, &text).unwrap();
    let (m, a) = (module_path.to_string_lossy(), assignment.to_string_lossy());
    let args = ["check", &m, "--xla-assignment", &a];
    let output = slabplan(&args);
    let said = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(
        said.contains("in place by the back end's promise, without proof: 1 (0 promised"),
        "{said}"
    );
    assert!(
        said.contains("%b (reverse) takes the bytes of %a"),
        "{said}"
    );
    let output = slabplan(&[&args[..], &["--json"]].concat());
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["promised_count"], 1);
    assert_eq!(json["promised"][0]["instruction"], "b");
    assert_eq!(json["promised"][0]["in_module_text"], false);
}

#[test]
fn overlaps_are_violations() {
    wrong(
        &changed(
            "<2 b @0> (size=128,offset=128)",
            "<2 b @0> (size=128,offset=64)",
        ),
        &["%b", "%a", "bytes"],
    );
    wrong(
        &changed(
            "<3 c @0> (size=128,offset=0)",
            "<3 c @0> (size=128,offset=64)",
        ),
        &["%c", "partial-overlap"],
    );
}

#[test]
fn sizes_that_are_too_small_are_violations() {
    wrong(
        &changed(
            "<1 a @0> (size=128,offset=0)",
            "<1 a @0> (size=64,offset=0)",
        ),
        &["%a takes 128 with padding", "[too-small]"],
    );
}

#[test]
fn values_that_are_left_out_are_violations() {
    wrong(
        &changed(" value: <3 c @0> (size=128,offset=0): f32[32]{0}\n", ""),
        &["%c needs bytes and is in no buffer", "[missing-slot]"],
    );
}

#[test]
fn offsets_that_are_not_aligned_are_violations() {
    wrong(
        &changed(
            "<2 b @0> (size=128,offset=128)",
            "<2 b @0> (size=120,offset=136)",
        ),
        &["does not start at a multiple of 64", "[misaligned]"],
    );
}

#[test]
fn text_that_is_no_assignment_is_refused_with_its_place() {
    let cases: [(String, &[&str]); 13] = [
        (String::new(), &["empty input"]),
        (
            "HloModule m\n".to_owned(),
            &["a.txt:1:1", "expected `BufferAssignment:`"],
        ),
        ("BufferAssignment:\n".to_owned(), &["without allocations"]),
        (
            changed("allocation 2: size 256", "allocation 3: size 256"),
            &["a.txt:6:1", "allocation 3 where allocation 2 was expected"],
        ),
        (
            changed("size 256,", "size twelve,"),
            &["a.txt:6:20", "expected a size in bytes"],
        ),
        (
            changed("size 256,", "size 99999999999999999999,"),
            &["a.txt:6:20", "a number below 2^64"],
        ),
        (
            changed("preallocated-temp", "postallocated-temp"),
            &[
                "a.txt:6:25",
                "unknown property of an allocation: `postallocated-temp`",
            ],
        ),
        (
            changed("offset=128): f32[32]{0}", "offset=256): f32[32]{0}"),
            &[
                "a.txt:8:",
                "takes bytes 256 to 384 of an allocation of 256 bytes",
            ],
        ),
        (
            changed("<2 b @0> (size=128,offset=128)", "<2 b @0> (size=128,"),
            &["a.txt:8:", "expected `,offset=`"],
        ),
        (
            changed("<2 b @0>", "<2 @0>"),
            &["a.txt:8:12", "expected the name of an instruction"],
        ),
        (
            changed("at ShapeIndex {}", "at ShapeIndex {1"),
            &["a.txt:4:", "expected `,`"],
        ),
        (
            RIGHT
                .lines()
                .filter(|l| !l.starts_with("allocation"))
                .fold(String::new(), |text, line| text + line + "\n"),
            &["a.txt:2:1", "a value before the first allocation"],
        ),
        (
            RIGHT[..RIGHT.len() - 30].to_owned(),
            &["a.txt:9:", "expected"],
        ),
    ];
    for (text, words) in &cases {
        refused("a.txt", text.as_bytes(), words);
    }
}

#[test]
fn an_assignment_of_another_module_is_told_as_such() {
    let other = "is this the assignment of another module?";
    let cases: [(String, &[&str]); 4] = [
        (
            changed("<2 b @0>", "<2 fusion.7 @0>"),
            &["a.txt:8:12", "no instruction %fusion.7", other],
        ),
        (
            changed("<2 b @0>", "<2 b{1} @0>"),
            &["a.txt:8:12", "the result of %b has no such part", other],
        ),
        (
            changed("offset=128): f32[32]{0}", "offset=128): f32[16]{0}"),
            &[
                "a.txt:8:12",
                "%b is f32[32]{0} in the module and f32[16]{0} here",
                other,
            ],
        ),
        (
            changed("parameter 0, shape", "parameter 7, shape"),
            &["a.txt:4:1", "no such part of a parameter 7", other],
        ),
    ];
    for (text, words) in &cases {
        refused("a.txt", text.as_bytes(), words);
    }
    let space = changed(
        "allocation 2: size 256,",
        "allocation 2: size 256, color 9,",
    );
    refused(
        "a.txt",
        space.as_bytes(),
        &["a.txt:6:1", "target cpu has no memory space 9"],
    );
}

/// A proto of the right plan, written by `plan -o`.
fn proto() -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("plan.pb");
    let name = path.to_string_lossy();
    let output = slabplan(&["plan", MODULE, "--target", "cpu", "-o", &name]);
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    std::fs::read(&path).unwrap()
}

#[test]
fn a_proto_passes_also_gzipped() {
    let proto = proto();
    assert_eq!(judge("plan.pb", &proto, &[]).status, 0);
    assert_eq!(judge("plan.pb.gz", &gzip(&proto), &[]).status, 0);
}

#[test]
fn truncated_protos_and_gzip_are_refused() {
    let proto = proto();
    for n in [proto.len() / 3, proto.len() / 2, proto.len() - 1] {
        refused("plan.pb", &proto[..n], &["truncated"]);
    }
    let packed = gzip(&proto);
    for n in [3, packed.len() / 2, packed.len() - 4] {
        refused("plan.pb.gz", &packed[..n], &["broken gzip data"]);
    }
}

/// An assignment of nothing, and bytes that are no proto.
#[test]
fn protos_of_other_things_are_refused() {
    refused(
        "a.pb",
        &[0x12, 0x00],
        &["a proto without buffer allocations"],
    );
    refused("a.pb", &[0xff; 40], &["not UTF-8 at byte 0"]);
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    use std::io::Write;
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packer.write_all(bytes).unwrap();
    packer.finish().unwrap()
}

/// Every byte of the text replaced, removed and doubled: read or refused, and never a panic; what is read
/// is judged.
#[test]
fn any_change_of_a_byte_is_read_or_refused() {
    let module = slabplan::frontend::load_module(&paths::root().join(MODULE).to_string_lossy());
    let module = module.unwrap();
    let target = slabplan::target::load("cpu").unwrap();
    let read = |bytes: Vec<u8>| {
        let source = slabplan::frontend::Source {
            name: "a".to_owned(),
            bytes,
        };
        let Ok(assignment) = slabplan::frontend::assignment::parse_assignment(&source, None) else {
            return false;
        };
        let plan = slabplan::frontend::assignment::to_plan(&module, &assignment, &target);
        plan.is_ok_and(|j| check_with(&module, &j.plan, &target, InPlace::Promise).is_ok())
    };
    assert!(read(RIGHT.as_bytes().to_vec()));
    let proto = proto();
    assert!(read(proto.clone()));
    for whole in [RIGHT.as_bytes(), &proto] {
        for at in 0..whole.len() {
            for byte in [0u8, b'0', b'9', b'{', b'\n', 0x7f, 0xff] {
                let mut bytes = whole.to_vec();
                bytes[at] = byte;
                read(bytes);
            }
            let mut bytes = whole.to_vec();
            bytes.remove(at);
            read(bytes);
            let mut bytes = whole.to_vec();
            bytes.insert(at, whole[at]);
            read(bytes);
            read(whole[..at].to_vec());
        }
    }
}

/// The exporter's modules with XLA's own assignments: judged right, on both back ends.
#[test]
fn the_plans_of_our_own_exports_are_right() {
    let mut judged = 0;
    let folders = [Some(paths::fixtures("models")), paths::shared("run")];
    for folder in folders.into_iter().flatten() {
        for (back_end, target) in [("tpu", "tpu-v5e"), ("cpu", "cpu")] {
            let target = slabplan::target::load(target).unwrap();
            let ending = format!("{back_end}.buffer-assignment.txt");
            for path in paths::files(&folder, &[&ending]) {
                let module = path.with_file_name(format!("{back_end}.after.hlo"));
                let module = slabplan::frontend::load_module(&module.to_string_lossy()).unwrap();
                let assignment = xla::load(&path.to_string_lossy()).unwrap();
                let result = xla::judge(&module, &assignment, &target);
                let (_, report) = result.unwrap_or_else(|e| panic!("{}: {e}", path.display()));
                assert!(report.writes > 0);
                judged += 1;
            }
        }
    }
    assert!(judged > 0);
}
