//! Every exported program is planned, proved and run on its poisoned slab; the results are JAX's.

use libtest_mimic::{Arguments, Failed, Trial};
use slabplan_tests::{models, paths};

fn main() {
    let folders = [Some(paths::fixtures("models")), paths::shared("run")];
    let trials = folders
        .iter()
        .flatten()
        .flat_map(|folder| models::cases(folder))
        .map(|case| {
            Trial::test(paths::short(&case.program), move || {
                case.check().map_err(Failed::from)
            })
        })
        .collect();
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}
