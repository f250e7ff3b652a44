//! What a program and a plan are.
//!
//! `ir` holds the HLO module (parsed, printed, verified), the size of every
//! array in its tiled layout, and the plan with its checker. It knows nothing
//! of planning: the checker proves plans without a line of the planner's code.
//!
//! ```text
//! HLO text --parse--> Module --verify--> Module, Plan --check--> Ok | violations
//! ```

pub mod attr;
pub mod check;
pub mod edit;
mod element_type;
pub mod entity;
pub mod fused_reads;
pub mod graph;
pub mod infer;
pub mod instr;
pub mod layout;
pub mod literal;
pub mod module;
pub mod number;
pub mod opcode;
pub mod padding;
pub mod pieces;
pub mod plan;
pub mod position;
pub mod promise;
pub mod shape;
pub mod strings;
pub mod target;
pub mod text;
pub mod units;
pub mod verify;

pub use element_type::ElementType;
pub use entity::{BufferId, CompId, EntityId, InstrId, PosId, PrimaryMap, SecondaryMap, ShapeId};
pub use instr::{Instr, Payload};
pub use layout::Layout;
pub use module::{Computation, Module};
pub use opcode::Opcode;
pub use plan::Plan;
pub use position::Positions;
pub use shape::{ArrayShape, Shape, ShapeIndex, ShapePool};
pub use target::Target;
pub use units::{Alignment, Bytes, Extent, Offset};
