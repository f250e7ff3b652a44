//! Shapes and layouts.

use smallvec::SmallVec;

use super::cursor::is_ident_byte;
use super::diagnostic::{Fault, Rule, nearest, shown};
use super::parser::{MAX_DEPTH, Parser};
use crate::ElementType;
use crate::entity::ShapeId;
use crate::layout::{Layout, SplitConfig, TailPadding, Tile, TileDim};
use crate::shape::{ArrayShape, Shape, UNBOUNDED};

/// Largest number of dimensions: [`ArrayShape::dynamic`] has a bit for each.
const MAX_RANK: usize = 64;

impl<'s> Parser<'s> {
    /// Whether a shape (rather than an opcode or a name) stands at the position.
    pub(super) fn at_shape(&mut self) -> bool {
        self.cursor.skip_space();
        if self.cursor.peek() == b'(' {
            return true;
        }
        let mut n = 0;
        while is_ident_byte(self.cursor.peek_at(n)) {
            n += 1;
        }
        match self.cursor.peek_at(n) {
            b'[' => n > 0,
            b'(' => n == 1 && self.cursor.peek() == b'b',
            _ => false,
        }
    }

    /// A shape.
    ///
    /// A shape written before, character by character, costs one look-up.
    pub(super) fn shape(&mut self) -> Rule<ShapeId> {
        self.cursor.skip_space();
        let start = self.cursor.pos();
        let Some(end) = self.shape_end() else {
            return self.shape_uncached(0);
        };
        let text = &self.cursor.text().as_bytes()[start..end];
        if let Some(&id) = self.shape_cache.get(text) {
            self.cursor.set_pos(end);
            return Ok(id);
        }
        let id = self.shape_uncached(0)?;
        if self.cursor.pos() == end {
            self.shape_cache.insert(text, id);
        }
        Ok(id)
    }

    /// Where the shape at the position ends, if that can be seen without parsing it: on one line,
    /// in the way shapes are printed.
    fn shape_end(&self) -> Option<usize> {
        let bytes = self.cursor.text().as_bytes();
        let start = self.cursor.pos();
        if self.cursor.peek() == b'(' {
            let mut depth = 0usize;
            for (i, b) in bytes[start..].iter().enumerate() {
                match b {
                    b'(' => depth += 1,
                    b')' => {
                        depth -= 1;
                        if depth == 0 {
                            return Some(start + i + 1);
                        }
                    }
                    b'\n' | b'"' => return None,
                    _ => {}
                }
            }
            return None;
        }
        let mut i = start;
        while is_ident_byte(*bytes.get(i)?) {
            i += 1;
        }
        if bytes[i] != b'[' {
            return None;
        }
        while *bytes.get(i)? != b']' {
            if matches!(bytes[i], b'\n' | b'/') {
                return None;
            }
            i += 1;
        }
        i += 1;
        match (bytes.get(i), bytes.get(i + 1)) {
            (Some(b'{'), Some(b'0'..=b'9' | b':')) => {
                while *bytes.get(i)? != b'}' {
                    // A nested brace or a comment takes the long way.
                    if matches!(bytes[i], b'\n' | b'/' | b'P') {
                        return None;
                    }
                    i += 1;
                }
                Some(i + 1)
            }
            // A layout may follow after a space or in an unusual form.
            (Some(b'{' | b' ' | b'\n' | b'\t' | b'\r' | b'/'), _) if self.layout_after(i) => None,
            _ => Some(i),
        }
    }

    /// Whether a layout follows at `pos`, after any space.
    fn layout_after(&self, pos: usize) -> bool {
        let mut probe = self.cursor.clone();
        probe.set_pos(pos);
        probe.eat(b'{') && {
            probe.skip_space();
            probe.peek().is_ascii_digit() || probe.peek() == b':'
        }
    }

    fn shape_uncached(&mut self, depth: usize) -> Rule<ShapeId> {
        if depth > MAX_DEPTH {
            let at = self.cursor.pos();
            return Err(
                Fault::new(at..at + 1, format!("tuples nest deeper than {MAX_DEPTH}"))
                    .label("too deep"),
            );
        }
        self.cursor.skip_space();
        if self.cursor.eat(b'(') {
            let mut elements: SmallVec<[ShapeId; 16]> = SmallVec::new();
            if !self.cursor.eat(b')') {
                loop {
                    self.cursor.skip_space();
                    let nested = self.cursor.peek() == b'(';
                    elements.push(if nested {
                        self.shape_uncached(depth + 1)?
                    } else {
                        self.shape()?
                    });
                    if !self.cursor.eat(b',') {
                        break;
                    }
                }
                self.cursor.expect(b')', "`,` or `)` in a tuple shape")?;
            }
            return Ok(self.module.shapes.intern_tuple(&elements));
        }
        let start = self.cursor.pos();
        let Some(name) = self.cursor.ident() else {
            return Err(self.cursor.unexpected("a shape"));
        };
        let name = self.cursor.slice(name);
        if name == "b" && self.cursor.eat(b'(') {
            let inner = self.shape_uncached(depth + 1)?;
            if !matches!(self.module.shapes.get(inner), Shape::Array(_)) {
                let end = self.cursor.pos();
                return Err(Fault::new(
                    start..end,
                    "a buffer type `b(...)` must hold an array shape",
                ));
            }
            self.cursor.expect(b')', "`)` after a buffer type")?;
            return Ok(self.module.shapes.intern(Shape::Buffer(inner)));
        }
        self.array_shape(start, name)
    }

    /// The rest of an array shape after its type name; also `token[]` and `opaque[]`.
    fn array_shape(&mut self, start: usize, name: &str) -> Rule<ShapeId> {
        let name_end = self.cursor.pos();
        let opaque_kind = match name {
            "token" => Some(Shape::Token),
            "opaque" => Some(Shape::Opaque),
            _ => None,
        };
        let element_type = ElementType::from_name(name);
        if element_type.is_none() && opaque_kind.is_none() {
            let mut error = Fault::new(
                start..name_end,
                format!("unknown element type `{}`", shown(name)),
            )
            .label("not a type of HLO");
            if let Some(near) = nearest(
                &name.to_ascii_lowercase(),
                ElementType::ALL.iter().map(|t| t.name()),
            ) {
                error = error.help(format!("did you mean `{near}`?"));
            }
            return Err(error);
        }
        self.cursor.expect(b'[', "`[` after an element type")?;
        let mut dims: SmallVec<[u64; 4]> = SmallVec::new();
        let mut dynamic = 0u64;
        if !self.cursor.eat(b']') {
            loop {
                if dims.len() == MAX_RANK {
                    return Err(Fault::new(
                        start..self.cursor.pos(),
                        format!("more than {MAX_RANK} dimensions"),
                    ));
                }
                let is_dynamic = if self.cursor.eat(b'?') {
                    dims.push(UNBOUNDED);
                    true
                } else {
                    let bounded = self.cursor.eat_str("<=");
                    dims.push(self.cursor.uint("a dimension")?);
                    bounded
                };
                dynamic |= u64::from(is_dynamic) << (dims.len() - 1);
                if !self.cursor.eat(b',') {
                    break;
                }
            }
            self.cursor.expect(b']', "`,` or `]` after a dimension")?;
        }
        let layout = if self.layout_after(self.cursor.pos()) {
            self.cursor.eat(b'{');
            Some(self.layout(start, dims.len())?)
        } else {
            None
        };
        let Some(element_type) = element_type else {
            if !dims.is_empty() {
                return Err(Fault::new(
                    start..self.cursor.pos(),
                    format!("`{name}` has no dimensions"),
                ));
            }
            return Ok(self
                .module
                .shapes
                .intern(opaque_kind.expect("checked above")));
        };
        Ok(self.module.shapes.intern_array(ArrayShape {
            element_type,
            dims,
            dynamic,
            layout,
        }))
    }

    /// The rest of a layout after its opening brace. `start` is where the shape starts.
    fn layout(&mut self, start: usize, rank: usize) -> Rule<Layout> {
        let mut layout = Layout::default();
        self.cursor.skip_space();
        while self.cursor.peek().is_ascii_digit() {
            layout
                .minor_to_major
                .push(self.cursor.uint32("a dimension number")?);
            if !self.cursor.eat(b',') {
                break;
            }
            self.cursor.skip_space();
        }
        if self.cursor.eat(b':') {
            self.layout_items(&mut layout)?;
        }
        self.cursor.expect(b'}', "`}` at the end of a layout")?;
        let mut seen = 0u64;
        for &d in &layout.minor_to_major {
            if (d as usize) < rank {
                seen |= 1 << d;
            }
        }
        if layout.minor_to_major.len() != rank || seen.count_ones() as usize != rank {
            return Err(Fault::new(
                start..self.cursor.pos(),
                format!("the layout must order each of the {rank} dimensions once"),
            ));
        }
        Ok(layout)
    }

    /// What may follow the colon of a layout, in its fixed order.
    fn layout_items(&mut self, layout: &mut Layout) -> Rule<()> {
        if self.cursor.peek() == b'D' && self.cursor.eat_word("D") {
            let text = self.parenthesised("dimension level types")?;
            if let Some(bad) = text
                .chars()
                .find(|c| !matches!(c, 'D' | 'C' | 'S' | 'H' | '+' | '~' | ',' | ' '))
            {
                let at = self.cursor.pos();
                return Err(Fault::new(
                    at - text.len()..at,
                    format!("unknown dimension level type `{}`", bad.escape_debug()),
                )
                .help("the types are D, C, S and H, each with optional `+` and `~`"));
            }
            layout.dim_level_types = Some(text.into());
        }
        if self.cursor.eat_word("T") {
            while self.cursor.eat(b'(') {
                layout.tiles.push(self.tile()?);
                self.cursor.skip_space();
                if self.cursor.peek() != b'(' {
                    break;
                }
            }
        }
        if self.cursor.eat_word("L") {
            layout.tail_padding_alignment = TailPadding(self.parenthesised_int("L")?);
        }
        if self.cursor.eat(b'#') {
            layout.index_type = Some(self.sparse_type()?);
        }
        if self.cursor.eat(b'*') {
            layout.pointer_type = Some(self.sparse_type()?);
        }
        if self.cursor.eat_word("E") {
            let at = self.cursor.pos();
            layout.element_size_in_bits = u32::try_from(self.parenthesised_int("E")?)
                .map_err(|_| Fault::new(at..self.cursor.pos(), "E(n) is too large"))?;
        }
        if self.cursor.eat_word("S") {
            let at = self.cursor.pos();
            layout.memory_space = u32::try_from(self.parenthesised_int("S")?)
                .map_err(|_| Fault::new(at..self.cursor.pos(), "S(n) is too large"))?;
        }
        if self.cursor.eat_word("SC") {
            while self.cursor.eat(b'(') {
                layout.split_configs.push(self.split_config()?);
                self.cursor.skip_space();
                if self.cursor.peek() != b'(' {
                    break;
                }
            }
        }
        self.cursor.skip_space();
        if self.cursor.peek() == b'P' {
            let at = self.cursor.pos();
            return Err(Fault::new(
                at..at + 1,
                "a physical shape `P(...)` is only for sparse arrays, which HLO no longer has",
            )
            .help("remove the item"));
        }
        if self.cursor.eat_word("M") {
            layout.dynamic_shape_metadata_prefix_bytes = self.parenthesised_int("M")?;
        }
        Ok(())
    }

    fn tile(&mut self) -> Rule<Tile> {
        let mut tile = Tile(SmallVec::new());
        loop {
            if self.cursor.eat(b'*') {
                tile.0.push(TileDim::Combine);
            } else {
                tile.0
                    .push(TileDim::Size(self.cursor.uint("a tile dimension")?));
            }
            if !self.cursor.eat(b',') {
                break;
            }
        }
        self.cursor.expect(b')', "`,` or `)` in a tile")?;
        Ok(tile)
    }

    fn split_config(&mut self) -> Rule<SplitConfig> {
        let dimension = self.cursor.uint("a split dimension")?;
        self.cursor.expect(b':', "`:` in a split config")?;
        let mut split_indices = SmallVec::new();
        loop {
            split_indices.push(self.cursor.uint("a split index")?);
            if !self.cursor.eat(b',') {
                break;
            }
        }
        self.cursor.expect(b')', "`,` or `)` in a split config")?;
        Ok(SplitConfig {
            dimension,
            split_indices,
        })
    }

    fn sparse_type(&mut self) -> Rule<ElementType> {
        let text = self.parenthesised("an index type")?;
        ElementType::from_name(text.trim())
            .filter(|t| t.is_unsigned_integer())
            .ok_or_else(|| {
                let at = self.cursor.pos();
                Fault::new(
                    at - text.len() - 1..at,
                    "a sparse index type must be an unsigned integer type",
                )
            })
    }

    fn parenthesised_int(&mut self, item: &str) -> Rule<u64> {
        self.cursor.expect(b'(', "`(` in a layout item")?;
        let n = self
            .cursor
            .uint(&format!("the number of layout item {item}(n)"))?;
        self.cursor.expect(b')', "`)` in a layout item")?;
        Ok(n)
    }

    /// The text up to `)`, after `(`.
    fn parenthesised(&mut self, what: &str) -> Rule<&'s str> {
        self.cursor.expect(b'(', &format!("`(` before {what}"))?;
        let start = self.cursor.pos();
        let rest = &self.cursor.text()[start..];
        let Some(len) = rest
            .find([')', '\n', '{', '}'])
            .filter(|&i| rest.as_bytes()[i] == b')')
        else {
            return Err(self.cursor.unexpected(&format!("{what} and `)`")));
        };
        self.cursor.set_pos(start + len + 1);
        Ok(&rest[..len])
    }
}
