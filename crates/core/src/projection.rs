//! What the rules of a set match in one field: the elementary intervals, and
//! which rules match in each.
//!
//! # Idea
//! The ends of all rules' intervals cut a field into elementary intervals. For
//! every value of one of them the same rules match in this field. Sweeping over
//! the ends in ascending order, with a set to which rules are added where they
//! begin and from which they are removed behind their end, visits the set of
//! each interval:
//! ```text
//! rule 0      |---------------|
//! rule 1                |------------|
//!         ----|---------|-----|------|-----
//! sets     {} |   {0}   |{0,1}|  {1} |  {}
//! ```
//! Intervals with the same set of rules are of one *class*.
//!
//! # References
//! [SFL17] §V, ref. 5 (Lakshman and Stiliadis, SIGCOMM 1998); P. Gupta and
//! N. McKeown, Packet Classification on Multiple Fields, SIGCOMM 1999.
//!
//! [SFL17]: crate::papers#sfl17

use hashbrown::HashMap;

use crate::error::BuildError;
use crate::memory::bytes_of;
use crate::monitor::Monitor;
use crate::schema::{FieldId, Schema};
use crate::seed::{MapState, splitmix};
use crate::sort::sort_by_key;

/// Rules whose matches of a field can be asked for, by their places: 0 is the
/// best rule.
pub(crate) trait Places {
    fn schema(&self) -> &Schema;

    /// The number of places.
    fn count(&self) -> usize;

    /// The smallest and the largest value that a rule matches in a field.
    fn ends(&self, place: usize, field: FieldId) -> (u128, u128);

    /// Whether a rule matches all keys between its ends in every field.
    fn is_box(&self, place: usize) -> bool;
}

/// Where a rule begins or ceases to match in a field.
#[derive(Clone, Copy)]
pub(crate) struct Event {
    pub(crate) at: u128,
    pub(crate) place: u32,
}

impl Event {
    fn position(&self) -> u128 {
        self.at
    }
}

/// The events of one field after the other, in memory that is used again.
pub(crate) struct Projection {
    /// Ascending.
    events: Vec<Event>,
    bytes: usize,
}

impl Projection {
    /// With room for the events of that many rules.
    ///
    /// # Errors
    /// [`BuildError::TooManyPeakBytes`]
    pub(crate) fn with_room(
        rules: usize,
        monitor: &mut Monitor<'_>,
    ) -> Result<Projection, BuildError> {
        let most_events = rules.saturating_mul(2);
        let bytes = bytes_of::<Event>(most_events);
        monitor.memory().take(bytes)?;
        Ok(Projection {
            events: Vec::with_capacity(most_events),
            bytes,
        })
    }

    /// Gives the memory back.
    pub(crate) fn finish(self, monitor: &mut Monitor<'_>) {
        let bytes = self.bytes;
        drop(self);
        monitor.memory().give_back(bytes);
    }

    /// Makes the events of a field.
    ///
    /// # Errors
    /// [`BuildError::Stopped`], [`BuildError::TooManyPeakBytes`]
    pub(crate) fn gather(
        &mut self,
        rules: &impl Places,
        id: FieldId,
        monitor: &mut Monitor<'_>,
    ) -> Result<(), BuildError> {
        let most = rules.schema().field(id).max_value();
        self.events.clear();
        for place in (0..=u32::MAX).take(rules.count()) {
            let (low, high) = rules.ends(place as usize, id);
            self.events.push(Event { at: low, place });
            if high < most {
                let at = high + 1;
                self.events.push(Event { at, place });
            }
            monitor.work(1)?;
        }
        sort_by_key(&mut self.events, Event::position, monitor)
    }

    /// Visits the intervals of the field, ascending: the start, and the events
    /// there, a few at a time; the last of them with `true`.
    ///
    /// # Errors
    /// Those of `visit`.
    pub(crate) fn intervals(
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

    /// The intervals of the field by number. Sets of rules are taken to be the
    /// same when their hashes are.
    ///
    /// # Errors
    /// [`BuildError::Stopped`], [`BuildError::TooManyPeakBytes`]
    pub(crate) fn columns(
        &self,
        rules: &impl Places,
        id: FieldId,
        monitor: &mut Monitor<'_>,
    ) -> Result<Columns, BuildError> {
        let count = rules.count();
        monitor.memory().take(2 * bytes_of::<u32>(count))?;
        let mut columns = Columns {
            id,
            first: vec![NOT_SEEN; count],
            last: vec![NOT_SEEN; count],
            class_of: Vec::new(),
            classes: 0,
        };
        let mut classes: HashMap<u64, u32, MapState> = HashMap::default();
        let (mut hash, mut interval) = (0, 0);
        self.intervals(|_, events, last| {
            for event in events {
                let place = event.place as usize;
                hash ^= hash_of(event.place);
                match columns.first[place] {
                    NOT_SEEN => columns.first[place] = interval,
                    _ => columns.last[place] = interval - 1,
                }
            }
            monitor.work(events.len())?;
            if last {
                interval += 1;
                monitor.memory().room_in_map(&mut classes)?;
                let next = u32::try_from(classes.len()).expect("classes of at most 2^32 rules");
                let class = *classes.entry(hash).or_insert(next);
                monitor.memory().room(&mut columns.class_of)?;
                columns.class_of.push(class);
            }
            Ok(())
        })?;
        for last in &mut columns.last {
            *last = (*last).min(interval - 1);
        }
        columns.classes = classes.len();
        monitor.memory().give_back(classes.allocation_size());
        Ok(columns)
    }
}

/// The interval of an end that no event has said yet.
const NOT_SEEN: u32 = u32::MAX;

/// A number for a rule. Those of a set of rules are joined by XOR.
pub(crate) fn hash_of(place: u32) -> u64 {
    let mut state = place.into();
    splitmix(&mut state)
}

/// The intervals of a field by number, ascending.
pub(crate) struct Columns {
    pub(crate) id: FieldId,
    /// The first and the last interval of each rule.
    pub(crate) first: Vec<u32>,
    pub(crate) last: Vec<u32>,
    /// The class of each interval.
    pub(crate) class_of: Vec<u32>,
    pub(crate) classes: usize,
}

impl Columns {
    /// Whether a rule matches all values of the field.
    pub(crate) fn is_open(&self, place: usize) -> bool {
        self.first[place] == 0 && self.last[place] as usize == self.class_of.len() - 1
    }

    /// Whether the first rule matches all that the second one matches.
    pub(crate) fn covers(&self, place: usize, other: usize) -> bool {
        self.first[place] <= self.first[other] && self.last[other] <= self.last[place]
    }

    /// Bytes of working memory.
    pub(crate) fn bytes(&self) -> usize {
        let all = [&self.first, &self.last, &self.class_of];
        all.iter()
            .map(|list| bytes_of::<u32>(list.capacity()))
            .sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::monitor::unwatched;
    use crate::schema::{Field, MatchKind};

    struct Ranges(std::sync::Arc<Schema>, Vec<(u128, u128)>);

    impl Places for Ranges {
        fn schema(&self) -> &Schema {
            &self.0
        }

        fn count(&self) -> usize {
            self.1.len()
        }

        fn ends(&self, place: usize, _: FieldId) -> (u128, u128) {
            self.1[place]
        }

        fn is_box(&self, _: usize) -> bool {
            true
        }
    }

    #[test]
    fn intervals_with_the_same_rules_are_of_one_class() {
        let field = Field::new("f", 16, MatchKind::Range);
        let schema = Schema::new("t", vec![field]).unwrap();
        let id = schema.field_ids().next().unwrap();
        // Ends, the class of each interval, the intervals of each rule.
        type Case<'a> = (&'a [(u128, u128)], &'a [u32], &'a [(u32, u32)]);
        let cases: [Case<'_>; 4] = [
            (&[], &[0], &[]),
            (&[(0, 65535)], &[0], &[(0, 0)]),
            (
                &[(10, 20), (15, 30), (0, 65535)],
                &[0, 1, 2, 3, 0],
                &[(1, 2), (2, 3), (0, 4)],
            ),
            // Hosts between gaps, one of them at the very end, and one twice.
            (
                &[(7, 7), (65535, 65535), (7, 7)],
                &[0, 1, 0, 2],
                &[(1, 1), (3, 3), (1, 1)],
            ),
        ];
        for (ends, class_of, expected) in cases {
            let rules = Ranges(schema.clone(), ends.to_vec());
            let columns = unwatched(|monitor| {
                let mut projection = Projection::with_room(ends.len(), monitor)?;
                projection.gather(&rules, id, monitor)?;
                let columns = projection.columns(&rules, id, monitor);
                projection.finish(monitor);
                columns
            });
            assert_eq!(columns.class_of, class_of);
            let intervals: Vec<_> = (columns.first.iter().copied())
                .zip(columns.last.iter().copied())
                .collect();
            assert_eq!(intervals, expected);
            let classes = class_of.iter().max().map_or(0, |&last| last as usize + 1);
            assert_eq!(columns.classes, classes);
            for (place, &(low, high)) in ends.iter().enumerate() {
                assert_eq!(columns.is_open(place), (low, high) == (0, 65535));
            }
        }
    }
}
