//! `tss`: tuple space search with priority order and early stop.
//!
//! # Idea
//! Rules with the same mask are in one hash table, and each distinct mask has a
//! table. So no two rules of a bucket differ in their masked bits, and an update
//! touches one bucket. The cost is a probe for each table. Tables are searched in the
//! order of their best rules, and the search ends when no later table can win.
//!
//! # Data layout
//! A [tuple space](crate::parts::tuple_space), and a map from masks to tables:
//! ```text
//! by_mask  { mask → table }
//! ```
//!
//! # Lookup
//! As in a [tuple space](crate::parts::tuple_space).
//!
//! # Cost
//! Lookup: a probe for each distinct mask that could still win, at worst all. Update:
//! O(1) hash operations. Memory: linear.
//!
//! # Where we differ from the paper, and why
//! [TM19] §III.B notes that most implementations leave the ports out of the mask,
//! because ports are ranges, and some leave out further fields. Ours keeps all fields by
//! default, and of a range its shared prefix. `mask=no-ports` leaves out fields with a
//! port role, and `mask=addresses` all fields without an address role, as the simulator
//! of the paper's authors does. A schema without address roles keeps all fields. Fewer
//! fields give fewer tables and longer chains. The fastest setting depends on the rules.
//!
//! # References
//! [TM19] §II.B.2, §III.A-B.
//!
//! [TM19]: crate::papers#tm19

use std::sync::Arc;

use hashbrown::HashMap;

use crate::budget::monitor::Monitor;
use crate::contract::adapter::{DynamicEveryWidth, build_dynamic};
use crate::contract::observe::{Met, Prices};
use crate::contract::options::EngineOption;
use crate::contract::spec::BuildRequest;
use crate::contract::spec::EngineSpec;
use crate::contract::spec::{Engine, Wraps};
use crate::cost::estimate::{Costs, Shape, some_of};
use crate::model::error::BuildError;
use crate::model::schema::{FieldRole, Schema};
use crate::model::seed::{MapState, Seed};
use crate::parts::tuple_space::{
    EntryIndex, Form, Placement, Placing, Renumbered, SpaceEstimate, TableEstimate, TableNumber,
    TupleEngine, TupleSpace,
};

/// The registry entry.
pub(super) const ENGINE: Engine = Engine {
    name: "tss",
    summary: "tuple space search: one hash table for each mask, best first",
    paper: "[TM19] §II.B.2",
    wraps: Wraps::Nothing,
    options: &[
        EngineOption::choice(
            "mask",
            &["all", "no-ports", "addresses"],
            "fields in the masks of tables; other fields are only compared",
        ),
        EngineOption::SEED,
    ],
    dynamic: Engine::takes_updates,
    accepts: Engine::accepts_all,
    build: build_dynamic::<AnyWidth>,
    estimate,
};

/// The tables are derived from the tuples. If fields are left out, tuples that differ
/// only in these fields share a table, and the values of their rules are merged too.
fn estimate(spec: &EngineSpec, shape: &Shape) -> Result<Costs, BuildError> {
    let schema = shape.schema();
    let masked_fields = spec.options().choice("mask");
    let mut tables: HashMap<Box<[u64]>, TableEstimate, MapState> = HashMap::default();
    for tuple in shape.tuples() {
        let mut mask = tuple.mask.clone();
        leave_out(schema, masked_fields, &mut mask);
        let table = TableEstimate::of_tuple(tuple, &mask);
        tables
            .entry(mask)
            .and_modify(|sum| sum.add(&table))
            .or_insert(table);
    }
    // The number of probes grows with the number of masks.
    let mut met = Met::of(spec, shape, [0.0, 0.0])?;
    met.probes *= tuples_beyond_sample(shape);
    let space = SpaceEstimate {
        shape,
        form: Form::Private,
        placing: Placing::ByMask,
        met,
        prices: [BATCH, SINGLE],
    };
    Ok(space.estimate(tables.into_values()))
}

/// Returns the number of masks of all rules, divided by the number of masks of the
/// sample.
#[allow(clippy::cast_precision_loss)] // an estimate
fn tuples_beyond_sample(shape: &Shape) -> f64 {
    let sample = some_of(shape.sample(), shape.rules());
    if sample.len() >= shape.rules() {
        return 1.0;
    }
    let mut masks: HashMap<&[u64], (), MapState> = HashMap::default();
    for rule in sample.iter() {
        masks.insert(rule.mask(), ());
    }
    (shape.tuples().len() as f64 / masks.len().max(1) as f64).max(1.0)
}

/// Costs of lookups in batches and of single lookups. `crate::cost::estimate` describes the
/// measurements behind them.
const BATCH: Prices = Prices {
    lookup: 224.0,
    probe: 39.0,
    probe_word: 6.0,
    probe_lines: 4.4,
    ..Prices::NONE
};
const SINGLE: Prices = Prices {
    lookup: 290.0,
    probe: 47.0,
    probe_word: 10.0,
    probe_lines: 6.8,
    ..Prices::NONE
};

/// The engine at every key width.
struct AnyWidth;

impl DynamicEveryWidth for AnyWidth {
    type At<const W: usize> = TupleEngine<W, OneTablePerMask<W>>;
}

/// Clears a mask's bits in the fields that the option `mask` leaves out. A schema without
/// addresses would have a single table with `mask=addresses`, so it keeps all fields.
fn leave_out(schema: &Schema, masked_fields: &str, mask: &mut [u64]) {
    let has_addresses = schema.fields().iter().any(|field| is_address(field.role()));
    for id in schema.field_ids() {
        let role = schema.field(id).role();
        let is_kept = match masked_fields {
            "no-ports" => !is_port(role),
            "addresses" if has_addresses => is_address(role),
            _ => true,
        };
        if !is_kept {
            schema.placement(id).set(mask, 0);
        }
    }
}

fn is_port(role: FieldRole) -> bool {
    matches!(role, FieldRole::SourcePort | FieldRole::DestinationPort)
}

fn is_address(role: FieldRole) -> bool {
    matches!(
        role,
        FieldRole::SourceAddress | FieldRole::DestinationAddress
    )
}

pub(super) struct OneTablePerMask<const W: usize> {
    /// The key bits that may be part of a table's mask.
    kept: [u64; W],
    by_mask: HashMap<[u64; W], TableNumber, MapState>,
}

/// Returns an engine without rules. Other engines use it for rules that they cannot
/// store elsewhere.
pub(super) fn empty<const W: usize>(
    schema: &Arc<Schema>,
    seed: Seed,
) -> TupleEngine<W, OneTablePerMask<W>> {
    TupleEngine {
        space: TupleSpace::new(schema, Form::Private, seed),
        placement: OneTablePerMask {
            kept: [u64::MAX; W],
            by_mask: HashMap::default(),
        },
    }
}

impl<const W: usize> Placement<W> for OneTablePerMask<W> {
    fn new(request: &BuildRequest<'_>) -> (TupleSpace<W>, Self) {
        let options = request.spec.options();
        let schema = request.schema();
        let mut kept = [u64::MAX; W];
        leave_out(schema, options.choice("mask"), &mut kept);
        let placement = OneTablePerMask {
            kept,
            by_mask: HashMap::default(),
        };
        let space = TupleSpace::new(schema, Form::Private, options.seed("seed"));
        (space, placement)
    }

    fn place(
        &mut self,
        space: &mut TupleSpace<W>,
        entry: EntryIndex,
        monitor: &mut Monitor<'_>,
    ) -> Result<(), BuildError> {
        let mut mask = space.entry(entry).mask;
        for (mask, kept) in mask.iter_mut().zip(&self.kept) {
            *mask &= kept;
        }
        let table = match self.by_mask.get(&mask) {
            Some(&table) => table,
            None => {
                monitor.memory().room_in_map(&mut self.by_mask)?;
                let table = space.new_table(mask, monitor)?;
                self.by_mask.insert(mask, table);
                table
            }
        };
        space.link(table, entry, monitor)
    }

    fn table_dropped(&mut self, mask: &[u64; W]) {
        self.by_mask.remove(mask);
    }

    fn renumbered(&mut self, numbers: &Renumbered) {
        for table in self.by_mask.values_mut() {
            *table = numbers.of(*table);
        }
        self.by_mask.shrink_to(self.by_mask.len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::classifier::{Limits, NoProgress};
    use crate::model::rule::{ActionId, FieldMatch, Priority, RuleId};
    use crate::model::ruleset::RuleSet;
    use crate::model::schema::Field;

    /// Returns rules with two lengths of source prefixes, with and without a protocol, and
    /// with three kinds of port ranges.
    fn rules(schema: &Arc<Schema>) -> RuleSet {
        let mut rules = RuleSet::new(schema);
        let protocols = [FieldMatch::Any, FieldMatch::Exact(6)];
        let ports = [(0, 65_535), (80, 80), (1_024, 65_535)];
        for length in [8, 24] {
            for protocol in protocols {
                for (low, high) in ports {
                    let mut matches = [FieldMatch::Any; 5];
                    matches[0] = FieldMatch::Prefix {
                        value: 10 << 24,
                        length,
                    };
                    matches[3] = FieldMatch::Range { low, high };
                    matches[4] = protocol;
                    let index = rules.len();
                    let priority = Priority(u32::try_from(index).unwrap());
                    rules
                        .add(RuleId::from_index(index), priority, ActionId(0), &matches)
                        .unwrap();
                }
            }
        }
        rules
    }

    fn table_counts(rules: &RuleSet) -> [usize; 3] {
        ["all", "no-ports", "addresses"].map(|word| {
            let spec = EngineSpec::parse(&format!("tss:mask={word}")).unwrap();
            let built = spec.build(rules, &Limits::default(), &mut NoProgress);
            built.unwrap().stats().tables
        })
    }

    #[test]
    fn fields_that_are_left_out_make_no_tables() {
        let schema = Schema::ipv4_5tuple();
        let roles: Vec<FieldRole> = schema.fields().iter().map(Field::role).collect();
        assert_eq!(roles[0], FieldRole::SourceAddress);
        assert_eq!(roles[3], FieldRole::DestinationPort);
        // Prefix lengths times protocols times shared prefixes of ranges.
        assert_eq!(table_counts(&rules(&schema)), [8, 4, 2]);
    }

    #[test]
    fn a_schema_without_addresses_keeps_all_fields() {
        let fields = Schema::ipv4_5tuple();
        let fields = fields.fields().iter();
        let plain = fields.map(|field| field.clone().with_role(FieldRole::Plain));
        let schema = Schema::new("plain", plain.collect()).unwrap();
        assert_eq!(table_counts(&rules(&schema)), [8, 8, 8]);
    }
}
