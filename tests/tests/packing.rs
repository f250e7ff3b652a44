//! `slabplan pack` on small problems: the heights are worked out by hand.

use slabplan_tests::cli::slabplan;

/// Files of `fixtures/packing`, each with its least height.
const PROBLEMS: [(&str, u64); 3] = [
    // `inner` lies in the hole of `outer`: max(8, 8) + 2.
    ("hole.csv", 10),
    // `first` at 0..5 and `second` at 8..13, as both are aligned to 8; `between` at 5..8.
    ("aligned.csv", 13),
    // `pinned` at 3..5 and `low` at 0..3 leave no room of 4 below 5 for `tall`: 5..9.
    ("fixed.csv", 9),
];

struct Run {
    status: Option<i32>,
    json: serde_json::Value,
    stderr: String,
}

fn pack(path: &str, more: &[&str]) -> Run {
    let output = slabplan(&[&["pack", path, "--json"], more].concat());
    Run {
        status: output.status.code(),
        json: serde_json::from_slice(&output.stdout).unwrap_or_default(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

#[test]
fn heights_are_the_least() {
    for (name, height) in PROBLEMS {
        let path = format!("fixtures/packing/{name}");
        let found = pack(&path, &[]);
        assert_eq!(found.status, Some(0), "{name}: {}", found.stderr);
        assert_eq!(found.json["height"], height, "{name}");
        let exact = pack(&path, &["--capacity", &height.to_string()]);
        assert_eq!(exact.status, Some(0), "{name}: {}", exact.stderr);
        assert_eq!(exact.json["feasible"], true, "{name}");
    }
}

#[test]
fn what_does_not_fit_ends_with_status_1() {
    for (name, height) in PROBLEMS {
        let path = format!("fixtures/packing/{name}");
        let found = pack(&path, &["--capacity", &(height - 1).to_string()]);
        assert_eq!(found.status, Some(1), "{name}: {}", found.stderr);
        assert_eq!(found.json["feasible"], false, "{name}");
    }
}

#[test]
fn wrong_problems_end_with_status_2() {
    let folder = tempfile::tempdir().unwrap();
    for (text, words) in [
        ("", "empty"),
        ("id,lower,upper\na,0,1\n", "size"),
        ("id,lower,upper,size\na,0,5,x\n", ":2:7"),
        (
            "id,lower,upper,size\na,0,5,1\na,1,2,3\n",
            "duplicate id `a`",
        ),
    ] {
        let path = folder.path().join("problem.csv");
        std::fs::write(&path, text).unwrap();
        let found = pack(&path.to_string_lossy(), &[]);
        assert_eq!(found.status, Some(2), "{text:?}: {}", found.stderr);
        assert!(found.stderr.contains(words), "{text:?}: {}", found.stderr);
    }
}

/// Two results can't both go to standard output; one alone leaves nothing else there.
#[test]
fn standard_output_holds_one_thing() {
    let path = "fixtures/packing/hole.csv";
    for both in [
        &["-o", "-", "--json"][..],
        &["--svg", "-", "--json"],
        &["-o", "-", "--svg", "-"],
    ] {
        let output = slabplan(&[&["pack", path], both].concat());
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains("both write to standard output"), "{said}");
        assert!(output.stdout.is_empty());
    }
    let output = slabplan(&["pack", path, "-o", "-"]);
    assert_eq!(output.status.code(), Some(0));
    let csv = String::from_utf8(output.stdout).expect("text");
    assert!(csv.starts_with("id,lower,upper,size"), "{csv}");
    assert!(csv.lines().all(|row| row.contains(',')), "{csv}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("lower bound"));
}
