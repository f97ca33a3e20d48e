//! `classyard bench --mixed`: concurrent lookups and updates.

use std::io::{self, Write};
use std::time::Duration;

use classyard::table::MAX_PENDING;
use classyard_report::failure::Failure;
use classyard_report::output::style::counted;
use classyard_report::output::{Report, csv};
use classyard_report::reporter::Reporter;
use classyard_report::run::Run;
use serde::Serialize;

use super::output::{BenchReport, write_rows};
use super::{Args, subjects};
use crate::bench::{
    CpuPair, CpuPinning, MixedPlan, MixedRow, Rate, measure_mixed, write_mixed_csv,
    write_mixed_table,
};

#[derive(Debug, clap::Args)]
pub(super) struct MixedArgs {
    /// Measure one reader and one writer at the same time instead, for each of these
    /// rates: updates per second, or max
    ///
    /// The reader looks up headers in batches of 256 as fast as it can, through the
    /// live table. The writer removes, inserts and modifies rules; about a sixteenth
    /// of the rules is removed at any time. Needs two idle processors.
    #[arg(
        long,
        num_args = 0..=1,
        value_delimiter = ',',
        default_missing_value = "0,10k,100k,1M,max",
        value_parser = Rate::parse,
        conflicts_with_all = ["updates", "peers", "expected"],
        value_name = "RATES",
        help_heading = "Mixed load"
    )]
    pub(super) mixed: Option<Vec<Rate>>,

    /// Updates per transaction at all rates. By default 1 up to 10k updates a second;
    /// above, enough for 10k transactions a second, at most 100
    #[arg(
        long,
        value_parser = transaction,
        requires = "mixed",
        value_name = "COUNT",
        help_heading = "Mixed load"
    )]
    transaction: Option<usize>,

    /// Duration of each run in seconds
    #[arg(
        long,
        default_value = "1",
        value_parser = seconds,
        requires = "mixed",
        value_name = "SECONDS",
        help_heading = "Mixed load"
    )]
    seconds: Duration,

    /// The publish interval: minimum time between publications of accepted updates.
    /// 0, or a number with its unit, such as 500us, 10ms or 1s
    ///
    /// After each publication the reader's caches are cold. With 0, every transaction
    /// is published as soon as no reader uses the old version.
    #[arg(
        long,
        // Its former name.
        alias = "hold",
        default_value = "0",
        value_parser = publish_interval,
        requires = "mixed",
        value_name = "TIME",
        help_heading = "Mixed load"
    )]
    publish_interval: Duration,

    /// The processors of reader and writer, such as 2,3; auto chooses two of
    /// different cores, any leaves the choice to the system
    #[arg(
        long,
        default_value = "auto",
        value_parser = CpuPinning::parse,
        requires = "mixed",
        value_name = "READER,WRITER",
        help_heading = "Mixed load"
    )]
    processors: CpuPinning,
}

/// The duration of a run in a smoke test.
const QUICK_RUN: Duration = Duration::from_millis(50);

/// The shortest and the longest run, in seconds.
const SHORTEST_RUN: f64 = 0.001;
const LONGEST_RUN: f64 = 3_600.0;

/// A thread with a smaller share of CPU time had to share its processor.
const FULL_SHARE: f64 = 0.9;

/// Parses a transaction's size, for the argument parser.
fn transaction(text: &str) -> Result<usize, String> {
    match classyard_report::input::count(text)? {
        size if (1..=MAX_PENDING).contains(&size) => Ok(size),
        size => Err(format!(
            "{size} updates are not a valid transaction; expected 1 to {MAX_PENDING}"
        )),
    }
}

/// Parses a time, for the argument parser.
fn seconds(text: &str) -> Result<Duration, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (SHORTEST_RUN..=LONGEST_RUN).contains(&seconds) => {
            Ok(Duration::from_secs_f64(seconds))
        }
        _ => Err(format!(
            "`{text}` is not a time; expected seconds from {SHORTEST_RUN} to {LONGEST_RUN}"
        )),
    }
}

/// Parses a publish interval, for the argument parser.
fn publish_interval(text: &str) -> Result<Duration, String> {
    if text == "0" {
        return Ok(Duration::ZERO);
    }
    let units = [("us", 1e-6), ("ms", 1e-3), ("s", 1.0)];
    let seconds = units.iter().find_map(|(unit, seconds)| {
        let number = text.strip_suffix(unit)?.parse::<f64>().ok()?;
        Some(number * seconds)
    });
    match seconds {
        Some(seconds) if (0.0..=LONGEST_RUN).contains(&seconds) => {
            Ok(Duration::from_secs_f64(seconds))
        }
        _ => Err(format!(
            "`{text}` is not a time; expected 0 or a number with its unit such as 500us, 10ms or \
             1s, up to {LONGEST_RUN}s"
        )),
    }
}

#[derive(Serialize)]
#[serde(transparent)]
struct Results(Vec<MixedRow>);

impl Report for Results {
    fn table(&self, out: &mut dyn Write) -> io::Result<()> {
        write_mixed_table(&self.0, out)
    }

    fn csv(&self, out: &mut csv::Writer<'_>) -> io::Result<()> {
        write_mixed_csv(&self.0, out)
    }
}

impl BenchReport for Results {
    fn json(&self, run: &Run, out: &mut dyn Write) -> io::Result<()> {
        write_rows(&self.0, run, out)
    }
}

/// Measures at these rates.
pub(super) fn run(args: &Args, rates: &[Rate], reporter: Reporter) -> Result<(), Failure> {
    let engines = args.engines();
    if let Some(engine) = engines.iter().find(|spec| !spec.is_dynamic()) {
        return Err(classyard::engine::takes_no_updates(&engine.to_string()).into());
    }
    let plan = MixedPlan {
        rates: rates.to_vec(),
        transaction: args.mixed.transaction,
        duration: if args.quick {
            args.mixed.seconds.min(QUICK_RUN)
        } else {
            args.mixed.seconds
        },
        publish_interval: args.mixed.publish_interval,
        repeats: args.repeats(),
        changes: args.changes(),
        seed: args.seed,
        processors: args.mixed.processors.choose().map_err(Failure::usage)?,
        reoptimise: args.reoptimise,
    };
    announce(&plan, args, reporter);
    let mut sink = args.output.begin(args.seed, reporter)?;
    let mut rows = Vec::new();
    for subject in subjects(args, reporter)? {
        let subject = subject.load(args, args.headers(), reporter)?;
        if subject.policy.is_empty() {
            let message = format!("{} has no rules, so there are none to update", subject.name);
            return Err(Failure::usage(message));
        }
        let mut progress = reporter.progress();
        let measured = measure_mixed(&subject, &engines, &plan, &mut progress)?;
        drop(progress);
        for row in &measured {
            sink.row(row)?;
        }
        rows.extend(measured);
    }
    warn_of_shared_processors(&rows, reporter);
    let wrong = rows.iter().any(|row| row.wrong > 0);
    sink.end(&Results(rows))?;
    if wrong {
        return Err(Failure::Different);
    }
    Ok(())
}

/// Notes the processors that the threads run on.
fn announce(plan: &MixedPlan, args: &Args, reporter: Reporter) {
    match plan.processors {
        Some(pair) if CpuPair::share_a_core(pair) => reporter.warn(&format!(
            "processors {pair} are threads of one core: reader and writer slow each other down"
        )),
        Some(pair) => reporter.note(&format!(
            "reader and writer run on processors {pair}{}",
            match args.quick {
                true => "; the runs of a smoke test are too short to mean anything",
                false => "",
            }
        )),
        None => {}
    }
}

/// Warns if a thread had to share its processor.
fn warn_of_shared_processors(rows: &[MixedRow], reporter: Reporter) {
    let shared: Vec<&MixedRow> = rows
        .iter()
        .filter(|row| row.least_cpu_share() < FULL_SHARE)
        .collect();
    let by_cpu_share = |one: &&&MixedRow, other: &&&MixedRow| {
        one.least_cpu_share().total_cmp(&other.least_cpu_share())
    };
    let Some(worst) = shared.iter().min_by(by_cpu_share) else {
        return;
    };
    reporter.warn(&format!(
        "in {} of {} a thread ran for less than {:.0}% of the time \
         (worst: {:.0}%, {} on {} at {}): these rates and latencies are unreliable; \
         they need two idle processors",
        shared.len(),
        counted(rows.len(), "measurement"),
        100.0 * FULL_SHARE,
        100.0 * worst.least_cpu_share(),
        worst.engine,
        worst.set,
        worst.target,
    ));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_transactions_are_read() {
        assert_eq!(seconds("0.05"), Ok(Duration::from_millis(50)));
        for bad in ["", "0", "-1", "nan", "inf", "3601", "1s"] {
            assert!(seconds(bad).unwrap_err().contains("is not a time"), "{bad}");
        }
        assert_eq!(publish_interval("0"), Ok(Duration::ZERO));
        assert_eq!(publish_interval("0.5us"), Ok(Duration::from_nanos(500)));
        assert_eq!(publish_interval("10ms"), Ok(Duration::from_millis(10)));
        assert_eq!(publish_interval("2s"), Ok(Duration::from_secs(2)));
        for bad in ["", "10", "ms", "-1ms", "nans", "10 m", "3601s"] {
            assert!(
                publish_interval(bad).unwrap_err().contains("is not a time"),
                "{bad}"
            );
        }
        assert_eq!(transaction("10k"), Ok(10_000));
        assert!(transaction("0").unwrap_err().contains("1 to 65536"));
        assert!(transaction("65537").unwrap_err().contains("1 to 65536"));
        assert!(transaction("x").unwrap_err().contains("is not a count"));
    }
}
