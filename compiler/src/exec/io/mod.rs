//! Arrays in files: `.safetensors` and `.npz`, one named array each.
//!
//! Complex arrays are stored with a last axis `[re, im]`; complex numbers of the format's own are read too.
//! Types that a format does not have are stored as unsigned bytes of the same width.

mod npz;
mod safetensors;

use std::path::{Path, PathBuf};

use slabplan_ir::ElementType;

use crate::exec::array::{HostArray, type_name};

/// The name, type and dimensions of an array that a program takes or gives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArraySpec {
    /// `arg0`, `out0`; `dev1.arg0` where there are several devices.
    pub name: String,
    /// Element type.
    pub element_type: ElementType,
    /// Dimensions, major to minor.
    pub dims: Vec<u64>,
}

impl ArraySpec {
    /// `f32[2,3]`.
    pub fn type_name(&self) -> String {
        type_name(self.element_type, &self.dims)
    }

    /// Bytes of the dense form.
    fn bytes(&self) -> Option<u64> {
        self.dims
            .iter()
            .try_fold(self.element_type.byte_width(), |n, &d| n.checked_mul(d))
    }

    /// Whether `dims` are those of the file form.
    fn fits(&self, dims: &[u64]) -> bool {
        self.are_dims(dims, &self.file_dims())
    }

    /// Whether `dims` are those of the file form with one element for a complex number.
    fn fits_unsplit(&self, dims: &[u64]) -> bool {
        self.are_dims(dims, &self.dims)
    }

    /// numpy's `ascontiguousarray` makes a scalar an array of one element, so that is one too.
    fn are_dims(&self, dims: &[u64], expected: &[u64]) -> bool {
        dims == expected || (self.dims.is_empty() && dims == [&[1], expected].concat())
    }

    /// Dimensions in a file.
    fn file_dims(&self) -> Vec<u64> {
        let mut dims = self.dims.clone();
        if self.element_type.is_complex() {
            dims.push(2);
        }
        dims
    }
}

/// Why a file of arrays can't be read or written.
#[derive(Debug, thiserror::Error)]
pub enum IoError {
    /// The file can't be opened, read or written.
    #[error("{path}: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The file is not what it should be.
    #[error("{path}: {problem}")]
    Format {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// The file lacks arrays, or has others.
    #[error(
        "{path}: the module needs {expected} arrays, {names}; the file has {given}{difference}"
    )]
    Names {
        /// The file.
        path: PathBuf,
        /// Arrays needed.
        expected: usize,
        /// Names of those: `arg0 to arg4`.
        names: String,
        /// Arrays in the file.
        given: usize,
        /// What is missing or too much.
        difference: String,
    },
    /// An array has another type or other dimensions.
    #[error("{path}: {name} must be {expected}, but is {given}")]
    Type {
        /// The file.
        path: PathBuf,
        /// The array.
        name: String,
        /// What the module needs.
        expected: String,
        /// What the file has.
        given: String,
    },
}

/// Reads the arrays that `specs` name from a file, whose format is found from its content.
///
/// # Errors
/// A file that is neither format; arrays missing or left over; other types or dimensions.
pub fn read_arrays(path: &Path, specs: &[ArraySpec]) -> Result<Vec<HostArray>, IoError> {
    let file = |source| IoError::File {
        path: path.to_owned(),
        source,
    };
    let mut magic = [0; 4];
    let mut start = std::fs::File::open(path).map_err(file)?;
    let is_zip =
        std::io::Read::read_exact(&mut start, &mut magic).is_ok() && magic == *b"PK\x03\x04";
    drop(start);
    if is_zip {
        npz::read(path, specs)
    } else {
        safetensors::read(path, specs)
    }
}

/// Writes named arrays to a file, in the format of its extension.
pub fn write_arrays(path: &Path, arrays: &[(String, HostArray)]) -> Result<(), IoError> {
    let extension = path.extension().and_then(|e| e.to_str()).unwrap_or("");
    let bytes = match extension {
        "safetensors" => safetensors::encode(arrays),
        "npz" => npz::encode(arrays),
        _ => Err("the name must end in .safetensors or .npz".to_owned()),
    };
    let bytes = bytes.map_err(|problem| IoError::Format {
        path: path.to_owned(),
        problem,
    })?;
    crate::output::write_file(path, &bytes).map_err(|source| IoError::File {
        path: path.to_owned(),
        source,
    })
}

/// An error unless `present` are exactly the names of `specs`.
fn check_names(path: &Path, specs: &[ArraySpec], present: &[&str]) -> Result<(), IoError> {
    let list = |names: Vec<&str>| match names.len() {
        0..=4 => names.join(", "),
        n => format!("{}, ... ({n})", names[..3].join(", ")),
    };
    let missing: Vec<&str> = specs
        .iter()
        .map(|s| s.name.as_str())
        .filter(|n| !present.contains(n))
        .collect();
    let extra: Vec<&str> = present
        .iter()
        .copied()
        .filter(|n| !specs.iter().any(|s| s.name == *n))
        .collect();
    if missing.is_empty() && extra.is_empty() {
        return Ok(());
    }
    let mut difference = String::new();
    if !missing.is_empty() {
        difference += "; missing: ";
        difference += &list(missing);
    }
    if !extra.is_empty() {
        difference += "; not expected: ";
        difference += &list(extra);
    }
    Err(IoError::Names {
        path: path.to_owned(),
        expected: specs.len(),
        names: match specs {
            [] => "none".to_owned(),
            [one] => one.name.clone(),
            [first, .., last] => format!("{} to {}", first.name, last.name),
        },
        given: present.len(),
        difference,
    })
}

#[cfg(test)]
mod tests;
