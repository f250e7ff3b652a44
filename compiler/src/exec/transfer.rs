//! Bytes from one place of the slabs to another, and results into their padded form.

use crate::exec::poison;
use crate::exec::program::{ByteRange, Leaf, Moves, Program};
use crate::exec::run::Limits;
use crate::exec::slab::Slab;
use crate::exec::tiled::TiledMap;

/// Writes a result, and poison into its padding if asked for.
pub(super) fn write_result(
    program: &Program,
    slabs: &mut [Slab],
    leaf: Leaf,
    dense: &[u8],
    limits: Limits,
) {
    let range = program.bytes_of(leaf);
    let start = range.start;
    let bytes = &mut slabs[leaf.slab as usize].bytes_mut()[range];
    pack(&program.info(leaf).map, dense, bytes, start, limits);
}

/// Writes a dense array to where it lies, `start` bytes into its slab, and poison into its padding if
/// asked for.
pub(super) fn pack(map: &TiledMap, dense: &[u8], padded: &mut [u8], start: usize, limits: Limits) {
    if limits.poison {
        poison::fill(padded, start);
    }
    map.pack(dense, padded);
}

/// Moves values: all are read before any is written.
pub(super) fn move_all(program: &Program, moves: &Moves, slabs: &mut [Slab], limits: Limits) {
    let staged = |at: usize, bytes: usize| ByteRange {
        slab: moves.scratch.slab,
        start: moves.scratch.start + at,
        end: moves.scratch.start + at + bytes,
    };
    for m in &moves.list {
        let (from, to) = (program.range_of(m.from), program.range_of(m.to));
        let map = &program.info(m.from).map;
        match m.stage {
            Some(at) if m.raw => {
                let (bytes, stage) = from_to(slabs, from, staged(at, map.padded_bytes()));
                copy(bytes, stage, moves.threads);
            }
            Some(at) => {
                let (bytes, stage) = from_to(slabs, from, staged(at, map.dense_bytes()));
                map.unpack(bytes, stage);
            }
            None if from.slab == to.slab && from.start < to.end && to.start < from.end => {
                let slab = slabs[m.from.slab as usize].bytes_mut();
                slab.copy_within(from.start..from.end, to.start);
            }
            None => {
                let (bytes, target) = from_to(slabs, from, to);
                copy(bytes, target, moves.threads);
            }
        }
    }
    for m in &moves.list {
        let Some(at) = m.stage else {
            continue;
        };
        let to = program.range_of(m.to);
        let map = &program.info(m.to).map;
        if m.raw {
            let (bytes, target) = from_to(slabs, staged(at, map.padded_bytes()), to);
            copy(bytes, target, moves.threads);
        } else {
            let (dense, target) = from_to(slabs, staged(at, map.dense_bytes()), to);
            pack(map, dense, target, to.start, limits);
        }
    }
}

/// Bytes below which one thread copies all.
const SEQUENTIAL: usize = 256 << 10;

/// Copies between slices of one length, large ones by at most `threads` threads.
fn copy(from: &[u8], to: &mut [u8], threads: usize) {
    if threads <= 1 || from.len() < SEQUENTIAL {
        to.copy_from_slice(from);
        return;
    }
    let low = threads / 2;
    let middle = from.len() / threads * low;
    let (low_from, high_from) = from.split_at(middle);
    let (low_to, high_to) = to.split_at_mut(middle);
    rayon::join(
        || copy(low_from, low_to, low),
        || copy(high_from, high_to, threads - low),
    );
}

/// Bytes to read and bytes to write, which have none in common.
pub(super) fn from_to(slabs: &mut [Slab], from: ByteRange, to: ByteRange) -> (&[u8], &mut [u8]) {
    if from.slab == to.slab {
        let bytes = slabs[from.slab as usize].bytes_mut();
        return if from.start < to.start {
            let (low, high) = bytes.split_at_mut(to.start);
            (&low[from.start..from.end], &mut high[..to.end - to.start])
        } else {
            let (low, high) = bytes.split_at_mut(from.start);
            (&high[..from.end - from.start], &mut low[to.start..to.end])
        };
    }
    let (a, b) = (from.slab as usize, to.slab as usize);
    let (low, high) = slabs.split_at_mut(a.max(b));
    if a < b {
        (
            &low[a].bytes()[from.start..from.end],
            &mut high[0].bytes_mut()[to.start..to.end],
        )
    } else {
        (
            &high[0].bytes()[from.start..from.end],
            &mut low[b].bytes_mut()[to.start..to.end],
        )
    }
}
