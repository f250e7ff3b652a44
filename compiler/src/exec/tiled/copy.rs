//! Moving elements between the two forms.

use super::axis::{Axis, Run};
use super::{Places, Storage, TiledMap};

/// Padded to dense.
pub(super) fn unpack(map: &TiledMap, padded: &[u8], dense: &mut [u8]) {
    match map.element.storage {
        Storage::Same => match map.element.dense {
            1 => unpack_same::<1>(map, padded, dense),
            2 => unpack_same::<2>(map, padded, dense),
            4 => unpack_same::<4>(map, padded, dense),
            8 => unpack_same::<8>(map, padded, dense),
            _ => unpack_same::<16>(map, padded, dense),
        },
        Storage::Wide { bytes } => each_run(map, |run| {
            for i in 0..run.len {
                let from = (run.place + i) * bytes;
                let to = (run.start + i) * map.element.dense;
                dense[to..to + map.element.dense]
                    .copy_from_slice(&padded[from..from + map.element.dense]);
            }
        }),
        Storage::Packed { bits, signed } => each_run(map, |run| {
            for i in 0..run.len {
                dense[run.start + i] = read_packed(padded, run.place + i, bits, signed);
            }
        }),
    }
}

/// Dense to padded.
pub(super) fn pack(map: &TiledMap, dense: &[u8], padded: &mut [u8]) {
    match map.element.storage {
        Storage::Same => match map.element.dense {
            1 => pack_same::<1>(map, dense, padded),
            2 => pack_same::<2>(map, dense, padded),
            4 => pack_same::<4>(map, dense, padded),
            8 => pack_same::<8>(map, dense, padded),
            _ => pack_same::<16>(map, dense, padded),
        },
        Storage::Wide { bytes } => each_run(map, |run| {
            for i in 0..run.len {
                let from = (run.start + i) * map.element.dense;
                let to = (run.place + i) * bytes;
                let (value, rest) = padded[to..to + bytes].split_at_mut(map.element.dense);
                value.copy_from_slice(&dense[from..from + map.element.dense]);
                rest.fill(0);
            }
        }),
        Storage::Packed { bits, .. } => each_run(map, |run| {
            for i in 0..run.len {
                write_packed(padded, run.place + i, bits, dense[run.start + i]);
            }
        }),
    }
}

/// A stretch of elements: dense indices from `start` on, places from `place` on.
struct Stretch {
    start: usize,
    place: usize,
    len: usize,
}

fn unpack_same<const W: usize>(map: &TiledMap, padded: &[u8], dense: &mut [u8]) {
    each_run(map, |run| {
        let (to, from) = (run.start * W, run.place * W);
        if run.len == 1 {
            dense[to..to + W].copy_from_slice(&padded[from..from + W]);
        } else {
            let n = run.len * W;
            dense[to..to + n].copy_from_slice(&padded[from..from + n]);
        }
    });
}

fn pack_same<const W: usize>(map: &TiledMap, dense: &[u8], padded: &mut [u8]) {
    each_run(map, |run| {
        let (from, to) = (run.start * W, run.place * W);
        if run.len == 1 {
            padded[to..to + W].copy_from_slice(&dense[from..from + W]);
        } else {
            let n = run.len * W;
            padded[to..to + n].copy_from_slice(&dense[from..from + n]);
        }
    });
}

fn read_packed(bytes: &[u8], place: usize, bits: u32, signed: bool) -> u8 {
    let per_byte = 8 / bits as usize;
    let shift = (place % per_byte) as u32 * bits;
    let value = bytes[place / per_byte] >> shift << (8 - bits);
    if signed {
        ((value as i8) >> (8 - bits)) as u8
    } else {
        value >> (8 - bits)
    }
}

fn write_packed(bytes: &mut [u8], place: usize, bits: u32, value: u8) {
    let per_byte = 8 / bits as usize;
    let shift = (place % per_byte) as u32 * bits;
    let mask = (0xFFu8 >> (8 - bits)) << shift;
    let byte = &mut bytes[place / per_byte];
    *byte = *byte & !mask | value << shift & mask;
}

/// Calls `f` with stretches that cover all elements, in dense order.
fn each_run(map: &TiledMap, mut f: impl FnMut(Stretch)) {
    if map.elements == 0 {
        return;
    }
    match &map.places {
        Places::Dense => f(Stretch {
            start: 0,
            place: 0,
            len: map.elements,
        }),
        Places::Sum(axes) => walk(axes, 0, 0, &mut f),
        Places::Table(table) => {
            for (start, &place) in table.iter().enumerate() {
                f(Stretch {
                    start,
                    place: place as usize,
                    len: 1,
                });
            }
        }
    }
}

/// `start` counts the indices of the axes before, `place` what they contribute. Recursion is as
/// deep as there are axes longer than 1: at most 63.
fn walk(axes: &[Axis], start: u64, place: u64, f: &mut impl FnMut(Stretch)) {
    match axes {
        [] => f(Stretch {
            start: start as usize,
            place: place as usize,
            len: 1,
        }),
        [minor] => minor.each_run(|run: Run| {
            f(Stretch {
                start: (start * minor.extent + run.start) as usize,
                place: (place + run.place) as usize,
                len: run.len as usize,
            });
        }),
        [axis, rest @ ..] => axis.each_run(|run: Run| {
            // Consecutive places: each index one element further.
            for i in 0..run.len {
                walk(
                    rest,
                    start * axis.extent + run.start + i,
                    place + run.place + i,
                    f,
                );
            }
        }),
    }
}
