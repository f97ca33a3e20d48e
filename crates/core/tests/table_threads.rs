//! The live table with real threads: a writer that makes random transactions,
//! readers that look up continuously, and handles that are created and dropped.
//!
//! Every batch of every reader is compared with `linear` at exactly the version
//! that the reader pinned. Readers record the version and a digest of the
//! results. Afterwards all transactions are replayed one by one. The results
//! are the winners, their actions and cookies, and a rule read by its id;
//! sometimes also all rules.
//!
//! These tests also run under the address and thread sanitisers; see
//! `docs/live-table.md`.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use classyard::policy::PartId;
use classyard::reoptimise::LookupPlan;
use classyard::table::Version;
use classyard::*;

mod table_kit;

use table_kit::{
    Dice, Model, Owned, answers, batch, best_first, change, check_markers, digest, linear,
    transaction,
};

/// Number of possible rules; about half of them are in the table at a time.
const RULE_COUNT: u32 = 120;
/// The writer makes at least `MIN_TRANSACTIONS` transactions, and continues
/// until the readers have looked up `MIN_BATCHES` batches.
const MIN_TRANSACTIONS: usize = if cfg!(miri) { 20 } else { 6000 };
const MIN_BATCHES: usize = if cfg!(miri) { 10 } else { 2400 };

/// Publish intervals: none, or about the time of a few dozen transactions.
const PUBLISH_INTERVALS: [Duration; 2] = [Duration::ZERO, Duration::from_micros(200)];

/// One observation of a reader: the batch, the rule and the version that it
/// read, and a digest of the results.
struct Seen {
    version: u64,
    batch: usize,
    asked: u32,
    digest: u64,
    /// A digest of all rules, if it read them.
    rules: Option<u64>,
}

/// Returns a digest of a version's winners, their actions and cookies, and the
/// rule that was read.
fn digest_of(
    winners: &[Winner],
    said: &[(Option<ActionId>, Option<u64>)],
    rule: Option<Rule>,
) -> u64 {
    let said = said.iter().fold(digest(winners), |sum, (action, cookie)| {
        let action = action.map_or(u64::MAX, |action| u64::from(action.0));
        Dice(sum ^ action).roll() ^ Dice(!cookie.unwrap_or(u64::MAX)).roll()
    });
    let rule: Vec<Rule> = rule.into_iter().collect();
    Dice(said).roll() ^ digest_of_rules(&rule)
}

/// Returns a digest of all data of some rules, in order.
fn digest_of_rules(rules: &[Rule]) -> u64 {
    rules.iter().map(Rule::view).fold(1, |sum, rule| {
        let rule_numbers = [rule.winner().rank(), rule.action().0.into(), rule.cookie()];
        let numbers = rule_numbers.iter().chain(rule.words());
        numbers.fold(sum, |sum, number| Dice(sum ^ number).roll())
    })
}

/// State shared by the threads of a test.
struct Stage {
    batches: Vec<KeyVec>,
    /// Batches looked up so far.
    done: AtomicUsize,
    over: AtomicBool,
    /// Plans installed.
    adopted: AtomicUsize,
}

impl Stage {
    /// Looks up at most `max_batches` batches, until the writer is done.
    fn look(&self, reader: &mut Reader, max_batches: usize, dice: &mut Dice, seen: &mut Vec<Seen>) {
        let mut scratch = Scratch::new();
        let mut last = Version::default();
        for _ in 0..max_batches {
            if self.over.load(Ordering::Relaxed) {
                break;
            }
            let batch = dice.below(self.batches.len());
            let keys = &self.batches[batch];
            let mut winners = vec![Winner::MISS; keys.len()];
            let guard = reader.pin();
            guard.classify_batch(keys.as_slice(), &mut winners, &mut scratch);
            let version = guard.version();
            assert!(version >= last, "back from {last} to {version}");
            last = version;
            check_markers(&winners);
            let said: Vec<_> = (winners.iter())
                .map(|&winner| (guard.action(winner), guard.cookie(winner)))
                .collect();
            // A transaction gives both markers the same action.
            assert_eq!(said[0], said[1], "half a transaction");
            let asked = u32::try_from(dice.below(RULE_COUNT as usize)).unwrap();
            let rule = guard.rule(table_kit::id(asked));
            let rules = (dice.below(8) == 0).then(|| {
                let rules: Vec<Rule> = guard.rules().collect();
                digest_of_rules(&rules)
            });
            drop(guard);
            seen.push(Seen {
                version: version.transactions(),
                batch,
                asked,
                digest: digest_of(&winners, &said, rule),
                rules,
            });
            // Lets the writer run if there are few processors.
            let done = self.done.fetch_add(1, Ordering::Relaxed);
            if done.is_multiple_of(32) {
                std::thread::yield_now();
            }
        }
    }
}

/// Stops all threads of a test when the writer ends, even if a check has
/// failed.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Makes transactions until there are enough, and returns them. Installs the
/// plans from the re-optimising thread.
fn write(
    mut writer: Writer,
    mut model: Model,
    stage: &Stage,
    plans: &mpsc::Receiver<LookupPlan>,
    dice: &mut Dice,
) -> Vec<Vec<Owned>> {
    let _ends = Ends(&stage.over);
    let mut transactions = Vec::new();
    let mut published: Option<Instant> = None;
    let origin = Instant::now();
    while transactions.len() < MIN_TRANSACTIONS || stage.done.load(Ordering::Relaxed) < MIN_BATCHES
    {
        let changes = model.draw(dice);
        let (visible, start) = (writer.visible(), Instant::now());
        writer.set_now(origin.elapsed());
        let version = writer.apply(&transaction(&changes)).unwrap();
        if writer.visible() != visible {
            let last = published.replace(start);
            let passed = last.map_or(Duration::MAX, |last| last.elapsed());
            assert!(
                passed >= writer.publish_interval(),
                "published after {passed:?}"
            );
        }
        transactions.push(changes);
        assert_eq!(version.transactions(), transactions.len() as u64);
        assert_eq!(writer.rules(), model.rules.len());
        if let Ok(plan) = plans.try_recv() {
            assert!(writer.install(&plan));
            stage.adopted.fetch_add(1, Ordering::Relaxed);
        }
        match dice.below(400) {
            0 => assert_eq!(writer.publish(), version),
            1 => assert_eq!(writer.synchronize(), version),
            2 => assert_eq!(writer.rebuild(&mut NoProgress).unwrap(), version),
            3..20 => {
                writer.try_publish();
            }
            // Rare, so that most plans are installed while changes are made.
            395..400 => {
                writer.maintain(30);
            }
            20..30 => {
                writer.publish_if_due();
            }
            30..100 => std::thread::yield_now(),
            _ => {}
        }
        assert!(transactions.len() < 2_000_000, "readers do not get on");
    }
    transactions
}

fn run(spec: &EngineSpec, interval: Duration, seed: u64) -> String {
    let mut dice = Dice(seed);
    let model = Model::new(RULE_COUNT, &mut dice);
    let rules = model.rule_set();
    let limits = Limits::default();
    let (mut writer, table) = Table::build(&rules, spec, &limits, &mut NoProgress).unwrap();
    writer.set_publish_interval(interval);
    let learns = writer.drift().is_some();
    let stage = Stage {
        batches: (0..8).map(|_| batch(32, &mut dice)).collect(),
        done: AtomicUsize::new(0),
        over: AtomicBool::new(false),
        adopted: AtomicUsize::new(0),
    };
    let mut handles = 0;
    let (transactions, mut seen) = std::thread::scope(|scope| {
        let stage = &stage;
        let mut threads = Vec::new();
        for number in 0..2 {
            let mut reader = table.reader();
            threads.push(scope.spawn(move || {
                let mut seen = Vec::new();
                let mut dice = Dice(seed * 31 + number);
                stage.look(&mut reader, usize::MAX, &mut dice, &mut seen);
                seen
            }));
        }
        // One thread creates handles, uses them briefly and sends them to
        // another thread, which uses and drops them.
        let (sender, receiver) = mpsc::sync_channel::<Reader>(2);
        let table = &table;
        let maker = scope.spawn(move || {
            let mut seen = Vec::new();
            let mut dice = Dice(seed * 31 + 5);
            let mut handles = 0;
            while !stage.over.load(Ordering::Relaxed) {
                let mut reader = table.reader();
                let max_batches = dice.below(4);
                stage.look(&mut reader, max_batches, &mut dice, &mut seen);
                handles += 1;
                if dice.below(2) == 0 && sender.send(reader).is_err() {
                    break;
                }
            }
            (handles, seen)
        });
        threads.push(scope.spawn(move || {
            let mut seen = Vec::new();
            let mut dice = Dice(seed * 31 + 6);
            for mut reader in receiver {
                let max_batches = dice.below(4);
                stage.look(&mut reader, max_batches, &mut dice, &mut seen);
            }
            seen
        }));
        // One thread computes plans repeatedly.
        let (learned, plans) = mpsc::sync_channel(1);
        let mut reader = table.reader();
        scope.spawn(move || {
            while !stage.over.load(Ordering::Relaxed) {
                let plan = reader.plan(&mut NoProgress).unwrap();
                let Some(plan) = plan else { break };
                if learned.send(plan).is_err() {
                    break;
                }
            }
        });
        let transactions = write(writer, model, stage, &plans, &mut dice);
        drop(plans);
        let mut all_seen = Vec::new();
        for thread in threads {
            all_seen.extend(thread.join().unwrap());
        }
        let (count, seen) = maker.join().unwrap();
        handles = count;
        all_seen.extend(seen);
        (transactions, all_seen)
    });
    let adopted = stage.adopted.load(Ordering::Relaxed);
    assert_eq!(
        adopted > 0,
        learns && !cfg!(miri),
        "{spec}: {adopted} plans"
    );
    let versions = verify(&rules, &transactions, &mut seen, &stage.batches);
    format!(
        "{spec}, publish interval {interval:?}: {} transactions, {} batches at {versions} versions, {handles} handles, \
         {} plans adopted",
        transactions.len(),
        seen.len(),
        adopted,
    )
}

/// Replays all transactions and compares the observations with `linear`.
/// Returns the number of versions seen.
fn verify(
    rules: &RuleSet,
    transactions: &[Vec<Owned>],
    seen: &mut [Seen],
    batches: &[KeyVec],
) -> usize {
    seen.sort_by_key(|seen| (seen.version, seen.batch));
    let mut oracle = linear(rules);
    let mut model: BTreeMap<u32, Rule> = (rules.iter())
        .map(|rule| (rule.id().get(), rule.to_rule()))
        .collect();
    let (mut at, mut versions) = (0, 0);
    for group in seen.chunk_by(|a, b| a.version == b.version) {
        while at < group[0].version {
            let changes = &transactions[usize::try_from(at).unwrap()];
            let oracle = oracle.as_dynamic().unwrap();
            oracle.apply(&transaction(changes)).unwrap();
            change(&mut model, changes);
            at += 1;
        }
        versions += 1;
        let listed = group.iter().filter_map(|seen| seen.rules);
        let mut rules_digest = None;
        for seen_digest in listed {
            let expected =
                *rules_digest.get_or_insert_with(|| digest_of_rules(&best_first(&model)));
            assert_eq!(seen_digest, expected, "version {at}, all rules");
        }
        for same in group.chunk_by(|a, b| a.batch == b.batch) {
            let winners = answers(oracle.as_ref(), &batches[same[0].batch]);
            let said: Vec<_> = (winners.iter())
                .map(|winner| {
                    let rule = winner.rule().map(|id| model[&id.get()].view());
                    (
                        rule.map(|rule| rule.action()),
                        rule.map(|rule| rule.cookie()),
                    )
                })
                .collect();
            for seen in same {
                let rule = model.get(&seen.asked).cloned();
                let expected = digest_of(&winners, &said, rule);
                assert_eq!(seen.digest, expected, "version {at}, batch {}", seen.batch);
            }
        }
    }
    versions
}

// Prints the runs.
#[allow(clippy::print_stdout)]
#[test]
fn readers_see_whole_transactions_of_every_engine() {
    // It does not matter for readers which engine a wrapper has inside.
    let (alone, mut wrapping): (Vec<_>, Vec<_>) =
        EngineSpec::all().partition(|spec| spec.inner().is_none());
    wrapping.dedup_by_key(|spec| spec.engine().name);
    for (seed, spec) in (1..).zip(alone.into_iter().chain(wrapping)) {
        if spec.is_dynamic() {
            for interval in PUBLISH_INTERVALS {
                println!("{}", run(&spec, interval, seed));
            }
        } else {
            println!("{spec}: skipped, takes no updates");
        }
    }
}

/// Rules of both parts change together, and a reader sees both changes or
/// neither.
#[test]
fn readers_see_a_policys_parts_at_one_version() {
    for interval in PUBLISH_INTERVALS {
        a_policys_parts(interval);
    }
}

fn a_policys_parts(interval: Duration) {
    let schemas = [Schema::ipv4_5tuple(), Schema::ipv6_5tuple()];
    let rule = |part: usize, number: u32, priority: u64| {
        let priority = Priority(u32::try_from(priority).unwrap());
        let any = [FieldMatch::Any; 5];
        Rule::new(
            &schemas[part],
            table_kit::id(number),
            priority,
            ActionId(0),
            &any,
        )
        .unwrap()
    };
    let spec = EngineSpec::parse("tuplemerge").unwrap();
    let mut policy = Policy::dual_stack();
    let any: &[FieldMatch] = &[FieldMatch::Any; 5];
    let forms = [(PartId::from_index(0), any), (PartId::from_index(1), any)];
    policy
        .add(table_kit::id(0), Priority(0), ActionId(0), &forms)
        .unwrap();
    let built = PolicyTable::build_policy(&policy, &spec, &Limits::default(), &mut NoProgress);
    let (mut writer, table) = built.unwrap();
    writer.set_publish_interval(interval);
    let origin = Instant::now();
    let (done, over) = (AtomicUsize::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut reader = table.reader();
                while !over.load(Ordering::Relaxed) {
                    let guard = reader.pin();
                    let version = guard.version().transactions();
                    for part in 0..2 {
                        let part = guard.part(PartId::from_index(part));
                        let key = vec![0; part.schema().key_words()];
                        let winner = part.classify_one(&key);
                        let number = u32::try_from(version % 2).unwrap();
                        assert_eq!(winner.rule(), Some(table_kit::id(number)));
                        let priority = u32::try_from(version).unwrap();
                        assert_eq!(winner.priority(), Some(Priority(priority)));
                    }
                    drop(guard);
                    done.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        // Two rules alternate in both parts.
        let mut version = 0;
        while version < MIN_TRANSACTIONS as u64 || done.load(Ordering::Relaxed) < MIN_BATCHES {
            version += 1;
            let number = u32::try_from(version % 2).unwrap();
            let rules = [0, 1].map(|part| rule(part, number, version));
            let views = rules.iter().enumerate();
            let views = views.map(|(part, rule)| (PartId::from_index(part), rule.view()));
            let mut changes = PolicyTransaction::new();
            changes.remove(table_kit::id(1 - number)).insert(views);
            writer.set_now(origin.elapsed());
            let accepted = writer.apply(&changes).unwrap();
            assert_eq!((accepted.transactions(), writer.rules()), (version, 1));
            if version % 64 == 0 {
                std::thread::yield_now();
            }
        }
        over.store(true, Ordering::Relaxed);
    });
    assert_eq!(writer.publish(), writer.accepted());
    let guard_rules = table.reader().pin().parts()[1].stats().rules;
    assert_eq!(guard_rules, 1);
}
