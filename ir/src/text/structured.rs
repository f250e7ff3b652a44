//! Attributes with a grammar of their own: device groups, windows, dimension labels.

use smallvec::SmallVec;

use super::cursor::Quotes;
use super::diagnostic::{Fault, Rule, shown};
use super::parser::Parser;
use crate::attr::{AttrValue, ConvDimLabels, ReplicaGroups, WindowDim};

impl Parser<'_> {
    /// `{{0,1},{2,3}}`, `[2,2]<=[4]T(0)`, or a mesh kept as text.
    pub(super) fn replica_groups(&mut self) -> Rule<ReplicaGroups> {
        self.cursor.skip_space();
        let start = self.cursor.pos();
        match self.cursor.peek() {
            b'{' => {
                let groups = self.braced("a group", |p| {
                    p.braced("a device number", |p| p.cursor.int("a device number"))
                })?;
                Ok(ReplicaGroups::List(groups))
            }
            b'[' => {
                let dims = self.bracketed()?;
                if !self.cursor.eat_str("<=") {
                    return Err(self.cursor.unexpected("`<=` after the groups' dimensions"));
                }
                let reshape = self.bracketed()?;
                let mut transpose = SmallVec::new();
                if self.cursor.eat_word("T") {
                    self.cursor.expect(b'(', "`(` before a permutation")?;
                    loop {
                        transpose.push(self.cursor.int("a dimension number")?);
                        if !self.cursor.eat(b',') {
                            break;
                        }
                    }
                    self.cursor.expect(b')', "`)` after a permutation")?;
                }
                let span = self.cursor.span_from(start);
                check_iota(&dims, &reshape, &transpose)
                    .map_err(|message| Fault::new(span, message))?;
                Ok(ReplicaGroups::Iota {
                    dims: dims.into_iter().collect(),
                    reshape,
                    transpose,
                })
            }
            _ => {
                if !self.cursor.eat_word("mesh") && !self.cursor.eat_str("mesh[") {
                    return Err(self.cursor.unexpected("groups of devices"));
                }
                self.cursor.set_pos(start + "mesh".len());
                self.mesh_groups()?;
                Ok(ReplicaGroups::Raw(self.str(start..self.cursor.pos())))
            }
        }
    }

    /// `['axis'=4,...] [device_ids=(...)] {'axis',...}` after `mesh`.
    fn mesh_groups(&mut self) -> Rule<()> {
        self.cursor.expect(b'[', "`[` after `mesh`")?;
        while !self.cursor.eat(b']') {
            self.cursor.skip_space();
            match self.cursor.peek() {
                b'\'' | b'"' => {
                    self.cursor.string("an axis")?;
                }
                0 => return Err(self.cursor.unexpected("`]` after the mesh's axes")),
                b if b.is_ascii() => self.cursor.bump(),
                _ => return Err(self.cursor.unexpected("`]` after the mesh's axes")),
            }
        }
        self.cursor.eat(b',');
        if self.cursor.eat_word("device_ids") {
            self.cursor.expect(b'=', "`=` after `device_ids`")?;
            self.cursor.skip_space();
            if self.cursor.peek() == b'[' {
                self.bracketed()?;
                self.cursor.skip_space();
                if self.cursor.eat_str("<=") {
                    self.bracketed()?;
                    if self.cursor.eat_word("T") {
                        self.cursor.balanced(Quotes::Both, "permutation")?;
                    }
                }
            } else {
                self.cursor.balanced(Quotes::Both, "device list")?;
            }
            self.cursor.eat(b',');
        }
        self.cursor.skip_space();
        self.cursor.balanced(Quotes::Both, "list of axes")?;
        Ok(())
    }

    /// `{mode=highest}` or `{tolerance={rtol=0.5, atol=1, ulps=2}}`.
    pub(super) fn result_accuracy(&mut self) -> Rule<()> {
        self.cursor.expect(b'{', "`{` before an accuracy")?;
        if self.cursor.eat_word("mode") {
            self.cursor.expect(b'=', "`=` after `mode`")?;
            if !self.cursor.eat_word("default") && !self.cursor.eat_word("highest") {
                return Err(self.cursor.unexpected("`default` or `highest`"));
            }
        } else if self.cursor.eat_word("tolerance") {
            self.cursor.expect(b'=', "`=` after `tolerance`")?;
            self.braced("a tolerance", |p| {
                let names = ["atol", "rtol", "ulps"];
                if !names.iter().any(|name| p.cursor.eat_word(name)) {
                    return Err(p.cursor.unexpected("`atol`, `rtol` or `ulps`"));
                }
                p.cursor.expect(b'=', "`=` after a tolerance's name")?;
                p.number()
            })?;
        } else {
            return Err(self.cursor.unexpected("`mode` or `tolerance`"));
        }
        self.cursor.expect(b'}', "`}` after an accuracy")
    }

    fn bracketed(&mut self) -> Rule<SmallVec<[i64; 4]>> {
        self.cursor.expect(b'[', "`[`")?;
        let mut dims = SmallVec::new();
        loop {
            dims.push(self.cursor.int("a dimension")?);
            if !self.cursor.eat(b',') {
                break;
            }
        }
        self.cursor.expect(b']', "`,` or `]` after a dimension")?;
        Ok(dims)
    }

    /// `{size=3x3 stride=2x2 pad=0_1x0_1 lhs_dilate=.. rhs_dilate=.. rhs_reversal=..}`.
    pub(super) fn window(&mut self) -> Rule<Box<[WindowDim]>> {
        self.cursor.skip_space();
        let start = self.cursor.pos();
        self.cursor.expect(b'{', "`{` before a window")?;
        let mut dims: Vec<WindowDim> = Vec::new();
        let mut first = true;
        while !self.cursor.eat(b'}') {
            self.cursor.eat(b',');
            let Some(field) = self.cursor.ident() else {
                return Err(self.cursor.unexpected("a field of the window"));
            };
            self.cursor
                .expect(b'=', "`=` after a field of the window")?;
            self.cursor.skip_space();
            let name = self.cursor.slice(field.clone());
            let mut n = 0;
            loop {
                if first {
                    dims.push(WindowDim::default());
                }
                let Some(dim) = dims.get_mut(n) else {
                    return Err(Fault::new(
                        field.start..self.cursor.pos(),
                        format!("`{name}` has more dimensions than the fields before it"),
                    ));
                };
                n += 1;
                let value = self.cursor.int("a number")?;
                match name {
                    "size" => dim.size = value,
                    "stride" => dim.stride = value,
                    "lhs_dilate" => dim.base_dilation = value,
                    "rhs_dilate" => dim.window_dilation = value,
                    "rhs_reversal" => dim.reversal = value == 1,
                    "pad" => {
                        dim.pad_low = value;
                        if self.cursor.peek() != b'_' {
                            return Err(self.cursor.unexpected("`_` in padding"));
                        }
                        self.cursor.bump();
                        dim.pad_high = self.cursor.int("padding")?;
                    }
                    _ => {
                        return Err(Fault::new(
                            field,
                            format!("unknown field `{}` of a window", shown(name)),
                        )
                        .help("the fields are size, stride, pad, lhs_dilate, rhs_dilate and rhs_reversal"));
                    }
                }
                if self.cursor.peek() != b'x' {
                    break;
                }
                self.cursor.bump();
            }
            if n != dims.len() {
                return Err(Fault::new(
                    start..self.cursor.pos(),
                    "the fields of a window must have one entry for each dimension",
                ));
            }
            first = false;
        }
        Ok(dims.into())
    }

    /// `b01f_01io->b01f`.
    pub(super) fn dim_labels(&mut self) -> Rule<AttrValue> {
        self.cursor.skip_space();
        let start = self.cursor.pos();
        while matches!(self.cursor.peek(), b'0'..=b'9' | b'a'..=b'z' | b'?' | b'_')
            || (self.cursor.peek() == b'-' && self.cursor.peek_at(1) == b'>')
            || (self.cursor.peek() == b'>' && start < self.cursor.pos())
        {
            self.cursor.bump();
        }
        let span = start..self.cursor.pos();
        let text = self.cursor.slice(span.clone());
        if text.is_empty() {
            return Err(self.cursor.unexpected("dimension labels"));
        }
        let labels = parse_dim_labels(text).map_err(|message| {
            Fault::new(span.clone(), message)
                .help("write INPUT_KERNEL->OUTPUT, as in `b01f_01io->b01f`")
        })?;
        // `?` marks a dimension without a meaning, which the typed form can't hold.
        Ok(if text.contains('?') {
            AttrValue::Raw(self.str(span))
        } else {
            AttrValue::DimLabels(Box::new(labels))
        })
    }
}

fn check_iota(dims: &[i64], reshape: &[i64], transpose: &[i64]) -> Result<(), String> {
    let product = |v: &[i64]| {
        v.iter()
            .try_fold(1i64, |n, &d| if 0 < d { n.checked_mul(d) } else { None })
    };
    let (Some(a), Some(b)) = (product(dims), product(reshape)) else {
        return Err("the dimensions must be positive".to_owned());
    };
    if a != b {
        return Err(format!("{a} places for {b} devices"));
    }
    let mut sorted = transpose.to_vec();
    sorted.sort_unstable();
    let identity = (0..reshape.len() as i64).eq(sorted);
    if !transpose.is_empty() && !identity {
        return Err(format!(
            "the transposition must name each of the {} dimensions once",
            reshape.len()
        ));
    }
    Ok(())
}

/// One side of the labels: places of two letters and of the spatial numbers.
fn parse_side(
    text: &str,
    letters: [char; 2],
) -> Result<(usize, usize, SmallVec<[usize; 3]>), String> {
    let mut found = [None, None];
    let mut spatial: Vec<Option<usize>> = Vec::new();
    for (place, c) in text.chars().enumerate() {
        let slot = if let Some(d) = c.to_digit(10) {
            let d = d as usize;
            if spatial.len() <= d {
                spatial.resize(d + 1, None);
            }
            &mut spatial[d]
        } else if c == letters[0] {
            &mut found[0]
        } else if c == letters[1] {
            &mut found[1]
        } else if c == '?' {
            continue;
        } else {
            return Err(format!("unexpected `{c}` in dimension labels `{text}`"));
        };
        if slot.replace(place).is_some() {
            return Err(format!("`{c}` twice in dimension labels `{text}`"));
        }
    }
    let missing = |c: char| format!("`{c}` is missing in dimension labels `{text}`");
    let first = found[0].ok_or_else(|| missing(letters[0]))?;
    let second = found[1].ok_or_else(|| missing(letters[1]))?;
    let spatial = spatial
        .into_iter()
        .enumerate()
        .map(|(i, place)| {
            place.ok_or_else(|| {
                format!("spatial dimension {i} is missing in dimension labels `{text}`")
            })
        })
        .collect::<Result<_, _>>()?;
    Ok((first, second, spatial))
}

fn parse_dim_labels(text: &str) -> Result<ConvDimLabels, String> {
    let form = || format!("malformed dimension labels `{}`", shown(text));
    let (input, rest) = text.split_once('_').ok_or_else(form)?;
    let (kernel, output) = rest.split_once("->").ok_or_else(form)?;
    let (input_batch, input_feature, input_spatial) = parse_side(input, ['b', 'f'])?;
    let (kernel_input_feature, kernel_output_feature, kernel_spatial) =
        parse_side(kernel, ['i', 'o'])?;
    let (output_batch, output_feature, output_spatial) = parse_side(output, ['b', 'f'])?;
    if input_spatial.len() != kernel_spatial.len() || input_spatial.len() != output_spatial.len() {
        return Err(format!(
            "the three parts of dimension labels `{text}` have different numbers of spatial dimensions"
        ));
    }
    Ok(ConvDimLabels {
        input_batch,
        input_feature,
        input_spatial,
        kernel_input_feature,
        kernel_output_feature,
        kernel_spatial,
        output_batch,
        output_feature,
        output_spatial,
    })
}
