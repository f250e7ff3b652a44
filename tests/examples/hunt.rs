//! Looks for modules that break a promise, for as long as asked.
//!
//! `cargo run --release -p slabplan-tests --example hunt -- --minutes 60 --first 1000000 --keep DIR`
//! tries one seed after another; each broken promise is made small and written to DIR as a module
//! with the message as its first line. `--show SEED` prints the module of a seed.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use slabplan_tests::hunt::{Found, minimise, module_of, try_seed};

struct Options {
    time: Duration,
    first: u64,
    keep: PathBuf,
    most: usize,
    show: Option<u64>,
}

fn main() -> Result<()> {
    let options = options()?;
    if let Some(seed) = options.show {
        print!("{}", module_of(seed));
        return Ok(());
    }
    std::fs::create_dir_all(&options.keep)?;
    let start = Instant::now();
    let (mut tried, mut found) = (0, 0);
    while start.elapsed() < options.time && found < options.most {
        let seed = options.first + tried;
        if let Err(failure) = try_seed(seed) {
            found += 1;
            keep(&options, seed, &minimise(failure))?;
        }
        tried += 1;
    }
    println!(
        "{tried} modules from seed {}, {found} of them broke a promise",
        options.first
    );
    if found > 0 {
        bail!("see {}", options.keep.display());
    }
    Ok(())
}

fn keep(options: &Options, seed: u64, found: &Found) -> Result<()> {
    let message = found.message.lines().next().unwrap_or_default();
    println!("seed {seed}: {message}");
    let path = options.keep.join(format!("seed_{seed}.hlo"));
    let text = format!(
        "// {}\n{}",
        found.message.replace('\n', "\n// "),
        found.text
    );
    std::fs::write(&path, text).with_context(|| path.display().to_string())
}

fn options() -> Result<Options> {
    let mut options = Options {
        time: Duration::from_mins(1),
        first: 0,
        keep: PathBuf::from("target/hunt"),
        most: 10,
        show: None,
    };
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        let value = args
            .next()
            .with_context(|| format!("{arg} takes a value"))?;
        match arg.as_str() {
            "--minutes" => options.time = Duration::from_secs_f64(value.parse::<f64>()? * 60.0),
            "--first" => options.first = value.parse()?,
            "--keep" => options.keep = PathBuf::from(value),
            "--most" => options.most = value.parse()?,
            "--show" => options.show = Some(value.parse()?),
            _ => bail!("unknown option {arg}"),
        }
    }
    Ok(options)
}
