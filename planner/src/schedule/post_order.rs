//! Depth first from the results: an instruction right after the last of what it needs.

use super::region::Region;

/// Operands in their own order. O(precedences).
pub(super) fn order(region: &Region) -> Vec<u32> {
    depth_first(region, |_| {})
}

/// Depth-first post-order over `region.before`, each row first arranged by `arrange`.
///
/// What nothing needs is visited first and the computation's result, the last such instruction of
/// the text, last, as XLA does.
pub(super) fn depth_first(region: &Region, arrange: impl Fn(&mut [u32])) -> Vec<u32> {
    let n = region.len();
    let mut order = Vec::with_capacity(n as usize);
    let mut entered = vec![false; n as usize];
    // Rows of the instructions on the path, behind one another; each frame's rest begins at `next`.
    let mut rows: Vec<u32> = Vec::new();
    let mut frames: Vec<(u32, usize, usize)> = Vec::new();
    for sink in (0..n).filter(|&i| region.after.row(i).is_empty()) {
        let mut enter = Some(sink);
        loop {
            if let Some(instr) = enter.take() {
                entered[instr as usize] = true;
                let start = rows.len();
                rows.extend_from_slice(region.before.row(instr));
                arrange(&mut rows[start..]);
                frames.push((instr, start, start));
            }
            let Some((instr, start, next)) = frames.last_mut() else {
                break;
            };
            if *next == rows.len() {
                rows.truncate(*start);
                order.push(*instr);
                frames.pop();
            } else {
                let child = rows[*next];
                *next += 1;
                if !entered[child as usize] {
                    enter = Some(child);
                }
            }
        }
    }
    order
}
