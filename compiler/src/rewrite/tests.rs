//! Every rule against the interpreter, on random programs; a wrong rule and one that never ends.

use egg::Id;

use slabplan_ir::Module;
use slabplan_planner::layouts::EntryOrder;

use super::lang::{Facts, Graph, Node, Op};
use super::rules::{RULES, Rule};
use super::{Choices, RewriteLimits, Saturated, Stop, extract, saturate_all, written};
use crate::exec::compare::{Tolerance, compare};
use crate::exec::{ExecConfig, Executable, HostArray};
use crate::{CompileConfig, FuseMode, LayoutMode, Transforms, compile, target};

mod programs;

/// Programs in which a rule must be used to count as tested, at which number it is enough, and most
/// programs that are made.
const USES: usize = 6;
const ENOUGH: usize = 12;
const PROGRAMS: u64 = 4000;

/// Applies one rule alone to random programs, takes the forms it made wherever there are any, and
/// runs both programs. Gives how often the rule was used, or the first difference.
fn try_rule(rule: &Rule, salt: u64, enough: usize) -> Result<usize, String> {
    let mut uses = 0;
    for seed in 0..PROGRAMS {
        let program = programs::random(seed.wrapping_mul(0x9e37_79b9) ^ salt);
        let module = slabplan_ir::text::parse(&program.text)
            .into_result()
            .map_err(|e| format!("{}\n{}", e[0], program.text))?;
        slabplan_ir::verify::verify(&module).map_err(|e| format!("{e}\n{}", program.text))?;
        let limits = RewriteLimits {
            nodes: 400,
            rounds: 3,
            ..RewriteLimits::default()
        };
        let saturated = saturate_all(&module, std::slice::from_ref(rule), limits);
        let choices = forms_made(&saturated);
        if choices.is_empty() {
            continue;
        }
        uses += 1;
        let rewritten = written(&module, &saturated, &choices)
            .map_err(|e| format!("{}: {e}\n{}", rule.name, program.text))?;
        has_same_results(&module, &rewritten, &program.inputs)
            .map_err(|e| format!("{}: {e}", rule.name))?;
        if uses == enough {
            break;
        }
    }
    Ok(uses)
}

/// For every region that the rule changed, a form with as few of the nodes it had as can be.
fn forms_made(saturated: &[Saturated]) -> Choices {
    let mut choices = Choices::new();
    for (n, s) in saturated.iter().enumerate() {
        let graph = &s.lowered.graph;
        if graph.analysis.joined.is_empty() {
            continue;
        }
        let canonical = |node: &Node| {
            let mut node = node.clone();
            for c in &mut node.children {
                *c = graph.find(*c);
            }
            node
        };
        let had: Vec<Node> = s.original.values().cloned().collect();
        let cost = |node: &Node, _: &Facts| match node.op {
            Op::Leaf(_) => 0,
            _ if had.contains(&canonical(node)) => 1000,
            _ => 1,
        };
        let roots: Vec<Id> = s
            .region
            .roots
            .iter()
            .map(|r| s.lowered.class_of[r])
            .collect();
        let choice = extract::extract(graph, &roots, &cost);
        if let Some(choice) = choice.filter(|c| c.values().ne(s.original.values())) {
            choices.entry(s.comp).or_default().push((n, choice));
        }
    }
    choices
}

/// Runs both programs. Gives the first difference.
fn has_same_results(
    module: &Module,
    rewritten: &Module,
    inputs: &[HostArray],
) -> Result<(), String> {
    let (before, after) = (run(module, inputs)?, run(rewritten, inputs)?);
    let tolerance = Tolerance {
        rtol: 1e-4,
        atol: 1e-4,
    };
    for (n, (a, b)) in before.iter().zip(&after).enumerate() {
        let difference = compare(&format!("out{n}"), b, a, tolerance);
        if !difference.is_close() {
            let [before, after] = [module, rewritten].map(slabplan_ir::text::print);
            return Err(format!("{difference}\nbefore:\n{before}\nafter:\n{after}"));
        }
    }
    Ok(())
}

fn run(module: &Module, inputs: &[HostArray]) -> Result<Vec<HostArray>, String> {
    let target = target::load("cpu").map_err(|e| e.to_string())?;
    let compiled = compile(module.clone(), &target, &CompileConfig::default())
        .map_err(|e| format!("{e}\n{}", slabplan_ir::text::print(module)))?;
    let config = ExecConfig {
        poison: true,
        ..ExecConfig::default()
    };
    let mut executable =
        Executable::new(&compiled.module, compiled.plan(), config).map_err(|e| e.to_string())?;
    executable.execute(inputs).map_err(|e| e.to_string())
}

#[test]
fn every_rule_keeps_results() {
    let mut unused = Vec::new();
    for rule in RULES {
        match try_rule(rule, 0, ENOUGH) {
            Ok(uses) if uses < USES => unused.push(format!("{} ({uses} times)", rule.name)),
            Ok(_) => {}
            Err(difference) => panic!("{difference}"),
        }
    }
    assert!(
        unused.is_empty(),
        "hardly used in {PROGRAMS} programs: {unused:?}"
    );
}

#[test]
fn every_rule_says_what_it_needs_and_why_it_is_sound() {
    let mut names: Vec<&str> = RULES.iter().map(|r| r.name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), RULES.len());
    assert!(
        RULES
            .iter()
            .all(|r| !r.condition.is_empty() && !r.soundness.is_empty())
    );
}

fn wrong(name: &'static str, apply: fn(&mut Graph, &Node) -> Vec<Id>) -> Rule {
    Rule {
        name,
        condition: "",
        soundness: "",
        apply,
    }
}

/// The transpose of a square array is not the array.
fn square_transpose(g: &mut Graph, node: &Node) -> Vec<Id> {
    let Op::Transpose(p) = &node.op else {
        return Vec::new();
    };
    let dims = &g[node.children[0]].data.dims;
    let same = p.iter().zip(dims).all(|(&d, n)| dims[d as usize] == *n);
    if same {
        vec![node.children[0]]
    } else {
        Vec::new()
    }
}

/// A conversion to a narrower type does lose something.
fn any_round_trip(g: &mut Graph, node: &Node) -> Vec<Id> {
    let Op::Convert(to) = node.op else {
        return Vec::new();
    };
    let inner = g[node.children[0]].nodes.clone();
    let converts = inner.iter().filter(|n| matches!(n.op, Op::Convert(_)));
    converts
        .map(|n| n.children[0])
        .filter(|&x| g[x].data.element == to)
        .collect()
}

#[test]
fn wrong_rules_are_caught() {
    for rule in [
        wrong("square-transpose", square_transpose),
        wrong("any-round-trip", any_round_trip),
    ] {
        // Much of what they do is right: transposes of one row, numbers without a fraction.
        let found = try_rule(&rule, 1, usize::MAX).expect_err("the rule changes results");
        assert!(
            found.contains(rule.name) && found.contains("after:"),
            "{found}"
        );
    }
}

const ALL: Transforms = Transforms {
    layouts: LayoutMode::Memory,
    entry: EntryOrder::Free,
    rewrite: true,
    fuse: FuseMode::Eager,
};

/// All rules at once come to an end, and what is made of their forms has the same results.
#[test]
fn all_rules_together_keep_results() {
    let target = target::load("tpu-v5e").unwrap();
    let mut rewritten = 0;
    for seed in 0..300 {
        let program = programs::random(seed);
        let module = slabplan_ir::text::parse(&program.text)
            .into_result()
            .unwrap();
        let found = super::candidates(&module, &target, RewriteLimits::default());
        for candidate in found.candidates {
            let candidate = candidate.unwrap_or_else(|e| panic!("{e}\n{}", program.text));
            if let Err(e) = has_same_results(&module, &candidate.module, &program.inputs) {
                panic!("{e}");
            }
            // Whatever else is tried on it can be planned.
            let all = CompileConfig {
                transforms: ALL,
                ..CompileConfig::default()
            };
            let compiled = compile(candidate.module, &target, &all).unwrap();
            let left_out = compiled.notes.iter().find(|n| n.contains("left out"));
            assert_eq!(left_out, None, "{}", program.text);
            rewritten += 1;
        }
    }
    assert!(rewritten > 200, "only {rewritten} programs were made");
}

/// A class that holds a view of itself has the same forms over and over; they are looked at once.
#[test]
fn views_of_themselves_are_no_endless_work() {
    let views = [
        "transpose(a), dimensions={0,1}",
        "reshape(a)",
        "broadcast(a), dimensions={0,1}",
        "slice(a), slice={[0:6], [0:4]}",
        "concatenate(a), dimensions={1}",
        "pad(a, z), padding=0_0x0_0",
        "convert(a)",
        "negate(a)",
    ];
    for first in views {
        for second in views {
            let body: String = (0..4)
                .map(|n| {
                    let view = |view: &str, k: usize| {
                        let view = view.replace("(a", &format!("(v{k}"));
                        format!("v{} = f32[6,4] {view}\n", k + 1)
                    };
                    view(first, 2 * n) + &view(second, 2 * n + 1)
                })
                .collect();
            let text = format!(
                "ENTRY e {{\np = f32[6,4] parameter(0)\nq = f32[6,4] parameter(1)\nz = f32[] constant(0)\n\
                 s = f32[6,4] add(p, q)\nv0 = f32[6,4] multiply(s, s)\n{body}\
                 ROOT r = f32[2,4] slice(v8), slice={{[0:3:2], [0:4]}}\n}}"
            );
            let module = slabplan_ir::text::parse(&text).into_result().unwrap();
            let saturated = saturate_all(&module, RULES, RewriteLimits::default());
            assert_eq!(saturated[0].stop, Stop::Saturated, "{text}");
        }
    }
}

/// Adds a longer way round for every node, for ever.
fn detour(g: &mut Graph, node: &Node) -> Vec<Id> {
    if matches!(node.op, Op::Reshape(_)) {
        return Vec::new();
    }
    let id = g.add(node.clone());
    let dims = g[id].data.dims.clone();
    let mut longer = dims.clone();
    for _ in 0..=g.total_size() {
        longer.insert(0, 1);
    }
    let there = g.add(Node::new(Op::Reshape(longer), &[id]));
    let back = g.add(Node::new(Op::Reshape(dims), &[there]));
    vec![back]
}

#[test]
fn a_rule_set_without_end_is_stopped_and_changes_nothing() {
    let text = "ENTRY e { p = f32[4] parameter(0) n = f32[4] negate(p) ROOT c = f32[4] cosine(n) }";
    let module = slabplan_ir::text::parse(text).into_result().unwrap();
    let limits = RewriteLimits {
        nodes: 100,
        rounds: 1000,
        ..RewriteLimits::default()
    };
    let rules = [wrong("detour", detour)];
    let saturated = saturate_all(&module, &rules, limits);
    assert_eq!(saturated.len(), 1);
    assert_eq!(saturated[0].stop, Stop::Nodes(100));
    assert!(saturated[0].lowered.graph.total_number_of_nodes() < 120);
    let limits = RewriteLimits {
        nodes: 1_000_000,
        rounds: 3,
        ..limits
    };
    assert_eq!(
        saturate_all(&module, &rules, limits)[0].stop,
        Stop::Rounds(3)
    );
    let target = target::load("tpu-v5e").unwrap();
    let prices = super::Prices::new(&target);
    let kept = super::candidate(&module, &saturated, &prices, super::CostView::Values).unwrap();
    assert!(kept.is_none());
}

#[test]
fn shared_values_are_counted_once() {
    // exp(x) is used twice. As a tree, multiply(e, e) costs 2 * 100 + 1; as it is, 101.
    let text = "ENTRY e { p = f32[4] parameter(0) x = f32[4] exponential(p)
  ROOT m = f32[4] multiply(x, x) }";
    let module = slabplan_ir::text::parse(text).into_result().unwrap();
    let saturated = saturate_all(&module, &[], RewriteLimits::default());
    let s = &saturated[0];
    let cost = |n: &Node, _: &Facts| match n.op {
        Op::Leaf(_) => 0,
        _ if n.children.len() == 1 => 100,
        _ => 1,
    };
    let root = s.lowered.class_of[&s.region.roots[0]];
    let choice = extract::extract(&s.lowered.graph, &[root], &cost).unwrap();
    assert_eq!(extract::total(&s.lowered.graph, &choice, &cost), 101);
}
