//! The four source tables between header and computations.

use super::scan::Scan;
use crate::frontend::proto::messages::{FileLocation, StackFrame, StackFrameIndex};

/// Reads the tables' text.
pub(super) fn stack_frame_index(text: &str) -> Result<StackFrameIndex, String> {
    let mut index = StackFrameIndex::default();
    let mut scan = Scan::new(text);
    while !scan.is_done() {
        match scan.word() {
            "FileNames" => index.file_names = strings(&mut scan)?,
            "FunctionNames" => index.function_names = strings(&mut scan)?,
            "FileLocations" => {
                while entry(&mut scan, index.file_locations.len())? {
                    let mut location = FileLocation::default();
                    fields(&mut scan, |key, value| {
                        match key {
                            "file_name_id" => location.file_name_id = value,
                            "function_name_id" => location.function_name_id = value,
                            "line" => location.line = value,
                            "end_line" => location.end_line = value,
                            "column" => location.column = value,
                            "end_column" => location.end_column = value,
                            _ => return false,
                        }
                        true
                    })?;
                    index.file_locations.push(location);
                }
            }
            "StackFrames" => {
                while entry(&mut scan, index.stack_frames.len())? {
                    let mut frame = StackFrame::default();
                    fields(&mut scan, |key, value| {
                        match key {
                            "file_location_id" => frame.file_location_id = value,
                            // The text counts parents from one more than the proto.
                            "parent_frame_id" => frame.parent_frame_id = value.saturating_sub(1),
                            _ => return false,
                        }
                        true
                    })?;
                    index.stack_frames.push(frame);
                }
            }
            other => return Err(format!("unknown section `{other}`")),
        }
    }
    Ok(index)
}

/// Whether another entry follows; its number is taken.
fn entry(scan: &mut Scan<'_>, known: usize) -> Result<bool, String> {
    if !scan.peek().is_some_and(|c| c.is_ascii_digit()) {
        return Ok(false);
    }
    let number: usize = scan.int()?;
    if number == known + 1 {
        Ok(true)
    } else {
        Err(format!("entry {number} where {} was expected", known + 1))
    }
}

fn strings(scan: &mut Scan<'_>) -> Result<Vec<String>, String> {
    let mut list = Vec::new();
    while entry(scan, list.len())? {
        let bytes = scan.string()?;
        list.push(String::from_utf8(bytes).map_err(|_| "a name that is not UTF-8")?);
    }
    Ok(list)
}

fn fields(scan: &mut Scan<'_>, mut set: impl FnMut(&str, i32) -> bool) -> Result<(), String> {
    scan.fields(|scan, key| {
        if set(key, scan.int()?) {
            Ok(())
        } else {
            Err(format!("unknown key `{key}`"))
        }
    })
}
