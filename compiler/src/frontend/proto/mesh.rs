//! Meshes of protos as HLO text.

use std::fmt::Write;

use super::messages::{AxisRef, Mesh};
use super::shape::join;
use super::text::escape;

/// `mesh['x'=2,'y'=4], device_ids=([2,4]T(1,0))`, or `maximal_mesh[device_id=5]`.
pub(super) fn mesh_text(mesh: &Mesh) -> Result<String, String> {
    if let ([], &[device]) = (&mesh.axes[..], &mesh.device_ids[..]) {
        return Ok(format!("maximal_mesh[device_id={device}]"));
    }
    let axes: Vec<String> = mesh
        .axes
        .iter()
        .map(|a| format!("'{}'={}", escape(a.name.as_bytes()), a.size))
        .collect();
    let mut text = format!("mesh[{}]", axes.join(","));
    match (&mesh.device_order, mesh.device_ids.is_empty()) {
        (None, true) => {}
        (None, false) => {
            let _ = write!(text, ", device_ids=({})", join(&mesh.device_ids));
        }
        (Some(order), true) => {
            let order = iota_order(&order.reshape_dims, &order.transpose_perm);
            let _ = write!(text, ", device_ids=({order})");
        }
        (Some(_), false) => {
            return Err("a mesh with a list of devices and an order of them".to_owned());
        }
    }
    Ok(text)
}

/// `'x'`, or a part of an axis: `'x':(2)4`.
pub(super) fn axis_text(mesh: &Mesh, axis: &AxisRef) -> Result<String, String> {
    let found = usize::try_from(axis.index)
        .ok()
        .and_then(|n| mesh.axes.get(n));
    let found = found.ok_or_else(|| format!("the mesh has no axis {}", axis.index))?;
    let name = escape(found.name.as_bytes());
    Ok(match &axis.sub_axis {
        None => format!("'{name}'"),
        Some(part) => format!("'{name}':({}){}", part.pre_size, part.size),
    })
}

/// `[4,2]T(1,0)`
pub(super) fn iota_order(dims: &[i64], transpose: &[i32]) -> String {
    let transpose = if transpose.iter().copied().eq(0..transpose.len() as i32) {
        String::new()
    } else {
        format!("T({})", join(transpose))
    };
    format!("[{}]{transpose}", join(dims))
}
