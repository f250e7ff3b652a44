//! Values that XLA left out of the text of a program (`{...}`).

use std::path::Path;

/// `text` of program `file` of `case`, with the values that `elided.txt` in the folder `models` has for it.
///
/// # Errors
/// The list can't be read, or names a constant that the text does not have.
pub(super) fn completed(
    models: &Path,
    case: &str,
    file: &str,
    text: String,
) -> Result<String, String> {
    let list = models.join("elided.txt");
    let list = std::fs::read_to_string(&list)
        .map_err(|e| format!("cannot read {}: {e}", list.display()))?;
    let mut of_this = list.lines().filter_map(|line| {
        let (constant, values) = line.split_once(": ")?;
        let (program, name) = constant.split_once(' ')?;
        let (of, stage) = program.split_once('/')?;
        (of == case && file.starts_with(&format!("{stage}."))).then_some((name, values))
    });
    of_this.try_fold(text, |text, (name, values)| {
        let at = text.find(&format!("{name} = "));
        let (before, from) = text.split_at(at.ok_or_else(|| format!("there is no {name}"))?);
        let filled = from.replacen("constant({...})", &format!("constant({values})"), 1);
        Ok(format!("{before}{filled}"))
    })
}
