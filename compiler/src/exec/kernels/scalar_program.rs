//! Embedded computations (reducers, comparators, combiners, the function of `map`) as programs
//! over registers.
//!
//! A register holds one element for each of up to [`LANES`] lanes, so that a
//! reducer of many instructions works on many elements at a time, with the same
//! loops as whole arrays. Registers are written once, in the order they lie in
//! memory; running a program allocates nothing.

use std::ops::Range;

use slabplan_ir::{CompId, ElementType, InstrId, Module, Opcode, Payload, Shape, literal};
use smallvec::SmallVec;

use super::KernelError;
use super::elementwise::Elementwise;
use super::lanes::{Loop2, fill};
use super::prepare::Prepare;
use super::scalar::width;

/// Most lanes of a program.
pub(super) const LANES: usize = 64;

/// Most steps of a program, and how deep its computations nest.
const MAX_STEPS: usize = 1 << 14;
const MAX_DEPTH: usize = 64;

/// Where a value lies among the registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Register {
    /// Byte position of lane 0.
    start: usize,
    /// Bytes of one lane.
    width: usize,
}

impl Register {
    fn bytes(self, lanes: &Range<usize>) -> Range<usize> {
        self.start + lanes.start * self.width..self.start + lanes.end * self.width
    }
}

#[derive(Debug)]
struct Step {
    opcode: Opcode,
    op: Elementwise,
    args: SmallVec<[Register; 3]>,
    result: Register,
}

/// A compiled embedded computation on scalars.
#[derive(Debug)]
pub(super) struct ScalarProgram {
    lanes: usize,
    inputs: Vec<Register>,
    outputs: Vec<Register>,
    constants: Vec<(Register, Vec<u8>)>,
    steps: Vec<Step>,
    bytes: usize,
}

impl ScalarProgram {
    /// Compiles `comp`, whose parameters are scalars and whose result is one or a tuple of them,
    /// for up to `lanes` lanes.
    ///
    /// `caller` is the instruction errors are about. Linear in the computation, nested ones inlined.
    pub(super) fn new(
        caller: &Prepare<'_>,
        comp: CompId,
        inputs: &[ElementType],
        outputs: &[ElementType],
        lanes: usize,
    ) -> Result<Self, KernelError> {
        let mut compiler = Compiler {
            caller,
            module: caller.module,
            program: Self {
                lanes,
                inputs: Vec::new(),
                outputs: Vec::new(),
                constants: Vec::new(),
                steps: Vec::new(),
                bytes: 0,
            },
        };
        for &ty in inputs {
            let register = compiler.allocate(ty);
            compiler.program.inputs.push(register);
        }
        let args: Vec<Value> = (compiler.program.inputs.iter())
            .map(|&r| Value::from_elem(r, 1))
            .collect();
        compiler.check_parameters(comp, inputs)?;
        let result = compiler.computation(comp, &args, 0)?;
        caller.require(
            result.len() == outputs.len()
                && result
                    .iter()
                    .zip(outputs)
                    .all(|(r, &ty)| r.width == width(ty)),
            "the embedded computation's result does not match",
        )?;
        for register in result {
            // Outputs are registers of their own, so that a caller may copy them to inputs one by one.
            let own = compiler.push(
                Opcode::Copy,
                Elementwise::Copy,
                Value::from_elem(register, 1),
                register.width,
            )?;
            compiler.program.outputs.push(own);
        }
        Ok(compiler.program)
    }

    /// A program that applies one binary operation to elements of `ty`.
    pub(super) fn binary(opcode: Opcode, ty: ElementType, lanes: usize) -> Option<Self> {
        let op = Elementwise::Binary(super::binary::binary(opcode, ty)?, None);
        let register = |i| Register {
            start: i * width(ty) * lanes,
            width: width(ty),
        };
        let [x, y, result] = [0, 1, 2].map(register);
        Some(Self {
            lanes,
            inputs: vec![x, y],
            outputs: vec![result],
            constants: Vec::new(),
            steps: vec![Step {
                opcode,
                op,
                args: [x, y].into_iter().collect(),
                result,
            }],
            bytes: 3 * width(ty) * lanes,
        })
    }

    /// Bytes of its registers.
    pub(super) fn register_bytes(&self) -> usize {
        self.bytes
    }

    /// The operation, if the program is one binary operation on its two inputs, in either order.
    pub(super) fn as_binary(&self) -> Option<Opcode> {
        let (&[x, y], [step, rest @ ..]) = (&self.inputs[..], &self.steps[..]) else {
            return None;
        };
        let copies = rest
            .iter()
            .all(|s| s.opcode == Opcode::Copy && s.args[0] == step.result);
        let both = step.args[..] == [x, y] || step.args[..] == [y, x];
        let binary = matches!(step.op, Elementwise::Binary(..) | Elementwise::Narrow(_));
        (copies && both && binary).then_some(step.opcode)
    }

    /// The loop of a program that [`binary`](Self::binary) made, if it is one loop.
    pub(super) fn binary_loop(&self) -> Option<Loop2> {
        match self.steps[..] {
            [
                Step {
                    op: Elementwise::Binary(f, _),
                    ..
                },
            ] => Some(f),
            _ => None,
        }
    }

    /// Bytes of an element of input `i`.
    pub(super) fn input_width(&self, i: usize) -> usize {
        self.inputs[i].width
    }

    /// Writes the constants to all lanes; once before the first [`run`](Self::run).
    pub(super) fn begin(&self, registers: &mut [u8]) {
        for (register, bytes) in &self.constants {
            fill(bytes, &mut registers[register.bytes(&(0..self.lanes))]);
        }
    }

    /// The given lanes of input `i`.
    pub(super) fn input<'r>(
        &self,
        registers: &'r mut [u8],
        i: usize,
        lanes: &Range<usize>,
    ) -> &'r mut [u8] {
        &mut registers[self.inputs[i].bytes(lanes)]
    }

    /// The given lanes of output `i`.
    pub(super) fn output<'r>(
        &self,
        registers: &'r [u8],
        i: usize,
        lanes: &Range<usize>,
    ) -> &'r [u8] {
        &registers[self.outputs[i].bytes(lanes)]
    }

    /// Copies the given lanes of output `i` to those of input `i`.
    pub(super) fn feed_back(&self, registers: &mut [u8], i: usize, lanes: &Range<usize>) {
        let to = self.inputs[i].bytes(lanes).start;
        registers.copy_within(self.outputs[i].bytes(lanes), to);
    }

    /// Computes the outputs from the inputs on the given lanes.
    pub(super) fn run(&self, registers: &mut [u8], lanes: &Range<usize>) {
        for step in &self.steps {
            // Every register lies behind the ones it is computed from.
            let (earlier, out) = registers.split_at_mut(step.result.start);
            let mut args: [&[u8]; 3] = [&[]; 3];
            for (arg, register) in args.iter_mut().zip(&step.args) {
                *arg = &earlier[register.bytes(lanes)];
            }
            let w = step.result.width;
            step.op.apply(
                &args[..step.args.len()],
                &mut out[lanes.start * w..lanes.end * w],
            );
        }
    }
}

/// The registers of a scalar, or of a flat tuple of scalars.
type Value = SmallVec<[Register; 2]>;

struct Compiler<'p, 'm> {
    caller: &'p Prepare<'m>,
    module: &'m Module,
    program: ScalarProgram,
}

impl Compiler<'_, '_> {
    fn allocate(&mut self, ty: ElementType) -> Register {
        self.allocate_width(width(ty))
    }

    fn allocate_width(&mut self, width: usize) -> Register {
        let start = self.program.bytes;
        self.program.bytes += width * self.program.lanes;
        Register { start, width }
    }

    fn push(
        &mut self,
        opcode: Opcode,
        op: Elementwise,
        args: Value,
        width: usize,
    ) -> Result<Register, KernelError> {
        self.caller.require(
            self.program.steps.len() < MAX_STEPS,
            "the embedded computation is too large",
        )?;
        let result = self.allocate_width(width);
        let args = args.into_iter().collect();
        self.program.steps.push(Step {
            opcode,
            op,
            args,
            result,
        });
        Ok(result)
    }

    fn check_parameters(&self, comp: CompId, types: &[ElementType]) -> Result<(), KernelError> {
        let params = &self.module.computations[comp].params;
        let matching = params.len() == types.len()
            && params.iter().zip(types).all(|(&p, &ty)| {
                let shape = self.module.shapes.array(self.module.instrs[p].shape);
                shape.is_some_and(|s| s.element_type == ty && s.element_count() == Some(1))
            });
        self.caller.require(
            matching,
            "the embedded computation's parameters do not match",
        )
    }

    /// The result of `comp` on `args`.
    fn computation(
        &mut self,
        comp: CompId,
        args: &[Value],
        depth: usize,
    ) -> Result<Value, KernelError> {
        self.caller
            .require(depth < MAX_DEPTH, "embedded computations nest too deep")?;
        let comp = &self.module.computations[comp];
        // Instructions come operands first, so a lookup by position in `values` suffices.
        let mut values: Vec<(InstrId, Value)> = Vec::with_capacity(comp.instrs.len());
        for &id in &comp.instrs {
            let instr = &self.module.instrs[id];
            let operand = |i: usize| -> Option<&Value> {
                let &operand = instr.operands.get(i)?;
                let found = values.binary_search_by_key(&operand, |v| v.0);
                found.ok().map(|at| &values[at].1)
            };
            let operands: Option<Vec<Value>> = (0..instr.operands.len())
                .map(|i| operand(i).cloned())
                .collect();
            let operands = operands.ok_or_else(|| {
                self.caller
                    .error("the embedded computation is not in order".into())
            })?;
            let value = self.instruction(id, &operands, args, depth)?;
            let at = values.partition_point(|v| v.0 < id);
            values.insert(at, (id, value));
        }
        let root = values.binary_search_by_key(&comp.root, |v| v.0);
        root.map(|at| values[at].1.clone()).map_err(|_| {
            self.caller
                .error("the embedded computation has no root".into())
        })
    }

    fn instruction(
        &mut self,
        id: InstrId,
        operands: &[Value],
        args: &[Value],
        depth: usize,
    ) -> Result<Value, KernelError> {
        use Opcode as O;
        let p = Prepare::new(self.module, id);
        let unsupported = || {
            self.caller.error(format!(
                "its computation uses {} `{}`, which is not supported there",
                p.instr.opcode,
                self.module.name_of(id)
            ))
        };
        match p.instr.opcode {
            O::Parameter => {
                let n = p.instr.parameter_number().unwrap_or(u32::MAX);
                args.get(n as usize).cloned().ok_or_else(unsupported)
            }
            O::Constant => self.constant(id).map(|r| Value::from_elem(r, 1)),
            O::Tuple => Ok(operands.iter().flatten().copied().collect()),
            O::GetTupleElement => {
                let index = p.size(slabplan_ir::attr::AttrName::Index)?;
                match operands {
                    [tuple] if index < tuple.len() => Ok(Value::from_elem(tuple[index], 1)),
                    _ => Err(unsupported()),
                }
            }
            O::Call | O::Fusion => {
                let callee = p
                    .instr
                    .called_computations()
                    .next()
                    .ok_or_else(unsupported)?;
                self.computation(callee, operands, depth + 1)
            }
            O::OptimizationBarrier | O::Domain | O::AddDependency => {
                operands.first().cloned().ok_or_else(unsupported)
            }
            _ => {
                let result = p.result()?;
                if p.element_count(result)? != 1 || operands.iter().any(|v| v.len() != 1) {
                    return Err(unsupported());
                }
                let args: Value = operands.iter().map(|v| v[0]).collect();
                let to = result.element_type;
                let renames = matches!(
                    p.instr.opcode,
                    O::Broadcast | O::Reshape | O::Copy | O::Transpose | O::Bitcast
                ) || (p.instr.opcode == O::BitcastConvert && !to.is_sub_byte());
                if renames && args.len() == 1 && args[0].width == width(to) {
                    return Ok(args);
                }
                let op = Elementwise::new(&p)?.ok_or_else(unsupported)?;
                let register = self.push(p.instr.opcode, op, args, width(to))?;
                Ok(Value::from_elem(register, 1))
            }
        }
    }

    fn constant(&mut self, id: InstrId) -> Result<Register, KernelError> {
        let module = self.module;
        let instr = &module.instrs[id];
        let (Shape::Array(array), Payload::Literal(text)) =
            (module.shapes.get(instr.shape), instr.payload)
        else {
            return Err(self
                .caller
                .error("its computation has a constant that is not an array".into()));
        };
        let literal = literal::decode(&module.shapes, instr.shape, module.str(text))
            .map_err(|e| self.caller.error(e.to_string()))?;
        let bytes = match literal.arrays.into_iter().next() {
            Some(Some(bytes)) if bytes.len() == width(array.element_type) => bytes,
            _ => {
                return Err(self.caller.error(format!(
                    "its computation's constant `{}` is not a scalar with a value",
                    module.name_of(id)
                )));
            }
        };
        let register = self.allocate(array.element_type);
        self.program.constants.push((register, bytes));
        Ok(register)
    }
}
