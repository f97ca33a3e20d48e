//! `bench --hostile`: worst cases compared with friendly ones.

use std::io::{self, Write};

use classyard_report::failure::Failure;
use classyard_report::input::family::{hostile_sets, profile};
use classyard_report::output::json;
use classyard_report::reporter::Reporter;
use classyard_report::run::Run;

use super::output::{BenchReport, WithRun};
use super::{Args, profile_names};
use crate::bench::hostile;

/// The default number of headers, smaller than elsewhere because lookups may take
/// microseconds.
const DEFAULT_HEADERS: usize = 20_000;

impl BenchReport for hostile::Results {
    fn json(&self, run: &Run, out: &mut dyn Write) -> io::Result<()> {
        json::write(&WithRun { what: self, run }, out)
    }
}

pub(super) fn run(args: &Args, reporter: Reporter) -> Result<(), Failure> {
    let friendly: Result<Vec<_>, Failure> = profile_names(args)
        .into_iter()
        .map(|name| Ok((name.to_owned(), profile(name)?)))
        .collect();
    let plan = hostile::Plan {
        engines: args.engines(),
        sets: hostile_sets(&args.hostile)?,
        friendly: friendly?,
        sizes: args.sizes.clone(),
        kinds: args.traffic.clone(),
        headers: args.limited(args.headers.unwrap_or(DEFAULT_HEADERS)),
        seed: args.seed,
        repeats: args.repeats(),
        update_repeats: args.repeats().min(3),
        changes: args.changes.map(|changes| args.limited(changes)),
    };
    let mut sink = args.output.begin(args.seed, reporter)?;
    let mut finished = |row: hostile::HostileRow<'_>| sink.row(&row);
    let results = hostile::measure(&plan, &mut reporter.progress(), &mut finished)?;
    sink.end(&results)?;
    if results.any_wrong() {
        return Err(Failure::Different);
    }
    Ok(())
}
