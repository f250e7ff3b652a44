//! Where in the user's program an instruction comes from.

use slabplan_ir::attr::AttrName;
use slabplan_ir::{InstrId, Module};

/// `file.py:12` of an instruction: from its metadata, or by its stack frame through the module's
/// source tables. Absent where the module does not say. O(length of the tables).
pub fn source_line(module: &Module, instr: InstrId) -> Option<String> {
    let metadata = module.str(module.instrs[instr].raw(AttrName::Metadata)?);
    if let (Some(file), Some(line)) = (
        quoted(metadata, "source_file="),
        number(metadata, "source_line="),
    ) {
        return Some(format!("{file}:{line}"));
    }
    let tables = module.str(module.preamble);
    let frame = row(tables, "StackFrames", number(metadata, "stack_frame_id=")?)?;
    let location = row(tables, "FileLocations", number(frame, "file_location_id=")?)?;
    let file = row(tables, "FileNames", number(location, "file_name_id=")?)?;
    let file = file.trim().trim_matches('"');
    Some(format!("{file}:{}", number(location, "line=")?))
}

/// Row `id` of a table of the preamble, without its number.
fn row<'t>(tables: &'t str, table: &str, id: u64) -> Option<&'t str> {
    let mut lines = tables.lines().skip_while(|l| l.trim() != table).skip(1);
    let rows = lines
        .by_ref()
        .take_while(|l| l.trim_start().starts_with(|c: char| c.is_ascii_digit()));
    rows.filter_map(|l| l.trim().split_once(' '))
        .find(|(n, _)| n.parse() == Ok(id))
        .map(|(_, rest)| rest)
}

/// The number after `key`, which must stand at the start of a word.
fn number(text: &str, key: &str) -> Option<u64> {
    let rest = after(text, key)?;
    let end = rest
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(rest.len());
    rest[..end].parse().ok()
}

/// The text between quotes after `key`.
fn quoted<'t>(text: &'t str, key: &str) -> Option<&'t str> {
    after(text, key)?.strip_prefix('"')?.split('"').next()
}

fn after<'t>(text: &'t str, key: &str) -> Option<&'t str> {
    text.match_indices(key)
        .find(|(at, _)| !text[..*at].ends_with(|c: char| c.is_alphanumeric() || c == '_'))
        .map(|(at, _)| &text[at + key.len()..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_from_metadata_or_tables() {
        let text = "HloModule m

FileNames
1 \"a.py\"
2 \"model.py\"

FunctionNames
1 \"main\"

FileLocations
1 {file_name_id=1 function_name_id=1 line=3 end_line=3 column=0 end_column=9}
2 {file_name_id=2 function_name_id=1 line=77 end_line=80 column=4 end_column=9}

StackFrames
1 {file_location_id=1 parent_frame_id=1}
2 {file_location_id=2 parent_frame_id=1}

ENTRY e {
  p = f32[2] parameter(0), metadata={op_name=\"x\" source_file=\"b.py\" source_line=12}
  n = f32[2] negate(p), metadata={op_name=\"jit(f)/neg\" stack_frame_id=2}
  ROOT c = f32[2] cosine(n)
}
";
        let m = slabplan_ir::text::parse(text).into_result().unwrap();
        let lines: Vec<Option<String>> = m.instrs.keys().map(|i| source_line(&m, i)).collect();
        let expected = [
            Some("b.py:12".to_owned()),
            Some("model.py:77".to_owned()),
            None,
        ];
        assert_eq!(lines, expected);
    }
}
