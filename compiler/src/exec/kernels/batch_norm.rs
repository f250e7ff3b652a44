//! `batch-norm-training`, `batch-norm-inference` and `batch-norm-grad`.

use slabplan_ir::Opcode;
use slabplan_ir::attr::AttrName;

use super::prepare::{Prepare, dims};
use super::real::Real;
use super::scalar::{Scalar, match_real};
use super::{ArrayMut, ArrayRef, KernelError, Run};

#[derive(Debug)]
struct BatchNorm {
    /// Elements before, along and after the feature dimension.
    outer: usize,
    features: usize,
    inner: usize,
    epsilon: f64,
    run: fn(&BatchNorm, &[ArrayRef<'_>], &mut [ArrayMut<'_>]),
}

/// Prepares one of the three. Sums are taken in double precision.
pub(super) fn prepare(p: &Prepare<'_>) -> Result<Box<dyn Run>, KernelError> {
    let (operands, results) = (p.operands()?, p.results()?);
    let x = operands[0];
    let ty = x.element_type;
    let sizes = dims(x);
    let d = p.size(AttrName::FeatureIndex)?;
    p.require(d < sizes.len(), "feature_index is not a dimension")?;
    let training = p.instr.opcode == Opcode::BatchNormTraining;
    let inference = p.instr.opcode == Opcode::BatchNormInference;
    // Every array is either as large as the first operand or has one element a feature.
    let whole = |i: usize| !inference && !training && i == 4;
    let fits = |shape: &slabplan_ir::ArrayShape, whole: bool| {
        shape.element_type == ty
            && if whole {
                shape.dims == x.dims
            } else {
                shape.dims[..] == [x.dims[d]]
            }
    };
    p.require(
        operands
            .iter()
            .enumerate()
            .skip(1)
            .all(|(i, o)| fits(o, whole(i)))
            && results.iter().enumerate().all(|(i, r)| fits(r, i == 0))
            && results.len() == if inference { 1 } else { 3 },
        "operands and results do not match",
    )?;
    let epsilon = p.word(AttrName::Epsilon).and_then(|e| e.parse().ok());
    let run = match_real!(ty,
        T => match p.instr.opcode {
            _ if training => BatchNorm::train::<T>,
            _ if inference => BatchNorm::infer::<T>,
            _ => BatchNorm::differentiate::<T>,
        },
        _ => return Err(p.error(format!("not defined on {ty}"))));
    Ok(Box::new(BatchNorm {
        outer: sizes[..d].iter().product(),
        features: sizes[d],
        inner: sizes[d + 1..].iter().product(),
        epsilon: epsilon.ok_or_else(|| p.error("has no epsilon".into()))?,
        run,
    }))
}

impl Run for BatchNorm {
    fn run(&self, operands: &[ArrayRef<'_>], results: &mut [ArrayMut<'_>], _: &mut [u8]) {
        (self.run)(self, operands, results);
    }
}

fn get<T: Real + Scalar>(array: &ArrayRef<'_>, i: usize) -> f64 {
    T::load(&array.data[i * T::BYTES..][..T::BYTES]).to_f64()
}

fn set<T: Real + Scalar>(array: &mut ArrayMut<'_>, i: usize, value: f64) {
    T::from_f64(value).store(&mut array.data[i * T::BYTES..][..T::BYTES]);
}

impl BatchNorm {
    /// Places of the elements of one feature.
    fn elements(&self, feature: usize) -> impl Iterator<Item = usize> + '_ {
        (0..self.outer).flat_map(move |o| {
            let start = (o * self.features + feature) * self.inner;
            start..start + self.inner
        })
    }

    /// Elements of one feature.
    fn count(&self) -> f64 {
        (self.outer * self.inner) as f64
    }

    fn train<T: Real + Scalar>(&self, x: &[ArrayRef<'_>], out: &mut [ArrayMut<'_>]) {
        for f in 0..self.features {
            let sum: f64 = self.elements(f).map(|i| get::<T>(&x[0], i)).sum();
            let mean = sum / self.count();
            let squares: f64 = self
                .elements(f)
                .map(|i| (get::<T>(&x[0], i) - mean).powi(2))
                .sum();
            let variance = squares / self.count();
            self.normalise::<T>(f, x, mean, variance, &mut out[0]);
            set::<T>(&mut out[1], f, mean);
            set::<T>(&mut out[2], f, variance);
        }
    }

    fn infer<T: Real + Scalar>(&self, x: &[ArrayRef<'_>], out: &mut [ArrayMut<'_>]) {
        for f in 0..self.features {
            let (mean, variance) = (get::<T>(&x[3], f), get::<T>(&x[4], f));
            self.normalise::<T>(f, x, mean, variance, &mut out[0]);
        }
    }

    fn normalise<T: Real + Scalar>(
        &self,
        f: usize,
        x: &[ArrayRef<'_>],
        mean: f64,
        variance: f64,
        out: &mut ArrayMut<'_>,
    ) {
        let scale = get::<T>(&x[1], f) / (variance + self.epsilon).sqrt();
        let offset = get::<T>(&x[2], f);
        for i in self.elements(f) {
            set::<T>(out, i, (get::<T>(&x[0], i) - mean) * scale + offset);
        }
    }

    /// The derivatives by operand, scale and offset.
    fn differentiate<T: Real + Scalar>(&self, x: &[ArrayRef<'_>], out: &mut [ArrayMut<'_>]) {
        for f in 0..self.features {
            let (scale, mean) = (get::<T>(&x[1], f), get::<T>(&x[2], f));
            let r = 1.0 / (get::<T>(&x[3], f) + self.epsilon).sqrt();
            let (mut sum, mut products) = (0.0, 0.0);
            for i in self.elements(f) {
                let gradient = get::<T>(&x[4], i);
                sum += gradient;
                products += gradient * (get::<T>(&x[0], i) - mean);
            }
            for i in self.elements(f) {
                let centred = get::<T>(&x[0], i) - mean;
                let own = get::<T>(&x[4], i) - sum / self.count();
                let derivative = scale * r * (own - centred * r * r * products / self.count());
                set::<T>(&mut out[0], i, derivative);
            }
            set::<T>(&mut out[1], f, products * r);
            set::<T>(&mut out[2], f, sum);
        }
    }
}
