//! Comparing any engines with the oracle, over a stream of updates.
//!
//! # Steps
//!
//! ```text
//! build every subject over the same rules
//! repeat:
//!     draw a transaction; the oracle and every subject apply or refuse it,
//!         with the same error
//!     sometimes: let the subjects reorganise; or re-optimise them, and install
//!         a part of the plan immediately and the rest with later updates
//!     every few transactions: draw headers, and check for every subject
//!         batches of many lengths, with candidates    the right outcome
//!         single lookups                              the right outcome
//!         masked lookups, single and in batches       the right outcome and mask
//!         traces, statistics, rule ids                consistent with the rules
//!     every few checks: check newly built classifiers over the current rules
//!         likewise, and chains of two classifiers with half the rules each
//! ```
//!
//! All subjects share one [`Scratch`]. The first wrong answer ends the run. Its scenario is
//! made small ([`minimise`]), and the outcome has it as a [`Disagreement`].

use std::fmt;
use std::ops::ControlFlow;
use std::sync::Arc;

use classyard::{
    Classifier, KeyVec, Limits, NoProgress, Priority, Progress, Rule, RuleId, RuleRef, RuleSet,
    Scratch, Winner,
};

use super::calls::{guarded, ring};
use super::oracle::Oracle;
use super::random::{Churn, Dice, RuleMaker, SeededDice, draw_header, draw_member};
use super::{Skip, Subject};

mod question;
mod report;
mod scenario;

pub use question::{Finding, Question};
pub use report::Disagreement;
pub use scenario::{Action, Scenario, minimise};

use question::{apply, ask, chain, rebuild, reoptimise};

/// Options of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// The seed of all random choices.
    pub seed: u64,
    /// The minimum number of changes.
    pub updates: usize,
    /// The usual number of rules, approximately.
    pub rules: usize,
    /// The maximum number of rules. Some transactions try to exceed it.
    pub limit: usize,
    /// The number of transactions between two checks.
    pub check_every: usize,
    /// The number of headers of a check.
    pub headers: usize,
    /// The number of batches of a check, with 45 headers on average.
    pub batches: usize,
    /// The number of masked lookups of a check.
    pub masked: usize,
    /// The number of masked lookups that are followed by lookups of headers with other bits
    /// outside of the mask. (All masks are also proved right for all headers.)
    pub flips: usize,
    /// The number of checks between two new builds.
    pub build_every: usize,
    /// True to make the scenario of a wrong answer small.
    pub minimise: bool,
}

impl Default for Options {
    /// Returns options for a run of a few seconds.
    fn default() -> Options {
        Options {
            seed: 1,
            updates: 10_000,
            rules: 100,
            limit: 150,
            check_every: 10,
            headers: 64,
            batches: 4,
            masked: 24,
            flips: 1,
            build_every: 4,
            minimise: true,
        }
    }
}

/// The numbers of steps and checks, summed over all subjects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Counters {
    /// Classifiers built.
    pub builds: usize,
    /// Transactions that were applied.
    pub transactions: usize,
    /// Transactions that were refused.
    pub refused: usize,
    /// Changes in applied transactions.
    pub changes: usize,
    /// Reorganisations.
    pub rebuilds: usize,
    /// Re-optimisations.
    pub reoptimisations: usize,
    /// Batches looked up.
    pub batches: usize,
    /// Headers in batches.
    pub batch_keys: usize,
    /// Single lookups.
    pub singles: usize,
    /// Masked lookups; each mask was proved right for all headers.
    pub masked: usize,
    /// Lookups of headers that differ outside of a mask.
    pub flips: usize,
    /// Headers looked up in two chained classifiers, each with half of the rules.
    pub chains: usize,
    /// Traces.
    pub traces: usize,
    /// Comparisons of statistics and ids with the rules.
    pub inspections: usize,
}

impl Counters {
    /// Returns each count with its name.
    #[must_use]
    pub fn list(&self) -> [(&'static str, usize); 14] {
        [
            ("builds", self.builds),
            ("transactions", self.transactions),
            ("refused transactions", self.refused),
            ("changes", self.changes),
            ("rebuilds", self.rebuilds),
            ("reoptimisations", self.reoptimisations),
            ("batches", self.batches),
            ("batch lookups", self.batch_keys),
            ("single lookups", self.singles),
            ("masked lookups", self.masked),
            ("flips", self.flips),
            ("chained lookups", self.chains),
            ("traces", self.traces),
            ("inspections", self.inspections),
        ]
    }

    /// The number of lookups whose outcome was compared: in batches, single, masked, chained
    /// over two classifiers, and of headers that differ outside of a mask.
    #[must_use]
    pub fn lookups(&self) -> usize {
        self.batch_keys + self.singles + self.masked + self.chains + self.flips
    }

    /// Adds the counts of another run.
    pub fn add(&mut self, other: &Counters) {
        self.builds += other.builds;
        self.transactions += other.transactions;
        self.refused += other.refused;
        self.changes += other.changes;
        self.rebuilds += other.rebuilds;
        self.reoptimisations += other.reoptimisations;
        self.batches += other.batches;
        self.batch_keys += other.batch_keys;
        self.singles += other.singles;
        self.masked += other.masked;
        self.flips += other.flips;
        self.chains += other.chains;
        self.traces += other.traces;
        self.inspections += other.inspections;
    }
}

impl fmt::Display for Counters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let done = self.list().into_iter().filter(|&(_, count)| count > 0);
        for (index, (name, count)) in done.enumerate() {
            let separator = if index == 0 { "" } else { ", " };
            write!(f, "{separator}{count} {name}")?;
        }
        Ok(())
    }
}

/// The result of a run.
#[derive(Debug, Default)]
pub struct Outcome {
    /// The numbers of steps and checks.
    pub counters: Counters,
    /// The omitted checks.
    pub skips: Vec<Skip>,
    /// The first wrong answer, if there was one.
    pub disagreement: Option<Box<Disagreement>>,
    /// True if the progress callback cancelled the run.
    pub stopped: bool,
}

/// Runs all subjects over a random stream of updates, beginning with the rules `start`.
pub fn differential(
    subjects: &[Subject],
    start: &RuleSet,
    options: &Options,
    progress: &mut dyn Progress,
) -> Outcome {
    let mut dice = SeededDice::new(options.seed);
    differential_with(subjects, start, options, &mut dice, progress)
}

/// As [`differential`], with choices from `dice`. Ends when the dice are exhausted.
pub fn differential_with(
    subjects: &[Subject],
    start: &RuleSet,
    options: &Options,
    dice: &mut dyn Dice,
    progress: &mut dyn Progress,
) -> Outcome {
    let maker = RuleMaker::like(start, dice);
    let limits = Limits::default().with_rules(options.limit.max(start.len()));
    let mut run = Run {
        subjects,
        options,
        seats: Vec::new(),
        oracle: Oracle::new(start, &limits),
        initial: start.iter().map(|rule| Arc::new(rule.to_rule())).collect(),
        history: Vec::new(),
        scratch: Scratch::new(),
        outcome: Outcome::default(),
        next_length: 0,
        next_rule: 0,
        recent: Vec::new(),
    };
    let mut churn = Churn::new(maker, options.rules);
    match run.run(&mut churn, dice, progress) {
        Ok(()) => {}
        Err(Stop::Asked) => run.outcome.stopped = true,
        Err(Stop::Found(wrong)) => {
            let disagreement = run.disagreement(*wrong, progress);
            run.outcome.disagreement = Some(Box::new(disagreement));
        }
    }
    run.outcome
}

/// The batch lengths to check, one after another: all lengths up to 17 (twice a vector of 8,
/// plus 1), and lengths around longer vectors and around the preferred batch.
pub const BATCH_LENGTHS: [usize; 27] = [
    0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 31, 32, 33, 63, 64, 65, 255, 256,
    257,
];

/// A subject with its classifier.
struct Seat<'a> {
    subject: &'a Subject,
    classifier: Box<dyn Classifier>,
}

struct Run<'a> {
    subjects: &'a [Subject],
    options: &'a Options,
    /// The subjects that support updates.
    seats: Vec<Seat<'a>>,
    oracle: Oracle,
    initial: Vec<Arc<Rule>>,
    history: Vec<Action>,
    scratch: Scratch,
    outcome: Outcome,
    next_length: usize,
    next_rule: usize,
    /// Headers of the last check. They are looked up again, because an engine's cached
    /// results for them may be out of date.
    recent: Vec<Vec<u128>>,
}

/// The number of headers that the next check looks up again.
const RECENT_HEADERS: usize = 8;

/// A wrong answer.
struct Found<'a> {
    subject: &'a Subject,
    question: Question,
    finding: Finding,
    /// The rules of a newly built classifier; `None` if the classifier reached its rules by
    /// updates.
    built_over: Option<Vec<Arc<Rule>>>,
}

enum Stop<'a> {
    Asked,
    Found(Box<Found<'a>>),
}

/// Questions with their right outcomes.
type Questions = Vec<(Question, Vec<Winner>)>;

impl<'a> Run<'a> {
    fn run(
        &mut self,
        churn: &mut Churn,
        dice: &mut dyn Dice,
        progress: &mut dyn Progress,
    ) -> Result<(), Stop<'a>> {
        for subject in self.subjects {
            if let Some(classifier) = self.build(subject, self.initial.clone())?
                && subject.is_dynamic()
            {
                self.seats.push(Seat {
                    subject,
                    classifier,
                });
            }
        }
        let options = self.options;
        let (mut made, mut checks) = (0, 0);
        loop {
            self.check(checks, dice)?;
            checks += 1;
            if made >= options.updates || dice.spent() {
                return Ok(());
            }
            let step = progress.report("checking", made, options.updates);
            if let ControlFlow::Break(()) = step {
                return Err(Stop::Asked);
            }
            for _ in 0..options.check_every.max(1) {
                let changes = churn.next(&self.oracle, dice);
                made += changes.len().max(1);
                self.apply(changes)?;
            }
            if dice.one_in(3) {
                self.rebuild()?;
            }
            if dice.one_in(3) {
                let steps = [0, 1, 40, usize::MAX][dice.below(4)];
                self.reoptimise(steps)?;
            }
        }
    }

    fn build(
        &mut self,
        subject: &'a Subject,
        rules: Vec<Arc<Rule>>,
    ) -> Result<Option<Box<dyn Classifier>>, Stop<'a>> {
        self.outcome.counters.builds += 1;
        let limits = *self.oracle.limits();
        let oracle = Oracle::of_rules(self.oracle.schema(), rules.iter().cloned(), &limits);
        let set = oracle.to_rule_set();
        let problem = match guarded(|| subject.build(&set, &limits, &mut NoProgress)) {
            Ok(Ok(classifier)) if classifier.dynamic().is_some() == subject.is_dynamic() => {
                return Ok(Some(classifier));
            }
            Ok(Ok(_)) => Finding::Says(
                "is registered as dynamic and takes no updates, or the other way round".to_owned(),
            ),
            Ok(Err(error)) => {
                self.skip(
                    subject,
                    &format!("building over {} rules", set.len()),
                    &error,
                );
                return Ok(None);
            }
            Err(message) => Finding::Panic { message },
        };
        Err(Stop::Found(Box::new(Found {
            subject,
            question: Question::Build,
            finding: problem,
            built_over: Some(rules),
        })))
    }

    fn skip(&mut self, subject: &Subject, what: &str, reason: &dyn fmt::Display) {
        self.outcome.skips.push(Skip {
            subject: subject.name().to_owned(),
            what: what.to_owned(),
            reason: reason.to_string(),
        });
    }

    fn apply(&mut self, changes: Vec<super::oracle::OwnedChange>) -> Result<(), Stop<'a>> {
        let expected = self.oracle.apply(&changes);
        let counters = &mut self.outcome.counters;
        match &expected {
            Ok(()) => {
                counters.transactions += 1;
                counters.changes += changes.len();
            }
            Err(_) => counters.refused += 1,
        }
        for seat in &mut self.seats {
            if let Err(finding) = apply(seat.classifier.as_mut(), &changes, &expected) {
                return Err(Stop::Found(Box::new(Found {
                    subject: seat.subject,
                    question: Question::Apply(changes),
                    finding,
                    built_over: None,
                })));
            }
        }
        self.history.push(Action::Apply(changes));
        Ok(())
    }

    fn rebuild(&mut self) -> Result<(), Stop<'a>> {
        for seat in &mut self.seats {
            self.outcome.counters.rebuilds += 1;
            if let Err(finding) = rebuild(seat.classifier.as_mut()) {
                return Err(Stop::Found(Box::new(Found {
                    subject: seat.subject,
                    question: Question::Rebuild,
                    finding,
                    built_over: None,
                })));
            }
        }
        self.history.push(Action::Rebuild);
        Ok(())
    }

    fn reoptimise(&mut self, steps: usize) -> Result<(), Stop<'a>> {
        for seat in &mut self.seats {
            self.outcome.counters.reoptimisations += 1;
            if let Err(finding) = reoptimise(seat.classifier.as_mut(), steps) {
                return Err(Stop::Found(Box::new(Found {
                    subject: seat.subject,
                    question: Question::Reoptimise,
                    finding,
                    built_over: None,
                })));
            }
        }
        self.history.push(Action::Reoptimise(steps));
        Ok(())
    }

    fn check(&mut self, check: usize, dice: &mut dyn Dice) -> Result<(), Stop<'a>> {
        if dice.one_in(8) {
            self.scratch = Scratch::new();
        }
        let questions = self.questions(dice);
        let (scratch, counters) = (&mut self.scratch, &mut self.outcome.counters);
        for seat in &self.seats {
            let classifier = seat.classifier.as_ref();
            if let Err(wrong) = ask_all(&questions, classifier, &self.oracle, scratch, counters) {
                let (question, finding) = *wrong;
                return Err(Stop::Found(Box::new(Found {
                    subject: seat.subject,
                    question,
                    finding,
                    built_over: None,
                })));
            }
        }
        if check.is_multiple_of(self.options.build_every.max(1)) {
            self.check_fresh(&questions, dice)?;
        }
        Ok(())
    }

    /// Asks the questions to classifiers that are newly built over the current rules, in a
    /// random order.
    fn check_fresh(&mut self, questions: &Questions, dice: &mut dyn Dice) -> Result<(), Stop<'a>> {
        let mut rules: Vec<Arc<Rule>> = self.oracle.rules().cloned().collect();
        dice.shuffle(&mut rules);
        let headers = questions.iter().find_map(|(question, _)| match question {
            Question::Batch { keys, .. } if !keys.is_empty() => Some(ring(keys, 0, 8)),
            _ => None,
        });
        for subject in self.subjects {
            let Some(classifier) = self.build(subject, rules.clone())? else {
                continue;
            };
            let (scratch, counters) = (&mut self.scratch, &mut self.outcome.counters);
            let mut answer = ask_all(
                questions,
                classifier.as_ref(),
                &self.oracle,
                scratch,
                counters,
            );
            if let (Ok(()), Some(keys)) = (&answer, &headers) {
                let expected = self.oracle.winners(keys);
                let oracle =
                    Oracle::of_rules(self.oracle.schema(), rules.clone(), self.oracle.limits());
                let chained = chain(subject, keys, &expected, &oracle, scratch, counters);
                answer = chained.map_err(|finding| {
                    let keys = keys.clone();
                    Box::new((Question::Chain { keys }, finding))
                });
            }
            if let Err(wrong) = answer {
                let (question, finding) = *wrong;
                return Err(Stop::Found(Box::new(Found {
                    subject,
                    question,
                    finding,
                    built_over: Some(rules),
                })));
            }
        }
        Ok(())
    }

    /// Draws questions about the current rules.
    fn questions(&mut self, dice: &mut dyn Dice) -> Questions {
        let schema = Arc::clone(self.oracle.schema());
        let views = self.oracle.views();
        let mut keys = KeyVec::new(&schema);
        let mut winners = Vec::new();
        for index in 0..self.options.headers.max(1) {
            // Half of the headers iterate over the rules, so that each rule gets a header.
            let turn = (index % 2 == 0 && !views.is_empty()).then(|| {
                self.next_rule += 1;
                views[self.next_rule % views.len()]
            });
            let header = match turn {
                Some(rule) => self.won_by(rule, dice),
                None if index < 2 * self.recent.len() => self.recent[index / 2].clone(),
                None => draw_header(&schema, &views, dice),
            };
            keys.push(&header).expect("a header of the schema");
            winners.push(self.oracle.winner(keys.key(index)));
        }
        let recent = (0..RECENT_HEADERS).map(|_| keys.header(dice.below(keys.len())));
        self.recent = recent.collect();
        let winner = |row: usize| winners[row % keys.len()];
        let mut questions: Questions = vec![(Question::Held, Vec::new())];

        for _ in 0..self.options.batches {
            let length = BATCH_LENGTHS[self.next_length % BATCH_LENGTHS.len()];
            self.next_length += 1;
            let start = dice.below(keys.len());
            let plain = dice.one_in(3);
            let best: Vec<Winner> = (start..start + length)
                .map(|row| match plain {
                    true => Winner::MISS,
                    false => candidate(winner(row), &views, dice),
                })
                .collect();
            let expected = (start..).zip(&best).map(|(row, b)| winner(row).or(*b));
            let expected = expected.collect();
            let keys = ring(&keys, start, length);
            questions.push((Question::Batch { keys, best }, expected));
        }
        for _ in 0..4 {
            let row = dice.below(keys.len());
            let keys = ring(&keys, row, 1);
            questions.push((Question::One { keys }, vec![winner(row)]));
        }
        for index in 0..self.options.masked {
            let row = dice.below(keys.len());
            let best = candidate(winner(row), &views, dice);
            let preset = preset_mask(schema.key_words(), dice);
            let question = Question::Masked {
                keys: ring(&keys, row, 1),
                best,
                preset,
                flips: (index < self.options.flips).then(|| dice.word()),
            };
            questions.push((question, vec![winner(row).or(best)]));
        }
        let (start, length) = (dice.below(keys.len()), dice.below(20));
        let best: Vec<Winner> = (start..start + length)
            .map(|row| candidate(winner(row), &views, dice))
            .collect();
        let expected = (start..).zip(&best).map(|(row, b)| winner(row).or(*b));
        let expected = expected.collect();
        let question = Question::BatchMasked {
            keys: ring(&keys, start, length),
            best,
            preset: preset_mask(schema.key_words(), dice),
        };
        questions.push((question, expected));
        for _ in 0..2 {
            let row = dice.below(keys.len());
            let keys = ring(&keys, row, 1);
            questions.push((Question::Trace { keys }, vec![winner(row)]));
        }
        questions
    }

    /// Returns a header that matches the rule. Tries up to five headers to find one for
    /// which the rule wins.
    fn won_by(&self, rule: RuleRef<'_>, dice: &mut dyn Dice) -> Vec<u128> {
        let mut header = draw_member(self.oracle.schema(), rule, dice);
        for _ in 0..4 {
            let mut key = KeyVec::new(self.oracle.schema());
            key.push(&header).expect("a header of the schema");
            if self.oracle.winner(key.key(0)) == rule.winner() {
                break;
            }
            header = draw_member(self.oracle.schema(), rule, dice);
        }
        header
    }

    /// Builds the report of a wrong answer, with a scenario that repeats it. Makes the
    /// scenario small if requested.
    fn disagreement(&self, wrong: Found<'_>, progress: &mut dyn Progress) -> Disagreement {
        let (initial, history) = match wrong.built_over {
            Some(rules) => (rules, Vec::new()),
            None => (self.initial.clone(), self.history.clone()),
        };
        let scenario = Scenario {
            schema: Arc::clone(self.oracle.schema()),
            limits: *self.oracle.limits(),
            initial,
            history,
            question: wrong.question,
        };
        let disagreement = Disagreement {
            subject: wrong.subject.name().to_owned(),
            seed: self.options.seed,
            step: self.history.len(),
            finding: wrong.finding,
            scenario,
            minimal: false,
        };
        if self.options.minimise {
            disagreement.minimised(wrong.subject, progress)
        } else {
            disagreement
        }
    }
}

fn ask_all(
    questions: &Questions,
    classifier: &dyn Classifier,
    oracle: &Oracle,
    scratch: &mut Scratch,
    counters: &mut Counters,
) -> Result<(), Box<(Question, Finding)>> {
    for (question, expected) in questions {
        ask(question, expected, classifier, oracle, scratch, counters)
            .map_err(|finding| Box::new((question.clone(), finding)))?;
    }
    Ok(())
}

/// Returns a random candidate: none, the winner, a minimally better or worse candidate, the
/// best or worst possible candidate, or another rule.
fn candidate(winner: Winner, rules: &[RuleRef<'_>], dice: &mut dyn Dice) -> Winner {
    let (priority, id) = match (winner.priority(), winner.rule()) {
        (Some(priority), Some(id)) => (priority.0, id.get()),
        _ => (1, 500),
    };
    let make = |priority, id: u32| {
        let id = RuleId::new(id).unwrap_or(RuleId::MAX);
        Winner::new(Priority(priority), id)
    };
    match dice.below(10) {
        0 | 1 => Winner::MISS,
        2 => winner,
        3 => make(priority.saturating_add(1), RuleId::MAX.get()),
        4 => make(priority.saturating_sub(1), 0),
        5 => make(priority, id.saturating_sub(1)),
        6 => make(priority, id.saturating_add(1)),
        7 => make(u32::MAX, 0),
        8 => make(0, RuleId::MAX.get()),
        _ if rules.is_empty() => Winner::MISS,
        _ => dice.pick(rules).winner(),
    }
}

/// Returns the bits to set in a mask before a lookup: usually none.
fn preset_mask(words: usize, dice: &mut dyn Dice) -> Vec<u64> {
    let is_clear = !dice.one_in(4);
    let word = |dice: &mut dyn Dice| match is_clear {
        true => 0,
        false => dice.word() & dice.word(),
    };
    (0..words).map(|_| word(dice)).collect()
}
