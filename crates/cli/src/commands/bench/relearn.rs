//! `bench --relearn`: growth, learning again in place, and reorganising.

use std::io::{self, Write};

use super::output::{BenchReport, write_rows};
use super::{Args, profile_names};
use crate::bench::{RelearnPlan, RelearnResults, Run, measure_relearning};
use crate::failure::Failure;
use crate::input::family::named_sets;
use crate::talk::Talk;

/// Headers of a measurement.
const HEADERS: usize = 100_000;

impl BenchReport for RelearnResults {
    fn json(&self, run: &Run, out: &mut dyn Write) -> io::Result<()> {
        write_rows(&self.0, run, out)
    }
}

pub(super) fn run(args: &Args, talk: Talk) -> Result<(), Failure> {
    let plan = RelearnPlan {
        engines: args.engines(),
        sets: named_sets(args.family, &profile_names(args))?,
        sizes: args.sizes.clone(),
        headers: args.limited(args.headers.unwrap_or(HEADERS)),
        seed: args.seed,
        repeats: args.repeats(),
        update_repeats: args.repeats().min(3),
    };
    let mut sink = args.output.begin(args.seed, talk)?;
    let mut finished = |row: &_| sink.row(row);
    let results = measure_relearning(&plan, &mut talk.progress(), &mut finished)?;
    sink.end(&results)?;
    if results.any_wrong() {
        return Err(Failure::Different);
    }
    Ok(())
}
