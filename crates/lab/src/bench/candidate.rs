//! A candidate in a measurement: one of our engines, or one algorithm of a peer.

use classyard::{PolicyClassifier, PolicyTrace, Scratch, Winner};

use super::measure::{Spread, batch_rate, single_rate};
use super::verify;

/// Classifies the trace in each round. Errors are messages for people; a candidate
/// that fails once is excluded.
pub(crate) trait Candidate {
    /// Returns the headers per second of CPU time in batches of 256.
    fn batch_rate(&mut self) -> Result<f64, String>;

    /// Returns the headers per second of CPU time in single lookups.
    fn single_rate(&mut self) -> Result<f64, String>;

    /// Returns the answer for each header.
    fn winners(&mut self) -> Result<Vec<Winner>, String>;

    /// Returns the number of single and masked lookups that differ from these
    /// answers.
    fn contradictions(&mut self, _winners: &[Winner]) -> usize {
        0
    }
}

/// One of our engines.
pub(crate) struct Engine<'a> {
    pub(crate) classifier: &'a PolicyClassifier,
    pub(crate) trace: &'a PolicyTrace,
    pub(crate) scratch: Scratch,
}

impl Candidate for Engine<'_> {
    fn batch_rate(&mut self) -> Result<f64, String> {
        Ok(batch_rate(self.classifier, self.trace, &mut self.scratch))
    }

    fn single_rate(&mut self) -> Result<f64, String> {
        Ok(single_rate(self.classifier, self.trace))
    }

    fn winners(&mut self) -> Result<Vec<Winner>, String> {
        Ok(verify::answers(self.classifier, self.trace))
    }

    fn contradictions(&mut self, winners: &[Winner]) -> usize {
        let part = |part| self.classifier.part(part);
        let singles = verify::SINGLE_LOOKUPS;
        verify::contradictions(part, self.trace, winners, singles)
    }
}

/// A candidate in the rounds, and its measurements.
pub(crate) struct Entry<'a> {
    candidate: Box<dyn Candidate + 'a>,
    batch: Vec<f64>,
    single: Vec<f64>,
    trial: Option<[f64; 2]>,
    winners: Vec<Winner>,
    failed: Option<String>,
    /// True if each round begins with a pass that does not count.
    warms_up: bool,
}

/// The maximum number of headers of a short trace. In a short trace, the cache
/// misses at the beginning of a round would matter, because other engines have used
/// the caches since the candidate's last round. So a warm-up pass comes first.
const SHORT_TRACE: usize = 256 << 10;

/// The results of a candidate.
pub(crate) struct Shown {
    pub(crate) batch: Spread,
    pub(crate) single: Spread,
    /// The rates of the extra runs, in batches and single lookups.
    pub(crate) trial: Option<[f64; 2]>,
    pub(crate) wrong: usize,
}

impl<'a> Entry<'a> {
    /// Creates an entry for a candidate that classifies a trace of `headers` headers.
    pub(crate) fn new(candidate: impl Candidate + 'a, headers: usize) -> Entry<'a> {
        Entry {
            candidate: Box::new(candidate),
            batch: Vec::new(),
            single: Vec::new(),
            trial: None,
            winners: Vec::new(),
            failed: None,
            warms_up: headers <= SHORT_TRACE,
        }
    }

    /// Runs `turn`, unless an earlier round failed.
    fn attempt(&mut self, turn: impl FnOnce(&mut Entry<'a>) -> Result<(), String>) {
        if self.failed.is_none() {
            self.failed = turn(self).err();
        }
    }

    /// Runs an extra round that does not count in the measurement. Of several extra
    /// rounds the best rates are kept, because the first lookups after all builds are
    /// slower than any later ones.
    pub(crate) fn try_out(&mut self) {
        self.attempt(|entry| {
            // The first lookups warm the caches.
            entry.candidate.batch_rate()?;
            let rates = [
                entry.candidate.batch_rate()?,
                entry.candidate.single_rate()?,
            ];
            let before = entry.trial.unwrap_or([0.0; 2]);
            entry.trial = Some([rates[0].max(before[0]), rates[1].max(before[1])]);
            Ok(())
        });
    }

    /// Runs one timed round.
    pub(crate) fn turn(&mut self) {
        self.attempt(|entry| {
            if entry.warms_up {
                entry.candidate.batch_rate()?;
            }
            entry.batch.push(entry.candidate.batch_rate()?);
            entry.single.push(entry.candidate.single_rate()?);
            Ok(())
        });
    }

    /// Collects the answers.
    pub(crate) fn answer(&mut self) {
        self.attempt(|entry| {
            entry.winners = entry.candidate.winners()?;
            Ok(())
        });
    }
}

/// Checks the answers of all entries. Returns the results of each, or the reason
/// why it failed.
pub(crate) fn checked_results(
    entries: Vec<Entry<'_>>,
    wrong_answers: impl FnOnce(&[&[Winner]]) -> Vec<usize>,
) -> Vec<Result<Shown, String>> {
    let standing = entries.iter().filter(|entry| entry.failed.is_none());
    let answers: Vec<&[Winner]> = standing.map(|entry| entry.winners.as_slice()).collect();
    let mut wrong = wrong_answers(&answers).into_iter();
    entries
        .into_iter()
        .map(|mut entry| {
            if let Some(reason) = entry.failed {
                return Err(reason);
            }
            let wrong = wrong
                .next()
                .expect("one number for each entry that has not failed");
            Ok(Shown {
                batch: Spread::of(&entry.batch).expect("at least one repeat"),
                single: Spread::of(&entry.single).expect("at least one repeat"),
                trial: entry.trial,
                wrong: wrong + entry.candidate.contradictions(&entry.winners),
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    /// Records the calls that it receives.
    struct Noting<'a>(&'a RefCell<Vec<&'static str>>);

    impl Candidate for Noting<'_> {
        fn batch_rate(&mut self) -> Result<f64, String> {
            self.0.borrow_mut().push("batch");
            Ok(1.0)
        }

        fn single_rate(&mut self) -> Result<f64, String> {
            self.0.borrow_mut().push("single");
            Ok(1.0)
        }

        fn winners(&mut self) -> Result<Vec<Winner>, String> {
            Ok(Vec::new())
        }
    }

    /// With a short trace, both rates start with the same warm caches.
    #[test]
    fn a_turn_over_a_short_trace_warms_up() {
        for (headers, expected) in [
            (SHORT_TRACE, &["batch", "batch", "single"][..]),
            (SHORT_TRACE + 1, &["batch", "single"][..]),
        ] {
            let calls = RefCell::new(Vec::new());
            let mut entry = Entry::new(Noting(&calls), headers);
            entry.turn();
            assert_eq!(*calls.borrow(), expected, "{headers} headers");
            assert_eq!((entry.batch.len(), entry.single.len()), (1, 1));
        }
    }
}
