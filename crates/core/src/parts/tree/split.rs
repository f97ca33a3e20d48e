//! Chooses the field that a node is split in, and the elementary interval to split
//! before.

use super::{Entry, Grid, Span};
use crate::budget::memory::bytes_of;
use crate::budget::monitor::Monitor;
use crate::model::error::BuildError;

/// The largest number of rules that a field is judged by. If a node has more, a sample
/// at equal distances in its list is used. Measured in `bench/records/constants.md`
/// (HyperSplit).
const SAMPLE_RULES: usize = 512;

/// Ends of spans that count as one step of work. It sets how often a build reports
/// progress.
const EVENTS_PER_STEP: usize = 8;

/// A split of a node in two.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Cut {
    pub(crate) field: usize,
    /// The first elementary interval of the upper part.
    pub(crate) at: u32,
    /// The mean number of rules of an elementary interval.
    pub(crate) mean: f64,
}

/// Chooses splits, with reused working memory.
pub(crate) struct Chooser {
    /// Begins and ends of rules' spans. Each is twice the number of the elementary
    /// interval that it comes before, plus 1 for a begin.
    events: Vec<u32>,
}

impl Chooser {
    /// Allocates the working memory and counts it.
    pub(crate) fn new(monitor: &mut Monitor<'_>) -> Result<Chooser, BuildError> {
        monitor.memory().take(bytes_of::<u32>(2 * SAMPLE_RULES))?;
        Ok(Chooser {
            events: Vec::with_capacity(2 * SAMPLE_RULES),
        })
    }

    pub(crate) fn bytes(&self) -> usize {
        bytes_of::<u32>(self.events.capacity())
    }

    /// Returns the cut in the field whose elementary intervals have the fewest rules
    /// on average, or `None` if no field separates rules.
    pub(crate) fn choose(
        &mut self,
        grid: &Grid,
        entries: &[Entry],
        sides: &[Span],
        monitor: &mut Monitor<'_>,
    ) -> Result<Option<Cut>, BuildError> {
        let step = entries.len().div_ceil(SAMPLE_RULES).max(1);
        let sample = entries.iter().step_by(step);
        let mut open = sample.clone().fold(0, |open, entry| open | entry.open);
        let mut best: Option<Cut> = None;
        while open != 0 {
            let field = open.trailing_zeros() as usize;
            open &= open - 1;
            let candidate = self.cut(grid, sample.clone(), field, sides[field]);
            monitor.work(1 + (sample.len() + self.events.len()) / EVENTS_PER_STEP)?;
            best = match (best, candidate) {
                (Some(best), Some(candidate)) if candidate.mean < best.mean => Some(candidate),
                (None, candidate) => candidate,
                (best, _) => best,
            };
        }
        Ok(best)
    }

    /// Returns the cut of a field with about half of the rules' elementary intervals
    /// on each side.
    #[allow(clippy::cast_precision_loss)] // a mean
    fn cut<'a>(
        &mut self,
        grid: &Grid,
        entries: impl Iterator<Item = &'a Entry>,
        field: usize,
        side: Span,
    ) -> Option<Cut> {
        self.events.clear();
        let mut at_start = 0_u64;
        for entry in entries {
            if entry.open >> field & 1 == 0 {
                at_start += 1;
                continue;
            }
            let span = grid.span(entry.place, field);
            if span.first > side.first {
                self.events.push(span.first << 1 | 1);
            } else {
                at_start += 1;
            }
            if span.end < side.end {
                self.events.push(span.end << 1);
            }
        }
        if self.events.is_empty() {
            return None;
        }
        self.events.sort_unstable();
        let (mut total, mut parts) = (0, 0_u64);
        self.sweep(at_start, |_, rules| {
            total += rules;
            parts += 1;
            false
        });
        let mut rules_below = 0;
        let middle = self.sweep(at_start, |_, rules| {
            rules_below += rules;
            2 * rules_below >= total
        });
        Some(Cut {
            field,
            at: middle,
            mean: total as f64 / parts as f64,
        })
    }

    /// Visits the parts that the events cut the side into, in ascending order.
    /// `visit` gets the end of each part and its number of rules; the last part ends
    /// at `u32::MAX`. Returns the end of the first part for which `visit` returns
    /// true, or else the end of the last part but one.
    fn sweep(&self, at_start: u64, mut visit: impl FnMut(u32, u64) -> bool) -> u32 {
        let (mut rules, mut part_end) = (at_start, 0);
        for events in self.events.chunk_by(|a, b| a >> 1 == b >> 1) {
            part_end = events[0] >> 1;
            if visit(part_end, rules) {
                return part_end;
            }
            let begin = events.iter().filter(|&event| event & 1 == 1).count() as u64;
            rules = rules + begin - (events.len() as u64 - begin);
        }
        visit(u32::MAX, rules);
        part_end
    }
}
