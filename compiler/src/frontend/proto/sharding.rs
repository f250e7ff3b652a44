//! Shardings of protos as HLO text.

use std::fmt::Write;

use super::attributes::write_metadata_fields;
use super::mesh::{axis_text, mesh_text};
use super::messages::{AxisRef, Metadata, NamedSharding, Sharding};
use super::shape::join;

/// Numbers of `xla.OpSharding.Type`.
pub(super) const REPLICATED: i32 = 0;
pub(super) const MAXIMAL: i32 = 1;
pub(super) const TUPLE: i32 = 2;
pub(super) const OTHER: i32 = 3;
pub(super) const MANUAL: i32 = 4;

/// The words of the types, by number; a tuple's and a tiled one's have none.
pub(super) const KINDS: [&str; 7] = [
    "replicated",
    "maximal",
    "",
    "",
    "manual",
    "unknown",
    "unreduced",
];

/// Appends a sharding in braces.
///
/// # Errors
/// A type without a number, or an axis that the mesh does not have.
pub(super) fn write_sharding(out: &mut String, s: &Sharding) -> Result<(), String> {
    if let Some(named) = &s.named {
        out.push_str(&named_sharding(named)?);
        return Ok(());
    }
    out.push('{');
    if s.kind == TUPLE {
        for (i, element) in s.tuple_shardings.iter().enumerate() {
            if i > 0 {
                out.push_str(", ");
            }
            if element.kind == TUPLE {
                return Err("a sharding whose elements have elements".to_owned());
            }
            write_sharding(out, element)?;
        }
    } else {
        write_fields(out, s)?;
    }
    out.push('}');
    Ok(())
}

fn write_fields(out: &mut String, s: &Sharding) -> Result<(), String> {
    match s.kind {
        OTHER => {
            let _ = write!(out, "devices=[{}]", join(&s.tile_assignment_dimensions));
            if s.iota_reshape_dims.is_empty() {
                out.push_str(&join(&s.tile_assignment_devices));
            } else {
                let _ = write!(out, "<=[{}]", join(&s.iota_reshape_dims));
                if !s
                    .iota_transpose_perm
                    .iter()
                    .copied()
                    .eq(0..s.iota_transpose_perm.len() as i32)
                {
                    let _ = write!(out, "T({})", join(&s.iota_transpose_perm));
                }
            }
            if s.replicate_on_last_tile_dim {
                out.push_str(" last_tile_dim_replicate");
            }
        }
        MAXIMAL => {
            let device = s.tile_assignment_devices.first().copied().unwrap_or(0);
            let _ = write!(out, "maximal device={device}");
        }
        kind => out.push_str(word(kind)?),
    }
    if !s.last_tile_dims.is_empty() {
        let words = s.last_tile_dims.iter().map(|&k| word(k));
        let words = words.collect::<Result<Vec<_>, _>>()?;
        let _ = write!(out, " last_tile_dims={{{}}}", words.join(", "));
    }
    if s.is_shard_group {
        let key = if s.shard_group_type == 1 {
            "shard_like"
        } else {
            "shard_as"
        };
        let _ = write!(out, " {key} {}", s.shard_group_id);
    }
    if !s.metadata.is_empty() {
        let list = metadata_list(&s.metadata);
        let _ = match s.metadata.len() {
            1 => write!(out, " metadata={list}"),
            _ => write!(out, " metadata={{{list}}}"),
        };
    }
    Ok(())
}

/// `{mesh['x'=2,'y'=4], [{'x'}, {?}], replicated={'y'}}`, or with one word for all axes.
fn named_sharding(s: &NamedSharding) -> Result<String, String> {
    let mesh = s.mesh.as_ref().ok_or("a named sharding without its mesh")?;
    let axes = |list: &[AxisRef]| {
        let axes = list.iter().map(|a| axis_text(mesh, a));
        Ok::<_, String>(axes.collect::<Result<Vec<_>, _>>()?.join(", "))
    };
    let mut text = format!("{{{}", mesh_text(mesh)?);
    let is_all = |list: &[AxisRef]| {
        list.iter().map(|a| a.index).eq(0..mesh.axes.len() as i64)
            && list.iter().all(|a| a.sub_axis.is_none())
    };
    let lists = [
        ("replicated", &s.replicated_axes),
        ("unreduced", &s.unreduced_axes),
        ("manual", &s.manual_axes),
    ];
    let given: Vec<_> = lists.iter().filter(|(_, l)| !l.is_empty()).collect();
    match given[..] {
        _ if mesh.axes.is_empty() && !mesh.device_ids.is_empty() => {}
        [] if s.dim_shardings.is_empty() => text.push_str(", replicated"),
        [(word @ ("unreduced" | "manual"), list)] if s.dim_shardings.is_empty() && is_all(list) => {
            let _ = write!(text, ", {word}");
        }
        _ => {
            text.push_str(", [");
            for (n, dim) in s.dim_shardings.iter().enumerate() {
                let comma = if n > 0 { ", " } else { "" };
                let open = match (dim.is_closed, dim.axes.is_empty()) {
                    (true, _) => "",
                    (false, true) => "?",
                    (false, false) => ", ?",
                };
                let _ = write!(text, "{comma}{{{}{open}}}", axes(&dim.axes)?);
            }
            text.push(']');
            for (word, list) in given {
                let _ = write!(text, ", {word}={{{}}}", axes(list)?);
            }
        }
    }
    if !s.metadata.is_empty() {
        let _ = write!(text, ", metadata={{{}}}", metadata_list(&s.metadata));
    }
    text.push('}');
    Ok(text)
}

fn metadata_list(list: &[Metadata]) -> String {
    let list = list.iter();
    let list = list.map(|m| format!("{{{}}}", write_metadata_fields(m)));
    list.collect::<Vec<_>>().join(", ")
}

fn word(kind: i32) -> Result<&'static str, String> {
    let found = usize::try_from(kind).ok().and_then(|n| KINDS.get(n));
    found
        .copied()
        .filter(|w| !w.is_empty())
        .ok_or_else(|| format!("unknown sharding type {kind}"))
}
