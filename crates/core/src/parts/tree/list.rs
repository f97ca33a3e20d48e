//! The lists of rules at leaves.
//!
//! A list has places in ascending order, so the first matching rule is the best. A rule
//! *shadows* a worse rule if it matches every key of the leaf's box that the worse rule
//! matches. Shadowed rules are left out; after a rule that covers the box, so are all
//! others. If a rule that shadows others is hidden, a search that reaches it compares
//! all worse rules one by one.
//!
//! ```text
//! [ shadows others 1 | 0 | place 28 ] …
//! ```

use hashbrown::HashMap;

use crate::budget::memory::bytes_of;
use crate::budget::monitor::Monitor;
use crate::model::error::BuildError;
use crate::model::rule::{RuleId, Winner};
use crate::model::seed::{MapState, splitmix};
use crate::parts::ranked::RankedRules;
use crate::parts::simd::prefetch;
use crate::parts::tree::Entry;
use crate::parts::unwildcard;

/// A list: a range of the places of all lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct List {
    pub(crate) first: u32,
    pub(crate) len: u32,
}

/// Marks a rule that shadows others.
const SHADOWS_OTHERS: u32 = 1 << 31;

/// Returns a list's stored form of a rule.
fn stored(entry: &Entry) -> u32 {
    entry.place | if entry.shadows { SHADOWS_OTHERS } else { 0 }
}

/// Returns the place of a stored rule.
#[inline(always)]
fn place_of(stored: u32) -> usize {
    (stored & !SHADOWS_OTHERS) as usize
}

/// The lists of all leaves.
#[derive(Default)]
pub(crate) struct Lists {
    places: Vec<u32>,
}

/// Finds equal lists during a build.
#[derive(Default)]
pub(crate) struct Sharing {
    by_hash: HashMap<u64, List, MapState>,
}

impl Lists {
    /// The number of places in all lists.
    pub(crate) fn places(&self) -> usize {
        self.places.len()
    }

    pub(crate) fn bytes(&self) -> usize {
        bytes_of::<u32>(self.places.capacity())
    }

    /// Adds the list of a leaf, unless there is an equal one. Counts the memory.
    pub(crate) fn add(
        &mut self,
        entries: &[Entry],
        sharing: &mut Sharing,
        monitor: &mut Monitor<'_>,
    ) -> Result<List, BuildError> {
        let (mut state, mut hash) = (0, 0);
        for entry in entries {
            state ^= u64::from(stored(entry));
            hash = splitmix(&mut state);
        }
        let new_places = entries.iter().map(stored);
        if let Some(&known) = sharing.by_hash.get(&hash)
            && self.stored(known).iter().copied().eq(new_places.clone())
        {
            return Ok(known);
        }
        let list = List {
            first: u32::try_from(self.places.len()).expect("places are bounded"),
            len: u32::try_from(entries.len()).expect("places of at most 2^28 rules"),
        };
        monitor.memory().room_in_map(&mut sharing.by_hash)?;
        sharing.by_hash.insert(hash, list);
        for place in new_places {
            monitor.memory().room_to_keep(&mut self.places)?;
            self.places.push(place);
        }
        Ok(list)
    }

    /// Frees unused memory and the map that finds equal lists.
    pub(crate) fn finish(
        &mut self,
        sharing: Sharing,
        monitor: &mut Monitor<'_>,
    ) -> Result<(), BuildError> {
        monitor
            .memory()
            .give_back(sharing.by_hash.allocation_size());
        drop(sharing);
        let (old, new) = (self.places.capacity(), self.places.len());
        if old > new {
            let bytes = bytes_of::<u32>;
            monitor.memory().replace(bytes(old), bytes(new))?;
            self.places.shrink_to_fit();
        }
        Ok(())
    }

    /// The stored rules of a list.
    #[inline(always)]
    fn stored(&self, list: List) -> &[u32] {
        &self.places[list.first as usize..][..list.len as usize]
    }

    /// Reads the first place of a list.
    #[inline(always)]
    pub(crate) fn first(&self, list: List) -> Option<usize> {
        self.stored(list).first().map(|&first| place_of(first))
    }

    /// Prefetches the first places of a list.
    #[inline(always)]
    pub(crate) fn prefetch(&self, list: List) {
        if let Some(first) = self.places.get(list.first as usize) {
            prefetch(first);
        }
    }

    /// Returns the better of `best` and the best matching rule of a list.
    #[inline(always)]
    pub(crate) fn improve<const W: usize>(
        &self,
        rules: &RankedRules,
        list: List,
        key: &[u64; W],
        best: Winner,
    ) -> Winner {
        for &stored in self.stored(list) {
            let place = place_of(stored);
            if !best.is_miss() && !rules.winner(place).beats(best) {
                return best;
            }
            if rules.would_match(place, key) {
                if !rules.is_hidden(place) {
                    return rules.winner(place);
                }
                if stored & SHADOWS_OTHERS != 0 {
                    return improve_beyond(rules, place, key, best);
                }
            }
        }
        best
    }

    /// Calls `show` for every rule that a search compares, with true if it matches. Also
    /// shows a hidden rule that shadows others; skips all other hidden rules.
    fn compare(
        &self,
        rules: &RankedRules,
        list: List,
        key: &[u64],
        best: Winner,
        mut show: impl FnMut(usize, bool),
    ) {
        for &stored in self.stored(list) {
            let (place, shadows) = (place_of(stored), stored & SHADOWS_OTHERS != 0);
            if !rules.winner(place).beats(best) {
                return;
            }
            let is_hidden = rules.is_hidden(place);
            if is_hidden && !shadows {
                continue;
            }
            let matches = rules.rule(place).matches(key);
            show(place, matches);
            if matches && !is_hidden {
                return;
            }
            if matches {
                for place in place + 1..rules.better_than(best) {
                    if !rules.is_hidden(place) {
                        let matches = rules.rule(place).matches(key);
                        show(place, matches);
                        if matches {
                            return;
                        }
                    }
                }
                return;
            }
        }
    }

    /// Like [`improve`](Self::improve); also sets the bits of the key that determine
    /// which rules of the list match.
    pub(crate) fn improve_masked(
        &self,
        rules: &RankedRules,
        list: List,
        key: &[u64],
        best: Winner,
        mask: &mut [u64],
    ) -> Winner {
        let mut winner = best;
        self.compare(rules, list, key, best, |place, matches| {
            let rule = rules.rule(place);
            if matches {
                unwildcard::confirm(&rule, key, mask);
                if !rules.is_hidden(place) {
                    winner = rules.winner(place);
                }
            } else {
                unwildcard::refute(&rule, key, mask);
            }
        });
        winner
    }

    /// Returns the ids of the rules that a search compares, and the best matching rule.
    pub(crate) fn trace(
        &self,
        rules: &RankedRules,
        list: List,
        key: &[u64],
    ) -> (Vec<RuleId>, Winner) {
        let (mut compared, mut winner) = (Vec::new(), Winner::MISS);
        self.compare(rules, list, key, Winner::MISS, |place, matches| {
            if rules.is_hidden(place) {
                return;
            }
            compared.extend(rules.winner(place).rule());
            if matches {
                winner = rules.winner(place);
            }
        });
        (compared, winner)
    }
}

/// Returns the better of `best` and the best matching rule after `place`. The rule at
/// `place` is hidden and shadows rules that the list does not have.
#[cold]
fn improve_beyond(rules: &RankedRules, place: usize, key: &[u64], best: Winner) -> Winner {
    let mut worse = place + 1..rules.better_than(best);
    let matching = worse.find(|&place| rules.matches(place, key));
    matching.map_or(best, |place| rules.winner(place))
}
