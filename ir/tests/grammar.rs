//! The rules of the text form one by one: what is accepted, what it means, what is refused.

use slabplan_ir::text::{parse, print};
use slabplan_ir::{Module, Opcode};

/// A module whose entry has parameters `x` and `y` of f32[4], `p` of pred[] and then `lines`.
fn with(lines: &str) -> String {
    format!(
        "HloModule m\n\nadd_f32 {{\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  \
         ROOT s = f32[] add(a, b)\n}}\n\nENTRY e {{\n  x = f32[4]{{0}} parameter(0)\n  \
         y = f32[4]{{0}} parameter(1)\n  p = pred[] parameter(2)\n  z = f32[] constant(0)\n{lines}\n}}\n"
    )
}

#[track_caller]
fn module(source: &str) -> Module {
    parse(source)
        .into_result()
        .unwrap_or_else(|errors| panic!("{}\n{source}", errors[0]))
}

/// `lines` print as `printed`, which stands at the end of the entry computation.
#[track_caller]
fn prints(lines: &str, printed: &str) {
    let text = print(&module(&with(lines)));
    let end = format!("{printed}\n}}\n\n");
    assert!(text.ends_with(&end), "{text}");
}

/// The print of an instruction that is already in XLA's form.
#[track_caller]
fn kept(line: &str) {
    prints(&format!("  ROOT {line}"), &format!("  ROOT {line}"));
}

/// `lines` are refused with `words` about the text `at`.
#[track_caller]
fn refused(lines: &str, at: &str, words: &str) {
    refused_module(&with(lines), at, words);
}

#[track_caller]
fn refused_module(source: &str, at: &str, words: &str) {
    let parsed = parse(source);
    assert!(parsed.module.is_none(), "accepted: {source}");
    let error = &parsed.diagnostics[0];
    let text = error.to_string();
    assert!(text.contains(words), "{text}");
    assert_eq!(&source[error.span.clone()], at, "{text}");
}

#[test]
fn names_with_and_without_percent() {
    prints(
        "  %r = f32[4]{0} add(%x, y)",
        "  ROOT %r = f32[4]{0} add(%x, %y)",
    );
    prints(
        "  a.b-c_1 = f32[4]{0} negate(x)",
        "  ROOT %a.b-c_1 = f32[4]{0} negate(%x)",
    );
    prints(
        "  %r=f32[4]{0} negate(x)",
        "  ROOT %r = f32[4]{0} negate(%x)",
    );
    refused("  r=f32[4]{0} negate(x)", "r=", "put a space before `=`");
    refused("  f32 = f32[4]{0} negate(x)", "f32", "element type");
    refused("  __r = f32[4]{0} negate(x)", "__r", "two underscores");
    refused("  x = f32[4]{0} negate(y)", "x", "already defined");
    refused(
        "  1x = f32[4]{0} negate(y)",
        "1x",
        "expected an instruction's name",
    );
}

#[test]
fn operands() {
    prints(
        "  r = f32[4] negate(f32[4]{0} x)",
        "  ROOT %r = f32[4] negate(%x)",
    );
    refused(
        "  r = f32[4] negate(f32[5] x)",
        "x",
        "declared f32[5] but is f32[4]",
    );
    refused(
        "  r = f32[4] negate(nothing)",
        "nothing",
        "not defined before its use",
    );
    refused("  r = f32[4] negate(r)", "r", "refers to itself");
    refused("  r = f32[4] add(x)", "add", "takes 2 operands, found 1");
    refused("  r = f32[4] add(x y)", "y", "expected `,` or `)`");
    refused("  r = f32[4] negat(x)", "negat", "did you mean `negate`?");
}

#[test]
fn nested_operands_get_names() {
    prints(
        "  r = add(maximum(x, y), negate(negate(x)))",
        "  %maximum.anon = f32[4]{0} maximum(%x, %y)\n  \
         %negate.anon.1 = f32[4]{0} negate(%x)\n  \
         %negate.anon = f32[4]{0} negate(%negate.anon.1)\n  \
         ROOT %r = f32[4]{0} add(%maximum.anon, %negate.anon)",
    );
}

#[test]
fn shapes_left_out() {
    prints("  r = add(x, y)", "  ROOT %r = f32[4]{0} add(%x, %y)");
    refused(
        "  r = convert(x)",
        "convert",
        "shape of `convert` must be written",
    );
    refused("  r = slice(x), slice={[0:2]}", "slice", "must be written");
}

#[test]
fn roots() {
    let text = print(&module(&with("  ROOT r = negate(x)\n  after = negate(y)")));
    assert!(text.contains("  ROOT %r = "), "{text}");
    assert!(text.contains("\n  %after = "), "{text}");
    refused(
        "  ROOT r = negate(x)\n  ROOT s = negate(y)",
        "ROOT",
        "second ROOT",
    );
}

#[test]
fn attributes_of_each_grammar() {
    kept("%r = f32[4]{0} broadcast(%z), dimensions={}");
    kept("%r = pred[4]{0} compare(%x, %y), direction=LT, type=TOTALORDER");
    kept("%r = f32[2]{0} slice(%x), slice={[0:4:2]}");
    kept("%r = f32[2]{0} slice(%x), slice={[0:2]}");
    prints(
        "  r = f32[2]{0} slice(x), slice={ [ 0 : 2 : 1 ] }",
        "  ROOT %r = f32[2]{0} slice(%x), slice={[0:2]}",
    );
    kept("%r = f32[9]{0} pad(%x, %z), padding=1_-1_2");
    kept("%r = f32[4]{0} pad(%x, %z), padding=1_-1");
    kept("%r = f32[] reduce(%x, %z), dimensions={0}, to_apply=%add_f32");
    kept(
        "%r = f32[2]{0} reduce-window(%x, %z), window={size=3 stride=2 pad=1_0 rhs_reversal=1}, to_apply=%add_f32",
    );
    kept(
        "%r = f32[4]{0} all-reduce(%x), channel_id=1, replica_groups={{0,1},{2,3}}, to_apply=%add_f32",
    );
    kept("%r = f32[4]{0} all-reduce(%x), replica_groups=[2,4]<=[4,2]T(1,0), to_apply=%add_f32");
    kept(
        "%r = f32[4]{0} all-reduce(%x), replica_groups=mesh['a'=2,'b'=2] {'b'}, to_apply=%add_f32",
    );
    kept("%r = f32[4]{0} collective-permute(%x), source_target_pairs={{0,1},{1,0}}");
    kept(
        "%r = (f32[4]{0}) custom-call(%x), custom_call_target=\"f\", operand_layout_constraints={f32[4]{0}}, output_to_operand_aliasing={{0}: (0, {})}, api_version=API_VERSION_TYPED_FFI",
    );
    kept("%r = f32[4]{0} negate(%x), sharding={devices=[2]<=[2]}, control-predecessors={%y}");
    kept(
        "%r = f32[4]{0} negate(%x), metadata={op_name=\"a{b\\\"c\" source_line=1}, backend_config={\"k\":[\"}\"]}",
    );
    kept("%r = f32[4]{0} negate(%x), backend_config=\"text with } and \\\" in it\"");
    kept("%r = f32[4]{0} exponential(%x), result_accuracy={mode=highest}");
    kept("%r = s32[4]{0} iota(), iota_dimension=0");
}

#[test]
fn attributes_refused() {
    refused(
        "  r = negate(x), dimensions={0}",
        "dimensions",
        "`negate` has no attribute `dimensions`",
    );
    refused(
        "  r = f32[] reduce(x, z), dimension={0}, to_apply=add_f32",
        "dimension",
        "did you mean `dimensions`?",
    );
    refused(
        "  r = f32[] reduce(x, z), to_apply=add_f32",
        "reduce",
        "needs attribute `dimensions`",
    );
    refused(
        "  r = negate(x), metadata={}, metadata={}",
        "metadata",
        "given twice",
    );
    refused(
        "  r = f32[] reduce(x, z), dimensions={0}, to_apply=add_f23",
        "add_f23",
        "did you mean `add_f32`?",
    );
    refused(
        "  r = f32[4] all-reduce(x), to_apply=add_f32, replica_groups=[2,4]<=[9]",
        "[2,4]<=[9]",
        "8 places for 9 devices",
    );
    refused(
        "  r = f32[4] all-reduce(x), to_apply=add_f32, replica_groups=[2,2]<=[2,2]T(0,0)",
        "[2,2]<=[2,2]T(0,0)",
        "each of the 2 dimensions once",
    );
    refused("  r = f32[2] slice(x), slice={[0;2]}", ";", "expected `:`");
    refused("  r = f32[4] pad(x, z), padding=1x1", "x1", "expected `_`");
    refused(
        "  r = f32[4] conditional(p, x, y), true_computation=add_f32",
        "conditional",
        "`false_computation`",
    );
    refused(
        "  r = f32[2] reduce-window(x, z), window={size=3 stride=2x2}, to_apply=add_f32",
        "stride=2x",
        "more dimensions",
    );
    refused(
        "  r = f32[2] reduce-window(x, z), window={sise=3}, to_apply=add_f32",
        "sise",
        "unknown field",
    );
}

#[test]
fn convolution_labels() {
    let line = |labels: &str| {
        format!(
            "  i = f32[1,4,4,2] parameter(3)\n  k = f32[3,3,2,8] parameter(4)\n  \
             ROOT r = f32[1,2,2,8] convolution(i, k), window={{size=3x3}}, dim_labels={labels}"
        )
    };
    let m = module(&with(&line("b01f_01io->b01f")));
    let labels = m.instrs[m.entry().root].dim_labels().unwrap();
    assert_eq!((labels.input_batch, labels.input_feature), (0, 3));
    assert_eq!(labels.kernel_spatial.as_slice(), [0, 1]);
    assert!(print(&m).contains("dim_labels=b01f_01io->b01f"));
    for (labels, words) in [
        ("b01f_01io", "malformed dimension labels"),
        ("b01_01io->b01f", "`f` is missing"),
        ("b01f_0io->b01f", "different numbers of spatial dimensions"),
        ("b02f_01io->b01f", "spatial dimension 1 is missing"),
        ("bb01f_01io->b01f", "`b` twice"),
    ] {
        refused(&line(labels), labels, words);
    }
}

#[test]
fn shapes_and_layouts() {
    for shape in [
        "f32[]",
        "f32[<=8,?]",
        "f32[2,3]{0,1:T(8,128)(2,1)L(512)E(4)S(1)SC(0:1)M(256)}",
        "f32[2,3]{1,0:T(*,8)}",
        "f32[2]{0:D(C+~)#(u32)*(u32)}",
        "f32[]{:T(128)}",
        "token[]",
        "opaque[]",
        "b(f32[4]{0})",
        "()",
        "((f32[2]{0}, ()), s4[3]{0:E(4)})",
    ] {
        let text = format!("HloModule m\n\nENTRY %e {{\n  ROOT %q = {shape} parameter(0)\n}}\n\n");
        assert_eq!(print(&module(&text)), text);
    }
    refused("  q = f33[2] parameter(3)", "f33", "did you mean `f32`?");
    refused("  q = F32[2] parameter(3)", "F32", "did you mean `f32`?");
    refused(
        "  q = f32[2,3]{1} parameter(3)",
        "f32[2,3]{1}",
        "each of the 2 dimensions once",
    );
    refused(
        "  q = f32[2,3]{0,0} parameter(3)",
        "f32[2,3]{0,0}",
        "each of the 2 dimensions once",
    );
    refused(
        "  q = f32[2]{0:P(f32[2])} parameter(3)",
        "P",
        "physical shape",
    );
    refused(
        "  q = f32[2 parameter(3)",
        "parameter",
        "expected `,` or `]`",
    );
    refused(
        "  q = (f32[2], parameter(3)",
        "parameter",
        "unknown element type",
    );
}

#[test]
fn index_comments_and_other_comments() {
    let elements = |separator: &str| ["f32[4]{0}"; 6].join(separator);
    let line = format!(
        "  ROOT /* a */ r = ({}) tuple(x, x, x, x, x, /*index=5*/x) // end",
        elements(" /*c*/ , ")
    );
    prints(
        &line,
        "  ROOT %r = (f32[4]{0}, f32[4]{0}, f32[4]{0}, f32[4]{0}, f32[4]{0}, /*index=5*/f32[4]{0}) \
         tuple(%x, %x, %x, %x, %x, /*index=5*/%x)",
    );
    refused("  r = negate(x) /* open", "/*", "unterminated comment");
}

#[test]
fn inline_computations() {
    let text = print(&module(&with(
        "  r = f32[] reduce(x, z), dimensions={0}, to_apply={ a = f32[] parameter(0) b = f32[] parameter(1) m = maximum(a, b) }",
    )));
    assert!(text.contains("%_ {\n  %a = "), "{text}");
    assert!(text.contains("to_apply=%_\n"), "{text}");
    refused(
        "  r = f32[] reduce(x, z), dimensions={0}, to_apply={ ROOT m = negate(x) }",
        "x",
        "not defined",
    );
}

#[test]
fn generated_names_give_way_to_written_ones() {
    let text = "HloModule m\nENTRY e { x = f32[4] parameter(0), z = f32[] constant(0) }"
        .replace(", z", " z");
    let text = text.replace(
        " }",
        " r = f32[] reduce(negate(x), z), dimensions={0}, to_apply={ a = f32[] parameter(0) b = f32[] parameter(1) s = add(a, b) } \
         negate.anon = negate(x) } \n _ { q = f32[] parameter(0) }",
    );
    let text = print(&module(&text));
    assert!(text.contains("%_.1 {") && text.contains("%_ {"), "{text}");
    assert!(
        text.contains("%negate.anon.1 = ") && text.contains("%negate.anon = "),
        "{text}"
    );
    module(&text);
}

#[test]
fn short_form_of_async_operations() {
    let m = module(&with(
        "  s = ((f32[4]{0}), f32[2]{0}, s32[]) slice-start(x), slice={[0:2]}, metadata={op_name=\"n\"}, statistics={visualizing_index=0,s=1}\n  \
         u = ((f32[4]{0}), f32[2]{0}, s32[]) slice-update(s)\n  ROOT d = f32[2]{0} slice-done(u)",
    ));
    let opcodes: Vec<Opcode> = m.entry().instrs[4..]
        .iter()
        .map(|&i| m.instrs[i].opcode)
        .collect();
    assert_eq!(
        opcodes,
        [Opcode::AsyncStart, Opcode::AsyncUpdate, Opcode::AsyncDone]
    );
    let text = print(&m);
    assert!(
        text.contains("%async_wrapped (async_param.0: f32[4]) -> f32[2] {"),
        "{text}"
    );
    assert!(text.contains("  ROOT %async_op = f32[2]{0} slice(%async_param.0), slice={[0:2]}, metadata={op_name=\"n\"}, statistics={visualizing_index=0,s=1}"), "{text}");
    assert!(
        text.contains("async-start(%x), calls=%async_wrapped, metadata={op_name=\"n\"}, statistics={visualizing_index=0,s=1}"),
        "{text}"
    );
    refused(
        "  s = (f32[4], f32[2]) slice-start(x), slice={[0:2]}",
        "(f32[4], f32[2]) slice-start(x), slice={[0:2]}",
        "tuple of the operands' tuple",
    );
    refused(
        "  s = ((f32[4]), f32[2]) slice-start(x)",
        "slice-start",
        "needs attribute `slice`",
    );
    refused(
        "  s = ((f32[4]), f32[4]) frob-start(x)",
        "frob-start",
        "unknown opcode",
    );
}

#[test]
fn a_single_instruction() {
    let m = module("foo = add(f32[10] left, f32[10])");
    let text = print(&m);
    assert!(text.contains("%left = f32[10] parameter(0)"), "{text}");
    assert!(
        text.contains("ROOT %foo = f32[10] add(%left, %_1)"),
        "{text}"
    );
    refused_module("foo = add(f32[10], f32[10]) bar", "bar", "end of the text");
    refused_module("foo = add(left, right)", "left", "not defined");
}

#[test]
fn computations() {
    let one = "HloModule m\none { x = f32[] parameter(0) }\n";
    let m = module(&format!("{one}two {{ x = f32[] parameter(0) }}"));
    assert_eq!(m.comp_name(m.entry), "two");
    let m = module(&format!(
        "ENTRY {}",
        "e { x = f32[] parameter(0) }, execution_thread=\"t\""
    ));
    assert_eq!(m.str(m.name), "module_e");
    assert!(print(&m).ends_with("}, execution_thread=\"t\"\n\n"));
    refused_module(
        &format!("{one}one {{ x = f32[] parameter(0) }}"),
        "one",
        "already defined",
    );
    refused_module(&format!("{one}two {{ }}"), "{", "without instructions");
    refused_module(
        "HloModule m\nENTRY a { x = f32[] parameter(0) }\nENTRY b { x = f32[] parameter(0) }",
        "ENTRY",
        "second entry",
    );
    refused_module(
        "HloModule m\nENTRY a (x: f32[]) -> f32[2] { x = f32[] parameter(0) }",
        "(x: f32[]) -> f32[2]",
        "result f32[2] differs from the root `x`",
    );
    refused_module(
        "HloModule m\nENTRY a { x = f32[] parameter(1) }",
        "x",
        "no parameter has number 0",
    );
    refused_module("HloModule m", "", "no computation");
}

#[test]
fn header() {
    let text = "HloModule m, is_scheduled=true, input_output_alias={ {0}: (0, {}, may-alias), {1,0}: (1, {2}, must-alias) }, \
        buffer_donor={ (1, {0}) }, entry_computation_layout={(f32[4]{0}, (f32[], f32[], f32[]))->(f32[4]{0}, (f32[]))}, \
        replica_count=2, num_partitions=4, frontend_attributes={a=\"}\",b={c={}}}\n\n\
        FileNames\n1 \"a.py\"\n\nFunctionNames\n1 \"main\"\n\nFileLocations\n\
        1 {file_name_id=1 function_name_id=1 line=3 end_line=3 column=0 end_column=9}\n\nStackFrames\n\
        1 {file_location_id=1 parent_frame_id=1}\n\n\n\
        ENTRY %e {\n  %a = f32[4]{0} parameter(0)\n  %b = (f32[], f32[], f32[]) parameter(1)\n  \
        %c = f32[] get-tuple-element(%b), index=2\n  %d = (f32[]) tuple(%c)\n  \
        ROOT %r = (f32[4]{0}, (f32[])) tuple(%a, %d)\n}\n\n";
    let m = module(text);
    assert_eq!(print(&m), text);
    assert!(m.is_scheduled && m.replica_count == 2 && m.num_partitions == 4);
    assert_eq!(m.input_output_alias[1].parameter_index.as_slice(), [2]);
    for (old, new, at, words) in [
        (
            "is_scheduled=true",
            "is_scheduled=yes",
            "yes",
            "`true` or `false`",
        ),
        (
            "is_scheduled=true",
            "is_schedule=true",
            "is_schedule",
            "did you mean `is_scheduled`?",
        ),
        (
            "replica_count=2",
            "num_partitions=2",
            "num_partitions",
            "given twice",
        ),
        (
            "{0}: (0, {}, may-alias)",
            "{2}: (0, {}, may-alias)",
            "{2}: (0, {}, may-alias)",
            "no part {2}",
        ),
        (
            "{0}: (0, {}, may-alias)",
            "{0}: (7, {}, may-alias)",
            "{0}: (7, {}, may-alias)",
            "no parameter 7",
        ),
        (
            "{0}: (0, {}, may-alias)",
            "{0}: (0, {}, can-alias)",
            "can-alias",
            "`must-alias`",
        ),
        (
            "{1,0}: (1, {2}, must-alias)",
            "{0}: (1, {2}, must-alias)",
            "{0}: (1, {2}, must-alias)",
            "aliased twice",
        ),
        (
            "buffer_donor={ (1, {0}) }",
            "buffer_donor={ (1, {3}) }",
            "(1, {3})",
            "no part {3}",
        ),
        ("line=3 ", "lime=3 ", "lime", "unknown key"),
        (
            "FunctionNames",
            "FunctionName",
            "FunctionName",
            "section `FunctionNames`",
        ),
    ] {
        refused_module(&text.replacen(old, new, 1), at, words);
    }
}

#[test]
fn one_run_reports_several_errors() {
    let source =
        with("  q = f32[4] negat(x)\n  r = f32[4] add(q, x), k=1\n  s = f32[4] subtract(r, t)")
            + "\nlast {\n  u = f32[] parameter(1)\n}\n";
    let parsed = parse(&source);
    let found: Vec<(usize, &str)> = parsed
        .diagnostics
        .iter()
        .map(|d| (d.line, &source[d.span.clone()]))
        .collect();
    // Uses of `q` and `r`, which are bad, are not reported again.
    assert_eq!(found, [(14, "negat"), (15, "k"), (16, "t"), (20, "u")]);
}

#[test]
fn places_count_characters() {
    let parsed = parse("HloModule m\n/* ✓✓ */ ENTRY e { x = f33[] parameter(0) }");
    let error = &parsed.diagnostics[0];
    assert_eq!((error.line, error.column), (2, 24));
    assert!(
        error
            .to_string()
            .starts_with("2:24: unknown element type `f33`")
    );
}
