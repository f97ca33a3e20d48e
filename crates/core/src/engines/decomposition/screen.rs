//! Screens: tests of a rule before the full comparison.
//!
//! # Idea
//! A list or a vector shows that a rule matches in one field, or in a few. Most of
//! these candidates do not match in other fields, and comparing them reads several
//! cache lines. So each entry of a list, and of the vectors' places, has the rule's
//! place and a *tag*: a hash of the rule's bits in another field. It is the field
//! whose value the fewest rules share. The same hash of the key excludes nearly all
//! wrong candidates, with the data of one word:
//! ```text
//! entry:   [ screen 8 | tag 24 | place 32 ]
//! screens: [ word, mask ] …              at most 255, and screen 0 that passes all
//! ```
//! A tag excludes no rule that matches. Rules that pass are compared in full.

use hashbrown::HashMap;

use crate::budget::memory::bytes_of;
use crate::budget::monitor::Monitor;
use crate::model::error::BuildError;
use crate::model::schema::{FieldId, Schema};
use crate::model::seed::{MapState, fibonacci_hash};
use crate::parts::ranked::RankedRules;

/// The place of a rule, with its screen and tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry(u64);

impl Entry {
    /// The end of a list. Its place is above all other places.
    pub(super) const END: Entry = Entry(u32::MAX as u64);

    #[inline(always)]
    #[allow(clippy::cast_possible_truncation)] // the lower half is meant
    pub(super) fn place(self) -> usize {
        self.0 as u32 as usize
    }
}

/// The field number of a rule without a screen.
pub(super) const NO_SCREEN: u8 = u8::MAX;

/// The bits of a key that are hashed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Screen {
    word: usize,
    mask: u64,
}

/// The largest number of screens: their numbers have eight bits.
const MAX_SCREENS: usize = 256;

/// All screens. The first screen has an empty mask.
pub(super) struct Screens {
    all: Box<[Screen; MAX_SCREENS]>,
}

impl Screens {
    /// Chooses the screens of rules. `screen_of` has the field of each rule's screen,
    /// or [`NO_SCREEN`]. Replaces it by the number of the screen.
    ///
    /// # Errors
    /// [`BuildError::Stopped`], and the errors of
    /// [`Memory::keep`](crate::budget::memory::Memory::keep).
    pub(super) fn choose(
        rules: &RankedRules,
        screen_of: &mut [u8],
        monitor: &mut Monitor<'_>,
    ) -> Result<Screens, BuildError> {
        monitor.memory().keep(Self::BYTES)?;
        let mut screens = Screens {
            all: Box::new([Screen::default(); MAX_SCREENS]),
        };
        let mut known: HashMap<Screen, u8, MapState> = HashMap::default();
        let schema = rules.schema();
        let masks: Vec<Vec<u64>> = schema.field_ids().map(|id| bits_of(schema, id)).collect();
        for (place, screen_of) in screen_of.iter_mut().enumerate() {
            monitor.work(usize::from(place % 8 == 0))?;
            let Some(field) = masks.get(usize::from(*screen_of)) else {
                *screen_of = 0;
                continue;
            };
            // If a field is in two words, uses the word with more of the rule's bits.
            let bits = rules.rule(place).mask.iter().zip(field).enumerate();
            let screens_of_field = bits.map(|(word, (rule, field))| Screen {
                word,
                mask: rule & field,
            });
            let best = screens_of_field.max_by_key(|screen| screen.mask.count_ones());
            let best = best.unwrap_or_default();
            let next = known.len() + 1;
            *screen_of = match known.get(&best) {
                Some(&number) => number,
                None if next < MAX_SCREENS => {
                    let number = u8::try_from(next).expect("fewer than screens");
                    screens.all[next] = best;
                    known.insert(best, number);
                    number
                }
                None => 0,
            };
        }
        Ok(screens)
    }

    /// Bytes held by all screens.
    pub(super) const BYTES: usize = MAX_SCREENS * size_of::<Screen>();

    /// Returns the entry of a rule, with the screen number `screen`.
    pub(super) fn entry(&self, rules: &RankedRules, place: u32, screen: u8) -> Entry {
        let value = rules.rule(place as usize).value;
        let tag = self.all[usize::from(screen)].tag(value);
        Entry(u64::from(screen) << 56 | tag << 32 | u64::from(place))
    }

    /// True if a rule may match a key. The end of a list passes.
    #[inline(always)]
    pub(super) fn passes<const W: usize>(&self, entry: Entry, key: &[u64; W]) -> bool {
        let screen = &self.all[(entry.0 >> 56) as usize];
        // The minimum never changes the word. It lets the compiler omit the bounds
        // check.
        let bits = key[screen.word.min(W - 1)] & screen.mask;
        hash(bits) == entry.0 >> 32 & TAG_MASK
    }

    /// Does the same as [`passes`](Self::passes) for a key of any number of words.
    pub(super) fn passes_words(&self, entry: Entry, key: &[u64]) -> bool {
        let screen = &self.all[(entry.0 >> 56) as usize];
        screen.tag(key) == entry.0 >> 32 & TAG_MASK
    }
}

/// The bits of a tag.
const TAG_MASK: u64 = (1 << 24) - 1;

impl Screen {
    fn tag(self, words: &[u64]) -> u64 {
        hash(words[self.word] & self.mask)
    }
}

/// Returns a hash of 24 bits, which is 0 for 0. It is one-to-one for short fields at
/// the upper end of a word.
#[inline(always)]
fn hash(bits: u64) -> u64 {
    fibonacci_hash(bits) >> 40
}

/// Returns the bits of a field in a key's words.
fn bits_of(schema: &Schema, id: FieldId) -> Vec<u64> {
    let mut words = vec![0; schema.key_words()];
    let max_value = schema.field(id).max_value();
    schema.placement(id).set_bits(&mut words, max_value);
    words
}

/// For each rule, the two fields that the fewest rules share with it, among the
/// fields in its mask.
pub(super) struct Rarest {
    of: Vec<[(u32, u8); 2]>,
}

impl Rarest {
    /// Makes room for `rules` rules. Counts the memory as working memory.
    ///
    /// # Errors
    /// The errors of [`Memory::take`](crate::budget::memory::Memory::take).
    pub(super) fn new(rules: usize, monitor: &mut Monitor<'_>) -> Result<Rarest, BuildError> {
        monitor.memory().take(Self::bytes(rules))?;
        Ok(Rarest {
            of: vec![[(u32::MAX, NO_SCREEN); 2]; rules],
        })
    }

    fn bytes(rules: usize) -> usize {
        bytes_of::<[(u32, u8); 2]>(rules)
    }

    /// Records that `shared` rules share a rule's match in a field.
    pub(super) fn note(&mut self, place: usize, shared: u32, field: u8) {
        let [first, second] = &mut self.of[place];
        if shared < first.0 {
            *second = *first;
            *first = (shared, field);
        } else if shared < second.0 {
            *second = (shared, field);
        }
    }

    /// Returns the rarest field of each rule that is not the field of its list.
    pub(super) fn screens(
        self,
        list_of: &[u8],
        monitor: &mut Monitor<'_>,
    ) -> Result<Vec<u8>, BuildError> {
        monitor.memory().take(list_of.len())?;
        let fields = self.of.iter().zip(list_of);
        let fields = fields.map(|([first, second], &list)| match first.1 == list {
            true => second.1,
            false => first.1,
        });
        let fields = fields.collect();
        monitor.memory().give_back(Self::bytes(list_of.len()));
        Ok(fields)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::monitor::unwatched;
    use crate::model::limits::Limits;
    use crate::model::rule::{ActionId, FieldMatch, Priority, RuleId};
    use crate::model::ruleset::RuleSet;
    use crate::model::schema::{Field, MatchKind};

    /// Rules with more masks than there are screens: rules without a screen always
    /// pass, and the other rules pass keys that they match and few other keys.
    #[test]
    fn screens_pass_what_matches() {
        let fields = vec![
            Field::new("mask", 64, MatchKind::Ternary),
            Field::new("long", 100, MatchKind::Prefix),
        ];
        let schema = Schema::new("two", fields).unwrap();
        let mut rules = RuleSet::new(&schema);
        for number in 1..400_u128 {
            let (value, mask) = (number << 20, number << 20 | 1);
            let matches = [
                FieldMatch::Ternary { value, mask },
                FieldMatch::Prefix {
                    value: number << 80,
                    length: 20,
                },
            ];
            let id = RuleId::from_index(rules.len());
            rules.add(id, Priority(1), ActionId(0), &matches).unwrap();
        }
        for field in [0, 1, NO_SCREEN] {
            let mut screen_of = vec![field; rules.len()];
            let (ranked, screens) = unwatched(|monitor| {
                let ranked = RankedRules::build(&rules, &Limits::default(), monitor)?;
                let screens = Screens::choose(&ranked, &mut screen_of, monitor)?;
                Ok((ranked, screens))
            });
            let numbered = screen_of.iter().filter(|&&screen| screen > 0).count();
            assert_eq!(
                numbered,
                [MAX_SCREENS - 1, rules.len(), 0][usize::from(field.min(2))]
            );
            let mut passed = 0;
            for (place, &screen) in (0..).zip(&screen_of) {
                let entry = screens.entry(&ranked, place, screen);
                assert_eq!(entry.place(), place as usize);
                let value = |place: u32| -> [u64; 5] {
                    ranked.rule(place as usize).value.try_into().unwrap()
                };
                let next_rule = value((place + 1) % 399);
                for (key, is_own) in [(value(place), true), (next_rule, false)] {
                    let passes = screens.passes(entry, &key);
                    assert!(passes || !is_own);
                    assert_eq!(passes, screens.passes_words(entry, &key));
                    passed += usize::from(passes && !is_own && screen > 0);
                }
            }
            assert!(passed <= 130, "{passed}");
        }
    }

    #[test]
    fn the_rarest_field_besides_that_of_the_list_has_the_screen() {
        let fields = unwatched(|monitor| {
            let mut rarest = Rarest::new(4, monitor)?;
            for (place, shared, field) in [
                (0, 5, 3),
                (0, 2, 7),
                (0, 9, 8),
                (1, 5, 3),
                (2, 4, 1),
                (2, 4, 2),
            ] {
                rarest.note(place, shared, field);
            }
            rarest.screens(&[7, 3, 0, 9], monitor)
        });
        assert_eq!(fields, [3, NO_SCREEN, 1, NO_SCREEN]);
    }
}
