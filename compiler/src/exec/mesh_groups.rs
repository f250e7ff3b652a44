//! Groups of devices given as axes of a mesh: those that differ along these axes alone.

use crate::frontend::proto::messages::{AxisRef, Mesh, MeshGroups};
use crate::frontend::proto::write::mesh_groups;

use super::device_groups::iota;

/// The groups that `text` describes, in the order of the mesh, their members in the order of the axes as
/// listed (XLA's `MeshAxesReplicaGroupList`); `None` if they do not fit the mesh or the `numbers` devices.
pub(crate) fn listed(text: &str, numbers: usize) -> Option<Vec<Vec<i64>>> {
    let MeshGroups { mesh, axes } = mesh_groups(text).ok()?;
    let mesh = mesh?;
    let factors = mesh
        .axes
        .iter()
        .enumerate()
        .map(|(n, axis)| factors(n as i64, axis.size, &axes))
        .collect::<Option<Vec<_>>>()?;
    let sizes: Vec<i64> = factors.iter().flatten().map(|f| f.size).collect();
    // Where each axis begins among the factors of all.
    let first = |axis: usize| factors[..axis].iter().map(Vec::len).sum::<usize>();
    let mut grouped = Vec::new();
    for axis in &axes {
        let index = usize::try_from(axis.index).ok()?;
        for (n, factor) in factors.get(index)?.iter().enumerate() {
            if factor.is_of(axis) {
                grouped.push((first(index) + n) as i64);
            }
        }
    }
    let others = (0..sizes.len() as i64).filter(|d| !grouped.contains(d));
    let order: Vec<i64> = others.chain(grouped.iter().copied()).collect();
    let members = product(grouped.iter().map(|&d| sizes[d as usize]))?;
    let total = product(sizes.iter().copied())?;
    let places = iota(&[total / members.max(1), members], &sizes, &order, numbers)?;
    let devices = devices(&mesh, total as usize)?;
    let device = |place: i64| devices.get(place as usize).copied();
    let group = |places: Vec<i64>| places.into_iter().map(device).collect();
    places.into_iter().map(group).collect()
}

/// A part of an axis: `size` devices, of which `before` equal parts come before.
struct Factor {
    before: i64,
    size: i64,
}

impl Factor {
    fn is_of(&self, axis: &AxisRef) -> bool {
        axis.sub_axis.as_ref().is_none_or(|part| {
            part.pre_size <= self.before && self.before < part.pre_size * part.size
        })
    }
}

/// Axis `number` cut where the parts of it begin and end that are named in `axes`.
fn factors(number: i64, size: i64, axes: &[AxisRef]) -> Option<Vec<Factor>> {
    let parts = axes.iter().filter(|a| a.index == number);
    let parts = parts.filter_map(|a| a.sub_axis.as_ref());
    let mut cuts = vec![1, size];
    for part in parts {
        cuts.extend([part.pre_size, part.pre_size.checked_mul(part.size)?]);
    }
    cuts.sort_unstable();
    cuts.dedup();
    let divides = |w: &[i64]| w[0] > 0 && w[1] % w[0] == 0;
    let fits = cuts.windows(2).all(divides) && cuts.last() == Some(&size);
    let factor = |w: &[i64]| Factor {
        before: w[0],
        size: w[1] / w[0],
    };
    fits.then(|| cuts.windows(2).map(factor).collect())
}

/// The devices of a mesh in its order.
fn devices(mesh: &Mesh, total: usize) -> Option<Vec<i64>> {
    let devices = match &mesh.device_order {
        Some(order) => {
            let transpose: Vec<i64> = order.transpose_perm.iter().map(|&d| d.into()).collect();
            iota(&[1, total as i64], &order.reshape_dims, &transpose, total)?.concat()
        }
        None if mesh.device_ids.is_empty() => (0..total as i64).collect(),
        None => mesh.device_ids.clone(),
    };
    (devices.len() == total).then_some(devices)
}

fn product(mut sizes: impl Iterator<Item = i64>) -> Option<i64> {
    sizes.try_fold(1i64, i64::checked_mul)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand, from the definition: devices as a row-major array of the mesh's sizes.
    #[test]
    fn devices_that_differ_along_the_axes_alone() {
        let groups = |text: &str, numbers| listed(text, numbers).unwrap();
        assert_eq!(groups("mesh['a'=2,'b'=2] {'b'}", 4), [[0, 1], [2, 3]]);
        assert_eq!(groups("mesh['a'=2,'b'=2] {'a'}", 4), [[0, 2], [1, 3]]);
        assert_eq!(groups("mesh['a'=2,'b'=2] {'a','b'}", 4), [[0, 1, 2, 3]]);
        assert_eq!(groups("mesh['a'=2,'b'=2] {'b','a'}", 4), [[0, 2, 1, 3]]);
        assert_eq!(
            groups("mesh['a'=2,'b'=2], device_ids=(0,2,1,3) {'b'}", 4),
            [[0, 2], [1, 3]]
        );
        // 0 2 1 3 again, as the transposed iota.
        assert_eq!(
            groups("mesh['a'=4], device_ids=([2,2]T(1,0)) {'a':(2)2}", 4),
            [[0, 2], [1, 3]]
        );
        // An axis of 8 as 2 x 2 x 2, its outer and inner thirds.
        assert_eq!(
            groups("mesh['a'=8] {'a':(1)2,'a':(4)2}", 8),
            [[0, 1, 4, 5], [2, 3, 6, 7]]
        );
        assert_eq!(groups("mesh['a'=3] {}", 3), [[0], [1], [2]]);
    }

    #[test]
    fn meshes_that_do_not_fit_are_refused() {
        for text in [
            "mesh['a'=4] {'a'}",
            "mesh['a'=2] {'b'}",
            "mesh['a'=2] {'a':(3)2}",
            "mesh['a'=0] {'a'}",
            "mesh['a'=2], device_ids=(0) {'a'}",
            "mesh['a'=9223372036854775807,'b'=9] {'b'}",
        ] {
            assert_eq!(listed(text, 2), None, "{text}");
        }
    }
}
