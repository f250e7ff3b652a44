//! Modules in `fixtures/rejected` are refused: the message has the stated words and points at the
//! line that states them.

use libtest_mimic::{Arguments, Failed, Trial};
use slabplan::frontend::{LoadError, Source, parse_module};
use slabplan_tests::{directives, paths};

fn main() {
    let trials = paths::files(&paths::fixtures("rejected"), &[".hlo"])
        .into_iter()
        .map(|path| {
            Trial::test(paths::short(&path), move || {
                let text = std::fs::read_to_string(&path)?;
                refused(&text)
            })
        })
        .collect();
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}

/// Every stated error must be among the reported ones, at its line.
fn refused(text: &str) -> Result<(), Failed> {
    let expected = directives::expected_errors(text);
    if expected.is_empty() {
        return Err("the module states no `// error:`".into());
    }
    let reported = report(text);
    if reported.is_empty() {
        return Err("accepted, but must be refused".into());
    }
    for (line, words) in expected {
        let found = reported.iter().any(|(at, message)| {
            *at == Some(line) && message.to_lowercase().contains(&words.to_lowercase())
        });
        if !found {
            return Err(format!("line {line}: expected `{words}`, reported {reported:#?}").into());
        }
    }
    Ok(())
}

/// What parser or verifier report: (line, message).
fn report(text: &str) -> Vec<(Option<usize>, String)> {
    let source = Source {
        name: "test".to_owned(),
        bytes: text.as_bytes().to_vec(),
    };
    match parse_module(source) {
        Err(LoadError::Text { diagnostics, .. }) => diagnostics
            .iter()
            .map(|d| (Some(d.line), d.to_string()))
            .collect(),
        Err(other) => vec![(None, other.to_string())],
        Ok(module) => match slabplan_ir::verify::verify(&module) {
            Ok(_) => Vec::new(),
            Err(errors) => errors
                .errors
                .iter()
                .map(|e| (e.line_column(text).map(|(line, _)| line), e.to_string()))
                .collect(),
        },
    }
}
