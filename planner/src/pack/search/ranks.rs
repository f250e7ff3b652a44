//! Orders in which the candidates of a decision are tried. No order is good everywhere, so a search is restarted in
//! many: the named ones first, then disturbed copies of them.

use super::engine::mix;
use super::space::Space;

/// What goes first; ties are broken by the next criterion.
#[derive(Clone, Copy, Debug)]
enum By {
    /// Many sections.
    Wide,
    /// Few sections.
    Narrow,
    /// Many bytes.
    Tall,
    /// Few bytes.
    Flat,
    /// Bytes times sections.
    Area,
    /// The load of the fullest section that the unit covers.
    Load,
}

const ORDERS: [&[By]; 10] = [
    &[By::Load, By::Wide, By::Area],
    &[By::Load, By::Area, By::Wide],
    &[By::Wide, By::Area, By::Load],
    &[By::Area, By::Wide, By::Load],
    &[By::Tall, By::Load],
    &[By::Wide, By::Tall],
    &[By::Area, By::Load, By::Wide],
    &[By::Load, By::Tall],
    &[By::Narrow, By::Load],
    &[By::Flat, By::Load],
];

/// Number of orders without disturbance.
pub(super) const NAMED: usize = ORDERS.len();

/// Makes ranks (0 is tried first) for a space.
pub(super) struct Ranks {
    /// By unit: sections, bytes, area, load.
    figures: Vec<[f64; 4]>,
}

impl Ranks {
    pub(super) fn new(space: &Space) -> Self {
        let mut load = vec![0u64; space.sections];
        for unit in 0..space.units as u32 {
            for piece in space.pieces(unit) {
                load[piece.begin as usize..piece.end as usize]
                    .iter_mut()
                    .for_each(|it| *it += piece.size);
            }
        }
        let figures = (0..space.units as u32).map(|unit| {
            let pieces = space.pieces(unit);
            let wide: u32 = pieces.iter().map(|it| it.end - it.begin).sum();
            let area: f64 = pieces
                .iter()
                .map(|it| f64::from(it.end - it.begin) * it.size as f64)
                .sum();
            let covered = pieces
                .iter()
                .flat_map(|it| &load[it.begin as usize..it.end as usize]);
            [
                f64::from(wide),
                space.height[unit as usize] as f64,
                area,
                covered.max().copied().unwrap_or(0) as f64,
            ]
        });
        Self {
            figures: figures.collect(),
        }
    }

    /// The ranks of the order of a number; from [`NAMED`] on, each number is a different disturbance.
    pub(super) fn rank(&self, number: usize) -> Vec<u32> {
        let order = ORDERS[number % NAMED];
        let strength = if number < NAMED {
            0.0
        } else {
            [0.1, 0.3, 1.0][number / NAMED % 3]
        };
        let keys: Vec<Vec<f64>> = (0..self.figures.len())
            .map(|unit| {
                let noise = mix((number as u64) << 32 | unit as u64) as f64 / u64::MAX as f64;
                order
                    .iter()
                    .map(|&by| self.key(unit, by) * (1.0 + strength * noise))
                    .collect()
            })
            .collect();
        let mut list: Vec<u32> = (0..keys.len() as u32).collect();
        list.sort_by(|&a, &b| {
            keys[b as usize]
                .partial_cmp(&keys[a as usize])
                .unwrap_or(std::cmp::Ordering::Equal)
        });
        let mut rank = vec![0; list.len()];
        for (at, unit) in (0..).zip(list) {
            rank[unit as usize] = at;
        }
        rank
    }

    fn key(&self, unit: usize, by: By) -> f64 {
        let [wide, tall, area, load] = self.figures[unit];
        match by {
            By::Wide => wide,
            By::Narrow => 1.0 / (1.0 + wide),
            By::Tall => tall,
            By::Flat => 1.0 / (1.0 + tall),
            By::Area => area,
            By::Load => load,
        }
    }
}
