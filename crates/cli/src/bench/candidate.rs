//! What takes part in a measurement: an engine of ours, or one algorithm of a
//! peer.

use classyard::{PolicyClassifier, PolicyTrace, Scratch, Winner};

use super::measure::{Spread, batch_rate, single_rate};
use super::verify;

/// Classifies the trace when its turn comes. Errors are reasons for people to
/// read; a candidate that fails once is excluded.
pub(crate) trait Candidate {
    /// Headers per second of CPU time in batches of 256.
    fn batch_rate(&mut self) -> Result<f64, String>;

    /// Headers per second of CPU time, one call for each.
    fn single_rate(&mut self) -> Result<f64, String>;

    /// The answer for each header.
    fn winners(&mut self) -> Result<Vec<Winner>, String>;

    /// How many lookups of other kinds differ from these answers.
    fn contradictions(&mut self, _winners: &[Winner]) -> usize {
        0
    }
}

/// An engine of ours.
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
        let singles = verify::SINGLES;
        verify::contradictions(part, self.trace, winners, singles)
    }
}

/// A candidate's place in the turns, and what it has shown.
pub(crate) struct Entry<'a> {
    candidate: Box<dyn Candidate + 'a>,
    batch: Vec<f64>,
    single: Vec<f64>,
    trial: Option<[f64; 2]>,
    winners: Vec<Winner>,
    failed: Option<String>,
    /// Whether a turn begins with a pass that does not count.
    warms_up: bool,
}

/// Traces of at most this many headers are so short that what a turn reads for the
/// first time would count: engines before it have used the caches since its last
/// one.
const SHORT_TRACE: usize = 256 << 10;

/// What a candidate has shown in the end.
pub(crate) struct Shown {
    pub(crate) batch: Spread,
    pub(crate) single: Spread,
    /// Rates of the turn before, in batches and single.
    pub(crate) trial: Option<[f64; 2]>,
    pub(crate) wrong: usize,
}

impl<'a> Entry<'a> {
    /// A place for a candidate that classifies a trace of so many headers.
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

    /// Does something, unless an earlier turn failed.
    fn attempt(&mut self, turn: impl FnOnce(&mut Entry<'a>) -> Result<(), String>) {
        if self.failed.is_none() {
            self.failed = turn(self).err();
        }
    }

    /// Takes a turn that is not among those that count. Of several the best rates are
    /// kept: the very first lookups after all builds are slower than any later ones.
    pub(crate) fn try_out(&mut self) {
        self.attempt(|entry| {
            // The first lookups warm caches.
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

    /// Takes one turn of timing.
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

/// Checks the answers of all entries and says what each has shown, or why it
/// failed.
pub(crate) fn judge(
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
            let wrong = wrong.next().expect("one number for each that stands");
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

    /// Notes what it is asked for.
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

    /// With a short trace, what one rate finds in the caches the other finds as well.
    #[test]
    fn a_turn_over_a_short_trace_warms_up() {
        for (headers, expected) in [
            (SHORT_TRACE, &["batch", "batch", "single"][..]),
            (SHORT_TRACE + 1, &["batch", "single"][..]),
        ] {
            let asked = RefCell::new(Vec::new());
            let mut entry = Entry::new(Noting(&asked), headers);
            entry.turn();
            assert_eq!(*asked.borrow(), expected, "{headers} headers");
            assert_eq!((entry.batch.len(), entry.single.len()), (1, 1));
        }
    }
}
