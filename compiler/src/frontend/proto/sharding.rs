//! Shardings of protos as HLO text.

use std::fmt::Write;

use super::attributes::write_metadata_fields;
use super::messages::Sharding;
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
/// A type without a number, or the named form.
pub(super) fn write_sharding(out: &mut String, s: &Sharding) -> Result<(), String> {
    if s.named_sharding.is_some() {
        return Err("a named sharding, which is not supported".to_owned());
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
        let list: Vec<String> = s
            .metadata
            .iter()
            .map(|m| format!("{{{}}}", write_metadata_fields(m)))
            .collect();
        let list = list.join(", ");
        let _ = match s.metadata.len() {
            1 => write!(out, " metadata={list}"),
            _ => write!(out, " metadata={{{list}}}"),
        };
    }
    Ok(())
}

fn word(kind: i32) -> Result<&'static str, String> {
    let found = usize::try_from(kind).ok().and_then(|n| KINDS.get(n));
    found
        .copied()
        .filter(|w| !w.is_empty())
        .ok_or_else(|| format!("unknown sharding type {kind}"))
}
