//! Meshes and their axes.

use super::scan::{Scan, text};
use crate::frontend::proto::messages::{AxisRef, DeviceOrder, Mesh, MeshAxis, SubAxis};

/// `mesh['x'=2,'y'=4], device_ids=([2,4]T(1,0))` or `maximal_mesh[device_id=5]`.
pub(super) fn mesh(scan: &mut Scan<'_>) -> Result<Mesh, String> {
    let mut mesh = Mesh::default();
    if scan.eat("maximal_mesh[") {
        scan.expect("device_id")?;
        scan.expect("=")?;
        mesh.device_ids = vec![scan.int()?];
        scan.expect("]")?;
        return Ok(mesh);
    }
    scan.expect("mesh")?;
    scan.expect("[")?;
    while !scan.eat("]") {
        if !mesh.axes.is_empty() {
            scan.expect(",")?;
        }
        let name = axis_name(scan)?;
        scan.expect("=")?;
        let size = scan.int()?;
        mesh.axes.push(MeshAxis { name, size });
    }
    let before = scan.clone();
    if scan.eat(",") && scan.eat("device_ids=(") {
        device_ids(scan, &mut mesh)?;
    } else {
        *scan = before;
    }
    Ok(mesh)
}

/// `[2,4]T(1,0))`, or devices one by one.
fn device_ids(scan: &mut Scan<'_>, mesh: &mut Mesh) -> Result<(), String> {
    if !scan.eat("[") {
        mesh.device_ids = scan.ints(")")?;
        return Ok(());
    }
    let reshape_dims: Vec<i64> = scan.ints("]")?;
    let transpose_perm = if scan.eat("T(") {
        scan.ints(")")?
    } else {
        (0..reshape_dims.len() as i32).collect()
    };
    mesh.device_order = Some(DeviceOrder {
        reshape_dims,
        transpose_perm,
    });
    scan.expect(")")
}

/// Axes of `mesh` with commas between, up to `close`, which is taken.
pub(super) fn axes(scan: &mut Scan<'_>, mesh: &Mesh, close: &str) -> Result<Vec<AxisRef>, String> {
    let mut axes = Vec::new();
    while !scan.eat(close) {
        if !axes.is_empty() {
            scan.expect(",")?;
        }
        axes.push(axis(scan, mesh)?);
    }
    Ok(axes)
}

/// `'x'`, or a part of an axis: `'x':(2)4`.
pub(super) fn axis(scan: &mut Scan<'_>, mesh: &Mesh) -> Result<AxisRef, String> {
    let name = axis_name(scan)?;
    let index = mesh.axes.iter().position(|a| a.name == name);
    let index = index.ok_or_else(|| format!("the mesh has no axis '{name}'"))?;
    let sub_axis = if scan.eat(":(") {
        let pre_size = scan.int()?;
        scan.expect(")")?;
        let size = scan.int()?;
        Some(SubAxis { pre_size, size })
    } else {
        None
    };
    Ok(AxisRef {
        index: index as i64,
        sub_axis,
    })
}

/// A name in quotes; older texts have none.
fn axis_name(scan: &mut Scan<'_>) -> Result<String, String> {
    if matches!(scan.peek(), Some('"' | '\'')) {
        return text(scan.string()?);
    }
    match scan.word() {
        "" => Err("expected an axis".to_owned()),
        word => Ok(word.to_owned()),
    }
}
