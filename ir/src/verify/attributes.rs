//! Required attributes and numbers of operands.

use super::error::{ErrorKind, Place, Sink};
use crate::attr::AttrName;
use crate::entity::InstrId;
use crate::instr::Instr;
use crate::opcode::{Arity, Opcode};

/// The attributes without which an operation means nothing.
///
/// Not listed: what XLA's parser requires of the text but defaults in a proto.
fn required(opcode: Opcode) -> &'static [AttrName] {
    use AttrName as A;
    use Opcode as O;
    match opcode {
        O::AllGather | O::AllGatherStart | O::Concatenate => &[A::Dimensions],
        O::AllReduce | O::AllReduceStart => &[A::ToApply],
        O::ReduceScatter => &[A::ToApply, A::Dimensions],
        O::CollectivePermute | O::CollectivePermuteStart => &[A::SourceTargetPairs],
        O::AsyncStart | O::Fusion => &[A::Calls],
        O::Sort | O::Reduce | O::Scan => &[A::ToApply, A::Dimensions],
        O::While => &[A::Condition, A::Body],
        O::Call | O::ReduceWindow | O::Map => &[A::ToApply],
        O::GetTupleElement => &[A::Index],
        O::CustomCall => &[A::CustomCallTarget],
        O::Convolution => &[A::DimLabels],
        O::Gather => &[
            A::OffsetDims,
            A::CollapsedSliceDims,
            A::StartIndexMap,
            A::IndexVectorDim,
            A::SliceSizes,
        ],
        O::Scatter => &[
            A::UpdateWindowDims,
            A::InsertedWindowDims,
            A::ScatterDimsToOperandDims,
            A::IndexVectorDim,
            A::ToApply,
        ],
        O::TopK => &[A::K],
        O::SelectAndScatter => &[A::Select, A::Scatter],
        O::Slice => &[A::Slice],
        O::DynamicSlice => &[A::DynamicSliceSizes],
        O::Pad => &[A::Padding],
        O::Iota => &[A::IotaDimension],
        O::Transpose | O::Reverse => &[A::Dimensions],
        O::Compare => &[A::Direction],
        O::Fft => &[A::FftType, A::FftLength],
        O::Rng => &[A::Distribution],
        O::RngBitGenerator => &[A::Algorithm],
        O::RngGetAndUpdateState => &[A::Delta],
        O::ReducePrecision => &[A::ExponentBits, A::MantissaBits],
        O::BatchNormTraining | O::BatchNormInference | O::BatchNormGrad => {
            &[A::Epsilon, A::FeatureIndex]
        }
        O::GetDimensionSize | O::SetDimensionSize => &[A::Dimensions],
        _ => &[],
    }
}

/// Whether the instruction has the operands and the attributes its operation needs.
pub(super) fn check(sink: &mut Sink<'_>, id: InstrId, instr: &Instr) -> bool {
    let place = Place::Instr(id);
    let (opcode, given) = (instr.opcode, instr.operands.len());
    let mut good = true;
    if !opcode.arity().accepts(given) {
        good = false;
        let takes = match opcode.arity() {
            Arity::Exactly(n) => format!("{n}"),
            Arity::AtLeast(n) => format!("at least {n}"),
        };
        sink.error(
            ErrorKind::Operands,
            place,
            format!("{opcode} takes {takes} operand(s), given {given}"),
            "give it as many operands as it takes",
        );
    }
    for &name in required(opcode) {
        if instr.attr(name).is_none() {
            good = false;
            sink.error(
                ErrorKind::Attribute,
                place,
                format!("{opcode} needs attribute {}", name.name()),
                format!("add {}=...", name.name()),
            );
        }
    }
    if opcode == Opcode::Conditional && instr.branches().is_empty() {
        good = false;
        sink.error(
            ErrorKind::Attribute,
            place,
            "conditional needs attribute branch_computations",
            "add branch_computations={...}, or true_computation and false_computation",
        );
    }
    good
}
