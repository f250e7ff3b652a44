//! The text that XLA dumps as `*-buffer-assignment.txt`.
//!
//! ```text
//! BufferAssignment:
//! allocation 2: size 512, parameter 0, shape |f32[100]| at ShapeIndex {}:
//!  value: <42 x.1 @0> (size=512,offset=0): f32[100]{0:T(128)}
//! ```

use slabplan_ir::shape::ShapeIndex;

use super::{Allocation, Assigned, Assignment, AssignmentError, InstrName, Place};

/// Reads the text. O(bytes).
pub(super) fn parse(name: &str, text: &str) -> Result<Assignment, AssignmentError> {
    let mut allocations: Vec<Allocation> = Vec::new();
    let mut headed = false;
    for (n, line) in text.lines().enumerate() {
        let mut line = Line {
            text: line.trim_end(),
            at: 0,
            number: n as u32 + 1,
        };
        let step = line.read(&mut headed, &mut allocations);
        match step {
            Ok(Step::Go) => {}
            Ok(Step::Stop) => break,
            Err(message) => {
                return Err(AssignmentError {
                    name: name.to_owned(),
                    place: line.place(),
                    message,
                });
            }
        }
    }
    if allocations.is_empty() {
        return Err(AssignmentError {
            name: name.to_owned(),
            place: Place::Whole,
            message: "a buffer assignment without allocations".to_owned(),
        });
    }
    Ok(Assignment {
        name: name.to_owned(),
        allocations,
    })
}

enum Step {
    Go,
    /// What follows repeats the allocations in other words.
    Stop,
}

/// A line and how far it is read.
struct Line<'a> {
    text: &'a str,
    /// Bytes read.
    at: usize,
    number: u32,
}

impl<'a> Line<'a> {
    fn place(&self) -> Place {
        Place::Text {
            line: self.number,
            column: self.text[..self.at].chars().count() as u32 + 1,
        }
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn read(
        &mut self,
        headed: &mut bool,
        allocations: &mut Vec<Allocation>,
    ) -> Result<Step, String> {
        if self.text.trim_start().is_empty() || self.rest().starts_with("Total bytes used:") {
            return Ok(Step::Go);
        }
        if self.rest().starts_with("Used values:") {
            return Ok(Step::Stop);
        }
        if !*headed {
            self.word("BufferAssignment:")?;
            self.end()?;
            *headed = true;
        } else if self.skip(" value: ") {
            let value = self.value()?;
            let Some(allocation) = allocations.last_mut() else {
                self.at = 0;
                return Err("a value before the first allocation".to_owned());
            };
            let end = value.offset.checked_add(value.size);
            if end.is_none_or(|end| end > allocation.size) {
                return Err(format!(
                    "the value takes bytes {} to {} of an allocation of {} bytes",
                    value.offset,
                    value.offset.saturating_add(value.size),
                    allocation.size
                ));
            }
            allocation.values.push(value);
        } else {
            let allocation = self.allocation()?;
            if allocation.index != allocations.len() as u64 {
                self.at = 0;
                return Err(format!(
                    "allocation {} where allocation {} was expected; is the text complete?",
                    allocation.index,
                    allocations.len()
                ));
            }
            allocations.push(allocation);
        }
        Ok(Step::Go)
    }

    /// `allocation 2: size 512, color 1, parameter 0, shape |..| at ShapeIndex {}, constant:`
    fn allocation(&mut self) -> Result<Allocation, String> {
        let place = self.place();
        self.word("allocation ")?;
        let index = self.number("the allocation's number")?;
        self.word(": size ")?;
        let mut allocation = Allocation {
            index,
            size: self.number("a size in bytes")?,
            space: 0,
            parameter: None,
            constant: false,
            thread_local: false,
            live_out: false,
            tuple: false,
            values: Vec::new(),
            place,
        };
        while self.skip(", ") {
            self.fact(&mut allocation)?;
        }
        self.word(":")?;
        self.end()?;
        Ok(allocation)
    }

    fn fact(&mut self, allocation: &mut Allocation) -> Result<(), String> {
        if self.skip("color ") {
            allocation.space = self.small("a memory space")?;
        } else if self.skip("parameter ") {
            let number = self.small("a parameter number")?;
            self.word(", shape |")?;
            self.until('|')?;
            self.word("| at ShapeIndex ")?;
            allocation.parameter = Some((number, self.index()?));
        } else if self.skip("output shape is |") {
            self.until('|')?;
            self.word("|")?;
            allocation.live_out = true;
        } else if self.skip("constant") {
            allocation.constant = true;
        } else if self.skip("thread-local") {
            allocation.thread_local = true;
        } else if self.skip("maybe-live-out") {
            allocation.live_out = true;
        } else if !self.skip("preallocated-temp") {
            return Err(format!(
                "unknown property of an allocation: `{}`",
                first_word(self.rest())
            ));
        }
        Ok(())
    }

    /// `<3098 while.8{1} (phi) @1> (size=512,offset=0): f32[100]{0:T(128)S(1)}`
    fn value(&mut self) -> Result<Assigned, String> {
        self.word("<")?;
        self.number("the value's number")?;
        self.word(" ")?;
        let place = self.place();
        let name = self.while_char(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-'));
        if name.is_empty() {
            return Err("expected the name of an instruction".to_owned());
        }
        let index = if self.rest().starts_with('{') {
            self.index()?
        } else {
            ShapeIndex::new()
        };
        self.skip(" (phi)");
        if self.skip(" @") {
            self.small("a memory space")?;
        }
        self.word("> (size=")?;
        let size = self.number("a size in bytes")?;
        self.word(",offset=")?;
        let offset = self.number("an offset in bytes")?;
        self.word("): ")?;
        let shape = self.rest();
        if shape.is_empty() {
            return Err("expected the value's shape".to_owned());
        }
        Ok(Assigned {
            instr: InstrName {
                computation: None,
                name: name.to_owned(),
            },
            index,
            offset,
            size,
            shape: Some(shape.to_owned()),
            place,
        })
    }

    fn skip(&mut self, word: &str) -> bool {
        let found = self.rest().starts_with(word);
        if found {
            self.at += word.len();
        }
        found
    }

    fn word(&mut self, word: &str) -> Result<(), String> {
        if self.skip(word) {
            return Ok(());
        }
        Err(format!("expected `{}`", word.trim()))
    }

    fn end(&self) -> Result<(), String> {
        if self.rest().is_empty() {
            return Ok(());
        }
        Err(format!(
            "unexpected `{}` at the end",
            first_word(self.rest())
        ))
    }

    fn while_char(&mut self, accept: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let end = rest.find(|c| !accept(c)).unwrap_or(rest.len());
        self.at += end;
        &rest[..end]
    }

    fn until(&mut self, end: char) -> Result<(), String> {
        match self.rest().find(end) {
            Some(n) => {
                self.at += n;
                Ok(())
            }
            None => Err(format!("no `{end}` after this")),
        }
    }

    fn number(&mut self, what: &str) -> Result<u64, String> {
        let start = self.at;
        let digits = self.while_char(|c| c.is_ascii_digit());
        digits.parse().map_err(|_| {
            self.at = start;
            format!("expected {what}, a number below 2^64")
        })
    }

    fn small(&mut self, what: &str) -> Result<u32, String> {
        let start = self.at;
        let number = self.number(what)?;
        u32::try_from(number).map_err(|_| {
            self.at = start;
            format!("expected {what}, a number below 2^32")
        })
    }

    /// `{1,0}`, also `{1, 0}`.
    fn index(&mut self) -> Result<ShapeIndex, String> {
        self.word("{")?;
        let mut index = ShapeIndex::new();
        while !self.skip("}") {
            if !index.is_empty() {
                self.word(",")?;
                self.skip(" ");
            }
            index.push(self.small("a number of a tuple element")?);
        }
        Ok(index)
    }
}

/// At most so many characters of a line are shown.
const SHOWN: usize = 40;

fn first_word(text: &str) -> String {
    text.split([',', ':'])
        .next()
        .unwrap_or(text)
        .chars()
        .take(SHOWN)
        .collect()
}
