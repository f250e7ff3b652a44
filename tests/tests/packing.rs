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
