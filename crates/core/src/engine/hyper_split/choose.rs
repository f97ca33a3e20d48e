//! Where a node is cut: in which field, and before which elementary interval.

use crate::engine::tree::{Entry, Grid, Span};
use crate::error::BuildError;
use crate::memory::bytes_of;
use crate::monitor::Monitor;

/// The most rules by which a field is judged: where a node has more, those at
/// equal distances in its list stand for all.
const SAMPLE: usize = 512;

/// Ends of spans that count as one step of work.
const STEP_EVENTS: usize = 8;

/// A way to cut a node in two.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::engine) struct Cut {
    pub(in crate::engine) field: usize,
    /// The first elementary interval of the upper part.
    pub(in crate::engine) at: u32,
    /// How many rules an elementary interval has in the mean.
    pub(in crate::engine) mean: f64,
}

/// Finds cuts.
pub(in crate::engine) struct Chooser {
    /// Intervals before which a span of a rule begins or ends, twice that
    /// number, and one more where it begins.
    events: Vec<u32>,
}

impl Chooser {
    /// Counts its memory.
    pub(in crate::engine) fn new(monitor: &mut Monitor<'_>) -> Result<Chooser, BuildError> {
        monitor.memory().take(bytes_of::<u32>(2 * SAMPLE))?;
        Ok(Chooser {
            events: Vec::with_capacity(2 * SAMPLE),
        })
    }

    pub(in crate::engine) fn bytes(&self) -> usize {
        bytes_of::<u32>(self.events.capacity())
    }

    /// The cut in the field whose elementary intervals have the fewest rules in
    /// the mean. `None` if no field tells rules apart.
    pub(in crate::engine) fn choose(
        &mut self,
        grid: &Grid,
        entries: &[Entry],
        sides: &[Span],
        monitor: &mut Monitor<'_>,
    ) -> Result<Option<Cut>, BuildError> {
        let step = entries.len().div_ceil(SAMPLE).max(1);
        let sample = entries.iter().step_by(step);
        let mut open = sample.clone().fold(0, |open, entry| open | entry.open);
        let mut best: Option<Cut> = None;
        while open != 0 {
            let field = open.trailing_zeros() as usize;
            open &= open - 1;
            let found = self.cut(grid, sample.clone(), field, sides[field]);
            monitor.work(1 + (sample.len() + self.events.len()) / STEP_EVENTS)?;
            best = match (best, found) {
                (Some(best), Some(found)) if found.mean < best.mean => Some(found),
                (None, found) => found,
                (best, _) => best,
            };
        }
        Ok(best)
    }

    /// The cut of a field that has about half of the rules' elementary intervals
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
        let (mut all, mut parts) = (0, 0_u64);
        self.sweep(at_start, |_, rules| {
            all += rules;
            parts += 1;
            false
        });
        let mut below = 0;
        let at = self.sweep(at_start, |_, rules| {
            below += rules;
            2 * below >= all
        });
        Some(Cut {
            field,
            at,
            mean: all as f64 / parts as f64,
        })
    }

    /// Visits the parts that the events cut the side into, ascending: where each
    /// ends, and how many rules it has; the last part ends at `u32::MAX`. Returns
    /// where the part ends at which `visit` says `true`, or else where the last
    /// but one does.
    fn sweep(&self, at_start: u64, mut visit: impl FnMut(u32, u64) -> bool) -> u32 {
        let (mut rules, mut end) = (at_start, 0);
        for events in self.events.chunk_by(|a, b| a >> 1 == b >> 1) {
            end = events[0] >> 1;
            if visit(end, rules) {
                return end;
            }
            let begin = events.iter().filter(|&event| event & 1 == 1).count() as u64;
            rules = rules + begin - (events.len() as u64 - begin);
        }
        visit(u32::MAX, rules);
        end
    }
}
