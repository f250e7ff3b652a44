//! Groups of devices that a collective runs in, as HLO text.

use super::attributes::Writer;
use super::mesh::{axis_text, iota_order, mesh_text};
use super::messages::{CollectiveDeviceList, Instruction, IotaGroups, MeshGroups, ReplicaGroup};
use super::shape::join;

/// `, replica_groups=...` in the form that the proto has; absent where it has none.
///
/// # Errors
/// A mesh with parts that the text form written here does not have.
pub(super) fn write_replica_groups(w: &mut Writer<'_>, i: &Instruction) -> Result<(), String> {
    let text = if let Some(mesh) = &i.mesh_axes_replica_group_list {
        mesh_groups(mesh)?
    } else if let Some(iota) = &i.iota_collective_device_list {
        iota_groups(iota)
    } else if let Some(CollectiveDeviceList {
        replica_groups,
        iota,
    }) = &i.collective_device_list
    {
        match iota {
            Some(iota) => iota_groups(iota),
            None => listed_groups(replica_groups),
        }
    } else {
        listed_groups(&i.replica_groups)
    };
    if !text.is_empty() {
        w.attr("replica_groups", text);
    }
    Ok(())
}

/// `{{0,1},{2,3}}`
fn listed_groups(groups: &[ReplicaGroup]) -> String {
    if groups.is_empty() {
        return String::new();
    }
    let groups: Vec<String> = groups
        .iter()
        .map(|g| format!("{{{}}}", join(&g.replica_ids)))
        .collect();
    format!("{{{}}}", groups.join(","))
}

/// `[2,4]<=[4,2]T(1,0)`
fn iota_groups(iota: &IotaGroups) -> String {
    format!(
        "[{},{}]<={}",
        iota.num_replica_groups,
        iota.num_devices_per_group,
        iota_order(&iota.iota_reshape_dims, &iota.iota_transpose_perm)
    )
}

/// `mesh['x'=2,'y'=4], device_ids=([2,4]T(1,0)) {'y','x':(1)2}`
fn mesh_groups(groups: &MeshGroups) -> Result<String, String> {
    let mesh = groups.mesh.as_ref().ok_or("replica groups of no mesh")?;
    let axes = groups.axes.iter().map(|a| axis_text(mesh, a));
    let axes = axes.collect::<Result<Vec<_>, _>>()?;
    Ok(format!("{} {{{}}}", mesh_text(mesh)?, axes.join(",")))
}

#[cfg(test)]
mod tests {
    use super::super::messages::{AxisRef, DeviceOrder, Mesh, MeshAxis, SubAxis};
    use super::*;

    fn mesh(sizes: &[i64], device_order: Option<DeviceOrder>, axes: &[i64]) -> MeshGroups {
        let named = |(n, &size): (usize, &i64)| MeshAxis {
            name: format!("axis_{n}"),
            size,
        };
        MeshGroups {
            mesh: Some(Mesh {
                axes: sizes.iter().enumerate().map(named).collect(),
                device_ids: Vec::new(),
                device_order,
            }),
            axes: axes
                .iter()
                .map(|&index| AxisRef {
                    index,
                    sub_axis: None,
                })
                .collect(),
        }
    }

    /// The texts are those that XLA dumps for the same protos.
    #[test]
    fn mesh_as_xla_prints_it() {
        assert_eq!(
            mesh_groups(&mesh(&[2, 1, 4], None, &[0, 1])).unwrap(),
            "mesh['axis_0'=2,'axis_1'=1,'axis_2'=4] {'axis_0','axis_1'}"
        );
        let order = DeviceOrder {
            reshape_dims: vec![2, 4],
            transpose_perm: vec![1, 0],
        };
        assert_eq!(
            mesh_groups(&mesh(&[4, 1, 2], Some(order), &[0])).unwrap(),
            "mesh['axis_0'=4,'axis_1'=1,'axis_2'=2], device_ids=([2,4]T(1,0)) {'axis_0'}"
        );
    }

    #[test]
    fn parts_of_axes_and_listed_devices() {
        let mut part = mesh(&[2, 4], None, &[1, 0]);
        part.axes[0].sub_axis = Some(SubAxis {
            pre_size: 2,
            size: 2,
        });
        part.mesh.as_mut().unwrap().device_ids = vec![0, 2, 1, 3, 4, 5, 6, 7];
        assert_eq!(
            mesh_groups(&part).unwrap(),
            "mesh['axis_0'=2,'axis_1'=4], device_ids=(0,2,1,3,4,5,6,7) {'axis_1':(2)2,'axis_0'}"
        );
    }

    #[test]
    fn what_has_no_text_form_is_refused() {
        assert!(mesh_groups(&mesh(&[2, 4], None, &[2])).is_err());
        assert!(mesh_groups(&mesh(&[2, 4], None, &[-1])).is_err());
        let mut both = mesh(&[2], Some(DeviceOrder::default()), &[0]);
        both.mesh.as_mut().unwrap().device_ids = vec![1, 0];
        assert!(mesh_groups(&both).is_err());
        assert!(mesh_groups(&MeshGroups::default()).is_err());
    }
}
