//! A module: computations, their instructions and the contract with the caller.

use crate::attr::AttrName;
use crate::entity::{CompId, EntityId, InstrId, PrimaryMap, SecondaryMap, ShapeId};
use crate::instr::Instr;
use crate::opcode::{OpClass, Opcode};
use crate::shape::{ShapeIndex, ShapePool};
use crate::strings::{Str, StringPool};

/// How binding an entry of `input_output_alias` is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AliasKind {
    /// The caller may donate the parameter at run time.
    May,
    /// The caller always donates it.
    Must,
}

/// One entry of `input_output_alias`: this output takes the bytes of this parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputOutputAlias {
    /// Part of the entry computation's result.
    pub output_index: ShapeIndex,
    /// Entry parameter number.
    pub parameter: u32,
    /// Part of that parameter.
    pub parameter_index: ShapeIndex,
    /// How binding it is.
    pub kind: AliasKind,
    /// As the text writes it, for messages; empty where there is no text.
    pub text: Str,
}

/// One entry of `buffer_donor`: the caller gives these bytes away, no output is paired with them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BufferDonor {
    /// Entry parameter number.
    pub parameter: u32,
    /// Part of that parameter.
    pub parameter_index: ShapeIndex,
    /// As the text writes it, for messages; empty where there is no text.
    pub text: Str,
}

/// Shapes of the entry computation as the caller lays its arrays out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryLayout {
    /// Shape of each parameter.
    pub parameters: Vec<ShapeId>,
    /// Shape of the result.
    pub result: ShapeId,
}

/// One computation.
#[derive(Clone, Debug)]
pub struct Computation {
    /// Name without `%`.
    pub name: Str,
    /// Instructions in the order of the text: operands first, and in a scheduled module the schedule.
    pub instrs: Vec<InstrId>,
    /// Parameters by number.
    pub params: Vec<InstrId>,
    /// The instruction whose value is the result.
    pub root: InstrId,
    /// `execution_thread="..."`, with quotes.
    pub execution_thread: Option<Str>,
    /// Whether the text gives a `(params) -> result` signature.
    pub has_signature: bool,
}

/// A header attribute that is kept as text: `(name, value)`.
pub type HeaderAttr = (Str, Str);

/// A whole HLO module.
#[derive(Clone, Debug)]
pub struct Module {
    /// Name.
    pub name: Str,
    /// Owner of all names and kept text.
    pub strings: StringPool,
    /// Owner of all shapes.
    pub shapes: ShapePool,
    /// All instructions of all computations.
    pub instrs: PrimaryMap<InstrId, Instr>,
    /// All computations, in the order of the text.
    pub computations: PrimaryMap<CompId, Computation>,
    /// The entry computation.
    pub entry: CompId,
    /// Whether the order of instructions is the schedule.
    pub is_scheduled: bool,
    /// Outputs that take a parameter's bytes.
    pub input_output_alias: Vec<InputOutputAlias>,
    /// Donated parameters without a paired output.
    pub buffer_donors: Vec<BufferDonor>,
    /// Layouts of the entry computation as the caller sees them.
    pub entry_layout: Option<EntryLayout>,
    /// Number of replicas; 1 unless the header says otherwise.
    pub replica_count: u64,
    /// Number of partitions; 1 unless the header says otherwise.
    pub num_partitions: u64,
    /// All header attributes in text order. Those with a field above hold an empty value here: the
    /// field is what counts and what is printed at this place.
    pub header: Vec<HeaderAttr>,
    /// The four source tables between header and computations, kept as text.
    pub preamble: Str,
}

impl Module {
    /// A string of this module.
    pub fn str(&self, s: Str) -> &str {
        self.strings.get(s)
    }

    /// The name of an instruction, without `%`.
    pub fn name_of(&self, instr: InstrId) -> &str {
        self.str(self.instrs[instr].name)
    }

    /// The name of a computation, without `%`.
    pub fn comp_name(&self, comp: CompId) -> &str {
        self.str(self.computations[comp].name)
    }

    /// The entry computation.
    pub fn entry(&self) -> &Computation {
        &self.computations[self.entry]
    }

    /// Text of an attribute kept as text, without the quotes of a quoted string.
    pub fn attr_text(&self, instr: InstrId, name: AttrName) -> Option<&str> {
        let instr = &self.instrs[instr];
        let s = self.str(instr.raw(name).or_else(|| instr.ident(name))?);
        Some(
            s.strip_prefix('"')
                .and_then(|t| t.strip_suffix('"'))
                .unwrap_or(s),
        )
    }

    /// The target of a custom-call.
    pub fn custom_call_target(&self, instr: InstrId) -> Option<&str> {
        self.attr_text(instr, AttrName::CustomCallTarget)
    }

    /// The `op_name` of an instruction's metadata: the path in the user's program.
    pub fn op_name(&self, instr: InstrId) -> Option<&str> {
        let metadata = self.str(self.instrs[instr].raw(AttrName::Metadata)?);
        let rest = &metadata[metadata.find("op_name=\"")? + "op_name=\"".len()..];
        rest.split('"').next()
    }

    /// Whether `instr` must run although nobody uses its result.
    pub fn has_side_effect(&self, instr: InstrId) -> bool {
        let i = &self.instrs[instr];
        i.opcode.always_has_side_effect()
            || (i.opcode == Opcode::CustomCall && i.flag(AttrName::CustomCallHasSideEffect))
    }

    /// The computations that a plan gives bytes to, callees before callers: the entry and what it
    /// reaches through `while`, `conditional`, `call` and async operations. The others (of fusions,
    /// reductions, comparators, ...) run inside one instruction. O(instructions).
    pub fn planned_computations(&self) -> Vec<CompId> {
        let mut seen = SecondaryMap::filled(self.computations.len(), false);
        let mut done = Vec::new();
        // (computation, its callees, how many of them are visited)
        let mut stack = vec![(self.entry, self.planned_callees(self.entry), 0)];
        seen[self.entry] = true;
        while let Some((comp, callees, next)) = stack.last_mut() {
            if let Some(&callee) = callees.get(*next) {
                *next += 1;
                if !seen[callee] {
                    seen[callee] = true;
                    let inner = self.planned_callees(callee);
                    stack.push((callee, inner, 0));
                }
            } else {
                done.push(*comp);
                stack.pop();
            }
        }
        done
    }

    /// The computations that instructions of `comp` run as part of the program's order, in that order.
    fn planned_callees(&self, comp: CompId) -> Vec<CompId> {
        self.computations[comp]
            .instrs
            .iter()
            .map(|&i| &self.instrs[i])
            .filter(|i| i.calls_planned_computations())
            .flat_map(Instr::called_computations)
            .collect()
    }

    /// Users of every instruction.
    pub fn users(&self) -> Users {
        Users::new(self)
    }
}

impl Instr {
    /// Whether the computations it names run as part of the program's order (and their values have
    /// bytes of their own), rather than inside the instruction.
    pub fn calls_planned_computations(&self) -> bool {
        matches!(self.opcode.class(), OpClass::Control) || self.opcode == Opcode::AsyncStart
    }
}

/// For every instruction, the instructions that have it as an operand, each once, in id order.
#[derive(Clone, Debug)]
pub struct Users {
    first: Vec<u32>,
    users: Vec<InstrId>,
}

impl Users {
    fn new(module: &Module) -> Self {
        let mut first = vec![0u32; module.instrs.len() + 1];
        let mut edges: Vec<(InstrId, InstrId)> = Vec::new();
        for (id, instr) in module.instrs.iter() {
            edges.extend(instr.operands.iter().map(|&o| (o, id)));
        }
        edges.sort_unstable();
        edges.dedup();
        for &(operand, _) in &edges {
            first[operand.index() + 1] += 1;
        }
        for i in 1..first.len() {
            first[i] += first[i - 1];
        }
        Self {
            first,
            users: edges.into_iter().map(|(_, u)| u).collect(),
        }
    }

    /// The users of `instr`.
    pub fn of(&self, instr: InstrId) -> &[InstrId] {
        let i = instr.index();
        &self.users[self.first[i] as usize..self.first[i + 1] as usize]
    }
}
