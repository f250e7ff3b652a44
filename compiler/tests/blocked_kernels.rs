//! Kernels that go through large arrays in blocks, at sizes around those of the blocks, against the
//! definition. Values are small integers, so that sums are exact in any order.

use slabplan::exec::{ExecConfig, Executable, HostArray, reference_plan};
use slabplan_ir::ElementType;

fn values(n: usize) -> Vec<f32> {
    (0..n).map(|i| (i * 37 % 19) as f32 - 9.0).collect()
}

fn f32s(values: &[f32], dims: &[usize]) -> HostArray {
    let data = values.iter().flat_map(|v| v.to_le_bytes()).collect();
    let dims: Vec<u64> = dims.iter().map(|&d| d as u64).collect();
    HostArray::new(ElementType::F32, &dims, data).unwrap()
}

fn list(numbers: &[usize]) -> String {
    let numbers: Vec<String> = numbers.iter().map(usize::to_string).collect();
    numbers.join(",")
}

fn run(text: &str, input: &HostArray) -> HostArray {
    let module = slabplan_ir::text::parse(text)
        .into_result()
        .unwrap_or_else(|e| panic!("{e:?}\n{text}"));
    let plan = reference_plan(&module).unwrap();
    let mut executable = Executable::new(&module, &plan, ExecConfig::default()).unwrap();
    executable
        .execute(std::slice::from_ref(input))
        .unwrap()
        .remove(0)
}

/// The index of element `at` of a row-major array.
fn index(at: usize, dims: &[usize]) -> Vec<usize> {
    let mut index = vec![0; dims.len()];
    let mut rest = at;
    for (i, &n) in index.iter_mut().zip(dims).rev() {
        *i = rest % n;
        rest /= n;
    }
    index
}

fn position(index: &[usize], dims: &[usize]) -> usize {
    index.iter().zip(dims).fold(0, |at, (&i, &n)| at * n + i)
}

/// Sums `dims` over `along` where the operand is laid out `minor_to_major`, and compares.
#[track_caller]
fn check_sum(dims: &[usize], along: &[usize], minor_to_major: &[usize]) {
    let kept: Vec<usize> = (0..dims.len()).filter(|d| !along.contains(d)).collect();
    let out_dims: Vec<usize> = kept.iter().map(|&d| dims[d]).collect();
    let text = format!(
        "HloModule sums
add {{ x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT r = f32[] add(x, y) }}
ENTRY e {{
  x = f32[{}]{{{}}} parameter(0)
  one = f32[] constant(1)
  ROOT r = f32[{}] reduce(x, one), dimensions={{{}}}, to_apply=add
}}",
        list(dims),
        list(minor_to_major),
        list(&out_dims),
        list(along)
    );
    let x = values(dims.iter().product());
    let mut expected = vec![1f32; out_dims.iter().product()];
    for (at, v) in x.iter().enumerate() {
        let index = index(at, dims);
        let to: Vec<usize> = kept.iter().map(|&d| index[d]).collect();
        expected[position(&to, &out_dims)] += v;
    }
    let found = run(&text, &f32s(&x, dims));
    assert!(
        found == f32s(&expected, &out_dims),
        "{dims:?} over {along:?} in {minor_to_major:?}"
    );
}

#[test]
fn sums_over_rows() {
    for row in [1, 15, 16, 128, 255, 256, 257, 600, 65_536, 65_546, 131_200] {
        check_sum(&[3, row], &[1], &[1, 0]);
    }
    // Several rows to one sum, that do not run into each other.
    for row in [20, 130, 40_000] {
        check_sum(&[5, 3, row], &[0, 2], &[2, 1, 0]);
    }
    check_sum(&[70, 1, 200], &[0, 1, 2], &[2, 1, 0]);
    check_sum(&[200, 6], &[0], &[0, 1]);
}

#[test]
fn sums_over_columns() {
    for columns in [1, 15, 16, 256, 2047, 2048, 2049, 5000] {
        check_sum(&[7, columns], &[0], &[1, 0]);
    }
    check_sum(&[4, 6, 140], &[1], &[2, 1, 0]);
    check_sum(&[4, 140, 6], &[2], &[1, 2, 0]);
    check_sum(&[300, 5], &[1], &[0, 1]);
    check_sum(&[0, 20], &[0], &[1, 0]);
    check_sum(&[20, 0], &[0], &[1, 0]);
}

#[test]
fn transposes() {
    let cases: [(&[usize], &[usize]); 6] = [
        (&[3, 5], &[1, 0]),
        (&[17, 33], &[1, 0]),
        (&[4, 70, 50], &[2, 0, 1]),
        (&[20, 30, 4], &[2, 1, 0]),
        (&[6, 16, 3, 18], &[3, 0, 2, 1]),
        (&[600, 500], &[1, 0]),
    ];
    for (dims, permutation) in cases {
        let out_dims: Vec<usize> = permutation.iter().map(|&d| dims[d]).collect();
        let text = format!(
            "HloModule moved\nENTRY e {{\n  x = f32[{}] parameter(0)\n  \
             ROOT r = f32[{}] transpose(x), dimensions={{{}}}\n}}",
            list(dims),
            list(&out_dims),
            list(permutation)
        );
        let x = values(dims.iter().product());
        let expected: Vec<f32> = (0..x.len())
            .map(|at| {
                let to = index(at, &out_dims);
                let mut from = vec![0; dims.len()];
                for (i, &d) in permutation.iter().enumerate() {
                    from[d] = to[i];
                }
                x[position(&from, dims)]
            })
            .collect();
        let found = run(&text, &f32s(&x, dims));
        assert!(
            found == f32s(&expected, &out_dims),
            "{dims:?} {permutation:?}"
        );
    }
}

/// A fusion with everything that a loop folds into its reads: broadcast, transpose, slice with a
/// stride, reverse, iota, a value used at two places, reshapes of the argument and of the result.
#[test]
fn one_loop_for_moved_operands() {
    let text = "HloModule fused
f { x = f32[6,40] parameter(0)
  cube = f32[2,3,40] reshape(x)
  turned = f32[2,3,40] reverse(cube), dimensions={1,2}
  doubled = f32[2,3,40] add(turned, turned)
  swapped = f32[40,3,2] transpose(doubled), dimensions={2,1,0}
  column = f32[2,3,1] slice(cube), slice={[0:2], [0:3], [7:8]}
  flat = f32[2,3] reshape(column)
  squared = f32[2,3] multiply(flat, flat)
  spread = f32[40,3,2] broadcast(squared), dimensions={2,1}
  place = f32[40,3,2] iota(), iota_dimension=0
  sum = f32[40,3,2] add(swapped, spread)
  all = f32[40,3,2] subtract(sum, place)
  part = f32[20,3,2] slice(all), slice={[1:40:2], [0:3], [0:2]}
  ROOT r = f32[20,6] reshape(part)
}
ENTRY e {
  x = f32[6,40] parameter(0)
  ROOT r = f32[20,6] fusion(x), kind=kLoop, calls=f
}";
    let x = values(240);
    let at = |a: usize, b: usize, c: usize| x[(a * 3 + b) * 40 + c];
    let mut expected = Vec::new();
    for i in 0..20 {
        for b in 0..3 {
            for a in 0..2 {
                let c = 2 * i + 1;
                let turned = at(a, 2 - b, 39 - c);
                expected.push(2.0 * turned + at(a, b, 7) * at(a, b, 7) - c as f32);
            }
        }
    }
    assert_eq!(run(text, &f32s(&x, &[6, 40])), f32s(&expected, &[20, 6]));
}
