//! Target descriptions: data files, five of them built in.

use std::path::Path;

use slabplan_ir::Target;

/// Names of the built-in targets, the default first, with their descriptions.
const BUILT_IN: [(&str, &str); 5] = [
    ("tpu-v5e", include_str!("../targets/tpu-v5e.toml")),
    ("tpu-v4", include_str!("../targets/tpu-v4.toml")),
    ("tpu-v5p", include_str!("../targets/tpu-v5p.toml")),
    ("tpu-v6e", include_str!("../targets/tpu-v6e.toml")),
    ("cpu", include_str!("../targets/cpu.toml")),
];

/// Name of the target that is used unless another is asked for.
pub const DEFAULT: &str = BUILT_IN[0].0;

/// Why there is no such target.
#[derive(Debug, thiserror::Error)]
pub enum TargetError {
    /// Neither a built-in name nor a `.toml` file.
    #[error(
        "unknown target `{given}`; built in are {}; a path to a .toml file works too",
        built_in_names().collect::<Vec<_>>().join(", ")
    )]
    Unknown {
        /// What was asked for.
        given: String,
    },
    /// The file can't be read.
    #[error("cannot read target file {path}: {source}")]
    Read {
        /// The file.
        path: String,
        /// Why.
        source: std::io::Error,
    },
    /// The text is not a target description.
    #[error("target {name}: {message}")]
    Malformed {
        /// File or built-in name.
        name: String,
        /// What is wrong and where.
        message: String,
    },
}

/// The names of the built-in targets.
pub fn built_in_names() -> impl Iterator<Item = &'static str> {
    BUILT_IN.iter().map(|&(name, _)| name)
}

/// A built-in target by name, or the description in a `.toml` file.
pub fn load(name: &str) -> Result<Target, TargetError> {
    if let Some(&(_, text)) = BUILT_IN.iter().find(|&&(n, _)| n == name) {
        return parse(name, text);
    }
    let path = Path::new(name);
    if path.extension().is_none_or(|e| e != "toml") {
        return Err(TargetError::Unknown {
            given: name.to_owned(),
        });
    }
    let text = std::fs::read_to_string(path).map_err(|source| TargetError::Read {
        path: name.to_owned(),
        source,
    })?;
    parse(name, &text)
}

/// Reads a target description; `name` is what errors call it.
pub fn parse(name: &str, text: &str) -> Result<Target, TargetError> {
    let malformed = |message: String| TargetError::Malformed {
        name: name.to_owned(),
        message,
    };
    let target: Target = toml::from_str(text).map_err(|e| malformed(e.to_string()))?;
    if target.space(0).is_none() {
        return Err(malformed("no [[space]] with id = 0".to_owned()));
    }
    for (i, space) in target.spaces.iter().enumerate() {
        if target.spaces[..i]
            .iter()
            .any(|s| s.id == space.id || s.name == space.name)
        {
            return Err(malformed(format!(
                "two spaces with id {} or name `{}`",
                space.id, space.name
            )));
        }
    }
    for t in &target.tilings {
        if t.lanes == 0 || t.sublanes == 0 || t.packing == 0 || t.rank1_min == 0 {
            return Err(malformed(format!(
                "tiling of {} bits has a zero size",
                t.bits
            )));
        }
        if !t.rank1_min.is_power_of_two() || t.rank1_max < t.rank1_min {
            return Err(malformed(format!(
                "tiling of {} bits: rank1_min must be a power of two and at most rank1_max",
                t.bits
            )));
        }
    }
    Ok(target)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn built_in_targets_load() {
        for name in built_in_names() {
            let target = load(name).unwrap();
            assert_eq!(target.name, name);
        }
        assert_eq!(
            load("tpu-v5e").unwrap().space(0).unwrap().capacity.get(),
            16 << 30
        );
    }

    #[test]
    fn mistakes_are_named() {
        assert!(
            load("tpu-v9")
                .unwrap_err()
                .to_string()
                .contains("built in are tpu-v5e")
        );
        let error = parse("x.toml", "name = \"x\"\nspace = []\ncolour = 1").unwrap_err();
        assert!(error.to_string().contains("colour"), "{error}");
        let error = parse("x.toml", "name = \"x\"\nspace = []").unwrap_err();
        assert!(error.to_string().contains("id = 0"), "{error}");
    }
}
