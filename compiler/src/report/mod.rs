//! What people and scripts read of a plan.

mod advice;
mod compare;
mod handover;
mod packing_svg;
mod plan_json;
mod plan_proto;
mod rewrites;
mod source;
mod summary;
mod table;
mod value;

pub use advice::{Advice, Origin, Remedy, advice, advice_text};
pub use compare::{
    Causes, Comparison, Held, Share, Side, SpaceComparison, compare, comparison_json,
    comparison_text,
};
pub use packing_svg::packing_svg;
pub use plan_json::plan_json;
pub use plan_proto::{PlanProto, plan_proto};
pub use rewrites::rewrites;
pub use source::source_line;
pub use summary::plan_summary;
pub(crate) use summary::thousands;
pub use table::Table;
pub use value::value_name;
