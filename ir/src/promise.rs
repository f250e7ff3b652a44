//! What the back end that compiled a module promises about its instructions.
//!
//! XLA:TPU writes into an instruction's `backend_config` which operands and results its code may
//! keep in the same bytes:
//!
//! ```text
//! "aliasing_operands":{"lists":[{"indices":["1","4"]}]}
//! ```
//!
//! Numbers below the operand count are operands; the others, less the operand count, are the arrays
//! of the result in preorder. XLA shares an operand's bytes with a result on this promise alone.

use smallvec::SmallVec;

use crate::attr::AttrName;
use crate::entity::InstrId;
use crate::module::Module;

/// A result array that the back end can write over an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Promise {
    /// Operand number.
    pub operand: u32,
    /// Which array of the result, counted in preorder.
    pub result_array: u32,
}

/// All promises of `instr`. O(length of its `backend_config`).
pub fn promises(module: &Module, instr: InstrId) -> SmallVec<[Promise; 2]> {
    let mut found = SmallVec::new();
    let config = module.attr_text(instr, AttrName::BackendConfig);
    let Some(lists) = config.and_then(aliasing_lists) else {
        return found;
    };
    let operands = module.instrs[instr].operands.len() as u32;
    for list in lists.split("\"indices\":[").skip(1) {
        let list = list.split(']').next().unwrap_or_default();
        let numbers: SmallVec<[u32; 4]> = list
            .split(',')
            .filter_map(|n| n.trim().trim_matches('"').parse().ok())
            .collect();
        let (read, written): (SmallVec<[u32; 4]>, SmallVec<[u32; 4]>) =
            numbers.into_iter().partition(|&n| n < operands);
        for &operand in &read {
            found.extend(written.iter().map(|n| Promise {
                operand,
                result_array: n - operands,
            }));
        }
    }
    found
}

/// The text between the brackets of `"aliasing_operands":{"lists":[...]}`.
fn aliasing_lists(config: &str) -> Option<&str> {
    let rest = config.split_once("\"aliasing_operands\":{\"lists\":[")?.1;
    // Lists hold no braces of their own but those of their entries.
    Some(rest.split_once("]}]").map_or("", |(lists, _)| lists))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_cut_out() {
        let config =
            r#"{"a":[],"aliasing_operands":{"lists":[{"indices":["0","2"]},{"indices":["3"]}]}}"#;
        assert_eq!(
            aliasing_lists(config),
            Some(r#"{"indices":["0","2"]},{"indices":["3""#)
        );
        assert_eq!(
            aliasing_lists(r#"{"aliasing_operands":{"lists":[]}}"#),
            Some("")
        );
        assert_eq!(aliasing_lists("{}"), None);
    }
}
