//! What it would cost.

#![allow(clippy::cast_precision_loss)] // estimates

use super::{Decomposition, Tuning, check_rules};
use crate::engine::EngineSpec;
use crate::engine::ranked::RankedRules;
use crate::error::BuildError;
use crate::estimate::{Estimate, Shape, nanoseconds, prefetched_line_ns, whole};
use crate::limits::Limits;
use crate::monitor::unwatched;

// Prices in nanoseconds; what they were fitted to: see `estimate`.
/// A lookup besides what follows.
const LOOKUP_NS: f64 = 10.0;
/// Searching a field.
const FIELD_NS: f64 = 3.0;
/// Copying a rule, and sorting each of its fields.
const COPY_NS: f64 = 60.0;
const SORT_NS: f64 = 200.0;

pub(super) fn estimate(spec: &EngineSpec, shape: &Shape) -> Result<Estimate, BuildError> {
    check_rules(shape.rules())?;
    let (schema, rules) = (shape.schema(), shape.rules());
    let sample = shape.some_of_sample(rules);
    let built = unwatched(|monitor| {
        let limits = Limits::default();
        Decomposition::new(&sample, spec.options(), &limits, Tuning::default(), monitor)
    });
    let times = rules as f64 / sample.len().max(1) as f64;
    let copy = RankedRules::bytes_of(schema, rules);
    let bytes = copy.saturating_add(whole(built.shared.bytes() as f64 * times));
    let fields = schema.fields().len() as f64;
    Ok(Estimate {
        bytes,
        build: nanoseconds(rules as f64 * (COPY_NS + SORT_NS * fields)),
        lookup_ns: LOOKUP_NS
            + built.shared.fields.len() as f64 * FIELD_NS
            + 2.0 * prefetched_line_ns(bytes),
        update_ns: None,
    })
}
