//! Search among all orders of some instructions for one whose steps all stay within a limit.
//!
//! Depth first over downsets (Ahn et al., "Ordering Chaos: Memory-Aware Scheduling of Irregularly Wired Neural
//! Networks for Edge Devices", 2020, do dynamic programming over the same states). Safe steps are taken without
//! alternatives, a downset from which no way led on is not entered again, and the number of
//! downsets looked at is bounded.

use rustc_hash::FxHashSet;

use super::graph::Walk;

/// How a search ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// An order of the items within the limit.
    Order(Vec<u32>),
    /// There is none.
    None,
    /// The budget was used up.
    Unknown,
}

/// Looks for an order of `items`, which can run from where `walk` stands, that needs at most `limit` bytes at each
/// step. `rank` decides between equal steps.
pub(super) fn within<'a>(
    walk: &mut impl Walk<'a>,
    items: &[u32],
    rank: &[u32],
    limit: u64,
    budget: &mut usize,
) -> Found {
    Search::new(walk, items, rank, limit).run(budget)
}

struct Search<'s, 'a, W: Walk<'a>> {
    walk: &'s mut W,
    rank: &'s [u32],
    limit: u64,
    items: usize,
    /// Predecessors among the items that have not run; `u32::MAX` for what is no item.
    waiting: Vec<u32>,
    ready: Vec<u32>,
    path: Vec<(u32, u64)>,
    hash: u128,
    dead: FxHashSet<u128>,
    _graph: std::marker::PhantomData<&'a ()>,
}

/// A downset with a choice.
struct Frame {
    /// Length of the path when the choice was met.
    depth: usize,
    /// What may come next, the best last.
    choices: Vec<u32>,
    hash: u128,
}

const NO_ITEM: u32 = u32::MAX;

impl<'s, 'a, W: Walk<'a>> Search<'s, 'a, W> {
    fn new(walk: &'s mut W, items: &[u32], rank: &'s [u32], limit: u64) -> Self {
        let mut waiting = vec![NO_ITEM; walk.graph().len() as usize];
        for &i in items {
            waiting[i as usize] = 0;
        }
        let (before, _) = walk.edges();
        for &i in items {
            let inside = before
                .row(i)
                .iter()
                .filter(|&&b| waiting[b as usize] != NO_ITEM);
            waiting[i as usize] = inside.count() as u32;
        }
        let ready = items.iter().copied().filter(|&i| waiting[i as usize] == 0);
        Self {
            ready: ready.collect(),
            rank,
            limit,
            items: items.len(),
            waiting,
            path: Vec::with_capacity(items.len()),
            hash: 0,
            dead: FxHashSet::default(),
            walk,
            _graph: std::marker::PhantomData,
        }
    }

    fn run(mut self, budget: &mut usize) -> Found {
        let mut frames: Vec<Frame> = Vec::new();
        loop {
            self.take_safe();
            if self.path.len() == self.items {
                let order = self.path.iter().map(|&(i, _)| i).collect();
                self.back_to(0);
                return Found::Order(order);
            }
            if *budget == 0 {
                self.back_to(0);
                return Found::Unknown;
            }
            // Many ready steps make a downset dear.
            *budget = budget.saturating_sub(1 + self.ready.len() / 64);
            let choices = if self.dead.contains(&self.hash) {
                Vec::new()
            } else {
                self.choices()
            };
            frames.push(Frame {
                depth: self.path.len(),
                choices,
                hash: self.hash,
            });
            loop {
                let Some(frame) = frames.last_mut() else {
                    self.back_to(0);
                    return Found::None;
                };
                let depth = frame.depth;
                if let Some(i) = frame.choices.pop() {
                    self.back_to(depth);
                    self.take(i);
                    break;
                }
                self.dead.insert(frame.hash);
                frames.pop();
            }
        }
    }

    /// Takes safe steps until there is none.
    fn take_safe(&mut self) {
        let mut k = 0;
        while let Some(&i) = self.ready.get(k) {
            let step = self.walk.step(i);
            if step.during <= self.limit && step.after <= self.walk.level() {
                self.take(i);
                k = 0;
            } else {
                k += 1;
            }
        }
    }

    /// Steps within the limit, the one that leaves the lowest level last.
    fn choices(&self) -> Vec<u32> {
        let steps = self.ready.iter().map(|&i| (self.walk.step(i), i));
        let mut within: Vec<_> = steps.filter(|(s, _)| s.during <= self.limit).collect();
        within.sort_unstable_by_key(|&(s, i)| std::cmp::Reverse((s.after, self.rank[i as usize])));
        within.into_iter().map(|(_, i)| i).collect()
    }

    fn take(&mut self, i: u32) {
        self.path.push((i, self.walk.level()));
        self.walk.run(i);
        self.hash ^= key(i);
        let at = self.ready.iter().position(|&r| r == i);
        self.ready.swap_remove(at.expect("what is taken is ready"));
        for &s in self.walk.edges().1.row(i) {
            if self.waiting[s as usize] != NO_ITEM {
                self.waiting[s as usize] -= 1;
                if self.waiting[s as usize] == 0 {
                    self.ready.push(s);
                }
            }
        }
    }

    fn back_to(&mut self, depth: usize) {
        while self.path.len() > depth {
            let Some((i, level)) = self.path.pop() else {
                return;
            };
            for &s in self.walk.edges().1.row(i) {
                if self.waiting[s as usize] != NO_ITEM {
                    if self.waiting[s as usize] == 0 {
                        let at = self.ready.iter().position(|&r| r == s);
                        self.ready.swap_remove(at.expect("a successor was ready"));
                    }
                    self.waiting[s as usize] += 1;
                }
            }
            self.ready.push(i);
            self.hash ^= key(i);
            self.walk.undo(i, level);
        }
    }
}

/// A number for each instruction; of a set, the exclusive or of its members' (Zobrist hashing).
fn key(i: u32) -> u128 {
    let half = |salt: u64| {
        let mut z = (u64::from(i) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ salt;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    };
    u128::from(half(0)) << 64 | u128::from(half(0x5851_f42d_4c95_7f2d))
}
