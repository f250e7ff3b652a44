//! Random programs of the language's operations on tiny arrays.

use std::fmt::Write;

use slabplan_ir::ElementType;

use crate::exec::HostArray;

/// A program and arguments for it.
pub(super) struct Program {
    pub(super) text: String,
    pub(super) inputs: Vec<HostArray>,
}

/// The program of one seed.
pub(super) fn random(seed: u64) -> Program {
    let mut maker = Maker {
        dice: Dice(seed),
        body: String::new(),
        values: Vec::new(),
        inputs: Vec::new(),
    };
    for element in ["f32", "f32", "s32", "pred"] {
        maker.parameter(element);
    }
    for _ in 0..maker.dice.up_to(8) + 3 {
        maker.step();
    }
    maker.finish()
}

/// A deterministic source of numbers (splitmix64).
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// 0 to `n` - 1.
    fn up_to(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }
}

#[derive(Clone)]
struct Value {
    name: String,
    element: &'static str,
    dims: Vec<usize>,
}

struct Maker {
    dice: Dice,
    body: String,
    values: Vec<Value>,
    inputs: Vec<HostArray>,
}

fn list(dims: &[usize]) -> String {
    let numbers: Vec<String> = dims.iter().map(usize::to_string).collect();
    numbers.join(",")
}

impl Maker {
    fn parameter(&mut self, element: &'static str) {
        let dims: Vec<usize> = (0..self.dice.up_to(4))
            .map(|_| [1, 2, 3, 2][self.dice.up_to(4)])
            .collect();
        let n: usize = dims.iter().product();
        let number = self.inputs.len();
        let mut data = Vec::new();
        for _ in 0..n {
            let x = self.dice.up_to(41) as i32 - 20;
            match element {
                // Thirds and tenths are exact in no narrow type.
                "f32" => data.extend((x as f32 / 3.0 + 0.1).to_le_bytes()),
                "s32" => data.extend(x.to_le_bytes()),
                _ => data.push((x & 1) as u8),
            }
        }
        let kind = ElementType::from_name(element).unwrap();
        let as_u64: Vec<u64> = dims.iter().map(|&d| d as u64).collect();
        self.inputs
            .push(HostArray::new(kind, &as_u64, data).unwrap());
        self.add(element, dims, &format!("parameter({number})"));
    }

    fn add(&mut self, element: &'static str, dims: Vec<usize>, what: &str) -> Value {
        let name = format!("v{}", self.values.len());
        let _ = writeln!(self.body, "  {name} = {element}[{}] {what}", list(&dims));
        let value = Value {
            name,
            element,
            dims,
        };
        self.values.push(value.clone());
        value
    }

    /// Mostly one of the latest values.
    fn pick(&mut self) -> Value {
        let n = self.values.len();
        let back = if self.dice.up_to(3) == 0 {
            self.dice.up_to(n)
        } else {
            self.dice.up_to(3.min(n))
        };
        self.values[n - 1 - back].clone()
    }

    fn pick_ranked(&mut self) -> Option<Value> {
        let v = self.pick();
        (!v.dims.is_empty()).then_some(v)
    }

    /// A value of the same shape: an older one, or a broadcast scalar.
    fn partner(&mut self, v: &Value) -> Value {
        let fits: Vec<Value> = self
            .values
            .iter()
            .filter(|w| w.element == v.element && w.dims == v.dims)
            .cloned()
            .collect();
        if self.dice.up_to(3) > 0 {
            return fits[self.dice.up_to(fits.len())].clone();
        }
        self.filled(v.element, &v.dims)
    }

    fn scalar(&mut self, element: &'static str, text: &str) -> Value {
        self.add(element, Vec::new(), &format!("constant({text})"))
    }

    fn filled(&mut self, element: &'static str, dims: &[usize]) -> Value {
        let number = self.dice.up_to(3);
        let text = match element {
            "pred" => ["false", "true", "true"][number],
            _ => ["0", "1", "2"][number],
        };
        let scalar = self.scalar(element, text);
        self.broadcast(&scalar, dims.to_vec(), &[])
    }

    fn broadcast(&mut self, v: &Value, dims: Vec<usize>, map: &[usize]) -> Value {
        let what = format!("broadcast({}), dimensions={{{}}}", v.name, list(map));
        self.add(v.element, dims, &what)
    }

    fn step(&mut self) {
        match self.dice.up_to(22) {
            0 => self.negate(),
            1 | 2 => self.binary(),
            3 => self.convert(),
            4 | 5 => self.transpose(),
            6 | 7 => self.reshape(),
            8 | 9 => self.broadcast_more(),
            10..=12 => self.slice(),
            13 | 14 => self.concatenate(),
            15 | 16 => self.pad(),
            17 | 18 => self.reduce(),
            19 => self.select(),
            20 => self.slices_that_meet(),
            _ => self.filled_step(),
        }
    }

    fn negate(&mut self) {
        let v = self.pick();
        let op = if v.element == "pred" { "not" } else { "negate" };
        let n = self.add(v.element, v.dims.clone(), &format!("{op}({})", v.name));
        if self.dice.up_to(2) == 0 {
            self.add(v.element, v.dims, &format!("{op}({})", n.name));
        }
    }

    fn binary(&mut self) {
        let v = self.pick();
        let w = self.partner(&v);
        let op = match v.element {
            "pred" => ["and", "or", "xor"][self.dice.up_to(3)],
            _ => ["add", "multiply", "multiply", "maximum", "subtract"][self.dice.up_to(5)],
        };
        let (a, b) = if self.dice.up_to(2) == 0 {
            (&v, &w)
        } else {
            (&w, &v)
        };
        let what = format!("{op}({}, {})", a.name, b.name);
        self.add(v.element, v.dims, &what);
    }

    fn convert(&mut self) {
        let v = self.pick();
        let to = match v.element {
            "f32" => ["f32", "bf16", "f64"][self.dice.up_to(3)],
            "s32" => ["s32", "s64", "f32", "s8"][self.dice.up_to(4)],
            "pred" => ["pred", "s32"][self.dice.up_to(2)],
            "s8" | "s64" => "s32",
            _ => "f32",
        };
        self.add(to, v.dims, &format!("convert({})", v.name));
    }

    fn transpose(&mut self) {
        let Some(v) = self.pick_ranked() else {
            return;
        };
        let mut p: Vec<usize> = (0..v.dims.len()).collect();
        for i in (1..p.len()).rev() {
            p.swap(i, self.dice.up_to(i + 1));
        }
        let dims = p.iter().map(|&d| v.dims[d]).collect();
        let what = format!("transpose({}), dimensions={{{}}}", v.name, list(&p));
        self.add(v.element, dims, &what);
    }

    fn reshape(&mut self) {
        let v = self.pick();
        let mut dims = v.dims.clone();
        match self.dice.up_to(4) {
            0 if dims.len() < 5 => dims.insert(self.dice.up_to(dims.len() + 1), 1),
            1 => dims.retain(|&d| d != 1),
            2 if dims.len() >= 2 => {
                let at = self.dice.up_to(dims.len() - 1);
                dims[at] *= dims.remove(at + 1);
            }
            _ => {}
        }
        self.add(v.element, dims, &format!("reshape({})", v.name));
    }

    fn broadcast_more(&mut self) {
        let v = self.pick();
        if v.dims.len() > 3 {
            return;
        }
        let mut dims = v.dims.clone();
        let mut map: Vec<usize> = (0..dims.len()).collect();
        for _ in 0..self.dice.up_to(3) {
            let at = self.dice.up_to(dims.len() + 1);
            dims.insert(at, [1, 2, 1][self.dice.up_to(3)]);
            for m in map.iter_mut().filter(|m| **m >= at) {
                *m += 1;
            }
        }
        self.broadcast(&v, dims, &map);
    }

    fn slice(&mut self) {
        let Some(v) = self.pick_ranked() else {
            return;
        };
        let bounds: Vec<(usize, usize, usize)> = v
            .dims
            .iter()
            .map(|&d| {
                let start = self.dice.up_to(d);
                let limit = start + 1 + self.dice.up_to(d - start);
                if self.dice.up_to(3) == 0 {
                    (0, d, 1)
                } else {
                    (start, limit, 1 + self.dice.up_to(2))
                }
            })
            .collect();
        self.cut(&v, &bounds);
    }

    fn cut(&mut self, v: &Value, bounds: &[(usize, usize, usize)]) -> Value {
        let dims = bounds
            .iter()
            .map(|(s, l, t)| (l - s).div_ceil(*t))
            .collect();
        let text: Vec<String> = bounds
            .iter()
            .map(|(s, l, t)| format!("[{s}:{l}:{t}]"))
            .collect();
        let what = format!("slice({}), slice={{{}}}", v.name, text.join(", "));
        self.add(v.element, dims, &what)
    }

    fn join(&mut self, parts: &[Value], along: usize) -> Value {
        let mut dims = parts[0].dims.clone();
        dims[along] = parts.iter().map(|p| p.dims[along]).sum();
        let names: Vec<&str> = parts.iter().map(|p| p.name.as_str()).collect();
        let what = format!("concatenate({}), dimensions={{{along}}}", names.join(", "));
        self.add(parts[0].element, dims, &what)
    }

    fn concatenate(&mut self) {
        let Some(v) = self.pick_ranked() else {
            return;
        };
        let along = self.dice.up_to(v.dims.len());
        if v.dims[along] > 6 {
            return;
        }
        let mut parts = vec![v.clone()];
        for _ in 0..self.dice.up_to(3) {
            let next = if self.dice.up_to(2) == 0 {
                v.clone()
            } else {
                self.partner(&v)
            };
            parts.push(next);
        }
        self.join(&parts, along);
    }

    fn slices_that_meet(&mut self) {
        let Some(v) = self.pick_ranked() else {
            return;
        };
        let along = self.dice.up_to(v.dims.len());
        let n = v.dims[along];
        if n < 2 {
            return;
        }
        let mut bounds: Vec<_> = v.dims.iter().map(|&d| (0, d, 1)).collect();
        let middle = 1 + self.dice.up_to(n - 1);
        bounds[along] = (0, middle, 1);
        let left = self.cut(&v, &bounds);
        bounds[along] = (middle, n, 1);
        let right = self.cut(&v, &bounds);
        self.join(&[left, right], along);
    }

    fn pad(&mut self) {
        let Some(v) = self.pick_ranked() else {
            return;
        };
        let zero = if v.element == "pred" { "false" } else { "0" };
        let fill = self.scalar(v.element, zero);
        let mut now = v;
        for _ in 0..=self.dice.up_to(2) {
            let none = self.dice.up_to(4) == 0;
            let edges: Vec<(i64, i64, i64)> = now
                .dims
                .iter()
                .map(|_| {
                    let low = self.dice.up_to(3) as i64 - i64::from(self.dice.up_to(6) == 0);
                    let edge = (
                        low,
                        self.dice.up_to(2) as i64,
                        (self.dice.up_to(5) / 4) as i64,
                    );
                    if none { (0, 0, 0) } else { edge }
                })
                .collect();
            let dims: Vec<i64> = now
                .dims
                .iter()
                .zip(&edges)
                .map(|(&d, e)| d as i64 + e.2 * (d as i64 - 1) + e.0 + e.1)
                .collect();
            if dims.iter().any(|&d| !(1..=8).contains(&d)) {
                return;
            }
            let text: Vec<String> = edges
                .iter()
                .map(|e| format!("{}_{}_{}", e.0, e.1, e.2))
                .collect();
            let what = format!(
                "pad({}, {}), padding={}",
                now.name,
                fill.name,
                text.join("x")
            );
            now = self.add(
                now.element,
                dims.iter().map(|&d| d as usize).collect(),
                &what,
            );
        }
        let bounds: Vec<_> = now.dims.iter().map(|&d| (d / 3, d - d / 3, 1)).collect();
        self.cut(&now, &bounds);
    }

    fn reduce(&mut self) {
        let Some(v) = self.pick_ranked() else {
            return;
        };
        let (op, start) = match v.element {
            "f32" => [
                ("add", "0"),
                ("maximum", "-inf"),
                ("minimum", "inf"),
                ("add", "1"),
            ][self.dice.up_to(4)],
            "s32" => [("add", "0"), ("multiply", "1")][self.dice.up_to(2)],
            "pred" => [("or", "false"), ("and", "true")][self.dice.up_to(2)],
            _ => return,
        };
        let start = self.scalar(v.element, start);
        let mut now = v;
        for _ in 0..=self.dice.up_to(2) {
            if now.dims.is_empty() {
                return;
            }
            let dims: Vec<usize> = (0..now.dims.len())
                .filter(|&d| now.dims[d] == 1 || self.dice.up_to(2) == 0)
                .collect();
            let kept = (0..now.dims.len())
                .filter(|d| !dims.contains(d))
                .map(|d| now.dims[d])
                .collect();
            let what = format!(
                "reduce({}, {}), dimensions={{{}}}, to_apply={op}_{}",
                now.name,
                start.name,
                list(&dims),
                now.element
            );
            now = self.add(now.element, kept, &what);
        }
    }

    fn select(&mut self) {
        let v = self.pick();
        let which = self.filled("pred", &v.dims);
        let other = if self.dice.up_to(2) == 0 {
            v.clone()
        } else {
            self.partner(&v)
        };
        let what = format!("select({}, {}, {})", which.name, v.name, other.name);
        self.add(v.element, v.dims, &what);
    }

    fn filled_step(&mut self) {
        let v = self.pick();
        self.filled(v.element, &v.dims);
    }

    fn finish(self) -> Program {
        let mut text = String::from("HloModule random\n");
        let reducers = [
            ("f32", &["add", "maximum", "minimum"][..]),
            ("s32", &["add", "multiply"][..]),
            ("pred", &["and", "or"][..]),
        ];
        for (element, ops) in reducers {
            for op in ops {
                let _ = writeln!(
                    text,
                    "{op}_{element} {{ a = {element}[] parameter(0) b = {element}[] parameter(1) ROOT r = {element}[] {op}(a, b) }}"
                );
            }
        }
        let results: Vec<&Value> = self.values.iter().rev().take(3).collect();
        let shapes: Vec<String> = results
            .iter()
            .map(|v| format!("{}[{}]", v.element, list(&v.dims)))
            .collect();
        let names: Vec<&str> = results.iter().map(|v| v.name.as_str()).collect();
        let _ = write!(
            text,
            "ENTRY e {{\n{}  ROOT out = ({}) tuple({})\n}}\n",
            self.body,
            shapes.join(", "),
            names.join(", ")
        );
        Program {
            text,
            inputs: self.inputs,
        }
    }
}
