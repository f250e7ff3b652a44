//! The part of a search that never changes: units, what covers each section, and who meets whom.

use super::super::model::Model;
use super::super::ties::Residue;

/// Like a model's part, with the size rounded up to the granule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) begin: u32,
    pub(super) end: u32,
    pub(super) delta: u64,
    pub(super) size: u64,
}

/// One unit that covers a section, and how far above its offset.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cover {
    pub(super) unit: u32,
    pub(super) delta: u64,
}

/// Another unit that is live at some time with this one. A unit's *rise* over another is the distance between their
/// offsets when it rests on the other; it depends on which of their pieces touch.
#[derive(Clone, Copy, Debug)]
pub(super) struct Meeting {
    pub(super) unit: u32,
    /// Lowest rise of this unit over the other: it can rest on the other no lower.
    pub(super) least_above: i64,
    /// Highest rise of the other over this one: above this unit, the other is at least so much higher.
    pub(super) push: i64,
}

/// A list of lists, flat.
#[derive(Debug)]
pub(super) struct Lists<T> {
    starts: Vec<u32>,
    items: Vec<T>,
}

impl<T: Copy> Lists<T> {
    /// Sorts `(list, item)` pairs into `count` lists; the order within each list is kept.
    fn new(count: usize, pairs: &[(u32, T)]) -> Self {
        let mut starts = vec![0u32; count + 1];
        for &(list, _) in pairs {
            starts[list as usize + 1] += 1;
        }
        for list in 0..count {
            starts[list + 1] += starts[list];
        }
        let mut next = starts.clone();
        let mut items: Vec<T> = pairs.iter().map(|pair| pair.1).collect();
        for &(list, item) in pairs {
            items[next[list as usize] as usize] = item;
            next[list as usize] += 1;
        }
        Self { starts, items }
    }

    pub(super) fn of(&self, list: usize) -> &[T] {
        &self.items[self.starts[list] as usize..self.starts[list + 1] as usize]
    }
}

/// The unchanging part of a search. Memory: O(pieces, summed over the sections they cover, and pairs that meet).
#[derive(Debug)]
pub(in super::super) struct Space {
    pub(super) sections: usize,
    pub(super) units: usize,
    pieces: Lists<Piece>,
    /// By section: what covers it.
    pub(super) covers: Lists<Cover>,
    /// By section: the pieces that begin there, and their units.
    pub(super) starts: Lists<(u32, Piece)>,
    pub(super) meetings: Lists<Meeting>,
    /// Real height of each unit, not rounded up.
    pub(super) height: Vec<u64>,
    pub(super) residue: Vec<Residue>,
    pub(super) fixed: Vec<Option<u64>>,
    /// First and last section of each unit, plus one.
    pub(super) hull: Vec<(u32, u32)>,
    /// The previous unit that is equal in every respect.
    pub(super) twin: Vec<Option<u32>>,
    /// True when every unit is one piece: then whatever fits between two walls touches the ground all along.
    pub(super) is_simple: bool,
    /// All offsets are multiples of this, so sizes may be rounded up to it.
    pub(super) granule: u64,
}

impl Space {
    /// Prepares a search, or declines when the tables would hold more than `most` entries.
    pub(in super::super) fn new(model: &Model, most: usize) -> Option<Self> {
        let units = model.units.len();
        let granule = granule(model);
        let mut pieces = Vec::new();
        let (mut covers, mut starts) = (Vec::new(), Vec::new());
        let mut hull = vec![(0, 0); units];
        for unit in 0..units as u32 {
            let parts = model.parts(unit);
            let (begin, end) = (
                parts.first().map_or(0, |it| it.begin),
                parts.iter().map(|it| it.end).max().unwrap_or(0),
            );
            hull[unit as usize] = (begin, end);
            for part in parts {
                let size = part.size.next_multiple_of(granule);
                let piece = Piece {
                    begin: part.begin,
                    end: part.end,
                    delta: part.delta,
                    size,
                };
                pieces.push((unit, piece));
                starts.push((part.begin, (unit, piece)));
                covers.extend((part.begin..part.end).map(|section| {
                    (
                        section,
                        Cover {
                            unit,
                            delta: part.delta,
                        },
                    )
                }));
            }
            if covers.len() > most {
                return None;
            }
        }
        let sections = model.sections as usize;
        let (pieces, covers) = (Lists::new(units, &pieces), Lists::new(sections, &covers));
        let starts = Lists::new(sections, &starts);
        let meetings = meetings(&pieces, &covers, &starts, most)?;
        let of = |unit: u32| &model.units[unit as usize];
        let is_twin = |a: u32, b: u32| {
            of(a).residue == of(b).residue
                && of(a).fixed.is_none()
                && of(b).fixed.is_none()
                && model.parts(a) == model.parts(b)
        };
        Some(Self {
            sections,
            units,
            is_simple: (0..units).all(|unit| pieces.of(unit).len() == 1),
            starts,
            pieces,
            covers,
            meetings,
            height: model.units.iter().map(|unit| unit.height).collect(),
            residue: model.units.iter().map(|unit| unit.residue).collect(),
            fixed: model.units.iter().map(|unit| unit.fixed).collect(),
            hull,
            // Equal units are neighbours in the model's order, but for their hints.
            twin: (0..units as u32)
                .map(|unit| unit.checked_sub(1).filter(|&other| is_twin(unit, other)))
                .collect(),
            granule,
        })
    }

    pub(super) fn pieces(&self, unit: u32) -> &[Piece] {
        self.pieces.of(unit as usize)
    }
}

/// The greatest common divisor of everything that offsets are made of, apart from sizes.
fn granule(model: &Model) -> u64 {
    let mut common = 0;
    for unit in 0..model.units.len() as u32 {
        let (align, phase) = model.units[unit as usize].residue.align_and_phase();
        common = gcd(common, gcd(align, phase));
        common = model
            .parts(unit)
            .iter()
            .fold(common, |common, part| gcd(common, part.delta));
    }
    common.max(1)
}

pub(in super::super) fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// Who meets whom: whoever is live where a piece begins, and whoever begins before it ends. O(pairs of pieces that meet).
fn meetings(
    pieces: &Lists<Piece>,
    covers: &Lists<Cover>,
    starts: &Lists<(u32, Piece)>,
    most: usize,
) -> Option<Lists<Meeting>> {
    let units = pieces.starts.len() - 1;
    let mut list: Vec<(u32, Meeting)> = Vec::new();
    let mut seen = vec![u32::MAX; units];
    for unit in 0..units as u32 {
        seen[unit as usize] = unit;
        for piece in pieces.of(unit as usize) {
            let at_begin = covers.of(piece.begin as usize).iter().map(|it| it.unit);
            let later =
                (piece.begin + 1..piece.end).flat_map(|section| starts.of(section as usize));
            for other in at_begin.chain(later.map(|it| it.0)) {
                if std::mem::replace(&mut seen[other as usize], unit) == unit {
                    continue;
                }
                let (least_above, push) =
                    rises(pieces.of(unit as usize), pieces.of(other as usize));
                let meeting = Meeting {
                    unit: other,
                    least_above,
                    push,
                };
                list.push((unit, meeting));
            }
        }
        if list.len() > most {
            return None;
        }
    }
    Some(Lists::new(units, &list))
}

/// The lowest rise of the first over the second, and the highest of the second over the first.
fn rises(first: &[Piece], second: &[Piece]) -> (i64, i64) {
    let (mut least_above, mut push) = (i64::MAX, i64::MIN);
    for a in first {
        for b in second.iter().filter(|b| a.begin < b.end && b.begin < a.end) {
            least_above = least_above.min((b.delta + b.size) as i64 - a.delta as i64);
            push = push.max((a.delta + a.size) as i64 - b.delta as i64);
        }
    }
    (least_above, push)
}
