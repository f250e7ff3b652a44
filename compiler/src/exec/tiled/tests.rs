use slabplan_ir::ElementType;
use slabplan_ir::layout::{Layout, Tile, TileDim};
use slabplan_ir::padding::padded_bytes;
use slabplan_ir::shape::ArrayShape;

use super::linear::place;
use super::*;

fn array(ty: ElementType, dims: &[u64], minor_to_major: &[u32], tiles: &[&[u64]]) -> ArrayShape {
    let mut shape = ArrayShape::new(ty, dims);
    let mut layout = Layout::row_major(dims.len());
    layout.minor_to_major = minor_to_major.into();
    // 0 stands for `*`.
    layout.tiles = tiles
        .iter()
        .map(|t| {
            Tile(
                t.iter()
                    .map(|&n| match n {
                        0 => TileDim::Combine,
                        n => TileDim::Size(n),
                    })
                    .collect(),
            )
        })
        .collect();
    shape.layout = Some(layout);
    shape
}

/// Checks pack and unpack against the definition, element by element, and that padding keeps its
/// bytes.
fn check(shape: &ArrayShape) {
    let map = TiledMap::new(shape).unwrap();
    let width = shape.element_type.byte_width() as usize;
    assert_eq!(
        map.padded_bytes() as u64,
        padded_bytes(shape).unwrap().get()
    );
    let dense: Vec<u8> = (0..map.dense_bytes())
        .map(|i| (i * 7 + i / 251) as u8)
        .collect();
    let mut padded = vec![0xEE; map.padded_bytes()];
    map.pack(&dense, &mut padded);

    let mut expected = vec![0xEE; map.padded_bytes()];
    for (i, &p) in linear::table(shape).unwrap().iter().enumerate() {
        let p = p as usize;
        expected[p * width..][..width].copy_from_slice(&dense[i * width..][..width]);
    }
    assert_eq!(padded, expected, "{shape:?}");

    let mut back = vec![0; dense.len()];
    map.unpack(&padded, &mut back);
    assert_eq!(back, dense, "{shape:?}");
}

#[test]
fn places_of_xlas_document() {
    let shape = array(ElementType::F32, &[3, 5], &[1, 0], &[&[2, 2]]);
    assert_eq!(place(&shape, &[2, 3]).unwrap(), 17);
    let shape = array(
        ElementType::F32,
        &[8, 8],
        &[1, 0],
        &[&[2, 4], &[2, 1, 1, 1]],
    );
    assert_eq!(place(&shape, &[6, 5]).unwrap(), 51);
}

#[test]
fn bytes_of_a_small_tiled_array_by_hand() {
    // 3x5 in tiles of 2x2: six tiles, row by row; 0 is padding.
    let shape = array(ElementType::S8, &[3, 5], &[1, 0], &[&[2, 2]]);
    let map = TiledMap::new(&shape).unwrap();
    let dense: Vec<u8> = (1..=15).collect();
    let mut padded = vec![0; 24];
    map.pack(&dense, &mut padded);
    assert_eq!(
        padded,
        [
            1, 2, 6, 7, 3, 4, 8, 9, 5, 0, 10, 0, 11, 12, 0, 0, 13, 14, 0, 0, 15, 0, 0, 0
        ]
    );
}

#[test]
fn every_kind_of_layout_agrees_with_the_definition() {
    use ElementType as E;
    /// Type, dimensions, minor to major, tiles.
    type Case = (
        ElementType,
        &'static [u64],
        &'static [u32],
        &'static [&'static [u64]],
    );
    let cases: &[Case] = &[
        (E::F32, &[], &[], &[&[128]]),
        (E::F32, &[5], &[0], &[]),
        (E::F32, &[300], &[0], &[&[512]]),
        (E::Bf16, &[1000], &[0], &[&[1024], &[128], &[2, 1]]),
        (E::Bf16, &[3000], &[0], &[&[1024], &[128], &[2, 1]]),
        (E::Pred, &[700], &[0], &[&[512], &[128], &[4, 1]]),
        (E::F32, &[129, 200], &[1, 0], &[&[8, 128]]),
        (E::F32, &[129, 200], &[0, 1], &[&[8, 128]]),
        (E::Bf16, &[20, 300], &[1, 0], &[&[8, 128], &[2, 1]]),
        (E::Bf16, &[20, 300], &[0, 1], &[&[16, 128], &[2, 1]]),
        (E::S8, &[40, 130], &[1, 0], &[&[32, 128], &[4, 1]]),
        (E::Bf16, &[1, 300], &[1, 0], &[&[1, 128], &[2, 1]]),
        (E::Bf16, &[20, 128], &[1, 0], &[&[8, 128], &[2, 1, 1, 1]]),
        (E::Bf16, &[13, 128], &[1, 0], &[&[6, 128], &[4, 1]]),
        (E::F32, &[3, 4, 5], &[2, 1, 0], &[]),
        (E::F32, &[3, 4, 5], &[0, 2, 1], &[]),
        (E::F32, &[3, 4, 5], &[1, 0, 2], &[&[2, 128]]),
        (E::C64, &[3, 1, 5, 2], &[3, 1, 0, 2], &[&[4, 4]]),
        (E::C128, &[2, 3], &[0, 1], &[]),
        (E::F32, &[5], &[0], &[&[8, 128]]),
        (E::F32, &[16, 256], &[1, 0], &[&[8, 128]]),
        (E::F32, &[16, 128], &[1, 0], &[&[8, 128]]),
        (
            E::F32,
            &[2, 7, 8, 11, 10],
            &[4, 3, 2, 1, 0],
            &[&[0, 0, 2, 0, 3]],
        ),
        (E::S32, &[4, 6], &[0, 1], &[&[0, 5]]),
        (E::F32, &[0, 6], &[0, 1], &[&[8, 128]]),
    ];
    for (ty, dims, order, tiles) in cases {
        check(&array(*ty, dims, order, tiles));
    }
}

#[test]
fn what_lies_in_order_is_one_copy() {
    let dense = [
        array(ElementType::F32, &[16, 128], &[1, 0], &[&[8, 128]]),
        array(ElementType::F32, &[4, 5, 6], &[2, 1, 0], &[]),
        array(ElementType::F32, &[3000], &[0], &[&[1024]]),
        array(ElementType::F32, &[4, 1, 6], &[1, 2, 0], &[]),
        array(ElementType::F32, &[], &[], &[&[128]]),
    ];
    for shape in dense {
        assert!(TiledMap::new(&shape).unwrap().is_dense(), "{shape:?}");
    }
    let not = [
        array(ElementType::F32, &[16, 256], &[1, 0], &[&[8, 128]]),
        array(ElementType::F32, &[4, 5], &[0, 1], &[]),
        array(ElementType::F32, &[4, 5], &[1, 0], &[&[8, 128]]),
    ];
    for shape in not {
        assert!(!TiledMap::new(&shape).unwrap().is_dense(), "{shape:?}");
    }
}

#[test]
fn packed_elements_share_bytes_low_bits_first() {
    let mut shape = array(ElementType::S4, &[5], &[0], &[]);
    shape.layout.as_mut().unwrap().element_size_in_bits = 4;
    let map = TiledMap::new(&shape).unwrap();
    assert_eq!((map.padded_bytes(), map.dense_bytes()), (3, 5));
    let dense = [1, 0xFE, 7, 0xF8, 3]; // 1, -2, 7, -8, 3
    let mut padded = [0xEE; 3];
    map.pack(&dense, &mut padded);
    // The last high half is padding and keeps its bits.
    assert_eq!(padded, [0xE1, 0x87, 0xE3]);
    let mut back = [0; 5];
    map.unpack(&padded, &mut back);
    assert_eq!(back, dense);

    let mut shape = array(ElementType::U4, &[64, 130], &[1, 0], &[&[64, 128], &[8, 1]]);
    shape.layout.as_mut().unwrap().element_size_in_bits = 4;
    let map = TiledMap::new(&shape).unwrap();
    let dense: Vec<u8> = (0..64 * 130).map(|i| (i * 5 % 16) as u8).collect();
    let mut padded = vec![0; map.padded_bytes()];
    map.pack(&dense, &mut padded);
    let mut back = vec![0; dense.len()];
    map.unpack(&padded, &mut back);
    assert_eq!(back, dense);
}

#[test]
fn wide_elements_keep_their_value_in_the_first_bytes() {
    let mut shape = array(ElementType::Pred, &[3], &[0], &[]);
    shape.layout.as_mut().unwrap().element_size_in_bits = 32;
    let map = TiledMap::new(&shape).unwrap();
    let mut padded = [0xEE; 12];
    map.pack(&[1, 0, 1], &mut padded);
    assert_eq!(padded, [1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0]);
    let mut back = [9; 3];
    map.unpack(&padded, &mut back);
    assert_eq!(back, [1, 0, 1]);
}

#[test]
fn refuses_what_it_cannot_address() {
    let mut dynamic = ArrayShape::new(ElementType::F32, &[4]);
    dynamic.dynamic = 1;
    assert!(TiledMap::new(&dynamic).is_err());
    let mut narrow = array(ElementType::F32, &[4], &[0], &[]);
    narrow.layout.as_mut().unwrap().element_size_in_bits = 4;
    assert!(TiledMap::new(&narrow).is_err());
    let vast = ArrayShape::new(ElementType::F32, &[u64::MAX / 2, 4]);
    assert!(TiledMap::new(&vast).is_err());
    let zero = array(ElementType::F32, &[4], &[0], &[&[0]]);
    assert!(TiledMap::new(&zero).is_err());
}
