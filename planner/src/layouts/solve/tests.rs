//! Solvers against brute force.

use std::rc::Rc;

use super::{Edge, Energy, Matrix, solve};
use crate::layouts::LayoutConfig;

fn brute_force(energy: &Energy) -> u64 {
    let mut labels = vec![0; energy.len()];
    let mut best = u64::MAX;
    loop {
        best = best.min(energy.cost(&labels));
        let Some(next) = (0..labels.len()).find(|&n| labels[n] + 1 < energy.unary[n].len()) else {
            return best;
        };
        labels[..next].fill(0);
        labels[next] += 1;
    }
}

/// A random problem with up to `nodes` nodes and four labels each.
fn problem(u: &mut arbitrary::Unstructured<'_>, nodes: usize) -> arbitrary::Result<Energy> {
    let mut energy = Energy::default();
    for _ in 0..u.int_in_range(1..=nodes)? {
        let labels = u.int_in_range(1..=4)?;
        let unary = (0..labels).map(|_| u.int_in_range(0..=20u64));
        energy.unary.push(unary.collect::<arbitrary::Result<_>>()?);
    }
    let n = energy.len() as u32;
    for _ in 0..u.int_in_range(0..=2 * n)? {
        let (a, b) = (u.int_in_range(0..=n - 1)?, u.int_in_range(0..=n - 1)?);
        if a == b {
            continue;
        }
        let (rows, columns) = (
            energy.unary[a as usize].len(),
            energy.unary[b as usize].len(),
        );
        let mut costs = Vec::new();
        for _ in 0..rows * columns {
            costs.push(u.int_in_range(0..=20u64)?);
        }
        let matrix = Matrix {
            rows,
            columns,
            costs,
        };
        energy.edges.push(Edge {
            a,
            b,
            costs: Rc::new(matrix),
        });
    }
    Ok(energy)
}

#[test]
fn small_problems_are_solved_exactly() {
    arbtest::arbtest(|u| {
        let energy = problem(u, 7)?;
        let start = vec![0; energy.len()];
        let found = solve(&energy, &start, &LayoutConfig::default());
        assert!(found.exact);
        assert_eq!(energy.cost(&found.labels), brute_force(&energy));
        Ok(())
    })
    .budget_ms(500);
}

#[test]
fn without_search_a_start_never_gets_worse() {
    let config = LayoutConfig {
        search_steps: 0,
        ..LayoutConfig::default()
    };
    arbtest::arbtest(|u| {
        let energy = problem(u, 9)?;
        let start: Vec<usize> = energy.unary.iter().map(|u| u.len() - 1).collect();
        let found = solve(&energy, &start, &config);
        let (cost, best) = (energy.cost(&found.labels), brute_force(&energy));
        assert!(cost <= energy.cost(&start) && cost >= best);
        assert!(!found.exact || cost == best);
        Ok(())
    })
    .budget_ms(500);
}

#[test]
fn trees_and_cycles_need_no_search() {
    let config = LayoutConfig {
        search_steps: 0,
        ..LayoutConfig::default()
    };
    // A ring of 1000 nodes with two labels: unlike neighbours cost 3, label 1 costs 1 but at two
    // opposite nodes, where label 0 costs 100. One label for all: 998 with label 1, 200 with 0.
    let n = 1000u32;
    let mut energy = Energy::default();
    for node in 0..n {
        let pinned = node == 0 || node == n / 2;
        energy
            .unary
            .push(if pinned { vec![100, 0] } else { vec![0, 1] });
        energy.edges.push(Edge {
            a: node,
            b: (node + 1) % n,
            costs: Rc::new(Matrix::new(2, 2, |i, j| if i == j { 0 } else { 3 })),
        });
    }
    let found = solve(&energy, &vec![0; n as usize], &config);
    // Two single nodes with label 1, each with two unlike neighbours.
    assert!(found.exact);
    assert_eq!(energy.cost(&found.labels), 12);
}
