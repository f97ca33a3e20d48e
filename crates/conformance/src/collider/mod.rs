//! Comparing several engines with each other, over a trace of headers.
//!
//! All engines look up the whole trace in batches and must agree. Some headers are also
//! looked up one at a time and with a mask. If there is a list of expected answers, the
//! first engine is compared with it. Then, if requested, rules are removed, replaced and
//! restored at random, and the engines must agree after each transaction. Sometimes the
//! engines are re-optimised, and install their plans with the next transactions.
//!
//! Comparing costs little more than the lookups. All rules are scanned only when two
//! answers differ, to determine which is right.

use std::ops::{ControlFlow, Range};
use std::sync::Arc;

use classyard::classifier::BATCH;
use classyard::key::unpack;
use classyard::parallel::LookupPool;
use classyard::policy::PartId;
use classyard::{
    BuildError, Classifier, EngineSpec, KeySlice, KeyVec, Limits, NoProgress, Policy, PolicyTrace,
    Progress, RuleId, Scratch, Winner,
};

use super::calls::{guarded, reoptimise, ring};
use super::differential::{Disagreement, Question, Scenario, minimise};
use super::oracle::{OwnedChange, transaction};
use super::random::{Dice, SeededDice};
use super::{Skip, Subject, text};

mod overlay;
mod report;

pub use report::{Collision, CollisionReport, Counters, EngineReport, Lookup};

use overlay::Overlay;

/// Options of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// The seed of the random updates.
    pub seed: u64,
    /// The number of headers in a batch.
    pub batch: usize,
    /// One header in `single_every` is looked up alone; 0 for none.
    pub single_every: usize,
    /// One header in `masked_every` is looked up with a mask; 0 for none.
    pub masked_every: usize,
    /// The maximum number of masks that are proved right against all rules. If there are
    /// many rules, fewer masks are proved.
    pub proofs: usize,
    /// True to compare every answer with the engine `linear`. Slow.
    pub oracle: bool,
    /// The number of random changes, in transactions, with checks after each transaction.
    pub updates: usize,
    /// The maximum number of headers that are looked up after each transaction.
    pub headers_per_update: usize,
    /// The number of threads over which the batches of one engine are split, at least 1.
    pub threads: usize,
    /// The limits of the engines.
    pub limits: Limits,
}

impl Default for Options {
    /// Returns options for all checks except the oracle and updates.
    fn default() -> Options {
        Options {
            seed: 1,
            batch: BATCH,
            single_every: 97,
            masked_every: 1009,
            proofs: 1000,
            oracle: false,
            updates: 0,
            headers_per_update: BATCH,
            threads: 1,
            limits: Limits::default(),
        }
    }
}

/// Compares engines over a trace.
///
/// `expected` has for each header the winning rule's position in file order
/// ([`Policy::ids`]), or `None` for a miss. The other engines are compared with the first
/// engine that builds, or with `linear` if [`Options::oracle`] is set. When answers differ,
/// a scan of all rules determines which engine is wrong.
///
/// # Panics
/// If the trace has other parts than the policy, or `expected` does not have one answer for
/// each header.
pub fn collide(
    policy: &Policy,
    trace: &PolicyTrace,
    expected: Option<&[Option<usize>]>,
    subjects: &[Subject],
    options: &Options,
    progress: &mut dyn Progress,
) -> CollisionReport {
    if let Some(expected) = expected {
        assert_eq!(expected.len(), trace.len(), "one answer for each header");
    }
    let oracle = options.oracle.then(|| {
        let spec = EngineSpec::parse(ORACLE_ENGINE).expect("the oracle is registered");
        Subject::from(spec)
    });
    let subjects: Vec<&Subject> = oracle.iter().chain(subjects).collect();
    let (pool, workers) = LookupPool::new(options.threads.max(1) - 1);
    std::thread::scope(|scope| {
        for worker in workers {
            scope.spawn(move || worker.run());
        }
        // Dropping the collider drops the pool, so the workers end before the scope.
        let mut collider = Collider {
            policy,
            trace,
            options,
            indices: indices(policy, trace),
            seats: Vec::new(),
            overlay: Overlay::new(policy),
            report: CollisionReport::default(),
            scratch: Scratch::new(),
            pool,
        };
        match collider.run(expected, &subjects, progress) {
            Ok(()) => {}
            Err(Stop::Asked) => collider.report.stopped = true,
            Err(Stop::Found(collision)) => collider.report.collision = Some(collision),
        }
        collider.report
    })
}

/// The engine with which every answer is compared if the oracle is requested.
const ORACLE_ENGINE: &str = "linear";

/// The average number of transactions between two re-optimisations.
const TRANSACTIONS_PER_REOPTIMISATION: usize = 64;

/// The possible numbers of steps of installing a plan that are done immediately. Later
/// updates do the other steps.
const IMMEDIATE_STEPS: [usize; 3] = [0, 100, usize::MAX];

/// Returns for each part the positions of its headers in the trace.
fn indices(policy: &Policy, trace: &PolicyTrace) -> Vec<Vec<usize>> {
    if policy.parts().len() == 1 {
        return Vec::new();
    }
    let mut indices = vec![Vec::new(); policy.parts().len()];
    for index in 0..trace.len() {
        indices[trace.part_of(index).index()].push(index);
    }
    indices
}

struct Seat<'a> {
    subject: &'a Subject,
    parts: Vec<Box<dyn Classifier>>,
}

struct Collider<'a> {
    policy: &'a Policy,
    trace: &'a PolicyTrace,
    options: &'a Options,
    /// For each part, the positions of its headers in the trace; empty if the policy has
    /// only one part.
    indices: Vec<Vec<usize>>,
    seats: Vec<Seat<'a>>,
    overlay: Overlay<'a>,
    report: CollisionReport,
    scratch: Scratch,
    pool: LookupPool,
}

enum Stop {
    Asked,
    Found(Box<Collision>),
}

/// The position of a header: a part, and a row of the part's keys.
#[derive(Clone, Copy)]
struct Place {
    part: PartId,
    row: usize,
}

/// The number of headers between two calls of the progress callback.
const HEADERS_PER_REPORT: usize = 16_384;

impl<'a> Collider<'a> {
    fn run(
        &mut self,
        expected: Option<&[Option<usize>]>,
        subjects: &[&'a Subject],
        progress: &mut dyn Progress,
    ) -> Result<(), Stop> {
        self.report.counters.headers = self.trace.len();
        for &subject in subjects {
            self.seat(subject, progress)?;
        }
        if self.seats.is_empty() {
            return Ok(());
        }
        self.compare_all(expected, progress)?;
        self.update(progress)
    }

    fn seat(&mut self, subject: &'a Subject, progress: &mut dyn Progress) -> Result<(), Stop> {
        let rules = self.policy.parts().iter();
        let built = guarded(|| {
            let parts = rules.map(|rules| subject.build(rules, &self.options.limits, progress));
            parts.collect::<Result<Vec<_>, _>>()
        });
        match built {
            Ok(Ok(parts)) => {
                self.report.engines.push(EngineReport {
                    subject: subject.name().to_owned(),
                    parts: parts.iter().map(|part| part.stats()).collect(),
                });
                self.seats.push(Seat { subject, parts });
                Ok(())
            }
            Ok(Err(BuildError::Stopped { .. })) => Err(Stop::Asked),
            Ok(Err(error)) => {
                self.skip(subject, "all lookups", &error.to_string());
                Ok(())
            }
            Err(message) => {
                let place = Place {
                    part: PartId::FIRST,
                    row: 0,
                };
                Err(self.found(
                    Lookup::Panic(message),
                    place,
                    subject,
                    None,
                    Question::Build,
                ))
            }
        }
    }

    fn skip(&mut self, subject: &Subject, what: &str, reason: &str) {
        self.report.skips.push(Skip {
            subject: subject.name().to_owned(),
            what: what.to_owned(),
            reason: reason.to_owned(),
        });
    }

    fn compare_all(
        &mut self,
        expected: Option<&[Option<usize>]>,
        progress: &mut dyn Progress,
    ) -> Result<(), Stop> {
        let (mut done, total) = (0, self.trace.len());
        for part in self.policy.part_ids() {
            let keys = self.trace.part(part).len();
            let chunk = (HEADERS_PER_REPORT / self.batch()).max(1) * self.batch();
            for start in (0..keys).step_by(chunk) {
                if let ControlFlow::Break(()) = progress.report("comparing", done, total) {
                    return Err(Stop::Asked);
                }
                let rows = start..(start + chunk).min(keys);
                done += rows.len();
                let keys = self.trace.part(part);
                let winners = self.compare_batches(part, keys, rows.clone(), 0, false)?;
                self.report.counters.misses += winners.iter().filter(|w| w.is_miss()).count();
                if let Some(expected) = expected {
                    self.compare_expected(part, rows.clone(), &winners, expected)?;
                }
                for (row, &winner) in rows.zip(&winners) {
                    let place = Place { part, row };
                    if every(self.options.single_every, row) {
                        self.compare_single(place, winner)?;
                    }
                    if every(self.options.masked_every, row) {
                        self.compare_masked(place, winner)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn batch(&self) -> usize {
        self.options.batch.max(1)
    }

    /// Looks up `rows` of `keys` with every engine or, if `dynamic`, with every engine that
    /// supports updates. Returns the winners on which all agree. `rows` must begin at the
    /// start of a batch, and end at the end of a batch or of `keys`. `keys` begin at row
    /// `offset` of the part's keys.
    fn compare_batches(
        &mut self,
        part: PartId,
        keys: &KeyVec,
        rows: Range<usize>,
        offset: usize,
        dynamic: bool,
    ) -> Result<Vec<Winner>, Stop> {
        let batch = self.batch();
        let mut reference: Option<(&Subject, Vec<Winner>)> = None;
        for seat in &self.seats {
            if dynamic && !seat.subject.is_dynamic() {
                continue;
            }
            let classifier = seat.parts[part.index()].as_ref();
            let slice = keys.as_slice().range(rows.clone());
            // The chunks of the pool are batches of `BATCH`.
            let pool = (self.options.threads > 1 && batch == BATCH).then_some(&mut self.pool);
            let answers = match batch_answers(classifier, slice, batch, pool, &mut self.scratch) {
                Ok(answers) => answers,
                Err((start, message)) => {
                    let length = batch.min(rows.len() - start);
                    let row = rows.start + start;
                    let question = batch_question(keys, row, length);
                    let row = offset + row;
                    let place = Place { part, row };
                    let lookup = Lookup::Panic(message);
                    return Err(self.found(lookup, place, seat.subject, None, question));
                }
            };
            self.report.counters.batch_lookups += answers.len();
            let Some((first, winners)) = &reference else {
                reference = Some((seat.subject, answers));
                continue;
            };
            if let Some(index) = winners.iter().zip(&answers).position(|(a, b)| a != b) {
                let truth = self.overlay.winner(part, keys.key(rows.start + index));
                let row = offset + rows.start + index;
                let place = Place { part, row };
                let wrong = if winners[index] == truth {
                    seat.subject
                } else {
                    first
                };
                let batch_start = rows.start + index / batch * batch;
                let length = batch.min(rows.end - batch_start);
                let question = batch_question(keys, batch_start, length);
                return Err(self.found(Lookup::Batch, place, wrong, None, question));
            }
        }
        Ok(reference.map(|(_, winners)| winners).unwrap_or_default())
    }

    fn compare_expected(
        &mut self,
        part: PartId,
        rows: Range<usize>,
        winners: &[Winner],
        expected: &[Option<usize>],
    ) -> Result<(), Stop> {
        for (row, winner) in rows.zip(winners) {
            let position = winner.rule().and_then(|id| self.policy.position(id));
            let place = Place { part, row };
            let expected_position = expected[self.index(place)];
            self.report.counters.expected += 1;
            if expected_position != position {
                let keys = self.trace.part(part);
                let truth = self.overlay.winner(part, keys.key(row));
                let lookup = if truth == *winner {
                    Lookup::Expected
                } else {
                    Lookup::Batch
                };
                let expected_winner = Some(self.winner_at(expected_position));
                let subject = self.seats[0].subject;
                let question = batch_question(keys, row, 1);
                return Err(self.found(lookup, place, subject, expected_winner, question));
            }
        }
        Ok(())
    }

    /// Returns the winner for a position in file order, or a miss for `None`.
    fn winner_at(&self, position: Option<usize>) -> Winner {
        let id = position.and_then(|position| self.policy.ids().get(position));
        let rule = id.and_then(|&id| self.policy.rule(id).next());
        rule.map_or(Winner::MISS, |(_, rule)| rule.winner())
    }

    fn compare_single(&mut self, place: Place, winner: Winner) -> Result<(), Stop> {
        let keys = self.trace.part(place.part);
        for seat in &self.seats {
            self.report.counters.single_lookups += 1;
            let classifier = seat.parts[place.part.index()].as_ref();
            let question = || Question::One {
                keys: ring(keys, place.row, 1),
            };
            match guarded(|| classifier.classify_one(keys.key(place.row))) {
                Ok(found) if found == winner => {}
                Ok(_) => {
                    return Err(self.found(Lookup::Single, place, seat.subject, None, question()));
                }
                Err(message) => {
                    let lookup = Lookup::Panic(message);
                    return Err(self.found(lookup, place, seat.subject, None, question()));
                }
            }
        }
        Ok(())
    }

    fn compare_masked(&mut self, place: Place, winner: Winner) -> Result<(), Stop> {
        let keys = self.trace.part(place.part);
        let key = keys.key(place.row);
        for seat in &self.seats {
            self.report.counters.masked_lookups += 1;
            let classifier = seat.parts[place.part.index()].as_ref();
            let mut mask = vec![0; key.len()];
            let question = Question::Masked {
                keys: ring(keys, place.row, 1),
                best: Winner::MISS,
                preset: mask.clone(),
                flips: None,
            };
            let answer = guarded(|| classifier.classify_masked(key, &mut mask));
            let lookup = match answer {
                Err(message) => Some(Lookup::Panic(message)),
                Ok(found) if found != winner => Some(Lookup::Masked),
                Ok(_) if self.report.counters.proofs >= self.proofs() => None,
                Ok(_) => {
                    self.report.counters.proofs += 1;
                    self.refute(place, winner, &mask)
                }
            };
            if let Some(lookup) = lookup {
                return Err(self.found(lookup, place, seat.subject, None, question));
            }
        }
        Ok(())
    }

    /// The maximum number of masks to prove right.
    fn proofs(&self) -> usize {
        let affordable = PROOF_WORK / self.policy.len().max(1);
        self.options.proofs.min(affordable.max(10))
    }

    /// Tries to prove a masked lookup wrong, by scanning all rules.
    fn refute(&self, place: Place, winner: Winner, mask: &[u64]) -> Option<Lookup> {
        let keys = self.trace.part(place.part);
        let key = keys.key(place.row);
        if self.overlay.winner(place.part, key) != winner {
            return Some(Lookup::Masked);
        }
        let escape = self.overlay.escape(place.part, key, mask)?;
        let mut escape_key = KeyVec::new(keys.schema());
        escape_key
            .push(&escape)
            .expect("made of the schema's values");
        Some(Lookup::Mask {
            mask: unpack(keys.schema(), mask),
            winner: self.overlay.winner(place.part, escape_key.key(0)),
            escape,
        })
    }

    /// Removes, replaces and restores rules at random, in transactions.
    fn update(&mut self, progress: &mut dyn Progress) -> Result<(), Stop> {
        if self.options.updates == 0 || self.policy.is_empty() {
            return Ok(());
        }
        for seat in 0..self.seats.len() {
            if !self.seats[seat].subject.is_dynamic() {
                let subject = self.seats[seat].subject;
                self.skip(subject, "updates", "the engine takes no updates");
            }
        }
        let mut dice = SeededDice::new(self.options.seed);
        // Separate random numbers for re-optimisation, so that the updates of a seed do not
        // depend on it.
        let mut moments = SeededDice::new(!self.options.seed);
        let mut changes_made = 0;
        while changes_made < self.options.updates {
            let step = progress.report("updating", changes_made, self.options.updates);
            if let ControlFlow::Break(()) = step {
                return Err(Stop::Asked);
            }
            let changes = self.overlay.draw(&mut dice);
            changes_made += changes.iter().map(Vec::len).sum::<usize>().max(1);
            self.apply(&changes)?;
            if moments.below(TRANSACTIONS_PER_REOPTIMISATION) == 0 {
                let steps = IMMEDIATE_STEPS[moments.below(IMMEDIATE_STEPS.len())];
                self.reoptimise(steps)?;
            }
            self.compare_some()?;
        }
        let restore = self.overlay.restore();
        self.apply(&restore)?;
        self.compare_some()
    }

    /// Re-optimises all engines, and immediately does `steps` steps of installing the plan.
    fn reoptimise(&mut self, steps: usize) -> Result<(), Stop> {
        for seat in 0..self.seats.len() {
            let subject = self.seats[seat].subject;
            for part in self.policy.part_ids() {
                let classifier = &mut self.seats[seat].parts[part.index()];
                let learned = guarded(|| reoptimise(classifier.as_mut(), steps));
                let message = match learned {
                    Ok(Ok(learned)) => {
                        self.report.counters.reoptimisations += usize::from(learned);
                        continue;
                    }
                    Ok(Err(error)) => error.to_string(),
                    Err(message) => message,
                };
                let place = Place { part, row: 0 };
                let lookup = Lookup::Panic(message);
                return Err(self.found(lookup, place, subject, None, Question::Reoptimise));
            }
        }
        Ok(())
    }

    /// Applies changes, one list for each part, to every engine that supports updates.
    fn apply(&mut self, changes: &[Vec<OwnedChange>]) -> Result<(), Stop> {
        self.report.counters.transactions += 1;
        self.report.counters.changes += changes.iter().map(Vec::len).sum::<usize>();
        for seat in 0..self.seats.len() {
            let subject = self.seats[seat].subject;
            if !subject.is_dynamic() {
                continue;
            }
            for (part, changes) in self.policy.part_ids().zip(changes) {
                let classifier = &mut self.seats[seat].parts[part.index()];
                let result = guarded(|| {
                    let dynamic = classifier.as_dynamic();
                    dynamic.map_or(Ok(()), |d| d.apply(&transaction(changes)))
                });
                let lookup = match result {
                    Ok(Ok(())) => continue,
                    Ok(Err(error)) => Lookup::Refused(error),
                    Err(message) => Lookup::Panic(message),
                };
                let place = Place { part, row: 0 };
                let question = Question::Apply(changes.clone());
                return Err(self.found(lookup, place, subject, None, question));
            }
        }
        Ok(())
    }

    /// Looks up some headers in every engine that supports updates, at another position of
    /// the trace in each call, and checks a few answers by scanning all rules.
    fn compare_some(&mut self) -> Result<(), Stop> {
        for part in self.policy.part_ids() {
            let keys = self.trace.part(part);
            if keys.is_empty() {
                continue;
            }
            let count = keys.len().min(self.options.headers_per_update.max(1));
            let latest = keys.len() - count;
            let start = self.report.counters.transactions * count % (latest + 1);
            let sample = ring(keys, start, count);
            let winners = self.compare_batches(part, &sample, 0..count, start, true)?;
            let stride = (count / SCANS_PER_TRANSACTION).max(1);
            for (row, &winner) in (start..).zip(&winners).step_by(stride) {
                if self.overlay.winner(part, keys.key(row)) != winner {
                    let dynamic = self.seats.iter().find(|seat| seat.subject.is_dynamic());
                    let subject = dynamic.expect("it has answered").subject;
                    let place = Place { part, row };
                    let question = batch_question(keys, row, 1);
                    return Err(self.found(Lookup::Batch, place, subject, None, question));
                }
            }
        }
        Ok(())
    }

    /// Returns the position of a header in the trace.
    fn index(&self, place: Place) -> usize {
        match self.indices.get(place.part.index()) {
            Some(indices) => indices.get(place.row).copied().unwrap_or(0),
            None => place.row,
        }
    }

    /// Collects all data to repeat a disagreement.
    fn found(
        &self,
        lookup: Lookup,
        place: Place,
        subject: &Subject,
        expected: Option<Winner>,
        question: Question,
    ) -> Stop {
        let part = place.part.index();
        let schema = self.policy.part(place.part).schema();
        let keys = self.trace.part(place.part);
        let (mut header, mut truth, mut answers) = (Vec::new(), Winner::MISS, Vec::new());
        if place.row < keys.len() {
            header = keys.header(place.row);
            truth = self.overlay.winner(place.part, keys.key(place.row));
            let key = keys.key(place.row);
            let slice = KeySlice::new(key, key.len());
            for seat in &self.seats {
                let answer = guarded(|| {
                    let mut winners = [Winner::MISS];
                    seat.parts[part].classify_batch(slice, &mut winners, &mut Scratch::new());
                    winners[0]
                });
                answers.push((seat.subject.name().to_owned(), answer));
            }
        }
        let named = answers.iter().filter_map(|(_, answer)| answer.clone().ok());
        let mut ids: Vec<RuleId> = named
            .chain([truth])
            .chain(expected)
            .filter_map(Winner::rule)
            .collect();
        ids.sort();
        ids.dedup();
        let rules = ids.into_iter().filter_map(|id| {
            let rule = self.overlay.rule(place.part, id)?;
            Some((id, text::write_rule(rule)))
        });
        let scenario = Scenario {
            schema: Arc::clone(schema),
            limits: self.options.limits,
            initial: self.overlay.rules(place.part),
            history: Vec::new(),
            question,
        };
        let kind = match &lookup {
            Lookup::Mask { .. } => "mask",
            Lookup::Panic(_) => "panic",
            Lookup::Refused(_) => "update",
            Lookup::Batch | Lookup::Single | Lookup::Masked | Lookup::Expected => "winner",
        };
        let minimal = minimise(subject, &scenario, kind, &mut NoProgress);
        Stop::Found(Box::new(Collision {
            lookup,
            index: self.index(place),
            part: place.part,
            header_text: text::write_header(schema, &header),
            header,
            subject: subject.name().to_owned(),
            answers,
            expected,
            truth,
            changes: self.report.counters.changes,
            seed: self.options.seed,
            rules: rules.collect(),
            minimal: minimal.map(|(scenario, finding)| {
                Box::new(Disagreement {
                    subject: subject.name().to_owned(),
                    seed: self.options.seed,
                    step: self.report.counters.transactions,
                    finding,
                    scenario,
                    minimal: true,
                })
            }),
        }))
    }
}

/// Looks keys up in batches, on several threads if there is a pool. Returns the position of
/// a batch and the message if the engine panics.
fn batch_answers(
    classifier: &dyn Classifier,
    keys: KeySlice<'_>,
    batch: usize,
    pool: Option<&mut LookupPool>,
    scratch: &mut Scratch,
) -> Result<Vec<Winner>, (usize, String)> {
    let mut answers = vec![Winner::MISS; keys.len()];
    let mut on_threads = None;
    if let Some(pool) = pool {
        match guarded(|| pool.classify_batch(classifier, keys, &mut answers)) {
            Ok(()) => return Ok(answers),
            // One thread repeats the lookups, to find the batch.
            Err(message) => on_threads = Some(message),
        }
    }
    for (start, winners) in (0..).step_by(batch).zip(answers.chunks_mut(batch)) {
        let slice = keys.range(start..start + winners.len());
        let looked_up = guarded(|| classifier.classify_batch(slice, winners, scratch));
        looked_up.map_err(|message| (start, message))?;
    }
    match on_threads {
        None => Ok(answers),
        Some(message) => Err((0, format!("{message}, on several threads only"))),
    }
}

/// The maximum number of rules that all proofs of masks scan together. This takes about one
/// second.
const PROOF_WORK: usize = 50_000_000;

/// The number of answers that are compared with a scan of all rules after each transaction.
const SCANS_PER_TRANSACTION: usize = 4;

/// True for every `step`-th row; never if `step` is 0.
fn every(step: usize, row: usize) -> bool {
    step > 0 && row.is_multiple_of(step)
}

fn batch_question(keys: &KeyVec, start: usize, length: usize) -> Question {
    Question::Batch {
        keys: ring(keys, start, length),
        best: vec![Winner::MISS; length],
    }
}
