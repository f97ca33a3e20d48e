//! Rates of a live table: changes with and without readers, batches with and
//! without a writer, actions and rules read through a guard. Prints figures and
//! checks none; run manually:
//!
//! ```text
//! cargo test --release -p classyard --test table_rates -- --ignored --nocapture
//! ```

// Prints figures.
#![allow(clippy::print_stdout)]

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use classyard::classifier::BATCH;
use classyard::*;

mod table_kit;

use table_kit::{Dice, id};

const RULE_COUNT: u32 = 65_536;
const RUN_TIME: Duration = Duration::from_secs(2);

/// Returns a typical rule of an access list: prefixes of a few lengths, few
/// ports.
fn rule(number: u32, dice: &mut Dice) -> Rule {
    let mut prefix = |lengths: [u32; 4]| FieldMatch::Prefix {
        value: u128::from(dice.roll() % (1 << 32)),
        length: lengths[dice.below(4)],
    };
    let (src, dst) = (prefix([0, 16, 24, 32]), prefix([16, 24, 28, 32]));
    let matches = [
        src,
        dst,
        FieldMatch::Any,
        match dice.below(4) {
            0 => FieldMatch::Any,
            1 => FieldMatch::Range {
                low: 1024,
                high: 65_535,
            },
            _ => FieldMatch::Exact(u128::from(dice.roll() % 1024)),
        },
        FieldMatch::Exact([6, 17][dice.below(2)]),
    ];
    let priority = Priority(RULE_COUNT - number);
    Rule::new(
        &Schema::ipv4_5tuple(),
        id(number),
        priority,
        ActionId(0),
        &matches,
    )
    .unwrap()
}

/// Returns the CPU seconds of this thread, or elapsed seconds if the system
/// does not report CPU time. Other processes increase elapsed time.
fn run_time(start: Instant) -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanoseconds = text
        .split(' ')
        .next()
        .and_then(|number| number.parse().ok());
    nanoseconds.map_or(start.elapsed().as_secs_f64(), |ns: f64| ns / 1e9)
}

/// The results of a run of some seconds.
struct Rates {
    changes: f64,
    batches: f64,
    /// Rates per CPU second of the thread.
    changes_run: f64,
    batches_run: f64,
    /// Longest times of a batch in microseconds: the 99.9th percentile, and the
    /// maximum.
    slow: f64,
    slowest: f64,
    versions: u64,
}

/// Runs a writer with `transaction` changes in each transaction, or without
/// transactions, and `readers` readers, for [`RUN_TIME`].
fn run(rules: &[Rule], transaction: usize, readers: usize) -> Rates {
    let schema = Schema::ipv4_5tuple();
    let mut set = RuleSet::new(&schema);
    set.extend(rules.iter().cloned());
    let spec = EngineSpec::parse("tuplemerge").unwrap();
    let built = Table::build(&set, &spec, &Limits::default(), &mut NoProgress);
    let (mut writer, table) = built.unwrap();
    let mut dice = Dice(9);
    let mut keys = KeyVec::new(&schema);
    for _ in 0..64 * BATCH {
        let rule = rules[dice.below(rules.len())].view();
        let key: Vec<u128> = schema.field_ids().map(|field| rule.ends(field).0).collect();
        keys.push(&key).unwrap();
    }
    let (over, batches) = (AtomicBool::new(false), AtomicU64::new(0));
    let start = Instant::now();
    let mut changes = 0usize;
    let (mut times, versions, ran, batches_run) = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..readers)
            .map(|_| {
                scope.spawn(|| {
                    let mut reader = table.reader();
                    let mut scratch = Scratch::new();
                    let mut winners = vec![Winner::MISS; BATCH];
                    let (mut times, mut versions, mut last) = (Vec::new(), 0, None);
                    let (begun, mut made) = (run_time(start), 0u32);
                    while !over.load(Ordering::Relaxed) {
                        for keys in keys.batches(BATCH) {
                            winners.fill(Winner::MISS);
                            let start = Instant::now();
                            let seen = reader.classify_batch(keys, &mut winners, &mut scratch);
                            times.push(start.elapsed());
                            versions += u64::from(last.replace(seen) != Some(seen));
                        }
                        batches.fetch_add(64, Ordering::Relaxed);
                        made += 64;
                    }
                    let rate = f64::from(made) / (run_time(start) - begun);
                    (times, versions, rate)
                })
            })
            .collect();
        let begun = run_time(start);
        while start.elapsed() < RUN_TIME {
            if transaction == 0 {
                std::thread::sleep(Duration::from_millis(10));
                continue;
            }
            for _ in 0..100 {
                // Remove some rules and insert them again.
                let (mut gone, mut back) = (Transaction::new(), Transaction::new());
                let first = dice.below(rules.len() - transaction);
                for rule in &rules[first..first + transaction] {
                    gone.remove(rule.view().id());
                    back.insert(rule.view());
                }
                writer.apply(&gone).unwrap();
                writer.apply(&back).unwrap();
                changes += 2 * transaction;
            }
        }
        writer.publish();
        over.store(true, Ordering::Relaxed);
        let ran = run_time(start) - begun;
        let (mut times, mut versions, mut rate) = (Vec::new(), 0, 0.0);
        for thread in threads {
            let (t, v, r) = thread.join().unwrap();
            times.extend(t);
            versions += v;
            rate += r;
        }
        (times, versions, ran, rate)
    });
    let seconds = start.elapsed().as_secs_f64();
    times.sort_unstable();
    let micros = |time: Option<&Duration>| time.map_or(0.0, |time| time.as_secs_f64() * 1e6);
    #[allow(clippy::cast_precision_loss)]
    Rates {
        changes: changes as f64 / seconds,
        batches: batches.load(Ordering::Relaxed) as f64 / seconds,
        changes_run: changes as f64 / ran,
        batches_run,
        slow: micros(times.get(times.len() * 999 / 1000)),
        slowest: micros(times.last()),
        versions,
    }
}

/// Returns the changes per CPU second that the engine makes without a table.
fn alone(rules: &[Rule]) -> f64 {
    let mut set = RuleSet::new(&Schema::ipv4_5tuple());
    set.extend(rules.iter().cloned());
    let spec = EngineSpec::parse("tuplemerge").unwrap();
    let mut engine = spec
        .build(&set, &Limits::default(), &mut NoProgress)
        .unwrap();
    let mut dice = Dice(9);
    let start = Instant::now();
    let begun = run_time(start);
    let mut changes = 0u32;
    while start.elapsed() < RUN_TIME {
        for _ in 0..100 {
            let rule = rules[dice.below(rules.len())].view();
            let (mut gone, mut back) = (Transaction::new(), Transaction::new());
            gone.remove(rule.id());
            back.insert(rule);
            for transaction in [gone, back] {
                engine.as_dynamic().unwrap().apply(&transaction).unwrap();
                changes += 1;
            }
        }
    }
    f64::from(changes) / (run_time(start) - begun)
}

/// Prints the time to read an action and a rule, in nanoseconds each.
fn read(rules: &[Rule], engine: &str) {
    let mut set = RuleSet::new(&Schema::ipv4_5tuple());
    set.extend(rules.iter().cloned());
    let spec = EngineSpec::parse(engine).unwrap();
    let built = Table::build(&set, &spec, &Limits::default(), &mut NoProgress);
    let (_writer, table) = built.unwrap();
    let mut reader = table.reader();
    let guard = reader.pin();
    let mut dice = Dice(9);
    let winners: Vec<Winner> = (0..RULE_COUNT)
        .map(|_| rules[dice.below(rules.len())].view().winner())
        .collect();
    let time = |what: &dyn Fn() -> usize| {
        let start = Instant::now();
        let count = what();
        assert_eq!(count, rules.len());
        start.elapsed().as_nanos() / count as u128
    };
    let actions = time(&|| winners.iter().filter_map(|&w| guard.action(w)).count());
    let ids = winners.iter().filter_map(|winner| winner.rule());
    let by_id = time(&|| ids.clone().filter_map(|id| guard.rule(id)).count());
    let all_rules = time(&|| guard.rules().map(std::hint::black_box).count());
    let extra_bytes = (guard.bytes() - guard.stats().bytes()) / rules.len();
    println!(
        "{engine}: {actions} ns an action, {by_id} ns a rule by its id, {all_rules} ns a rule of all, \
         {extra_bytes} bytes a rule next to the engine"
    );
}

#[test]
#[ignore = "prints rates and takes long"]
fn rates() {
    let mut dice = Dice(1);
    let rules: Vec<Rule> = (0..RULE_COUNT)
        .map(|number| rule(number, &mut dice))
        .collect();
    println!("engine alone: {:.0} changes/s of run time", alone(&rules));
    for (transaction, readers) in [(1, 0), (10, 0), (0, 1), (1, 1), (10, 1)] {
        let rates = run(&rules, transaction, readers);
        println!(
            "{transaction:2} changes a transaction, {readers} readers: \
             {:8.0} changes/s ({:8.0} of run time), {:7.0} batches/s ({:7.0} of run time), \
             99.9% under {:.0} us, all under {:.0} us, {} versions seen",
            rates.changes,
            rates.changes_run,
            rates.batches,
            rates.batches_run,
            rates.slow,
            rates.slowest,
            rates.versions,
        );
    }
    for engine in ["tuplemerge", "forest"] {
        read(&rules, engine);
    }
}
