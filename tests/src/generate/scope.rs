//! One computation while it is written: its lines, and the values that later lines may name.

use super::types::Type;

/// A value of the computation at hand.
#[derive(Clone, Debug)]
pub(super) struct Value {
    pub(super) name: String,
    pub(super) ty: Type,
}

/// What a computation is for, which says what it may contain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// Its values get bytes: the entry, bodies, branches, callees.
    Planned,
    /// Called by an async-start: planned, but without asynchronous operations of its own.
    Async,
    /// Runs inside one fusion.
    Fused,
}

/// An asynchronous operation that has been started.
#[derive(Clone, Debug)]
pub(super) struct InFlight {
    /// Name of its latest start or update.
    pub(super) handle: String,
    /// Type of the handle, for a further update.
    pub(super) handle_type: String,
    /// Opcode of the update; empty if there is none.
    pub(super) update: String,
    /// Opcode of the done.
    pub(super) done: String,
    /// Attributes that the done repeats.
    pub(super) attributes: String,
    /// Type of the result.
    pub(super) result: Type,
}

/// A computation in the making.
pub(super) struct Scope {
    pub(super) role: Role,
    /// How many computations are around it.
    pub(super) depth: usize,
    pub(super) lines: Vec<String>,
    pub(super) values: Vec<Value>,
    pub(super) in_flight: Vec<InFlight>,
}

impl Scope {
    pub(super) fn new(role: Role, depth: usize) -> Self {
        Self {
            role,
            depth,
            lines: Vec::new(),
            values: Vec::new(),
            in_flight: Vec::new(),
        }
    }

    /// Whether values have bytes of their own here.
    pub(super) fn is_planned(&self) -> bool {
        self.role != Role::Fused
    }

    /// The computation's text; `root` has been written before.
    pub(super) fn finish(&self, header: &str, root: &str) -> String {
        let mut out = format!("{header} {{\n");
        for line in &self.lines {
            let is_root = line.split(' ').next() == Some(root);
            out.push_str(if is_root { "  ROOT " } else { "  " });
            out.push_str(line);
            out.push('\n');
        }
        out.push_str("}\n\n");
        out
    }
}
