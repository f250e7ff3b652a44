//! What fills a memory space at its peak: who is live, how much of it is padding, and where in the user's
//! program it comes from.

use std::fmt;

use slabplan_ir::plan::BufferKind;
use slabplan_ir::{Bytes, Module};

use crate::plan::Planned;

/// One buffer that is in use at the peak.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeakEntry {
    /// The value that it holds then, as a plan prints it.
    pub value: String,
    /// Shape with layout.
    pub shape: String,
    /// What the buffer is for.
    pub kind: BufferKind,
    /// Bytes with padding.
    pub padded: Bytes,
    /// Bytes of the elements alone.
    pub logical: Bytes,
    /// `op_name` of the defining instruction: the path in the user's program.
    pub op_name: Option<String>,
}

/// The peak of one memory space.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeakExplanation {
    /// Memory space.
    pub space: u32,
    /// Name of the instruction at which most bytes are in use; absent where none are.
    pub instruction: Option<String>,
    /// Bytes in use, with padding; bytes that two buffers share count once.
    pub padded: Bytes,
    /// Bytes of the elements of what is in use.
    pub logical: Bytes,
    /// Everything in use, largest first.
    pub entries: Vec<PeakEntry>,
}

/// Explains the peak of `space`; nothing where the plan does not use it. O(buffers live at the peak).
pub fn peak(module: &Module, planned: &Planned, space: u32) -> Option<PeakExplanation> {
    let (_, demand) = planned.demands.iter().find(|(s, _)| *s == space)?;
    let analysis = &planned.analysis;
    let bytes = |n| Bytes::new(n).unwrap_or(Bytes::ZERO);
    let entries = demand.at_peak.iter().map(|live| {
        let def = analysis.flow.values[live.value].def;
        PeakEntry {
            value: analysis.flow.display(module, live.value),
            shape: module
                .shapes
                .display(analysis.flow.positions.shape(def))
                .to_string(),
            kind: analysis.buffers[live.class].kind.clone(),
            padded: bytes(live.padded),
            logical: bytes(live.logical),
            op_name: module
                .op_name(analysis.flow.instr_of(live.value))
                .map(str::to_owned),
        }
    });
    Some(PeakExplanation {
        space,
        instruction: demand
            .peak
            .map(|t| module.name_of(analysis.order.instr(t)).to_owned()),
        padded: bytes(demand.padded_at_peak),
        logical: bytes(demand.logical_at_peak),
        entries: entries.collect(),
    })
}

impl PeakEntry {
    /// Bytes that padding adds.
    pub fn padding(&self) -> Bytes {
        self.padded.saturating_sub(self.logical)
    }
}

impl fmt::Display for PeakEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = self.kind.name();
        write!(
            f,
            "{:>10} {kind:<9} {} {}",
            self.padded, self.value, self.shape
        )?;
        if !self.padding().is_zero() {
            write!(f, ", {} of it padding", self.padding())?;
        }
        match &self.op_name {
            Some(op_name) => write!(f, ", from {op_name}"),
            None => Ok(()),
        }
    }
}
