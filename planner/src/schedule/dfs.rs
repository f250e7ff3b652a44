//! Depth first, the operand with the most users and bytes behind it first.
//!
//! XLA's `DFSMemoryScheduler`: what is shared by many stays live long in any case, so it comes
//! first; of the rest, what needs much memory to make comes before other results are held.

use super::post_order::depth_first;
use super::region::Region;

/// An order that keeps `region.before`. O(E log E) in the precedences.
pub(super) fn order(region: &Region) -> Vec<u32> {
    let n = region.len() as usize;
    let mut extra_users = vec![0u64; n];
    let mut bytes = vec![0u64; n];
    // Both count along every path, so they grow fast; beyond these they say nothing more.
    let (most_users, mut most_bytes) = (n as u64, 0u64);
    for i in 0..region.len() {
        let own = region.defined_bytes(i);
        most_bytes = most_bytes.saturating_add(own);
        let users = region.after.row(i).len() as u64;
        let mut sums = (users.saturating_sub(1), own);
        for &b in region.before.row(i) {
            sums.0 = sums.0.saturating_add(extra_users[b as usize]);
            sums.1 = sums.1.saturating_add(bytes[b as usize]);
        }
        extra_users[i as usize] = sums.0.min(most_users);
        bytes[i as usize] = sums.1.min(most_bytes);
    }
    depth_first(region, |row| {
        row.sort_by_key(|&i| {
            std::cmp::Reverse((
                extra_users[i as usize],
                bytes[i as usize],
                std::cmp::Reverse(i),
            ))
        });
    })
}
