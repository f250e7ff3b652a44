//! Which transforms of a program are kept: each candidate is planned, and the plans decide.
//!
//! The program as it is always is a candidate. Candidates are compared by quick plans: another one
//! is admitted if in no memory space more bytes are live at once, and if the total of padded
//! bytes is not higher, than with the program as it is. Of those admitted the one with the lowest
//! peak of HBM comes first, then the one with fewest padded bytes. That one is planned again with the
//! effort asked for, and kept if then, too, no slab is larger than that of the program as it is; which
//! need not be planned where the other is below its certificate. Candidates are planned side by side; what is kept
//! does not depend on how many threads there are.

use rayon::prelude::*;
use slabplan_ir::{Bytes, Module, Target};
use slabplan_planner::Planned;
use slabplan_planner::layouts::value_bytes;
use slabplan_planner::pack::Effort;

use crate::config::{CompileConfig, FuseMode, LayoutMode, Transforms};
use crate::pass::{Pass, PassError, PassReport, ScheduleTrial, Unit, run_passes};
use crate::passes::{self, FlattenCallGraph, MemoryPlanning};
use crate::rewrite::{self, CostView, RegionReport, RewriteLimits};

/// One program that was planned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trial {
    /// What was done to the program: `as given`, `layouts`, `layouts, fusion`.
    pub name: String,
    /// Most bytes live at once in each memory space: what a perfect packing takes.
    pub peaks: Vec<(u32, u64)>,
    /// Slab of each memory space by the quick packing that candidates are compared with.
    pub slabs: Vec<(u32, u64)>,
    /// Padded bytes of all values of the program.
    pub value_bytes: u64,
    /// Whether this is the program that was kept.
    pub kept: bool,
}

/// The program that was kept, planned.
pub(crate) struct Chosen {
    pub(crate) module: Module,
    pub(crate) planned: Planned,
    pub(crate) schedule_bound: Bytes,
    pub(crate) schedule_trials: Vec<ScheduleTrial>,
    pub(crate) reports: Vec<PassReport>,
    pub(crate) notes: Vec<String>,
    pub(crate) trials: Vec<Trial>,
    /// The regions of rewriting, as they are in the program that was kept.
    pub(crate) rewritten: Vec<RegionReport>,
}

/// Plans the program as it is and with the transforms of `config`, and keeps the best.
pub(crate) fn choose(
    module: Module,
    target: &Target,
    config: &CompileConfig,
) -> Result<Chosen, PassError> {
    let wanted = config.transforms;
    if wanted == Transforms::NONE {
        return plan(module, target, config);
    }
    let mut search = Search::new(module, target, config);
    search.try_transforms(wanted)?;
    if wanted.rewrite {
        search.try_rewrites()?;
    }
    search.finish()
}

/// The transforms that are planned without rewriting, besides none at all.
fn combinations(wanted: Transforms) -> Vec<Transforms> {
    let ways: &[FuseMode] = match wanted.fuse {
        FuseMode::Off => &[FuseMode::Off],
        FuseMode::Careful => &[FuseMode::Off, FuseMode::Careful],
        FuseMode::Eager => &[FuseMode::Off, FuseMode::Careful, FuseMode::Eager],
    };
    let with = |fuse: FuseMode| Transforms {
        fuse,
        rewrite: false,
        ..wanted
    };
    let all = ways.iter().map(|&fuse| with(fuse));
    all.filter(|t| t.layouts != LayoutMode::Default || t.fuse != FuseMode::Off)
        .collect()
}

/// Candidates that are planned with full effort, at most, besides the program as it is.
const MOST_FINALISTS: usize = 3;

/// The candidates so far.
struct Search<'a> {
    target: &'a Target,
    /// As asked for.
    config: &'a CompileConfig,
    /// The program as it is, then rewritten ones.
    programs: Vec<Module>,
    candidates: Vec<Candidate>,
    /// What was found of each candidate, the program as it is first.
    trials: Vec<Trial>,
    notes: Vec<String>,
    /// The regions of the program as it is.
    regions: Vec<RegionReport>,
    /// What every order of the program as it is needs.
    certificate: Bytes,
}

/// A program and what is to be done to it.
struct Candidate {
    program: usize,
    transforms: Transforms,
    /// How the program was rewritten, if it was, and its regions.
    view: Option<CostView>,
    rewritten: Vec<RegionReport>,
}

/// What is kept of the quick plan of a candidate.
struct Tried {
    trial: Trial,
    notes: Vec<String>,
    /// What every order of the candidate needs.
    certificate: Bytes,
}

impl<'a> Search<'a> {
    fn new(module: Module, target: &'a Target, config: &'a CompileConfig) -> Self {
        Self {
            target,
            config,
            programs: vec![module],
            candidates: Vec::new(),
            trials: Vec::new(),
            notes: Vec::new(),
            regions: Vec::new(),
            certificate: Bytes::ZERO,
        }
    }

    /// Plans the program as it is, and with the transforms that are wanted of it, rewriting left out.
    fn try_transforms(&mut self, wanted: Transforms) -> Result<(), PassError> {
        let as_given = Candidate::of(0, Transforms::NONE);
        let others = combinations(wanted).into_iter();
        let candidates = std::iter::once(as_given)
            .chain(others.map(|t| Candidate::of(0, t)))
            .collect();
        self.try_candidates(candidates)
    }

    /// Plans candidates quickly, side by side. One that can't be planned is left out with a note, unless it is the program
    /// as it is, which comes first.
    fn try_candidates(&mut self, candidates: Vec<Candidate>) -> Result<(), PassError> {
        let tried: Vec<Result<Tried, PassError>> = candidates
            .par_iter()
            .map(|c| Tried::of(self.plan(c, Effort::Fast)?, c.name()))
            .collect();
        for (candidate, tried) in candidates.into_iter().zip(tried) {
            match tried {
                Ok(mut tried) => {
                    if self.trials.is_empty() {
                        self.certificate = tried.certificate;
                    }
                    self.notes.append(&mut tried.notes);
                    self.trials.push(tried.trial);
                    self.candidates.push(candidate);
                }
                Err(error) if self.trials.is_empty() => return Err(error),
                Err(error) => self.notes.push(left_out(&candidate, &error)),
            }
        }
        Ok(())
    }

    fn plan(&self, candidate: &Candidate, effort: Effort) -> Result<Chosen, PassError> {
        let config = CompileConfig {
            transforms: candidate.transforms,
            effort,
            ..self.config.clone()
        };
        plan(
            self.programs[candidate.program].clone(),
            self.target,
            &config,
        )
    }

    /// Candidates that may be kept, best first; the program as it is comes last.
    fn ranking(&self) -> Vec<usize> {
        let base = &self.trials[0];
        let mut ranked: Vec<usize> = (1..self.trials.len())
            .filter(|&n| self.trials[n].is_admitted(base) && self.trials[n].score() < base.score())
            .collect();
        ranked.sort_by_key(|&n| (self.trials[n].score(), n));
        ranked.push(0);
        ranked
    }

    /// Plans what equality saturation proposes, with the transforms that are best without it.
    fn try_rewrites(&mut self) -> Result<(), PassError> {
        let module = &self.programs[0];
        if module.is_scheduled || passes::layouts_are_given(module) {
            let note = "rewrites apply to modules without schedule and layouts; this one has them";
            self.notes.push(note.to_owned());
            return Ok(());
        }
        let mut unit = Unit::new(module.clone(), self.target, self.config);
        run_passes(&[&FlattenCallGraph], &mut unit)?;
        let limits = RewriteLimits::default();
        let transforms = self.candidates[self.ranking()[0]].transforms;
        let proposals = rewrite::candidates(&unit.module, self.target, limits);
        self.regions = proposals.regions;
        let mut candidates = Vec::new();
        for proposed in proposals.candidates {
            match proposed {
                Err(note) => self.notes.push(note),
                Ok(c) => {
                    candidates.push(Candidate {
                        view: Some(c.view),
                        rewritten: c.regions,
                        ..Candidate::of(self.programs.len(), transforms)
                    });
                    self.programs.push(c.module);
                }
            }
        }
        self.try_candidates(candidates)
    }

    /// Plans the best candidates with the effort asked for, until one is no larger than the program
    /// as it is.
    fn finish(mut self) -> Result<Chosen, PassError> {
        let mut as_given = None;
        let mut better = None;
        let finalists = self.ranking().into_iter().filter(|&n| n > 0);
        for n in finalists.take(MOST_FINALISTS) {
            let found = match self.plan(&self.candidates[n], self.config.effort) {
                Ok(found) => found,
                Err(error) => {
                    self.notes.push(left_out(&self.candidates[n], &error));
                    continue;
                }
            };
            if value_bytes(&found.module)? > self.trials[0].value_bytes {
                continue;
            }
            // What the program as it is needs in every order need not be planned to be compared with.
            if self.is_below_certificate(&found.planned) {
                better = Some((found, n));
                break;
            }
            let as_given = match &mut as_given {
                Some(planned) => planned,
                empty => empty.insert(self.plan(&self.candidates[0], self.config.effort)?),
            };
            if is_no_larger(&found.planned, &as_given.planned) {
                better = Some((found, n));
                break;
            }
        }
        let (best, kept) = match (better, as_given) {
            (Some(better), _) => better,
            (None, Some(as_given)) => (as_given, 0),
            (None, None) => (self.plan(&self.candidates[0], self.config.effort)?, 0),
        };
        self.trials[kept].kept = true;
        self.notes.sort();
        self.notes.dedup();
        let mut rewritten = self.candidates.swap_remove(kept).rewritten;
        if rewritten.is_empty() {
            rewritten = self.regions;
        }
        Ok(Chosen {
            trials: self.trials,
            notes: self.notes,
            rewritten,
            ..best
        })
    }

    /// Whether all of a plan is in HBM and takes no more than every order of the program as it is.
    fn is_below_certificate(&self, planned: &Planned) -> bool {
        let mut spaces = planned.plan.spaces.iter();
        spaces.all(|s| s.slab == Bytes::ZERO || (s.space == 0 && s.slab <= self.certificate))
    }
}

/// What is said of a candidate that can't be planned.
fn left_out(candidate: &Candidate, error: &PassError) -> String {
    format!(
        "`{}` can't be planned and is left out: {error}",
        candidate.name()
    )
}

/// Whether every slab of `a` is at most as large as that of `b`.
fn is_no_larger(a: &Planned, b: &Planned) -> bool {
    a.plan.spaces.iter().all(|s| {
        let other = b.plan.spaces.iter().find(|o| o.space == s.space);
        s.slab <= other.map_or(Bytes::ZERO, |o| o.slab)
    })
}

fn plan(module: Module, target: &Target, config: &CompileConfig) -> Result<Chosen, PassError> {
    let mut unit = Unit::new(module, target, config);
    let mut steps: Vec<&dyn Pass> = passes::PREPARE.to_vec();
    steps.push(&MemoryPlanning);
    let reports = run_passes(&steps, &mut unit)?;
    let Some(planned) = unit.planned else {
        unreachable!("memory-planning ensures a plan")
    };
    Ok(Chosen {
        module: unit.module,
        planned,
        schedule_bound: unit.schedule_bound,
        schedule_trials: unit.schedule_trials,
        reports,
        notes: unit.notes,
        trials: Vec::new(),
        rewritten: Vec::new(),
    })
}

impl Candidate {
    /// A program that was not rewritten.
    fn of(program: usize, transforms: Transforms) -> Self {
        Self {
            program,
            transforms,
            view: None,
            rewritten: Vec::new(),
        }
    }

    fn name(&self) -> String {
        if self.transforms == Transforms::NONE && self.view.is_none() {
            return "as given".to_owned();
        }
        let mut parts = Vec::new();
        if let Some(view) = self.view {
            parts.push(format!("rewrite ({})", view.name()));
        }
        if self.transforms.layouts == LayoutMode::Memory {
            parts.push("layouts".to_owned());
        }
        match self.transforms.fuse {
            FuseMode::Off => {}
            FuseMode::Careful => parts.push("careful fusion".to_owned()),
            FuseMode::Eager => parts.push("fusion".to_owned()),
        }
        parts.join(", ")
    }
}

impl Tried {
    fn of(mut found: Chosen, name: String) -> Result<Self, PassError> {
        Ok(Self {
            trial: Trial::of(&found, name)?,
            notes: std::mem::take(&mut found.notes),
            certificate: found.schedule_bound,
        })
    }
}

impl Trial {
    fn of(chosen: &Chosen, name: String) -> Result<Self, PassError> {
        let spaces = &chosen.planned.plan.spaces;
        let peaks = spaces.iter().map(|s| (s.space, s.lower_bound.get()));
        let slabs = spaces.iter().map(|s| (s.space, s.slab.get()));
        Ok(Self {
            name,
            peaks: peaks.collect(),
            slabs: slabs.collect(),
            value_bytes: value_bytes(&chosen.module)?,
            kept: false,
        })
    }

    /// Most bytes live at once in HBM.
    pub fn hbm_peak(&self) -> u64 {
        self.peak(0)
    }

    fn peak(&self, space: u32) -> u64 {
        let peak = self.peaks.iter().find(|(s, _)| *s == space);
        peak.map_or(0, |(_, bytes)| *bytes)
    }

    fn is_admitted(&self, base: &Self) -> bool {
        self.value_bytes <= base.value_bytes
            && self.peaks.iter().all(|&(s, bytes)| bytes <= base.peak(s))
    }

    fn score(&self) -> (u64, u64) {
        (self.hbm_peak(), self.value_bytes)
    }
}
