//! Arrays as the caller holds them.

use slabplan_ir::ElementType;

/// A dense array in host form: row-major, little-endian, one byte an element for `pred` and for
/// types narrower than a byte, complex numbers as (re, im).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostArray {
    /// Element type.
    pub element_type: ElementType,
    /// Dimensions, major to minor.
    pub dims: Vec<u64>,
    /// `dims.product() * element_type.byte_width()` bytes.
    pub data: Vec<u8>,
}

impl HostArray {
    /// An array of the given bytes; `None` where their number does not fit the dimensions.
    pub fn new(element_type: ElementType, dims: &[u64], data: Vec<u8>) -> Option<Self> {
        let bytes = dims
            .iter()
            .try_fold(element_type.byte_width(), |n, &d| n.checked_mul(d))?;
        (data.len() as u64 == bytes).then(|| Self {
            element_type,
            dims: dims.to_vec(),
            data,
        })
    }

    /// An `f32` array; `None` as for [`new`](Self::new).
    pub fn from_f32(values: &[f32], dims: &[u64]) -> Option<Self> {
        let data = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        Self::new(ElementType::F32, dims, data)
    }

    /// The elements of an `f32` array.
    pub fn to_f32(&self) -> Option<Vec<f32>> {
        let element = |b: &[u8]| f32::from_le_bytes(std::array::from_fn(|i| b[i]));
        (self.element_type == ElementType::F32)
            .then(|| self.data.chunks_exact(4).map(element).collect())
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        self.data.len() / self.element_type.byte_width() as usize
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.data.is_empty()
    }

    /// `f32[2,3]`.
    pub fn type_name(&self) -> String {
        type_name(self.element_type, &self.dims)
    }
}

/// `f32[2,3]`.
pub(crate) fn type_name(element_type: ElementType, dims: &[u64]) -> String {
    let dims: Vec<String> = dims.iter().map(u64::to_string).collect();
    format!("{element_type}[{}]", dims.join(","))
}
