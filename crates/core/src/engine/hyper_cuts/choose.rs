//! How a node is cut: which fields, and into how many parts each.

use super::node::{Cut, Field, MOST_BITS, MOST_FIELDS};
use crate::engine::tree::{Entry, Grid, Side, push, room_for};
use crate::error::BuildError;
use crate::memory::bytes_of;
use crate::monitor::Monitor;

/// The most rules by which cuts are judged: where a node has more, those at
/// equal distances in its list stand for all.
const SAMPLE: usize = 256;

/// Copies of rules in children that count as one step of work.
const STEP_COPIES: usize = 32;

/// Cuts are judged while the sample has at most so many copies for each rule.
const MOST_COPIES: usize = 8;

/// The most times that the parts of a field are doubled at once.
const MOST_AT_ONCE: u32 = 4;

/// Doubling the parts of a field must make the cost at most this much.
const GAIN: f64 = 0.95;

/// Bits that a node may read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Budget {
    /// The most bits together.
    pub(super) bits: u32,
    /// The most children and rules in them.
    pub(super) places: usize,
}

/// More bits of a field: a step of a choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct More {
    pub(super) field: usize,
    pub(super) bits: u32,
}

/// The cuts to which steps lead.
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
    /// Bits that may be read.
    most: u32,
    bits: u32,
    /// Different intervals of rules.
    distinct: usize,
}

/// What a cut makes of the sample.
#[derive(Clone, Copy)]
struct Outcome {
    /// Copies of rules in all children.
    copies: usize,
    /// Rules of the child in which a header of a random rule is, in the mean.
    rules: f64,
}

impl Outcome {
    #[allow(clippy::cast_precision_loss)] // a mean
    fn cost(&self, sample: usize) -> f64 {
        // The fourth root.
        self.rules * (self.copies as f64 / sample as f64).sqrt().sqrt()
    }
}

/// Chooses cuts.
#[derive(Default)]
pub(super) struct Chooser {
    candidates: Vec<Candidate>,
    /// For each rule of the sample and each candidate the first and the last part
    /// that it is in, where the field is cut into as many as it may be.
    parts: Vec<[u16; 2]>,
    /// For each child how many rules it has, and how many if a rule in several
    /// counts as a part of one in each.
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

    /// The steps that lead to the cuts of a node, each doubling parts of a field
    /// once or more often; none if no field tells rules apart.
    pub(super) fn choose(
        &mut self,
        grid: &Grid,
        entries: &[Entry],
        sides: &[Side],
        budget: Budget,
        monitor: &mut Monitor<'_>,
    ) -> Result<&[More], BuildError> {
        let step = entries.len().div_ceil(SAMPLE).max(1);
        self.steps.clear();
        let mean = self.find_candidates(grid, entries, step, sides, monitor)?;
        // The paper's choice of fields, and if they do not help, the others.
        let all = self.candidates.len();
        let first = (self.candidates).partition_point(|of| of.distinct * sides.len() >= mean);
        for candidates in [first, if first < all { all } else { 0 }] {
            if candidates == 0 || !self.steps.is_empty() {
                continue;
            }
            self.candidates.truncate(candidates);
            self.find_parts(grid, entries, step, sides, monitor)?;
            self.find_steps(entries.len().div_ceil(step), step, budget, monitor)?;
            if self.steps.is_empty() && candidates < all {
                self.find_candidates(grid, entries, step, sides, monitor)?;
            }
        }
        Ok(&self.steps)
    }

    /// The fields in which rules differ, those with most different intervals
    /// first. Returns how many these are in all fields together.
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
        let mut all = 0;
        for (field, side) in sides.iter().enumerate() {
            let most = Field::readable(side.free).min(MOST_BITS);
            if open >> field & 1 == 0 || most == 0 {
                all += 1;
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
                most,
                bits: 0,
                distinct: self.spans.len(),
            };
            all += candidate.distinct;
            push(monitor.memory(), &mut self.candidates, candidate)?;
            monitor.work(1 + sample.len() / STEP_COPIES)?;
        }
        (self.candidates).sort_unstable_by_key(|of| (usize::MAX - of.distinct, of.field));
        Ok(all)
    }

    /// The parts in which the rules of the sample are.
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
            for of in &self.candidates {
                let side = &sides[of.field];
                let cut = Cut {
                    field: of.field,
                    shift: side.free - of.most,
                    bits: of.most,
                };
                let [first, last] = cut.parts(grid, side, entry).parts;
                let part = |part| u16::try_from(part).expect("at most 12 bits");
                push(monitor.memory(), &mut self.parts, [part(first), part(last)])?;
            }
        }
        monitor.work(1 + self.parts.len() / STEP_COPIES)
    }

    /// Takes more bits as long as that makes the cost less.
    fn find_steps(
        &mut self,
        sample: usize,
        step: usize,
        budget: Budget,
        monitor: &mut Monitor<'_>,
    ) -> Result<(), BuildError> {
        let mut bits = 0;
        let mut now = Outcome::whole(sample).cost(sample);
        while bits < budget.bits {
            let mut best: Option<(f64, More, f64)> = None;
            // Where no field helps when its parts are doubled once, it may when
            // they are doubled more often.
            for more in 1..=(budget.bits - bits).min(MOST_AT_ONCE) {
                for at in 0..self.candidates.len() {
                    let used = self.candidates.iter().filter(|of| of.bits > 0).count();
                    let of = self.candidates[at];
                    if of.bits + more > of.most || of.bits == 0 && used == MOST_FIELDS {
                        continue;
                    }
                    self.candidates[at].bits += more;
                    let outcome = self.outcome(sample, bits + more, monitor)?;
                    self.candidates[at].bits -= more;
                    let Some(outcome) = outcome else { continue };
                    let places = (outcome.copies * step).saturating_add(1 << (bits + more));
                    let cost = outcome.cost(sample);
                    let gain = (cost / now).powf(1.0 / f64::from(more));
                    if places > budget.places
                        || gain > GAIN
                        || best.is_some_and(|(least, ..)| least <= gain)
                    {
                        continue;
                    }
                    let more = More {
                        field: of.field,
                        bits: more,
                    };
                    best = Some((gain, more, cost));
                }
                if best.is_some() {
                    break;
                }
            }
            let Some((_, more, cost)) = best else { break };
            let of = self.candidates.iter_mut().find(|of| of.field == more.field);
            of.expect("a candidate").bits += more.bits;
            bits += more.bits;
            now = cost;
            push(monitor.memory(), &mut self.steps, more)?;
        }
        Ok(())
    }

    /// What the candidates' bits make of the sample; `None` if there are too many
    /// copies.
    fn outcome(
        &mut self,
        sample: usize,
        bits: u32,
        monitor: &mut Monitor<'_>,
    ) -> Result<Option<Outcome>, BuildError> {
        let most = sample * MOST_COPIES + MOST_COPIES;
        let children = 1 << bits;
        self.children.clear();
        room_for(monitor.memory(), &mut self.children, children)?;
        self.children.resize(children, (0, 0.0));
        // Of each field that is cut, its number among the candidates, and by how
        // much the parts that rules are in are finer than those of this cut.
        let mut fields = [(0, 0); MOST_FIELDS];
        let mut widths = [0; MOST_FIELDS];
        let mut used = 0;
        for (at, of) in self.candidates.iter().enumerate() {
            if of.bits > 0 {
                (fields[used], widths[used]) = ((at, of.most - of.bits), of.bits);
                used += 1;
            }
        }
        let mut copies = 0;
        for parts in self.parts.chunks_exact(self.candidates.len()) {
            // For each field the parts that the rule is in.
            let mut ranges = [[0, 0]; MOST_FIELDS];
            let mut of_rule = 1;
            for (range, &(at, down)) in ranges.iter_mut().zip(&fields[..used]) {
                *range = parts[at].map(|part| usize::from(part >> down));
                of_rule *= range[1] - range[0] + 1;
            }
            copies += of_rule;
            if copies > most {
                monitor.work(1 + copies / STEP_COPIES)?;
                return Ok(None);
            }
            #[allow(clippy::cast_precision_loss)] // a share
            let share = 1.0 / of_rule as f32;
            for_each_child(&ranges, &widths, |child| {
                let (rules, shares) = &mut self.children[child];
                *rules += 1;
                *shares += share;
            });
        }
        monitor.work(1 + (copies + children) / STEP_COPIES)?;
        let rules = self.children.iter();
        let rules = rules.map(|&(rules, shares)| f64::from(rules) * f64::from(shares));
        #[allow(clippy::cast_precision_loss)] // a mean
        let rules = rules.sum::<f64>() / sample as f64;
        Ok(Some(Outcome { copies, rules }))
    }
}

impl Outcome {
    /// Of no cut.
    #[allow(clippy::cast_precision_loss)] // a mean
    fn whole(sample: usize) -> Outcome {
        Outcome {
            copies: sample,
            rules: sample as f64,
        }
    }
}

/// The children of which the number is in a range in each field; a field's part of
/// the number has so many bits.
#[inline(always)]
pub(super) fn for_each_child(
    ranges: &[[usize; 2]; MOST_FIELDS],
    bits: &[u32; MOST_FIELDS],
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
