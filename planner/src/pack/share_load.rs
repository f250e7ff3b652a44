//! The load of the fullest section when every may-share pair is used as well as it can be.
//!
//! Parts of units that occupy the same bytes in one section are pairwise may-share there, so the places that a section
//! needs are at least as many as the members of any set without such a pair. Pairs join operands that die with results
//! of the same instruction: the pairs of a section fall apart into small bipartite components, in which a largest such
//! set follows from a largest matching (D. König, 1931). What the bound says of a section is then exact.

use super::bound::loads;
use super::model::{Model, Part};
use super::problem::Problem;
use super::sections::Spans;

/// Two parts that may lie in the same bytes in sections `[begin, end)`.
#[derive(Clone, Copy, Debug)]
struct Edge {
    begin: u32,
    end: u32,
    a: u32,
    b: u32,
}

/// Steps of matching for each edge, on average, before components are judged less sharply.
const STEPS_PER_EDGE: usize = 64;

/// The most bytes that any packing needs in one section, whichever pairs share.
///
/// O((parts + pairs) log) where pairs meet in few sections, as an operand and a result do.
pub(super) fn sharing_load(problem: &Problem, model: &Model) -> u64 {
    let edges = edges(problem, model);
    let mut loads = loads(model);
    let mut judge = Judge {
        model,
        steps: STEPS_PER_EDGE * (edges.len() + 1024),
    };
    for_each_stretch(&edges, |begin, end, active| {
        let saving = judge.saving(active);
        for load in &mut loads[begin as usize..end as usize] {
            *load = load.saturating_sub(saving);
        }
    });
    loads.into_iter().max().unwrap_or(0)
}

/// The parts that may coincide, found from the pairs of buffers of equal size.
fn edges(problem: &Problem, model: &Model) -> Vec<Edge> {
    let spans = Spans::new(problem);
    let mut edges: Vec<Edge> = Vec::new();
    for &(a, b) in &problem.may_share {
        let size = problem.buffers[a as usize].size;
        let ((u, u_delta), (v, v_delta)) = (model.place_of(a), model.place_of(b));
        if u == v || size != problem.buffers[b as usize].size {
            continue;
        }
        for (begin, end) in spans.common(a, b) {
            let holds = |part: &Part, delta: u64| {
                let in_bytes = part.delta < delta + size && delta < part.delta + part.size;
                in_bytes && part.begin < end && begin < part.end
            };
            for (i, p) in model.numbered_parts(u).filter(|(_, p)| holds(p, u_delta)) {
                for (j, q) in model.numbered_parts(v).filter(|(_, q)| holds(q, v_delta)) {
                    let (begin, end) = (begin.max(p.begin).max(q.begin), end.min(p.end).min(q.end));
                    let (a, b) = (i.min(j), i.max(j));
                    edges.extend((begin < end).then_some(Edge { begin, end, a, b }));
                }
            }
        }
    }
    edges.sort_unstable_by_key(|e| (e.begin, e.a, e.b, e.end));
    edges
}

/// Calls `visit(begin, end, edges)` for every stretch of sections during which the same edges, at least one, are there.
fn for_each_stretch(edges: &[Edge], mut visit: impl FnMut(u32, u32, &[Edge])) {
    let (mut next, mut active, mut at) = (0, Vec::<Edge>::new(), 0);
    while next < edges.len() || !active.is_empty() {
        if active.is_empty() {
            at = edges[next].begin;
        }
        while let Some(edge) = edges.get(next).filter(|e| e.begin == at) {
            active.push(*edge);
            next += 1;
        }
        let begins = edges.get(next).map(|e| e.begin);
        let ends = active.iter().map(|e| e.end);
        let until = ends.chain(begins).min().unwrap_or(at);
        visit(at, until, &active);
        at = until;
        active.retain(|e| e.end > at);
    }
}

/// Works out how many bytes the edges of one section can save.
struct Judge<'a> {
    model: &'a Model,
    /// Steps of matching left.
    steps: usize,
}

/// The edges of a section as a graph of few vertices.
struct Graph {
    weight: Vec<u64>,
    neighbours: Vec<Vec<u32>>,
}

impl Judge<'_> {
    /// No packing saves more in a section with these edges: the weights less those of an independent set.
    fn saving(&mut self, edges: &[Edge]) -> u64 {
        if let [edge] = edges {
            let size = |part| self.model.part(part).size;
            return size(edge.a).min(size(edge.b));
        }
        let graph = Graph::new(self.model, edges);
        let mut colour: Vec<Option<bool>> = vec![None; graph.weight.len()];
        let mut saving = 0;
        for first in 0..graph.weight.len() as u32 {
            if colour[first as usize].is_none() {
                let (component, is_bipartite) = graph.component(first, &mut colour);
                let total: u64 = component.iter().map(|&v| graph.weight[v as usize]).sum();
                saving += total - self.independent(&graph, &component, &colour, is_bipartite);
            }
        }
        saving
    }

    /// The weight of an independent set of the component: a heaviest one where it is bipartite and of equal weights.
    fn independent(
        &mut self,
        graph: &Graph,
        component: &[u32],
        colour: &[Option<bool>],
        is_bipartite: bool,
    ) -> u64 {
        let weight = |v: &u32| graph.weight[*v as usize];
        let heaviest = component.iter().map(weight).max().unwrap_or(0);
        if !is_bipartite {
            return heaviest;
        }
        let left = component
            .iter()
            .filter(|&&v| colour[v as usize] == Some(true));
        let total: u64 = component.iter().map(weight).sum();
        let on_left: u64 = left.clone().map(weight).sum();
        let one_side = on_left.max(total - on_left);
        if component.iter().any(|v| weight(v) != heaviest) {
            return one_side;
        }
        match graph.matching(left.copied(), &mut self.steps) {
            Some(matched) => total - heaviest * matched,
            None => one_side,
        }
    }
}

impl Graph {
    fn new(model: &Model, edges: &[Edge]) -> Self {
        let mut parts: Vec<u32> = edges.iter().flat_map(|e| [e.a, e.b]).collect();
        parts.sort_unstable();
        parts.dedup();
        let number = |part: u32| parts.partition_point(|&p| p < part) as u32;
        let mut neighbours = vec![Vec::new(); parts.len()];
        for edge in edges {
            let (a, b) = (number(edge.a), number(edge.b));
            neighbours[a as usize].push(b);
            neighbours[b as usize].push(a);
        }
        let weight = parts.iter().map(|&p| model.part(p).size).collect();
        Self { weight, neighbours }
    }

    /// What is connected with `first`, coloured by the sides of a bipartite graph, and whether it is one.
    fn component(&self, first: u32, colour: &mut [Option<bool>]) -> (Vec<u32>, bool) {
        colour[first as usize] = Some(true);
        let (mut component, mut is_bipartite, mut next) = (vec![first], true, 0);
        while let Some(&v) = component.get(next) {
            next += 1;
            let other = colour[v as usize].map(|side| !side);
            for &w in &self.neighbours[v as usize] {
                if colour[w as usize].is_none() {
                    colour[w as usize] = other;
                    component.push(w);
                }
                is_bipartite &= colour[w as usize] == other;
            }
        }
        (component, is_bipartite)
    }

    /// Edges of a largest matching, by augmenting paths from the vertices of one side; `None` when `steps` run out.
    fn matching(&self, side: impl Iterator<Item = u32>, steps: &mut usize) -> Option<u64> {
        let count = self.weight.len();
        let mut mate: Vec<Option<u32>> = vec![None; count];
        let mut found = 0;
        for root in side {
            // The vertex of this side from which each vertex of the other was reached.
            let mut from: Vec<Option<u32>> = vec![None; count];
            let (mut queue, mut next, mut free) = (vec![root], 0, None);
            'search: while let Some(&v) = queue.get(next) {
                next += 1;
                for &w in &self.neighbours[v as usize] {
                    *steps = steps.checked_sub(1)?;
                    if from[w as usize].is_some() {
                        continue;
                    }
                    from[w as usize] = Some(v);
                    if let Some(onward) = mate[w as usize] {
                        queue.push(onward);
                    } else {
                        free = Some(w);
                        break 'search;
                    }
                }
            }
            found += u64::from(free.is_some());
            while let Some(w) = free {
                let v = from[w as usize]?;
                free = mate[v as usize];
                mate[v as usize] = Some(w);
                mate[w as usize] = Some(v);
            }
        }
        Some(found)
    }
}
