//! Groups of devices.

use slabplan_ir::attr::ReplicaGroups;

use super::mesh::{axes, mesh};
use super::scan::Scan;
use crate::frontend::proto::messages::{
    CollectiveDeviceList, Instruction, IotaGroups, MeshGroups, ReplicaGroup,
};

/// Writes `replica_groups` in its own form; `text` is that of a mesh.
pub(super) fn replica_groups(
    groups: &ReplicaGroups,
    text: impl Fn(slabplan_ir::strings::Str) -> String,
    proto: &mut Instruction,
) -> Result<(), String> {
    match groups {
        ReplicaGroups::List(groups) => {
            let groups = groups.iter().map(|g| ReplicaGroup {
                replica_ids: g.clone(),
            });
            proto.collective_device_list = Some(CollectiveDeviceList {
                replica_groups: groups.collect(),
                iota: None,
            });
        }
        ReplicaGroups::Iota {
            dims,
            reshape,
            transpose,
        } => {
            let [groups, devices] = dims[..] else {
                return Err("groups of other than two dimensions".to_owned());
            };
            let identity = 0..reshape.len() as i32;
            proto.iota_collective_device_list = Some(IotaGroups {
                num_replica_groups: groups,
                num_devices_per_group: devices,
                iota_reshape_dims: reshape.to_vec(),
                iota_transpose_perm: if transpose.is_empty() {
                    identity.collect()
                } else {
                    transpose.iter().map(|&d| d as i32).collect()
                },
            });
        }
        ReplicaGroups::Raw(raw) => {
            proto.mesh_axes_replica_group_list = Some(mesh_groups(&text(*raw))?);
        }
    }
    Ok(())
}

/// `mesh['x'=2,'y'=4], device_ids=([2,4]T(1,0)) {'y','x':(1)2}`
pub(crate) fn mesh_groups(text: &str) -> Result<MeshGroups, String> {
    let mut scan = Scan::new(text);
    let mesh = mesh(&mut scan)?;
    scan.eat(",");
    scan.expect("{")?;
    let axes = axes(&mut scan, &mesh, "}")?;
    if !scan.is_done() {
        return Err("text after the groups".to_owned());
    }
    Ok(MeshGroups {
        mesh: Some(mesh),
        axes,
    })
}
