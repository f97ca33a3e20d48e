//! `bench --reoptimise`: growth, re-optimisation in place, and a full rebuild.

use std::io::{self, Write};

use classyard_report::failure::Failure;
use classyard_report::input::family::named_sets;
use classyard_report::reporter::Reporter;
use classyard_report::run::Run;

use super::output::{BenchReport, write_rows};
use super::{Args, profile_names};
use crate::bench::{ReoptimisePlan, ReoptimiseResults, measure_reoptimising};

/// The default number of headers.
const DEFAULT_HEADERS: usize = 100_000;

impl BenchReport for ReoptimiseResults {
    fn json(&self, run: &Run, out: &mut dyn Write) -> io::Result<()> {
        write_rows(&self.0, run, out)
    }
}

pub(super) fn run(args: &Args, reporter: Reporter) -> Result<(), Failure> {
    if let Some(path) = args.rules.path() {
        return Err(Failure::usage(format!(
            "--reoptimise grows generated rule sets and reads no {}; with --mixed it does",
            path.display()
        )));
    }
    let plan = ReoptimisePlan {
        engines: args.engines(),
        sets: named_sets(args.family, &profile_names(args))?,
        sizes: args.sizes.clone(),
        headers: args.limited(args.headers.unwrap_or(DEFAULT_HEADERS)),
        seed: args.seed,
        repeats: args.repeats(),
        update_repeats: args.repeats().min(3),
    };
    let mut sink = args.output.begin(args.seed, reporter)?;
    let mut finished = |row: &_| sink.row(row);
    let results = measure_reoptimising(&plan, &mut reporter.progress(), &mut finished)?;
    sink.end(&results)?;
    if results.any_wrong() {
        return Err(Failure::Different);
    }
    Ok(())
}
