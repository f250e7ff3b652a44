//! The layout problem of a module as a labelling problem.
//!
//! A node is a class of values, a label an order of its dimensions. A value costs its padded bytes,
//! an operand that is not in the order its user needs a copy, a reshape or transpose nothing where
//! its result is its operand's bytes under another name. So the cost of a labelling is the
//! padded bytes of all values of the program after it is applied.

use std::collections::BTreeMap;
use std::rc::Rc;

use petgraph::unionfind::UnionFind;

use slabplan_ir::attr::AttrName;
use slabplan_ir::entity::SecondaryMap;
use slabplan_ir::{ArrayShape, EntityId, InstrId, Module, Opcode, PosId, ShapeId, Target};

use super::classes::{Classes, LayoutClass};
use super::config::LayoutConfig;
use super::orders;
use super::places::Places;
use super::relations::{Relation, ViewKind, relations};
use super::solve::{Edge, Energy, Matrix, Solution, solve};
use super::tiles::{Order, row_major, tiled, tiled_bytes};
use crate::dataflow::{Dataflow, ValueKind};
use crate::order::ProgramOrder;

/// An operand that must be in the order of a result, or be copied.
pub(super) struct Step {
    pub(super) user: InstrId,
    pub(super) operand: usize,
    from: LayoutClass,
    to: LayoutClass,
    array: ShapeId,
}

/// An operand that must be in one order, or be copied.
pub(super) struct Need {
    pub(super) user: InstrId,
    pub(super) operand: usize,
    class: LayoutClass,
    array: ShapeId,
    pub(super) order: Order,
}

/// A reshape or transpose.
pub(super) struct View {
    pub(super) instr: InstrId,
    kind: ViewKind,
    from: LayoutClass,
    to: LayoutClass,
}

/// Values, what relates them, and the orders that are tried.
pub(super) struct Model<'a> {
    module: &'a Module,
    target: &'a Target,
    flow: &'a Dataflow,
    classes: &'a Classes,
    pub(super) steps: Vec<Step>,
    pub(super) needs: Vec<Need>,
    pub(super) views: Vec<View>,
    /// Arrays of every class with bytes of their own, and how many.
    arrays: SecondaryMap<LayoutClass, BTreeMap<ShapeId, u64>>,
    /// Classes that walk in step form one group and try the same orders.
    group: SecondaryMap<LayoutClass, u32>,
    orders: Vec<Vec<Order>>,
}

impl<'a> Model<'a> {
    pub(super) fn new(
        module: &'a Module,
        target: &'a Target,
        order: &ProgramOrder,
        flow: &'a Dataflow,
        classes: &'a Classes,
        config: &LayoutConfig,
    ) -> Self {
        let len = classes.classes.len();
        let mut this = Self {
            module,
            target,
            flow,
            classes,
            steps: Vec::new(),
            needs: Vec::new(),
            views: Vec::new(),
            arrays: SecondaryMap::filled(len, BTreeMap::new()),
            group: SecondaryMap::filled(len, 0),
            orders: Vec::new(),
        };
        for &instr in order.sequence() {
            this.relate(instr);
        }
        this.collect_arrays();
        this.form_groups();
        this.choose_orders(config);
        this
    }

    /// The order of class `class` under `labels`.
    pub(super) fn order(&self, class: LayoutClass, labels: &[usize]) -> &Order {
        &self.orders_of(class)[labels[class.index()]]
    }

    /// The array at `pos` as it lies under `labels`; none where a bitcast shows the value as one of another rank: its
    /// class is pinned, and such an array stays as it is.
    pub(super) fn laid_out(&self, pos: PosId, labels: &[usize]) -> Option<ArrayShape> {
        let class = self.classes.at(self.flow, pos)?;
        let array = self.module.shapes.array(self.flow.positions.shape(pos))?;
        let order = self.order(class, labels);
        (order.len() == array.rank()).then(|| self.place(array, class, order))
    }

    /// Whether the operand of `step` must be copied under `labels`.
    pub(super) fn step_copies(&self, step: &Step, labels: &[usize]) -> Option<&Order> {
        let to = self.order(step.to, labels);
        (self.order(step.from, labels) != to).then_some(to)
    }

    /// Whether the operand of `need` must be copied under `labels`.
    pub(super) fn need_copies(&self, need: &Need, labels: &[usize]) -> bool {
        *self.order(need.class, labels) != need.order
    }

    /// Whether the result of `view` is its operand's bytes under `labels`.
    pub(super) fn is_bitcast(&self, view: &View, labels: &[usize]) -> bool {
        let (from, to) = (self.order(view.from, labels), self.order(view.to, labels));
        let (of_operand, of_result) =
            self.view_places(view, std::slice::from_ref(from), std::slice::from_ref(to));
        of_operand[0].is_some() && of_operand == of_result
    }

    /// Labels that cost at most as much as the default orders, by groups first and then one by one.
    pub(super) fn solve(&self, config: &LayoutConfig) -> Solution {
        let groups = self.group_energy();
        let start = solve(&groups, &vec![0; groups.len()], config);
        let start: Vec<usize> = self
            .classes
            .classes
            .keys()
            .map(|c| start.labels[self.group[c] as usize])
            .collect();
        let energy = self.class_energy();
        let default = vec![0; energy.len()];
        let best = if energy.cost(&start) <= energy.cost(&default) {
            start
        } else {
            default
        };
        solve(&energy, &best, config)
    }

    fn relate(&mut self, instr: InstrId) {
        let operands = &self.module.instrs[instr].operands;
        for relation in relations(self.module, instr) {
            match relation {
                Relation::InStep { operand, result } => {
                    let from = operands.get(operand).map(|&o| self.flow.positions.root(o));
                    let to = self.flow.positions.at(self.module, instr, &result);
                    let (Some(from), Some(to)) = (from, to) else {
                        continue;
                    };
                    if let Some((a, b)) = self.pair(from, to)
                        && self.rank(a) == self.rank(b)
                    {
                        self.steps.push(Step {
                            user: instr,
                            operand,
                            from: a,
                            to: b,
                            array: self.flow.positions.shape(from),
                        });
                    }
                }
                Relation::View { kind } => {
                    let from = self.flow.positions.root(operands[0]);
                    if let Some((from, to)) = self.pair(from, self.flow.positions.root(instr)) {
                        self.views.push(View {
                            instr,
                            kind,
                            from,
                            to,
                        });
                    }
                }
                Relation::Needs { operand, shape } => {
                    let from = self.flow.positions.root(operands[operand]);
                    let class = self.classes.at(self.flow, from);
                    let given = self.module.shapes.array(shape);
                    if let (Some(class), Some(given)) = (class, given)
                        && self.rank(class) == given.rank()
                        && given.rank() >= 2
                    {
                        self.needs.push(Need {
                            user: instr,
                            operand,
                            class,
                            array: self.flow.positions.shape(from),
                            order: given.layout.as_ref().map_or_else(
                                || row_major(given.rank()),
                                |l| l.minor_to_major.clone(),
                            ),
                        });
                    }
                }
                Relation::Pins | Relation::Together => {}
            }
        }
    }

    /// The classes at two positions, if they are two and have an order to choose.
    fn pair(&self, from: PosId, to: PosId) -> Option<(LayoutClass, LayoutClass)> {
        let a = self.classes.at(self.flow, from)?;
        let b = self.classes.at(self.flow, to)?;
        (a != b && (self.rank(a) >= 2 || self.rank(b) >= 2)).then_some((a, b))
    }

    fn rank(&self, class: LayoutClass) -> usize {
        self.classes.classes[class].array.rank()
    }

    /// Values with bytes of their own; those of views are counted with the view.
    fn collect_arrays(&mut self) {
        let mut is_view = SecondaryMap::filled(self.module.instrs.len(), false);
        for view in &self.views {
            is_view[view.instr] = true;
        }
        for (id, value) in self.flow.values.iter() {
            let Some(class) = self.classes.of_value[id.index()] else {
                continue;
            };
            if value.kind == ValueKind::Defined && !is_view[self.flow.positions.instr(value.def)] {
                let shape = self.flow.positions.shape(value.def);
                *self.arrays[class].entry(shape).or_insert(0) += 1;
            }
        }
    }

    fn form_groups(&mut self) {
        let classes = &self.classes.classes;
        let mut sets = UnionFind::<usize>::new(classes.len());
        for s in &self.steps {
            if classes[s.from].pin.is_none() && classes[s.to].pin.is_none() {
                sets.union(s.from.index(), s.to.index());
            }
        }
        let mut number = vec![u32::MAX; classes.len()];
        let mut count = 0;
        for class in classes.keys() {
            let n = &mut number[sets.find(class.index())];
            if *n == u32::MAX {
                *n = count;
                count += 1;
            }
            self.group[class] = *n;
        }
        self.orders = vec![Vec::new(); count as usize];
    }

    fn choose_orders(&mut self, config: &LayoutConfig) {
        let mut arrays: Vec<BTreeMap<ShapeId, u64>> = vec![BTreeMap::new(); self.orders.len()];
        for (class, own) in self.arrays.iter() {
            for (&shape, &n) in own {
                *arrays[self.group[class] as usize].entry(shape).or_insert(0) += n;
            }
        }
        let most = config.orders.max(1);
        for (class, c) in self.classes.classes.iter() {
            let group = self.group[class] as usize;
            if !self.orders[group].is_empty() {
                continue;
            }
            self.orders[group] = if let Some(pin) = &c.pin {
                vec![pin.order.clone()]
            } else if c.array.rank() < 2 {
                vec![row_major(c.array.rank())]
            } else {
                let mut own: Vec<(ArrayShape, u64)> = arrays[group]
                    .iter()
                    .filter_map(|(&s, &n)| Some((self.module.shapes.array(s)?.clone(), n)))
                    .collect();
                if own.is_empty() {
                    own.push((c.array.clone(), 1));
                }
                // Some places are kept for orders that make views of neighbours free.
                orders::cheapest(&own, self.target, (most / 2).max(1))
            };
        }
        for _ in 0..2 {
            self.pass_orders_on(most);
        }
    }

    /// Adds the orders that would make views bitcasts, in both directions.
    fn pass_orders_on(&mut self, most: usize) {
        for v in 0..self.views.len() {
            let view = &self.views[v];
            let (from, to) = (self.group[view.from], self.group[view.to]);
            let forward: Vec<Order> = self.orders[from as usize]
                .iter()
                .filter_map(|o| self.through(view, o, false))
                .collect();
            let back: Vec<Order> = self.orders[to as usize]
                .iter()
                .filter_map(|o| self.through(view, o, true))
                .collect();
            let (free_from, free_to) = (self.is_free(view.from), self.is_free(view.to));
            for (group, new, free) in [(to, forward, free_to), (from, back, free_from)] {
                for order in new {
                    if free && self.orders[group as usize].len() < most {
                        orders::add(&mut self.orders[group as usize], order);
                    }
                }
            }
        }
    }

    fn is_free(&self, class: LayoutClass) -> bool {
        self.classes.classes[class].pin.is_none() && self.rank(class) >= 2
    }

    /// The order beyond a view that makes it a bitcast.
    fn through(&self, view: &View, order: &Order, back: bool) -> Option<Order> {
        let permutation = self.module.instrs[view.instr].ints(AttrName::Dimensions);
        let dims = |c: LayoutClass| &self.classes.classes[c].array.dims;
        match (view.kind, back) {
            (ViewKind::Transpose, false) => orders::through_transpose(order, permutation),
            (ViewKind::Transpose, true) => orders::back_through_transpose(order, permutation),
            (ViewKind::Reshape, false) => {
                orders::through_reshape(dims(view.from), dims(view.to), order)
            }
            (ViewKind::Reshape, true) => {
                orders::through_reshape(dims(view.to), dims(view.from), order)
            }
        }
    }

    fn orders_of(&self, class: LayoutClass) -> &[Order] {
        &self.orders[self.group[class] as usize]
    }

    /// `array` with the layout of `class`: a pinned one whole, otherwise tiled for the target.
    fn place(&self, array: &ArrayShape, class: LayoutClass, order: &Order) -> ArrayShape {
        let pin = self.classes.classes[class].pin.as_ref();
        match pin.and_then(|p| p.layout.as_ref()) {
            Some(layout) if layout.minor_to_major.len() == array.rank() => {
                let mut layout = layout.clone();
                layout.memory_space = array.memory_space();
                ArrayShape {
                    layout: Some(layout),
                    ..array.clone()
                }
            }
            _ => tiled(array, order, self.target),
        }
    }

    fn bytes(&self, shape: ShapeId, order: &Order) -> u64 {
        let array = self.module.shapes.array(shape);
        array
            .filter(|a| a.rank() == order.len())
            .map_or(0, |a| tiled_bytes(a, order, self.target))
    }

    /// Bytes of the values of `class`, and of copies for users that need another order.
    fn class_costs(&self, class: LayoutClass) -> Vec<u64> {
        let orders = self.orders_of(class).iter();
        orders
            .map(|order| {
                self.arrays[class].iter().fold(0u64, |sum, (&shape, &n)| {
                    sum.saturating_add(self.bytes(shape, order).saturating_mul(n))
                })
            })
            .collect()
    }

    fn class_energy(&self) -> Energy {
        let mut energy = Energy {
            unary: self
                .classes
                .classes
                .keys()
                .map(|c| self.class_costs(c))
                .collect(),
            edges: Vec::new(),
        };
        for need in &self.needs {
            self.charge_need(need, &mut energy.unary[need.class.index()]);
        }
        for step in &self.steps {
            energy.edges.push(Edge {
                a: step.from.index() as u32,
                b: step.to.index() as u32,
                costs: Rc::new(self.step_costs(step)),
            });
        }
        for view in &self.views {
            energy.edges.push(Edge {
                a: view.from.index() as u32,
                b: view.to.index() as u32,
                costs: Rc::new(self.view_costs(view)),
            });
        }
        energy
    }

    /// The same problem where all classes of a group have one label.
    fn group_energy(&self) -> Energy {
        let mut energy = Energy {
            unary: self.orders.iter().map(|o| vec![0; o.len()]).collect(),
            edges: Vec::new(),
        };
        for class in self.classes.classes.keys() {
            let own = &mut energy.unary[self.group[class] as usize];
            for (sum, cost) in own.iter_mut().zip(self.class_costs(class)) {
                *sum = sum.saturating_add(cost);
            }
        }
        for need in &self.needs {
            let group = self.group[need.class] as usize;
            self.charge_need(need, &mut energy.unary[group]);
        }
        let mut relate = |from, to, costs: Matrix| {
            let (a, b) = (self.group[from], self.group[to]);
            if a == b {
                for (l, sum) in energy.unary[a as usize].iter_mut().enumerate() {
                    *sum = sum.saturating_add(costs.at(l, l));
                }
            } else {
                let costs = Rc::new(costs);
                energy.edges.push(Edge { a, b, costs });
            }
        };
        for step in &self.steps {
            if self.group[step.from] != self.group[step.to] {
                relate(step.from, step.to, self.step_costs(step));
            }
        }
        for view in &self.views {
            relate(view.from, view.to, self.view_costs(view));
        }
        energy
    }

    fn charge_need(&self, need: &Need, costs: &mut [u64]) {
        let copy = self.bytes(need.array, &need.order);
        for (cost, order) in costs.iter_mut().zip(self.orders_of(need.class)) {
            if *order != need.order {
                *cost = cost.saturating_add(copy);
            }
        }
    }

    fn step_costs(&self, step: &Step) -> Matrix {
        let (from, to) = (self.orders_of(step.from), self.orders_of(step.to));
        let copies: Vec<u64> = to.iter().map(|o| self.bytes(step.array, o)).collect();
        Matrix::new(from.len(), to.len(), |a, b| {
            if from[a] == to[b] { 0 } else { copies[b] }
        })
    }

    fn view_costs(&self, view: &View) -> Matrix {
        let shape = self.module.instrs[view.instr].shape;
        let (from, to) = (self.orders_of(view.from), self.orders_of(view.to));
        let (of_operand, of_result) = self.view_places(view, from, to);
        let bytes: Vec<u64> = to.iter().map(|o| self.bytes(shape, o)).collect();
        Matrix::new(from.len(), to.len(), |a, b| {
            if of_operand[a].is_some() && of_operand[a] == of_result[b] {
                0
            } else {
                bytes[b]
            }
        })
    }

    /// Where the operand of `view` has its elements in each of the orders `from`, and its result in each of `to`.
    fn view_places(
        &self,
        view: &View,
        from: &[Order],
        to: &[Order],
    ) -> (Vec<Option<Places>>, Vec<Option<Places>>) {
        let i = &self.module.instrs[view.instr];
        debug_assert!(matches!(i.opcode, Opcode::Reshape | Opcode::Transpose));
        let shape = |i: InstrId| self.module.shapes.array(self.module.instrs[i].shape);
        let (Some(a), Some(b)) = (shape(i.operands[0]), shape(view.instr)) else {
            return (vec![None; from.len()], vec![None; to.len()]);
        };
        let of_result = |array: &ArrayShape| match view.kind {
            ViewKind::Reshape => Places::row_major(array),
            ViewKind::Transpose => Places::transposed(array, &a.dims, i.ints(AttrName::Dimensions)),
        };
        let from = from.iter().map(|o| self.place(a, view.from, o));
        let to = to.iter().map(|o| self.place(b, view.to, o));
        (
            from.map(|array| Places::row_major(&array)).collect(),
            to.map(|array| of_result(&array)).collect(),
        )
    }
}
