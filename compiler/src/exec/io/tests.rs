use super::*;

fn sample() -> Vec<(String, HostArray)> {
    let array = |ty, dims: &[u64], data: &[u8]| HostArray::new(ty, dims, data.to_vec()).unwrap();
    let f32s: Vec<u8> = [1.5f32, -0.0, f32::NAN, 4.0, 5.0, 6.0]
        .iter()
        .flat_map(|x| x.to_le_bytes())
        .collect();
    vec![
        ("out0".to_owned(), array(ElementType::F32, &[2, 3], &f32s)),
        ("out1".to_owned(), array(ElementType::Pred, &[2], &[1, 0])),
        ("out2".to_owned(), array(ElementType::C64, &[3], &f32s)),
        (
            "out3".to_owned(),
            array(ElementType::Bf16, &[], &[0x80, 0x3F]),
        ),
        ("out4".to_owned(), array(ElementType::S4, &[2], &[1, 0xFF])),
        (
            "out5".to_owned(),
            array(ElementType::F8e4m3fnuz, &[1], &[7]),
        ),
        ("out6".to_owned(), array(ElementType::U32, &[0, 4], &[])),
    ]
}

fn specs(arrays: &[(String, HostArray)]) -> Vec<ArraySpec> {
    arrays
        .iter()
        .map(|(name, a)| ArraySpec {
            name: name.clone(),
            element_type: a.element_type,
            dims: a.dims.clone(),
        })
        .collect()
}

#[test]
fn both_formats_give_back_what_was_written() {
    let dir = tempfile::tempdir().unwrap();
    let arrays = sample();
    for name in ["a.safetensors", "a.npz"] {
        let path = dir.path().join(name);
        write_arrays(&path, &arrays).unwrap();
        let back = read_arrays(&path, &specs(&arrays)).unwrap();
        let expected: Vec<HostArray> = arrays.iter().map(|(_, a)| a.clone()).collect();
        assert_eq!(back, expected, "{name}");
    }
}

#[test]
fn says_which_arrays_are_missing_or_wrong() {
    let dir = tempfile::tempdir().unwrap();
    let arrays = sample();
    for name in ["a.safetensors", "a.npz"] {
        let path = dir.path().join(name);
        write_arrays(&path, &arrays[..3]).unwrap();
        let message = |specs: &[ArraySpec]| read_arrays(&path, specs).unwrap_err().to_string();

        let said = message(&specs(&arrays[..2]));
        assert!(said.contains("not expected: out2"), "{said}");
        let said = message(&specs(&arrays[..4]));
        assert!(said.contains("missing: out3"), "{said}");

        let mut other = specs(&arrays[..3]);
        other[0].dims = vec![3, 2];
        assert!(message(&other).contains("out0 must be f32[3,2]"));
        let mut other = specs(&arrays[..3]);
        other[0].element_type = ElementType::S32;
        assert!(message(&other).contains("out0 must be s32[2,3]"));
    }
}

#[test]
fn refuses_files_that_are_no_arrays() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a");
    assert!(read_arrays(&path, &[]).is_err());
    for content in [
        &b""[..],
        b"PK\x03\x04",
        b"\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF",
        b"hello, world",
    ] {
        std::fs::write(&path, content).unwrap();
        assert!(read_arrays(&path, &[]).is_err(), "{content:?}");
    }
    assert!(write_arrays(&path, &[]).is_err());
}

/// One number and an array of two, as a safetensors file has them for numpy's complex64.
#[test]
fn reads_complex_numbers_of_the_format() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.safetensors");
    let header = br#"{"arg0":{"dtype":"C64","shape":[1],"data_offsets":[0,8]},"arg1":{"dtype":"C64","shape":[2],"data_offsets":[8,24]}}"#;
    let parts: Vec<u8> = [1.0f32, -2.0, 3.0, 4.5, -0.0, 6.0]
        .iter()
        .flat_map(|x| x.to_le_bytes())
        .collect();
    let length = (header.len() as u64).to_le_bytes();
    std::fs::write(&path, [&length, &header[..], &parts].concat()).unwrap();
    let spec = |name: &str, element_type, dims: &[u64]| ArraySpec {
        name: name.to_owned(),
        element_type,
        dims: dims.to_vec(),
    };
    let wanted = [
        spec("arg0", ElementType::C64, &[]),
        spec("arg1", ElementType::C64, &[2]),
    ];
    let read = read_arrays(&path, &wanted).unwrap();
    assert_eq!(read[0].data, parts[..8]);
    assert_eq!(read[1].data, parts[8..]);

    let refused = |wanted: ArraySpec| {
        let wanted = [spec("arg0", ElementType::C64, &[]), wanted];
        read_arrays(&path, &wanted).unwrap_err().to_string()
    };
    let said = refused(spec("arg1", ElementType::C64, &[3]));
    assert!(said.contains("arg1 must be c64[3]"), "{said}");
    let said = refused(spec("arg1", ElementType::F32, &[2]));
    assert!(said.contains("arg1 must be f32[2]"), "{said}");
}
