//! Index vectors of `gather` and `scatter`.

use slabplan_ir::ArrayShape;
use slabplan_ir::attr::AttrName;

use super::KernelError;
use super::index::Indices;
use super::prepare::{Dims, Prepare, dims};

/// Reads, for each batch index, where in the operand its slice starts.
#[derive(Debug)]
pub(super) struct IndexVectors {
    reader: Indices,
    /// Sizes and steps (in elements of the index array) of its dimensions but the vectors' own.
    batch: Vec<(usize, usize)>,
    /// Step from one entry of a vector to the next.
    entry_step: usize,
    /// The operand dimension of each entry of a vector.
    map: Dims,
    /// Operand dimensions that run along with a batch dimension: (operand's, number in `batch`).
    batching: Vec<(usize, usize)>,
}

impl IndexVectors {
    /// Index vectors in `indices` along `index_vector_dim`, whose entries are indices of operand
    /// dimensions `map`; operand dimensions `operand_batching` run along with the index dimensions
    /// `indices_batching`.
    pub(super) fn new(
        p: &Prepare<'_>,
        indices: &ArrayShape,
        map: &Dims,
        operand_batching: &Dims,
        indices_batching: &Dims,
        operand_rank: usize,
    ) -> Result<Self, KernelError> {
        let reader = Indices::new(indices.element_type)
            .ok_or_else(|| p.error("indices are not integers".into()))?;
        let sizes = dims(indices);
        let strides = p.strides(indices);
        let vector_dim = p.size(AttrName::IndexVectorDim)?;
        // Past the last dimension, every element is a vector of one entry.
        let length = sizes.get(vector_dim).copied().unwrap_or(1);
        p.require(
            vector_dim <= sizes.len() && map.len() == length,
            "index vectors do not match the index map",
        )?;
        let batch_dims: Vec<usize> = (0..sizes.len()).filter(|&d| d != vector_dim).collect();
        let batching: Option<Vec<(usize, usize)>> = operand_batching
            .iter()
            .zip(indices_batching)
            .map(|(&o, &i)| Some((o, batch_dims.iter().position(|&d| d == i)?)))
            .collect();
        let batching = batching.filter(|_| operand_batching.len() == indices_batching.len());
        let batching =
            batching.ok_or_else(|| p.error("batching dimensions do not match".into()))?;
        p.require(
            map.iter()
                .all(|d| *d < operand_rank && !operand_batching.contains(d)),
            "the index map names a wrong dimension",
        )?;
        Ok(Self {
            reader,
            batch: batch_dims.iter().map(|&d| (sizes[d], strides[d])).collect(),
            entry_step: strides.get(vector_dim).copied().unwrap_or(0),
            map: map.clone(),
            batching,
        })
    }

    /// Sizes of the batch dimensions.
    pub(super) fn batch_sizes(&self) -> Dims {
        self.batch.iter().map(|b| b.0).collect()
    }

    /// Calls `visit` with each operand dimension that has an index, and that index, for one batch index.
    pub(super) fn each(&self, indices: &[u8], batch: &[usize], mut visit: impl FnMut(usize, i64)) {
        let start: usize = batch.iter().zip(&self.batch).map(|(i, b)| i * b.1).sum();
        for (entry, &d) in self.map.iter().enumerate() {
            visit(d, self.reader.get(indices, start + entry * self.entry_step));
        }
        for &(d, b) in &self.batching {
            visit(d, batch[b] as i64);
        }
    }
}
