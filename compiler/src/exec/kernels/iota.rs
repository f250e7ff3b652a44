//! `iota`: each element is its index along one dimension.

use slabplan_ir::ElementType;
use slabplan_ir::attr::AttrName;

use super::convert::Convert;
use super::elementwise::Elementwise;
use super::prepare::{Prepare, dims, row_major_strides};
use super::scalar::width;
use super::{ArrayMut, ArrayRef, KernelError, Run};

/// Elements converted at a time.
const CHUNK: usize = 64;

#[derive(Debug)]
struct Iota {
    /// Elements between neighbours along the dimension, and its size.
    stride: usize,
    size: usize,
    width: usize,
    convert: Convert,
}

/// What turns 64-bit indices into elements of `ty`.
pub(crate) fn iota_type(ty: ElementType) -> Option<Elementwise> {
    Convert::new(ElementType::S64, ty).map(Elementwise::Convert)
}

/// Prepares an `iota`.
pub(super) fn prepare(p: &Prepare<'_>) -> Result<Box<dyn Run>, KernelError> {
    let result = p.result()?;
    let sizes = dims(result);
    let d = p.size(AttrName::IotaDimension)?;
    p.require(d < sizes.len(), "iota_dimension is not a dimension")?;
    let convert = Convert::new(ElementType::S64, result.element_type)
        .ok_or_else(|| p.error(format!("not defined on {}", result.element_type)))?;
    Ok(Box::new(Iota {
        stride: row_major_strides(&sizes)[d],
        size: sizes[d],
        width: width(result.element_type),
        convert,
    }))
}

impl Run for Iota {
    fn run(&self, _: &[ArrayRef<'_>], results: &mut [ArrayMut<'_>], _: &mut [u8]) {
        let mut indices = [0; CHUNK * 8];
        for (chunk, out) in results[0].data.chunks_mut(CHUNK * self.width).enumerate() {
            let n = out.len() / self.width;
            for (i, index) in indices[..n * 8].chunks_exact_mut(8).enumerate() {
                let value = (chunk * CHUNK + i) / self.stride % self.size;
                index.copy_from_slice(&(value as i64).to_le_bytes());
            }
            self.convert.apply(&indices[..n * 8], out);
        }
    }
}
