//! `slabplan pack`: packs a bare problem, with nothing of programs about it.

use std::fmt::Write as _;
use std::io::IsTerminal;
use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

use serde_json::json;
use slabplan_ir::Bytes;
use slabplan_planner::pack::csv::{self, Named};
use slabplan_planner::pack::{
    self, Control, Misfit, PackConfig, Packing, Progress, explain_misfit, validate_fast,
};

use super::load::EffortArg;
use super::size::{parse_size, parse_threads};
use super::{Answer, CliError};
use crate::{frontend, output, portfolio, report};

/// Arguments of `pack`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// CSV with the columns id,lower,upper,size and optionally alignment,hint,gaps,offset (lifetimes half-open), or
    /// JSON; `-` reads standard input.
    problem: String,
    /// Bytes available; without it, only the lowest height is asked for.
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    capacity: Option<Bytes>,
    /// Where to write the problem with its offsets: JSON for `.json`, else CSV; `-` is standard output, and the summary
    /// then goes to standard error.
    #[arg(short, long, value_name = "OUT")]
    output: Option<String>,
    /// How hard to try; `max` goes on until the packing is proved optimal.
    #[arg(long, value_enum, default_value = "default")]
    effort: EffortArg,
    /// Seconds after which the best packing so far is taken.
    #[arg(long, value_name = "S", value_parser = parse_seconds)]
    timeout: Option<Duration>,
    /// Searches that run at a time; the result does not depend on it. As many as there are processors, if not given.
    #[arg(long, value_name = "N", value_parser = parse_threads)]
    threads: Option<NonZeroUsize>,
    /// Where to write a picture of the packing.
    #[arg(long, value_name = "FILE.svg")]
    svg: Option<String>,
    /// One JSON object on standard output instead of the summary.
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args) -> Result<Answer, CliError> {
    let is_output_taken = is_output_taken(args)?;
    let mut named = load(&args.problem)?;
    let form = args.output.as_deref().map(|path| Form::of(path, &named));
    let form = form.transpose()?;
    if let Some(capacity) = args.capacity {
        named.problem.capacity = Some(capacity.get());
    }
    let start = Instant::now();
    let deadline = args.timeout.and_then(|timeout| start.checked_add(timeout));
    let mut line = ProgressLine::new(start);
    let config = PackConfig {
        effort: args.effort.into(),
        ..PackConfig::default()
    };
    let threads = args
        .threads
        .or_else(|| std::thread::available_parallelism().ok())
        .unwrap_or(NonZeroUsize::MIN);
    let packing = portfolio::pack(&named.problem, &config, threads, &mut |progress| {
        line.show(progress);
        if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            Control::Stop
        } else {
            Control::Continue
        }
    });
    let seconds = start.elapsed().as_secs_f64();
    line.clear();
    let packing = packing.map_err(|e| CliError::new(format!("{}: {e}", args.problem)))?;
    // Whatever the packer says, nothing leaves unchecked.
    validate_fast(&named.problem, &packing.offsets)
        .map_err(|e| CliError::new(format!("internal error: the packing is not valid: {e}")))?;
    if let (Some(path), Some(form)) = (&args.output, form) {
        let text = match form {
            Form::Json => pack::json::print(&named, Some(&packing.offsets)),
            Form::Csv => csv::print(&named, Some(&packing.offsets)),
        };
        output::write(path, text.as_bytes())?;
    }
    if let Some(path) = &args.svg {
        output::write(path, report::packing_svg(&named, &packing).as_bytes())?;
    }
    let text = if args.json {
        format!("{}\n", as_json(&named, &packing, seconds))
    } else {
        summary(&named, &packing, seconds)
    };
    if is_output_taken {
        eprint!("{text}");
    } else {
        output::write("-", text.as_bytes())?;
    }
    if packing.feasible {
        return Ok(Answer::Yes);
    }
    if !args.json {
        eprint!("{}", why_not(&named, &packing)?);
    }
    Ok(Answer::No)
}

/// Whether a file goes to standard output, where the summary would follow it. Two things can't go there.
fn is_output_taken(args: &Args) -> Result<bool, CliError> {
    let (output, svg) = (args.output.as_deref(), args.svg.as_deref());
    let there = [
        ("--output -", output == Some("-")),
        ("--svg -", svg == Some("-")),
        ("--json", args.json),
    ];
    let names: Vec<&str> = there.iter().filter(|it| it.1).map(|it| it.0).collect();
    match names[..] {
        [first, second, ..] => Err(CliError::new(format!(
            "{first} and {second} both write to standard output; give one of them a file"
        ))),
        _ => Ok(!names.is_empty() && !args.json),
    }
}

/// How a packing is written.
#[derive(Clone, Copy)]
enum Form {
    Csv,
    Json,
}

impl Form {
    /// By the name's extension: `.json`, or else CSV, which has no place for what lies on the same bytes.
    fn of(path: &str, named: &Named) -> Result<Self, CliError> {
        let extension = std::path::Path::new(path).extension();
        if extension.is_some_and(|it| it.eq_ignore_ascii_case("json")) {
            return Ok(Self::Json);
        }
        if named.problem.may_share.is_empty() && named.problem.ties.is_empty() {
            return Ok(Self::Csv);
        }
        Err(CliError::new(format!(
            "{path}: CSV can't hold may_share and ties; give a name that ends in .json"
        )))
    }
}

fn parse_seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text
        .parse()
        .map_err(|_| format!("`{text}` is not a number of seconds"))?;
    Duration::try_from_secs_f64(seconds)
        .map_err(|_| format!("`{text}` is not a number of seconds that a clock can hold"))
}

/// Reads CSV or JSON, found from the content.
fn load(path: &str) -> Result<Named, CliError> {
    let source = frontend::read(path)?;
    let name = source.name;
    let text = String::from_utf8(source.bytes)
        .map_err(|_| CliError::new(format!("{name}: neither CSV nor JSON: not UTF-8 text")))?;
    if text
        .trim_start_matches('\u{feff}')
        .trim_start()
        .starts_with('{')
    {
        return pack::json::parse(&text).map_err(|e| CliError::new(format!("{name}: {e}")));
    }
    csv::parse(&text).map_err(|e| {
        let row = text.lines().nth(e.line - 1).unwrap_or("");
        let number = e.line.to_string();
        CliError::new(format!(
            "{name}:{}:{}: {}\n {number} | {row}\n {} | {}^",
            e.line,
            e.column,
            e.message,
            " ".repeat(number.len()),
            " ".repeat(e.column - 1),
        ))
    })
}

fn as_json(named: &Named, packing: &Packing, seconds: f64) -> serde_json::Value {
    json!({
        "buffers": named.problem.buffers.len(),
        "height": packing.height,
        "lower_bound": packing.lower_bound,
        "optimal": packing.optimal,
        "feasible": packing.feasible,
        "seconds": seconds,
        "algorithm": packing.algorithm,
        "nodes": packing.effort_spent,
    })
}

fn summary(named: &Named, packing: &Packing, seconds: f64) -> String {
    let (height, bound) = (packing.height, packing.lower_bound);
    let gap = if packing.optimal {
        "optimal".to_owned()
    } else {
        format!(
            "{:.4} % above the bound",
            100.0 * (height as f64 / bound.max(1) as f64 - 1.0)
        )
    };
    let mut rows = vec![
        ("buffers", named.problem.buffers.len().to_string()),
        ("height", format!("{height} B ({})", human(height))),
        ("lower bound", format!("{bound} B ({})", human(bound))),
        ("gap", gap),
    ];
    if let Some(capacity) = named.problem.capacity {
        let answer = if packing.feasible {
            "fits"
        } else {
            "does not fit"
        };
        rows.push(("capacity", format!("{capacity} B: {answer}")));
    }
    rows.push((
        "found by",
        format!(
            "{}, {} nodes, {seconds:.3} s",
            packing.algorithm, packing.effort_spent
        ),
    ));
    let mut out = String::new();
    for (name, value) in rows {
        // Writing to a string can't fail.
        let _ = writeln!(out, "{name:<12} {value}");
    }
    out
}

fn human(bytes: u64) -> String {
    Bytes::new(bytes).map_or_else(|_| "beyond counting".to_owned(), |it| it.to_string())
}

/// Why it does not fit, as far as that can be told quickly.
fn why_not(named: &Named, packing: &Packing) -> Result<String, CliError> {
    const NODES: u64 = 200_000;
    const LISTED: usize = 20;
    let capacity = named.problem.capacity.unwrap_or(u64::MAX);
    let known: Option<Misfit> = explain_misfit(&named.problem, capacity, NODES)
        .map_err(|e| CliError::new(e.to_string()))?;
    let Some(misfit) = known else {
        let short = packing.height - capacity;
        return Ok(format!(
            "no packing found within the capacity ({short} bytes short); a higher --effort may find one\n"
        ));
    };
    let mut text = format!("does not fit: {misfit}\n");
    for &index in misfit.buffers.iter().take(LISTED) {
        let buffer = &named.problem.buffers[index as usize];
        let spans: Vec<String> = buffer
            .live
            .iter()
            .map(|span| format!("[{}, {})", span.start, span.end))
            .collect();
        let name = &named.names[index as usize];
        let _ = writeln!(
            text,
            "  {name:<16} {:>14} B  live {}",
            buffer.size,
            spans.join(" ")
        );
    }
    if misfit.buffers.len() > LISTED {
        let _ = writeln!(text, "  and {} more", misfit.buffers.len() - LISTED);
    }
    Ok(text)
}

/// One line on a terminal, renewed a few times a second.
struct ProgressLine {
    start: Instant,
    shown: Option<Instant>,
    is_terminal: bool,
}

impl ProgressLine {
    fn new(start: Instant) -> Self {
        Self {
            start,
            shown: None,
            is_terminal: std::io::stderr().is_terminal(),
        }
    }

    fn show(&mut self, progress: &Progress) {
        const PERIOD: Duration = Duration::from_millis(200);
        if !self.is_terminal || self.shown.unwrap_or(self.start).elapsed() < PERIOD {
            return;
        }
        self.shown = Some(Instant::now());
        let seconds = self.start.elapsed().as_secs_f64();
        let best = if progress.height == u64::MAX {
            "none".to_owned()
        } else {
            progress.height.to_string()
        };
        eprint!(
            "\r\x1b[2K{}: best {best}, bound {}, {:.0} nodes/s",
            progress.algorithm,
            progress.lower_bound,
            progress.nodes as f64 / seconds,
        );
    }

    fn clear(&self) {
        if self.shown.is_some() {
            eprint!("\r\x1b[2K");
        }
    }
}
