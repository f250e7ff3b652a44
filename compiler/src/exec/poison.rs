//! Bytes that hold no live value, filled with a pattern that would spoil any result.

use slabplan_ir::plan::Plan;

use crate::exec::program::ByteRange;

/// The pattern: a signalling NaN as `f32` (`0x7FA57FA5`) and as `bf16` (`0x7FA5`), a NaN as
/// `f16`, neither 0 nor 1 as `pred`, a large number as any integer.
const PATTERN: [u8; 2] = [0xA5, 0x7F];

/// Fills `bytes`, which begin `at` bytes into their slab.
pub(crate) fn fill(bytes: &mut [u8], at: usize) {
    let start = at % 2;
    let (head, rest) = bytes.split_at_mut(start.min(bytes.len()));
    head.fill(PATTERN[1]);
    let mut pairs = rest.chunks_exact_mut(2);
    for pair in &mut pairs {
        pair.copy_from_slice(&PATTERN);
    }
    pairs.into_remainder().fill(PATTERN[0]);
}

/// For every number of program order, the bytes of which no buffer is live any more after that
/// instruction, wherever the run goes on from it: `jumps` are the ways that lead elsewhere than to
/// the next number, ascending. What ends with the program is left alone.
///
/// O(n log n + ends * buffers alive at once + jumps * n), n live intervals.
pub(crate) fn ended(plan: &Plan, instructions: u32, jumps: &[(u32, u32)]) -> Vec<Vec<ByteRange>> {
    let mut out = vec![Vec::new(); instructions as usize];
    for (slab, space) in plan.spaces.iter().enumerate() {
        let mut by_start: Vec<Interval> = plan
            .buffers
            .values()
            .filter(|b| b.space == space.space)
            .flat_map(|buffer| {
                buffer.live.iter().map(|live| Interval {
                    start: buffer.offset.get() as usize,
                    end: (buffer.offset.get() + buffer.size.get()) as usize,
                    from: live.start,
                    until: live.end,
                })
            })
            .collect();
        let mut by_end = by_start.clone();
        by_start.sort_by_key(|i| i.from);
        by_end.sort_by_key(|i| i.until);
        let mut starts = by_start.iter().peekable();
        let mut alive: Vec<Interval> = Vec::new();
        for group in by_end.chunk_by(|a, b| a.until == b.until) {
            let time = group[0].until;
            if time == 0 || time >= instructions {
                continue;
            }
            alive.retain(|i| i.until > time);
            while let Some(&interval) = starts.next_if(|i| i.from <= time) {
                if interval.until > time {
                    alive.push(interval);
                }
            }
            let at = jumps.partition_point(|j| j.0 < time - 1);
            let elsewhere: Vec<u32> = jumps[at..]
                .iter()
                .take_while(|j| j.0 == time - 1)
                .map(|j| j.1)
                .collect();
            let live_there =
                |i: &&Interval| elsewhere.iter().any(|&to| i.from <= to && to < i.until);
            let kept: Vec<Interval> = if elsewhere.is_empty() {
                Vec::new()
            } else {
                by_start.iter().filter(live_there).copied().collect()
            };
            for dead in group {
                subtract(dead, alive.iter().chain(&kept), |start, end| {
                    out[time as usize - 1].push(ByteRange {
                        slab: slab as u32,
                        start,
                        end,
                    });
                });
            }
        }
    }
    out
}

/// Bytes that are in use during `from..until` of program order.
#[derive(Clone, Copy, Debug)]
struct Interval {
    start: usize,
    end: usize,
    from: u32,
    until: u32,
}

/// Calls `f` with the parts of `dead` that no interval of `alive` covers.
fn subtract<'a>(
    dead: &Interval,
    alive: impl Iterator<Item = &'a Interval>,
    mut f: impl FnMut(usize, usize),
) {
    let mut covering: Vec<(usize, usize)> = alive
        .filter(|a| a.start < dead.end && dead.start < a.end)
        .map(|a| (a.start, a.end))
        .collect();
    covering.sort_unstable();
    let mut at = dead.start;
    for (start, end) in covering {
        if at < start {
            f(at, start);
        }
        at = at.max(end);
    }
    if at < dead.end {
        f(at, dead.end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pattern_is_a_signalling_nan_at_any_offset() {
        let mut bytes = vec![0; 11];
        fill(&mut bytes[1..], 1);
        let word = u32::from_le_bytes(bytes[4..8].try_into().unwrap());
        assert_eq!(word, 0x7FA5_7FA5);
        assert!(f32::from_bits(word).is_nan());
        assert_eq!(word & 0x0040_0000, 0, "the quiet bit");
        assert_eq!(
            bytes,
            [
                0, 0x7F, 0xA5, 0x7F, 0xA5, 0x7F, 0xA5, 0x7F, 0xA5, 0x7F, 0xA5
            ]
        );
    }

    #[test]
    fn leaves_what_is_alive_alone() {
        let dead = Interval {
            start: 10,
            end: 20,
            from: 0,
            until: 0,
        };
        let alive = |start, end| Interval {
            start,
            end,
            from: 0,
            until: 9,
        };
        let parts = |alive: &[Interval]| {
            let mut parts = Vec::new();
            subtract(&dead, alive.iter(), |s, e| parts.push((s, e)));
            parts
        };
        assert_eq!(parts(&[]), [(10, 20)]);
        assert_eq!(parts(&[alive(0, 10), alive(20, 30)]), [(10, 20)]);
        assert_eq!(parts(&[alive(10, 20)]), []);
        assert_eq!(parts(&[alive(14, 16), alive(0, 12)]), [(12, 14), (16, 20)]);
        assert_eq!(parts(&[alive(12, 18), alive(13, 15)]), [(10, 12), (18, 20)]);
    }
}
