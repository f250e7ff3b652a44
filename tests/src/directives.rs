//! The `// key: value` lines of hand-written modules; `fixtures/README.md` lists them.

use slabplan_ir::ShapeIndex;

/// A value as comments name it: `loop{1}`, `y`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValueName {
    /// Instruction, without `%`.
    pub instruction: String,
    /// Part of its shape.
    pub index: ShapeIndex,
}

impl ValueName {
    /// Reads `loop{1,0}` or `y`.
    pub fn parse(text: &str) -> Result<Self, String> {
        let bad = || format!("`{text}` does not name a value");
        let Some((instruction, rest)) = text.split_once('{') else {
            return Ok(Self {
                instruction: text.to_owned(),
                index: ShapeIndex::new(),
            });
        };
        let inner = rest.strip_suffix('}').ok_or_else(bad)?;
        let index = inner
            .split(',')
            .filter(|n| !n.is_empty())
            .map(|n| n.parse().map_err(|_| bad()))
            .collect::<Result<_, _>>()?;
        Ok(Self {
            instruction: instruction.to_owned(),
            index,
        })
    }
}

/// One expectation about a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expectation {
    /// All occupy the same bytes.
    SameBytes(Vec<ValueName>),
    /// No byte in common.
    Disjoint(ValueName, ValueName),
    /// The same bytes, or none in common.
    SameOrDisjoint(ValueName, ValueName),
    /// The buffer's size.
    Bytes(ValueName, u64),
    /// The buffer's memory space.
    Space(ValueName, u32),
    /// Slab size of space 0.
    PeakBytes(u64),
    /// Largest allowed slab size of space 0.
    PeakBytesAtMost(u64),
    /// Copies inserted.
    Copies(usize),
    /// The first is scheduled before the second.
    Order(ValueName, ValueName),
    /// A warning with these words.
    Warn(String),
    /// Refused with these words, or planned with a copy.
    RefusedOrCopied(String),
}

/// An array as a comment writes it: `f32[4] {1,2,3,4}`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArrayText {
    /// Shape, without layout.
    pub shape: String,
    /// Literal.
    pub literal: String,
}

/// Everything the comments of one module say.
#[derive(Clone, Debug, Default)]
pub struct Directives {
    /// Target to plan for; `cpu` by default.
    pub target: Option<String>,
    /// What must hold of the plan.
    pub expectations: Vec<Expectation>,
    /// Whether it is to be executed.
    pub run: bool,
    /// Inputs in order.
    pub inputs: Vec<ArrayText>,
    /// Expected outputs in order.
    pub outputs: Vec<ArrayText>,
    /// Words with which the executor refuses it.
    pub run_error: Option<String>,
}

impl Directives {
    /// Reads the comment lines of a module. An unknown key in the form of a directive is prose.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut this = Self::default();
        for line in text.lines() {
            let Some(comment) = line.strip_prefix("//") else {
                break;
            };
            let Some((key, value)) = comment.trim().split_once(':') else {
                continue;
            };
            this.add(key.trim(), value.trim())
                .map_err(|e| format!("{line}: {e}"))?;
        }
        Ok(this)
    }

    fn add(&mut self, key: &str, value: &str) -> Result<(), String> {
        let values = || -> Result<Vec<ValueName>, String> {
            value.split_whitespace().map(ValueName::parse).collect()
        };
        let pair = || -> Result<(ValueName, ValueName), String> {
            <[ValueName; 2]>::try_from(values()?)
                .map(|[a, b]| (a, b))
                .map_err(|_| "two values expected".to_owned())
        };
        let number = |text: &str| text.parse::<u64>().map_err(|e| format!("`{text}`: {e}"));
        let value_and_number = || -> Result<(ValueName, u64), String> {
            let (name, n) = value
                .split_once(' ')
                .ok_or("a value and a number expected")?;
            Ok((ValueName::parse(name)?, number(n.trim())?))
        };
        let expectation = match key {
            "same-bytes" => Expectation::SameBytes(values()?),
            "disjoint" => pair().map(|(a, b)| Expectation::Disjoint(a, b))?,
            "same-or-disjoint" => pair().map(|(a, b)| Expectation::SameOrDisjoint(a, b))?,
            "order" => pair().map(|(a, b)| Expectation::Order(a, b))?,
            "bytes" => value_and_number().map(|(v, n)| Expectation::Bytes(v, n))?,
            "space" => value_and_number().map(|(v, n)| Expectation::Space(v, n as u32))?,
            "peak-bytes" => Expectation::PeakBytes(number(value)?),
            "peak-bytes-at-most" => Expectation::PeakBytesAtMost(number(value)?),
            "copies" => Expectation::Copies(number(value)? as usize),
            "warn" => Expectation::Warn(value.to_owned()),
            "refused-or-copied" => Expectation::RefusedOrCopied(value.to_owned()),
            _ => return self.add_run_key(key, value),
        };
        self.expectations.push(expectation);
        Ok(())
    }

    fn add_run_key(&mut self, key: &str, value: &str) -> Result<(), String> {
        let array = || {
            let (shape, literal) = value.split_once(' ').ok_or("a shape and values expected")?;
            Ok::<_, String>(ArrayText {
                shape: shape.to_owned(),
                literal: literal.trim().to_owned(),
            })
        };
        match key.split_once(' ').unwrap_or((key, "")) {
            ("target", "") => self.target = Some(value.to_owned()),
            ("run", "") => self.run = true,
            ("run-error", "") => self.run_error = Some(value.to_owned()),
            ("input", n) if n.parse() == Ok(self.inputs.len()) => self.inputs.push(array()?),
            ("output", n) if n.parse() == Ok(self.outputs.len()) => self.outputs.push(array()?),
            ("input" | "output", n) if n.parse::<usize>().is_ok() => {
                return Err("inputs and outputs are numbered from 0 in order".to_owned());
            }
            _ => {}
        }
        Ok(())
    }
}

/// The error that a line of a rejected module states: `... // error: words`.
pub fn expected_errors(text: &str) -> Vec<(usize, String)> {
    text.lines()
        .enumerate()
        .filter_map(|(i, line)| {
            let (_, words) = line.split_once("// error:")?;
            Some((i + 1, words.trim().to_owned()))
        })
        .collect()
}
