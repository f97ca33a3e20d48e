//! The calls of a classifier, and the possible problems of its answers.

use std::fmt;

use classyard::key::unpack;
use classyard::{
    BuildError, Classifier, DynamicClassifier, Field, KeyVec, LookupTrace, NoProgress, RuleId,
    RuleRef, Schema, Scratch, UpdateError, Winner,
};

use super::Counters;
use crate::calls::guarded;
use crate::oracle::{Oracle, OwnedChange, transaction};
use crate::random::{Dice, SeededDice};
use crate::{Subject, text};

/// A query or change of a classifier.
#[derive(Clone, Debug)]
pub enum Question {
    /// Building it.
    Build,
    /// Applying a transaction.
    Apply(Vec<OwnedChange>),
    /// Reorganising it.
    Rebuild,
    /// Re-optimising it and installing the plan.
    Reoptimise,
    /// Improving candidates by a batch lookup.
    Batch {
        /// The headers.
        keys: KeyVec,
        /// A candidate for each header.
        best: Vec<Winner>,
    },
    /// Looking up a single header.
    One {
        /// The header.
        keys: KeyVec,
    },
    /// Improving a candidate, and returning the bits on which the result depends.
    Masked {
        /// The header.
        keys: KeyVec,
        /// The candidate.
        best: Winner,
        /// Mask bits that are set before the lookup.
        preset: Vec<u64>,
        /// If given, also tests headers with flipped bits outside of the mask, by this seed.
        flips: Option<u64>,
    },
    /// As [`Masked`](Question::Masked), for a batch.
    BatchMasked {
        /// The headers.
        keys: KeyVec,
        /// A candidate for each header.
        best: Vec<Winner>,
        /// Mask bits that are set before the lookup.
        preset: Vec<u64>,
    },
    /// Building it twice, over alternate rules, and chaining the lookups of both with one
    /// candidate and one mask.
    Chain {
        /// The headers.
        keys: KeyVec,
    },
    /// Tracing a lookup.
    Trace {
        /// The header.
        keys: KeyVec,
    },
    /// Listing its rules and reading them back.
    Held,
}

impl Question {
    /// Returns the headers that are looked up.
    #[must_use]
    pub fn keys(&self) -> Option<&KeyVec> {
        match self {
            Question::Build
            | Question::Apply(_)
            | Question::Rebuild
            | Question::Reoptimise
            | Question::Held => None,
            Question::Batch { keys, .. }
            | Question::One { keys }
            | Question::Masked { keys, .. }
            | Question::BatchMasked { keys, .. }
            | Question::Chain { keys }
            | Question::Trace { keys } => Some(keys),
        }
    }

    /// Returns the right outcome for each header: the better of its candidate and its
    /// winner.
    #[must_use]
    pub fn expected(&self, oracle: &Oracle) -> Vec<Winner> {
        let Some(keys) = self.keys() else {
            return Vec::new();
        };
        let keys = keys.as_slice().iter();
        match self {
            Question::Batch { best, .. } | Question::BatchMasked { best, .. } => keys
                .zip(best)
                .map(|(key, &best)| oracle.improve(key, best))
                .collect(),
            Question::Masked { best, .. } => keys.map(|key| oracle.improve(key, *best)).collect(),
            _ => keys.map(|key| oracle.winner(key)).collect(),
        }
    }

    /// Queries a classifier over the oracle's rules, and compares the answers of both. Does
    /// nothing for [`Build`](Question::Build), [`Apply`](Question::Apply),
    /// [`Rebuild`](Question::Rebuild), [`Reoptimise`](Question::Reoptimise) and
    /// [`Chain`](Question::Chain), which require more than a built classifier.
    ///
    /// # Errors
    /// [`Finding`]: the problem of the answer.
    pub fn ask(
        &self,
        classifier: &dyn Classifier,
        oracle: &Oracle,
        scratch: &mut Scratch,
        counters: &mut Counters,
    ) -> Result<(), Finding> {
        let expected = self.expected(oracle);
        ask(self, &expected, classifier, oracle, scratch, counters)
    }
}

impl fmt::Display for Question {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Question::Build => f.write_str("building"),
            Question::Apply(changes) => write!(f, "a transaction of {} changes", changes.len()),
            Question::Rebuild => f.write_str("rebuilding"),
            Question::Reoptimise => f.write_str("re-optimisation"),
            Question::Batch { keys, .. } => write!(f, "a batch lookup of {} headers", keys.len()),
            Question::One { .. } => f.write_str("a single lookup"),
            Question::Masked { .. } => f.write_str("a masked lookup"),
            Question::BatchMasked { keys, .. } => {
                write!(f, "a masked batch lookup of {} headers", keys.len())
            }
            Question::Chain { .. } => f.write_str("lookups chained over two classifiers"),
            Question::Trace { .. } => f.write_str("the trace of a lookup"),
            Question::Held => f.write_str("the rules that are held"),
        }
    }
}

/// A problem of an answer.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Finding {
    /// The wrong rule wins.
    Winner {
        /// The header's position in its batch.
        position: usize,
        /// The header.
        header: Vec<u128>,
        /// The candidate.
        best: Winner,
        /// The right outcome.
        expected: Winner,
        /// The classifier's outcome.
        found: Winner,
    },
    /// A mask lacks a bit: a header with equal bits under the mask has another outcome.
    Mask {
        /// The header.
        header: Vec<u128>,
        /// The mask, field by field.
        mask: Vec<u128>,
        /// The candidate.
        best: Winner,
        /// The outcome, which is right.
        outcome: Winner,
        /// The header that equals `header` under the mask.
        escape: Vec<u128>,
        /// The outcome of `escape`.
        escaped: Winner,
    },
    /// The lookup cleared a bit that was set in the mask before.
    MaskCleared {
        /// The header.
        header: Vec<u128>,
    },
    /// The classifier applied a transaction that it must refuse, or refused a valid
    /// transaction, or returned the wrong error.
    Update {
        /// `check` or `apply`.
        call: &'static str,
        /// The right result.
        expected: Box<Result<(), UpdateError>>,
        /// The classifier's result.
        found: Box<Result<(), UpdateError>>,
    },
    /// The engine fails to build over rules over which it was built before, or fails to
    /// rebuild.
    Build(BuildError),
    /// The classifier reports a wrong number of rules.
    Count {
        /// The right number of rules.
        expected: usize,
        /// The reported number of rules.
        found: usize,
    },
    /// The classifier reports a rule that it should not have, or lacks a rule.
    Holds {
        /// The rule.
        id: RuleId,
        /// True if the classifier should have the rule.
        expected: bool,
    },
    /// A rule that is read back differs from the inserted rule.
    ReadBack {
        /// The rule.
        id: RuleId,
        /// The problem.
        what: String,
    },
    /// A trace contradicts itself or the rules.
    Trace {
        /// The header.
        header: Vec<u128>,
        /// The problem.
        what: String,
    },
    /// Another wrong report of a classifier about itself.
    Says(String),
    /// The classifier panicked.
    Panic {
        /// The panic's message.
        message: String,
    },
}

impl Finding {
    /// Returns a word for the kind of the finding.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Finding::Winner { .. } => "winner",
            Finding::Mask { .. } => "mask",
            Finding::MaskCleared { .. } => "mask-cleared",
            Finding::Update { .. } => "update",
            Finding::Build(_) => "build",
            Finding::Count { .. } => "count",
            Finding::Holds { .. } => "holds",
            Finding::ReadBack { .. } => "read-back",
            Finding::Trace { .. } => "trace",
            Finding::Says(_) => "says",
            Finding::Panic { .. } => "panic",
        }
    }

    /// Returns the header concerned and, for a wrong mask, the header that proves it wrong.
    #[must_use]
    pub fn headers(&self) -> Vec<&[u128]> {
        match self {
            Finding::Winner { header, .. }
            | Finding::MaskCleared { header }
            | Finding::Trace { header, .. } => vec![header],
            Finding::Mask { header, escape, .. } => vec![header, escape],
            _ => Vec::new(),
        }
    }

    /// Returns the rules that the finding names.
    #[must_use]
    pub fn rules(&self) -> Vec<RuleId> {
        let winners: Vec<Winner> = match self {
            Finding::Winner {
                best,
                expected,
                found,
                ..
            } => vec![*expected, *found, *best],
            Finding::Mask {
                best,
                outcome,
                escaped,
                ..
            } => vec![*outcome, *escaped, *best],
            Finding::Holds { id, .. } | Finding::ReadBack { id, .. } => return vec![*id],
            _ => Vec::new(),
        };
        let mut rules: Vec<RuleId> = winners.into_iter().filter_map(Winner::rule).collect();
        rules.sort();
        rules.dedup();
        rules
    }

    /// Returns the finding in words, with headers in the schema's formats.
    #[must_use]
    pub fn describe(&self, schema: &Schema) -> String {
        let show = |header: &[u128]| text::write_header(schema, header);
        match self {
            Finding::Winner {
                position,
                header,
                best,
                expected,
                found,
            } => format!(
                "header {position} ({}), candidate {best:?}: expected {expected:?}, found {found:?}",
                show(header)
            ),
            Finding::Mask {
                header,
                mask,
                best,
                outcome,
                escape,
                escaped,
            } => {
                let fields = schema.fields().iter().zip(mask);
                let bits: Vec<String> = fields
                    .filter(|&(_, &bits)| bits != 0)
                    .map(|(field, bits)| format!("{}&{bits:#x}", field.name()))
                    .collect();
                format!(
                    "header ({}), candidate {best:?}: the outcome is {outcome:?} with mask \
                     ({}), but header ({}) agrees on it and its outcome is {escaped:?}",
                    show(header),
                    bits.join(" "),
                    show(escape)
                )
            }
            Finding::MaskCleared { header } => format!(
                "header ({}): a bit that was set in the mask before is gone",
                show(header)
            ),
            Finding::Update {
                call,
                expected,
                found,
            } => {
                let say = |result: &Result<(), UpdateError>| match result {
                    Ok(()) => "the transaction to be taken".to_owned(),
                    Err(error) => format!("`{error}`"),
                };
                format!("{call}: expected {}, found {}", say(expected), say(found))
            }
            Finding::Build(error) => format!("expected it to build, found `{error}`"),
            Finding::Count { expected, found } => {
                format!("expected {expected} rules, found {found} in the statistics")
            }
            Finding::Holds { id, expected } => {
                let (is, says) = if *expected {
                    ("there", "missing")
                } else {
                    ("not there", "there")
                };
                format!("rule {id} is {is}, but is said to be {says}")
            }
            Finding::ReadBack { id, what } => format!("rule {id} as it is read back: {what}"),
            Finding::Trace { header, what } => {
                format!("the trace of header ({}): {what}", show(header))
            }
            Finding::Says(what) => what.clone(),
            Finding::Panic { message } => format!("panicked: {message}"),
        }
    }
}

/// Applies changes to a classifier, after the oracle has applied or refused them.
pub(super) fn apply(
    classifier: &mut dyn Classifier,
    changes: &[OwnedChange],
    expected: &Result<(), UpdateError>,
) -> Result<(), Finding> {
    let transaction = transaction(changes);
    let wrong = |call, found: Result<(), UpdateError>| {
        if found == *expected {
            Ok(())
        } else {
            Err(Finding::Update {
                call,
                expected: Box::new(expected.clone()),
                found: Box::new(found),
            })
        }
    };
    let answers = guarded(|| {
        let dynamic = classifier.as_dynamic()?;
        let checked = dynamic.check(&transaction);
        Some((checked, dynamic.apply(&transaction)))
    });
    match answers {
        Err(message) => Err(Finding::Panic { message }),
        Ok(None) => Err(Finding::Says(
            "registered as dynamic, but takes no updates".to_owned(),
        )),
        Ok(Some((checked, applied))) => {
            wrong("check", checked)?;
            wrong("apply", applied)
        }
    }
}

/// Lets a classifier reorganise.
pub(super) fn rebuild(classifier: &mut dyn Classifier) -> Result<(), Finding> {
    let rebuilt = guarded(|| match classifier.as_dynamic() {
        Some(dynamic) => dynamic.rebuild(&mut NoProgress),
        None => Ok(()),
    });
    match rebuilt {
        Ok(Ok(())) => Ok(()),
        Ok(Err(error)) => Err(Finding::Build(error)),
        Err(message) => Err(Finding::Panic { message }),
    }
}

/// Re-optimises a classifier, and does `steps` steps of installing the plan.
pub(super) fn reoptimise(classifier: &mut dyn Classifier, steps: usize) -> Result<(), Finding> {
    match guarded(|| crate::calls::reoptimise(classifier, steps)) {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(error)) => Err(Finding::Build(error)),
        Err(message) => Err(Finding::Panic { message }),
    }
}

/// Queries a classifier, and compares its answer with the oracle's answer.
pub(super) fn ask(
    question: &Question,
    expected: &[Winner],
    classifier: &dyn Classifier,
    oracle: &Oracle,
    scratch: &mut Scratch,
    counters: &mut Counters,
) -> Result<(), Finding> {
    guarded(|| match question {
        Question::Build
        | Question::Apply(_)
        | Question::Rebuild
        | Question::Reoptimise
        | Question::Chain { .. } => Ok(()),
        Question::Batch { keys, best } => {
            counters.batches += 1;
            counters.batch_keys += keys.len();
            let mut improved = best.clone();
            classifier.improve_batch(keys.as_slice(), &mut improved, scratch);
            same_winners(keys, best, expected, &improved)?;
            // The buffer still holds the candidates. The lookup must ignore them.
            let mut classified = best.clone();
            classifier.classify_batch(keys.as_slice(), &mut classified, scratch);
            let misses = vec![Winner::MISS; keys.len()];
            same_winners(keys, &misses, &oracle.winners(keys), &classified)
        }
        Question::One { keys } => {
            counters.singles += 1;
            let winner = classifier.classify_one(keys.key(0));
            same_winners(keys, &[Winner::MISS], expected, &[winner])
        }
        Question::Masked {
            keys,
            best,
            preset,
            flips,
        } => {
            counters.masked += 1;
            let mut mask = preset.clone();
            let winner = classifier.improve_masked(keys.key(0), *best, &mut mask);
            same_winners(keys, &[*best], expected, &[winner])?;
            mask_holds(oracle, keys.key(0), *best, preset, &mask)?;
            match flips {
                Some(seed) => flipped(oracle, keys.key(0), *best, &mask, *seed, counters),
                None => Ok(()),
            }
        }
        Question::BatchMasked { keys, best, preset } => {
            counters.masked += keys.len();
            let mut winners = best.clone();
            let mut masks = preset.repeat(keys.len());
            let slice = keys.as_slice();
            classifier.improve_batch_masked(slice, &mut winners, &mut masks, scratch);
            same_winners(keys, best, expected, &winners)?;
            let rows = masks.chunks_exact(slice.width());
            slice
                .iter()
                .zip(best)
                .zip(rows)
                .try_for_each(|((key, &best), mask)| mask_holds(oracle, key, best, preset, mask))
        }
        Question::Trace { keys } => {
            counters.traces += 1;
            let trace = classifier.trace(keys.key(0));
            check_trace(&trace, keys.key(0), expected[0], oracle).map_err(|what| Finding::Trace {
                header: keys.header(0),
                what,
            })
        }
        Question::Held => held(classifier, oracle, counters),
    })
    .unwrap_or_else(|message| Err(Finding::Panic { message }))
}

/// Builds the subject twice, over alternate rules, and chains the lookups of both.
pub(super) fn chain(
    subject: &Subject,
    keys: &KeyVec,
    expected: &[Winner],
    oracle: &Oracle,
    scratch: &mut Scratch,
    counters: &mut Counters,
) -> Result<(), Finding> {
    let half = |odd: usize| {
        let rules = oracle.rules().skip(odd).step_by(2).cloned();
        Oracle::of_rules(oracle.schema(), rules, oracle.limits()).to_rule_set()
    };
    let build = |odd| subject.build(&half(odd), oracle.limits(), &mut NoProgress);
    guarded(|| {
        // A failed build is not reported here. The caller of `chain` has reported it.
        let (Ok(first), Ok(second)) = (build(0), build(1)) else {
            return Ok(());
        };
        counters.builds += 2;
        counters.chains += keys.len();
        let miss = vec![Winner::MISS; keys.len()];
        let mut winners = miss.clone();
        first.improve_batch(keys.as_slice(), &mut winners, scratch);
        second.improve_batch(keys.as_slice(), &mut winners, scratch);
        same_winners(keys, &miss, expected, &winners)?;
        let clear = vec![0; keys.schema().key_words()];
        for (row, key) in keys.as_slice().iter().enumerate() {
            let mut mask = clear.clone();
            let best = first.classify_masked(key, &mut mask);
            winners[row] = second.improve_masked(key, best, &mut mask);
            same_winners(keys, &miss, &expected[..=row], &winners[..=row])?;
            mask_holds(oracle, key, Winner::MISS, &clear, &mask)?;
        }
        Ok(())
    })
    .unwrap_or_else(|message| Err(Finding::Panic { message }))
}

fn same_winners(
    keys: &KeyVec,
    best: &[Winner],
    expected: &[Winner],
    found: &[Winner],
) -> Result<(), Finding> {
    match expected.iter().zip(found).position(|(a, b)| a != b) {
        None => Ok(()),
        Some(position) => Err(Finding::Winner {
            position,
            header: keys.header(position),
            best: best[position],
            expected: expected[position],
            found: found[position],
        }),
    }
}

/// Checks a mask exactly, for all headers.
fn mask_holds(
    oracle: &Oracle,
    key: &[u64],
    best: Winner,
    preset: &[u64],
    mask: &[u64],
) -> Result<(), Finding> {
    let schema = oracle.schema();
    if preset.iter().zip(mask).any(|(set, now)| set & !now != 0) {
        let header = unpack(schema, key);
        return Err(Finding::MaskCleared { header });
    }
    match oracle.escape(key, mask, best) {
        None => Ok(()),
        Some(escape) => Err(mask_finding(oracle, key, best, mask, escape)),
    }
}

fn mask_finding(
    oracle: &Oracle,
    key: &[u64],
    best: Winner,
    mask: &[u64],
    escape: Vec<u128>,
) -> Finding {
    let schema = oracle.schema();
    let mut keys = KeyVec::new(schema);
    keys.push(&escape).expect("made of the schema's values");
    Finding::Mask {
        header: unpack(schema, key),
        mask: unpack(schema, mask),
        best,
        outcome: oracle.improve(key, best),
        escaped: oracle.improve(keys.key(0), best),
        escape,
    }
}

/// The maximum number of tests that flip a single bit outside of the mask.
const SINGLE_FLIPS: usize = 64;

/// The number of tests that flip several bits together.
const MULTIPLE_FLIPS: usize = 16;

/// Checks a mask by samples: flips bits outside of the mask.
fn flipped(
    oracle: &Oracle,
    key: &[u64],
    best: Winner,
    mask: &[u64],
    seed: u64,
    counters: &mut Counters,
) -> Result<(), Finding> {
    let schema = oracle.schema();
    // The bits of fields that are outside of the mask.
    let mut free = KeyVec::new(schema);
    let ones: Vec<u128> = schema.fields().iter().map(Field::max_value).collect();
    free.push(&ones).expect("values of the schema's fields");
    let free: Vec<u64> = (free.key(0).iter().zip(mask))
        .map(|(bits, known)| bits & !known)
        .collect();
    let mut dice = SeededDice::new(seed);
    let dice: &mut dyn Dice = &mut dice;
    let outcome = oracle.improve(key, best);
    let mut changed_key = key.to_vec();
    let mut check = |flip: &mut dyn FnMut(usize) -> u64| {
        counters.flips += 1;
        for (word, (changed, known)) in changed_key.iter_mut().zip(key).enumerate() {
            *changed = known ^ flip(word);
        }
        if oracle.improve(&changed_key, best) == outcome {
            Ok(())
        } else {
            let header = unpack(schema, &changed_key);
            Err(mask_finding(oracle, key, best, mask, header))
        }
    };
    let mut bits: Vec<usize> = (0..64 * free.len())
        .filter(|bit| free[bit / 64] >> (bit % 64) & 1 != 0)
        .collect();
    for _ in 0..SINGLE_FLIPS.min(bits.len()) {
        let bit = bits.swap_remove(dice.below(bits.len()));
        check(&mut |word| u64::from(word == bit / 64) << (bit % 64))?;
    }
    for _ in 0..MULTIPLE_FLIPS {
        // All bits outside of the mask, or about a half, a quarter or an eighth of them.
        let halvings = dice.below(4);
        check(&mut |word| (0..halvings).fold(free[word], |bits, _| bits & dice.word()))?;
    }
    Ok(())
}

fn check_trace(
    trace: &LookupTrace,
    key: &[u64],
    expected: Winner,
    oracle: &Oracle,
) -> Result<(), String> {
    if trace.winner != expected {
        let winner = trace.winner;
        return Err(format!(
            "expected the winner {expected:?}, found {winner:?}"
        ));
    }
    let mut best = Winner::MISS;
    for (step, probe) in trace.probes.iter().enumerate() {
        if probe.mask.len() != key.len() {
            let words = probe.mask.len();
            return Err(format!("the mask of probe {step} has {words} words"));
        }
        if probe.compared.len() > probe.rules {
            let (compared, rules) = (probe.compared.len(), probe.rules);
            return Err(format!(
                "probe {step} compares {compared} rules in a table of {rules}"
            ));
        }
        let mut probe_winner = Winner::MISS;
        for &id in &probe.compared {
            let Some(rule) = oracle.get(id) else {
                return Err(format!(
                    "probe {step} compares rule {id}, which is not there"
                ));
            };
            if oracle.matches(id, key) {
                probe_winner = probe_winner.or(rule.view().winner());
            }
        }
        if probe.winner != probe_winner {
            let says = probe.winner;
            return Err(format!(
                "probe {step} says {says:?}; the best of what it compares is {probe_winner:?}"
            ));
        }
        best = best.or(probe_winner);
    }
    if best != expected {
        return Err(format!(
            "the winner is {expected:?}, but no probe compares better than {best:?}"
        ));
    }
    Ok(())
}

fn held(
    classifier: &dyn Classifier,
    oracle: &Oracle,
    counters: &mut Counters,
) -> Result<(), Finding> {
    counters.inspections += 1;
    if classifier.schema() != oracle.schema() {
        let name = classifier.schema().name();
        return Err(Finding::Says(format!("says that its schema is `{name}`")));
    }
    let stats = classifier.stats();
    if stats.rules != oracle.len() {
        return Err(Finding::Count {
            expected: oracle.len(),
            found: stats.rules,
        });
    }
    if stats.rules > 0 && stats.rule_bytes == 0 {
        let rules = stats.rules;
        return Err(Finding::Says(format!("holds {rules} rules in 0 bytes")));
    }
    let Some(dynamic) = classifier.dynamic() else {
        return Ok(());
    };
    if dynamic.rules() != oracle.len() {
        return Err(Finding::Count {
            expected: oracle.len(),
            found: dynamic.rules(),
        });
    }
    let mut listed = dynamic.winners();
    let mut expected: Vec<Winner> = oracle.rules().map(|rule| rule.view().winner()).collect();
    for winners in [&mut listed, &mut expected] {
        winners.sort_unstable_by_key(|winner| winner.rank());
    }
    if listed != expected {
        let difference = listed.iter().zip(&expected).position(|(a, b)| a != b);
        let index = difference.unwrap_or(listed.len().min(expected.len()));
        let (found, expected) = (listed.get(index), expected.get(index));
        return Err(Finding::Says(format!(
            "lists {found:?} among its rules where {expected:?} should be"
        )));
    }
    let mut ids: Vec<RuleId> = oracle.rules().map(|rule| rule.view().id()).collect();
    ids.sort_unstable();
    for &id in &ids {
        if !dynamic.contains(id) {
            let expected = true;
            return Err(Finding::Holds { id, expected });
        }
        // Unused ids next to used ids.
        for id in [id.get().wrapping_add(1), id.get().wrapping_sub(1)] {
            if let Ok(id) = RuleId::new(id)
                && ids.binary_search(&id).is_err()
            {
                if dynamic.contains(id) {
                    let expected = false;
                    return Err(Finding::Holds { id, expected });
                }
                read_back(dynamic, id, None)?;
            }
        }
    }
    let mut rules = oracle.rules();
    rules.try_for_each(|rule| read_back(dynamic, rule.view().id(), Some(rule.view())))
}

/// Reads a rule back and compares it with the expected rule, or checks that no rule has the
/// id.
fn read_back(
    dynamic: &dyn DynamicClassifier,
    id: RuleId,
    expected: Option<RuleRef<'_>>,
) -> Result<(), Finding> {
    let wrong = |what| Err(Finding::ReadBack { id, what });
    // The classifier must append its words and keep the previous words.
    const PREVIOUS_WORD: u64 = 0x5eed;
    let mut words = vec![PREVIOUS_WORD];
    let priority = dynamic.copy_rule(id, &mut words);
    if words[0] != PREVIOUS_WORD {
        return wrong("overwrites words that were there before".to_owned());
    }
    let (words, wanted) = (&words[1..], expected.map(|rule| rule.priority()));
    if priority != wanted {
        return wrong(format!("expected priority {wanted:?}, found {priority:?}"));
    }
    let (found, wanted) = (dynamic.action(id), expected.map(|rule| rule.action()));
    if found != wanted {
        return wrong(format!("expected action {wanted:?}, found {found:?}"));
    }
    let rule_words = expected.map_or(&[][..], |rule| rule.words());
    if words != rule_words {
        return wrong(format!("expected words {rule_words:x?}, found {words:x?}"));
    }
    Ok(())
}
