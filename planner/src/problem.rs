//! One packing problem for each memory space, and the offsets it gives.

use slabplan_ir::entity::SecondaryMap;
use slabplan_ir::plan::Accounting;
use slabplan_ir::target::MemorySpace;
use slabplan_ir::units::UnitError;
use slabplan_ir::{Bytes, EntityId};

use crate::buffers::Buffers;
use crate::config::PlanConfig;
use crate::error::PlanError;
use crate::interference::ClassId;
use crate::lodging::{Question, lodge};
use crate::options::Piece;
use crate::pack::{self, Control, Interval, Problem, Tie};

/// Where the buffers of one memory space lie.
#[derive(Clone, Debug)]
pub struct SpaceLayout {
    /// Offset of each buffer of the space.
    pub offsets: Vec<(ClassId, u64)>,
    /// Bytes of the slab.
    pub slab: u64,
    /// No packing of these buffers needs less.
    pub lower_bound: u64,
    /// Whether `slab` is proved least.
    pub optimal: bool,
    /// Size of the heap of temporaries, where they have one of their own.
    pub heap: Option<u64>,
}

/// What the packer may use besides the buffers themselves.
#[derive(Clone, Copy, Debug)]
pub struct Bonds<'a> {
    /// Pairs that may occupy exactly the same bytes.
    pub may_share: &'a [(ClassId, ClassId)],
    /// Pieces that lie at fixed distances.
    pub pieces: &'a [Piece],
}

/// Places the buffers of one memory space.
pub fn place(
    buffers: &Buffers,
    bonds: Bonds<'_>,
    space: &MemorySpace,
    config: &PlanConfig,
) -> Result<SpaceLayout, PlanError> {
    let of_space: Vec<ClassId> = buffers
        .keys()
        .filter(|&c| buffers[c].space == space.id)
        .collect();
    match config.accounting {
        Accounting::Slab => {
            let packed = pack_classes(buffers, bonds, &of_space, space, config)?;
            Ok(SpaceLayout {
                slab: packed.height,
                heap: None,
                ..packed.layout(&of_space, 0)
            })
        }
        Accounting::Xla => {
            let is_temp = |c: &ClassId| buffers[*c].kind.is_temporary();
            let (temps, own): (Vec<ClassId>, Vec<ClassId>) =
                of_space.into_iter().partition(is_temp);
            let (own_offsets, end) = place_apart(buffers, &own, space)?;
            let mut offset_of = SecondaryMap::filled(buffers.len(), None);
            for &(class, offset) in &own_offsets {
                offset_of[class] = Some(offset);
            }
            let answer = lodge(&Question {
                buffers,
                own: &own,
                temps: &temps,
                may_share: bonds.may_share,
                pieces: bonds.pieces,
                alignment: space.alignment.get(),
            });
            for it in &answer.lodged {
                offset_of[it.guest] = offset_of[it.host].map(|o| o + it.offset);
            }
            let in_heap: Vec<ClassId> = temps
                .iter()
                .copied()
                .filter(|&c| offset_of[c].is_none())
                .collect();
            let mut packed = pack_classes(buffers, bonds, &in_heap, space, config)?;
            if !answer.lodged.is_empty() {
                let sizes = temps.iter().map(|&c| buffers[c].size.get());
                let bytes = without_tail(answer.heap_bound, sizes, space);
                packed.limit_bound(answer.heap_bound, bytes, space.alignment.get());
            }
            let mut layout = packed.layout(&in_heap, end);
            let placed = offset_of.iter().filter_map(|(c, &o)| Some((c, o?)));
            layout.offsets.extend(placed);
            Ok(layout)
        }
    }
}

/// Puts every buffer behind the previous one; returns the offsets and the aligned end.
fn place_apart(
    buffers: &Buffers,
    classes: &[ClassId],
    space: &MemorySpace,
) -> Result<(Vec<(ClassId, u64)>, u64), PlanError> {
    let mut offsets = Vec::with_capacity(classes.len());
    let mut end = Bytes::ZERO;
    let mut advance = |size: Bytes| -> Result<u64, UnitError> {
        let offset = end.get();
        end = space.alignment.round_up(end.checked_add(size)?)?;
        Ok(offset)
    };
    for &class in classes {
        let offset = advance(buffers[class].size).map_err(|error| PlanError::SpaceSize {
            space: space.id,
            error,
        })?;
        offsets.push((class, offset));
    }
    Ok((offsets, end.get()))
}

struct Packed {
    offsets: Vec<u64>,
    height: u64,
    lower_bound: u64,
    optimal: bool,
}

impl Packed {
    /// Takes into account that the heap need not hold just these buffers: whatever it holds, it needs `bound`, which
    /// counts whole steps of the alignment, and `bytes` where the last step need not be full.
    fn limit_bound(&mut self, bound: u64, bytes: u64, step: u64) {
        self.optimal &= self.height.next_multiple_of(step) <= bound;
        self.lower_bound = self.lower_bound.min(bytes);
    }

    fn layout(&self, classes: &[ClassId], base: u64) -> SpaceLayout {
        let offsets = classes.iter().copied().zip(&self.offsets);
        SpaceLayout {
            offsets: offsets.map(|(c, o)| (c, base + o)).collect(),
            slab: base + self.height,
            lower_bound: base + self.lower_bound,
            optimal: self.optimal,
            heap: Some(self.height),
        }
    }
}

fn pack_classes(
    buffers: &Buffers,
    bonds: Bonds<'_>,
    classes: &[ClassId],
    space: &MemorySpace,
    config: &PlanConfig,
) -> Result<Packed, PlanError> {
    let problem = problem(buffers, bonds, classes, space);
    let packing =
        pack::pack(&problem, &config.pack, &mut |_| Control::Continue).map_err(|error| {
            PlanError::Pack {
                space: space.id,
                error,
            }
        })?;
    let sizes = classes.iter().map(|&c| buffers[c].size.get());
    let height = sizes
        .clone()
        .zip(&packing.offsets)
        .filter(|&(size, _)| size > 0)
        .map(|(size, offset)| size + offset)
        .max()
        .unwrap_or(0);
    let lower_bound = without_tail(packing.lower_bound, sizes, space);
    Ok(Packed {
        offsets: packing.offsets,
        height,
        lower_bound: lower_bound.min(height),
        optimal: packing.optimal,
    })
}

/// A bound in bytes from one in steps of the alignment: whatever ends highest fills part of its last step only.
fn without_tail(bound: u64, sizes: impl Iterator<Item = u64>, space: &MemorySpace) -> u64 {
    let step = space.alignment.get();
    let least_tail = sizes.filter(|&s| s > 0).map(|s| (s - 1) % step + 1).min();
    match bound.checked_sub(step) {
        Some(below) => below + least_tail.unwrap_or(0),
        None => 0,
    }
}

/// The packing problem of `classes`, buffer `i` being class `i` of the slice.
///
/// Sizes are rounded up to the alignment: the bytes between a buffer's end and the next multiple serve nobody.
pub fn problem(
    buffers: &Buffers,
    bonds: Bonds<'_>,
    classes: &[ClassId],
    space: &MemorySpace,
) -> Problem {
    let mut number: SecondaryMap<ClassId, Option<u32>> = SecondaryMap::filled(buffers.len(), None);
    for (i, &class) in (0..).zip(classes) {
        number[class] = Some(i);
    }
    let as_buffer = |&class: &ClassId| {
        let b = &buffers[class];
        pack::Buffer {
            id: class.index() as u64,
            live: b
                .live
                .iter()
                .map(|r| Interval::new(r.start.into(), r.end.into()))
                .collect(),
            size: b.size.get().next_multiple_of(space.alignment.get()),
            alignment: space.alignment.get(),
            fixed: None,
            hint: None,
        }
    };
    let pair = |a: ClassId, b: ClassId| Some((number[a]?, number[b]?));
    Problem {
        buffers: classes.iter().map(as_buffer).collect(),
        may_share: bonds
            .may_share
            .iter()
            .filter_map(|&(a, b)| pair(a, b))
            .collect(),
        ties: bonds
            .pieces
            .iter()
            .filter_map(|p| {
                let (base, member) = pair(p.whole, p.piece)?;
                Some(Tie {
                    base,
                    member,
                    distance: p.distance as i64,
                })
            })
            .collect(),
        capacity: None,
    }
}
