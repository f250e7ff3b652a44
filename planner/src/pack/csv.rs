//! Problems and packings as CSV, in MiniMalloc's form.
//!
//! The first row names the columns, in any order: `id`, `lower`, `upper` and `size` are required; `alignment`, `hint`,
//! `gaps` and `offset` (which fixes a buffer) are optional. Lifetimes are half-open, `[lower, upper)`. MiniMalloc's
//! other names are understood: `buffer` or `buffer_id` for `id`, `start` or `begin` for `lower`, and `end` for the last
//! point of a lifetime, upper minus one. A gap is written `a-b`, a half-open hole in the lifetime; several are
//! separated by blanks. An empty field of an optional column, or -1, stands for none. A field in double quotes may
//! hold commas, blanks at its ends, line breaks, and quotes, each written twice.

use super::problem::{Buffer, Interval, Problem};
use smallvec::{SmallVec, smallvec};
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

/// Reads a problem. A byte order mark, carriage returns and blank lines are passed over. O(n log n).
pub fn parse(text: &str) -> Result<Named, CsvError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let (line, header) = rows(text).next().ok_or_else(|| {
        error(
            1,
            1,
            "the file is empty; expected a header row with id,lower,upper,size",
        )
    })?;
    let columns = Columns::new(line, header)?;
    let mut named = Named::default();
    let mut fields = Fields::new();
    for (line, row) in rows(text).skip(1) {
        columns.split(line, row, &mut fields)?;
        named.problem.buffers.push(buffer(&columns, &fields)?);
        named.names.push(fields[columns.id].name());
    }
    match number_by_name(&mut named) {
        None => Ok(named),
        Some((first, second)) => {
            let row = |index: usize| rows(text).nth(index + 1).unwrap_or((line, header));
            let (line, row_text) = row(second);
            columns.split(line, row_text, &mut fields)?;
            let id = fields[columns.id];
            Err(id.error(&format!(
                "duplicate id `{}`; first on line {}",
                id.text,
                row(first).0
            )))
        }
    }
}

/// The rows that are not blank, with the numbers of their first lines.
fn rows(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let (mut rest, mut line) = (text, 1);
    let next = move || {
        if rest.is_empty() {
            return None;
        }
        let length = row_length(rest);
        let (row, first) = (&rest[..length], line);
        rest = rest.get(length + 1..).unwrap_or("");
        line += 1 + row.matches('\n').count();
        Some((first, row.strip_suffix('\r').unwrap_or(row)))
    };
    std::iter::from_fn(next).filter(|(_, row)| !row.trim().is_empty())
}

/// Bytes of the first row, without the line break that ends it.
fn row_length(text: &str) -> usize {
    let line = text.find('\n').unwrap_or(text.len());
    if !text[..line].contains('"') {
        return line;
    }
    let mut end = field_end(text, 0);
    while text[end..].starts_with(',') {
        end = field_end(text, end + 1);
    }
    end
}

/// Where the field that begins at `at` ends: at a comma, a line break or the end of the text.
fn field_end(text: &str, at: usize) -> usize {
    let raw = &text[at..];
    let mut end = at + quoted(raw).map_or(0, |it| it.end + 1);
    end += text
        .get(end..)
        .and_then(|rest| rest.find([',', '\n']))
        .unwrap_or(text.len().saturating_sub(end));
    end.min(text.len())
}

/// What is between the quotes of a field, if it has them; without a closing one, all of the rest.
fn quoted(raw: &str) -> Option<std::ops::Range<usize>> {
    let start = raw.find(|it| it != ' ' && it != '\t')?;
    let inner = raw[start..].strip_prefix('"')?;
    let mut end = 0;
    while let Some(quote) = inner[end..].find('"') {
        end += quote;
        if !inner[end + 1..].starts_with('"') {
            return Some(start + 1..start + 1 + end);
        }
        end += 2;
    }
    Some(start + 1..raw.len())
}

/// Gives every buffer its rank among the names as its id. Of two equal names, returns the indices: that of the first
/// row that repeats a name comes second.
pub(super) fn number_by_name(named: &mut Named) -> Option<(usize, usize)> {
    let names = &named.names;
    // Most names differ in their first eight bytes.
    let mut order: Vec<(u64, u32)> = names.iter().map(|name| head(name)).zip(0..).collect();
    order.sort_unstable_by(|a, b| {
        let name = |it: &(u64, u32)| &names[it.1 as usize];
        a.0.cmp(&b.0)
            .then_with(|| name(a).cmp(name(b)))
            .then(a.1.cmp(&b.1))
    });
    let repeated = order
        .windows(2)
        .filter(|it| it[0].0 == it[1].0 && names[it[0].1 as usize] == names[it[1].1 as usize]);
    let earliest = repeated
        .min_by_key(|it| it[1].1)
        .map(|it| (it[0].1 as usize, it[1].1 as usize));
    for (rank, it) in (0..).zip(order) {
        named.problem.buffers[it.1 as usize].id = rank;
    }
    earliest
}

/// The first eight bytes of a name, as a number of the same order.
fn head(name: &str) -> u64 {
    let mut bytes = [0; 8];
    let count = name.len().min(8);
    bytes[..count].copy_from_slice(&name.as_bytes()[..count]);
    u64::from_be_bytes(bytes)
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
        push_name(&mut out, name);
        for number in [lower, upper, buffer.size] {
            push(&mut out, Some(number));
        }
        if has_alignment {
            push(&mut out, Some(buffer.alignment));
        }
        if has_hint {
            push(&mut out, buffer.hint);
        }
        if has_gaps {
            let gaps = buffer
                .live
                .windows(2)
                .map(|pair| format!("{}-{}", pair[0].end, pair[1].start));
            out.push(',');
            out.push_str(&gaps.collect::<Vec<_>>().join(" "));
        }
        if has_offset {
            push(&mut out, offsets.map(|it| it[index]).or(buffer.fixed));
        }
        out.push('\n');
    }
    out
}

/// Adds a name, in quotes where it would not be read back as it is.
fn push_name(out: &mut String, name: &str) {
    let is_plain = !name.contains([',', '"', '\n', '\r']) && name.trim() == name;
    if is_plain {
        out.push_str(name);
    } else {
        out.push('"');
        out.push_str(&name.replace('"', "\"\""));
        out.push('"');
    }
}

/// Adds a comma and a number, or -1 for none.
fn push(out: &mut String, number: Option<u64>) {
    out.push(',');
    let Some(mut rest) = number else {
        out.push_str("-1");
        return;
    };
    let (mut digits, mut first) = ([b'0'; 20], 20);
    loop {
        first -= 1;
        digits[first] += (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    out.extend(digits[first..].iter().map(|&digit| char::from(digit)));
}

/// One field and where it stands.
#[derive(Clone, Copy)]
struct Field<'a> {
    /// Without blanks at the ends, and without quotes around it.
    text: &'a str,
    is_quoted: bool,
    row: &'a str,
    line: usize,
    /// Where the field begins in the row, blanks included.
    at: usize,
}

impl Field<'_> {
    fn error(self, message: &str) -> CsvError {
        let before = &self.row[..self.at];
        let line = self.line + before.matches('\n').count();
        error(line, self.column(), message)
    }

    /// Column of the first character that is not blank, from 1.
    fn column(self) -> usize {
        let (before, raw) = self.row.split_at(self.at);
        let before = before.rsplit('\n').next().unwrap_or("");
        let blanks = if self.text.is_empty() {
            0
        } else {
            raw.chars().take_while(|it| it.is_whitespace()).count()
        };
        before.chars().count() + blanks + 1
    }

    /// The text as it is meant.
    fn name(self) -> String {
        if self.is_quoted {
            self.text.replace("\"\"", "\"")
        } else {
            self.text.to_owned()
        }
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
type Fields<'a> = SmallVec<[Field<'a>; 8]>;

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
        let mut fields = Fields::new();
        split(line, header, &mut fields)?;
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

    fn split<'a>(
        &self,
        line: usize,
        row: &'a str,
        fields: &mut Fields<'a>,
    ) -> Result<(), CsvError> {
        split(line, row, fields)?;
        if fields.len() == self.count {
            return Ok(());
        }
        let column = fields
            .get(self.count)
            .map_or(row.chars().count() + 1, |field| field.column());
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

fn split<'a>(line: usize, row: &'a str, fields: &mut Fields<'a>) -> Result<(), CsvError> {
    fields.clear();
    let has_quotes = row.contains('"');
    let mut at = 0;
    loop {
        let end = if has_quotes {
            field_end(row, at)
        } else {
            row[at..].find(',').map_or(row.len(), |it| at + it)
        };
        let raw = &row[at..end];
        let inner = if has_quotes { quoted(raw) } else { None };
        let field = Field {
            text: inner.clone().map_or(raw.trim(), |it| &raw[it]),
            is_quoted: inner.is_some(),
            row,
            line,
            at,
        };
        match inner.map(|it| raw[it.end..].strip_prefix('"')) {
            Some(None) => return Err(field.error("the quote is never closed")),
            Some(Some(more)) if !more.trim().is_empty() => {
                let message = format!("`{}` follows the closing quote", more.trim());
                return Err(field.error(&message));
            }
            _ => fields.push(field),
        }
        if end == row.len() {
            return Ok(());
        }
        at = end + 1;
    }
}

fn buffer(columns: &Columns, fields: &Fields<'_>) -> Result<Buffer, CsvError> {
    let lower = fields[columns.lower].number("lower")?;
    let mut upper = fields[columns.upper].number("upper")?;
    if columns.is_inclusive {
        upper = upper
            .checked_add(1)
            .ok_or_else(|| fields[columns.upper].error("end is too large"))?;
    }
    if upper < lower {
        return Err(fields[columns.upper].error(&format!("upper {upper} is below lower {lower}")));
    }
    let mut buffer = Buffer::new(0, lower, upper, fields[columns.size].number("size")?);
    if let Some(field) = columns.alignment.map(|it| fields[it]) {
        buffer.alignment = field.option("alignment")?.unwrap_or(1);
        if buffer.alignment == 0 {
            return Err(field.error("alignment 0; use 1 for no alignment"));
        }
    }
    if let Some(field) = columns.hint.map(|it| fields[it]) {
        buffer.hint = field.option("hint")?;
    }
    if let Some(field) = columns.offset.map(|it| fields[it]) {
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
    if let Some(field) = columns.gaps.map(|it| fields[it]) {
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
