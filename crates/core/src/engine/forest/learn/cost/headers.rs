//! The headers: what traffic is expected, and which rule each header hits.
//!
//! Headers are taken to hit all rules alike: they are spread evenly over the
//! rules, by weight. A header is its rule's value; where the rule is wild, half
//! of the headers have random bits, and the others all zeros or all ones, because
//! addresses in use crowd at the ends of prefixes. The winner is the best sampled
//! rule that matches the header, often its own. Rules that are not in the sample
//! are not seen: winners are a little worse than they will be.

use super::WORDS;
use super::sample::{Drawn, Sample};
use crate::engine::forest::outline::{Ends, Outline};
use crate::error::BuildError;
use crate::memory::bytes_of;
use crate::monitor::Monitor;
use crate::seed::splitmix;

/// A header that hits a rule of the sample.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Header<const W: usize> {
    pub(super) key: [u64; W],
    /// The rank and the kind of its winner.
    pub(super) rank: u64,
    pub(super) kind: u32,
    /// The winner's weight.
    pub(super) weight: f32,
}

/// Headers that hit a sample.
#[derive(Clone, Debug)]
pub(crate) struct Headers<const W: usize> {
    /// In order of the ranks of their winners, the best first.
    pub(super) headers: Vec<Header<W>>,
    /// About how many words were read to make them.
    pub(super) words: usize,
}

impl<const W: usize> Headers<W> {
    /// About `count` headers, evenly over the rules that the sample stands for.
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
        for (at, drawn) in sample.rules.iter().enumerate() {
            if due <= 0.0 {
                monitor.memory().room(&mut headers)?;
                headers.push(header(&sample.rules, at, &mut state));
                words += W + at;
                monitor.work(1 + at / WORDS)?;
                due += step;
            }
            due -= drawn.weight;
        }
        // Stable, which takes as much room again.
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

    /// Those that probe a table whose best rule has that rank: all whose winners
    /// are not better.
    pub(super) fn probing(&self, best: u64) -> &[Header<W>] {
        let from = self.headers.partition_point(|header| header.rank < best);
        &self.headers[from..]
    }
}

/// A header of a rule. Better rules of the sample may win it.
fn header<const W: usize>(rules: &[Drawn<W>], at: usize, state: &mut u64) -> Header<W> {
    let rule = &rules[at].rule;
    let ends = usize::try_from(splitmix(state) % 4).expect("less than four");
    let key = rule.header(Ends::alternate(ends), state);
    let matches = |rule: &Outline<W>| {
        (0..W).all(|word| (rule.value[word] ^ key[word]) & rule.mask[word] == 0)
    };
    let better = rules[..at].iter().find(|drawn| matches(&drawn.rule));
    let winner = better.unwrap_or(&rules[at]);
    Header {
        key,
        rank: winner.rule.rank,
        kind: winner.kind,
        weight: winner.weight,
    }
}
