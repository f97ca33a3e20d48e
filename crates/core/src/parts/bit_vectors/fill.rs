//! Fills the vectors of all fields.

use std::sync::Arc;

use hashbrown::HashMap;

use super::field::Field;
use super::{BitVector, STEP_BLOCKS, check_vectors};
use crate::budget::memory::{bytes_of, map_bytes};
use crate::budget::monitor::Monitor;
use crate::contract::spec::EngineSpec;
use crate::model::error::BuildError;
use crate::model::schema::FieldId;
use crate::model::seed::MapState;
use crate::parts::projection::{Event, Projection, hash_of};
use crate::parts::range_tree::RangeTree;
use crate::parts::ranked::RankedRules;
use crate::parts::simd::Aligned;
use crate::parts::simd::bits::{Block, WORDS};

const FILLING: &str = "filling bit vectors";

impl BitVector {
    /// Makes the vectors of all fields. `hash_bits` is a mask over hashes.
    pub(super) fn fill_rows(
        &mut self,
        spec: &EngineSpec,
        hash_bits: u64,
        monitor: &mut Monitor<'_>,
    ) -> Result<(), BuildError> {
        let rules = &self.rules;
        let schema = rules.schema();
        let max_events = rules.len().saturating_mul(2);
        let total = max_events.saturating_mul(2 * schema.fields().len());
        monitor.begin(FILLING, total)?;
        let mut filling = Filling {
            rules,
            row_blocks: self.row_blocks,
            hash_bits,
            projection: Projection::with_room(rules.len(), monitor)?,
        };
        let mut sizes = Vec::with_capacity(schema.fields().len());
        for id in schema.field_ids() {
            filling.projection.gather(rules, id, monitor)?;
            sizes.push(filling.measure(id, monitor)?);
        }
        if sizes.iter().any(|size| size.intervals > 1) {
            sizes.retain(|size| size.intervals > 1);
        } else {
            sizes.truncate(1);
        }
        let rows: usize = sizes.iter().map(|size| size.rows).sum();
        let blocks = rows.saturating_mul(self.row_blocks);
        check_vectors(spec, bytes_of::<Block>(blocks))?;
        monitor.memory().keep(bytes_of::<Block>(blocks))?;
        monitor.memory().keep(bytes_of::<Field>(sizes.len()))?;
        let mut rows = Vec::with_capacity(blocks);
        let mut fields = Vec::with_capacity(sizes.len());
        for size in sizes {
            filling.projection.gather(rules, size.id, monitor)?;
            fields.push(filling.fill(size, &mut rows, monitor)?);
        }
        filling.projection.finish(monitor);
        (self.rows, self.fields) = (Arc::new(rows), Arc::new(fields));
        Ok(())
    }
}

/// Fills the vectors of one field at a time.
struct Filling<'a> {
    rules: &'a RankedRules,
    row_blocks: usize,
    /// A mask over hashes: all bits, except in tests.
    hash_bits: u64,
    /// The events of one field.
    projection: Projection,
}

/// The number of intervals of a field, and about how many rows they need.
#[derive(Clone, Copy)]
struct Size {
    id: FieldId,
    intervals: usize,
    rows: usize,
}

impl Filling<'_> {
    /// Returns the hash of an event's rule. The hash of a set is the XOR of its
    /// rules' hashes.
    fn hash(&self, event: &Event) -> u64 {
        hash_of(event.place) & self.hash_bits
    }

    /// Counts intervals, and sets of rules by their hashes.
    fn measure(&self, id: FieldId, monitor: &mut Monitor<'_>) -> Result<Size, BuildError> {
        let mut sets: HashMap<u64, (), MapState> = HashMap::default();
        let (mut hash, mut intervals) = (0, 0);
        self.projection.intervals(|_, events, last| {
            hash = events
                .iter()
                .fold(hash, |hash, event| hash ^ self.hash(event));
            if last {
                intervals += 1;
                monitor.memory().room_in_map(&mut sets)?;
                sets.insert(hash, ());
            }
            monitor.advance(events.len())
        })?;
        let rows = sets.len();
        monitor.memory().give_back(sets.allocation_size());
        Ok(Size {
            id,
            intervals,
            rows,
        })
    }

    /// Appends the rows of a field to `rows`.
    fn fill(
        &self,
        size: Size,
        rows: &mut Vec<Block>,
        monitor: &mut Monitor<'_>,
    ) -> Result<Field, BuildError> {
        let (schema, blocks) = (self.rules.schema(), self.row_blocks);
        let width = schema.field(size.id).width();
        monitor
            .memory()
            .keep(Field::bytes_of(width, size.intervals))?;
        let working = bytes_of::<Block>(blocks) + map_bytes::<u64, usize>(size.rows);
        monitor.memory().take(working)?;
        let mut field = Field {
            id: size.id,
            placement: *schema.placement(size.id),
            intervals: RangeTree::with_capacity(width, size.intervals),
            rows: Vec::with_capacity(size.intervals),
        };
        let mut row_by_hash: HashMap<u64, usize, MapState> =
            HashMap::with_capacity_and_hasher(size.rows, MapState::default());
        let mut current = vec![Aligned([0; WORDS]); blocks];
        let mut hash = 0;
        self.projection.intervals(|start, events, last| {
            for event in events {
                let word = event.place as usize / 64;
                current[word / WORDS][word % WORDS] ^= 1 << (event.place % 64);
                hash ^= self.hash(event);
            }
            monitor.advance(events.len())?;
            if !last {
                return Ok(());
            }
            // Different sets may have the same hash.
            let row = row_by_hash.get(&hash).copied();
            let row = row.filter(|row| rows[row * blocks..][..blocks] == current);
            let row = match row {
                Some(row) => row,
                None => {
                    let row = rows.len().checked_div(blocks).unwrap_or(0);
                    if rows.capacity() - rows.len() < blocks {
                        // Two sets had the same hash when sets were counted.
                        let (old, more) = (rows.capacity(), rows.capacity().max(blocks));
                        let bytes = bytes_of::<Block>;
                        monitor.memory().replace(bytes(old), bytes(old + more))?;
                        rows.reserve_exact(old + more - rows.len());
                    }
                    rows.extend_from_slice(&current);
                    row_by_hash.insert(hash, row);
                    row
                }
            };
            field.intervals.push(start);
            field
                .rows
                .push(u32::try_from(row).expect("rows of at most 2^32 rules"));
            monitor.work(blocks.div_ceil(STEP_BLOCKS))
        })?;
        field.intervals.finish();
        drop((row_by_hash, current));
        monitor.memory().give_back(working);
        Ok(field)
    }
}
