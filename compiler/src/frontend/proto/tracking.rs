//! Origins, statistics and accuracies of protos as HLO text.

use std::fmt::Write;

use super::messages::{
    HloModule, OriginalArray, OriginalElement, OriginalValue, RecoveryTable, ResultAccuracy,
    Statistics,
};
use super::shape::join;
use super::text::escape;

/// Deeper trees of origins are refused: no result has them.
const MAX_DEPTH: usize = 100;

/// `{visualizing_index=0,cycles=12.5}`
pub(super) fn statistics(s: &Statistics) -> String {
    let mut text = format!("{{visualizing_index={}", s.index_to_visualize);
    for statistic in &s.statistics {
        let _ = write!(text, ",{}={}", statistic.name, number(statistic.value));
    }
    text.push('}');
    text
}

/// `{mode=highest}` or `{tolerance={atol=1,rtol=0.5,ulps=2}}`; nothing where neither is said.
pub(super) fn result_accuracy(a: &ResultAccuracy) -> Result<Option<String>, String> {
    Ok(match (&a.tolerance, a.mode) {
        (Some(t), _) => Some(format!(
            "{{tolerance={{atol={},rtol={},ulps={}}}}}",
            number(t.atol),
            number(t.rtol),
            t.ulps
        )),
        (None, Some(0)) => Some("{mode=default}".to_owned()),
        (None, Some(1)) => Some("{mode=highest}".to_owned()),
        (None, Some(n)) => return Err(format!("unknown accuracy {n}; known are 0 and 1")),
        (None, None) => None,
    })
}

/// As C's `%g` writes it, but with as many digits as the value needs.
fn number(value: f64) -> String {
    let scientific = format!("{value:e}");
    let Some((digits, exponent)) = scientific.split_once('e') else {
        return scientific;
    };
    match exponent.parse::<i32>() {
        Ok(-4..=5) => value.to_string(),
        Ok(n) if n < 0 => format!("{digits}e-{:02}", -n),
        Ok(n) => format!("{digits}e+{n:02}"),
        Err(_) => scientific,
    }
}

/// `{{"add.1" {0}}}`, `{({"a"}, {})}` or `{[synthetic_call]}`.
pub(super) fn origin(value: &OriginalValue) -> Result<String, String> {
    if value.is_synthetic_call {
        return Ok("{[synthetic_call]}".to_owned());
    }
    let mut tree = Tree {
        text: "{".to_owned(),
        // A tuple without elements leaves no trace but its number.
        gaps: 64 + value.elements.len(),
    };
    tree.part(&value.elements, 0)?;
    tree.text.push('}');
    Ok(tree.text)
}

struct Tree {
    text: String,
    /// How many more parts may be missing.
    gaps: usize,
}

impl Tree {
    /// The part of the result that `elements` are the leaves of, in order.
    fn part(&mut self, elements: &[OriginalElement], depth: usize) -> Result<(), String> {
        if depth > MAX_DEPTH {
            return Err("an origin that is nested too deeply".to_owned());
        }
        if let [leaf] = elements
            && leaf.shape_index.len() == depth
        {
            match &leaf.original_array {
                Some(array) => self.text.push_str(&original_array(array)),
                None => self.text.push_str("{}"),
            }
            return Ok(());
        }
        self.text.push('(');
        let mut next = 0;
        let mut rest = elements;
        while let Some(first) = rest.first() {
            let number = first.shape_index.get(depth).copied();
            let number = number.ok_or("an origin with a part at the place of its parts")?;
            while next < number && 0 < self.gaps {
                self.gaps -= 1;
                self.separate(next);
                self.text.push_str("()");
                next += 1;
            }
            if number != next {
                return Err("an origin whose parts are out of order or missing".to_owned());
            }
            let same = |e: &&OriginalElement| e.shape_index.get(depth) == Some(&number);
            let (inner, others) = rest.split_at(rest.iter().take_while(same).count());
            self.separate(next);
            self.part(inner, depth + 1)?;
            rest = others;
            next += 1;
        }
        self.text.push(')');
        Ok(())
    }

    fn separate(&mut self, number: i64) {
        if 0 < number {
            self.text.push_str(", ");
        }
    }
}

/// `{"add.1" {0}}`
fn original_array(array: &OriginalArray) -> String {
    let name = escape(array.instruction_name.as_bytes());
    if array.shape_index.is_empty() {
        format!("{{\"{name}\"}}")
    } else {
        format!("{{\"{name}\" {{{}}}}}", join(&array.shape_index))
    }
}

/// The table as XLA prints it, each module as an indented text in quotes; `print` writes a module.
pub(super) fn recovery_table(
    table: &RecoveryTable,
    print: impl Fn(&HloModule) -> Result<String, String>,
) -> Result<String, String> {
    let mut text = "{\n".to_owned();
    for entry in &table.entries {
        let side = |array: &Option<OriginalArray>| array.as_ref().map(original_array);
        let old = side(&entry.old_original_array).ok_or("an origin that is not named")?;
        let new = side(&entry.new_original_array).unwrap_or_else(|| "{\"\"}".to_owned());
        let _ = write!(text, "  {old} : {new}");
        if let Some(module) = &entry.recovery_module {
            text.push_str(",\n  \"\n");
            for line in print(module)?.lines() {
                if !line.is_empty() {
                    let _ = write!(text, "    {}", escape(line.as_bytes()));
                }
                text.push('\n');
            }
            text.push_str("\n  \"");
        }
        text.push('\n');
    }
    text.push('}');
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The texts are those of C's `%g`.
    #[test]
    fn numbers_as_xla_prints_them() {
        for (value, text) in [
            (0.0, "0"),
            (0.1, "0.1"),
            (-3.0, "-3"),
            (12.5, "12.5"),
            (100_000.0, "100000"),
            (1e6, "1e+06"),
            (1e30, "1e+30"),
            (2.5e-7, "2.5e-07"),
            (1e-4, "0.0001"),
            (f64::INFINITY, "inf"),
        ] {
            assert_eq!(number(value), text);
        }
    }

    fn leaf(index: &[i64]) -> OriginalElement {
        OriginalElement {
            shape_index: index.to_vec(),
            original_array: Some(OriginalArray {
                instruction_name: "x".to_owned(),
                shape_index: Vec::new(),
            }),
        }
    }

    fn text(elements: Vec<OriginalElement>) -> Result<String, String> {
        origin(&OriginalValue {
            elements,
            is_synthetic_call: false,
        })
    }

    #[test]
    fn trees_of_origins() {
        assert_eq!(text(vec![leaf(&[])]).unwrap(), "{{\"x\"}}");
        assert_eq!(text(vec![]).unwrap(), "{()}");
        let unnamed = OriginalElement {
            shape_index: vec![1, 1],
            original_array: None,
        };
        assert_eq!(
            text(vec![leaf(&[0]), leaf(&[1, 0]), unnamed]).unwrap(),
            "{({\"x\"}, ({\"x\"}, {}))}"
        );
        assert_eq!(text(vec![leaf(&[2])]).unwrap(), "{((), (), {\"x\"})}");
    }

    #[test]
    fn what_is_no_tree_is_refused() {
        assert!(text(vec![leaf(&[1]), leaf(&[0])]).is_err());
        assert!(text(vec![leaf(&[]), leaf(&[0])]).is_err());
        assert!(text(vec![leaf(&[-1])]).is_err());
        assert!(text(vec![leaf(&[i64::MAX])]).is_err());
        assert!(text(vec![leaf(&[0; 200_000])]).is_err());
    }
}
