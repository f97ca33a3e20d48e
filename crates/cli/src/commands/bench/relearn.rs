//! `bench --relearn`: growth, learning again in place, and reorganising.

use super::{Args, profile_names};
use crate::bench::{RelearnPlan, measure_relearning};
use crate::failure::Failure;
use crate::input::family::profile;
use crate::talk::Talk;

/// Headers of a measurement.
const HEADERS: usize = 100_000;

pub(super) fn run(args: &Args, talk: Talk) -> Result<(), Failure> {
    let sets: Result<Vec<_>, Failure> = profile_names(args)
        .into_iter()
        .map(|name| Ok((name.to_owned(), args.family.with(profile(name)?, 0.5))))
        .collect();
    let plan = RelearnPlan {
        engines: args.engines(),
        sets: sets?,
        sizes: args.sizes.clone(),
        headers: args.limited(args.headers.unwrap_or(HEADERS)),
        seed: args.seed,
        repeats: args.repeats(),
        update_repeats: args.repeats().min(3),
    };
    let results = measure_relearning(&plan, &mut talk.progress())?;
    args.output.report(&results)?;
    if results.any_wrong() {
        return Err(Failure::Different);
    }
    Ok(())
}
