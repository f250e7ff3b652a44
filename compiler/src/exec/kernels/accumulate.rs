//! Adding many elements to a few accumulators, which stay in registers meanwhile.

use slabplan_ir::{ElementType, Opcode};

use super::lanes::vectorized;
use super::real::Real;
use super::scalar::{Scalar, match_real};

/// Accumulators side by side.
pub(super) const ACCUMULATORS: usize = 64;

/// Adds elements, a multiple of [`ACCUMULATORS`], to the accumulators: each to every 64th.
pub(super) type Accumulate = fn(&mut [u8], &[u8]);

/// The loop of an associative operation on elements of type `ty`, where there is one.
pub(super) fn accumulate(opcode: Opcode, ty: ElementType) -> Option<Accumulate> {
    match_real!(ty, T => real::<T>(opcode), _ => None)
}

fn real<T: Real + Scalar>(opcode: Opcode) -> Option<Accumulate> {
    Some(match opcode {
        Opcode::Add => |sums, x| fold::<T>(sums, x, |a, b| a + b),
        Opcode::Multiply => |sums, x| fold::<T>(sums, x, |a, b| a * b),
        Opcode::Maximum => |sums, x| fold::<T>(sums, x, Real::max_nan),
        Opcode::Minimum => |sums, x| fold::<T>(sums, x, Real::min_nan),
        _ => return None,
    })
}

fn fold<T: Scalar>(accumulators: &mut [u8], elements: &[u8], f: impl Fn(T, T) -> T) {
    vectorized(|| {
        let mut sums: [T; ACCUMULATORS] =
            std::array::from_fn(|i| T::load(&accumulators[i * T::BYTES..][..T::BYTES]));
        for line in elements.chunks_exact(ACCUMULATORS * T::BYTES) {
            for (sum, x) in sums.iter_mut().zip(line.chunks_exact(T::BYTES)) {
                *sum = f(*sum, T::load(x));
            }
        }
        for (sum, out) in sums.iter().zip(accumulators.chunks_exact_mut(T::BYTES)) {
            sum.store(out);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_accumulator_gets_every_sixty_fourth() {
        let bytes = |values: Vec<f32>| -> Vec<u8> {
            values.into_iter().flat_map(f32::to_le_bytes).collect()
        };
        let lines = (0..3 * ACCUMULATORS).map(|i| i as f32).collect();
        let mut sums = bytes(vec![0.5; ACCUMULATORS]);
        let add = accumulate(Opcode::Add, ElementType::F32).unwrap();
        add(&mut sums, &bytes(lines));
        // i + (i + 64) + (i + 128)
        let expected = (0..ACCUMULATORS).map(|i| 3.0 * i as f32 + 192.5).collect();
        assert_eq!(sums, bytes(expected));
        let mut most = bytes(vec![1.0; ACCUMULATORS]);
        let mut line = vec![0.0; ACCUMULATORS];
        line[5] = f32::NAN;
        line[6] = 2.0;
        let maximum = accumulate(Opcode::Maximum, ElementType::F32).unwrap();
        maximum(&mut most, &bytes(line));
        let at = |i: usize| f32::load(&most[4 * i..][..4]);
        assert!(at(5).is_nan());
        assert_eq!([at(4), at(6)], [1.0, 2.0]);
        assert!(accumulate(Opcode::Subtract, ElementType::F32).is_none());
    }
}
