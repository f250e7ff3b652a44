//! Shardings.

use super::mesh::{axes, axis, mesh};
use super::scan::{Scan, metadata};
use crate::frontend::proto::messages::{
    AxisRef, DimSharding, Mesh, Metadata, NamedSharding, Sharding,
};
use crate::frontend::proto::sharding::{KINDS, MANUAL, MAXIMAL, OTHER, REPLICATED, TUPLE};

/// Reads `{devices=[2,1,2]<=[2,2]T(1,0) last_tile_dim_replicate}` and the other forms.
pub(super) fn sharding(text: &str) -> Result<Sharding, String> {
    let mut scan = Scan::new(text);
    let read = one(&mut scan)?;
    if scan.is_done() {
        Ok(read)
    } else {
        Err("text after the sharding".to_owned())
    }
}

fn one(scan: &mut Scan<'_>) -> Result<Sharding, String> {
    scan.expect("{")?;
    let mut sharding = Sharding {
        kind: REPLICATED,
        ..Sharding::default()
    };
    if scan.peek() == Some('{') {
        sharding.kind = TUPLE;
        while !scan.eat("}") {
            if !sharding.tuple_shardings.is_empty() {
                scan.expect(",")?;
            }
            sharding.tuple_shardings.push(flat(scan)?);
        }
        return Ok(sharding);
    }
    fields(scan, &mut sharding)?;
    Ok(sharding)
}

/// An element of a tuple's sharding: those have no elements of their own.
fn flat(scan: &mut Scan<'_>) -> Result<Sharding, String> {
    scan.expect("{")?;
    let mut sharding = Sharding {
        kind: REPLICATED,
        ..Sharding::default()
    };
    fields(scan, &mut sharding)?;
    Ok(sharding)
}

/// Everything up to the closing brace.
fn fields(scan: &mut Scan<'_>, sharding: &mut Sharding) -> Result<(), String> {
    if scan.starts_with("mesh") || scan.starts_with("maximal_mesh") {
        sharding.named = Some(named(scan)?);
        return Ok(());
    }
    while !scan.eat("}") {
        scan.eat(",");
        if scan.eat("devices=[") {
            sharding.kind = OTHER;
            sharding.tile_assignment_dimensions = scan.ints("]")?;
            devices(scan, sharding)?;
            continue;
        }
        match scan.word() {
            "device" => {
                scan.expect("=")?;
                sharding.tile_assignment_dimensions = vec![1];
                sharding.tile_assignment_devices = vec![scan.int()?];
            }
            "last_tile_dim_replicate" => sharding.replicate_on_last_tile_dim = true,
            "last_tile_dims" => {
                scan.expect("=")?;
                scan.expect("{")?;
                while !scan.eat("}") {
                    scan.eat(",");
                    sharding.last_tile_dims.push(kind(scan.word())?);
                }
            }
            key @ ("shard_as" | "shard_like") => {
                sharding.is_shard_group = true;
                sharding.shard_group_type = i32::from(key == "shard_like");
                sharding.shard_group_id = scan.int()?;
            }
            "metadata" => {
                scan.expect("=")?;
                sharding.metadata = metadata_list(scan)?;
            }
            word => sharding.kind = kind(word)?,
        }
    }
    // XLA writes the only device of a maximal sharding as a list of one.
    if sharding.kind == MAXIMAL && sharding.tile_assignment_devices.is_empty() {
        return Err("a maximal sharding without its device".to_owned());
    }
    Ok(())
}

/// One `{...}`, or several in braces.
fn metadata_list(scan: &mut Scan<'_>) -> Result<Vec<Metadata>, String> {
    let text = scan.dictionary()?;
    let inner = text[1..text.len() - 1].trim();
    let mut list = Scan::new(if inner.starts_with('{') { inner } else { text });
    let mut read = Vec::new();
    while !list.is_done() {
        list.eat(",");
        read.push(metadata(list.dictionary()?)?);
    }
    Ok(read)
}

/// `mesh['x'=2,'y'=4], [{'x'}, {?}], replicated={'y'}}`, the closing brace taken.
fn named(scan: &mut Scan<'_>) -> Result<NamedSharding, String> {
    let mesh = mesh(scan)?;
    let mut s = NamedSharding::default();
    while !scan.eat("}") {
        scan.expect(",")?;
        if scan.eat("[") {
            while !scan.eat("]") {
                if !s.dim_shardings.is_empty() {
                    scan.expect(",")?;
                }
                s.dim_shardings.push(dim_sharding(scan, &mesh)?);
            }
            continue;
        }
        let word = scan.word();
        if word == "metadata" {
            scan.expect("=")?;
            s.metadata = metadata_list(scan)?;
            continue;
        }
        let list = match word {
            "replicated" => &mut s.replicated_axes,
            "unreduced" => &mut s.unreduced_axes,
            "manual" => &mut s.manual_axes,
            _ => return Err(format!("unknown part `{word}` of a named sharding")),
        };
        if scan.eat("=") {
            scan.expect("{")?;
            *list = axes(scan, &mesh, "}")?;
        } else if word != "replicated" {
            let all = 0..mesh.axes.len() as i64;
            let whole = |index| AxisRef {
                index,
                sub_axis: None,
            };
            *list = all.map(whole).collect();
        }
    }
    s.mesh = Some(mesh);
    Ok(s)
}

/// `{'x', 'y', ?}`
fn dim_sharding(scan: &mut Scan<'_>, mesh: &Mesh) -> Result<DimSharding, String> {
    let mut dim = DimSharding {
        axes: Vec::new(),
        is_closed: true,
    };
    scan.expect("{")?;
    while !scan.eat("}") {
        if !dim.axes.is_empty() {
            scan.expect(",")?;
        }
        if scan.eat("?") {
            dim.is_closed = false;
            scan.expect("}")?;
            break;
        }
        dim.axes.push(axis(scan, mesh)?);
    }
    Ok(dim)
}

/// `<=[2,2]T(1,0)`, or devices one by one.
fn devices(scan: &mut Scan<'_>, sharding: &mut Sharding) -> Result<(), String> {
    if scan.eat("<=[") {
        sharding.iota_reshape_dims = scan.ints("]")?;
        sharding.iota_transpose_perm = if scan.eat("T(") {
            scan.ints(")")?
        } else {
            (0..sharding.iota_reshape_dims.len() as i32).collect()
        };
        return Ok(());
    }
    while scan.peek().is_some_and(|c| c.is_ascii_digit()) {
        sharding.tile_assignment_devices.push(scan.int()?);
        scan.eat(",");
    }
    Ok(())
}

fn kind(word: &str) -> Result<i32, String> {
    let word = if word == "replicate" {
        "replicated"
    } else {
        word
    };
    let found = KINDS.iter().position(|&k| k == word);
    debug_assert_eq!(KINDS[MANUAL as usize], "manual");
    found
        .map(|n| n as i32)
        .ok_or_else(|| format!("unknown sharding `{word}`"))
}
