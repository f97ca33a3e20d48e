//! The lists of rules at leaves.
//!
//! A list has places, ascending, so the first rule that matches is the best. A
//! rule that covers the leaf's box always matches, so it ends the list: the
//! rules after it are left out, and the list is *pruned*. Should that rule be
//! hidden, a search goes on over all rules from there, one by one.

use hashbrown::HashMap;

use crate::engine::ranked::RankedRules;
use crate::engine::tree::Entry;
use crate::error::BuildError;
use crate::memory::bytes_of;
use crate::monitor::Monitor;
use crate::rule::{RuleId, Winner};
use crate::seed::{MapState, splitmix};
use crate::unwildcard;

/// A list of all lists' places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::engine) struct List {
    pub(in crate::engine) first: u32,
    pub(in crate::engine) len: u32,
    /// Whether worse rules than the last one may match.
    pub(in crate::engine) is_pruned: bool,
}

/// The lists of all leaves.
#[derive(Default)]
pub(in crate::engine) struct Lists {
    places: Vec<u32>,
}

/// What finds equal lists while building.
#[derive(Default)]
pub(in crate::engine) struct Sharing {
    by_hash: HashMap<u64, List, MapState>,
}

impl Lists {
    /// The number of places in all lists.
    pub(in crate::engine) fn places(&self) -> usize {
        self.places.len()
    }

    pub(in crate::engine) fn bytes(&self) -> usize {
        bytes_of::<u32>(self.places.capacity())
    }

    /// Adds the list of a leaf, unless there is an equal one. Counts the memory.
    pub(in crate::engine) fn add(
        &mut self,
        entries: &[Entry],
        sharing: &mut Sharing,
        monitor: &mut Monitor<'_>,
    ) -> Result<List, BuildError> {
        let is_pruned = entries.last().is_some_and(|last| last.open == 0);
        let mut state = u64::from(is_pruned);
        let mut hash = 0;
        for entry in entries {
            state ^= u64::from(entry.place);
            hash = splitmix(&mut state);
        }
        let places = entries.iter().map(|entry| entry.place);
        if let Some(&known) = sharing.by_hash.get(&hash)
            && known.is_pruned == is_pruned
            && self.of(known).iter().copied().eq(places.clone())
        {
            return Ok(known);
        }
        let list = List {
            first: u32::try_from(self.places.len()).expect("places are bounded"),
            len: u32::try_from(entries.len()).expect("places of at most 2^28 rules"),
            is_pruned,
        };
        monitor.memory().room_in_map(&mut sharing.by_hash)?;
        sharing.by_hash.insert(hash, list);
        for place in places {
            monitor.memory().room_to_keep(&mut self.places)?;
            self.places.push(place);
        }
        Ok(list)
    }

    /// Gives spare room back, and what found equal lists.
    pub(in crate::engine) fn finish(
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

    /// The places of a list.
    #[inline(always)]
    pub(in crate::engine) fn of(&self, list: List) -> &[u32] {
        &self.places[list.first as usize..][..list.len as usize]
    }

    /// The better of `best` and the best rule of a list that matches.
    #[inline(always)]
    pub(in crate::engine) fn improve<const W: usize>(
        &self,
        rules: &RankedRules,
        list: List,
        key: &[u64; W],
        best: Winner,
    ) -> Winner {
        for &place in self.of(list) {
            let place = place as usize;
            if !best.is_miss() && !rules.winner(place).beats(best) {
                return best;
            }
            if rules.matches_key(place, key) {
                return rules.winner(place);
            }
        }
        if list.is_pruned {
            return self.improve_beyond(rules, list, key, best);
        }
        best
    }

    /// The same over the rules that were left out, whose place the last rule of
    /// the list took: it is hidden.
    #[cold]
    fn improve_beyond(&self, rules: &RankedRules, list: List, key: &[u64], best: Winner) -> Winner {
        let better = self.beyond(rules, list, best);
        let mut matching = better.filter(|&place| rules.matches(place, key));
        matching.next().map_or(best, |place| rules.winner(place))
    }

    /// The places after a pruned list's last one whose rules beat `best`.
    fn beyond(&self, rules: &RankedRules, list: List, best: Winner) -> impl Iterator<Item = usize> {
        let last = self.of(list).last();
        let from = last.map_or(0, |&last| last as usize + 1);
        from..rules.better_than(best)
    }

    /// Shows every rule that a search compares, with whether it matches. Hidden
    /// ones are passed over.
    fn compare(
        &self,
        rules: &RankedRules,
        list: List,
        key: &[u64],
        best: Winner,
        mut show: impl FnMut(usize, bool),
    ) {
        let places = self.of(list).iter().map(|&place| place as usize);
        let beyond = list.is_pruned.then(|| self.beyond(rules, list, best));
        for place in places.chain(beyond.into_iter().flatten()) {
            if !rules.winner(place).beats(best) {
                return;
            }
            if rules.is_hidden(place) {
                continue;
            }
            let matches = rules.rule(place).matches(key);
            show(place, matches);
            if matches {
                return;
            }
        }
    }

    /// As [`improve`](Self::improve), with the bits of the key that say which
    /// rules of the list match.
    pub(in crate::engine) fn improve_masked(
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
                winner = rules.winner(place);
            } else {
                unwildcard::refute(&rule, key, mask);
            }
        });
        winner
    }

    /// The ids of the rules that a search compares, and the best that matches.
    pub(in crate::engine) fn trace(
        &self,
        rules: &RankedRules,
        list: List,
        key: &[u64],
    ) -> (Vec<RuleId>, Winner) {
        let (mut compared, mut winner) = (Vec::new(), Winner::MISS);
        self.compare(rules, list, key, Winner::MISS, |place, matches| {
            compared.extend(rules.winner(place).rule());
            if matches {
                winner = rules.winner(place);
            }
        });
        (compared, winner)
    }
}
