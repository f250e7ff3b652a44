//! Orders of dimensions worth trying.

use smallvec::SmallVec;

use slabplan_ir::{ArrayShape, Target};

use super::tiles::{Order, row_major, tiled_bytes};

/// Of arrays with more dimensions only this many are tried as the two minor ones: the largest.
const MAX_MINOR: usize = 8;

/// Row-major first, then orders by the bytes of all `arrays` (each with its number) together, at
/// most `most` in all.
///
/// The two minor dimensions decide the padding; the others keep their order. O(arrays · rank²).
pub(super) fn cheapest(arrays: &[(ArrayShape, u64)], target: &Target, most: usize) -> Vec<Order> {
    let rank = arrays[0].0.rank();
    let total = |order: &Order| {
        arrays.iter().fold(0u64, |sum, (a, n)| {
            sum.saturating_add(tiled_bytes(a, order, target).saturating_mul(*n))
        })
    };
    let mut ranked: Vec<(u64, usize, Order)> = minor_pairs(&arrays[0].0)
        .map(|(first, second)| {
            let rest = (0..rank as u32)
                .rev()
                .filter(|&d| d != first && d != second);
            let order: Order = [first, second].into_iter().chain(rest).collect();
            (total(&order), inversions(&order), order)
        })
        .collect();
    ranked.sort();
    let mut orders = vec![row_major(rank)];
    for (_, _, order) in ranked {
        if orders.len() >= most {
            break;
        }
        add(&mut orders, order);
    }
    orders
}

/// Padded bytes of `array` in its best order of dimensions, tiled as `target` tiles it.
pub fn least_bytes(array: &ArrayShape, target: &Target) -> u64 {
    best_order(array, target).1
}

/// The order of dimensions of least padded bytes, and these; row-major where that is as good.
pub fn best_order(array: &ArrayShape, target: &Target) -> (Order, u64) {
    let sized = |order: Order| {
        let bytes = tiled_bytes(array, &order, target);
        (order, bytes)
    };
    let tried = cheapest(&[(array.clone(), 1)], target, 2)
        .into_iter()
        .map(sized);
    let best = tried.min_by_key(|(_, bytes)| *bytes);
    best.unwrap_or_else(|| sized(row_major(array.rank())))
}

/// Adds `order` if it is new.
pub(super) fn add(orders: &mut Vec<Order>, order: Order) {
    if !orders.contains(&order) {
        orders.push(order);
    }
}

/// All pairs of different dimensions to be the two minor ones.
fn minor_pairs(array: &ArrayShape) -> impl Iterator<Item = (u32, u32)> {
    let mut dims: SmallVec<[u32; 8]> = (0..array.rank() as u32).collect();
    dims.sort_by_key(|&d| std::cmp::Reverse(array.dims[d as usize]));
    dims.truncate(MAX_MINOR);
    dims.clone()
        .into_iter()
        .flat_map(move |a| dims.clone().into_iter().map(move |b| (a, b)))
        .filter(|(a, b)| a != b)
}

/// How far an order is from row-major: pairs of dimensions the other way round.
fn inversions(order: &[u32]) -> usize {
    (0..order.len())
        .map(|i| order[i + 1..].iter().filter(|&&d| d > order[i]).count())
        .sum()
}

/// The order of a transpose's result that makes it a view of an operand in `order`.
pub(super) fn through_transpose(order: &[u32], permutation: &[i64]) -> Option<Order> {
    order
        .iter()
        .map(|&d| {
            let place = permutation.iter().position(|&p| p == i64::from(d))?;
            Some(place as u32)
        })
        .collect()
}

/// The order of a transpose's operand that makes a result in `order` a view of it.
pub(super) fn back_through_transpose(order: &[u32], permutation: &[i64]) -> Option<Order> {
    order
        .iter()
        .map(|&d| u32::try_from(*permutation.get(d as usize)?).ok())
        .collect()
}

/// The order of the array reshaped to `to` that keeps the order of elements in memory, where
/// there is one: dimensions that merge must be neighbours in memory. Dimensions of one go outside.
pub(super) fn through_reshape(from: &[u64], to: &[u64], order: &[u32]) -> Option<Order> {
    let groups = common_factors(from, to)?;
    let mut result: Order = SmallVec::new();
    let mut dims = order.iter().copied().filter(|&d| from[d as usize] != 1);
    while let Some(first) = dims.next() {
        let (own, other) = groups.iter().find(|(own, _)| own.contains(&first))?;
        let mut expected = own.iter().rev();
        if expected.next() != Some(&first) {
            return None;
        }
        for &next in expected {
            if dims.next() != Some(next) {
                return None;
            }
        }
        result.extend(other.iter().rev().copied());
    }
    result.extend((0..to.len() as u32).rev().filter(|&d| to[d as usize] == 1));
    (result.len() == to.len()).then_some(result)
}

type Group = (SmallVec<[u32; 4]>, SmallVec<[u32; 4]>);

/// The smallest runs of dimensions of equal product, dimensions of one left out.
fn common_factors(from: &[u64], to: &[u64]) -> Option<Vec<Group>> {
    let mut groups = Vec::new();
    let larger = |dims: &[u64]| -> Vec<u32> {
        (0..dims.len() as u32)
            .filter(|&d| dims[d as usize] != 1)
            .collect()
    };
    let (a, b) = (larger(from), larger(to));
    let (mut i, mut j) = (0, 0);
    while i < a.len() && j < b.len() {
        let mut group: Group = (SmallVec::new(), SmallVec::new());
        let (mut x, mut y) = (1u64, 1u64);
        loop {
            if x <= y {
                let &d = a.get(i)?;
                x = x.checked_mul(from[d as usize])?;
                group.0.push(d);
                i += 1;
            } else {
                let &d = b.get(j)?;
                y = y.checked_mul(to[d as usize])?;
                group.1.push(d);
                j += 1;
            }
            if x == y {
                break;
            }
        }
        groups.push(group);
    }
    (i == a.len() && j == b.len()).then_some(groups)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(dims: &[u32]) -> Order {
        dims.into()
    }

    #[test]
    fn orders_follow_transposes_both_ways() {
        // Result dimension 0 is operand dimension 2, 1 is 0, 2 is 1.
        let p = [2, 0, 1];
        let there = through_transpose(&[2, 1, 0], &p).unwrap();
        assert_eq!(there, order(&[0, 2, 1]));
        assert_eq!(
            back_through_transpose(&there, &p).unwrap(),
            order(&[2, 1, 0])
        );
    }

    #[test]
    fn orders_follow_reshapes() {
        let through = |from: &[u64], to: &[u64], o: &[u32]| through_reshape(from, to, o);
        assert_eq!(
            through(&[6, 8], &[2, 3, 8], &[1, 0]),
            Some(order(&[2, 1, 0]))
        );
        assert_eq!(
            through(&[6, 8], &[2, 3, 8], &[0, 1]),
            Some(order(&[1, 0, 2]))
        );
        assert_eq!(
            through(&[2, 3, 8], &[6, 8], &[1, 0, 2]),
            Some(order(&[0, 1]))
        );
        // The merged dimensions are not neighbours, or the wrong way round.
        assert_eq!(through(&[2, 3, 8], &[6, 8], &[1, 2, 0]), None);
        assert_eq!(through(&[2, 3, 8], &[6, 8], &[0, 1, 2]), None);
        assert_eq!(
            through(&[5, 1, 7], &[5, 7, 1], &[0, 2, 1]),
            Some(order(&[0, 1, 2]))
        );
        assert_eq!(through(&[4, 6], &[6, 4], &[1, 0]), Some(order(&[1, 0])));
    }

    #[test]
    fn the_two_minor_dimensions_are_chosen_by_bytes() {
        let target: Target = crate::layouts::tests::target();
        let array = ArrayShape::new(slabplan_ir::ElementType::S32, &[8_388_608, 8, 4]);
        let found = cheapest(&[(array, 1)], &target, 3);
        assert_eq!(found[0], order(&[2, 1, 0]));
        // Lanes along the long dimension: no padding at all, as {0,2,1:T(4,128)} or {0,1,2:T(8,128)}.
        assert!(found[1..].iter().all(|o| o[0] == 0));
    }
}
