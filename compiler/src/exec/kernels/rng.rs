//! `rng-bit-generator`: counter-based random bits, the same as XLA's on any machine.
//!
//! Salmon, Moraes, Dror, Shaw: "Parallel Random Numbers: As Easy as 1, 2, 3" (SC 2011). How
//! counters and outputs are assigned to elements follows XLA's `hlo/builder/lib/prng.cc`.

use slabplan_ir::ElementType;
use slabplan_ir::attr::AttrName;

use super::prepare::{Prepare, dims};
use super::scalar::width;
use super::{ArrayMut, ArrayRef, KernelError, Run};

#[derive(Clone, Copy, Debug)]
enum Algorithm {
    ThreeFry(Halves),
    Philox,
}

#[derive(Debug)]
struct RngBitGenerator {
    algorithm: Algorithm,
    width: usize,
    /// For elements narrower than a byte, the bits that count.
    mask: u64,
    /// Words of the state.
    state: usize,
    elements: usize,
}

/// Prepares an `rng-bit-generator`; the default algorithm is Philox, as on XLA:CPU.
pub(super) fn prepare(p: &Prepare<'_>) -> Result<Box<dyn Run>, KernelError> {
    let state = p.operand(0)?;
    let &[new_state, bits] = &p.results()?[..] else {
        return Err(p.error("does not return a state and bits".into()));
    };
    let ty = bits.element_type;
    let words = state.dims.first().copied().unwrap_or(0);
    p.require(
        state.element_type == ElementType::U64
            && state.rank() == 1
            && new_state.dims == state.dims
            && new_state.element_type == ElementType::U64,
        "the state is not a vector of u64",
    )?;
    p.require(ty.is_integer(), "random bits are not integers")?;
    let algorithm = match p.word(AttrName::Algorithm) {
        Some("rng_three_fry") => Algorithm::ThreeFry(Halves::new(&dims(bits))),
        Some("rng_philox" | "rng_default") => Algorithm::Philox,
        other => return Err(p.error(format!("algorithm {other:?} is not implemented"))),
    };
    p.require(
        words == 2 || (words == 3 && matches!(algorithm, Algorithm::Philox)),
        "the state has a wrong number of words",
    )?;
    Ok(Box::new(RngBitGenerator {
        algorithm,
        width: width(ty),
        mask: u64::MAX >> (64 - ty.bits()),
        state: words as usize,
        elements: p.element_count(bits)?,
    }))
}

impl Run for RngBitGenerator {
    fn run(&self, operands: &[ArrayRef<'_>], results: &mut [ArrayMut<'_>], _: &mut [u8]) {
        let [new_state, bits] = results else {
            unreachable!("two results are checked when the kernel is prepared");
        };
        let word = |i: usize| {
            let bytes = &operands[0].data[i * 8..][..8];
            u64::from_le_bytes(bytes.try_into().expect("eight bytes"))
        };
        let key = word(0);
        let mut state = [key, 0, 0];
        match self.algorithm {
            Algorithm::ThreeFry(halves) => {
                let steps = self.three_fry(halves, key, word(1), bits.data);
                state[1] = word(1).wrapping_add(steps as u64);
            }
            Algorithm::Philox => {
                // The counter's low word comes first in a state of three words, else the key is its high one.
                let high = if self.state == 3 { word(2) } else { key };
                let counter = u128::from(high) << 64 | u128::from(word(1));
                let steps = self.philox(key, counter, bits.data);
                let counter = counter.wrapping_add(steps as u128);
                state[1..].copy_from_slice(&[counter as u64, (counter >> 64) as u64]);
            }
        }
        for (out, word) in new_state.data.chunks_exact_mut(8).zip(state) {
            out.copy_from_slice(&word.to_le_bytes());
        }
    }
}

impl RngBitGenerator {
    /// Fills `out` and returns how many counter values that took.
    fn three_fry(&self, halves: Halves, key: u64, counter: u64, out: &mut [u8]) -> usize {
        let wide = self.width == 8;
        for (i, out) in out.chunks_exact_mut(self.width).enumerate() {
            let (step, half) = if wide { (i, 0) } else { halves.of(i) };
            let block = three_fry_2x32(counter.wrapping_add(step as u64), key);
            let value = if wide {
                u64::from(block[0]) | u64::from(block[1]) << 32
            } else {
                u64::from(block[half])
            };
            self.store(value, out);
        }
        if wide { self.elements } else { halves.count() }
    }

    /// Fills `out` and returns how many counter values that took.
    fn philox(&self, key: u64, counter: u128, out: &mut [u8]) -> usize {
        let per_block = if self.width == 8 { 2 } else { 4 };
        let mut steps = 0;
        for chunk in out.chunks_mut(per_block * self.width) {
            let block = philox_4x32(counter.wrapping_add(steps as u128), key);
            steps += 1;
            for (i, out) in chunk.chunks_exact_mut(self.width).enumerate() {
                let value = if per_block == 2 {
                    u64::from(block[2 * i]) | u64::from(block[2 * i + 1]) << 32
                } else {
                    u64::from(block[i])
                };
                self.store(value, out);
            }
        }
        steps
    }

    fn store(&self, value: u64, out: &mut [u8]) {
        out.copy_from_slice(&(value & self.mask).to_le_bytes()[..self.width]);
    }
}

/// How an array is cut in two: the two words of a counter value go to neighbours along one
/// dimension, the first even one or else the longest.
#[derive(Clone, Copy, Debug)]
struct Halves {
    outer: usize,
    size: usize,
    inner: usize,
}

impl Halves {
    fn new(sizes: &[usize]) -> Self {
        let longest = || {
            let longest = sizes.iter().max()?;
            sizes.iter().position(|n| n == longest)
        };
        match sizes
            .iter()
            .position(|n| n.is_multiple_of(2))
            .or_else(longest)
        {
            None => Self {
                outer: 1,
                size: 1,
                inner: 1,
            },
            Some(d) => Self {
                outer: sizes[..d].iter().product(),
                size: sizes[d],
                inner: sizes[d + 1..].iter().product(),
            },
        }
    }

    /// Counter values needed.
    fn count(self) -> usize {
        self.outer * self.size.div_ceil(2) * self.inner
    }

    /// The counter value and the word of element `i`.
    fn of(self, i: usize) -> (usize, usize) {
        let along = i / self.inner % self.size;
        let outer = i / (self.inner * self.size);
        let step = (outer * self.size.div_ceil(2) + along / 2) * self.inner + i % self.inner;
        (step, along % 2)
    }
}

/// Threefry-2x32 with 20 rounds.
fn three_fry_2x32(counter: u64, key: u64) -> [u32; 2] {
    const ROTATIONS: [[u32; 4]; 2] = [[13, 15, 26, 6], [17, 29, 16, 24]];
    const PARITY: u32 = 0x1BD1_1BDA;
    let (k0, k1) = (key as u32, (key >> 32) as u32);
    let keys = [k0, k1, PARITY ^ k0 ^ k1];
    let mut x = [counter as u32, (counter >> 32) as u32];
    x[0] = x[0].wrapping_add(keys[0]);
    x[1] = x[1].wrapping_add(keys[1]);
    for group in 0..5usize {
        for rotation in ROTATIONS[group % 2] {
            x[0] = x[0].wrapping_add(x[1]);
            x[1] = x[1].rotate_left(rotation) ^ x[0];
        }
        x[0] = x[0].wrapping_add(keys[(group + 1) % 3]);
        x[1] = x[1]
            .wrapping_add(keys[(group + 2) % 3])
            .wrapping_add(group as u32 + 1);
    }
    x
}

/// Philox-4x32 with 10 rounds.
pub(super) fn philox_4x32(counter: u128, key: u64) -> [u32; 4] {
    const MULTIPLIERS: [u64; 2] = [0xD251_1F53, 0xCD9E_8D57];
    const WEYL: [u32; 2] = [0x9E37_79B9, 0xBB67_AE85];
    let mut x = [0, 32, 64, 96].map(|shift| (counter >> shift) as u32);
    let mut key = [key as u32, (key >> 32) as u32];
    for _ in 0..10 {
        let product0 = u64::from(x[0]) * MULTIPLIERS[0];
        let product1 = u64::from(x[2]) * MULTIPLIERS[1];
        let high = |product: u64| (product >> 32) as u32;
        x = [
            high(product1) ^ x[1] ^ key[0],
            product1 as u32,
            high(product0) ^ x[3] ^ key[1],
            product0 as u32,
        ];
        key = [key[0].wrapping_add(WEYL[0]), key[1].wrapping_add(WEYL[1])];
    }
    x
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_answers_of_the_random123_library() {
        // From its file `kat_vectors`: rounds 20 and 10, counter and key all zeros and all ones.
        assert_eq!(three_fry_2x32(0, 0), [0x6b20_0159, 0x99ba_4efe]);
        assert_eq!(
            three_fry_2x32(u64::MAX, u64::MAX),
            [0x1cb9_96fc, 0xbb00_2be7]
        );
        assert_eq!(
            philox_4x32(0, 0),
            [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]
        );
        assert_eq!(
            philox_4x32(u128::MAX, u64::MAX),
            [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]
        );
    }
}
