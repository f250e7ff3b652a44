//! Problems and packings as CSV, in MiniMalloc's form.
//!
//! The first row names the columns, in any order: `id`, `lower`, `upper` and `size` are required; `alignment`, `hint`,
//! `gaps` and `offset` (which fixes a buffer) are optional. Lifetimes are half-open, `[lower, upper)`. MiniMalloc's
//! other names are understood: `buffer` or `buffer_id` for `id`, `start` or `begin` for `lower`, and `end` for the last
//! point of a lifetime, upper minus one. A gap is written `a-b`, a half-open hole in the lifetime; several are
//! separated by blanks. An empty field of an optional column, or -1, stands for none.

use super::problem::{Buffer, Interval, Problem};
use rustc_hash::FxHashMap;
use smallvec::smallvec;
use std::fmt::Write as _;
use thiserror::Error;

/// A problem whose buffers have names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Named {
    /// The problem. Ids follow the order of the names.
    pub problem: Problem,
    /// Name of each buffer, by index.
    pub names: Vec<String>,
}

/// What is wrong with a file, and where.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("line {line}, column {column}: {message}")]
pub struct CsvError {
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// What is wrong, and what is expected.
    pub message: String,
}

/// Reads a problem. A byte order mark, carriage returns and blank lines are passed over.
pub fn parse(text: &str) -> Result<Named, CsvError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut rows = (1..)
        .zip(text.lines())
        .filter(|(_, row)| !row.trim().is_empty());
    let (line, header) = rows.next().ok_or_else(|| {
        error(
            1,
            1,
            "the file is empty; expected a header row with id,lower,upper,size",
        )
    })?;
    let columns = Columns::new(line, header)?;
    let mut named = Named::default();
    let mut seen: FxHashMap<&str, usize> = FxHashMap::default();
    for (line, row) in rows {
        let fields = columns.split(line, row)?;
        let id = fields.get(columns.id).text;
        if let Some(first) = seen.insert(id, line) {
            return Err(fields
                .get(columns.id)
                .error(&format!("duplicate id `{id}`; first on line {first}")));
        }
        named.problem.buffers.push(buffer(&columns, &fields)?);
        named.names.push(id.to_owned());
    }
    number_by_name(&mut named);
    Ok(named)
}

/// Gives every buffer its rank among the names as its id.
pub(super) fn number_by_name(named: &mut Named) {
    let mut order: Vec<usize> = (0..named.names.len()).collect();
    order.sort_by(|&a, &b| named.names[a].cmp(&named.names[b]));
    for (rank, index) in (0..).zip(order) {
        named.problem.buffers[index].id = rank;
    }
}

/// Writes a problem, with the offsets of a packing if there is one.
pub fn print(named: &Named, offsets: Option<&[u64]>) -> String {
    let buffers = &named.problem.buffers;
    let has_alignment = buffers.iter().any(|it| it.alignment != 1);
    let has_hint = buffers.iter().any(|it| it.hint.is_some());
    let has_gaps = buffers.iter().any(|it| it.live.len() > 1);
    let has_offset = offsets.is_some() || buffers.iter().any(|it| it.fixed.is_some());
    let mut out = String::from("id,lower,upper,size");
    for (name, is_present) in [
        ("alignment", has_alignment),
        ("hint", has_hint),
        ("gaps", has_gaps),
        ("offset", has_offset),
    ] {
        if is_present {
            out.push(',');
            out.push_str(name);
        }
    }
    out.push('\n');
    for (index, (buffer, name)) in buffers.iter().zip(&named.names).enumerate() {
        let (lower, upper) = (
            buffer.live.first().map_or(0, |it| it.start),
            buffer.live.last().map_or(0, |it| it.end),
        );
        // Writing to a string can't fail.
        let _ = write!(out, "{name},{lower},{upper},{}", buffer.size);
        if has_alignment {
            let _ = write!(out, ",{}", buffer.alignment);
        }
        if has_hint {
            let _ = write!(
                out,
                ",{}",
                buffer.hint.map_or("-1".to_owned(), |it| it.to_string())
            );
        }
        if has_gaps {
            let gaps = buffer
                .live
                .windows(2)
                .map(|pair| format!("{}-{}", pair[0].end, pair[1].start));
            let _ = write!(out, ",{}", gaps.collect::<Vec<_>>().join(" "));
        }
        if has_offset {
            let offset = offsets.map(|it| it[index]).or(buffer.fixed);
            let _ = write!(
                out,
                ",{}",
                offset.map_or("-1".to_owned(), |it| it.to_string())
            );
        }
        out.push('\n');
    }
    out
}

/// One field and where it stands.
#[derive(Clone, Copy)]
struct Field<'a> {
    text: &'a str,
    line: usize,
    column: usize,
}

impl Field<'_> {
    fn error(self, message: &str) -> CsvError {
        error(self.line, self.column, message)
    }

    fn number(self, name: &str) -> Result<u64, CsvError> {
        self.text.parse().map_err(|_| {
            self.error(&format!(
                "{name} `{}` is not a number from 0 to {}",
                self.text,
                u64::MAX
            ))
        })
    }

    /// A number, or `None` for an empty field or -1.
    fn option(self, name: &str) -> Result<Option<u64>, CsvError> {
        if self.text.is_empty() || self.text == "-1" {
            Ok(None)
        } else {
            self.number(name).map(Some)
        }
    }
}

/// The fields of one row.
struct Fields<'a>(Vec<Field<'a>>);

impl<'a> Fields<'a> {
    fn get(&self, column: usize) -> Field<'a> {
        self.0[column]
    }
}

/// Where each column is.
struct Columns {
    count: usize,
    id: usize,
    lower: usize,
    upper: usize,
    size: usize,
    alignment: Option<usize>,
    hint: Option<usize>,
    gaps: Option<usize>,
    offset: Option<usize>,
    /// Upper ends are given as the last point, not the one after.
    is_inclusive: bool,
}

impl Columns {
    fn new(line: usize, header: &str) -> Result<Self, CsvError> {
        const KNOWN: [&str; 8] = [
            "id",
            "lower",
            "upper",
            "size",
            "alignment",
            "hint",
            "gaps",
            "offset",
        ];
        let mut places = [None; KNOWN.len()];
        let mut is_inclusive = false;
        let fields = split(line, header);
        for (place, field) in fields.iter().enumerate() {
            let name = match field.text {
                "buffer" | "buffer_id" => "id",
                "start" | "begin" => "lower",
                "end" => "upper",
                other => other,
            };
            is_inclusive |= field.text == "end";
            let known = KNOWN.iter().position(|it| *it == name).ok_or_else(|| {
                field.error(&format!(
                    "unknown column `{}`; known are {}",
                    field.text,
                    KNOWN.join(", ")
                ))
            })?;
            if places[known].replace(place).is_some() {
                return Err(field.error(&format!("the column `{name}` is there twice")));
            }
        }
        let required = |known: usize| {
            places[known].ok_or_else(|| {
                error(
                    line,
                    1,
                    &format!("the column `{}` is missing", KNOWN[known]),
                )
            })
        };
        let [.., alignment, hint, gaps, offset] = places;
        Ok(Self {
            count: fields.len(),
            id: required(0)?,
            lower: required(1)?,
            upper: required(2)?,
            size: required(3)?,
            alignment,
            hint,
            gaps,
            offset,
            is_inclusive,
        })
    }

    fn split<'a>(&self, line: usize, row: &'a str) -> Result<Fields<'a>, CsvError> {
        let fields = split(line, row);
        if fields.len() == self.count {
            return Ok(Fields(fields));
        }
        let column = fields
            .get(self.count)
            .map_or(row.chars().count() + 1, |field| field.column);
        Err(error(
            line,
            column,
            &format!(
                "{} fields where the header has {}",
                fields.len(),
                self.count
            ),
        ))
    }
}

fn split(line: usize, row: &str) -> Vec<Field<'_>> {
    let mut column = 1;
    let cut = row.split(',').map(|raw| {
        let text = raw.trim();
        let blanks = raw.chars().take_while(|it| it.is_whitespace()).count();
        let field = Field {
            text,
            line,
            column: column + if text.is_empty() { 0 } else { blanks },
        };
        column += raw.chars().count() + 1;
        field
    });
    cut.collect()
}

fn buffer(columns: &Columns, fields: &Fields<'_>) -> Result<Buffer, CsvError> {
    let lower = fields.get(columns.lower).number("lower")?;
    let mut upper = fields.get(columns.upper).number("upper")?;
    if columns.is_inclusive {
        upper = upper
            .checked_add(1)
            .ok_or_else(|| fields.get(columns.upper).error("end is too large"))?;
    }
    if upper < lower {
        return Err(fields
            .get(columns.upper)
            .error(&format!("upper {upper} is below lower {lower}")));
    }
    let mut buffer = Buffer::new(0, lower, upper, fields.get(columns.size).number("size")?);
    if let Some(field) = columns.alignment.map(|it| fields.get(it)) {
        buffer.alignment = field.option("alignment")?.unwrap_or(1);
        if buffer.alignment == 0 {
            return Err(field.error("alignment 0; use 1 for no alignment"));
        }
    }
    if let Some(field) = columns.hint.map(|it| fields.get(it)) {
        buffer.hint = field.option("hint")?;
    }
    if let Some(field) = columns.offset.map(|it| fields.get(it)) {
        buffer.fixed = field.option("offset")?;
        if buffer
            .fixed
            .is_some_and(|offset| offset % buffer.alignment != 0)
        {
            return Err(field.error(&format!(
                "offset {} is not a multiple of the alignment {}",
                field.text, buffer.alignment
            )));
        }
    }
    if let Some(field) = columns.gaps.map(|it| fields.get(it)) {
        cut_gaps(&mut buffer, field, u64::from(columns.is_inclusive))?;
    }
    Ok(buffer)
}

/// Cuts the gaps out of a buffer's one span.
fn cut_gaps(buffer: &mut Buffer, field: Field<'_>, addend: u64) -> Result<(), CsvError> {
    let whole = buffer.live[0];
    let mut gaps: Vec<Interval> = Vec::new();
    for text in field.text.split_whitespace() {
        let bad = || {
            field.error(&format!(
                "gap `{text}` is not of the form 3-7; windows of bytes are not supported"
            ))
        };
        let (low, high) = text.split_once('-').ok_or_else(bad)?;
        let (low, high): (u64, u64) = (
            low.parse().map_err(|_| bad())?,
            high.parse().map_err(|_| bad())?,
        );
        let high = high.checked_add(addend).ok_or_else(bad)?;
        if low > high || low < whole.start || high > whole.end {
            return Err(field.error(&format!(
                "gap `{text}` is not within the lifetime [{}, {})",
                whole.start, whole.end
            )));
        }
        gaps.push(Interval::new(low, high));
    }
    gaps.sort_unstable();
    let mut spans = smallvec![];
    let mut start = whole.start;
    for gap in gaps.iter().filter(|gap| !gap.is_empty()) {
        if gap.start > start {
            spans.push(Interval::new(start, gap.start));
        }
        start = start.max(gap.end);
    }
    if start < whole.end || spans.is_empty() {
        spans.push(Interval::new(start, whole.end));
    }
    buffer.live = spans;
    Ok(())
}

fn error(line: usize, column: usize, message: &str) -> CsvError {
    CsvError {
        line,
        column,
        message: message.to_owned(),
    }
}
