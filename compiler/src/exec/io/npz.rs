//! `.npz`: a zip of `.npy` files.

use std::io::{Cursor, Read, Write};
use std::path::Path;

use npyz::npz::{NpzArchive, NpzWriter};
use npyz::{DType, NpyHeader, Order};
use slabplan_ir::ElementType;

use super::{ArraySpec, IoError, check_names};
use crate::exec::array::HostArray;

/// Reads the arrays of `specs`.
pub(super) fn read(path: &Path, specs: &[ArraySpec]) -> Result<Vec<HostArray>, IoError> {
    let file = |source| IoError::File {
        path: path.to_owned(),
        source,
    };
    let mut archive = NpzArchive::open(path).map_err(file)?;
    let mut names: Vec<String> = archive.array_names().map(str::to_owned).collect();
    names.sort_unstable();
    let present: Vec<&str> = names.iter().map(String::as_str).collect();
    check_names(path, specs, &present)?;
    let mut arrays = Vec::with_capacity(specs.len());
    for spec in specs {
        let name = format!("{}.npy", spec.name);
        let mut entry = archive
            .zip_archive()
            .by_name(&name)
            .map_err(|e| file(e.into()))?;
        let header = NpyHeader::from_reader(&mut entry).map_err(file)?;
        check_type(path, spec, &header)?;
        let mut data = Vec::new();
        let bytes = spec.bytes().unwrap_or(u64::MAX);
        entry.take(bytes).read_to_end(&mut data).map_err(file)?;
        let array = HostArray::new(spec.element_type, &spec.dims, data);
        arrays.push(array.ok_or_else(|| IoError::Format {
            path: path.to_owned(),
            problem: format!("{} ends early", spec.name),
        })?);
    }
    Ok(arrays)
}

fn check_type(path: &Path, spec: &ArraySpec, header: &NpyHeader) -> Result<(), IoError> {
    let descr = match header.dtype() {
        DType::Plain(ty) => ty.to_string(),
        other => other.descr(),
    };
    let types = types(spec.element_type);
    let dims_fit = match types.iter().position(|t| *t == descr) {
        // numpy's complex numbers have no axis [re, im].
        Some(0) if spec.element_type.is_complex() => header.shape() == spec.dims,
        Some(_) => spec.fits(header.shape()),
        None => false,
    };
    let in_order = header.order() == Order::C || header.shape().len() < 2;
    if dims_fit && in_order {
        return Ok(());
    }
    Err(IoError::Type {
        path: path.to_owned(),
        name: spec.name.clone(),
        expected: format!(
            "{} ({} {:?}, C order)",
            spec.type_name(),
            types[0],
            spec.dims
        ),
        given: format!("{descr} {:?}, {:?} order", header.shape(), header.order()),
    })
}

/// The file's bytes.
pub(super) fn encode(arrays: &[(String, HostArray)]) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    let mut writer = NpzWriter::new(Cursor::new(&mut bytes));
    for (name, array) in arrays {
        let zip = writer.zip_writer();
        #[allow(
            clippy::default_trait_access,
            reason = "zip's type is not ours to name"
        )]
        let options = Default::default();
        zip.start_file(format!("{name}.npy"), options)
            .map_err(|e| e.to_string())?;
        zip.write_all(&header(array)).map_err(|e| e.to_string())?;
        zip.write_all(&array.data).map_err(|e| e.to_string())?;
    }
    writer.zip_writer().finish().map_err(|e| e.to_string())?;
    drop(writer);
    Ok(bytes)
}

/// Magic number, version 1.0, length, and the dictionary padded so that data begin at a multiple
/// of 64 bytes: numpy's format.
fn header(array: &HostArray) -> Vec<u8> {
    let dims: Vec<String> = array.dims.iter().map(|d| format!("{d},")).collect();
    let mut dict = format!(
        "{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}",
        types(array.element_type)[0],
        dims.join(" ")
    );
    const FIXED: usize = 10;
    let padded = (FIXED + dict.len() + 1).next_multiple_of(64);
    dict.extend(std::iter::repeat_n(' ', padded - FIXED - dict.len() - 1));
    dict.push('\n');
    let mut out = b"\x93NUMPY\x01\x00".to_vec();
    out.extend((dict.len() as u16).to_le_bytes());
    out.extend(dict.as_bytes());
    out
}

/// numpy's names of `ty`: the first is written, all are read. Types that numpy does not have are
/// raw bytes of their width, as it writes them itself.
fn types(ty: ElementType) -> &'static [&'static str] {
    use ElementType as E;
    match ty {
        E::Pred => &["|b1", "|u1"],
        E::S8 | E::S1 | E::S2 | E::S4 => &["|i1"],
        E::S16 => &["<i2"],
        E::S32 => &["<i4"],
        E::S64 => &["<i8"],
        E::U8 | E::U1 | E::U2 | E::U4 => &["|u1"],
        E::U16 => &["<u2"],
        E::U32 => &["<u4"],
        E::U64 => &["<u8"],
        E::F16 => &["<f2"],
        E::F32 => &["<f4"],
        E::F64 => &["<f8"],
        E::C64 => &["<c8", "<f4"],
        E::C128 => &["<c16", "<f8"],
        E::Bf16 => &["|V2", "<V2", "<u2"],
        _ => &["|V1", "|u1"],
    }
}
