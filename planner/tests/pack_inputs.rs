//! Hostile and odd inputs: each has a clear answer or a clear error.

use slabplan_planner::pack::{
    Buffer, Control, Effort, Interval, MAX_BYTES, PackConfig, Packing, Problem, ProblemError,
    Reason, Tie, csv, explain_misfit, json, pack, validate, validate_fast,
};

fn packed(problem: &Problem) -> Packing {
    let packing =
        pack(problem, &PackConfig::default(), &mut |_| Control::Continue).expect("a sound problem");
    assert_eq!(validate_fast(problem, &packing.offsets), Ok(packing.height));
    packing
}

fn refused(problem: &Problem) -> ProblemError {
    pack(problem, &PackConfig::default(), &mut |_| Control::Continue)
        .expect_err("a senseless problem")
}

fn of(buffers: Vec<Buffer>) -> Problem {
    Problem {
        buffers,
        ..Problem::default()
    }
}

#[test]
fn nothing_at_all() {
    let packing = packed(&Problem::default());
    assert_eq!(
        (packing.height, packing.optimal, packing.feasible),
        (0, true, true)
    );
}

#[test]
fn zero_sizes_and_empty_lifetimes_conflict_with_nothing() {
    let problem = of(vec![
        Buffer::new(0, 0, 9, 0),
        Buffer::new(1, 5, 5, 7),
        Buffer::new(2, 0, 9, 8),
    ]);
    let packing = packed(&problem);
    assert_eq!((packing.height, packing.optimal), (8, true));
}

/// Buffers that are all live at once, up to a million, at every effort that ends by itself.
#[test]
fn many_buffers_alive_at_once_stack_up() {
    for (effort, n) in [(Effort::Fast, 1_000_000), (Effort::Default, 199_999)] {
        let buffers = (0..n).map(|id| Buffer::new(id, 0, 10, 1 + id % 3));
        let problem = of(buffers.collect());
        let config = PackConfig {
            effort,
            ..PackConfig::default()
        };
        let packing = pack(&problem, &config, &mut |_| Control::Continue).expect("sound");
        // A third of each size, and one more of size 1.
        let third = n / 3;
        assert_eq!(
            (packing.height, packing.optimal),
            (third + 1 + 2 * third + 3 * third, true)
        );
        assert_eq!(
            validate_fast(&problem, &packing.offsets),
            Ok(packing.height)
        );
    }
}

#[test]
fn one_buffer_larger_than_the_capacity_is_named() {
    let mut problem = of((0..500)
        .map(|id| Buffer::new(id, id % 40, id % 40 + 5, 1 + id % 9))
        .collect());
    problem.buffers.push(Buffer::new(500, 3, 9, 5_000));
    problem.capacity = Some(4_999);
    let packing = packed(&problem);
    assert!(!packing.feasible && packing.height >= 5_000);
    assert_eq!(validate(&problem, &packing.offsets), Ok(packing.height));
    let misfit = explain_misfit(&problem, 4_999, 10_000)
        .expect("sound")
        .expect("too large");
    assert_eq!(
        (misfit.buffers, misfit.bytes, misfit.reason),
        (vec![500], 5_000, Reason::TooLarge)
    );
}

#[test]
fn sums_beyond_the_limit_are_refused() {
    assert_eq!(
        refused(&of(vec![Buffer::new(0, 0, 1, u64::MAX)])),
        ProblemError::Overflow { buffer: 0 }
    );
    let halves = vec![
        Buffer::new(0, 0, 1, MAX_BYTES / 2),
        Buffer::new(1, 0, 1, MAX_BYTES / 2),
    ];
    assert_eq!(refused(&of(halves)), ProblemError::Overflow { buffer: 1 });
    let mut fixed = Buffer::new(0, 0, 1, 8);
    fixed.fixed = Some(u64::MAX);
    assert_eq!(
        refused(&of(vec![fixed])),
        ProblemError::Overflow { buffer: 0 }
    );
}

#[test]
fn senseless_problems_are_refused() {
    let mut unaligned = Buffer::new(0, 0, 1, 8);
    unaligned.alignment = 0;
    assert_eq!(
        refused(&of(vec![unaligned])),
        ProblemError::ZeroAlignment { buffer: 0 }
    );
    assert_eq!(
        refused(&of(vec![Buffer::new(0, 3, 1, 8)])),
        ProblemError::UnsortedLive { buffer: 0 }
    );
    let fixed = |id, offset| Buffer {
        fixed: Some(offset),
        ..Buffer::new(id, 0, 5, 8)
    };
    assert!(matches!(
        refused(&of(vec![fixed(0, 0), fixed(1, 4)])),
        ProblemError::FixedOverlap { .. }
    ));
    let mut tied = of(vec![Buffer::new(0, 0, 5, 8), Buffer::new(1, 0, 5, 8)]);
    tied.ties = vec![
        Tie {
            base: 0,
            member: 1,
            distance: 8,
        },
        Tie {
            base: 1,
            member: 0,
            distance: 8,
        },
    ];
    assert!(matches!(
        refused(&tied),
        ProblemError::ContradictoryTies { .. }
    ));
    tied.ties = vec![Tie {
        base: 0,
        member: 7,
        distance: 8,
    }];
    assert_eq!(refused(&tied), ProblemError::NoSuchBuffer { index: 7 });
}

#[test]
fn a_hole_lets_another_buffer_in() {
    let mut outer = Buffer::new(0, 0, 2, 10);
    outer.live.push(Interval::new(5, 9));
    let packing = packed(&of(vec![outer, Buffer::new(1, 2, 5, 10)]));
    assert_eq!((packing.height, packing.optimal), (10, true));
}

/// ```text
///   [0, 4) = 6  a     a and b may share: both at 0
///   [3, 8) = 6  b     c beside them
///   [0, 8) = 2  c
/// ```
#[test]
fn a_pair_shares_exactly_its_bytes_or_none() {
    let mut problem = of(vec![
        Buffer::new(0, 0, 4, 6),
        Buffer::new(1, 3, 8, 6),
        Buffer::new(2, 0, 8, 2),
    ]);
    problem.may_share = vec![(0, 1)];
    let packing = packed(&problem);
    assert_eq!((packing.height, packing.optimal), (8, true));
    assert_eq!(packing.offsets[0], packing.offsets[1]);
    assert_eq!(validate(&problem, &[0, 0, 6]), Ok(8));
    assert!(validate(&problem, &[0, 3, 9]).is_err(), "partly shared");
    problem.buffers[1].size = 5;
    assert!(
        validate(&problem, &[0, 0, 6]).is_err(),
        "different sizes never share"
    );
}

#[test]
fn ties_keep_their_distance() {
    let mut problem = of(vec![
        Buffer::new(0, 0, 4, 4),
        Buffer::new(1, 0, 4, 4),
        Buffer::new(2, 2, 6, 8),
    ]);
    problem.ties = vec![Tie {
        base: 0,
        member: 1,
        distance: 4,
    }];
    let packing = packed(&problem);
    assert_eq!(packing.offsets[1], packing.offsets[0] + 4);
    assert_eq!(packing.height, 16);
}

#[test]
fn a_stop_at_once_leaves_a_valid_packing() {
    let problem = of((0..50_000)
        .map(|id| Buffer::new(id, id / 7, id / 7 + 1 + id % 50, 1 + id % 1000))
        .collect());
    for effort in [Effort::Fast, Effort::Default, Effort::Max] {
        let packing = pack(
            &problem,
            &PackConfig {
                effort,
                ..PackConfig::default()
            },
            &mut |_| Control::Stop,
        )
        .expect("sound");
        assert_eq!(
            validate_fast(&problem, &packing.offsets),
            Ok(packing.height)
        );
    }
}

#[test]
fn the_order_of_rows_does_not_matter() {
    let buffers: Vec<Buffer> = (0..60u64)
        .map(|id| Buffer::new(id, id * 7 % 31, id * 7 % 31 + 1 + id % 5, 1 + id * 13 % 17))
        .collect();
    let straight = packed(&of(buffers.clone()));
    // 60 and 23 have no common divisor, so this is a permutation.
    let shuffled: Vec<Buffer> = (0..60).map(|at| buffers[at * 23 % 60].clone()).collect();
    let again = packed(&of(shuffled.clone()));
    assert_eq!(straight.height, again.height);
    for (buffer, offset) in shuffled.iter().zip(&again.offsets) {
        assert_eq!(straight.offsets[buffer.id as usize], *offset);
    }
}

#[test]
fn sizes_scale() {
    let buffers = |scale| {
        (0..40u64)
            .map(move |id| Buffer::new(id, id % 11, id % 11 + 1 + id % 4, scale * (1 + id * 5 % 9)))
    };
    let (small, large) = (
        packed(&of(buffers(1).collect())),
        packed(&of(buffers(4096).collect())),
    );
    assert_eq!(
        (small.height * 4096, small.optimal),
        (large.height, large.optimal)
    );
}

#[test]
fn misfits_are_explained() {
    let problem = of(vec![
        Buffer::new(0, 0, 9, 20),
        Buffer::new(1, 3, 5, 6),
        Buffer::new(2, 4, 9, 7),
        Buffer::new(3, 20, 21, 9),
    ]);
    let explain = |capacity| explain_misfit(&problem, capacity, 10_000).expect("sound");
    let alone = explain(19).expect("one is too large");
    assert_eq!((alone.buffers, alone.reason), (vec![0], Reason::TooLarge));
    // Live at 4: 20 + 7 + 6; 20 and 7 already exceed 26.
    let two = explain(26).expect("two are too large");
    assert_eq!(
        (two.buffers, two.bytes, two.reason),
        (vec![0, 2], 27, Reason::LiveTogether { time: 4 })
    );
    let three = explain(32).expect("three are too large");
    assert_eq!(
        (three.buffers.len(), three.bytes, three.is_smallest),
        (3, 33, true)
    );
    assert_eq!(explain(33), None);
}

/// Eight bytes are live in all, but one of the two must start at 4 or 8:
///
/// ```text
///   [0, 2) = 5  a, aligned to 4      a at 0 and b at 8 end at 11;
///   [0, 2) = 3  b, aligned to 4      b at 0 and a at 4 end at 9
///   [1, 6) = 0  nothing to do with it, like what follows
///   [5, 6) = 2
/// ```
#[test]
fn a_misfit_of_shapes_is_found_and_reduced() {
    let aligned = |id, size| Buffer {
        alignment: 4,
        ..Buffer::new(id, 0, 2, size)
    };
    let problem = of(vec![
        Buffer::new(0, 5, 6, 2),
        aligned(1, 5),
        aligned(2, 3),
        Buffer::new(3, 1, 6, 0),
    ]);
    let packing = packed(&problem);
    assert_eq!((packing.height, packing.optimal), (9, true));
    let misfit = explain_misfit(&problem, 8, 10_000)
        .expect("sound")
        .expect("does not fit");
    assert_eq!((misfit.buffers, misfit.bytes), (vec![1, 2], 8));
    assert_eq!(
        (misfit.reason, misfit.is_smallest),
        (Reason::NoArrangement, true)
    );
    assert_eq!(explain_misfit(&problem, 9, 10_000), Ok(None));
}

#[test]
fn csv_reads_what_minimalloc_reads() {
    let text = "\u{feff}size,id,upper,lower,alignment,offset,gaps\r\n4,b1,3,0,1,,\r\n8,b2,9,3,4,8,4-6 7-8\r\n\r\n";
    let named = csv::parse(text).expect("well-formed");
    assert_eq!(named.names, ["b1", "b2"]);
    let second = &named.problem.buffers[1];
    assert_eq!(
        second.live.as_slice(),
        [
            Interval::new(3, 4),
            Interval::new(6, 7),
            Interval::new(8, 9)
        ]
    );
    assert_eq!(
        (second.size, second.alignment, second.fixed),
        (8, 4, Some(8))
    );
    let again = csv::parse(&csv::print(&named, None)).expect("our own print");
    assert_eq!(again, named);
    let inclusive = csv::parse("buffer_id,start,end,size\nx,0,4,2\n").expect("the old form");
    assert_eq!(inclusive.problem.buffers[0].live[0], Interval::new(0, 5));
}

/// Names as JSON may hold them.
#[test]
fn csv_keeps_every_name() {
    let names = [
        "plain",
        "a,b",
        "say \"x\"",
        "\"",
        "two\nlines",
        "return\r",
        " blanks ",
        "in \"the\" middle",
        "",
        "\"\"",
    ];
    let buffers = (0..names.len() as u64).map(|at| Buffer::new(at, at, at + 2, 8));
    let problem = of(buffers.collect());
    let named = csv::Named {
        problem,
        names: names.map(str::to_owned).to_vec(),
    };
    let text = csv::print(&named, None);
    let again = csv::parse(&text).expect("our own print");
    let sizes: Vec<u64> = again.problem.buffers.iter().map(|it| it.size).collect();
    assert_eq!(sizes, vec![8; again.names.len()]);
    assert_eq!(again.names, names);
    assert_eq!(csv::print(&again, None), text);
}

#[test]
fn csv_reads_quotes() {
    let text = "\"id\",lower,upper, \"size\"\r\n \"a,\"\"b\"\"\" ,0,\"3\",4\r\nc\"d,1,2,5\r\n";
    let named = csv::parse(text).expect("well-formed");
    assert_eq!(named.names, ["a,\"b\"", "c\"d"]);
    assert_eq!(named.problem.buffers[0].size, 4);
}

#[test]
fn csv_errors_have_a_place() {
    let cases = [
        (
            "id,lower,upper,size\na,0,1,4\n\"b,0,3,4\nc,0,1,2\n",
            3,
            1,
            "never closed",
        ),
        (
            "id,lower,upper,size\n\"a\"b,0,3,4\n",
            2,
            1,
            "`b` follows the closing quote",
        ),
        (
            "id,lower,upper,size\n\"two\nlines\",0,3,x\n",
            3,
            12,
            "size `x` is not a number",
        ),
        ("", 1, 1, "empty"),
        ("id,lower,size\n", 1, 1, "the column `upper` is missing"),
        (
            "id,lower,upper,size,colour\n",
            1,
            21,
            "unknown column `colour`",
        ),
        ("id,lower,upper,size,id\n", 1, 21, "twice"),
        (
            "id,lower,upper,size\na,0,3,x\n",
            2,
            7,
            "size `x` is not a number",
        ),
        (
            "id,lower,upper,size\na,0,3,-4\n",
            2,
            7,
            "size `-4` is not a number",
        ),
        (
            "id,lower,upper,size\na,0,3,99999999999999999999\n",
            2,
            7,
            "is not a number",
        ),
        ("id,lower,upper,size\na,5,3,4\n", 2, 5, "below lower"),
        (
            "id,lower,upper,size\na,0,3\n",
            2,
            6,
            "3 fields where the header has 4",
        ),
        (
            "id,lower,upper,size\na,0,3,4,5\n",
            2,
            9,
            "5 fields where the header has 4",
        ),
        (
            "id,lower,upper,size\na,0,3,4\na,0,3,4\n",
            3,
            1,
            "duplicate id `a`; first on line 2",
        ),
        (
            "id,lower,upper,size,alignment\na,0,3,4,0\n",
            2,
            9,
            "alignment 0",
        ),
        (
            "id,lower,upper,size,gaps\na,0,3,4,2-9\n",
            2,
            9,
            "not within the lifetime",
        ),
    ];
    for (text, line, column, words) in cases {
        let error = csv::parse(text).expect_err(text);
        assert_eq!(
            (error.line, error.column),
            (line, column),
            "{text:?}: {error}"
        );
        assert!(error.message.contains(words), "{text:?}: {error}");
    }
}

#[test]
fn json_reads_what_it_prints() {
    let text = r#"{"capacity": 16, "buffers": [{"id": "a", "live": [[0, 3], [5, 9]], "size": 4},
        {"id": "b", "live": [[2, 6]], "size": 4, "alignment": 2, "offset": 4, "hint": 8}],
        "may_share": [["a", "b"]], "ties": [{"base": "a", "member": "b", "distance": 4}]}"#;
    let named = json::parse(text).expect("well-formed");
    assert_eq!(named.problem.buffers[0].live.len(), 2);
    assert_eq!(
        json::parse(&json::print(&named, None)).expect("our own print"),
        named
    );
    assert!(json::parse(r#"{"buffers": [], "may_share": [["a", "b"]]}"#).is_err());
    assert!(json::parse(r#"{"buffers": [{"id": "a", "live": [], "size": -1}]}"#).is_err());
}

/// The documentation's example is compiled and run; the README must show the same one.
#[test]
fn the_readme_shows_the_example_of_the_documentation() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let read =
        |path: &str| std::fs::read_to_string(root.join(path)).expect("a file of the project");
    let (readme, module) = (read("../README.md"), read("src/pack/mod.rs"));
    let lines = module.lines().filter_map(|it| it.strip_prefix("//!"));
    let documentation: Vec<&str> = lines.map(|it| it.strip_prefix(' ').unwrap_or(it)).collect();
    let documentation = documentation.join("\n");
    let example = documentation.split("```").nth(1).expect("an example");
    assert!(
        readme.contains(&format!("```rust{example}```")),
        "{example}"
    );
}
