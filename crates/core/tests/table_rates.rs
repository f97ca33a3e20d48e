//! How fast a live table is: changes with and without readers, batches with and
//! without a writer. Prints figures and checks none; run by hand:
//!
//! ```text
//! cargo test --release -p classyard --test table_rates -- --ignored --nocapture
//! ```

// Figures are printed.
#![allow(clippy::print_stdout)]

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use classyard::*;

mod table_kit;

use table_kit::{Dice, id};

const RULES: u32 = 65_536;
const TIME: Duration = Duration::from_secs(2);

/// A rule as access lists have them: prefixes of a few lengths, few ports.
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
    let priority = Priority(RULES - number);
    Rule::new(
        &Schema::ipv4_5tuple(),
        id(number),
        priority,
        ActionId(0),
        &matches,
    )
    .unwrap()
}

/// What a run of some seconds came to.
struct Rates {
    changes: f64,
    batches: f64,
    /// Batches that took longest, in microseconds: of a thousand, and of all.
    slow: f64,
    slowest: f64,
    versions: u64,
}

/// Runs a writer that makes so many changes in a transaction, or none, beside
/// so many readers, for [`TIME`].
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
    let (mut times, versions) = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..readers)
            .map(|_| {
                scope.spawn(|| {
                    let mut reader = table.reader();
                    let mut scratch = Scratch::new();
                    let mut winners = vec![Winner::MISS; BATCH];
                    let (mut times, mut versions, mut last) = (Vec::new(), 0, None);
                    while !over.load(Ordering::Relaxed) {
                        for keys in keys.batches(BATCH) {
                            winners.fill(Winner::MISS);
                            let start = Instant::now();
                            let seen = reader.classify_batch(keys, &mut winners, &mut scratch);
                            times.push(start.elapsed());
                            versions += u64::from(last.replace(seen) != Some(seen));
                        }
                        batches.fetch_add(64, Ordering::Relaxed);
                    }
                    (times, versions)
                })
            })
            .collect();
        while start.elapsed() < TIME {
            if transaction == 0 {
                std::thread::sleep(Duration::from_millis(10));
                continue;
            }
            for _ in 0..100 {
                let mut list = Transaction::new();
                for _ in 0..transaction {
                    list.modify(rules[dice.below(rules.len())].view());
                }
                writer.apply(&list).unwrap();
                changes += transaction;
            }
        }
        writer.publish();
        over.store(true, Ordering::Relaxed);
        let (mut times, mut versions) = (Vec::new(), 0);
        for thread in threads {
            let (t, v) = thread.join().unwrap();
            times.extend(t);
            versions += v;
        }
        (times, versions)
    });
    let seconds = start.elapsed().as_secs_f64();
    times.sort_unstable();
    let micros = |time: Option<&Duration>| time.map_or(0.0, |time| time.as_secs_f64() * 1e6);
    #[allow(clippy::cast_precision_loss)]
    Rates {
        changes: changes as f64 / seconds,
        batches: batches.load(Ordering::Relaxed) as f64 / seconds,
        slow: micros(times.get(times.len() * 999 / 1000)),
        slowest: micros(times.last()),
        versions,
    }
}

#[test]
#[ignore = "prints rates and takes long"]
fn rates() {
    let mut dice = Dice(1);
    let rules: Vec<Rule> = (0..RULES).map(|number| rule(number, &mut dice)).collect();
    for (transaction, readers) in [(1, 0), (10, 0), (0, 1), (1, 1), (10, 1)] {
        let rates = run(&rules, transaction, readers);
        println!(
            "{transaction:2} changes a transaction, {readers} readers: {:9.0} changes/s, \
             {:7.0} batches/s, 99.9% under {:.0} us, all under {:.0} us, {} versions seen",
            rates.changes, rates.batches, rates.slow, rates.slowest, rates.versions,
        );
    }
}
