//! Greedy list scheduling: of what is ready, whatever frees most bytes net of those it defines.
//!
//! XLA's `ListScheduler`. Ties go to the instruction with more users, then to the earlier in the text.
//! It looks one step ahead only, so it can be far from the best order.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::region::Region;

/// Net bytes freed, users, the earlier first.
type Priority = (i128, u32, Reverse<u32>);

/// An order that keeps `region.before`. O(E log E) in precedences and uses.
pub(super) fn order(region: &Region) -> Vec<u32> {
    let mut list = List::new(region);
    let mut order = Vec::with_capacity(region.len() as usize);
    while let Some((priority, instr)) = list.ready.pop() {
        // An entry is out of date if the instruction has run or has risen since.
        if !list.done[instr as usize] && list.priority(instr) == priority {
            list.run(instr);
            order.push(instr);
        }
    }
    order
}

struct List<'a> {
    region: &'a Region,
    ready: BinaryHeap<(Priority, u32)>,
    /// Predecessors that have not run.
    waiting: Vec<u32>,
    /// Instructions that still read a value; one more if it outlives the region.
    readers: Vec<u32>,
    /// Bytes that the instruction frees, as things stand.
    frees: Vec<u64>,
    done: Vec<bool>,
}

impl<'a> List<'a> {
    fn new(region: &'a Region) -> Self {
        let n = region.len() as usize;
        let mut this = Self {
            region,
            ready: BinaryHeap::new(),
            waiting: (0..region.len())
                .map(|i| region.before.row(i).len() as u32)
                .collect(),
            readers: (0..)
                .zip(&region.values)
                .map(|(v, value)| region.users.row(v).len() as u32 + u32::from(value.outlives))
                .collect(),
            frees: vec![0; n],
            done: vec![false; n],
        };
        for v in 0..region.values.len() as u32 {
            this.credit_last_reader(v);
        }
        for i in 0..region.len() {
            if this.waiting[i as usize] == 0 {
                this.ready.push((this.priority(i), i));
            }
        }
        this
    }

    fn priority(&self, instr: u32) -> Priority {
        let region = self.region;
        let defined = region.defined_bytes(instr);
        // What only passes values on frees and defines nothing: best out of the way.
        let net = if region.defines.row(instr).is_empty() && region.before.row(instr).len() <= 1 {
            i128::MAX
        } else {
            i128::from(self.frees[instr as usize]) - i128::from(defined)
        };
        (net, region.after.row(instr).len() as u32, Reverse(instr))
    }

    fn run(&mut self, instr: u32) {
        let region = self.region;
        self.done[instr as usize] = true;
        for &v in region.uses.row(instr) {
            self.readers[v as usize] -= 1;
            self.credit_last_reader(v);
        }
        for &next in region.after.row(instr) {
            self.waiting[next as usize] -= 1;
            if self.waiting[next as usize] == 0 {
                self.ready.push((self.priority(next), next));
            }
        }
    }

    /// If one reader of `v` is left, running it frees `v`.
    fn credit_last_reader(&mut self, v: u32) {
        let value = self.region.values[v as usize];
        if self.readers[v as usize] != 1 || value.outlives || value.bytes == 0 {
            return;
        }
        let users = self.region.users.row(v);
        let Some(&last) = users.iter().find(|&&u| !self.done[u as usize]) else {
            return;
        };
        self.frees[last as usize] = self.frees[last as usize].saturating_add(value.bytes);
        if self.waiting[last as usize] == 0 {
            self.ready.push((self.priority(last), last));
        }
    }
}
