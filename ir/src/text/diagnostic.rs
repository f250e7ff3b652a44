//! Errors of the text parser, with their place.

use std::fmt;
use std::ops::Range;

/// One error in HLO text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// Bytes of the source that are wrong; may be empty at the end of the text.
    pub span: Range<usize>,
    /// Line of the span's start, from 1.
    pub line: usize,
    /// Column of the span's start in characters, from 1.
    pub column: usize,
    /// What is wrong.
    pub message: String,
    /// A few words for the caret; may be empty.
    pub label: String,
    /// What to do about it, where known.
    pub help: Option<String>,
}

/// A [`Diagnostic`] on its way out of the grammar rules; boxed to keep the good case small.
#[derive(Debug)]
pub(crate) struct Fault(Box<Diagnostic>);

impl Fault {
    /// An error at `span`; line and column are filled in when parsing ends.
    pub(crate) fn new(span: Range<usize>, message: impl Into<String>) -> Self {
        Self(Box::new(Diagnostic {
            span,
            line: 0,
            column: 0,
            message: message.into(),
            label: String::new(),
            help: None,
        }))
    }

    /// The same with a label.
    pub(crate) fn label(mut self, label: impl Into<String>) -> Self {
        self.0.label = label.into();
        self
    }

    /// The same with a remedy.
    pub(crate) fn help(mut self, help: impl Into<String>) -> Self {
        self.0.help = Some(help.into());
        self
    }

    /// Where the bad text starts.
    pub(crate) fn start(&self) -> usize {
        self.0.span.start
    }

    /// The error itself.
    pub(crate) fn into_diagnostic(self) -> Diagnostic {
        *self.0
    }
}

impl fmt::Display for Diagnostic {
    /// `line:column: message`, then the remedy.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.line, self.column, self.message)?;
        match &self.help {
            Some(help) => write!(f, " ({help})"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Diagnostic {}

/// Result of one grammar rule.
pub(crate) type Rule<T> = Result<T, Fault>;

/// Sorts by place and fills in lines and columns in one pass over `source`.
pub(crate) fn locate(source: &str, diagnostics: &mut [Diagnostic]) {
    diagnostics.sort_by_key(|d| d.span.start);
    let (mut line, mut line_start, mut pos) = (1, 0, 0);
    for d in diagnostics {
        let start = d.span.start.min(source.len());
        for (i, _) in source[pos..start].match_indices('\n') {
            line += 1;
            line_start = pos + i + 1;
        }
        pos = start;
        d.line = line;
        d.column = source[line_start..start].chars().count() + 1;
    }
}

/// Text of the source as messages show it: escaped, and cut where it is long.
pub(crate) fn shown(text: &str) -> String {
    const LONGEST: usize = 60;
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}...", text[..end].escape_debug()),
        None => text.escape_debug().to_string(),
    }
}

/// The candidate nearest to `word` by edit distance, if it is near enough to be what was meant.
pub(crate) fn nearest<'c>(
    word: &str,
    candidates: impl IntoIterator<Item = &'c str>,
) -> Option<&'c str> {
    // Very short words resemble everything; very long ones are no slips.
    if word.len() < 3 || 100 < word.len() {
        return None;
    }
    let limit = (word.len() / 3).min(4);
    candidates
        .into_iter()
        .filter(|c| c.len().abs_diff(word.len()) <= limit)
        .map(|c| (edit_distance(word, c, limit), c))
        .filter(|&(d, _)| d <= limit)
        .min_by_key(|&(d, _)| d)
        .map(|(_, c)| c)
}

/// Levenshtein distance, or something above `limit` as soon as it must exceed it.
fn edit_distance(a: &str, b: &str, limit: usize) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.bytes().enumerate() {
        let mut diagonal = i;
        row[0] = i + 1;
        for (j, y) in b.bytes().enumerate() {
            let replace = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = replace.min(row[j] + 1).min(row[j + 1] + 1);
        }
        if row.iter().all(|&d| d > limit) {
            return limit + 1;
        }
    }
    row[b.len()]
}
