//! Reading the attributes that modules keep as text.

use std::collections::BTreeMap;

use crate::frontend::proto::messages::{FrontendAttributes, Metadata};

/// A text and how far it is read.
#[derive(Clone)]
pub(super) struct Scan<'a> {
    rest: &'a str,
}

impl<'a> Scan<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        let mut scan = Self { rest: text };
        scan.space();
        scan
    }

    /// Skips white space and comments.
    fn space(&mut self) {
        loop {
            self.rest = self.rest.trim_start();
            if let Some(comment) = self.rest.strip_prefix("/*") {
                self.rest = comment.split_once("*/").map_or("", |(_, rest)| rest);
            } else if self.rest.starts_with("//") {
                self.rest = self.rest.split_once('\n').map_or("", |(_, rest)| rest);
            } else {
                return;
            }
        }
    }

    pub(super) fn is_done(&self) -> bool {
        self.rest.is_empty()
    }

    pub(super) fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    pub(super) fn starts_with(&self, word: &str) -> bool {
        self.rest.starts_with(word)
    }

    /// Takes `word` if it comes next.
    pub(super) fn eat(&mut self, word: &str) -> bool {
        let Some(rest) = self.rest.strip_prefix(word) else {
            return false;
        };
        self.rest = rest;
        self.space();
        true
    }

    pub(super) fn expect(&mut self, word: &str) -> Result<(), String> {
        if self.eat(word) {
            return Ok(());
        }
        let found: String = self.rest.chars().take(20).collect();
        Err(format!("expected `{word}` before `{found}`"))
    }

    /// Letters, digits, `_`, `.` and `-`; may be empty.
    pub(super) fn word(&mut self) -> &'a str {
        let end = self
            .rest
            .find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-')))
            .unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        self.space();
        word
    }

    pub(super) fn int<T: std::str::FromStr>(&mut self) -> Result<T, String> {
        let word = self.word();
        word.parse()
            .map_err(|_| format!("`{word}` is not a number of the right size"))
    }

    /// A number with a fraction or exponent.
    pub(super) fn float(&mut self) -> Result<f64, String> {
        let end = self
            .rest
            .find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.')))
            .unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        self.space();
        word.parse()
            .map_err(|_| format!("`{word}` is not a number"))
    }

    /// `{key=value ...}`, also with commas: `read` takes each value.
    pub(super) fn fields(
        &mut self,
        mut read: impl FnMut(&mut Self, &'a str) -> Result<(), String>,
    ) -> Result<(), String> {
        self.expect("{")?;
        while !self.eat("}") {
            self.eat(",");
            let key = self.word();
            self.expect("=")?;
            read(self, key)?;
        }
        Ok(())
    }

    /// Numbers with commas between, up to `close`, which is taken.
    pub(super) fn ints<T: std::str::FromStr>(&mut self, close: &str) -> Result<Vec<T>, String> {
        let mut list = Vec::new();
        while !self.eat(close) {
            if !list.is_empty() {
                self.expect(",")?;
            }
            list.push(self.int()?);
        }
        Ok(list)
    }

    /// A quoted string, with its escapes undone.
    pub(super) fn string(&mut self) -> Result<Vec<u8>, String> {
        let mut at = self.rest.char_indices();
        let Some((_, quote @ ('"' | '\''))) = at.next() else {
            return Err("expected a quoted string".to_owned());
        };
        let mut escaped = false;
        for (i, c) in at {
            if escaped {
                escaped = false;
            } else if c == '\\' {
                escaped = true;
            } else if c == quote {
                let inner = &self.rest[1..i];
                self.rest = &self.rest[i + 1..];
                self.space();
                return Ok(unescaped(inner));
            }
        }
        Err("a string that does not end".to_owned())
    }

    /// A dictionary in braces as it stands, quoted braces respected.
    pub(super) fn dictionary(&mut self) -> Result<&'a str, String> {
        let (mut depth, mut quoted, mut escaped) = (0usize, false, false);
        for (i, c) in self.rest.char_indices() {
            match c {
                _ if escaped => escaped = false,
                '\\' if quoted => escaped = true,
                '"' => quoted = !quoted,
                '{' if !quoted => depth += 1,
                '}' if !quoted => {
                    depth = depth.saturating_sub(1);
                    if depth == 0 {
                        let (taken, rest) = self.rest.split_at(i + 1);
                        self.rest = rest;
                        self.space();
                        return Ok(taken);
                    }
                }
                _ => {}
            }
            if depth == 0 {
                break;
            }
        }
        Err("expected a dictionary in braces".to_owned())
    }
}

/// The bytes between the quotes of `text`, or all of `text` where it has none.
pub(super) fn unquoted(text: &str) -> Result<Vec<u8>, String> {
    if text.starts_with(['"', '\'']) {
        return Scan::new(text).string();
    }
    Ok(text.as_bytes().to_vec())
}

/// Undoes C's escapes; what is no escape stands for itself.
fn unescaped(text: &str) -> Vec<u8> {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(&b) = bytes.get(at) {
        at += 1;
        if b != b'\\' {
            out.push(b);
            continue;
        }
        let Some(&kind) = bytes.get(at) else { break };
        at += 1;
        match kind {
            b'n' => out.push(b'\n'),
            b'r' => out.push(b'\r'),
            b't' => out.push(b'\t'),
            b'a' => out.push(0x07),
            b'b' => out.push(0x08),
            b'f' => out.push(0x0c),
            b'v' => out.push(0x0b),
            b'0'..=b'7' => {
                let mut value = u32::from(kind - b'0');
                for _ in 0..2 {
                    match bytes.get(at) {
                        Some(&d @ b'0'..=b'7') => value = 8 * value + u32::from(d - b'0'),
                        _ => break,
                    }
                    at += 1;
                }
                out.push(value as u8);
            }
            b'x' | b'X' => {
                let digits = bytes[at..]
                    .iter()
                    .take(2)
                    .take_while(|d| d.is_ascii_hexdigit());
                let n = digits.count();
                let hex = &text[at..at + n];
                out.push(u8::from_str_radix(hex, 16).unwrap_or(0));
                at += n;
            }
            other => out.push(other),
        }
    }
    out
}

/// The bytes of a string as text.
pub(super) fn text(bytes: Vec<u8>) -> Result<String, String> {
    String::from_utf8(bytes).map_err(|_| "a string that is not UTF-8".to_owned())
}

/// `{k="v",k={json}}`
pub(crate) fn frontend_attributes(value: &str) -> Result<FrontendAttributes, String> {
    let mut scan = Scan::new(value);
    let mut map = BTreeMap::new();
    scan.expect("{")?;
    while !scan.eat("}") {
        if !map.is_empty() {
            scan.expect(",")?;
        }
        let key = if matches!(scan.peek(), Some('"' | '\'')) {
            text(scan.string()?)?
        } else {
            scan.word().to_owned()
        };
        scan.expect("=")?;
        let value = if scan.peek() == Some('{') {
            scan.dictionary()?.to_owned()
        } else {
            text(scan.string()?)?
        };
        map.insert(key, value);
    }
    Ok(FrontendAttributes { map })
}

/// `{op_name="..." source_line=3}`, also with commas.
pub(super) fn metadata(value: &str) -> Result<Metadata, String> {
    let mut scan = Scan::new(value);
    let mut m = Metadata::default();
    scan.fields(|scan, key| {
        match key {
            "op_type" => m.op_type = text(scan.string()?)?,
            "op_name" => m.op_name = text(scan.string()?)?,
            "source_file" => m.source_file = text(scan.string()?)?,
            "deduplicated_name" => m.deduplicated_name = text(scan.string()?)?,
            "scheduling_name" => m.scheduling_name = text(scan.string()?)?,
            "source_line" => m.source_line = scan.int()?,
            "source_end_line" => m.source_end_line = scan.int()?,
            "source_column" => m.source_column = scan.int()?,
            "source_end_column" => m.source_end_column = scan.int()?,
            "stack_frame_id" => m.stack_frame_id = scan.int()?,
            "profile_type" => {
                scan.expect("{")?;
                m.profile_type = scan.ints("}")?;
            }
            _ => return Err(format!("unknown key `{key}`")),
        }
        Ok(())
    })?;
    Ok(m)
}
