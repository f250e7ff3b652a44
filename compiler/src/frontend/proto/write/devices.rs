//! Groups of devices.

use slabplan_ir::attr::ReplicaGroups;

use super::scan::Scan;
use crate::frontend::proto::messages::{
    AxisRef, CollectiveDeviceList, DeviceOrder, Instruction, IotaGroups, Mesh, MeshAxis,
    MeshGroups, ReplicaGroup,
};

/// Writes `replica_groups` in its own form; `text` is that of a mesh.
pub(super) fn replica_groups(
    groups: &ReplicaGroups,
    text: impl Fn(slabplan_ir::strings::Str) -> String,
    proto: &mut Instruction,
) -> Result<(), String> {
    let list = match groups {
        ReplicaGroups::List(groups) => CollectiveDeviceList {
            replica_groups: groups
                .iter()
                .map(|g| ReplicaGroup {
                    replica_ids: g.clone(),
                })
                .collect(),
            iota: None,
        },
        ReplicaGroups::Iota {
            dims,
            reshape,
            transpose,
        } => {
            let [groups, devices] = dims[..] else {
                return Err("groups of other than two dimensions".to_owned());
            };
            let identity = 0..reshape.len() as i32;
            CollectiveDeviceList {
                replica_groups: Vec::new(),
                iota: Some(IotaGroups {
                    num_replica_groups: groups,
                    num_devices_per_group: devices,
                    iota_reshape_dims: reshape.to_vec(),
                    iota_transpose_perm: if transpose.is_empty() {
                        identity.collect()
                    } else {
                        transpose.iter().map(|&d| d as i32).collect()
                    },
                }),
            }
        }
        ReplicaGroups::Raw(raw) => {
            proto.mesh_axes_replica_group_list = Some(mesh_groups(&text(*raw))?);
            return Ok(());
        }
    };
    proto.collective_device_list = Some(list);
    Ok(())
}

/// `mesh['x'=2,'y'=4], device_ids=([2,4]T(1,0)) {'y'}`
fn mesh_groups(text: &str) -> Result<MeshGroups, String> {
    let mut scan = Scan::new(text);
    let mut mesh = Mesh::default();
    scan.expect("mesh")?;
    scan.expect("[")?;
    while !scan.eat("]") {
        scan.eat(",");
        let name = axis_name(&mut scan)?;
        scan.expect("=")?;
        mesh.axes.push(MeshAxis {
            name,
            size: scan.int()?,
        });
    }
    scan.eat(",");
    if scan.eat("device_ids=(") {
        scan.expect("[")?;
        let reshape_dims = scan.ints("]")?;
        let transpose_perm = if scan.eat("T(") {
            scan.ints(")")?
        } else {
            Vec::new()
        };
        scan.expect(")")?;
        mesh.device_order = Some(DeviceOrder {
            reshape_dims,
            transpose_perm,
        });
    }
    let mut axes = Vec::new();
    scan.expect("{")?;
    while !scan.eat("}") {
        scan.eat(",");
        let name = axis_name(&mut scan)?;
        let index = mesh.axes.iter().position(|a| a.name == name);
        let index = index.ok_or_else(|| format!("the mesh has no axis '{name}'"))?;
        axes.push(AxisRef {
            index: index as i64,
            sub_axis: None,
        });
    }
    if !scan.is_done() {
        return Err("parts of axes have no place in the proto that is written".to_owned());
    }
    Ok(MeshGroups {
        mesh: Some(mesh),
        axes,
    })
}

fn axis_name(scan: &mut Scan<'_>) -> Result<String, String> {
    String::from_utf8(scan.string()?).map_err(|_| "an axis that is not UTF-8".to_owned())
}
