//! `bench --hostile`: worst cases beside friendly ones.

use super::{Args, profile_names};
use crate::bench::hostile;
use crate::failure::Failure;
use crate::input::family::{hostile_sets, profile};
use crate::talk::Talk;

/// Headers of a measurement, fewer than elsewhere because lookups may take
/// microseconds.
const HEADERS: usize = 20_000;

pub(super) fn run(args: &Args, talk: Talk) -> Result<(), Failure> {
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
        headers: args.limited(args.headers.unwrap_or(HEADERS)),
        seed: args.seed,
        repeats: args.repeats(),
        update_repeats: args.repeats().min(3),
        changes: args.changes.map(|changes| args.limited(changes)),
    };
    let results = hostile::measure(&plan, &mut talk.progress())?;
    args.output.report(&results)?;
    if results.any_wrong() {
        return Err(Failure::Different);
    }
    Ok(())
}
