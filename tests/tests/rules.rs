//! Modules in `fixtures/rules`: each states the right behaviour, worked out by hand. They are
//! planned, checked, and run on the slab with poison and in reference mode.

use libtest_mimic::{Arguments, Failed, Trial};
use slabplan_tests::{directives::Directives, paths, rules};

fn main() {
    let trials = paths::files(&paths::fixtures("rules"), &[".hlo"])
        .into_iter()
        .map(|path| {
            Trial::test(paths::short(&path), move || {
                let text = std::fs::read_to_string(&path)?;
                let directives = Directives::parse(&text)?;
                rules::check(&text, &directives).map_err(Failed::from)
            })
        })
        .collect();
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}
