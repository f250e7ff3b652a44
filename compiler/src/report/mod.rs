//! What people and scripts read of a plan.

mod packing_svg;
mod plan_json;
mod summary;
mod table;

pub use packing_svg::packing_svg;
pub use plan_json::plan_json;
pub use summary::plan_summary;
pub(crate) use summary::thousands;
pub use table::Table;
