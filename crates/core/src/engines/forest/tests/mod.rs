//! Tests of a forest as a whole.

use std::sync::Arc;

use super::index::Forest;
use super::lookup::LookupConfig;
use super::rows::RowShape;
use super::settings::{NAME, Settings};
use crate::contract::adapter::opened::DynamicAdapter;
use crate::contract::classifier::Limits;
use crate::model::schema::Schema;
use crate::parts::simd::Isa;

mod adoption;
mod capacity;
mod conflicts;
mod masks;
mod replacing;

/// Returns an empty forest for IPv4 rules, without vectors.
fn forest(most: usize, seed: u64) -> Forest<2> {
    let settings = Settings {
        target: 2,
        most,
        seed,
        without: None,
    };
    let lookup = LookupConfig {
        probing: Isa::Scalar,
        comparing: Isa::Scalar,
        prefetch: false,
    };
    Forest::new(
        RowShape::new(&Schema::ipv4_5tuple(), None),
        settings,
        lookup,
    )
}

type Engine = DynamicAdapter<2, Forest<2>>;

fn engine(forest: Forest<2>) -> Engine {
    let schema = Arc::clone(forest.schema());
    Engine::new(forest, NAME, &schema, &Limits::default())
}
