//! `rng` and `rng-get-and-update-state`: random numbers that the program does not determine.
//!
//! XLA draws them from a state that lives as long as the process. Here a run must give the same results
//! again, so every such instruction has a key of its own, from its name, and draws the same numbers each
//! time it runs, in a loop too. Programs that need more use `rng-bit-generator`.

use slabplan_ir::attr::AttrName;
use slabplan_ir::{ElementType, number};

use super::convert::Convert;
use super::prepare::Prepare;
use super::rng::philox_4x32;
use super::scalar::width;
use super::{ArrayMut, ArrayRef, KernelError, Run};

#[derive(Clone, Copy, Debug)]
enum Distribution {
    /// Between the operands, the second excluded.
    Uniform,
    /// Mean and standard deviation.
    Normal,
}

#[derive(Debug)]
struct Rng {
    key: u64,
    distribution: Distribution,
    element_type: ElementType,
    from_f64: Convert,
}

#[derive(Debug)]
struct State {
    key: u64,
}

/// Prepares an `rng`.
pub(super) fn prepare(p: &Prepare<'_>) -> Result<Box<dyn Run>, KernelError> {
    let (a, b, result) = (p.operand(0)?, p.operand(1)?, p.result()?);
    let ty = result.element_type;
    p.require(
        a.element_type == ty && b.element_type == ty && a.rank() == 0 && b.rank() == 0,
        "its parameters are not two scalars of the result's type",
    )?;
    let distribution = match p.word(AttrName::Distribution) {
        Some("rng_uniform") => Distribution::Uniform,
        Some("rng_normal") if ty.is_float() => Distribution::Normal,
        other => return Err(p.error(format!("distribution {other:?} on {ty} is not executed"))),
    };
    let from_f64 = Convert::new(ElementType::F64, ty)
        .filter(|_| ty.is_float() || ty.is_integer())
        .ok_or_else(|| p.error(format!("not defined on {ty}")))?;
    Ok(Box::new(Rng {
        key: key(p),
        distribution,
        element_type: ty,
        from_f64,
    }))
}

/// Prepares an `rng-get-and-update-state`.
pub(super) fn prepare_state(p: &Prepare<'_>) -> Result<Box<dyn Run>, KernelError> {
    let result = p.result()?;
    p.require(
        result.element_type == ElementType::U64 && *result.dims == [2],
        "the state is not u64[2]",
    )?;
    Ok(Box::new(State { key: key(p) }))
}

/// FNV-1a of the instruction's name.
fn key(p: &Prepare<'_>) -> u64 {
    let name = p.module.name_of(p.id).bytes();
    name.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

impl Run for State {
    fn run(&self, _: &[ArrayRef<'_>], results: &mut [ArrayMut<'_>], _: &mut [u8]) {
        let (low, high) = results[0].data.split_at_mut(8);
        low.copy_from_slice(&self.key.to_le_bytes());
        high.copy_from_slice(&0u64.to_le_bytes());
    }
}

impl Run for Rng {
    fn run(&self, operands: &[ArrayRef<'_>], results: &mut [ArrayMut<'_>], _: &mut [u8]) {
        let ty = self.element_type;
        let w = width(ty);
        let is_float = ty.is_float();
        for (i, out) in results[0].data.chunks_exact_mut(w).enumerate() {
            let block = philox_4x32(i as u128, self.key);
            let bits = u64::from(block[0]) | u64::from(block[1]) << 32;
            if !is_float {
                let value = between(ty, operands[0].data, operands[1].data, bits);
                out.copy_from_slice(&value.to_le_bytes()[..w]);
                continue;
            }
            let read = |n: usize| number::decode_float(ty, number::read_bits(operands[n].data));
            let unit = unit(bits);
            let value = match self.distribution {
                Distribution::Uniform => {
                    // Rounding to a narrow type must not reach the upper end.
                    let value = read(0) + (read(1) - read(0)) * unit;
                    let mut bytes = [0; 8];
                    self.from_f64.apply(&value.to_le_bytes(), &mut bytes[..w]);
                    let rounded = number::decode_float(ty, number::read_bits(&bytes[..w]));
                    if rounded < read(1) { value } else { read(0) }
                }
                Distribution::Normal => {
                    // Box and Muller's transform.
                    let other = u64::from(block[2]) | u64::from(block[3]) << 32;
                    let radius = (-2.0 * (1.0 - unit).ln()).sqrt();
                    let angle = std::f64::consts::TAU * self::unit(other);
                    read(0) + read(1) * radius * angle.cos()
                }
            };
            self.from_f64.apply(&value.to_le_bytes(), out);
        }
    }
}

/// A number of `0..1` from the upper 53 bits.
fn unit(bits: u64) -> f64 {
    (bits >> 11) as f64 * (-53f64).exp2()
}

/// An integer of `a..b`; `a` where that is empty.
fn between(ty: ElementType, a: &[u8], b: &[u8], bits: u64) -> u64 {
    let wide = |bytes: &[u8]| {
        let mut wide = [0; 8];
        wide[..bytes.len()].copy_from_slice(bytes);
        u64::from_le_bytes(wide)
    };
    let extend = |x: u64| {
        let unused = 64 - ty.bits();
        if ty.is_signed_integer() {
            ((x << unused) as i64 >> unused) as u64
        } else {
            x
        }
    };
    let (a, b) = (extend(wide(a)), extend(wide(b)));
    let is_empty = if ty.is_signed_integer() {
        b as i64 <= a as i64
    } else {
        b <= a
    };
    if is_empty {
        return a;
    }
    a.wrapping_add(bits % b.wrapping_sub(a))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_stay_between() {
        let ty = ElementType::S8;
        for bits in 0..500 {
            let value = between(ty, &[0xFB], &[3], bits) as i64;
            assert!((-5..3).contains(&value), "{value}");
        }
        assert_eq!(between(ty, &[3], &[3], 77), 3);
        assert_eq!(
            f64::from_le_bytes(unit(u64::MAX).to_le_bytes()),
            1.0 - f64::EPSILON / 2.0
        );
    }
}
