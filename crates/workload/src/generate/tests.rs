use std::sync::Arc;

use classyard::NoProgress;

use super::compare::Summary;
use super::*;

mod originals;

fn built_in(name: &str) -> Arc<Profile> {
    Arc::new(Profile::built_in(name).unwrap().clone())
}

#[test]
#[ignore = "prints a table for people; run with --ignored --nocapture"]
fn the_built_in_profiles() {
    for (smoothing, scope) in [(0, 0.0), (2, 0.5)] {
        for name in Profile::BUILT_IN {
            for rules in [1000, 10_000, 64_000] {
                let mut recipe = Recipe::new(Family::Ipv4(built_in(name)), rules, 1);
                recipe.config.smoothing = smoothing;
                recipe.config.address_scope = scope;
                recipe.config.port_scope = -scope / 5.0;
                let policy = match generate(&recipe, &mut NoProgress) {
                    Ok(policy) => policy,
                    Err(error) => {
                        eprintln!("{smoothing} {name} {rules}: {error}");
                        continue;
                    }
                };
                let s = Summary::of(&policy.parts()[0], 20_000_000 / rules, 1);
                eprintln!(
                    "{smoothing} {name} {rules}: tuples {} sources {} destinations {} pairs {} matches {:.2}",
                    s.tuples, s.sources, s.destinations, s.address_pairs, s.matches
                );
            }
        }
    }
}
