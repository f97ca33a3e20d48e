//! Whoever takes part in a measurement: an engine of ours, or one algorithm of
//! a peer.

use classyard::{PolicyClassifier, PolicyTrace, Scratch, Winner};

use super::measure::{Spread, batch_rate, single_rate};
use super::verify;

/// Classifies the trace when its turn comes. Errors are reasons for people;
/// whoever fails once is out.
pub(crate) trait Contestant {
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

impl Contestant for Engine<'_> {
    fn batch_rate(&mut self) -> Result<f64, String> {
        Ok(batch_rate(self.classifier, self.trace, &mut self.scratch))
    }

    fn single_rate(&mut self) -> Result<f64, String> {
        Ok(single_rate(self.classifier, self.trace, &mut self.scratch))
    }

    fn winners(&mut self) -> Result<Vec<Winner>, String> {
        Ok(verify::answers(self.classifier, self.trace))
    }

    fn contradictions(&mut self, winners: &[Winner]) -> usize {
        let part = |part| self.classifier.part(part);
        let singles = verify::SINGLES;
        verify::contradictions(part, self.trace, winners, singles, &mut self.scratch)
    }
}

/// A contestant's place in the turns, and what it has shown.
pub(crate) struct Lane<'a> {
    contestant: Box<dyn Contestant + 'a>,
    batch: Vec<f64>,
    single: Vec<f64>,
    winners: Vec<Winner>,
    failed: Option<String>,
}

/// What a contestant has shown in the end.
pub(crate) struct Shown {
    pub(crate) batch: Spread,
    pub(crate) single: Spread,
    pub(crate) wrong: usize,
}

impl<'a> Lane<'a> {
    /// A place for a contestant.
    pub(crate) fn new(contestant: impl Contestant + 'a) -> Lane<'a> {
        Lane {
            contestant: Box::new(contestant),
            batch: Vec::new(),
            single: Vec::new(),
            winners: Vec::new(),
            failed: None,
        }
    }

    /// Does something, unless an earlier turn failed.
    fn attempt(&mut self, turn: impl FnOnce(&mut Lane<'a>) -> Result<(), String>) {
        if self.failed.is_none() {
            self.failed = turn(self).err();
        }
    }

    /// Takes one turn of timing.
    pub(crate) fn turn(&mut self) {
        self.attempt(|lane| {
            lane.batch.push(lane.contestant.batch_rate()?);
            lane.single.push(lane.contestant.single_rate()?);
            Ok(())
        });
    }

    /// Asks for the answers.
    pub(crate) fn answer(&mut self) {
        self.attempt(|lane| {
            lane.winners = lane.contestant.winners()?;
            Ok(())
        });
    }
}

/// Checks the answers of all lanes and says what each has shown, or why it
/// failed.
pub(crate) fn judge(
    lanes: Vec<Lane<'_>>,
    wrong_answers: impl FnOnce(&[&[Winner]]) -> Vec<usize>,
) -> Vec<Result<Shown, String>> {
    let standing = lanes.iter().filter(|lane| lane.failed.is_none());
    let answers: Vec<&[Winner]> = standing.map(|lane| lane.winners.as_slice()).collect();
    let mut wrong = wrong_answers(&answers).into_iter();
    lanes
        .into_iter()
        .map(|mut lane| {
            if let Some(reason) = lane.failed {
                return Err(reason);
            }
            let wrong = wrong.next().expect("one number for each that stands");
            Ok(Shown {
                batch: Spread::of(&lane.batch).expect("at least one repeat"),
                single: Spread::of(&lane.single).expect("at least one repeat"),
                wrong: wrong + lane.contestant.contradictions(&lane.winners),
            })
        })
        .collect()
}
