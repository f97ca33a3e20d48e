//! Chooses the fields that a node cuts, and the number of parts of each field.

use super::node::{Cut, Field, MAX_CUT_BITS, MAX_CUT_FIELDS};
use crate::budget::memory::bytes_of;
use crate::budget::monitor::Monitor;
use crate::model::error::BuildError;
use crate::parts::tree::{Entry, Grid, Side, push, room_for};

/// The largest number of rules that cuts are judged by. If a node has more, a sample
/// at equal distances in its list is used. Measured in `bench/records/constants.md`
/// (HyperCuts).
const SAMPLE_RULES: usize = 256;

/// Copies of rules in children that count as one step of work. It sets how often a build
/// reports progress.
const COPIES_PER_STEP: usize = 32;

/// The largest number of copies for each rule of the sample for which cuts are judged. It
/// bounds the work of judging.
const MAX_COPIES_PER_RULE: usize = 8;

/// The largest number of doublings of a field's parts in one step. Measured in
/// `bench/records/constants.md` (HyperCuts).
const MAX_DOUBLINGS: u32 = 4;

/// The largest ratio of a cut's cost after and before a doubling. Measured in
/// `bench/records/constants.md` (HyperCuts).
const MAX_COST_RATIO: f64 = 0.95;

/// Limits on the cuts of a node.
#[derive(Clone, Copy, Debug)]
pub(super) struct Budget {
    /// The largest number of bits of all fields.
    pub(super) bits: u32,
    /// The largest number of children and of rules in them, together.
    pub(super) places: usize,
}

/// A step of a choice: additional bits of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct More {
    pub(super) field: usize,
    pub(super) bits: u32,
}

/// Writes the cuts that result from `steps` to `cuts`.
pub(super) fn cuts(steps: &[More], sides: &[Side], cuts: &mut Vec<Cut>) {
    cuts.clear();
    for step in steps {
        match cuts.iter_mut().find(|cut| cut.field == step.field) {
            Some(cut) => {
                cut.bits += step.bits;
                cut.shift -= step.bits;
            }
            None => cuts.push(Cut {
                field: step.field,
                bits: step.bits,
                shift: sides[step.field].free - step.bits,
            }),
        }
    }
}

/// A field that may be cut.
#[derive(Clone, Copy)]
struct Candidate {
    field: usize,
    /// The largest number of bits that the node may read.
    most: u32,
    bits: u32,
    /// The number of different intervals of rules.
    distinct: usize,
}

/// The result of cuts for the sample.
#[derive(Clone, Copy)]
struct Outcome {
    /// The number of copies of rules in all children.
    copies: usize,
    /// The mean number of rules in the child that a header of a random rule is in.
    rules: f64,
}

impl Outcome {
    #[allow(clippy::cast_precision_loss)] // a mean
    fn cost(&self, sample: usize) -> f64 {
        // The fourth root.
        self.rules * (self.copies as f64 / sample as f64).sqrt().sqrt()
    }
}

/// Chooses cuts, with reused working memory.
#[derive(Default)]
pub(super) struct Chooser {
    candidates: Vec<Candidate>,
    /// For each rule of the sample and each candidate, the first and the last part
    /// that the rule is in, if the field is cut into as many parts as possible.
    parts: Vec<[u16; 2]>,
    /// For each child, the number of its rules, and the sum of its shares of rules. A
    /// rule in several children has an equal share in each.
    children: Vec<(u32, f32)>,
    spans: Vec<u64>,
    steps: Vec<More>,
}

impl Chooser {
    pub(super) fn bytes(&self) -> usize {
        bytes_of::<Candidate>(self.candidates.capacity())
            + bytes_of::<[u16; 2]>(self.parts.capacity())
            + bytes_of::<(u32, f32)>(self.children.capacity())
            + bytes_of::<u64>(self.spans.capacity())
            + bytes_of::<More>(self.steps.capacity())
    }

    /// Returns the steps that lead to the cuts of a node. Each step doubles the parts
    /// of a field once or more often. There is no step if no field separates rules.
    pub(super) fn choose(
        &mut self,
        grid: &Grid,
        entries: &[Entry],
        sides: &[Side],
        budget: Budget,
        monitor: &mut Monitor<'_>,
    ) -> Result<&[More], BuildError> {
        let step = entries.len().div_ceil(SAMPLE_RULES).max(1);
        self.steps.clear();
        let mean = self.find_candidates(grid, entries, step, sides, monitor)?;
        // Tries the paper's choice of fields, and all other fields if these do not
        // help.
        let all_candidates = self.candidates.len();
        let first =
            (self.candidates).partition_point(|candidate| candidate.distinct * sides.len() >= mean);
        for candidates in [
            first,
            if first < all_candidates {
                all_candidates
            } else {
                0
            },
        ] {
            if candidates == 0 || !self.steps.is_empty() {
                continue;
            }
            self.candidates.truncate(candidates);
            self.find_parts(grid, entries, step, sides, monitor)?;
            self.find_steps(entries.len().div_ceil(step), step, budget, monitor)?;
            if self.steps.is_empty() && candidates < all_candidates {
                self.find_candidates(grid, entries, step, sides, monitor)?;
            }
        }
        Ok(&self.steps)
    }

    /// Finds the fields that rules differ in. Fields with the most different
    /// intervals come first. Returns the number of different intervals in all fields.
    fn find_candidates(
        &mut self,
        grid: &Grid,
        entries: &[Entry],
        step: usize,
        sides: &[Side],
        monitor: &mut Monitor<'_>,
    ) -> Result<usize, BuildError> {
        let sample = entries.iter().step_by(step);
        let open = sample.clone().fold(0, |open, entry| open | entry.open);
        self.candidates.clear();
        let mut total = 0;
        for (field, side) in sides.iter().enumerate() {
            let max_bits = Field::readable(side.free).min(MAX_CUT_BITS);
            if open >> field & 1 == 0 || max_bits == 0 {
                total += 1;
                continue;
            }
            self.spans.clear();
            for entry in sample.clone() {
                let span = match entry.open >> field & 1 {
                    0 => side.span,
                    _ => grid.span(entry.place, field).within(side.span),
                };
                let span = u64::from(span.first) << 32 | u64::from(span.end);
                push(monitor.memory(), &mut self.spans, span)?;
            }
            self.spans.sort_unstable();
            self.spans.dedup();
            let candidate = Candidate {
                field,
                most: max_bits,
                bits: 0,
                distinct: self.spans.len(),
            };
            total += candidate.distinct;
            push(monitor.memory(), &mut self.candidates, candidate)?;
            monitor.work(1 + sample.len() / COPIES_PER_STEP)?;
        }
        (self.candidates)
            .sort_unstable_by_key(|candidate| (usize::MAX - candidate.distinct, candidate.field));
        Ok(total)
    }

    /// Finds the parts that the rules of the sample are in.
    fn find_parts(
        &mut self,
        grid: &Grid,
        entries: &[Entry],
        step: usize,
        sides: &[Side],
        monitor: &mut Monitor<'_>,
    ) -> Result<(), BuildError> {
        self.parts.clear();
        for entry in entries.iter().step_by(step) {
            for candidate in &self.candidates {
                let side = &sides[candidate.field];
                let cut = Cut {
                    field: candidate.field,
                    shift: side.free - candidate.most,
                    bits: candidate.most,
                };
                let [first, last] = cut.parts(grid, side, entry).parts;
                let part = |part| u16::try_from(part).expect("at most 12 bits");
                push(monitor.memory(), &mut self.parts, [part(first), part(last)])?;
            }
        }
        monitor.work(1 + self.parts.len() / COPIES_PER_STEP)
    }

    /// Adds bits while this decreases the cost.
    fn find_steps(
        &mut self,
        sample: usize,
        step: usize,
        budget: Budget,
        monitor: &mut Monitor<'_>,
    ) -> Result<(), BuildError> {
        let mut bits = 0;
        let mut current_cost = Outcome::whole(sample).cost(sample);
        while bits < budget.bits {
            let mut best: Option<(f64, More, f64)> = None;
            // If no field helps with one doubling of its parts, several doublings may
            // help.
            for more in 1..=(budget.bits - bits).min(MAX_DOUBLINGS) {
                for number in 0..self.candidates.len() {
                    let used = self
                        .candidates
                        .iter()
                        .filter(|candidate| candidate.bits > 0)
                        .count();
                    let candidate = self.candidates[number];
                    if candidate.bits + more > candidate.most
                        || candidate.bits == 0 && used == MAX_CUT_FIELDS
                    {
                        continue;
                    }
                    self.candidates[number].bits += more;
                    let outcome = self.outcome(sample, bits + more, monitor)?;
                    self.candidates[number].bits -= more;
                    let Some(outcome) = outcome else { continue };
                    let needed_places = (outcome.copies * step).saturating_add(1 << (bits + more));
                    let cost = outcome.cost(sample);
                    let gain = (cost / current_cost).powf(1.0 / f64::from(more));
                    if needed_places > budget.places
                        || gain > MAX_COST_RATIO
                        || best.is_some_and(|(least_gain, ..)| least_gain <= gain)
                    {
                        continue;
                    }
                    let chosen = More {
                        field: candidate.field,
                        bits: more,
                    };
                    best = Some((gain, chosen, cost));
                }
                if best.is_some() {
                    break;
                }
            }
            let Some((_, more, cost)) = best else { break };
            let chosen = self
                .candidates
                .iter_mut()
                .find(|candidate| candidate.field == more.field);
            chosen.expect("a candidate").bits += more.bits;
            bits += more.bits;
            current_cost = cost;
            push(monitor.memory(), &mut self.steps, more)?;
        }
        Ok(())
    }

    /// Returns the result of the candidates' bits for the sample, or `None` if there
    /// are too many copies.
    fn outcome(
        &mut self,
        sample: usize,
        bits: u32,
        monitor: &mut Monitor<'_>,
    ) -> Result<Option<Outcome>, BuildError> {
        let max_copies = sample * MAX_COPIES_PER_RULE + MAX_COPIES_PER_RULE;
        let children = 1 << bits;
        self.children.clear();
        room_for(monitor.memory(), &mut self.children, children)?;
        self.children.resize(children, (0, 0.0));
        // For each cut field, its number among the candidates, and the shift from the
        // parts that are stored to the parts of this cut.
        let mut fields = [(0, 0); MAX_CUT_FIELDS];
        let mut widths = [0; MAX_CUT_FIELDS];
        let mut used = 0;
        for (number, candidate) in self.candidates.iter().enumerate() {
            if candidate.bits > 0 {
                (fields[used], widths[used]) =
                    ((number, candidate.most - candidate.bits), candidate.bits);
                used += 1;
            }
        }
        let mut copies = 0;
        for parts in self.parts.chunks_exact(self.candidates.len()) {
            // For each field, the parts that the rule is in.
            let mut ranges = [[0, 0]; MAX_CUT_FIELDS];
            let mut rule_children = 1;
            for (range, &(number, down)) in ranges.iter_mut().zip(&fields[..used]) {
                *range = parts[number].map(|part| usize::from(part >> down));
                rule_children *= range[1] - range[0] + 1;
            }
            copies += rule_children;
            if copies > max_copies {
                monitor.work(1 + copies / COPIES_PER_STEP)?;
                return Ok(None);
            }
            #[allow(clippy::cast_precision_loss)] // a share
            let share = 1.0 / rule_children as f32;
            for_each_child(&ranges, &widths, |child| {
                let (rules, shares) = &mut self.children[child];
                *rules += 1;
                *shares += share;
            });
        }
        monitor.work(1 + (copies + children) / COPIES_PER_STEP)?;
        let rules = self.children.iter();
        let rules = rules.map(|&(rules, shares)| f64::from(rules) * f64::from(shares));
        #[allow(clippy::cast_precision_loss)] // a mean
        let rules = rules.sum::<f64>() / sample as f64;
        Ok(Some(Outcome { copies, rules }))
    }
}

impl Outcome {
    /// The result without a cut.
    #[allow(clippy::cast_precision_loss)] // a mean
    fn whole(sample: usize) -> Outcome {
        Outcome {
            copies: sample,
            rules: sample as f64,
        }
    }
}

/// Calls `show` with each child whose number is in `ranges` in each field. `bits` has
/// the number of bits of each field's part of the number.
#[inline(always)]
pub(super) fn for_each_child(
    ranges: &[[usize; 2]; MAX_CUT_FIELDS],
    bits: &[u32; MAX_CUT_FIELDS],
    mut show: impl FnMut(usize),
) {
    let [a, b, c, d] = *ranges;
    for a in a[0]..=a[1] {
        for b in b[0]..=b[1] {
            let above = a << bits[1] | b;
            for c in c[0]..=c[1] {
                let above = (above << bits[2] | c) << bits[3];
                for d in d[0]..=d[1] {
                    show(above | d);
                }
            }
        }
    }
}
