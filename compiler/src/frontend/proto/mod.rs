//! HLO protos: decoded, written out as HLO text, and read by the text parser.
//!
//! One reader builds modules, so text and proto of one module give the same
//! module and the same plan. Text that is written as a proto and read again is the
//! same text, but for what XLA's protos have no place for ([`write::WrittenModule`]).

mod attributes;
mod dimension_numbers;
mod enums;
mod literal;
mod mesh;
pub(crate) mod messages;
mod names;
mod replica_groups;
mod shape;
mod sharding;
#[cfg(test)]
mod tests;
mod text;
mod tracking;
pub(crate) mod write;

use std::collections::BTreeMap;

use prost::Message;
use slabplan_ir::Module;

use messages::{HloModule, HloProto};

pub use names::InstructionNames;

/// A module as an encoded `HloModuleProto`.
#[derive(Clone, Debug)]
pub struct ModuleProto {
    /// The message.
    pub bytes: Vec<u8>,
    /// Attributes that XLA's protos have no place for, each with how often it is left out.
    pub left_out: BTreeMap<&'static str, usize>,
}

/// Writes `module` as a proto that slabplan and XLA read as the same module. Linear in its text.
///
/// # Errors
/// An attribute whose text is not of the form that XLA's parser takes.
pub fn module_proto(module: &Module) -> Result<ModuleProto, String> {
    let written = write::write(module)?;
    Ok(ModuleProto {
        bytes: written.proto.encode_to_vec(),
        left_out: written.left_out,
    })
}

/// Reads an `HloModuleProto` or an `HloProto`; the error says what is wrong and what to do.
pub(super) fn parse(bytes: &[u8]) -> Result<Module, String> {
    let proto = decode(bytes)?;
    let text = text::write(&proto)?;
    slabplan_ir::text::parse(&text)
        .into_result()
        .map_err(|diagnostics| {
            let lines: Vec<String> = diagnostics
                .iter()
                .take(10)
                .map(ToString::to_string)
                .collect();
            format!(
                "the proto is not a valid module (places are in its text form):\n{}",
                lines.join("\n")
            )
        })
}

/// Both messages begin with field 1: a name in a module, a whole module in an `HloProto`. Only the
/// right reading has computations.
fn decode(bytes: &[u8]) -> Result<HloModule, String> {
    let as_module = HloModule::decode(bytes);
    if let Ok(module) = &as_module
        && !module.computations.is_empty()
    {
        return Ok(module.clone());
    }
    let as_hlo = HloProto::decode(bytes).ok().and_then(|p| p.hlo_module);
    let is_hlo = as_hlo.is_some();
    if let Some(module) = as_hlo.filter(|m| !m.computations.is_empty()) {
        return Ok(module);
    }
    Err(match as_module {
        Err(e) if !is_hlo => format!(
            "neither HLO text, HloModuleProto nor HloProto ({e}); is the file truncated or of another kind?"
        ),
        _ => "an HLO proto without computations".to_owned(),
    })
}
