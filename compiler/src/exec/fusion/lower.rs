//! From the graph to operations: which values get memory, and what is computed in one loop.
//!
//! A value gets memory where something other than a loop reads it, where it is a result, and where
//! computing it anew for each of its readers would multiply the work: everything else is computed
//! block by block in the registers of the loop that needs it.

use std::collections::BTreeMap;

use slabplan_ir::ElementType;
use smallvec::SmallVec;

use super::graph::{CallBody, Dims, Graph, Kind, Map, MapDim, NodeId, View};
use super::{InnerBody, InnerOp, Source, Target, Value};
use crate::exec::kernels::fused_loop::{Access, FusedLoop, LoopSpec, Operand, Read, Step, Write};

/// Most steps of one loop; past that, every value that is used twice gets memory.
const MAX_STEPS: usize = 4096;

/// The operations of a fusion, and where its results come from.
pub(super) struct Lowered {
    pub(super) ops: Vec<InnerOp>,
    /// Elements of the memory that each slot takes, with their type.
    pub(super) slots: Vec<(ElementType, usize)>,
}

/// Lowers `graph`, whose results are laid out with the given strides.
pub(super) fn lower(graph: &mut Graph, results: &[Dims], threads: usize) -> Lowered {
    let mut in_memory = choose(graph, false);
    let mut most_steps = MAX_STEPS;
    loop {
        let mut lowering = Lowering {
            views: vec![None; graph.nodes.len()],
            takers: Takers::new(graph),
            ops: Vec::new(),
            slots: Vec::new(),
            threads,
            most_steps,
            too_large: false,
        };
        lowering.run(graph, &in_memory, results);
        if !lowering.too_large {
            let Lowering { ops, slots, .. } = lowering;
            let calls = std::mem::take(&mut graph.calls);
            return Lowered {
                ops: fill_calls(ops, calls),
                slots,
            };
        }
        // Now every value is computed once, however long the loops.
        in_memory = choose(graph, true);
        most_steps = usize::MAX;
    }
}

/// Puts the calls' kernels where their operations are.
fn fill_calls(ops: Vec<PendingOp>, calls: Vec<super::graph::Call>) -> Vec<InnerOp> {
    let mut calls: Vec<Option<CallBody>> = calls.into_iter().map(|c| Some(c.body)).collect();
    ops.into_iter()
        .filter_map(|op| {
            let body = match op.body {
                PendingBody::Loop(l) => InnerBody::Loop(l),
                PendingBody::Call(n) => match calls[n].take()? {
                    CallBody::Kernel(kernel) => InnerBody::Kernel(kernel),
                    CallBody::Bitcast(maps) => InnerBody::Bitcast(maps),
                },
            };
            Some(InnerOp::new(body, op.operands, op.results))
        })
        .collect()
}

/// Which values get memory of their own.
fn choose(graph: &Graph, all_shared: bool) -> Vec<bool> {
    let n = graph.nodes.len();
    let (mut uses, mut chosen) = (vec![0usize; n], vec![false; n]);
    let mut needed = vec![false; n];
    for &o in &graph.outputs {
        needed[o] = true;
        uses[o] += 1;
        chosen[o] = true;
    }
    for id in (0..n).rev() {
        if !needed[id] {
            continue;
        }
        let operands: SmallVec<[NodeId; 4]> = match &graph.nodes[id].kind {
            Kind::Memory(_) | Kind::Iota { .. } => SmallVec::new(),
            Kind::Compute { args, .. } => args.iter().copied().collect(),
            Kind::Move { of, .. } => SmallVec::from_slice(&[*of]),
            Kind::Reshape { of } => {
                chosen[id] = true;
                chosen[*of] = true;
                SmallVec::from_slice(&[*of])
            }
            Kind::Result { call } => {
                chosen[id] = true;
                for &o in &graph.calls[*call].operands {
                    chosen[o] = true;
                }
                graph.calls[*call].operands.iter().copied().collect()
            }
        };
        for o in operands {
            needed[o] = true;
            uses[o] += 1;
        }
    }
    // A moved value is computed at other places than its other readers ask for.
    for id in 0..n {
        let Kind::Move { of, .. } = graph.nodes[id].kind else {
            continue;
        };
        if !needed[id] {
            continue;
        }
        let (mut shared, mut at) = (uses[id] > 1, of);
        while let Kind::Move { of, .. } = graph.nodes[at].kind {
            shared |= uses[at] > 1;
            if chosen[at] {
                break;
            }
            at = of;
        }
        let count = |id: NodeId| graph.nodes[id].dims.iter().product::<usize>();
        let expands = count(at) < count(id);
        let computed = matches!(graph.nodes[at].kind, Kind::Compute { .. });
        if computed && (shared || uses[at] > 1 || expands) {
            chosen[at] = true;
        }
    }
    for id in 0..n {
        let computed = matches!(graph.nodes[id].kind, Kind::Compute { .. });
        chosen[id] = needed[id] && (chosen[id] || (all_shared && computed && uses[id] > 1));
    }
    chosen
}

/// An operation whose kernel is still in the graph.
struct PendingOp {
    body: PendingBody,
    operands: Vec<Value>,
    results: Vec<(Value, Target)>,
}

enum PendingBody {
    Loop(Box<FusedLoop>),
    Call(usize),
}

struct Lowering {
    /// Where the values that have memory lie.
    views: Vec<Option<View>>,
    takers: Takers,
    ops: Vec<PendingOp>,
    slots: Vec<(ElementType, usize)>,
    threads: usize,
    most_steps: usize,
    too_large: bool,
}

impl Lowering {
    fn run(&mut self, graph: &Graph, in_memory: &[bool], results: &[Dims]) {
        let mut called = vec![false; graph.calls.len()];
        for (id, &chosen) in in_memory.iter().enumerate() {
            match &graph.nodes[id].kind {
                Kind::Memory(view) => self.views[id] = Some(view.clone()),
                _ if !chosen => {}
                Kind::Result { call } => {
                    if !std::mem::replace(&mut called[*call], true) {
                        self.call(graph, *call, results);
                    }
                }
                Kind::Reshape { of } => {
                    let node = &graph.nodes[id];
                    let view = self.row_major(graph, *of);
                    self.views[id] = Some(View::whole(view.source, &node.strides));
                }
                _ => {
                    let strides = &graph.nodes[id].strides;
                    let direct = self.takers.final_target(graph, id, results);
                    let view = self.compute(graph, id, strides, direct);
                    self.views[id] = Some(view);
                }
            }
        }
        for (n, &id) in graph.outputs.iter().enumerate() {
            let view = self.views[id].clone();
            let there = View::whole(Source::Result(n), &results[n]);
            if view.as_ref() != Some(&there) {
                self.compute(graph, id, &results[n], Some(n));
            }
        }
    }

    fn call(&mut self, graph: &Graph, n: usize, places: &[Dims]) {
        let call = &graph.calls[n];
        let mut operands = Vec::with_capacity(call.operands.len());
        for &o in &call.operands {
            let node = &graph.nodes[o];
            let wanted = |source| View::whole(source, &node.strides);
            let view = match &self.views[o] {
                Some(view) if *view == wanted(view.source) => view.clone(),
                _ => {
                    let view = self.compute(graph, o, &node.strides, None);
                    self.views[o] = Some(view.clone());
                    view
                }
            };
            operands.push(Value::of(node, view.source));
        }
        let mut results = Vec::with_capacity(call.results.len());
        for &r in &call.results {
            let node = &graph.nodes[r];
            let target = match self.takers.final_target(graph, r, places) {
                Some(n) => Target::Result(n),
                None => self.slot(node.element_type, &node.dims),
            };
            results.push((Value::of(node, target.source()), target));
            self.views[r] = Some(View::whole(target.source(), &node.strides));
        }
        self.ops.push(PendingOp {
            body: PendingBody::Call(n),
            operands,
            results,
        });
    }

    fn slot(&mut self, element_type: ElementType, dims: &Dims) -> Target {
        self.slots
            .push((element_type, dims.iter().product::<usize>()));
        Target::Slot(self.slots.len() - 1)
    }

    /// A value in row-major order, copied if it lies otherwise.
    fn row_major(&mut self, graph: &Graph, id: NodeId) -> View {
        let strides = super::graph::row_major(&graph.nodes[id].dims);
        match &self.views[id] {
            Some(view) if *view == View::whole(view.source, &strides) => view.clone(),
            _ => self.compute(graph, id, &strides, None),
        }
    }

    /// Adds a loop that computes all elements of a value into a result or new memory.
    fn compute(
        &mut self,
        graph: &Graph,
        id: NodeId,
        strides: &Dims,
        result: Option<usize>,
    ) -> View {
        let node = &graph.nodes[id];
        let target = match result {
            Some(n) => Target::Result(n),
            None => self.slot(node.element_type, &node.dims),
        };
        // The loop goes through the target's memory in order.
        let mut order: Dims = (0..node.dims.len()).collect();
        order.sort_by_key(|&d| std::cmp::Reverse(strides[d]));
        let mut map: Map = SmallVec::from_elem(MapDim::same(0), order.len());
        for (place, &d) in order.iter().enumerate() {
            map[d] = MapDim::same(place);
        }
        let mut emitter = Emitter {
            graph,
            views: &self.views,
            rank: order.len(),
            reads: Vec::new(),
            steps: Vec::new(),
            sources: Vec::new(),
            done: BTreeMap::new(),
            most_steps: self.most_steps,
        };
        let value = emitter.emit(id, &map);
        let Emitter {
            reads,
            steps,
            sources,
            ..
        } = emitter;
        if steps.len() > self.most_steps {
            self.too_large = true;
            return View::whole(target.source(), strides);
        }
        let spec = LoopSpec {
            dims: order.iter().map(|&d| node.dims[d]).collect(),
            reads,
            steps,
            write: Write {
                value,
                width: width(node.element_type),
                access: Access {
                    start: 0,
                    steps: order.iter().map(|&d| strides[d] as isize).collect(),
                },
            },
        };
        let operands = sources
            .iter()
            .map(|&(source, reader)| Value::of(&graph.nodes[reader], source))
            .collect();
        self.ops.push(PendingOp {
            body: PendingBody::Loop(Box::new(FusedLoop::new(spec, self.threads))),
            operands,
            results: vec![(Value::of(node, target.source()), target)],
        });
        View::whole(target.source(), strides)
    }
}

/// Who takes the values of a graph.
struct Takers {
    readers: Vec<Taker>,
    /// Numbers of the results that they are.
    outputs: Vec<Taker>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Taker {
    None,
    One(usize),
    Several,
}

impl Taker {
    fn add(&mut self, taker: usize) {
        *self = match *self {
            Taker::None => Taker::One(taker),
            Taker::One(same) if same == taker => *self,
            _ => Taker::Several,
        };
    }
}

impl Takers {
    fn new(graph: &Graph) -> Self {
        let mut this = Self {
            readers: vec![Taker::None; graph.nodes.len()],
            outputs: vec![Taker::None; graph.nodes.len()],
        };
        for (id, node) in graph.nodes.iter().enumerate() {
            match &node.kind {
                Kind::Compute { args, .. } => args.iter().for_each(|&a| this.readers[a].add(id)),
                Kind::Move { of, .. } | Kind::Reshape { of } => this.readers[*of].add(id),
                Kind::Memory(_) | Kind::Iota { .. } | Kind::Result { .. } => {}
            }
        }
        for &operand in graph.calls.iter().flat_map(|c| &c.operands) {
            this.readers[operand] = Taker::Several;
        }
        for (n, &id) in graph.outputs.iter().enumerate() {
            this.outputs[id].add(n);
        }
        this
    }

    /// The result that a value can be computed into: it is that result alone, perhaps reshaped, and
    /// nothing else reads it.
    fn final_target(&self, graph: &Graph, id: NodeId, results: &[Dims]) -> Option<usize> {
        let mut id = id;
        loop {
            let node = &graph.nodes[id];
            match (self.readers[id], self.outputs[id]) {
                (Taker::None, Taker::One(n)) => return (node.strides == results[n]).then_some(n),
                (Taker::One(reader), Taker::None)
                    if matches!(graph.nodes[reader].kind, Kind::Reshape { .. })
                        && node.strides == super::graph::row_major(&node.dims) =>
                {
                    id = reader;
                }
                _ => return None,
            }
        }
    }
}

fn width(ty: ElementType) -> usize {
    ty.byte_width() as usize
}

/// Writes the steps of one loop.
struct Emitter<'a> {
    graph: &'a Graph,
    views: &'a [Option<View>],
    rank: usize,
    reads: Vec<Read>,
    steps: Vec<Step>,
    /// Memory that the loop reads, and a value of it.
    sources: Vec<(Source, NodeId)>,
    /// What values at indices made from the loop's became.
    done: BTreeMap<(NodeId, Map), Operand>,
    most_steps: usize,
}

impl Emitter<'_> {
    /// The value `id` at the indices that `map` makes from the loop's. With a stack of its own:
    /// fusions may be long.
    fn emit(&mut self, id: NodeId, map: &Map) -> Operand {
        let mut tasks = vec![(id, map.clone())];
        while let Some((id, map)) = tasks.last().cloned() {
            if self.done.contains_key(&(id, map.clone())) || self.steps.len() > self.most_steps {
                self.done.entry((id, map)).or_insert(Operand::Read(0));
                tasks.pop();
                continue;
            }
            if let Some(operand) = self.ready(id, &map, &mut tasks) {
                self.done.insert((id, map), operand);
                tasks.pop();
            }
        }
        self.done[&(id, map.clone())]
    }

    /// The value if its operands are there; else they are added to the tasks.
    fn ready(&mut self, id: NodeId, map: &Map, tasks: &mut Vec<(NodeId, Map)>) -> Option<Operand> {
        let node = &self.graph.nodes[id];
        if let Some(view) = &self.views[id] {
            let access = access(self.rank, view.start, &view.steps, map);
            let input = self.source(view.source, id);
            return Some(self.read(Some(input), width(node.element_type), access));
        }
        match &node.kind {
            Kind::Iota { dim } => {
                let mut steps: SmallVec<[isize; 6]> = SmallVec::from_elem(0, map.len());
                steps[*dim] = 1;
                let access = access(self.rank, 0, &steps, map);
                Some(self.read(None, 8, access))
            }
            Kind::Move { of, map: inner } => {
                let composed = compose(inner, map);
                let key = (*of, composed);
                let found = self.done.get(&key).copied();
                if found.is_none() {
                    tasks.push(key);
                }
                found
            }
            Kind::Compute { op, args } => {
                let mut operands = SmallVec::new();
                for &arg in args {
                    match self.done.get(&(arg, map.clone())) {
                        Some(&operand) => operands.push(operand),
                        None => tasks.push((arg, map.clone())),
                    }
                }
                if operands.len() < args.len() {
                    return None;
                }
                self.steps.push(Step {
                    op: *op,
                    args: operands,
                    width: width(node.element_type),
                });
                Some(Operand::Step(self.steps.len() - 1))
            }
            Kind::Memory(_) | Kind::Reshape { .. } | Kind::Result { .. } => {
                unreachable!("it has memory, which was looked at before")
            }
        }
    }

    fn source(&mut self, source: Source, reader: NodeId) -> usize {
        let found = self.sources.iter().position(|s| s.0 == source);
        found.unwrap_or_else(|| {
            self.sources.push((source, reader));
            self.sources.len() - 1
        })
    }

    fn read(&mut self, input: Option<usize>, width: usize, access: Access) -> Operand {
        let read = Read {
            input,
            width,
            access,
        };
        let found = self.reads.iter().position(|r| *r == read);
        Operand::Read(found.unwrap_or_else(|| {
            self.reads.push(read);
            self.reads.len() - 1
        }))
    }
}

/// Where the element lies whose indices `map` makes from the loop's.
fn access(rank: usize, start: isize, steps: &[isize], map: &Map) -> Access {
    let mut access = Access {
        start,
        steps: SmallVec::from_elem(0, rank),
    };
    for (&step, m) in steps.iter().zip(map) {
        access.start += step * m.start;
        if let Some(d) = m.dim {
            access.steps[d] += step * m.step;
        }
    }
    access
}

/// The map from the loop's indices through those of a moved value to its operand's.
fn compose(inner: &Map, outer: &Map) -> Map {
    inner
        .iter()
        .map(|m| match m.dim {
            None => *m,
            Some(d) => MapDim {
                dim: outer[d].dim,
                step: m.step * outer[d].step,
                start: m.start + m.step * outer[d].start,
            },
        })
        .collect()
}
