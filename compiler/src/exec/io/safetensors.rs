//! `.safetensors`.

use std::path::Path;

use safetensors::tensor::{Dtype, SafeTensors, TensorView};
use slabplan_ir::ElementType;

use super::{ArraySpec, IoError, check_names};
use crate::exec::array::HostArray;

/// Reads the arrays of `specs`.
pub(super) fn read(path: &Path, specs: &[ArraySpec]) -> Result<Vec<HostArray>, IoError> {
    let bytes = std::fs::read(path).map_err(|source| IoError::File {
        path: path.to_owned(),
        source,
    })?;
    let tensors = SafeTensors::deserialize(&bytes).map_err(|e| IoError::Format {
        path: path.to_owned(),
        problem: format!("neither safetensors nor npz ({e})"),
    })?;
    let mut names = tensors.names();
    names.sort_unstable();
    check_names(path, specs, &names)?;
    specs
        .iter()
        .map(|spec| {
            let tensor = tensors.tensor(&spec.name).map_err(|e| IoError::Format {
                path: path.to_owned(),
                problem: format!("{}: {e}", spec.name),
            })?;
            array(path, spec, &tensor)
        })
        .collect()
}

fn array(path: &Path, spec: &ArraySpec, tensor: &TensorView<'_>) -> Result<HostArray, IoError> {
    let dims: Vec<u64> = tensor.shape().iter().map(|&d| d as u64).collect();
    let fits = if tensor.dtype() == Dtype::C64 {
        spec.element_type == ElementType::C64 && spec.fits_unsplit(&dims)
    } else {
        dtypes(spec.element_type).contains(&tensor.dtype()) && spec.fits(&dims)
    };
    let made = HostArray::new(spec.element_type, &spec.dims, tensor.data().to_vec());
    made.filter(|_| fits).ok_or_else(|| IoError::Type {
        path: path.to_owned(),
        name: spec.name.clone(),
        expected: format!(
            "{} ({:?} {:?})",
            spec.type_name(),
            dtypes(spec.element_type)[0],
            spec.file_dims()
        ),
        given: format!("{:?} {dims:?}", tensor.dtype()),
    })
}

/// The file's bytes.
pub(super) fn encode(arrays: &[(String, HostArray)]) -> Result<Vec<u8>, String> {
    let mut views = Vec::with_capacity(arrays.len());
    for (name, array) in arrays {
        let spec = ArraySpec {
            name: name.clone(),
            element_type: array.element_type,
            dims: array.dims.clone(),
        };
        let dims = spec.file_dims().iter().map(|&d| d as usize).collect();
        let view = TensorView::new(dtypes(array.element_type)[0], dims, &array.data);
        views.push((name, view.map_err(|e| e.to_string())?));
    }
    safetensors::serialize(views, None).map_err(|e| e.to_string())
}

/// The types that hold `ty`, or its parts, in a file: the first is written, all are read.
fn dtypes(ty: ElementType) -> &'static [Dtype] {
    use Dtype as D;
    use ElementType as E;
    match ty {
        E::Pred => &[D::BOOL, D::U8],
        E::S8 => &[D::I8],
        E::S16 => &[D::I16],
        E::S32 => &[D::I32],
        E::S64 => &[D::I64],
        E::U8 => &[D::U8],
        E::U16 => &[D::U16],
        E::U32 => &[D::U32],
        E::U64 => &[D::U64],
        E::F16 => &[D::F16],
        E::Bf16 => &[D::BF16],
        E::F32 | E::C64 => &[D::F32],
        E::F64 | E::C128 => &[D::F64],
        E::F8e5m2 => &[D::F8_E5M2, D::U8],
        E::F8e4m3fn => &[D::F8_E4M3, D::U8],
        E::F8e8m0fnu => &[D::F8_E8M0, D::U8],
        E::S1 | E::S2 | E::S4 => &[D::I8],
        E::U1 | E::U2 | E::U4 => &[D::U8],
        E::F8e4m3fnuz => &[D::F8_E4M3FNUZ, D::U8],
        E::F8e5m2fnuz => &[D::F8_E5M2FNUZ, D::U8],
        E::F8e4m3 | E::F8e4m3b11fnuz | E::F8e3m4 | E::F4e2m1fn => &[D::U8],
    }
}
