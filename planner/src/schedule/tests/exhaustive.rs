//! The least peak of small graphs over all their orders, and the scheduler against it.

use std::fmt::Write;

use slabplan_ir::{InstrId, Module};

use super::{best, entry};
use crate::random::Random;

/// The least peak of all orders of the entry, whose operations share no bytes. What is live after a set of
/// instructions does not depend on their order, so the sets are enough. O(2^n n²).
pub(super) fn least_peak(module: &Module) -> u64 {
    let graph = Oracle::new(module);
    let n = graph.sizes.len();
    let mut least = vec![u64::MAX; 1 << n];
    least[0] = graph.base;
    for done in 0..1usize << n {
        if least[done] == u64::MAX {
            continue;
        }
        let live = graph.live_after(done);
        for i in (0..n).filter(|i| done >> i & 1 == 0 && graph.operands[*i] & !done == 0) {
            let peak = least[done].max(live + graph.sizes[i]);
            let next = &mut least[done | 1 << i];
            *next = peak.min(*next);
        }
    }
    least[(1 << n) - 1]
}

/// A graph of operations without sharing: bit sets of operands and users.
struct Oracle {
    sizes: Vec<u64>,
    operands: Vec<usize>,
    users: Vec<usize>,
    root: usize,
    /// Parameters: there from the start to the end.
    base: u64,
}

impl Oracle {
    fn new(module: &Module) -> Self {
        let entry = module.entry();
        let n = entry.instrs.len();
        assert!(n <= 16, "every set of instructions is looked at");
        let place = |i: InstrId| entry.instrs.iter().position(|&j| j == i).unwrap();
        let mut this = Self {
            sizes: vec![0; n],
            operands: vec![0; n],
            users: vec![0; n],
            root: place(entry.root),
            base: 0,
        };
        for (k, &i) in entry.instrs.iter().enumerate() {
            let instr = &module.instrs[i];
            let shape = module.shapes.array(instr.shape).unwrap();
            let bytes = 4 * shape.element_count().unwrap();
            if instr.parameter_number().is_some() {
                this.base += bytes;
            } else {
                this.sizes[k] = bytes;
            }
            for &o in &instr.operands {
                this.operands[k] |= 1 << place(o);
                this.users[place(o)] |= 1 << k;
            }
        }
        this
    }

    /// Bytes live once the instructions of the set `done` have run.
    fn live_after(&self, done: usize) -> u64 {
        let live = (0..self.sizes.len())
            .filter(|&v| done >> v & 1 == 1 && (v == self.root || self.users[v] & !done != 0));
        self.base + live.map(|v| self.sizes[v]).sum::<u64>()
    }
}

/// Random graphs of 4 to 12 operations: the peak is the least of all orders, and the bound no higher.
#[test]
fn small_graphs_against_every_order() {
    let mut random = Random(12345);
    let graphs = 900;
    let mut tight = 0;
    for operations in (4..=12).cycle().take(graphs) {
        let body = random_graph(&mut random, operations);
        let m = entry(&body);
        let (least, found) = (least_peak(&m), best(&m));
        assert_eq!(found.peak().get(), least, "{body}");
        assert!(found.bound().get() <= least, "{body}");
        tight += usize::from(found.bound().get() == least);
    }
    assert!(
        100 * tight >= 95 * graphs,
        "the bound is the peak in {tight} cases only"
    );
}

/// Operations of 1 to 9 elements with up to three operands each, and a root that reads the last three.
fn random_graph(random: &mut Random, operations: u64) -> String {
    let last = operations - 1;
    let mut body = String::new();
    for i in 0..last {
        let size = 1 + random.below(9);
        let mut operands: Vec<String> = (0..i)
            .filter(|_| random.below(3) == 0)
            .map(|o| format!("v{o}"))
            .collect();
        operands.truncate(3);
        let operands = operands.join(", ");
        writeln!(
            body,
            "v{i} = f32[{size}] custom-call({operands}), custom_call_target=\"t\""
        )
        .unwrap();
    }
    let read: Vec<String> = (last.saturating_sub(3)..last)
        .rev()
        .map(|v| format!("v{v}"))
        .collect();
    write!(
        body,
        "ROOT r = f32[1] custom-call({}), custom_call_target=\"t\"",
        read.join(", ")
    )
    .unwrap();
    body
}
