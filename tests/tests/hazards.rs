//! The hazards of memory planning, 60 of them, each with a module that states the right behaviour; `--test rules`
//! holds them to it.

use slabplan_tests::directives::Directives;
use slabplan_tests::paths;

/// Hazards of calls at run time and not of modules: the source file and the test that are about them.
const AT_RUN_TIME: [(u32, &str, &str); 1] = [(
    38,
    "compiler/src/client/tests.rs",
    "fn one_buffer_can_not_be_donated_and_read_in_one_call()",
)];

/// Hazards that have a module, by its name: `h07_init_read_after_loop.hlo` is about number 7.
fn with_modules() -> Vec<(u32, String)> {
    paths::files(&paths::fixtures("rules"), &[".hlo"])
        .iter()
        .filter_map(|path| {
            let name = path.file_name()?.to_str()?;
            let number = name.strip_prefix('h')?.get(..2)?.parse().ok()?;
            Some((number, std::fs::read_to_string(path).unwrap()))
        })
        .collect()
}

#[test]
fn every_hazard_is_tested() {
    let modules = with_modules();
    let missing: Vec<u32> = (1..=60)
        .filter(|n| modules.iter().all(|(m, _)| m != n))
        .filter(|n| AT_RUN_TIME.iter().all(|(m, ..)| m != n))
        .collect();
    assert_eq!(missing, [0; 0], "hazards without a test");
    for (number, file, test) in AT_RUN_TIME {
        let source = std::fs::read_to_string(paths::root().join(file)).unwrap();
        assert!(source.contains(test), "{file} has no `{test}` for {number}");
    }
}

/// Each says what is right, expects something of the plan, and is executed, or the executor says why not.
#[test]
fn every_hazard_states_the_right_behaviour() {
    for (number, text) in with_modules() {
        let directives = Directives::parse(&text).unwrap();
        let what = format!("hazard {number}");
        assert!(text.starts_with(&format!("// H{number}. ")), "{what}");
        assert!(text.contains("\n// Right: "), "{what} states nothing");
        assert!(
            directives.run != directives.run_error.is_some(),
            "{what} is neither run nor refused"
        );
        assert!(
            !directives.expectations.is_empty() || directives.run,
            "{what} expects nothing"
        );
    }
}
