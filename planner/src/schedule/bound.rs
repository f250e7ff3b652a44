//! A certificate: bytes of memory space 0 that are live at once in every order.
//!
//! At instruction `i` a value is live in whatever order, if its definition is `i` or must come before,
//! and one of its readers is `i` or must come after:
//!
//! ```text
//!     definition ──> ... ──> i ──> ... ──> reader
//! ```
//!
//! The most bytes of such values at one instruction are a bound for all orders. Only operands, control
//! predecessors and side effects count as order here, not the precedences that spare copies. Results that may take the
//! bytes of an operand are counted as if they did, wherever the operand may die. An instruction that runs
//! computations needs what is live around it and the bound of the computation that needs most.
//!
//! Reachability is found for a block of values at a time, one bit each, forwards from their definitions and
//! backwards from their readers. So memory is linear in the instructions; time is
//! O(values / 64 · precedences), bounded: of very large computations only the largest values count.
//!
//! A value that may be dead at `i` if its reader comes first may only become so by making others live. So the
//! least cut at `i` ([`super::cut`]) is a better bound, and with the precedence of two instructions decided either
//! way ([`super::branch`]) better still. It is never above what `i` needs in any one order, so
//! it is computed only where a known order needs more than what is proved already.

use super::branch::{self, Answer};
use super::cut::{least, places};
use super::graph::{Graph, HANDED_IN};
use super::improve::Work;

/// Words of a block: 64 values each.
const WORDS: usize = 8;

type Row = [u64; WORDS];

/// What the bound is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Aim {
    /// To prove the given order best if it is: once there is a better one, it is left as it is.
    IsBest,
    /// To be as high as the work allows.
    Highest,
}

/// The bound of a whole computation, what is handed to it included. `graph` is its [`View::Bound`].
///
/// `together` says that all that is handed in is there at one moment, read or not. `order` is any order, the lower its
/// peak the better.
pub(super) fn bound(graph: &Graph, together: bool, order: &[u32], aim: Aim, work: Work) -> u64 {
    let at_each = at_each(graph, MAX_STEPS);
    let mut bound = at_each.iter().copied().max().unwrap_or(0);
    if together {
        bound = bound.max(graph.start);
    }
    let needs = order
        .iter()
        .zip(graph.profile(order))
        .map(|(&i, s)| (s.during, i));
    let mut needs: Vec<(u64, u32)> = needs.filter(|n| n.0 > bound).collect();
    needs.sort_unstable_by_key(|&(during, i)| (std::cmp::Reverse(during), i));
    for (during, i) in needs.into_iter().take(work.rounds) {
        if during <= bound {
            break;
        }
        bound = bound.max(least(graph, i, &places(graph, i)).bytes);
    }
    raised(graph, order, bound, aim, work)
}

/// A better bound, if it can be proved by asking which of two instructions comes first.
fn raised(graph: &Graph, order: &[u32], mut bound: u64, aim: Aim, mut work: Work) -> u64 {
    if work.is_spent() {
        return bound;
    }
    let mut order = order.to_vec();
    let mut peak = graph.peak(&order);
    // First whether the order is best, then halfway.
    let mut limit = peak.saturating_sub(1);
    while bound < peak {
        match branch::within(graph, &order, limit, &mut work) {
            Answer::None => bound = limit + 1,
            Answer::Order(_) if aim == Aim::IsBest => break,
            Answer::Order(better) => {
                peak = graph.peak(&better);
                order = better;
            }
            Answer::Unknown if work.is_spent() || limit == bound => break,
            Answer::Unknown => peak = limit,
        }
        limit = bound + (peak - bound) / 2;
    }
    bound
}

/// Instructions times blocks of values that are looked at: enough for all values of a computation of 40,000
/// instructions, and the largest of larger ones.
const MAX_STEPS: usize = 1 << 22;

/// Bytes live at each instruction in every order; blocks of values are looked at, the largest values first, as long as
/// they take no more than so many steps.
fn at_each(graph: &Graph, steps: usize) -> Vec<u64> {
    let mut live = certainly_live(graph, steps);
    for (i, live) in (0..).zip(&mut live) {
        *live = match graph.call(i) {
            None => live.saturating_sub(most_shared(graph, i)),
            Some(call) => around(graph, i, *live, call.inner),
        };
    }
    live
}

/// What an instruction needs that runs computations, given what is live at it in all.
fn around(graph: &Graph, i: u32, live: u64, inner: u64) -> u64 {
    let sum = |row: &[u32]| row.iter().map(|&v| graph.bytes(v)).sum::<u64>();
    // Its operands are handed over, and may die inside; its results come to be inside or after.
    let own = sum(graph.uses.row(i)) + sum(graph.defines.row(i));
    let through = live.saturating_sub(own);
    let uses = graph.uses.row(i).iter().copied();
    let lasting: Vec<u32> = uses
        .filter(|&v| graph.values[v as usize].outlives)
        .collect();
    through + inner.max(sum(&lasting) + sum(graph.defines.row(i)))
}

/// Most bytes of results of instruction `i` that may lie on operands which die there.
fn most_shared(graph: &Graph, i: u32) -> u64 {
    let mut donors: Vec<u32> = Vec::new();
    let mut results = 0;
    for &v in graph.defines.row(i) {
        let mut largest = 0;
        for &d in graph.donors.row(v) {
            if !graph.values[d as usize].outlives {
                largest = largest.max(graph.bytes(d));
                donors.push(d);
            }
        }
        results += largest.min(graph.bytes(v));
    }
    donors.sort_unstable();
    donors.dedup();
    results.min(donors.iter().map(|&d| graph.bytes(d)).sum())
}

/// Bytes of the values that are live at each instruction in every order; operands and results count both.
fn certainly_live(graph: &Graph, steps: usize) -> Vec<u64> {
    let n = graph.len() as usize;
    let mut live = vec![0u64; n];
    let mut values: Vec<u32> = (0..graph.values.len() as u32).collect();
    // Words of equal sizes are counted, not walked through.
    values.sort_by_key(|&v| (std::cmp::Reverse(graph.bytes(v)), v));
    let mut block = Block::new(n);
    let blocks = (steps / n.max(1)).max(1);
    for values in values.chunks(WORDS * 64).take(blocks) {
        block.fill(graph, values);
        block.add_to(&mut live, graph, values);
    }
    live
}

/// Which of a block of values were surely defined, and which will surely be read, at each instruction.
struct Block {
    defined: Vec<Row>,
    read: Vec<Row>,
    always_defined: Row,
    always_read: Row,
}

impl Block {
    fn new(n: usize) -> Self {
        Self {
            defined: vec![[0; WORDS]; n],
            read: vec![[0; WORDS]; n],
            always_defined: [0; WORDS],
            always_read: [0; WORDS],
        }
    }

    fn fill(&mut self, graph: &Graph, values: &[u32]) {
        self.defined.fill([0; WORDS]);
        self.read.fill([0; WORDS]);
        self.always_defined = [0; WORDS];
        self.always_read = [0; WORDS];
        for (k, &v) in values.iter().enumerate() {
            let (word, bit) = (k / 64, 1u64 << (k % 64));
            match graph.values[v as usize].definer {
                HANDED_IN => self.always_defined[word] |= bit,
                d => {
                    self.defined[d as usize][word] |= bit;
                    self.read[d as usize][word] |= bit;
                }
            }
            for &u in graph.users.row(v) {
                self.read[u as usize][word] |= bit;
            }
            if graph.values[v as usize].outlives {
                self.always_read[word] |= bit;
            }
        }
        for i in 0..graph.len() {
            spread(&mut self.defined, i, graph.before.row(i));
        }
        for i in (0..graph.len()).rev() {
            spread(&mut self.read, i, graph.after.row(i));
        }
    }

    fn add_to(&self, live: &mut [u64], graph: &Graph, values: &[u32]) {
        let words: Vec<&[u32]> = values.chunks(64).collect();
        for (i, live) in live.iter_mut().enumerate() {
            for (word, values) in words.iter().enumerate() {
                let mut bits = (self.defined[i][word] | self.always_defined[word])
                    & (self.read[i][word] | self.always_read[word]);
                if bits == 0 {
                    continue;
                }
                let (first, last) = (
                    graph.bytes(values[0]),
                    graph.bytes(values[values.len() - 1]),
                );
                if first == last {
                    *live += first * u64::from(bits.count_ones());
                    continue;
                }
                while bits != 0 {
                    *live += graph.bytes(values[bits.trailing_zeros() as usize]);
                    bits &= bits - 1;
                }
            }
        }
    }
}

/// Adds to row `i` the rows `from`.
fn spread(rows: &mut [Row], i: u32, from: &[u32]) {
    let mut row = rows[i as usize];
    for &f in from {
        for (w, &other) in row.iter_mut().zip(&rows[f as usize]) {
            *w |= other;
        }
    }
    rows[i as usize] = row;
}
