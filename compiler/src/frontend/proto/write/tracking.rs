//! Origins, statistics and accuracies.

use slabplan_ir::text::parse;

use super::scan::{Scan, text};
use crate::frontend::proto::messages::{
    OriginalArray, OriginalElement, OriginalValue, RecoveryEntry, RecoveryTable, ResultAccuracy,
    SparsityConfig, Statistic, Statistics, TensorSparsity, Tolerance,
};

/// Deeper trees of origins are refused: no result has them.
const MAX_DEPTH: usize = 100;

/// `{visualizing_index=0,cycles=12.5}`
pub(super) fn statistics(value: &str) -> Result<Statistics, String> {
    let mut read = Statistics::default();
    Scan::new(value).fields(|scan, name| {
        if name == "visualizing_index" {
            read.index_to_visualize = scan.int()?;
        } else {
            let (name, value) = (name.to_owned(), scan.float()?);
            read.statistics.push(Statistic { name, value });
        }
        Ok(())
    })?;
    Ok(read)
}

/// `{mode=highest}` or `{tolerance={atol=1,rtol=0.5,ulps=2}}`
pub(super) fn result_accuracy(value: &str) -> Result<ResultAccuracy, String> {
    let mut scan = Scan::new(value);
    let mut read = ResultAccuracy::default();
    scan.expect("{")?;
    if scan.eat("mode") {
        scan.expect("=")?;
        read.mode = match scan.word() {
            "default" => Some(0),
            "highest" => Some(1),
            word => return Err(format!("unknown accuracy `{word}`")),
        };
    } else {
        scan.expect("tolerance")?;
        scan.expect("=")?;
        let mut tolerance = Tolerance::default();
        scan.fields(|scan, name| {
            match name {
                "atol" => tolerance.atol = scan.float()?,
                "rtol" => tolerance.rtol = scan.float()?,
                "ulps" => tolerance.ulps = scan.int()?,
                _ => return Err(format!("unknown tolerance `{name}`")),
            }
            Ok(())
        })?;
        read.tolerance = Some(tolerance);
    }
    Ok(read)
}

/// `{lhs={sparsity=2x4 dimension=3 stride=1} rhs={...}}`
pub(super) fn sparsity_config(value: &str) -> Result<SparsityConfig, String> {
    let mut scan = Scan::new(value);
    let mut read = SparsityConfig::default();
    scan.expect("{")?;
    while !scan.eat("}") {
        let side = scan.word();
        scan.expect("=")?;
        scan.expect("{")?;
        let mut tensor = TensorSparsity::default();
        while !scan.eat("}") {
            let name = scan.word();
            scan.expect("=")?;
            match name {
                "sparsity" => {
                    let form = || "expected a sparsity such as 2x4".to_owned();
                    let (n, block) = scan.word().split_once('x').ok_or_else(form)?;
                    tensor.num_non_zero = n.parse().map_err(|_| form())?;
                    tensor.block_size = block.parse().map_err(|_| form())?;
                }
                "dimension" => tensor.dimension = scan.int()?,
                "stride" => tensor.stride = scan.int()?,
                _ => return Err(format!("unknown key `{name}`")),
            }
        }
        match side {
            "lhs" => read.lhs = Some(tensor),
            "rhs" => read.rhs = Some(tensor),
            _ => return Err(format!("unknown operand `{side}`")),
        }
    }
    Ok(read)
}

/// `{{"add.1" {0}}}`, `{({"a"}, {})}` or `{[synthetic_call]}`.
pub(super) fn origin(value: &str) -> Result<OriginalValue, String> {
    let mut scan = Scan::new(value);
    let mut read = OriginalValue::default();
    scan.expect("{")?;
    if scan.eat("[synthetic_call]") {
        read.is_synthetic_call = true;
    } else if scan.peek() != Some('}') {
        tree(&mut scan, &mut Vec::new(), &mut read.elements)?;
    }
    scan.expect("}")?;
    if scan.is_done() {
        Ok(read)
    } else {
        Err("text after the origin".to_owned())
    }
}

/// The leaves of the part of the result at `index`.
fn tree(
    scan: &mut Scan<'_>,
    index: &mut Vec<i64>,
    elements: &mut Vec<OriginalElement>,
) -> Result<(), String> {
    if index.len() > MAX_DEPTH {
        return Err("an origin that is nested too deeply".to_owned());
    }
    if !scan.eat("(") {
        elements.push(OriginalElement {
            shape_index: index.clone(),
            original_array: original_array(scan)?,
        });
        return Ok(());
    }
    let mut number = 0;
    while !scan.eat(")") {
        if 0 < number {
            scan.expect(",")?;
        }
        index.push(number);
        tree(scan, index, elements)?;
        index.pop();
        number += 1;
    }
    Ok(())
}

/// `{"add.1" {0}}`; nothing for `{}`.
fn original_array(scan: &mut Scan<'_>) -> Result<Option<OriginalArray>, String> {
    scan.expect("{")?;
    if scan.eat("}") {
        return Ok(None);
    }
    let instruction_name = text(scan.string()?)?;
    let shape_index = if scan.eat("{") {
        scan.ints("}")?
    } else {
        Vec::new()
    };
    scan.expect("}")?;
    Ok(Some(OriginalArray {
        instruction_name,
        shape_index,
    }))
}

/// `{ {"old"} : {"new"}, "module as text" ... }`
pub(super) fn recovery_table(value: &str) -> Result<RecoveryTable, String> {
    let mut scan = Scan::new(value);
    let mut read = RecoveryTable::default();
    scan.expect("{")?;
    while !scan.eat("}") {
        scan.eat(",");
        let old_original_array = original_array(&mut scan)?;
        scan.expect(":")?;
        let new = original_array(&mut scan)?;
        let new_original_array = new.filter(|a| !a.instruction_name.is_empty());
        scan.eat(",");
        let recovery_module = if matches!(scan.peek(), Some('"' | '\'')) {
            let source = text(scan.string()?)?;
            let module = parse(&source).into_result();
            let module = module.map_err(|d| format!("a recovery module: {}", d[0]))?;
            Some(super::write(&module)?.proto)
        } else {
            None
        };
        read.entries.push(RecoveryEntry {
            old_original_array,
            new_original_array,
            recovery_module,
        });
    }
    Ok(read)
}
