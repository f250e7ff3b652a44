//! The lexer: a position in the text and the small pieces of HLO's grammar.
//!
//! Works on bytes: all delimiters are ASCII, so every range it returns lies
//! on character boundaries.

use std::ops::Range;

use super::diagnostic::{Fault, Rule, shown};

/// Reads HLO text from front to back.
#[derive(Clone)]
pub(crate) struct Cursor<'s> {
    text: &'s str,
    pos: usize,
}

/// Which quotes hide braces inside balanced text.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Quotes {
    /// Only `"`: JSON, where `'` is an ordinary character.
    Double,
    /// Both `"` and `'`, as HLO strings are written.
    Both,
}

/// Bytes that may stand in an identifier after its first.
const IDENT: [bool; 256] = {
    let mut table = [false; 256];
    let mut i = 0;
    while i < 256 {
        let b = i as u8;
        table[i] = b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'-');
        i += 1;
    }
    table
};

/// Bytes that [`Cursor::balanced`] must look at.
const STRUCTURAL: [bool; 256] = {
    let mut table = [false; 256];
    table[b'{' as usize] = true;
    table[b'}' as usize] = true;
    table[b'(' as usize] = true;
    table[b')' as usize] = true;
    table[b'"' as usize] = true;
    table[b'\'' as usize] = true;
    table[b'/' as usize] = true;
    table
};

pub(crate) fn is_ident_byte(b: u8) -> bool {
    IDENT[b as usize]
}

fn is_ident_start(b: u8) -> bool {
    b.is_ascii_alphabetic() || b == b'_'
}

impl<'s> Cursor<'s> {
    pub(crate) fn new(text: &'s str) -> Self {
        Self { text, pos: 0 }
    }

    pub(crate) fn pos(&self) -> usize {
        self.pos
    }

    pub(crate) fn set_pos(&mut self, pos: usize) {
        self.pos = pos;
    }

    pub(crate) fn text(&self) -> &'s str {
        self.text
    }

    /// The text of a range this cursor returned.
    pub(crate) fn slice(&self, range: Range<usize>) -> &'s str {
        &self.text[range]
    }

    /// From `start` to the position, without the white space around it.
    pub(crate) fn span_from(&self, start: usize) -> Range<usize> {
        let text = &self.text[start..self.pos];
        let end = start + text.trim_end().len();
        end - text.trim().len()..end
    }

    /// The byte at the position, 0 at the end of the text.
    pub(crate) fn peek(&self) -> u8 {
        self.peek_at(0)
    }

    /// The byte `n` further on, 0 past the end of the text.
    pub(crate) fn peek_at(&self, n: usize) -> u8 {
        self.text.as_bytes().get(self.pos + n).copied().unwrap_or(0)
    }

    pub(crate) fn at_end(&self) -> bool {
        self.pos >= self.text.len()
    }

    /// Moves over one byte, which must be ASCII.
    pub(crate) fn bump(&mut self) {
        debug_assert!(self.peek().is_ascii());
        self.pos += 1;
    }

    /// Skips white space and comments.
    ///
    /// Stops in front of a comment that does not end; [`unexpected`](Self::unexpected) reports it.
    #[inline]
    pub(crate) fn skip_space(&mut self) {
        let bytes = self.text.as_bytes();
        while let Some(&b) = bytes.get(self.pos) {
            match b {
                b' ' | b'\n' | b'\t' | b'\r' => self.pos += 1,
                b'/' => match self.comment_end() {
                    Some(end) => self.pos = end,
                    None => return,
                },
                _ => return,
            }
        }
    }

    /// The end of the comment at the position, if a whole one stands there.
    fn comment_end(&self) -> Option<usize> {
        let rest = &self.text.as_bytes()[self.pos..];
        match rest.get(1)? {
            b'/' => Some(
                rest.iter()
                    .position(|&b| matches!(b, b'\n' | b'\r'))
                    .map_or(self.text.len(), |i| self.pos + i),
            ),
            b'*' => rest[2..]
                .windows(2)
                .position(|w| w == b"*/")
                .map(|i| self.pos + i + 4),
            _ => None,
        }
    }

    /// Skips space, then moves over `b` if it stands there.
    #[inline]
    pub(crate) fn eat(&mut self, b: u8) -> bool {
        self.skip_space();
        let found = self.peek() == b && !self.at_end();
        self.pos += usize::from(found);
        found
    }

    /// Skips space, then moves over `token` if it stands there.
    pub(crate) fn eat_str(&mut self, token: &str) -> bool {
        self.skip_space();
        let found = self.text.as_bytes()[self.pos..].starts_with(token.as_bytes());
        if found {
            self.pos += token.len();
        }
        found
    }

    /// Skips space, then moves over the identifier `word` if exactly that one stands there.
    pub(crate) fn eat_word(&mut self, word: &str) -> bool {
        self.skip_space();
        let found = self.text.as_bytes()[self.pos..].starts_with(word.as_bytes())
            && !is_ident_byte(self.peek_at(word.len()));
        if found {
            self.pos += word.len();
        }
        found
    }

    /// Moves over `b` or fails with `wanted` in the message.
    #[inline]
    pub(crate) fn expect(&mut self, b: u8, wanted: &str) -> Rule<()> {
        if self.eat(b) {
            Ok(())
        } else {
            Err(self.unexpected(wanted))
        }
    }

    /// An identifier, if one stands at the position (space is skipped).
    #[inline]
    pub(crate) fn ident(&mut self) -> Option<Range<usize>> {
        self.skip_space();
        if !is_ident_start(self.peek()) {
            return None;
        }
        let bytes = self.text.as_bytes();
        let start = self.pos;
        let mut end = start + 1;
        while end < bytes.len() && IDENT[bytes[end] as usize] {
            end += 1;
        }
        self.pos = end;
        Some(start..end)
    }

    /// A name: an identifier with or without `%`; the range is without it.
    pub(crate) fn name(&mut self, what: &str) -> Rule<Range<usize>> {
        self.skip_space();
        if self.peek() == b'%' {
            self.pos += 1;
            if !is_ident_start(self.peek()) {
                return Err(self.unexpected(what));
            }
        }
        match self.ident() {
            Some(name) => Ok(name),
            None => Err(self.unexpected(what)),
        }
    }

    /// A signed 64-bit integer.
    pub(crate) fn int(&mut self, what: &str) -> Rule<i64> {
        self.skip_space();
        let start = self.pos;
        self.pos += usize::from(self.peek() == b'-');
        let digits = self.pos;
        while self.peek().is_ascii_digit() {
            self.pos += 1;
        }
        let end = self.pos;
        if digits == end {
            self.pos = start;
            return Err(self.unexpected(what));
        }
        self.text[start..end].parse().map_err(|_| {
            Fault::new(start..end, format!("{what} does not fit 64 bits")).label("too large")
        })
    }

    /// An integer that is not negative.
    pub(crate) fn uint(&mut self, what: &str) -> Rule<u64> {
        self.skip_space();
        let start = self.pos;
        let n = self.int(what)?;
        u64::try_from(n)
            .map_err(|_| Fault::new(start..self.pos, format!("{what} must not be negative")))
    }

    /// An integer that fits `u32`.
    pub(crate) fn uint32(&mut self, what: &str) -> Rule<u32> {
        self.skip_space();
        let start = self.pos;
        let n = self.uint(what)?;
        u32::try_from(n).map_err(|_| Fault::new(start..self.pos, format!("{what} is too large")))
    }

    /// A quoted string, the range with its quotes.
    pub(crate) fn string(&mut self, what: &str) -> Rule<Range<usize>> {
        self.skip_space();
        let start = self.pos;
        let quote = self.peek();
        if quote != b'"' && quote != b'\'' {
            return Err(self.unexpected(what));
        }
        match self.string_end() {
            Some(end) => {
                self.pos = end;
                Ok(start..end)
            }
            None => Err(Fault::new(start..start + 1, "unterminated string")
                .label("opened here and never closed")),
        }
    }

    /// The end of the quoted string at the position.
    fn string_end(&self) -> Option<usize> {
        let bytes = self.text.as_bytes();
        let quote = bytes[self.pos];
        let mut i = self.pos + 1;
        while let Some(&b) = bytes.get(i) {
            if b == quote {
                return Some(i + 1);
            }
            i += if b == b'\\' { 2 } else { 1 };
        }
        None
    }

    /// Balanced text from the opening brace or parenthesis at the position to its partner, the
    /// range with both. Quoted strings and comments hide what they hold.
    pub(crate) fn balanced(&mut self, quotes: Quotes, what: &str) -> Rule<Range<usize>> {
        self.skip_space();
        let start = self.pos;
        if !matches!(self.peek(), b'{' | b'(') {
            return Err(self.unexpected(what));
        }
        let bytes = self.text.as_bytes();
        let mut depth = 0usize;
        while self.pos < bytes.len() {
            let b = bytes[self.pos];
            if !STRUCTURAL[b as usize] {
                self.pos += 1;
                continue;
            }
            match b {
                b'{' | b'(' => depth += 1,
                b'}' | b')' => {
                    depth -= 1;
                    if depth == 0 {
                        self.pos += 1;
                        return Ok(start..self.pos);
                    }
                }
                b'"' => match self.string_end() {
                    Some(end) => {
                        self.pos = end;
                        continue;
                    }
                    None => break,
                },
                b'\'' if quotes == Quotes::Both => match self.string_end() {
                    Some(end) => {
                        self.pos = end;
                        continue;
                    }
                    None => break,
                },
                b'/' if quotes == Quotes::Both => match self.comment_end() {
                    Some(end) => {
                        self.pos = end;
                        continue;
                    }
                    None if self.peek_at(1) == b'*' => break,
                    None => {}
                },
                _ => {}
            }
            self.pos += 1;
        }
        self.pos = start;
        Err(Fault::new(start..start + 1, format!("unterminated {what}"))
            .label("opened here and never closed"))
    }

    /// An error that says what stands at the position and what was wanted.
    pub(crate) fn unexpected(&self, wanted: &str) -> Fault {
        let rest = &self.text[self.pos..];
        let Some(first) = rest.chars().next() else {
            return Fault::new(
                self.pos..self.pos,
                format!("expected {wanted}, found the end of the text"),
            )
            .help("the text may be truncated");
        };
        if rest.starts_with("/*") {
            return Fault::new(self.pos..self.pos + 2, "unterminated comment")
                .label("opened here and never closed");
        }
        let token_len = if is_ident_byte(rest.as_bytes()[0]) || first == '%' {
            1 + rest
                .bytes()
                .skip(1)
                .take_while(|&b| is_ident_byte(b))
                .count()
        } else {
            first.len_utf8()
        };
        Fault::new(
            self.pos..self.pos + token_len,
            format!("expected {wanted}, found `{}`", shown(&rest[..token_len])),
        )
        .label(format!("expected {wanted}"))
    }
}
