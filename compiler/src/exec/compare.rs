//! Outputs against expected ones, within tolerances.

use std::fmt;

use slabplan_ir::ElementType;

use crate::exec::array::HostArray;
use crate::exec::kernels;

/// How far two numbers may differ: `|given - expected| <= atol + rtol * |expected|`, as
/// `numpy.isclose` has it. NaN equals NaN, and infinities of one sign are equal.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tolerance {
    /// Relative to the expected number.
    pub rtol: f64,
    /// Absolute.
    pub atol: f64,
}

/// How one output differs from what is expected.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// Its name.
    pub name: String,
    /// Its type, `f32[2,3]`.
    pub type_name: String,
    /// Elements.
    pub elements: usize,
    /// Elements outside the tolerance.
    pub different: usize,
    /// The element that is furthest outside, or nearest to it.
    pub worst: Option<WorstElement>,
}

/// One element and what it should be.
#[derive(Clone, Debug, PartialEq)]
pub struct WorstElement {
    /// Where it is.
    pub index: Vec<u64>,
    /// What the program gave, (re, im).
    pub given: [f64; 2],
    /// What is expected.
    pub expected: [f64; 2],
    /// The difference over what is allowed: above 1 is outside. Infinite where nothing is allowed.
    pub excess: f64,
    is_complex: bool,
}

impl Comparison {
    /// Whether all elements are within the tolerance.
    pub fn is_close(&self) -> bool {
        self.different == 0
    }
}

/// Compares `given` with `expected`, which have the same type. O(elements).
pub fn compare(
    name: &str,
    given: &HostArray,
    expected: &HostArray,
    tolerance: Tolerance,
) -> Comparison {
    let (values, wanted) = (numbers(given), numbers(expected));
    let mut different = 0;
    let mut worst: Option<(usize, f64)> = None;
    for (i, (a, b)) in values.iter().zip(&wanted).enumerate() {
        let excess = excess(*a, *b, tolerance);
        if excess > 1.0 {
            different += 1;
        }
        if worst.is_none_or(|(_, w)| excess > w) {
            worst = Some((i, excess));
        }
    }
    Comparison {
        name: name.to_owned(),
        type_name: given.type_name(),
        elements: values.len(),
        different,
        worst: worst.map(|(i, excess)| WorstElement {
            index: index_of(i as u64, &given.dims),
            given: values[i],
            expected: wanted[i],
            excess,
            is_complex: given.element_type.is_complex(),
        }),
    }
}

/// The elements as (re, im).
fn numbers(array: &HostArray) -> Vec<[f64; 2]> {
    let complex = array.element_type.is_complex();
    let (to, width) = if complex {
        (ElementType::C128, 16)
    } else {
        (ElementType::F64, 8)
    };
    let mut wide = vec![0; array.len() * width];
    let converted = kernels::convert(array.element_type, to, &array.data, &mut wide);
    debug_assert!(converted, "every type converts to f64 or c128");
    let number = |bytes: &[u8]| f64::from_le_bytes(std::array::from_fn(|i| bytes[i]));
    wide.chunks_exact(width)
        .map(|c| [number(c), if complex { number(&c[8..]) } else { 0.0 }])
        .collect()
}

fn excess(a: [f64; 2], b: [f64; 2], tolerance: Tolerance) -> f64 {
    let is_nan = |x: [f64; 2]| x[0].is_nan() || x[1].is_nan();
    if a == b || (is_nan(a) && is_nan(b)) {
        return 0.0;
    }
    let size = |x: [f64; 2]| x[0].hypot(x[1]);
    if !size(a).is_finite() || !size(b).is_finite() {
        return f64::INFINITY;
    }
    let difference = size([a[0] - b[0], a[1] - b[1]]);
    let allowed = tolerance.atol + tolerance.rtol * size(b);
    if allowed > 0.0 {
        difference / allowed
    } else {
        f64::INFINITY
    }
}

fn index_of(mut number: u64, dims: &[u64]) -> Vec<u64> {
    let mut index = vec![0; dims.len()];
    for (i, &dim) in index.iter_mut().zip(dims).rev() {
        *i = number % dim;
        number /= dim;
    }
    index
}

impl fmt::Display for Comparison {
    /// One line: `out0 f32[2,3]: 1 of 6 elements differ; worst at [1,2]: 3.5, expected 4 (...)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: ", self.name, self.type_name)?;
        if self.is_close() {
            write!(f, "{} elements agree", self.elements)?;
        } else {
            write!(f, "{} of {} elements differ", self.different, self.elements)?;
        }
        match &self.worst {
            Some(worst) if worst.excess > 0.0 => write!(f, "; worst at {worst}"),
            _ => Ok(()),
        }
    }
}

impl fmt::Display for WorstElement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = |[re, im]: [f64; 2]| {
            if self.is_complex {
                format!("({re}, {im})")
            } else {
                re.to_string()
            }
        };
        write!(
            f,
            "{:?}: {}, expected {} ({:.3} of the tolerance)",
            self.index,
            number(self.given),
            number(self.expected),
            self.excess
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn f32s(values: &[f32]) -> HostArray {
        let data = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        HostArray::new(ElementType::F32, &[values.len() as u64], data).unwrap()
    }

    const TOLERANCE: Tolerance = Tolerance {
        rtol: 0.01,
        atol: 0.001,
    };

    #[test]
    fn tolerance_is_relative_to_the_expected_number() {
        // |110 - 100| > 1.001, |99.5 - 100| <= 1.001
        let c = compare(
            "out0",
            &f32s(&[110.0, 99.5]),
            &f32s(&[100.0, 100.0]),
            TOLERANCE,
        );
        assert_eq!((c.elements, c.different), (2, 1));
        let worst = c.worst.as_ref().unwrap();
        assert_eq!(worst.index, [0]);
        assert!((worst.excess - 10.0 / 1.001).abs() < 1e-9);
        assert_eq!(
            c.to_string(),
            "out0 f32[2]: 1 of 2 elements differ; worst at [0]: 110, expected 100 (9.990 of the tolerance)"
        );
    }

    #[test]
    fn nan_and_infinity_as_numpy_has_them() {
        let (nan, inf) = (f32::NAN, f32::INFINITY);
        let close = |a, b| compare("x", &f32s(&[a]), &f32s(&[b]), TOLERANCE).is_close();
        assert!(close(nan, nan));
        assert!(!close(nan, 1.0));
        assert!(!close(1.0, nan));
        assert!(close(inf, inf));
        assert!(!close(inf, -inf));
        assert!(!close(1e38, inf));
        assert!(close(0.0, -0.0));
    }

    #[test]
    fn every_type_is_compared_by_value() {
        let byte = |ty, b| HostArray::new(ty, &[1], vec![b]).unwrap();
        for ty in [ElementType::Pred, ElementType::S4, ElementType::U8] {
            assert!(compare("x", &byte(ty, 1), &byte(ty, 1), TOLERANCE).is_close());
            assert!(!compare("x", &byte(ty, 1), &byte(ty, 0), TOLERANCE).is_close());
        }
        // f8e4m3fn: 0x38 is 1, 0x40 is 2.
        let f8 = |b| byte(ElementType::F8e4m3fn, b);
        let worst = compare("x", &f8(0x40), &f8(0x38), TOLERANCE).worst.unwrap();
        assert_eq!((worst.given[0], worst.expected[0]), (2.0, 1.0));
        // Complex: by the size of the difference.
        let complex = |re: f32, im: f32| {
            let data = [re, im].iter().flat_map(|v| v.to_le_bytes()).collect();
            HostArray::new(ElementType::C64, &[], data).unwrap()
        };
        assert!(compare("x", &complex(100.0, 0.5), &complex(100.0, 0.0), TOLERANCE).is_close());
        assert!(!compare("x", &complex(100.0, 1.5), &complex(100.0, 0.0), TOLERANCE).is_close());
    }

    #[test]
    fn places_are_given_as_indices() {
        assert_eq!(index_of(23, &[2, 3, 4]), [1, 2, 3]);
        assert_eq!(index_of(0, &[]), [] as [u64; 0]);
    }
}
