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
/// instruction. What ends with the program is left alone.
///
/// O(n log n + ends * buffers alive at once), n live intervals.
pub(crate) fn ended(plan: &Plan, instructions: u32) -> Vec<Vec<ByteRange>> {
    let mut out = vec![Vec::new(); instructions as usize];
    for (slab, space) in plan.spaces.iter().enumerate() {
        let mut starts: Vec<(u32, Interval)> = Vec::new();
        let mut ends: Vec<(u32, Interval)> = Vec::new();
        for buffer in plan.buffers.values().filter(|b| b.space == space.space) {
            for live in &buffer.live {
                let interval = Interval {
                    start: buffer.offset.get() as usize,
                    end: (buffer.offset.get() + buffer.size.get()) as usize,
                    until: live.end,
                };
                starts.push((live.start, interval));
                ends.push((live.end, interval));
            }
        }
        starts.sort_by_key(|&(time, _)| time);
        ends.sort_by_key(|&(time, _)| time);
        let mut starts = starts.into_iter().peekable();
        let mut alive: Vec<Interval> = Vec::new();
        for group in ends.chunk_by(|a, b| a.0 == b.0) {
            let time = group[0].0;
            if time == 0 || time >= instructions {
                continue;
            }
            alive.retain(|i| i.until > time);
            while let Some((_, interval)) = starts.next_if(|&(start, _)| start <= time) {
                if interval.until > time {
                    alive.push(interval);
                }
            }
            for (_, dead) in group {
                let event = &mut out[time as usize - 1];
                subtract(dead, &alive, |start, end| {
                    event.push(ByteRange {
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

/// Bytes that are in use until some time.
#[derive(Clone, Copy, Debug)]
struct Interval {
    start: usize,
    end: usize,
    until: u32,
}

/// Calls `f` with the parts of `dead` that no interval of `alive` covers.
fn subtract(dead: &Interval, alive: &[Interval], mut f: impl FnMut(usize, usize)) {
    let mut covering: Vec<(usize, usize)> = alive
        .iter()
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
            until: 0,
        };
        let alive = |start, end| Interval {
            start,
            end,
            until: 9,
        };
        let parts = |alive: &[Interval]| {
            let mut parts = Vec::new();
            subtract(&dead, alive, |s, e| parts.push((s, e)));
            parts
        };
        assert_eq!(parts(&[]), [(10, 20)]);
        assert_eq!(parts(&[alive(0, 10), alive(20, 30)]), [(10, 20)]);
        assert_eq!(parts(&[alive(10, 20)]), []);
        assert_eq!(parts(&[alive(14, 16), alive(0, 12)]), [(12, 14), (16, 20)]);
        assert_eq!(parts(&[alive(12, 18), alive(13, 15)]), [(10, 12), (18, 20)]);
    }
}
