//! Most conflicts first, then largest: the order of TVM's USMP.

use super::super::model::Model;
use super::super::radix;

/// All units. A unit's conflicts are those it overlaps in time, holes aside. O(n + sections): all but those that end
/// before it begins and those that begin after it ends.
pub(in super::super) fn order(model: &Model) -> Vec<u32> {
    let hull = |unit: u32| {
        let parts = model.parts(unit);
        let end = parts.iter().map(|it| it.end).max().unwrap_or(0);
        (parts.first().map_or(0, |it| it.begin), end)
    };
    let mut list: Vec<u32> = (0..model.units.len() as u32).collect();
    // By section: how many end at or before its start, and how many begin before it.
    let sections = model.sections as usize;
    let (mut ended, mut begun) = (vec![0u32; sections + 1], vec![0u32; sections + 2]);
    for &unit in &list {
        let (begin, end) = hull(unit);
        ended[end as usize] += 1;
        begun[begin as usize + 1] += 1;
    }
    for section in 1..=sections {
        ended[section] += ended[section - 1];
        begun[section] += begun[section - 1];
    }
    radix::sort_descending(&mut list, |unit| model.units[unit as usize].height);
    radix::sort_descending(&mut list, |unit| {
        let (begin, end) = hull(unit);
        u64::from(begun[end as usize].saturating_sub(ended[begin as usize]))
    });
    list
}

#[cfg(test)]
mod tests {
    use super::order;
    use crate::pack::model::Model;
    use crate::pack::problem::{Buffer, Problem};

    #[test]
    fn counts_who_overlaps_whom() {
        // The first meets the three others; the second and third only it; the last one it and the large one.
        let lives = [(0, 9, 1), (0, 2, 1), (3, 5, 1), (6, 9, 1), (7, 8, 5)];
        let buffers = (0..)
            .zip(lives)
            .map(|(id, (start, end, size))| Buffer::new(id, start, end, size));
        let problem = Problem {
            buffers: buffers.collect(),
            ..Problem::default()
        };
        let model = Model::new(&problem, &[]).expect("a sound problem");
        let sizes = |unit: &u32| model.units[*unit as usize].height;
        let durations = |unit: &u32| model.units[*unit as usize].duration;
        let list = order(&model);
        // Conflicts: 4; then 2 and 2 (the larger first); then 1 and 1.
        assert_eq!(list.iter().map(sizes).collect::<Vec<_>>(), [1, 5, 1, 1, 1]);
        assert_eq!(durations(&list[0]), model.sections);
    }
}
