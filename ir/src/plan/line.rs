//! One line of a plan's text form, read word by word.

use super::error::{PlanPlace, PlanReadError};
use crate::units::Bytes;

/// A line and how far it has been read.
pub(super) struct Line<'t> {
    number: usize,
    text: &'t str,
    /// Byte at which the next word is looked for.
    next: usize,
    /// Byte at which the last word began: where errors point.
    last: usize,
}

impl<'t> Line<'t> {
    /// Line `number` (from 1).
    pub(super) fn new(number: usize, text: &'t str) -> Self {
        Self {
            number,
            text,
            next: 0,
            last: 0,
        }
    }

    /// Whether it is empty or a comment.
    pub(super) fn is_blank(&self) -> bool {
        let text = self.text.trim_start();
        text.is_empty() || text.starts_with('#')
    }

    /// Whether nothing is left.
    pub(super) fn is_done(&mut self) -> bool {
        self.skip_space();
        self.next == self.text.len()
    }

    /// An error at the last word.
    pub(super) fn error(&self, message: impl Into<String>) -> PlanReadError {
        let column = self.text[..self.last].chars().count() + 1;
        PlanReadError::malformed(PlanPlace::Line(self.number, column), message)
    }

    /// The next word, to the next space.
    pub(super) fn word(&mut self) -> Result<&'t str, PlanReadError> {
        self.skip_space();
        self.last = self.next;
        let rest = &self.text[self.next..];
        let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
        if end == 0 {
            return Err(self.error("the line ends too early"));
        }
        self.next += end;
        Ok(&rest[..end])
    }

    /// The next word must be `word`.
    pub(super) fn keyword(&mut self, word: &str) -> Result<(), PlanReadError> {
        match self.word() {
            Ok(found) if found == word => Ok(()),
            Ok(found) => Err(self.error(format!("expected `{word}`, found `{found}`"))),
            Err(_) => Err(self.error(format!("expected `{word}`"))),
        }
    }

    /// The key of a following `key=value`; none where the next word is not one.
    pub(super) fn key(&mut self) -> Result<Option<&'t str>, PlanReadError> {
        self.skip_space();
        let rest = &self.text[self.next..];
        let end = rest.find(|c: char| c == '=' || c.is_whitespace());
        match end {
            Some(end) if rest.as_bytes()[end] == b'=' => {
                self.last = self.next;
                self.next += end + 1;
                if end == 0 {
                    return Err(self.error("expected a name before `=`"));
                }
                Ok(Some(&rest[..end]))
            }
            _ => Ok(None),
        }
    }

    /// A string in quotes.
    pub(super) fn string(&mut self) -> Result<String, PlanReadError> {
        self.skip_space();
        self.last = self.next;
        let rest = &self.text[self.next..];
        let mut strings = serde_json::Deserializer::from_str(rest).into_iter::<String>();
        match strings.next() {
            Some(Ok(s)) => {
                self.next += strings.byte_offset();
                Ok(s)
            }
            _ => Err(self.error("expected a string in quotes")),
        }
    }

    /// A number.
    pub(super) fn number(&mut self) -> Result<u64, PlanReadError> {
        let word = self.word()?;
        word.parse()
            .map_err(|_| self.error(format!("`{word}` is not a number of at most 64 bits")))
    }

    /// A number of at most 32 bits.
    pub(super) fn u32(&mut self) -> Result<u32, PlanReadError> {
        let n = self.number()?;
        u32::try_from(n).map_err(|_| self.error(format!("{n} is too large")))
    }

    /// A number of bytes.
    pub(super) fn bytes(&mut self) -> Result<Bytes, PlanReadError> {
        let n = self.number()?;
        Bytes::new(n).map_err(|e| self.error(e.to_string()))
    }

    /// Passes over a value, quoted or not.
    pub(super) fn skip_value(&mut self) -> Result<(), PlanReadError> {
        if self.text[self.next..].starts_with('"') {
            self.string().map(drop)
        } else {
            self.word().map(drop)
        }
    }

    fn skip_space(&mut self) {
        let rest = &self.text[self.next..];
        self.next += rest.len() - rest.trim_start().len();
    }
}
