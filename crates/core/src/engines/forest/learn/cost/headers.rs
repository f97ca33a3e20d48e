//! The headers: expected traffic, and the rule that each header hits.
//!
//! Headers are assumed to hit all rules equally often: they are spread evenly over
//! the rules, by weight. A header has its rule's value. In the bits that the rule
//! leaves open, half of the headers are random, and the others have all zeros or all
//! ones, since addresses in use crowd at the ends of prefixes. The winner is the
//! best sampled rule that matches the header, often its own rule. Other rules are
//! ignored, so the estimated winners are slightly worse than the real ones.

use super::WORDS_PER_WORK_STEP;
use super::sample::{Drawn, Sample};
use crate::budget::memory::bytes_of;
use crate::budget::monitor::Monitor;
use crate::engines::forest::outline::{Ends, Outline};
use crate::model::error::BuildError;
use crate::model::seed::splitmix;

/// A header that hits a rule of the sample.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Header<const W: usize> {
    pub(super) key: [u64; W],
    /// The rank and the kind of the header's winner.
    pub(super) rank: u64,
    pub(super) kind: u32,
    /// The winner's weight.
    pub(super) weight: f32,
}

/// Headers that hit a sample.
#[derive(Clone, Debug)]
pub(crate) struct Headers<const W: usize> {
    /// Sorted by the ranks of their winners, best first.
    pub(super) headers: Vec<Header<W>>,
    /// The approximate number of words read to make them.
    pub(super) words: usize,
}

impl<const W: usize> Headers<W> {
    /// Draws about `count` headers, evenly over the rules that the sample
    /// represents.
    #[allow(clippy::cast_precision_loss)] // counts are far below 2^24
    pub(crate) fn draw(
        sample: &Sample<W>,
        count: usize,
        monitor: &mut Monitor<'_>,
    ) -> Result<Headers<W>, BuildError> {
        let mut state = sample.state;
        let step = sample.total as f32 / count as f32;
        let mut due = 0.0;
        let (mut headers, mut words) = (Vec::new(), 0);
        for (index, drawn) in sample.rules.iter().enumerate() {
            if due <= 0.0 {
                monitor.memory().room(&mut headers)?;
                headers.push(header(&sample.rules, index, &mut state));
                words += W + index;
                monitor.work(1 + index / WORDS_PER_WORK_STEP)?;
                due += step;
            }
            due -= drawn.weight;
        }
        // A stable sort takes the same memory again.
        let bytes = bytes_of::<Header<W>>(headers.len());
        monitor.memory().take(bytes)?;
        headers.sort_by_key(|header: &Header<W>| header.rank);
        monitor.memory().give_back(bytes);
        Ok(Headers { headers, words })
    }

    /// Bytes held.
    pub(crate) fn bytes(&self) -> usize {
        bytes_of::<Header<W>>(self.headers.capacity())
    }

    pub(super) fn len(&self) -> usize {
        self.headers.len()
    }

    /// Returns the headers that probe a table with the best rank `best`: their
    /// winners are not better than that.
    pub(super) fn probing(&self, best: u64) -> &[Header<W>] {
        let start = self.headers.partition_point(|header| header.rank < best);
        &self.headers[start..]
    }
}

/// Returns a header of the rule at `index`. A better rule of the sample may be its
/// winner.
fn header<const W: usize>(rules: &[Drawn<W>], index: usize, state: &mut u64) -> Header<W> {
    let rule = &rules[index].rule;
    let ends = usize::try_from(splitmix(state) % 4).expect("less than four");
    let key = rule.header(Ends::alternate(ends), state);
    let matches = |rule: &Outline<W>| {
        (0..W).all(|word| (rule.value[word] ^ key[word]) & rule.mask[word] == 0)
    };
    let better = rules[..index].iter().find(|drawn| matches(&drawn.rule));
    let winner = better.unwrap_or(&rules[index]);
    Header {
        key,
        rank: winner.rule.rank,
        kind: winner.kind,
        weight: winner.weight,
    }
}
