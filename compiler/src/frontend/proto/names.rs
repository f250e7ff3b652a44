//! Instructions of a proto by their ids.

use std::collections::BTreeMap;

use super::decode;
use super::messages::HloModule;
use crate::frontend::assignment::InstrName;

/// Which instruction every id of a module's proto stands for.
#[derive(Clone, Debug, Default)]
pub struct InstructionNames(BTreeMap<i64, InstrName>);

impl InstructionNames {
    /// Of the module in an encoded proto; nothing if the bytes are no proto of a module.
    pub fn of_proto(bytes: &[u8]) -> Option<Self> {
        Self::new(&decode(bytes).ok()?).ok()
    }

    pub(crate) fn new(module: &HloModule) -> Result<Self, String> {
        let mut names = BTreeMap::new();
        for computation in &module.computations {
            for instruction in &computation.instructions {
                let name = InstrName {
                    computation: Some(computation.name.clone()),
                    name: instruction.name.clone(),
                };
                if names.insert(instruction.id, name).is_some() {
                    return Err(format!("two instructions have id {}", instruction.id));
                }
            }
        }
        Ok(Self(names))
    }

    /// The instruction with this id.
    pub(crate) fn get(&self, id: i64) -> Result<InstrName, String> {
        let found = self.0.get(&id).cloned();
        found.ok_or_else(|| format!("no instruction has id {id}"))
    }
}
