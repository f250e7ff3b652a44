//! Maximum flow and the two extreme minimum cuts (Dinic, "Algorithm for solution of a problem of maximum flow in
//! networks with power estimation", 1970).

use std::collections::VecDeque;

/// A capacity that no cut crosses.
pub(super) const INFINITE: u64 = u64::MAX / 4;

/// A network; node 0 is the source, node 1 the sink.
pub(super) struct Network {
    /// Head of each arc; arc `a ^ 1` is its reverse.
    to: Vec<u32>,
    room: Vec<u64>,
    next: Vec<u32>,
    first: Vec<u32>,
    distance: Vec<u32>,
    current: Vec<u32>,
}

const NONE: u32 = u32::MAX;
pub(super) const SOURCE: u32 = 0;
pub(super) const SINK: u32 = 1;

impl Network {
    /// With source and sink only.
    pub(super) fn new() -> Self {
        Self {
            to: Vec::new(),
            room: Vec::new(),
            next: Vec::new(),
            first: vec![NONE; 2],
            distance: Vec::new(),
            current: Vec::new(),
        }
    }

    /// Adds a node and gives its number.
    pub(super) fn add_node(&mut self) -> u32 {
        self.first.push(NONE);
        self.first.len() as u32 - 1
    }

    /// Adds an arc.
    pub(super) fn add_arc(&mut self, from: u32, to: u32, capacity: u64) {
        for (a, b, room) in [(from, to, capacity), (to, from, 0)] {
            self.to.push(b);
            self.room.push(room);
            self.next.push(self.first[a as usize]);
            self.first[a as usize] = self.to.len() as u32 - 1;
        }
    }

    /// Fills the network and gives the flow. O(nodes² arcs), in practice near-linear in the arcs.
    pub(super) fn fill(&mut self) -> u64 {
        let mut flow = 0u64;
        while self.find_distances() {
            self.current.clone_from(&self.first);
            loop {
                let pushed = self.push();
                if pushed == 0 {
                    break;
                }
                flow = flow.saturating_add(pushed);
            }
        }
        flow
    }

    fn find_distances(&mut self) -> bool {
        self.distance.clear();
        self.distance.resize(self.first.len(), NONE);
        self.distance[SOURCE as usize] = 0;
        let mut queue = VecDeque::from([SOURCE]);
        while let Some(node) = queue.pop_front() {
            let mut arc = self.first[node as usize];
            while arc != NONE {
                let to = self.to[arc as usize] as usize;
                if self.room[arc as usize] > 0 && self.distance[to] == NONE {
                    self.distance[to] = self.distance[node as usize] + 1;
                    queue.push_back(to as u32);
                }
                arc = self.next[arc as usize];
            }
        }
        self.distance[SINK as usize] != NONE
    }

    /// Pushes along one shortest path; 0 if there is none left.
    fn push(&mut self) -> u64 {
        let mut path: Vec<u32> = Vec::new();
        let mut node = SOURCE;
        while node != SINK {
            let arc = self.current[node as usize];
            if arc == NONE {
                // A dead end: go back, and never here again.
                let Some(back) = path.pop() else { return 0 };
                node = self.to[back as usize ^ 1];
                self.current[node as usize] = self.next[back as usize];
                continue;
            }
            let to = self.to[arc as usize];
            if self.room[arc as usize] > 0
                && self.distance[to as usize] == self.distance[node as usize] + 1
            {
                path.push(arc);
                node = to;
            } else {
                self.current[node as usize] = self.next[arc as usize];
            }
        }
        let room = path
            .iter()
            .map(|&a| self.room[a as usize])
            .min()
            .unwrap_or(0);
        for &arc in &path {
            self.room[arc as usize] -= room;
            self.room[arc as usize ^ 1] += room;
        }
        room
    }

    /// Of a filled network, the nodes on the source's side of the minimum cut that has fewest of them.
    pub(super) fn near_source(&self) -> Vec<bool> {
        self.reached(SOURCE, |arc| self.room[arc as usize] > 0)
    }

    /// The nodes on the source's side of the minimum cut that has most of them.
    pub(super) fn away_from_sink(&self) -> Vec<bool> {
        let mut side = self.reached(SINK, |arc| self.room[arc as usize ^ 1] > 0);
        for s in &mut side {
            *s = !*s;
        }
        side
    }

    fn reached(&self, from: u32, open: impl Fn(u32) -> bool) -> Vec<bool> {
        let mut seen = vec![false; self.first.len()];
        seen[from as usize] = true;
        let mut stack = vec![from];
        while let Some(node) = stack.pop() {
            let mut arc = self.first[node as usize];
            while arc != NONE {
                let to = self.to[arc as usize];
                if open(arc) && !seen[to as usize] {
                    seen[to as usize] = true;
                    stack.push(to);
                }
                arc = self.next[arc as usize];
            }
        }
        seen
    }
}
