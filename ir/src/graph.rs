//! Dependences between instructions, and calls between computations, as graphs that petgraph walks.
//!
//! petgraph's algorithms see the module through its `visit` traits; the arena
//! is not copied into a graph of petgraph's own. Only what an instruction does
//! not say itself (who depends on it) is tabulated.
//!
//! Edges run from what must come first to what must come later: from operands
//! and control predecessors to their users, from callees to callers.

use fixedbitset::FixedBitSet;
use petgraph::Direction;
use petgraph::visit::{
    Dfs, GraphBase, GraphRef, IntoNeighbors, IntoNeighborsDirected, IntoNodeIdentifiers, Reversed,
    VisitMap, Visitable,
};

use crate::entity::{CompId, EntityId, InstrId};
use crate::module::Module;

/// For every entity of one kind, the entities it leads to, ascending, each once.
#[derive(Clone, Debug)]
struct Successors<K> {
    first: Vec<u32>,
    targets: Vec<K>,
}

impl<K: EntityId> Successors<K> {
    /// From `(from, to)` pairs. O(E log E).
    fn new(len: usize, mut edges: Vec<(K, K)>) -> Self {
        edges.sort_unstable();
        edges.dedup();
        let mut first = vec![0u32; len + 1];
        for &(from, _) in &edges {
            first[from.index() + 1] += 1;
        }
        for i in 1..first.len() {
            first[i] += first[i - 1];
        }
        Self {
            first,
            targets: edges.into_iter().map(|(_, to)| to).collect(),
        }
    }

    fn of(&self, from: K) -> &[K] {
        let i = from.index();
        &self.targets[self.first[i] as usize..self.first[i + 1] as usize]
    }
}

/// Who must come before whom in each computation: operands and control predecessors.
#[derive(Clone, Debug)]
pub struct DependenceGraph<'a> {
    module: &'a Module,
    successors: Successors<InstrId>,
}

impl<'a> DependenceGraph<'a> {
    /// The graph of all computations. Ids must be in range. O(E log E) in the dependences.
    pub fn new(module: &'a Module) -> Self {
        let edges = module
            .instrs
            .iter()
            .flat_map(|(id, instr)| {
                let before = instr.operands.iter().chain(instr.control_predecessors());
                before.map(move |&p| (p, id))
            })
            .collect();
        Self {
            module,
            successors: Successors::new(module.instrs.len(), edges),
        }
    }

    /// What depends on `instr`, ascending, each once.
    pub fn successors(&self, instr: InstrId) -> &[InstrId] {
        self.successors.of(instr)
    }

    /// What `instr` depends on: operands, then control predecessors, as often as it names them.
    pub fn predecessors(&self, instr: InstrId) -> impl Iterator<Item = InstrId> + use<'a> {
        let instr = &self.module.instrs[instr];
        (instr.operands.iter())
            .chain(instr.control_predecessors())
            .copied()
    }

    /// The part of one computation.
    pub fn computation(&self, comp: CompId) -> ComputationGraph<'_> {
        ComputationGraph { graph: self, comp }
    }
}

/// The dependences inside one computation, for petgraph's algorithms.
#[derive(Clone, Copy, Debug)]
pub struct ComputationGraph<'a> {
    graph: &'a DependenceGraph<'a>,
    comp: CompId,
}

impl ComputationGraph<'_> {
    /// An order with everything after what it depends on; otherwise a cycle, each member before
    /// the next and the last before the first. O(V + E).
    pub fn topological_order(self) -> Result<Vec<InstrId>, Vec<InstrId>> {
        petgraph::algo::toposort(self, None).map_err(|c| cycle_through(self, c.node_id()))
    }

    /// Whether `to` depends on `from`, directly or through others. O(V + E).
    pub fn reaches(self, from: InstrId, to: InstrId) -> bool {
        let mut dfs = Dfs::new(self, from);
        while let Some(next) = dfs.next(self) {
            if next == to && from != to {
                return true;
            }
        }
        false
    }
}

/// A shortest cycle that contains `node`, or `node` alone if there is none.
fn cycle_through<G>(graph: G, node: G::NodeId) -> Vec<G::NodeId>
where
    G: IntoNeighborsDirected + Visitable,
    G::NodeId: EntityId,
{
    // Breadth first against the edges, with the step towards `node` kept for each visited one.
    let reversed = Reversed(graph);
    let mut seen = graph.visit_map();
    let mut steps: Vec<(G::NodeId, usize)> = vec![(node, 0)];
    let mut next = 0;
    while let Some(&(at, _)) = steps.get(next) {
        for before in reversed.neighbors(at) {
            if before == node {
                let mut cycle = vec![node];
                let mut step = next;
                while step != 0 {
                    cycle.push(steps[step].0);
                    step = steps[step].1;
                }
                return cycle;
            }
            if seen.visit(before) {
                steps.push((before, next));
            }
        }
        next += 1;
    }
    vec![node]
}

/// Which entities an algorithm has visited.
#[derive(Clone, Debug)]
pub struct Visited(FixedBitSet);

impl<K: EntityId> VisitMap<K> for Visited {
    fn visit(&mut self, a: K) -> bool {
        !self.0.put(a.index())
    }

    fn is_visited(&self, a: &K) -> bool {
        self.0.contains(a.index())
    }

    fn unvisit(&mut self, a: K) -> bool {
        let was = self.0.contains(a.index());
        self.0.set(a.index(), false);
        was
    }
}

type Slices<'a, K> =
    std::iter::Copied<std::iter::Chain<std::slice::Iter<'a, K>, std::slice::Iter<'a, K>>>;

fn slices<'a, K: Copy>(a: &'a [K], b: &'a [K]) -> Slices<'a, K> {
    a.iter().chain(b).copied()
}

impl GraphBase for ComputationGraph<'_> {
    type NodeId = InstrId;
    type EdgeId = (InstrId, InstrId);
}

impl GraphRef for ComputationGraph<'_> {}

impl<'a> IntoNeighbors for ComputationGraph<'a> {
    type Neighbors = Slices<'a, InstrId>;

    fn neighbors(self, n: InstrId) -> Self::Neighbors {
        slices(self.graph.successors(n), &[])
    }
}

impl<'a> IntoNeighborsDirected for ComputationGraph<'a> {
    type NeighborsDirected = Slices<'a, InstrId>;

    fn neighbors_directed(self, n: InstrId, d: Direction) -> Self::NeighborsDirected {
        match d {
            Direction::Outgoing => self.neighbors(n),
            Direction::Incoming => {
                let instr = &self.graph.module.instrs[n];
                slices(&instr.operands, instr.control_predecessors())
            }
        }
    }
}

impl<'a> IntoNodeIdentifiers for ComputationGraph<'a> {
    type NodeIdentifiers = std::iter::Copied<std::slice::Iter<'a, InstrId>>;

    fn node_identifiers(self) -> Self::NodeIdentifiers {
        let module = self.graph.module;
        module.computations[self.comp].instrs.iter().copied()
    }
}

impl Visitable for ComputationGraph<'_> {
    type Map = Visited;

    fn visit_map(&self) -> Visited {
        Visited(FixedBitSet::with_capacity(self.graph.module.instrs.len()))
    }

    fn reset_map(&self, map: &mut Visited) {
        map.0.clear();
    }
}

/// Which computation calls which, directly.
#[derive(Clone, Debug)]
pub struct CallGraph {
    computations: Vec<CompId>,
    callers: Successors<CompId>,
    callees: Successors<CompId>,
}

impl CallGraph {
    /// The graph of a module. Ids must be in range. O(E log E) in the calls.
    pub fn new(module: &Module) -> Self {
        let up: Vec<(CompId, CompId)> = module
            .instrs
            .values()
            .flat_map(|i| i.called_computations().map(move |c| (c, i.computation)))
            .collect();
        let down = up
            .iter()
            .map(|&(callee, caller)| (caller, callee))
            .collect();
        let len = module.computations.len();
        Self {
            computations: module.computations.keys().collect(),
            callers: Successors::new(len, up),
            callees: Successors::new(len, down),
        }
    }

    /// The computations that call `comp`, ascending, each once.
    pub fn callers(&self, comp: CompId) -> &[CompId] {
        self.callers.of(comp)
    }

    /// The computations that `comp` calls, ascending, each once.
    pub fn callees(&self, comp: CompId) -> &[CompId] {
        self.callees.of(comp)
    }

    /// Callees before callers; otherwise computations that call each other in a circle.
    pub fn callees_first(&self) -> Result<Vec<CompId>, Vec<CompId>> {
        petgraph::algo::toposort(self, None).map_err(|c| cycle_through(self, c.node_id()))
    }
}

impl GraphBase for CallGraph {
    type NodeId = CompId;
    type EdgeId = (CompId, CompId);
}

impl<'a> IntoNeighbors for &'a CallGraph {
    type Neighbors = Slices<'a, CompId>;

    fn neighbors(self, n: CompId) -> Self::Neighbors {
        slices(self.callers(n), &[])
    }
}

impl<'a> IntoNeighborsDirected for &'a CallGraph {
    type NeighborsDirected = Slices<'a, CompId>;

    fn neighbors_directed(self, n: CompId, d: Direction) -> Self::NeighborsDirected {
        match d {
            Direction::Outgoing => self.neighbors(n),
            Direction::Incoming => slices(self.callees(n), &[]),
        }
    }
}

impl<'a> IntoNodeIdentifiers for &'a CallGraph {
    type NodeIdentifiers = std::iter::Copied<std::slice::Iter<'a, CompId>>;

    fn node_identifiers(self) -> Self::NodeIdentifiers {
        self.computations.iter().copied()
    }
}

impl Visitable for CallGraph {
    type Map = Visited;

    fn visit_map(&self) -> Visited {
        Visited(FixedBitSet::with_capacity(self.computations.len()))
    }

    fn reset_map(&self, map: &mut Visited) {
        map.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write;

    use super::*;

    fn module(text: &str) -> Module {
        crate::text::parse(text).into_result().unwrap()
    }

    fn named(m: &Module, name: &str) -> InstrId {
        m.instrs.keys().find(|&i| m.name_of(i) == name).unwrap()
    }

    #[test]
    fn order_and_reachability() {
        let m = module(
            "HloModule m\n\nENTRY e {\n  x = f32[4] parameter(0)\n  a = f32[4] negate(x)\n  \
             b = f32[4] negate(x), control-predecessors={a}\n  ROOT c = f32[4] add(b, x)\n}\n",
        );
        let graph = DependenceGraph::new(&m);
        let [x, a, b, c] = ["x", "a", "b", "c"].map(|n| named(&m, n));
        assert_eq!(graph.successors(x), [a, b, c]);
        assert_eq!(graph.predecessors(b).collect::<Vec<_>>(), [x, a]);
        let entry = graph.computation(m.entry);
        assert_eq!(entry.topological_order(), Ok(vec![x, a, b, c]));
        assert!(entry.reaches(a, c));
        assert!(!entry.reaches(c, a));
        assert!(!entry.reaches(a, a));
    }

    /// A chain far longer than a recursive walk could follow.
    #[test]
    fn long_chains_need_no_stack() {
        let mut body = String::from("v0 = f32[] parameter(0)\n");
        for i in 1..100_000 {
            writeln!(body, "v{i} = f32[] negate(v{})", i - 1).unwrap();
        }
        let m = module(&format!("HloModule m\n\nENTRY e {{\n{body}}}\n"));
        let graph = DependenceGraph::new(&m);
        let entry = graph.computation(m.entry);
        assert_eq!(entry.topological_order(), Ok(m.entry().instrs.clone()));
        assert!(entry.reaches(m.entry().instrs[0], m.entry().root));
    }

    #[test]
    fn callees_come_first() {
        let m = module(
            "HloModule m\n\ninner {\n  p = f32[] parameter(0)\n  ROOT r = f32[] negate(p)\n}\n\n\
             outer {\n  p = f32[] parameter(0)\n  ROOT r = f32[] call(p), to_apply=inner\n}\n\n\
             ENTRY e {\n  p = f32[] parameter(0)\n  ROOT r = f32[] call(p), to_apply=outer\n}\n",
        );
        let calls = CallGraph::new(&m);
        let [inner, outer, entry] = [0, 1, 2].map(CompId::from_index);
        assert_eq!(calls.callees_first(), Ok(vec![inner, outer, entry]));
        assert_eq!(calls.callers(inner), [outer]);
        assert_eq!(calls.callees(entry), [outer]);
    }
}
