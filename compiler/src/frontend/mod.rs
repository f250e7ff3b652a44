//! Bytes to module: finds the format from the content, never from the name.

pub mod assignment;
pub(crate) mod proto;

use std::io::Read;
use std::path::Path;

use flate2::read::MultiGzDecoder;
use slabplan_ir::Module;
use slabplan_ir::text::Diagnostic;

pub use proto::{InstructionNames, ModuleProto, module_proto};

/// Decompressed input may not exceed this, so that a small hostile file can't fill memory.
const MAX_INPUT: u64 = 4 << 30;

/// Something read from a file or standard input, decompressed.
#[derive(Debug)]
pub struct Source {
    /// What messages call it: the path, or `<stdin>`.
    pub name: String,
    /// The content.
    pub bytes: Vec<u8>,
}

/// Why there is no module.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The file can't be read.
    #[error("cannot read {name}: {source}")]
    Read {
        /// The file.
        name: String,
        /// Why.
        source: std::io::Error,
    },
    /// The gzip stream is truncated or corrupt.
    #[error("{name}: broken gzip data: {source}; compress the dump again or pass it uncompressed")]
    Gzip {
        /// The file.
        name: String,
        /// Why.
        source: std::io::Error,
    },
    /// More than the limit after decompression.
    #[error("{name}: larger than 4 GiB")]
    TooLarge {
        /// The file.
        name: String,
    },
    /// Neither HLO text nor a proto that is understood.
    #[error("{name}: {message}")]
    Format {
        /// The file.
        name: String,
        /// What it looks like and what to do.
        message: String,
    },
    /// HLO text with mistakes.
    #[error("{} in {}", count(.diagnostics.len(), "error"), .input.name)]
    Text {
        /// The text, for showing the places.
        input: Source,
        /// The mistakes.
        diagnostics: Vec<Diagnostic>,
    },
}

fn count(n: usize, noun: &str) -> String {
    format!("{n} {noun}{}", if n == 1 { "" } else { "s" })
}

/// Reads a file, or standard input for `-`, through gzip where the content is compressed.
pub fn read(path: &str) -> Result<Source, LoadError> {
    let name = if path == "-" { "<stdin>" } else { path }.to_owned();
    let read_error = |source| LoadError::Read {
        name: name.clone(),
        source,
    };
    let raw = if path == "-" {
        let mut bytes = Vec::new();
        std::io::stdin()
            .lock()
            .take(MAX_INPUT + 1)
            .read_to_end(&mut bytes)
            .map_err(read_error)?;
        bytes
    } else {
        std::fs::read(Path::new(path)).map_err(read_error)?
    };
    let mut bytes = decompress(&name, raw)?;
    // Some editors begin a text with a byte order mark; no proto begins so.
    if bytes.starts_with(b"\xef\xbb\xbf") {
        bytes.drain(..3);
    }
    if bytes.len() as u64 > MAX_INPUT {
        return Err(LoadError::TooLarge { name });
    }
    Ok(Source { name, bytes })
}

fn decompress(name: &str, raw: Vec<u8>) -> Result<Vec<u8>, LoadError> {
    if !raw.starts_with(&[0x1f, 0x8b]) {
        return Ok(raw);
    }
    let mut bytes = Vec::new();
    MultiGzDecoder::new(raw.as_slice())
        .take(MAX_INPUT + 1)
        .read_to_end(&mut bytes)
        .map_err(|source| LoadError::Gzip {
            name: name.to_owned(),
            source,
        })?;
    Ok(bytes)
}

/// Reads a module from a file or standard input.
pub fn load_module(path: &str) -> Result<Module, LoadError> {
    parse_module(read(path)?)
}

/// Finds the format of `source` and parses it.
pub fn parse_module(source: Source) -> Result<Module, LoadError> {
    if source.bytes.iter().all(u8::is_ascii_whitespace) {
        return Err(LoadError::Format {
            name: source.name,
            message: "empty input; expected HLO text or an HLO proto".to_owned(),
        });
    }
    if looks_binary(&source.bytes) {
        return proto::parse(&source.bytes).map_err(|message| LoadError::Format {
            name: source.name,
            message,
        });
    }
    let text = match String::from_utf8(source.bytes) {
        Ok(text) => text,
        Err(e) => {
            return Err(LoadError::Format {
                name: source.name,
                message: format!(
                    "not UTF-8 at byte {}; expected HLO text or an HLO proto",
                    e.utf8_error().valid_up_to()
                ),
            });
        }
    };
    slabplan_ir::text::parse(&text)
        .into_result()
        .map_err(|diagnostics| LoadError::Text {
            input: Source {
                name: source.name,
                bytes: text.into_bytes(),
            },
            diagnostics,
        })
}

/// Whether the start has control characters that no text has. Every proto has some in its first
/// field: the tags and lengths.
fn looks_binary(bytes: &[u8]) -> bool {
    bytes
        .iter()
        .take(4096)
        .any(|&b| b < 0x20 && !matches!(b, b'\t' | b'\n' | b'\r' | 0x0c))
        || (bytes.first() == Some(&0x0a)
            && std::str::from_utf8(&bytes[..bytes.len().min(4096)])
                .is_err_and(|e| e.error_len().is_some()))
}
