//! `slabplan simulate`.

use slabplan_ir::plan::Accounting;

use super::load::{ModuleArg, PlanningArgs, TargetArgs};
use super::size::parse_fraction;
use super::{Answer, CliError};
use crate::simulate::{Growth, Kind, simulate};
use crate::{compile, output};

/// Arguments of `simulate`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    module: ModuleArg,
    #[command(flatten)]
    target: TargetArgs,
    #[command(flatten)]
    planning: PlanningArgs,
    /// The allocators to compare.
    #[arg(long, value_enum, default_value = "all")]
    allocator: AllocatorArg,
    /// Memory space, by name or number.
    #[arg(long, value_name = "SPACE", default_value = "0")]
    space: String,
    /// Part of the memory that the allocators may take.
    #[arg(long, value_name = "F", default_value_t = 1.0, value_parser = parse_fraction)]
    memory_fraction: f64,
    /// Whether BFC takes all of that at once, or region by region as needed.
    #[arg(long, value_enum, value_name = "on|off", default_value = "off")]
    preallocate: Switch,
    /// Iterations that loops are taken to run where the program does not say.
    #[arg(long, value_name = "N", default_value_t = 2)]
    trip_count: u64,
    /// One JSON object on standard output instead of the table.
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum AllocatorArg {
    /// Best fit with coalescing: TensorFlow's, and XLA's on GPUs.
    Bfc,
    /// Two pools of cached segments, in the manner of PyTorch.
    Caching,
    /// A pointer that rises, and falls back when what lies on top is freed.
    Bump,
    /// Each of them.
    All,
}

/// A setting that is on or off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Switch {
    On,
    Off,
}

pub(super) fn run(args: &Args) -> Result<Answer, CliError> {
    let target = args.target.load()?;
    let config = args.planning.config();
    if config.accounting != Accounting::Slab {
        return Err(CliError::new(
            "simulate replays the buffers of --accounting slab: leave --accounting out",
        ));
    }
    let space = target
        .spaces
        .iter()
        .find(|s| s.name == args.space || s.id.to_string() == args.space)
        .ok_or_else(|| {
            let names: Vec<&str> = target.spaces.iter().map(|s| s.name.as_str()).collect();
            CliError::new(format!(
                "target {} has no memory space `{}`; it has {}",
                target.name,
                args.space,
                names.join(", ")
            ))
        })?;
    let capacity = (space.capacity.get() as f64 * args.memory_fraction) as u64;
    let (module, origin) = args.module.load()?;
    let compiled =
        compile(module, &target, &config).map_err(|e| CliError::from_compile(e, &origin))?;
    let kinds = match args.allocator {
        AllocatorArg::Bfc => vec![Kind::Bfc],
        AllocatorArg::Caching => vec![Kind::Caching],
        AllocatorArg::Bump => vec![Kind::Bump],
        AllocatorArg::All => Kind::ALL.to_vec(),
    };
    let growth = match args.preallocate {
        Switch::On => Growth::Preallocate,
        Switch::Off => Growth::Regions,
    };
    let result = simulate(
        &compiled,
        space.id,
        capacity,
        growth,
        &kinds,
        args.trip_count,
    );
    let text = if args.json {
        format!("{}\n", result.json(&compiled))
    } else {
        result.table(&compiled)
    };
    output::write("-", text.as_bytes())?;
    Ok(if result.fits() {
        Answer::Yes
    } else {
        Answer::No
    })
}
