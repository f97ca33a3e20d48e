//! Compares the datapath with the reference interpreter for a number of packets: `cargo
//! run --release -p classyard-reference --example equivalence -- --packets 100000000`.
//!
//! Progress goes to standard error if it is a terminal, the summary to standard output.
//! The exit code is 1 after the first difference, which is reported with the seed that
//! repeats it: `--seed SEED --packets 1`.

#![allow(clippy::print_stdout, clippy::print_stderr)]

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use classyard_reference::equivalence::{Options, Summary, run_seed};

const USAGE: &str = "usage: equivalence [--packets N] [--threads N] [--seed FIRST]";

/// The command line's options.
struct Wanted {
    packets: u64,
    threads: u64,
    seed: u64,
}

fn wanted() -> Result<Wanted, String> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let mut numbers = BTreeMap::from([
        ("--packets".to_owned(), 1_000_000),
        ("--threads".to_owned(), threads as u64),
        ("--seed".to_owned(), 0),
    ]);
    let mut arguments = std::env::args().skip(1);
    while let Some(name) = arguments.next() {
        let number = numbers.get_mut(&name);
        let number = number.ok_or_else(|| format!("`{name}` is no option"))?;
        let text = arguments.next().unwrap_or_default();
        *number = text
            .replace('_', "")
            .parse()
            .map_err(|_| format!("{name}: `{text}` is no number"))?;
    }
    Ok(Wanted {
        packets: numbers["--packets"],
        threads: numbers["--threads"].max(1),
        seed: numbers["--seed"],
    })
}

/// The sum of all threads' summaries, and the first difference.
struct Progress {
    next: AtomicU64,
    ends: AtomicBool,
    all: Mutex<Summary>,
    found: Mutex<Option<String>>,
}

impl Progress {
    fn work(&self, packets: u64) {
        // Long-lived worlds: more packets for each world that is built.
        let options = Options {
            steps: 150,
            vectors: 12,
            ..Options::default()
        };
        while !self.ends.load(Ordering::Relaxed) {
            let seed = self.next.fetch_add(1, Ordering::Relaxed);
            let run = catch_unwind(AssertUnwindSafe(|| run_seed(seed, &options)));
            let run = run.unwrap_or_else(|_| Err(format!("seed {seed}: a panic, as said above")));
            match run {
                Ok(summary) => {
                    let mut total = self.all.lock().expect("no panic");
                    total.add(&summary);
                    if total.packets >= packets {
                        self.ends.store(true, Ordering::Relaxed);
                    }
                }
                Err(difference) => {
                    let mut first = self.found.lock().expect("no panic");
                    first.get_or_insert(difference);
                    self.ends.store(true, Ordering::Relaxed);
                }
            }
        }
    }

    fn line(&self, begun: Instant) -> String {
        let total = self.all.lock().expect("no panic");
        let seconds = begun.elapsed().as_secs_f64();
        format!(
            "packets={} messages={} seconds={seconds:.1}",
            total.packets, total.messages
        )
    }
}

fn main() -> ExitCode {
    let wanted = match wanted() {
        Ok(wanted) => wanted,
        Err(problem) => {
            eprintln!("{problem}\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    let progress = Progress {
        next: AtomicU64::new(wanted.seed),
        ends: AtomicBool::new(false),
        all: Mutex::default(),
        found: Mutex::default(),
    };
    let begun = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..wanted.threads {
            scope.spawn(|| progress.work(wanted.packets));
        }
        let is_terminal = std::io::stderr().is_terminal();
        while is_terminal && !progress.ends.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(200));
            eprint!("\r{} ", progress.line(begun));
        }
        if is_terminal {
            eprintln!();
        }
    });
    let difference = progress.found.lock().expect("no panic").take();
    let total = progress.all.lock().expect("no panic").clone();
    let codes = |counts: Vec<String>| counts.join(",");
    println!(
        "{} events={} worlds={} entries_most={} limited_actions={} limited_copies={} refused={} \
         removed={} differences={}",
        {
            let seconds = begun.elapsed().as_secs_f64();
            format!(
                "packets={} messages={} seconds={seconds:.1}",
                total.packets, total.messages
            )
        },
        total.events,
        progress.next.load(Ordering::Relaxed) - wanted.seed,
        total.entries,
        total.limited_actions,
        total.limited_copies,
        codes(
            total
                .refused
                .iter()
                .map(|(code, times)| format!("{code}:{times}"))
                .collect()
        ),
        codes(
            total
                .removed
                .iter()
                .map(|(code, times)| format!("{code}:{times}"))
                .collect()
        ),
        u8::from(difference.is_some()),
    );
    match difference {
        None => ExitCode::SUCCESS,
        Some(difference) => {
            eprintln!("{difference}");
            ExitCode::FAILURE
        }
    }
}
