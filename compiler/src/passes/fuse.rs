//! Producer-consumer fusion: chains of elementwise operations become one instruction each.
//!
//! A producer joins the fusion of its users if all of them are in one: then its result needs no
//! bytes, nothing is computed twice, and no path leaves the fusion and comes back. Broadcasts,
//! iotas and scalar constants cost nothing to repeat and are copied into every fusion that wants
//! them. XLA's `InstructionFusion` also repeats cheap elementwise work; this does not.
//!
//! ```text
//! a = exp(x)  b = broadcast(c)  m = multiply(a, b)      ->      m = fusion(x, c), kind=kLoop
//! ```

use indexmap::{IndexMap, IndexSet};
use rustc_hash::FxBuildHasher;

use slabplan_ir::attr::{Attr, AttrName, AttrValue};
use slabplan_ir::edit::Names;
use slabplan_ir::padding::shape_bytes;
use slabplan_ir::{
    ArrayShape, CompId, Computation, Instr, InstrId, Module, Opcode, Payload, SecondaryMap,
};

use crate::config::FuseMode;
use crate::pass::{Changed, Pass, PassError, Property, Unit};

/// Most instructions of one fusion.
const MAX_FUSED: usize = 256;

/// Fuses elementwise chains of modules that have no schedule yet.
pub struct FuseElementwise;

impl Pass for FuseElementwise {
    fn name(&self) -> &'static str {
        "fuse-elementwise"
    }

    fn description(&self) -> &'static str {
        "make chains of elementwise operations one instruction, so that what lies between needs no bytes"
    }

    fn requires(&self) -> &'static [Property] {
        &[Property::FlatCallGraph, Property::LaidOut]
    }

    fn run(&self, unit: &mut Unit<'_>) -> Result<Changed, PassError> {
        let mode = unit.config.transforms.fuse;
        if mode == FuseMode::Off || unit.module.is_scheduled {
            return Ok(Changed(false));
        }
        Ok(Changed(fuse(&mut unit.module, mode)))
    }
}

/// Fuses in every planned computation; whether anything was. O(instructions).
fn fuse(module: &mut Module, mode: FuseMode) -> bool {
    let mut names = Names::new(module);
    let mut changed = false;
    for comp in module.planned_computations() {
        let groups = Grouping::of(module, comp, mode).groups();
        let mut fusion_of: IndexMap<InstrId, InstrId, FxBuildHasher> = IndexMap::default();
        for group in &groups {
            let fusion = outline(module, comp, group, &mut names);
            fusion_of.insert(group.root, fusion);
        }
        if !groups.is_empty() {
            replace(module, comp, &fusion_of);
            changed = true;
        }
    }
    if changed {
        module.remove_unlisted();
    }
    changed
}

/// The instructions of one fusion.
struct Group {
    /// Its last instruction, whose result is the fusion's.
    root: InstrId,
    /// All instructions that only it uses, in order, the root last.
    own: Vec<InstrId>,
    /// Instructions that are repeated in it, in order.
    repeated: Vec<InstrId>,
}

/// Which fusion every instruction of a computation belongs to.
struct Grouping<'a> {
    module: &'a Module,
    comp: CompId,
    mode: FuseMode,
    /// Place of every instruction in the computation.
    place: SecondaryMap<InstrId, u32>,
    users: IndexMap<InstrId, Vec<InstrId>, FxBuildHasher>,
    /// Instructions that others wait for without using them.
    awaited: IndexSet<InstrId, FxBuildHasher>,
    group: SecondaryMap<InstrId, Option<InstrId>>,
    size: IndexMap<InstrId, usize, FxBuildHasher>,
}

impl<'a> Grouping<'a> {
    fn of(module: &'a Module, comp: CompId, mode: FuseMode) -> Self {
        let mut this = Self {
            module,
            comp,
            mode,
            place: SecondaryMap::filled(module.instrs.len(), 0),
            users: IndexMap::default(),
            awaited: IndexSet::default(),
            group: SecondaryMap::filled(module.instrs.len(), None),
            size: IndexMap::default(),
        };
        for (place, &i) in (0..).zip(&module.computations[comp].instrs) {
            this.place[i] = place;
            for &o in &module.instrs[i].operands {
                let users = this.users.entry(o).or_default();
                if users.last() != Some(&i) {
                    users.push(i);
                }
            }
            let before = module.instrs[i].control_predecessors();
            this.awaited.extend(before.iter().copied());
        }
        this.assign();
        this
    }

    /// Users first, so that a producer sees where all of them went.
    fn assign(&mut self) {
        let module = self.module;
        for &i in module.computations[self.comp].instrs.iter().rev() {
            if !self.may_fuse(i) {
                continue;
            }
            let elementwise = module.instrs[i].opcode.is_elementwise();
            if elementwise && let Some(root) = self.common_group(i) {
                self.group[i] = Some(root);
                self.size[&root] += 1;
            } else if elementwise || module.instrs[i].opcode == Opcode::Reduce {
                self.group[i] = Some(i);
                self.size.insert(i, 1);
            }
        }
    }

    /// The fusion that all users of `i` are in, if its elements are walked in step with theirs.
    fn common_group(&self, i: InstrId) -> Option<InstrId> {
        if i == self.module.computations[self.comp].root {
            return None;
        }
        let users = self.users.get(&i)?;
        let root = self.group[users[0]]?;
        let shape = self.walked(root)?;
        let mine = self.array(i)?;
        let in_step = users.iter().all(|&u| self.group[u] == Some(root))
            && users.iter().all(|&u| self.feeds_elements(i, u))
            && mine.dims == shape.dims
            && mine.minor_to_major() == shape.minor_to_major()
            && (self.mode == FuseMode::Eager || self.keeps_few_bytes(i));
        (in_step && self.size[&root] < MAX_FUSED).then_some(root)
    }

    /// Whether the operands that die at `i`, and would live on to the fusion, are no larger than
    /// the result that needs no bytes then.
    fn keeps_few_bytes(&self, i: InstrId) -> bool {
        let bytes = |i: InstrId| {
            let size = shape_bytes(&self.module.shapes, self.module.instrs[i].shape);
            size.map_or(u64::MAX, slabplan_ir::Bytes::get)
        };
        let operands: IndexSet<InstrId, FxBuildHasher> =
            self.module.instrs[i].operands.iter().copied().collect();
        let dying = operands.into_iter().filter(|o| {
            self.users[o].len() == 1 && self.module.instrs[*o].opcode != Opcode::Parameter
        });
        dying.map(bytes).fold(0, u64::saturating_add) <= bytes(i)
    }

    /// Whether `user` reads `i` element by element: of a reduction, as an array to reduce.
    fn feeds_elements(&self, i: InstrId, user: InstrId) -> bool {
        let u = &self.module.instrs[user];
        match u.opcode {
            Opcode::Reduce => !u.operands[u.operands.len() / 2..].contains(&i),
            op => op.is_elementwise(),
        }
    }

    /// The array over whose elements the fusion of `root` runs.
    fn walked(&self, root: InstrId) -> Option<&'a ArrayShape> {
        match self.module.instrs[root].opcode {
            Opcode::Reduce => self.array(self.module.instrs[root].operands[0]),
            _ => self.array(root),
        }
    }

    fn array(&self, i: InstrId) -> Option<&'a ArrayShape> {
        self.module.shapes.array(self.module.instrs[i].shape)
    }

    /// Whether nothing but its operands and its result matters about `i`.
    fn may_fuse(&self, i: InstrId) -> bool {
        let instr = &self.module.instrs[i];
        let kind = instr.opcode.is_elementwise()
            || (instr.opcode == Opcode::Reduce && instr.operands.len() == 2);
        let in_hbm = self
            .array(i)
            .is_some_and(|a| a.dynamic == 0 && a.memory_space() == 0);
        kind && in_hbm
            && instr.control_predecessors().is_empty()
            && !self.awaited.contains(&i)
            && instr.attr(AttrName::Sharding).is_none()
    }

    /// What is cheaper to repeat than to keep: a broadcast or iota as wide as the fusion, or a scalar constant.
    fn may_repeat(&self, i: InstrId, walked: &ArrayShape) -> bool {
        let instr = &self.module.instrs[i];
        let Some(array) = self.array(i) else {
            return false;
        };
        let plain = instr.control_predecessors().is_empty()
            && !self.awaited.contains(&i)
            && array.dynamic == 0
            && array.memory_space() == 0;
        let cheap = match instr.opcode {
            Opcode::Broadcast | Opcode::Iota => array.dims == walked.dims,
            Opcode::Constant => array.rank() == 0,
            _ => false,
        };
        plain && cheap
    }

    /// Fusions of two instructions or more, in program order of their roots.
    fn groups(&self) -> Vec<Group> {
        let instrs = &self.module.computations[self.comp].instrs;
        let mut groups: IndexMap<InstrId, Group, FxBuildHasher> = IndexMap::default();
        for &i in instrs {
            if let Some(root) = self.group[i] {
                let group = groups.entry(root).or_insert_with(|| Group {
                    root,
                    own: Vec::new(),
                    repeated: Vec::new(),
                });
                group.own.push(i);
            }
        }
        let mut found: Vec<Group> = groups.into_values().collect();
        for group in &mut found {
            group.repeated = self.repeated(group);
        }
        found.retain(|g| g.own.len() + g.repeated.len() > 1 && self.saves_bytes(g));
        found.sort_by_key(|g| g.root);
        found
    }

    fn repeated(&self, group: &Group) -> Vec<InstrId> {
        let Some(walked) = self.walked(group.root) else {
            return Vec::new();
        };
        let mut all = IndexSet::<InstrId, FxBuildHasher>::default();
        for &i in &group.own {
            for &o in &self.module.instrs[i].operands {
                if self.group[o] != Some(group.root) && self.may_repeat(o, walked) {
                    // Of a broadcast scalar constant, the constant too.
                    let of = self.module.instrs[o].operands.first().copied();
                    all.extend(of.filter(|&c| self.may_repeat(c, walked)));
                    all.insert(o);
                }
            }
        }
        all.sort_unstable_by_key(|&i| self.place[i]);
        all.into_iter().collect()
    }

    /// Whether an array as wide as the fusion no longer needs bytes: one of its own, or a repeated one.
    fn saves_bytes(&self, group: &Group) -> bool {
        group.own.len() > 1
            || group
                .repeated
                .iter()
                .any(|&i| self.module.instrs[i].opcode != Opcode::Constant)
    }
}

/// Moves the instructions of `group` into a computation of their own; returns the fusion that
/// calls it, which has no place yet and whose operands may be the roots of other groups.
fn outline(module: &mut Module, comp: CompId, group: &Group, names: &mut Names) -> InstrId {
    let root_name = module.name_of(group.root).to_owned();
    let fused_name = names.computation(&mut module.strings, "fused_computation");
    let fused = module.computations.next_id();
    let mut inside: IndexMap<InstrId, InstrId, FxBuildHasher> = IndexMap::default();
    let mut body: Vec<InstrId> = Vec::new();
    for &i in &group.repeated {
        let base = format!("{}.clone", module.name_of(i));
        let mut copy = module.instrs[i].clone();
        copy.name = names.instruction(&mut module.strings, &base);
        let copy = module.instrs.push(copy);
        inside.insert(i, copy);
        body.push(copy);
    }
    for &i in &group.own {
        inside.insert(i, i);
        body.push(i);
    }
    let mut arguments: Vec<InstrId> = Vec::new();
    let mut params: Vec<InstrId> = Vec::new();
    for &i in &body {
        module.instrs[i].computation = fused;
        for n in 0..module.instrs[i].operands.len() {
            let operand = module.instrs[i].operands[n];
            let here = if let Some(&here) = inside.get(&operand) {
                here
            } else {
                let param = parameter(module, fused, operand, params.len(), names);
                inside.insert(operand, param);
                arguments.push(operand);
                params.push(param);
                param
            };
            module.instrs[i].operands[n] = here;
        }
    }
    module.computations.push(Computation {
        name: fused_name,
        instrs: params.iter().chain(&body).copied().collect(),
        params,
        root: group.root,
        execution_thread: None,
        has_signature: true,
    });
    let name = names.instruction(&mut module.strings, &format!("{}_fusion", stem(&root_name)));
    let root = &module.instrs[group.root];
    let kind = if root.opcode == Opcode::Reduce {
        "kInput"
    } else {
        "kLoop"
    };
    let metadata = root.attrs.iter().find(|a| a.name == AttrName::Metadata);
    let mut fusion = Instr::new(name, Opcode::Fusion, root.shape, comp, &arguments);
    let metadata = metadata.cloned();
    fusion.attrs = vec![
        Attr {
            name: AttrName::Kind,
            value: AttrValue::Ident(module.strings.push(kind)),
        },
        Attr {
            name: AttrName::Calls,
            value: AttrValue::Comp(fused),
        },
    ];
    fusion.attrs.extend(metadata);
    module.instrs.push(fusion)
}

fn stem(name: &str) -> &str {
    match name.rsplit_once('.') {
        Some((stem, n)) if n.bytes().all(|b| b.is_ascii_digit()) => stem,
        _ => name,
    }
}

/// Parameter `number` of `fused`, which stands for `operand` there.
fn parameter(
    module: &mut Module,
    fused: CompId,
    operand: InstrId,
    number: usize,
    names: &mut Names,
) -> InstrId {
    let name = names.instruction(&mut module.strings, &format!("param_{number}"));
    let shape = module.instrs[operand].shape;
    let mut param = Instr::new(name, Opcode::Parameter, shape, fused, &[]);
    param.payload = Payload::Parameter(number as u32);
    module.instrs.push(param)
}

/// Puts fusions where their roots were, and drops what they hold and what nobody uses any more.
fn replace(
    module: &mut Module,
    comp: CompId,
    fusion_of: &IndexMap<InstrId, InstrId, FxBuildHasher>,
) {
    let new = |i: InstrId| fusion_of.get(&i).copied().unwrap_or(i);
    let mut instrs = std::mem::take(&mut module.computations[comp].instrs);
    for i in &mut instrs {
        *i = new(*i);
    }
    instrs.retain(|&i| module.instrs[i].computation == comp);
    let root = new(module.computations[comp].root);
    let mut used: IndexSet<InstrId, FxBuildHasher> = [root].into_iter().collect();
    for &i in instrs.iter().rev() {
        // Repeated instructions may have lost their last user.
        let opcode = module.instrs[i].opcode;
        let free = matches!(opcode, Opcode::Broadcast | Opcode::Iota | Opcode::Constant);
        if free && !used.contains(&i) {
            continue;
        }
        used.insert(i);
        for operand in &mut module.instrs[i].operands {
            *operand = new(*operand);
            used.insert(*operand);
        }
        used.extend(module.instrs[i].control_predecessors().iter().copied());
    }
    instrs.retain(|i| used.contains(i));
    module.computations[comp].instrs = instrs;
    module.computations[comp].root = root;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fused(text: &str, mode: FuseMode) -> Module {
        let mut module = slabplan_ir::text::parse(text).into_result().unwrap();
        fuse(&mut module, mode);
        slabplan_ir::verify::verify(&module).unwrap();
        module
    }

    /// Instructions of the entry, with the opcodes inside each fusion.
    fn entry(module: &Module) -> Vec<String> {
        let of = |&i: &InstrId| {
            let instr = &module.instrs[i];
            let Some(fused) = instr.comp(AttrName::Calls) else {
                return instr.opcode.name().to_owned();
            };
            let inside = module.computations[fused].instrs.iter();
            let opcodes: Vec<&str> = inside
                .map(|&i| module.instrs[i].opcode)
                .filter(|&o| o != Opcode::Parameter)
                .map(Opcode::name)
                .collect();
            format!("fusion({})", opcodes.join(" "))
        };
        module.entry().instrs.iter().map(of).collect()
    }

    #[test]
    fn a_chain_becomes_one_instruction() {
        let m = fused(
            "ENTRY e { x = f32[4] parameter(0) c = f32[] constant(2) b = f32[4] broadcast(c), dimensions={}
  n = f32[4] negate(x) ROOT m = f32[4] multiply(n, b), metadata={op_name=\"jit(f)/mul\"} }",
            FuseMode::Eager,
        );
        assert_eq!(
            entry(&m),
            ["parameter", "fusion(constant broadcast negate multiply)"]
        );
        let root = m.entry().root;
        assert_eq!(m.op_name(root), Some("jit(f)/mul"));
        assert_eq!(m.name_of(root), "m_fusion");
    }

    #[test]
    fn what_others_need_too_stays() {
        // n is also a result: computing it twice or writing it from the fusion is not for this pass.
        let m = fused(
            "ENTRY e { x = f32[4] parameter(0) n = f32[4] negate(x) c = f32[4] cosine(n) s = f32[4] sine(c)
  ROOT t = (f32[4], f32[4]) tuple(n, s) }",
            FuseMode::Eager,
        );
        assert_eq!(
            entry(&m),
            ["parameter", "negate", "fusion(cosine sine)", "tuple"]
        );
        // c is used twice, but by one fusion.
        let m = fused(
            "ENTRY e { x = f32[4] parameter(0) c = f32[4] cosine(x) s = f32[4] sine(c) ROOT a = f32[4] add(c, s) }",
            FuseMode::Eager,
        );
        assert_eq!(entry(&m), ["parameter", "fusion(cosine sine add)"]);
    }

    #[test]
    fn reductions_end_a_fusion_and_broadcasts_of_arrays_are_repeated() {
        let m = fused(
            "add { p = f32[] parameter(0) q = f32[] parameter(1) ROOT s = f32[] add(p, q) }
ENTRY e { x = f32[4,8] parameter(0) v = f32[8] parameter(1) b = f32[4,8] broadcast(v), dimensions={1}
  z = f32[] constant(0) d = f32[4,8] subtract(x, b) r = f32[4] reduce(d, z), dimensions={1}, to_apply=add
  ROOT m = f32[4,8] multiply(x, b) }",
            FuseMode::Eager,
        );
        // The dead reduction stays: fusing does not remove what the program has.
        assert_eq!(
            entry(&m),
            [
                "parameter",
                "parameter",
                "fusion(broadcast constant subtract reduce)",
                "fusion(broadcast multiply)"
            ]
        );
    }

    #[test]
    fn what_is_repeated_keeps_its_order() {
        // The operand of a repeated broadcast is repeated too, and wanted by itself, before or after.
        let text = |product: &str| {
            format!(
                "ENTRY e {{ x = f32[4] parameter(0) c = f32[] constant(2) b = f32[4] broadcast(c), dimensions={{}}
  b2 = f32[4] broadcast(b), dimensions={{0}} b3 = f32[4] broadcast(b2), dimensions={{0}}
  ROOT m = f32[4] multiply({product}) }}"
            )
        };
        let inside = |product: &str| entry(&fused(&text(product), FuseMode::Eager));
        let both = ["parameter", "fusion(constant broadcast broadcast multiply)"];
        assert_eq!(inside("b2, b"), both);
        assert_eq!(inside("b, b2"), both);
        assert_eq!(
            inside("b3, b"),
            [
                "parameter",
                "fusion(constant broadcast broadcast broadcast multiply)"
            ]
        );
        // Of three levels only one below what is wanted.
        assert_eq!(
            inside("b3, x"),
            [
                "parameter",
                "constant",
                "broadcast",
                "fusion(broadcast broadcast multiply)"
            ]
        );
    }

    #[test]
    fn the_careful_way_keeps_dying_operands_short() {
        // Fused, both dots live until the cosine; unfused one place does for sum and cosine.
        let text = "ENTRY e { x = f32[8,8] parameter(0)
  a = f32[8,8] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  b = f32[8,8] dot(x, x), lhs_contracting_dims={0}, rhs_contracting_dims={0}
  s = f32[8,8] add(a, b) ROOT c = f32[8,8] cosine(s) }";
        let eager = fused(text, FuseMode::Eager);
        assert_eq!(
            entry(&eager),
            ["parameter", "dot", "dot", "fusion(add cosine)"]
        );
        let careful = fused(text, FuseMode::Careful);
        assert_eq!(
            entry(&careful),
            ["parameter", "dot", "dot", "add", "cosine"]
        );
    }
}
