//! Counts wrong answers exactly and in bounded time.
//!
//! Scanning a million rules for a million headers would take hours, so only a
//! sample of headers is scanned, limited to [`SCANNED_RULES`] comparisons. In
//! addition, if two engines disagree on any header, sampled or not, that header is
//! scanned too. An answer is wrong if it differs from the scan's.

use classyard::classifier::BATCH;
use classyard::policy::PartId;
use classyard::{Classifier, Policy, PolicyClassifier, PolicyTrace, Scratch, Winner};

/// The maximum number of rule comparisons for scanning a sample: about two seconds.
pub(crate) const SCANNED_RULES: usize = 400_000_000;

/// The number of headers looked up singly, and with a mask, to compare with the
/// batch.
pub(crate) const SINGLE_LOOKUPS: usize = 20_000;

/// Returns the answers of an engine for a trace.
pub(crate) fn answers(classifier: &PolicyClassifier, trace: &PolicyTrace) -> Vec<Winner> {
    let mut winners = vec![Winner::MISS; trace.len()];
    classifier.classify(trace, &mut winners, &mut Scratch::new());
    winners
}

/// Returns the number of wrong answers in each of `answers`. Scans a sample of the
/// headers, with about `comparisons` rule comparisons in all, and every header on
/// which the answers differ.
///
/// If `expected` has the right answers, nothing is scanned.
pub(crate) fn wrong_answers(
    policy: &Policy,
    trace: &PolicyTrace,
    answers: &[&[Winner]],
    expected: Option<&[Winner]>,
    comparisons: usize,
) -> Vec<usize> {
    let sample = (comparisons / policy.len().max(1)).clamp(BATCH, trace.len().max(BATCH));
    let stride = (trace.len() / sample).max(1);
    let mut wrong = vec![0; answers.len()];
    for (index, (part, key)) in trace.iter().enumerate() {
        let given = expected.map(|expected| expected[index]);
        let first = answers.first().map(|winners| winners[index]);
        let disputed = answers.iter().any(|winners| Some(winners[index]) != first);
        let right = match given {
            Some(right) => right,
            None if disputed || index.is_multiple_of(stride) => policy.part(part).scan(key),
            None => continue,
        };
        for (wrong, winners) in wrong.iter_mut().zip(answers) {
            *wrong += usize::from(winners[index] != right);
        }
    }
    wrong
}

/// Returns the number of single or masked lookups that differ from these answers,
/// for a sample of about `singles` headers.
pub(crate) fn contradictions<'a>(
    classifier: impl Fn(PartId) -> &'a dyn Classifier,
    trace: &PolicyTrace,
    winners: &[Winner],
    singles: usize,
) -> usize {
    let stride = (trace.len() / singles).max(1);
    let mut differing = 0;
    for (index, (part, key)) in trace.iter().enumerate().step_by(stride) {
        let classifier = classifier(part);
        let mut mask = vec![0; key.len()];
        let single = classifier.classify_one(key);
        let masked = classifier.classify_masked(key, &mut mask);
        differing += usize::from(single != winners[index] || masked != winners[index]);
    }
    differing
}
