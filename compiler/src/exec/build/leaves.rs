//! The arrays of results, and what is known of each.

use slabplan_ir::ElementType;
use slabplan_ir::entity::{EntityId, InstrId, PosId, ShapeId};
use slabplan_ir::shape::Shape;

use super::Builder;
use crate::exec::ExecError;
use crate::exec::program::{ArrayInfo, Leaf};
use crate::exec::tiled::{TiledMap, plain_strides};

impl Builder<'_> {
    pub(super) fn leaves_of_all(&mut self, instrs: &[InstrId]) -> Result<Vec<Leaf>, ExecError> {
        let mut out = Vec::new();
        for &i in instrs {
            out.extend(self.leaves_of(i)?);
        }
        Ok(out)
    }

    /// The arrays of an instruction's result, in preorder.
    pub(super) fn leaves_of(&mut self, instr: InstrId) -> Result<Vec<Leaf>, ExecError> {
        self.leaves_below(instr, 0)
    }

    /// The arrays of part `node` of an instruction's result.
    pub(super) fn leaves_below(
        &mut self,
        instr: InstrId,
        node: u32,
    ) -> Result<Vec<Leaf>, ExecError> {
        let first = self.positions.node(instr, node);
        let parts = self.module.shapes.node_count(self.positions.shape(first));
        let mut out = Vec::new();
        for n in node..node + parts {
            let pos = self.positions.node(instr, n);
            match self.module.shapes.get(self.positions.shape(pos)) {
                Shape::Array(_) => out.push(self.leaf(instr, pos)?),
                Shape::Buffer(_) => {
                    return Err(self.unsupported(instr, "the executor does not support `b(..)`"));
                }
                Shape::Tuple(_) | Shape::Token | Shape::Opaque => {}
            }
        }
        Ok(out)
    }

    pub(super) fn single_leaf(&mut self, instr: InstrId) -> Result<Leaf, ExecError> {
        self.leaf_at(instr, &[])
    }

    pub(super) fn leaf_at(&mut self, instr: InstrId, index: &[u32]) -> Result<Leaf, ExecError> {
        let pos = self
            .positions
            .at(self.module, instr, index)
            .filter(|&p| self.module.shapes.array(self.positions.shape(p)).is_some())
            .ok_or_else(|| self.unsupported(instr, "an array is expected here"))?;
        self.leaf(instr, pos)
    }

    pub(super) fn leaf(&mut self, instr: InstrId, pos: PosId) -> Result<Leaf, ExecError> {
        let place = self.places.of(pos).ok_or_else(|| ExecError::NoPlace {
            value: self.positions.display(self.module, pos),
        })?;
        let array = self.array_info(instr, self.positions.shape(pos))?;
        Ok(Leaf {
            slab: place.slab,
            offset: place.offset,
            array,
        })
    }

    pub(super) fn array_info(&mut self, instr: InstrId, shape: ShapeId) -> Result<u32, ExecError> {
        if let Some(array) = self.array_of_shape[shape.index()] {
            return Ok(array);
        }
        let array = self.module.shapes.array(shape);
        let array = array.ok_or_else(|| self.unsupported(instr, "an array is expected here"))?;
        let map = TiledMap::new(array).map_err(|source| ExecError::Layout {
            instr: self.module.name_of(instr).to_owned(),
            source,
        })?;
        let index = self.program.arrays.len() as u32;
        self.program.arrays.push(ArrayInfo {
            element_type: array.element_type,
            dims: array.dims.as_slice().into(),
            plain: plain_strides(array).is_some(),
            map,
        });
        self.array_of_shape[shape.index()] = Some(index);
        Ok(index)
    }

    /// An array of plain bytes, to move padded arrays as they are.
    pub(super) fn byte_array(&mut self, instr: InstrId, bytes: usize) -> Result<u32, ExecError> {
        let shape = slabplan_ir::ArrayShape::new(ElementType::U8, &[bytes as u64]);
        let map = TiledMap::new(&shape).map_err(|source| ExecError::Layout {
            instr: self.module.name_of(instr).to_owned(),
            source,
        })?;
        self.program.arrays.push(ArrayInfo {
            element_type: ElementType::U8,
            dims: Box::new([bytes as u64]),
            map,
            plain: true,
        });
        Ok(self.program.arrays.len() as u32 - 1)
    }

    pub(super) fn leaf_index(&mut self, leaf: Leaf) -> u32 {
        self.program.leaves.push(leaf);
        self.program.leaves.len() as u32 - 1
    }
}
