//! `rfc`: recursive flow classification: table lookups combine the classes of fields
//! until the winner is known.
//!
//! # Idea
//! In each field, values that match the same rules form a class. A table has an entry
//! for each pair of a class of one field and a class of another: the class of the two
//! fields together. Further tables add the other fields; the entries of the last table
//! are winners. A lookup makes one read for each field, whatever the number of rules.
//!
//! # Data layout
//! ```text
//! field 0: value ─▶ class ─┐
//!                          ▼
//! table 0: [ row | winner | … ]                 one row
//! field 1: value ─▶ class ─┐
//!                          ▼
//! table 1: [ row | row | winner | … ] …         row × classes + class
//! …
//! vectors: as in bit-vector
//! ```
//! In fields of up to sixteen bits, a table has the class of each value. In other
//! fields, a range tree finds the class. An entry has 32 bits: a row of the next table,
//! or an outcome. An outcome may come before the last table, if no rule is left or the
//! best remaining rule matches all values of the remaining fields.
//!
//! # Build
//! Vectors as in `bit-vector`, then tables; see [`combine`](crate::parts::combine).
//!
//! # Lookup
//! ```text
//! row = 0
//! for each table:
//!     entry = table[row × classes + class of the key's field]
//!     if entry is an outcome: stop
//!     row = entry
//! ```
//! If the outcome is a hidden rule, or a rule whose mask has holes, the vectors look up
//! the key. Batches take sixteen keys from table to table together, so that their reads
//! overlap.
//!
//! # Cost
//! For d fields, a lookup takes d searches in range trees and d reads. In the worst
//! case, memory and build time are the product of the numbers of classes of all fields;
//! see the limits below. Vectors take O(d n²) bits. The engine takes no updates; `hide`
//! takes O(log n).
//!
//! If the tables would take more work than the option `effort` allows, or more memory
//! than the option `mebibytes` leaves, the engine has no tables and looks up like
//! `bit-vector`. The default of `effort` is the limit on work of an estimate, so that
//! estimates have the exact size of the tables of up to 8,192 rules. It is enough for the twelve
//! built-in profiles at 1,000 rules, and at 10,000 rules for ACLs with few overlapping
//! rules. With a larger `effort`, the engine may have tables that estimates do not
//! expect.
//!
//! # Where we differ from the paper, and why
//! - The paper cuts addresses in chunks of 16 bits, which direct tables translate to
//!   classes. Prefixes can be cut this way, ranges and wider fields cannot. Our first
//!   phase uses range trees for fields of more than 16 bits.
//! - The paper combines classes two or three at a time in a tree of tables. We add one
//!   field after the other, the two with most classes last, and drop rules that can no
//!   longer win. That leaves fewer classes.
//! - Outcomes may come before the last table.
//! - The vectors remain. They answer for hidden rules and for masks with holes, and for
//!   masked lookups. If the tables would be too large, they answer all lookups.
//!
//! # References
//! P. Gupta and N. McKeown, Packet Classification on Multiple Fields, SIGCOMM
//! 1999; [SFL17] §V.
//!
//! [SFL17]: crate::papers#sfl17

#[cfg(test)]
mod tests;

use std::sync::Arc;

use crate::budget::memory::bytes_of;
use crate::budget::monitor::Monitor;
use crate::contract::adapter::{Algorithm, EveryWidth, build_static};
use crate::contract::classifier::{LookupTrace, Metric, Probe};
use crate::contract::observe::{Met, Prices};
use crate::contract::options::EngineOption;
use crate::contract::spec::BuildRequest;
use crate::contract::spec::EngineSpec;
use crate::contract::spec::{Engine, Wraps};
use crate::cost::estimate::{Costs, Shape};
use crate::cost::machine::Work;
use crate::model::error::BuildError;
use crate::model::rule::{RuleId, Winner};
use crate::model::schema::prefix_mask;
use crate::parts::bit_vectors::{self, BitVector, Field};
use crate::parts::combine::{self, Bounds, COMPARE, DECIDED, EFFORT, MISS, combine};
use crate::parts::projection::{Columns, Projection};
use crate::parts::range_tree::GROUP;
use crate::parts::simd::Isa;

/// The registry entry.
pub(super) const ENGINE: Engine = Engine {
    name: "rfc",
    summary: "recursive flow classification: classes of fields, combined by table lookups",
    paper: "[SFL17] §V",
    wraps: Wraps::Nothing,
    options: &[
        EngineOption::host_choice(
            "isa",
            &Isa::NAMES,
            Isa::lacks,
            "instructions to join vectors with",
        ),
        EngineOption::whole(
            "mebibytes",
            (1, 1 << 22),
            4096,
            "the most memory of vectors and tables, in MiB; rules whose vectors need more are refused",
        ),
        EngineOption::whole(
            "effort",
            (0, 4000),
            EFFORT,
            "the most work for tables, in thousands of steps for each of up to 1,000 rules",
        ),
    ],
    dynamic: Engine::takes_no_updates,
    accepts: Engine::accepts_all,
    build: build_static::<AnyWidth>,
    estimate,
};

/// Costs from the estimate of `bit-vector` for the vectors, and from the sizes of the
/// tables, which are counted over the shape's sample.
#[allow(clippy::cast_precision_loss)] // an estimate
fn estimate(spec: &EngineSpec, shape: &Shape) -> Result<Costs, BuildError> {
    let vectors = bit_vectors::memory_and_building(spec, shape)?;
    let of_fields = combine::cells(shape.sample(), shape.rules());
    let with_table = || of_fields.iter().filter(|&&cells| cells > 0);
    let cells = with_table().fold(0_usize, |sum, &cells| sum.saturating_add(cells));
    let tables = with_table().count();
    let direct = shape.schema().fields().iter().zip(&of_fields);
    let direct = direct.filter(|(_, cells)| **cells > 0);
    let direct = direct.map(|(field, _)| bytes_of::<u16>(direct_values(field.width(), 0)));
    let bytes = bytes_of::<u32>(cells).saturating_add(direct.sum());
    let fits = vectors.bytes.saturating_add(bytes) <= most_bytes(spec);
    let bounds = Bounds {
        effort: spec.options().whole("effort"),
        bytes: most_bytes(spec),
    };
    let effort = bounds.steps(shape.rules()) as f64 * STEP_WORK;
    let sets = (cells as f64 * SET_WORK).min(effort);
    if tables == 0 || !fits || bounds.effort == 0 {
        let plain = EngineSpec::named("bit-vector").expect("a registered engine");
        let (met, bytes) = (bit_vectors::met(&plain, shape)?, vectors.bytes);
        return Ok(Costs {
            batch: bit_vectors::BATCH.batch(&met, shape, bytes),
            single: bit_vectors::SINGLE.single(&met, shape, bytes),
            // The work on tables that exceeded the limit.
            build: vectors.build + Work::of(effort),
            ..vectors
        });
    }
    let bytes = bytes + tables * size_of::<Table>();
    // Few headers must be compared with rules because the tables do not name their
    // winner.
    let met = Met {
        probes: tables as f64,
        compared: 1.0,
    };
    let total_bytes = vectors.bytes + bytes;
    Ok(Costs {
        bytes: total_bytes,
        build: vectors.build + Work::of(cells as f64 * CELL_WORK + sets),
        batch: BATCH.batch(&met, shape, total_bytes),
        single: SINGLE.single(&met, shape, total_bytes),
        update: None,
    })
}

/// Costs of lookups, in batches and single; `crate::cost::estimate` describes the fit.
const BATCH: Prices = Prices {
    lookup: 123.0,
    probe: 63.0,
    lines: 1.5,
    ..Prices::NONE
};
const SINGLE: Prices = Prices {
    lookup: 420.0,
    probe: 45.0,
    probe_lines: 0.7,
    ..Prices::NONE
};

// Instructions; `crate::cost::estimate` describes the fit.
/// Instructions for an entry of a table.
const CELL_WORK: f64 = 40.0;
/// Instructions for computing an entry's set of rules, and for a step of that work. The
/// option `effort` limits the number of steps.
const SET_WORK: f64 = 150.0;
const STEP_WORK: f64 = 23.0;

/// Returns the largest number of bytes for vectors and tables together.
fn most_bytes(spec: &EngineSpec) -> usize {
    spec.options().whole("mebibytes").saturating_mul(1 << 20)
}

/// The engine at every key width.
struct AnyWidth;

impl EveryWidth for AnyWidth {
    type At<const W: usize> = Rfc;
}

/// Tables that combine the classes of fields, and vectors. Duplicates share both.
#[derive(Clone)]
struct Rfc {
    vectors: BitVector,
    /// Empty if the tables would be too large.
    tables: Arc<Vec<Table>>,
}

/// The table of a field.
struct Table {
    /// The index of the field among the fields that have vectors.
    field: usize,
    /// The row of class 0 among the vectors of all fields.
    first_row: u32,
    /// The number of classes of the field, which is the length of a row.
    columns: usize,
    entries: Vec<u32>,
    /// The class of each value, in a field of up to sixteen bits; otherwise empty.
    direct: Vec<u16>,
}

impl Table {
    /// The class of a key's value.
    #[inline(always)]
    fn class(&self, field: &Field, key: &[u64]) -> u32 {
        if self.direct.is_empty() {
            return field.rows[field.intervals.find(&field.placement, key)] - self.first_row;
        }
        let value = field.placement.low.get(key) & 0xffff;
        self.direct[value as usize].into()
    }

    /// The classes of several keys' values.
    #[inline(always)]
    fn classes<const W: usize>(
        &self,
        field: &Field,
        keys: &[[u64; W]; GROUP],
        classes: &mut [u32; GROUP],
    ) {
        if self.direct.is_empty() {
            let mut intervals = [0; GROUP];
            field
                .intervals
                .find_each(&field.placement, keys, &mut intervals);
            for (class, interval) in classes.iter_mut().zip(intervals) {
                *class = field.rows[interval] - self.first_row;
            }
            return;
        }
        for (class, key) in classes.iter_mut().zip(keys) {
            *class = self.class(field, key);
        }
    }

    /// The entry of a row and a class.
    #[inline(always)]
    fn entry(&self, row: u32, class: u32) -> u32 {
        self.entries[row as usize * self.columns + class as usize]
    }

    /// The number of rows.
    fn rows(&self) -> usize {
        self.entries.len() / self.columns
    }
}

/// Returns the number of values with a direct class: all values of a field of up to
/// sixteen bits, or 0.
fn direct_values(width: u32, classes: usize) -> usize {
    match width {
        0..=16 if classes <= 1 << 16 => 1 << width,
        _ => 0,
    }
}

/// The class of each value below `values`.
fn direct(field: &Field, values: usize) -> Vec<u16> {
    let mut classes = Vec::with_capacity(values);
    for (interval, row) in field.rows.iter().enumerate() {
        let class = u16::try_from(row - field.rows[0]).unwrap_or(u16::MAX);
        let (_, high) = field.intervals.ends(interval, u128::MAX);
        let behind = usize::try_from(high)
            .unwrap_or(usize::MAX)
            .saturating_add(1);
        if values > 0 {
            classes.resize(behind.min(values), class);
        }
    }
    classes
}

/// Returns the intervals of the fields that have vectors. Counts their memory.
fn columns(vectors: &BitVector, monitor: &mut Monitor<'_>) -> Result<Vec<Columns>, BuildError> {
    let rules = &vectors.rules;
    let mut projection = Projection::with_room(rules.len(), monitor)?;
    monitor
        .memory()
        .take(bytes_of::<Columns>(vectors.fields.len()))?;
    let mut columns = Vec::with_capacity(vectors.fields.len());
    for field in vectors.fields.iter() {
        projection.gather(rules, field.id, monitor)?;
        let mut of_field = projection.columns(rules, field.id, monitor)?;
        // Use the classes of the vectors: their sets were compared, not only hashed.
        let first = field.rows[0];
        let mut last = first;
        for (class, &row) in of_field.class_of.iter_mut().zip(&field.rows) {
            *class = row - first;
            last = last.max(row);
        }
        of_field.classes = (last - first) as usize + 1;
        columns.push(of_field);
    }
    projection.finish(monitor);
    Ok(columns)
}

/// The meaning of a table's entry.
enum Outcome {
    Miss,
    /// The position of the winner.
    Winner(usize),
    /// The rules in the vectors must be compared.
    Compare,
}

impl Rfc {
    /// Makes the tables, unless they exceed the bounds.
    fn fill_tables(
        &mut self,
        spec: &EngineSpec,
        monitor: &mut Monitor<'_>,
    ) -> Result<(), BuildError> {
        let (vectors, rules) = (&self.vectors, &self.vectors.rules);
        let bounds = Bounds {
            effort: spec.options().whole("effort"),
            bytes: most_bytes(spec).saturating_sub(vectors.bytes()),
        };
        if !bounds.allow(rules) {
            return Ok(());
        }
        let columns = columns(vectors, monitor)?;
        // Tables that are too large are dropped, so they must not count towards the
        // limit on the finished engine. A first run, without storing, finds out whether
        // they fit.
        let is_complete = !monitor.memory().limits_kept()
            || combine(rules, &columns, bounds, false, monitor)?.is_some();
        let tables = match is_complete {
            true => combine(rules, &columns, bounds, true, monitor)?,
            false => None,
        };
        if let Some(tables) = tables {
            monitor.memory().keep(bytes_of::<Table>(tables.len()))?;
            let mut built = Vec::with_capacity(tables.len());
            for table in tables {
                let field = &vectors.fields[table.field];
                let width = rules.schema().field(field.id).width();
                let values = direct_values(width, table.columns);
                monitor.memory().keep(bytes_of::<u16>(values))?;
                built.push(Table {
                    field: table.field,
                    first_row: field.rows[0],
                    columns: table.columns,
                    entries: table.entries,
                    direct: direct(field, values),
                });
            }
            self.tables = Arc::new(built);
        }
        let bytes = columns.iter().map(Columns::bytes).sum::<usize>();
        let bytes = bytes + bytes_of::<Columns>(columns.capacity());
        drop(columns);
        monitor.memory().give_back(bytes);
        Ok(())
    }

    /// Returns the outcome of an entry.
    #[inline(always)]
    fn outcome(&self, entry: u32) -> Outcome {
        match entry {
            MISS => Outcome::Miss,
            COMPARE => Outcome::Compare,
            entry => {
                debug_assert!(entry & DECIDED != 0, "the last table decides");
                let position = (entry & !DECIDED) as usize;
                match self.vectors.rules.is_hidden(position) {
                    false => Outcome::Winner(position),
                    true => Outcome::Compare,
                }
            }
        }
    }

    /// Returns the entries that a key reaches, table by table.
    fn entries(&self, key: &[u64]) -> impl Iterator<Item = u32> {
        let mut row = Some(0);
        self.tables.iter().map_while(move |table| {
            let field = &self.vectors.fields[table.field];
            let entry = table.entry(row?, table.class(field, key));
            row = (entry & DECIDED == 0).then_some(entry);
            Some(entry)
        })
    }

    /// Improves `best` by the outcome of an entry.
    #[inline(always)]
    fn finish<const W: usize>(&self, entry: u32, key: &[u64; W], best: Winner) -> Winner {
        match self.outcome(entry) {
            Outcome::Miss => best,
            Outcome::Compare => self.vectors.improve(key, best),
            Outcome::Winner(place) => {
                let winner = self.vectors.rules.winner(place);
                if winner.beats(best) { winner } else { best }
            }
        }
    }
}

impl<const W: usize> Algorithm<W> for Rfc {
    type Buffers = <BitVector as Algorithm<W>>::Buffers;

    fn build(request: &mut BuildRequest<'_>) -> Result<Rfc, BuildError> {
        let mut built = Rfc {
            vectors: <BitVector as Algorithm<W>>::build(request)?,
            tables: Arc::default(),
        };
        let spec = request.spec;
        built.fill_tables(spec, &mut request.monitor())?;
        Ok(built)
    }

    fn improve(&self, key: &[u64; W], best: Winner) -> Winner {
        match self.entries(key).last() {
            Some(entry) => self.finish(entry, key, best),
            None => self.vectors.improve(key, best),
        }
    }

    fn improve_batch(
        &self,
        keys: &[[u64; W]],
        winners: &mut [Winner],
        buffers: &mut Self::Buffers,
    ) {
        if self.tables.is_empty() {
            return self.vectors.improve_batch(keys, winners, buffers);
        }
        let (groups, rest_keys) = keys.as_chunks::<GROUP>();
        let (of_groups, of_rest) = winners.split_at_mut(groups.len() * GROUP);
        for (keys, winners) in groups.iter().zip(of_groups.chunks_exact_mut(GROUP)) {
            let (mut entries, mut classes) = ([0; GROUP], [0; GROUP]);
            for table in self.tables.iter() {
                let field = &self.vectors.fields[table.field];
                table.classes(field, keys, &mut classes);
                for (entry, &class) in entries.iter_mut().zip(&classes) {
                    let is_decided = *entry & DECIDED != 0;
                    // Reading any row is cheaper than a mispredicted branch.
                    let row = if is_decided { 0 } else { *entry };
                    let next = table.entry(row, class);
                    *entry = if is_decided { *entry } else { next };
                }
            }
            for ((key, winner), entry) in keys.iter().zip(winners).zip(entries) {
                *winner = self.finish(entry, key, *winner);
            }
        }
        for (key, winner) in rest_keys.iter().zip(of_rest) {
            *winner = self.improve(key, *winner);
        }
    }

    fn improve_masked(&self, key: &[u64; W], best: Winner, mask: &mut [u64; W]) -> Winner {
        self.vectors.improve_masked(key, best, mask)
    }

    /// Lists the tables up to the deciding one, then the rules compared.
    fn trace(&self, key: &[u64; W]) -> LookupTrace {
        let vectors = <BitVector as Algorithm<W>>::trace(&self.vectors, key);
        let tables = self.tables.len() + vectors.tables;
        let entries: Vec<u32> = self.entries(key).collect();
        let outcome = entries.last().map(|&entry| self.outcome(entry));
        let mut probes: Vec<Probe> = Vec::with_capacity(entries.len());
        for (number, table) in self.tables[..entries.len()].iter().enumerate() {
            let field = &self.vectors.fields[table.field];
            let mut mask = vec![0; W];
            let width = self.vectors.rules.schema().field(field.id).width();
            field
                .placement
                .set_bits(&mut mask, prefix_mask(width, width));
            probes.push(Probe {
                table: number,
                mask,
                // The number of rules that match in the field.
                rules: vectors.probes[table.field].rules,
                compared: Vec::new(),
                winner: Winner::MISS,
            });
        }
        let winner = vectors.winner;
        match outcome {
            Some(Outcome::Winner(_)) => {
                let last = probes.last_mut().expect("a table");
                last.compared.extend(winner.rule());
                last.winner = winner;
            }
            Some(Outcome::Miss) => {}
            Some(Outcome::Compare) | None => {
                let shifted = vectors.probes.into_iter().map(|probe| Probe {
                    table: probe.table + self.tables.len(),
                    ..probe
                });
                probes.extend(shifted);
            }
        }
        LookupTrace {
            probes,
            tables,
            winner,
        }
    }

    fn rules(&self) -> usize {
        self.vectors.rules.present()
    }

    fn tables(&self) -> usize {
        self.tables.len().max(self.vectors.fields.len())
    }

    fn bytes(&self) -> usize {
        let tables = self.tables.iter();
        let entries = tables.map(|table| {
            bytes_of::<u32>(table.entries.capacity()) + bytes_of::<u16>(table.direct.capacity())
        });
        self.vectors.bytes() + bytes_of::<Table>(self.tables.capacity()) + entries.sum::<usize>()
    }

    fn metrics(&self) -> Vec<Metric> {
        let mut metrics = <BitVector as Algorithm<W>>::metrics(&self.vectors);
        let tables = self.tables.iter();
        let entries = tables.clone().map(|table| table.entries.len());
        metrics.extend([
            Metric::count("tables of classes", self.tables.len()),
            Metric::count("rows", tables.map(Table::rows).sum()),
            Metric::count("entries", entries.sum()),
        ]);
        metrics
    }

    fn hide(&mut self, id: RuleId) -> Option<bool> {
        Some(self.vectors.rules.hide(id))
    }

    fn duplicate(&self) -> Option<Rfc> {
        Some(self.clone())
    }
}
