//! Projection of rules on one field: its elementary intervals, and the rules
//! that match in each.
//!
//! # Idea
//! The ends of all rules' intervals cut a field into elementary intervals.
//! Within an interval, all values match the same rules in this field. A sweep
//! over the ends in ascending order visits the set of matching rules of each
//! interval: a rule is added where its range begins and removed after its range
//! ends.
//! ```text
//! rule 0      |---------------|
//! rule 1                |------------|
//!         ----|---------|-----|------|-----
//! sets     {} |   {0}   |{0,1}|  {1} |  {}
//! ```
//! Intervals with the same set of rules have the same *class*.
//!
//! # References
//! [SFL17] §V, ref. 5 (Lakshman and Stiliadis, SIGCOMM 1998); P. Gupta and
//! N. McKeown, Packet Classification on Multiple Fields, SIGCOMM 1999.
//!
//! [SFL17]: crate::papers#sfl17

use hashbrown::HashMap;

use crate::budget::memory::bytes_of;
use crate::budget::monitor::Monitor;
use crate::model::error::BuildError;
use crate::model::schema::{FieldId, Schema};
use crate::model::seed::{MapState, splitmix};
use crate::parts::sort::sort_by_key;

/// Rules that give their matches of a field, addressed by place: place 0 is the
/// best rule.
pub(crate) trait Places {
    fn schema(&self) -> &Schema;

    /// Returns the number of places.
    fn count(&self) -> usize;

    /// Returns the smallest and the largest value that a rule matches in a
    /// field.
    fn ends(&self, place: usize, field: FieldId) -> (u128, u128);

    /// True if a rule matches all keys between its ends in every field.
    fn is_box(&self, place: usize) -> bool;
}

/// A value at which a rule begins or ceases to match in a field.
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

/// The events of one field at a time, in reused memory.
pub(crate) struct Projection {
    /// In ascending order.
    events: Vec<Event>,
    bytes: usize,
}

impl Projection {
    /// Returns a projection with capacity for the events of `rules` rules.
    ///
    /// # Errors
    /// [`BuildError::TooManyPeakBytes`]
    pub(crate) fn with_room(
        rules: usize,
        monitor: &mut Monitor<'_>,
    ) -> Result<Projection, BuildError> {
        let max_events = rules.saturating_mul(2);
        let bytes = bytes_of::<Event>(max_events);
        monitor.memory().take(bytes)?;
        Ok(Projection {
            events: Vec::with_capacity(max_events),
            bytes,
        })
    }

    /// Frees the memory.
    pub(crate) fn finish(self, monitor: &mut Monitor<'_>) {
        let bytes = self.bytes;
        drop(self);
        monitor.memory().give_back(bytes);
    }

    /// Computes the events of a field.
    ///
    /// # Errors
    /// [`BuildError::Stopped`], [`BuildError::TooManyPeakBytes`]
    pub(crate) fn gather(
        &mut self,
        rules: &impl Places,
        id: FieldId,
        monitor: &mut Monitor<'_>,
    ) -> Result<(), BuildError> {
        let max_value = rules.schema().field(id).max_value();
        self.events.clear();
        for place in (0..=u32::MAX).take(rules.count()) {
            let (low, high) = rules.ends(place as usize, id);
            self.events.push(Event { at: low, place });
            if high < max_value {
                let next_value = high + 1;
                self.events.push(Event {
                    at: next_value,
                    place,
                });
            }
            monitor.work(1)?;
        }
        sort_by_key(&mut self.events, Event::position, monitor)
    }

    /// Visits the intervals of the field in ascending order. `visit` receives
    /// the start of the interval and some of the events at this value; the last
    /// call for an interval has `true`.
    ///
    /// # Errors
    /// As for `visit`.
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

    /// Numbers the intervals of the field. Sets of rules with equal hashes are
    /// assumed to be equal.
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
                let rule = event.place as usize;
                hash ^= hash_of(event.place);
                match columns.first[rule] {
                    NOT_SEEN => columns.first[rule] = interval,
                    _ => columns.last[rule] = interval - 1,
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

/// Marks an end whose event has not been visited yet.
const NOT_SEEN: u32 = u32::MAX;

/// Returns a hash of a place. The hash of a set of rules is the XOR of these.
pub(crate) fn hash_of(place: u32) -> u64 {
    let mut state = place.into();
    splitmix(&mut state)
}

/// The numbered intervals of a field, in ascending order.
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
    /// True if a rule matches all values of the field.
    pub(crate) fn is_open(&self, place: usize) -> bool {
        self.first[place] == 0 && self.last[place] as usize == self.class_of.len() - 1
    }

    /// True if the rule at `place` matches every value that the rule at `other`
    /// matches.
    pub(crate) fn covers(&self, place: usize, other: usize) -> bool {
        self.first[place] <= self.first[other] && self.last[other] <= self.last[place]
    }

    /// Returns the bytes of working memory.
    pub(crate) fn bytes(&self) -> usize {
        let lists = [&self.first, &self.last, &self.class_of];
        lists
            .iter()
            .map(|list| bytes_of::<u32>(list.capacity()))
            .sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::monitor::unwatched;
    use crate::model::schema::{Field, MatchKind};

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
        // Ends of the rules, the class of each interval, the intervals of each
        // rule.
        type Case<'a> = (&'a [(u128, u128)], &'a [u32], &'a [(u32, u32)]);
        let cases: [Case<'_>; 4] = [
            (&[], &[0], &[]),
            (&[(0, 65535)], &[0], &[(0, 0)]),
            (
                &[(10, 20), (15, 30), (0, 65535)],
                &[0, 1, 2, 3, 0],
                &[(1, 2), (2, 3), (0, 4)],
            ),
            // Single values with gaps between them: one at the end of the
            // field, one twice.
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
