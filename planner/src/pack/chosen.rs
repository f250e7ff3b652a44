//! A choice of sections, and how long units are live in it.

use super::model::Model;

/// Counts chosen sections.
pub(super) struct Chosen {
    /// By section: the number of chosen ones before it.
    before: Vec<u32>,
}

impl Chosen {
    /// By section: whether it is chosen. O(sections).
    pub(super) fn new(is_chosen: &[bool]) -> Self {
        let mut before = vec![0; is_chosen.len() + 1];
        for (section, &chosen) in is_chosen.iter().enumerate() {
            before[section + 1] = before[section] + u32::from(chosen);
        }
        Self { before }
    }

    /// How many there are.
    pub(super) fn all(&self) -> u32 {
        self.before.last().copied().unwrap_or(0)
    }

    /// In how many a unit is live; parts of one time are counted once each, as in its duration.
    pub(super) fn of(&self, model: &Model, unit: u32) -> u32 {
        let parts = model.parts(unit).iter();
        let chosen = parts.map(|it| self.before[it.end as usize] - self.before[it.begin as usize]);
        chosen.sum()
    }
}
