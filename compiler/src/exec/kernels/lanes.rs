//! Loops over elements, monomorphic in element type and operation.
//!
//! An elementwise operation is a pointer to one of these loops. The same loop
//! serves a whole array and a few registers of an embedded computation.

use super::scalar::Scalar;

/// A loop over one operand and the result.
pub(crate) type Loop1 = fn(&[u8], &mut [u8]);
/// A loop over two operands and the result.
pub(crate) type Loop2 = fn(&[u8], &[u8], &mut [u8]);
/// A loop over three operands and the result.
pub(crate) type Loop3 = fn(&[u8], &[u8], &[u8], &mut [u8]);

/// `out[i] = f(x[i])`.
#[inline(always)]
#[allow(clippy::inline_always, reason = "must use the caller's instructions")]
pub(super) fn map1<A: Scalar, R: Scalar>(x: &[u8], out: &mut [u8], f: impl Fn(A) -> R) {
    let elements = out.chunks_exact_mut(R::BYTES).zip(x.chunks_exact(A::BYTES));
    for (out, x) in elements {
        f(A::load(x)).store(out);
    }
}

/// `out[i] = f(x[i], y[i])`.
#[inline(always)]
#[allow(clippy::inline_always, reason = "must use the caller's instructions")]
pub(super) fn map2<A: Scalar, B: Scalar, R: Scalar>(
    x: &[u8],
    y: &[u8],
    out: &mut [u8],
    f: impl Fn(A, B) -> R,
) {
    let elements = out
        .chunks_exact_mut(R::BYTES)
        .zip(x.chunks_exact(A::BYTES))
        .zip(y.chunks_exact(B::BYTES));
    for ((out, x), y) in elements {
        f(A::load(x), B::load(y)).store(out);
    }
}

/// `out[i] = f(x[i], y[i], z[i])`.
#[inline(always)]
#[allow(clippy::inline_always, reason = "must use the caller's instructions")]
pub(super) fn map3<A: Scalar, B: Scalar, C: Scalar, R: Scalar>(
    x: &[u8],
    y: &[u8],
    z: &[u8],
    out: &mut [u8],
    f: impl Fn(A, B, C) -> R,
) {
    let elements = out
        .chunks_exact_mut(R::BYTES)
        .zip(x.chunks_exact(A::BYTES))
        .zip(y.chunks_exact(B::BYTES))
        .zip(z.chunks_exact(C::BYTES));
    for (((out, x), y), z) in elements {
        f(A::load(x), B::load(y), C::load(z)).store(out);
    }
}

/// A loop to be run with the best vector instructions of the machine. None of them fuses or
/// reorders anything: results are the same on every machine.
struct Vectorized<F>(F);

impl<F: FnOnce()> pulp::WithSimd for Vectorized<F> {
    type Output = ();

    #[inline(always)]
    #[allow(clippy::inline_always, reason = "must use the dispatched instructions")]
    fn with_simd<S: pulp::Simd>(self, _: S) {
        (self.0)();
    }
}

/// Runs a loop with the best vector instructions.
pub(super) fn vectorized(f: impl FnOnce()) {
    pulp::Arch::new().dispatch(Vectorized(f));
}

/// [`map1`] with the best vector instructions.
pub(super) fn vector1<A: Scalar, R: Scalar>(x: &[u8], out: &mut [u8], f: impl Fn(A) -> R) {
    vectorized(|| map1(x, out, f));
}

/// [`map2`] with the best vector instructions.
pub(super) fn vector2<A: Scalar, B: Scalar, R: Scalar>(
    x: &[u8],
    y: &[u8],
    out: &mut [u8],
    f: impl Fn(A, B) -> R,
) {
    vectorized(|| map2(x, y, out, f));
}

/// [`map3`] with the best vector instructions.
pub(super) fn vector3<A: Scalar, B: Scalar, C: Scalar, R: Scalar>(
    x: &[u8],
    y: &[u8],
    z: &[u8],
    out: &mut [u8],
    f: impl Fn(A, B, C) -> R,
) {
    vectorized(|| map3(x, y, z, out, f));
}

/// Fills `out` with copies of `element`, whose length divides `out`'s.
pub(super) fn fill(element: &[u8], out: &mut [u8]) {
    if let [byte] = *element {
        out.fill(byte);
        return;
    }
    let Some(first) = out.get_mut(..element.len()) else {
        return;
    };
    first.copy_from_slice(element);
    // Doubling: each pass copies all that is filled so far.
    let mut filled = element.len();
    while filled < out.len() {
        let n = filled.min(out.len() - filled);
        out.copy_within(..n, filled);
        filled += n;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fill_repeats_the_element() {
        let mut out = [0; 9];
        fill(&[1, 2, 3], &mut out);
        assert_eq!(out, [1, 2, 3, 1, 2, 3, 1, 2, 3]);
        fill(&[7], &mut out);
        assert_eq!(out, [7; 9]);
        fill(&[1, 2], &mut []);
    }
}
