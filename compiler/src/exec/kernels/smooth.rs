//! Exponential functions of `f32` without branches, so that loops over them become vector code.
//!
//! Polynomials and reductions of the argument as in the Cephes library (Moshier, "Methods and
//! Programs for Mathematical Functions", 1989); errors are below two units in the last place.

/// Adding it leaves an integer in the low bits: 1.5 * 2^23.
const SHIFT: f32 = 12_582_912.0;

/// The exponential.
#[inline(always)]
#[allow(clippy::inline_always, reason = "must use the caller's instructions")]
pub(super) fn exp(x: f32) -> f32 {
    // Past these the result is infinite or rounds to zero.
    let (y, n) = reduced_exp(x.clamp(-105.0, 89.5));
    // Two factors, since 2^n alone may be too large or small.
    let half = n >> 1;
    y * power_of_two(half) * power_of_two(n.wrapping_sub(half))
}

/// `y` near one and `n` such that `y * 2^n` is the exponential of `x`, neither large nor small.
#[inline(always)]
#[allow(clippy::inline_always, reason = "must use the caller's instructions")]
#[allow(clippy::excessive_precision, reason = "the digits of the source")]
fn reduced_exp(x: f32) -> (f32, i32) {
    let shifted = x.mul_add(std::f32::consts::LOG2_E, SHIFT);
    let n = shifted - SHIFT;
    let r = n.mul_add(-0.693_359_375, x);
    let r = n.mul_add(2.121_944_4e-4, r);
    let mut p: f32 = 1.987_569_15e-4;
    for c in [
        1.398_199_950_7e-3,
        8.333_451_907_3e-3,
        4.166_579_589_4e-2,
        1.666_666_545_9e-1,
        5.000_000_120_1e-1,
    ] {
        p = p.mul_add(r, c);
    }
    let y = p.mul_add(r * r, r) + 1.0;
    let n = (shifted.to_bits() as i32).wrapping_sub(SHIFT.to_bits() as i32);
    (y, n)
}

/// `2^n`, for `n` from -126 to 127.
#[inline(always)]
#[allow(clippy::inline_always, reason = "must use the caller's instructions")]
fn power_of_two(n: i32) -> f32 {
    f32::from_bits((n.wrapping_add(127) as u32) << 23)
}

/// The hyperbolic tangent.
#[inline(always)]
#[allow(clippy::inline_always, reason = "must use the caller's instructions")]
#[allow(clippy::excessive_precision, reason = "the digits of the source")]
pub(super) fn tanh(x: f32) -> f32 {
    let magnitude = x.abs();
    // From 9.1 on the result rounds to one.
    let (y, n) = reduced_exp(2.0 * magnitude.min(10.0));
    let large = 1.0 - 2.0 / (y * power_of_two(n) + 1.0);
    let square = x * x;
    let mut p: f32 = -5.704_988_727_45e-3;
    for c in [
        2.063_908_879_54e-2,
        -5.373_971_555_31e-2,
        1.333_144_220_36e-1,
        -3.333_328_194_22e-1,
    ] {
        p = p.mul_add(square, c);
    }
    let small = (p * square).mul_add(magnitude, magnitude);
    let value = if magnitude > 0.625 { large } else { small };
    value.copysign(x)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Units in the last place between `found` and the exact value.
    fn error(found: f32, exact: f64) -> f64 {
        let nearest = exact as f32;
        let unit = f64::from(f32::from_bits(nearest.abs().to_bits() + 1) - nearest.abs());
        (f64::from(found) - exact).abs() / unit
    }

    #[test]
    fn close_to_the_functions_in_double_precision() {
        let (mut worst_exp, mut worst_tanh) = (0f64, 0f64);
        for i in -870_000..=887_000 {
            let x = i as f32 * 1e-4;
            worst_exp = worst_exp.max(error(exp(x), f64::from(x).exp()));
            let x = x * 0.1;
            worst_tanh = worst_tanh.max(error(tanh(x), f64::from(x).tanh()));
        }
        assert!(worst_exp < 2.0, "{worst_exp}");
        assert!(worst_tanh < 2.5, "{worst_tanh}");
    }

    #[test]
    fn limits() {
        assert_eq!(exp(f32::NEG_INFINITY), 0.0);
        assert_eq!(exp(-104.5), 0.0);
        assert_eq!(exp(0.0), 1.0);
        assert_eq!(exp(88.8), f32::INFINITY);
        assert_eq!(exp(f32::INFINITY), f32::INFINITY);
        assert!(exp(f32::NAN).is_nan());
        // A denormal result, and the largest finite one.
        assert!(error(exp(-100.0), (-100f64).exp()) < 1.0);
        assert!(error(exp(88.722), f64::from(88.722f32).exp()) < 2.0);
        assert_eq!(tanh(f32::INFINITY), 1.0);
        assert_eq!(tanh(-50.0), -1.0);
        assert_eq!(tanh(-0.0).to_bits(), (-0.0f32).to_bits());
        assert!(tanh(f32::NAN).is_nan());
    }
}
