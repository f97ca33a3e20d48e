//! Filling the vectors of all fields.

use std::sync::Arc;

use hashbrown::HashMap;

use super::field::Field;
use super::{BitVector, STEP_BLOCKS, check_vectors};
use crate::engine::EngineSpec;
use crate::engine::range_tree::RangeTree;
use crate::engine::ranked::RankedRules;
use crate::error::BuildError;
use crate::memory::{bytes_of, map_bytes};
use crate::monitor::Monitor;
use crate::schema::FieldId;
use crate::seed::{MapState, splitmix};
use crate::simd::Aligned;
use crate::simd::bits::{Block, WORDS};
use crate::sort::sort_by_key;

const FILLING: &str = "filling bit vectors";

impl BitVector {
    /// Makes the vectors of all fields. Hashes are cut down to `hash_bits`.
    pub(super) fn fill_rows(
        &mut self,
        spec: &EngineSpec,
        hash_bits: u64,
        monitor: &mut Monitor<'_>,
    ) -> Result<(), BuildError> {
        let rules = &self.rules;
        let schema = rules.schema();
        let most_events = rules.len().saturating_mul(2);
        let total = most_events.saturating_mul(2 * schema.fields().len());
        monitor.begin(FILLING, total)?;
        monitor.memory().take(bytes_of::<Event>(most_events))?;
        let mut filling = Filling {
            rules,
            row_blocks: self.row_blocks,
            hash_bits,
            events: Vec::with_capacity(most_events),
        };
        let mut sizes = Vec::with_capacity(schema.fields().len());
        for id in schema.field_ids() {
            filling.gather(id, monitor)?;
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
            filling.gather(size.id, monitor)?;
            fields.push(filling.fill(size, &mut rows, monitor)?);
        }
        (self.rows, self.fields) = (Arc::new(rows), Arc::new(fields));
        monitor.memory().give_back(bytes_of::<Event>(most_events));
        Ok(())
    }
}

/// Where a rule begins or ceases to match in a field.
#[derive(Clone, Copy)]
struct Event {
    at: u128,
    place: u32,
}

/// Fills the vectors of one field after the other.
struct Filling<'a> {
    rules: &'a RankedRules,
    row_blocks: usize,
    /// Which bits of hashes are looked at: all, but in tests.
    hash_bits: u64,
    /// Those of one field, ascending.
    events: Vec<Event>,
}

/// How many intervals a field has, and about how many rows they need.
#[derive(Clone, Copy)]
struct Size {
    id: FieldId,
    intervals: usize,
    rows: usize,
}

impl Filling<'_> {
    /// Makes the events of a field.
    fn gather(&mut self, id: FieldId, monitor: &mut Monitor<'_>) -> Result<(), BuildError> {
        let most = self.rules.schema().field(id).max_value();
        self.events.clear();
        for place in (0..=u32::MAX).take(self.rules.len()) {
            let (low, high) = self.rules.ends(place as usize, id);
            self.events.push(Event { at: low, place });
            if high < most {
                let at = high + 1;
                self.events.push(Event { at, place });
            }
            monitor.work(1)?;
        }
        sort_by_key(&mut self.events, |event| event.at, monitor)
    }

    /// Visits the intervals of the field, ascending: the start, and the events
    /// there, a few at a time; the last of them with `true`.
    fn intervals(
        &self,
        mut visit: impl FnMut(u128, &[Event], bool) -> Result<(), BuildError>,
    ) -> Result<(), BuildError> {
        if self.events.first().is_none_or(|event| event.at > 0) {
            visit(0, &[], true)?;
        }
        for events in self.events.chunk_by(|a, b| a.at == b.at) {
            let mut chunks = events.chunks(Monitor::BLOCK).peekable();
            while let Some(chunk) = chunks.next() {
                visit(chunk[0].at, chunk, chunks.peek().is_none())?;
            }
        }
        Ok(())
    }

    /// A number for a rule. Those of a set of rules are joined by XOR.
    fn hash(&self, event: &Event) -> u64 {
        let mut state = event.place.into();
        splitmix(&mut state) & self.hash_bits
    }

    /// Counts intervals, and sets of rules by their hashes.
    fn measure(&self, id: FieldId, monitor: &mut Monitor<'_>) -> Result<Size, BuildError> {
        let mut sets: HashMap<u64, (), MapState> = HashMap::default();
        let (mut hash, mut intervals) = (0, 0);
        self.intervals(|_, events, last| {
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

    /// Appends the rows of a field.
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
        let mut known: HashMap<u64, usize, MapState> =
            HashMap::with_capacity_and_hasher(size.rows, MapState::default());
        let mut current = vec![Aligned([0; WORDS]); blocks];
        let mut hash = 0;
        self.intervals(|start, events, last| {
            for event in events {
                let word = event.place as usize / 64;
                current[word / WORDS][word % WORDS] ^= 1 << (event.place % 64);
                hash ^= self.hash(event);
            }
            monitor.advance(events.len())?;
            if !last {
                return Ok(());
            }
            // Sets of the same hash may still differ.
            let same = known.get(&hash).copied();
            let same = same.filter(|row| rows[row * blocks..][..blocks] == current);
            let row = match same {
                Some(row) => row,
                None => {
                    let row = rows.len().checked_div(blocks).unwrap_or(0);
                    if rows.capacity() - rows.len() < blocks {
                        // Two sets had one hash when they were counted.
                        let (old, more) = (rows.capacity(), rows.capacity().max(blocks));
                        let bytes = bytes_of::<Block>;
                        monitor.memory().replace(bytes(old), bytes(old + more))?;
                        rows.reserve_exact(old + more - rows.len());
                    }
                    rows.extend_from_slice(&current);
                    known.insert(hash, row);
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
        drop((known, current));
        monitor.memory().give_back(working);
        Ok(field)
    }
}
