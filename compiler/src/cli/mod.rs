//! The command line.
//!
//! One file per subcommand. Exit status: 0 done, 1 the answer is no (does not
//! fit, check failed, results differ), 2 the input or the call is wrong.

mod check;
mod compare;
mod error;
mod judge;
mod load;
mod pack;
mod plan;
mod print;
mod progress;
mod run;
mod simulate;
mod size;
mod verify;

use std::collections::BTreeMap;
use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

pub use error::CliError;

/// Static memory planner for compiled HLO modules.
///
/// MODULE is a path or `-` for standard input: HLO text, HloModuleProto or HloProto, also gzipped; the
/// format is found from the content.
#[derive(Debug, Parser)]
#[command(name = "slabplan", version, about, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Plan a module's memory, prove the plan, and summarise it.
    Plan(plan::Args),
    /// Check a plan against its module.
    Check(check::Args),
    /// Show our plan of a module beside XLA's own.
    Compare(compare::Args),
    /// Execute a module on its planned slab.
    Run(run::Args),
    /// Run a module's allocations through dynamic allocators, beside its static plan.
    Simulate(simulate::Args),
    /// Pack a bare problem: buffers with lifetimes and sizes, as CSV or JSON.
    Pack(pack::Args),
    /// Parse a module and print it back as HLO text, or write it as a proto.
    Print(print::Args),
    /// Diagnose a module.
    Verify(verify::Args),
}

/// The answer to a well-formed question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    Yes,
    No,
}

/// Says on standard error what of a module has no place in the proto that was asked for.
fn note_left_out(left_out: &BTreeMap<&'static str, usize>) {
    if left_out.is_empty() {
        return;
    }
    let names = left_out.iter().map(|(name, n)| format!("{name} ({n})"));
    let names: Vec<String> = names.collect();
    eprintln!("note: left out of the proto: {}", names.join(", "));
}

/// The command line, on which a number below zero is a wrong value and no unknown option.
fn command() -> clap::Command {
    Cli::command().mut_subcommands(|s| {
        s.mut_args(|a| {
            let takes_value = a.get_action().takes_values();
            a.allow_negative_numbers(takes_value)
        })
    })
}

/// Runs the command line of this process.
pub fn main() -> ExitCode {
    let parsed = command()
        .try_get_matches()
        .and_then(|matches| Cli::from_arg_matches(&matches));
    let cli = match parsed {
        Ok(cli) => cli,
        Err(e) => {
            // Help and version are answers; everything else is a wrong call.
            let code = if e.use_stderr() { 2 } else { 0 };
            let _ = e.print();
            return ExitCode::from(code);
        }
    };
    let result = match cli.command {
        Command::Plan(args) => plan::run(&args),
        Command::Check(args) => check::run(&args),
        Command::Compare(args) => compare::run(&args),
        Command::Run(args) => run::run(&args),
        Command::Simulate(args) => simulate::run(&args),
        Command::Pack(args) => pack::run(&args),
        Command::Print(args) => print::run(&args),
        Command::Verify(args) => verify::run(&args),
    };
    match result {
        Ok(Answer::Yes) => ExitCode::SUCCESS,
        Ok(Answer::No) => ExitCode::from(1),
        Err(e) if e.is_broken_pipe() => ExitCode::SUCCESS,
        Err(e) => {
            e.report();
            ExitCode::from(2)
        }
    }
}
