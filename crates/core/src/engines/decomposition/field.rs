//! One field or superfield: maps a key's value to a bit vector and a list.

use super::cuckoo::Cuckoo;
use crate::budget::memory::bytes_of;
use crate::model::schema::{FieldId, Part, Placement, Schema, prefix_mask};
use crate::parts::range_tree::{GROUP, RangeTree};

/// A class of values with the same rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Class {
    /// The position of the class's vector, in blocks; 0 in a field without vectors.
    pub(super) row: u32,
    /// The position of the class's list; 0 for the empty list.
    pub(super) list: u32,
}

/// A field of the schema, or several short fields that are searched together.
pub(super) struct Field {
    /// The fields of the schema.
    pub(super) members: Vec<Member>,
    pub(super) search: Search,
    /// The first class has the values that no rule names.
    pub(super) classes: Vec<Class>,
    pub(super) numbers: Numbers,
    pub(super) has_lists: bool,
    pub(super) has_rows: bool,
    /// The best place in any list.
    pub(super) first_listed: u32,
}

/// A field of the schema and its elementary intervals.
pub(super) struct Member {
    pub(super) id: FieldId,
    pub(super) placement: Placement,
    pub(super) intervals: RangeTree,
}

/// The meaning of the number that a field's search returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Numbers {
    /// The number of a class.
    Classes,
    /// The position of the list, in a field without vectors.
    Lists,
    /// The position of the vector, in a field without lists, less the position of the
    /// vector for values that no rule names.
    Rows(u32),
}

impl Numbers {
    /// Returns the number that a search returns for a class.
    pub(super) fn of(self, class: Class, number: u32) -> u32 {
        match self {
            Numbers::Classes => number,
            Numbers::Lists => class.list,
            Numbers::Rows(open) => class.row.wrapping_sub(open),
        }
    }

    /// Returns the class for the number that a search returned.
    #[inline(always)]
    fn class(self, number: u32, classes: &[Class]) -> Class {
        match self {
            Numbers::Classes => classes[number as usize],
            Numbers::Lists => Class {
                row: 0,
                list: number,
            },
            Numbers::Rows(open) => Class {
                row: number.wrapping_add(open),
                list: 0,
            },
        }
    }
}

/// The structure that maps values to numbers.
pub(super) enum Search {
    /// A table with an entry for each value, or for each combination of the members'
    /// values, which are shifted so that they do not overlap.
    Direct {
        parts: Vec<(Part, u32)>,
        table: Vec<u16>,
    },
    /// A hash table, if all values that rules name are single values. All other
    /// values have the number 0.
    Hash(Cuckoo),
    /// The range tree of the only member, with the number of each interval.
    Tree(Vec<u32>),
}

impl Field {
    pub(super) fn bytes(&self) -> usize {
        let members = self.members.iter();
        let members = members.map(|member| member.intervals.bytes());
        let search = match &self.search {
            Search::Direct { parts, table } => {
                bytes_of::<(Part, u32)>(parts.capacity()) + bytes_of::<u16>(table.capacity())
            }
            Search::Hash(table) => table.bytes(),
            Search::Tree(numbers) => bytes_of::<u32>(numbers.capacity()),
        };
        bytes_of::<Member>(self.members.capacity())
            + members.sum::<usize>()
            + search
            + bytes_of::<Class>(self.classes.capacity())
    }

    /// Returns the class of a key's value.
    #[inline(always)]
    pub(super) fn class(&self, key: &[u64]) -> Class {
        let number = match &self.search {
            Search::Direct { parts, table } => direct(parts, table, key),
            Search::Hash(table) => table.find(self.members[0].placement.get(key)),
            Search::Tree(numbers) => {
                let member = &self.members[0];
                numbers[member.intervals.find(&member.placement, key)]
            }
        };
        self.numbers.class(number, &self.classes)
    }

    /// Writes the classes of several keys' values to `classes`.
    #[inline]
    #[allow(clippy::cast_possible_truncation)] // values of sixteen bits
    pub(super) fn classes_of<const W: usize>(
        &self,
        keys: &[[u64; W]; GROUP],
        classes: &mut [Class; GROUP],
    ) {
        let mut numbers = [0_u32; GROUP];
        match &self.search {
            Search::Direct { parts, table } => match parts.as_slice() {
                [(part, _)] => {
                    for (number, key) in numbers.iter_mut().zip(keys) {
                        *number = u32::from(table[part.get(key) as usize]);
                    }
                }
                parts => {
                    for (number, key) in numbers.iter_mut().zip(keys) {
                        *number = direct(parts, table, key);
                    }
                }
            },
            Search::Hash(table) => table.find_each(&self.members[0].placement, keys, &mut numbers),
            Search::Tree(interval_numbers) => {
                let member = &self.members[0];
                let mut intervals = [0; GROUP];
                (member.intervals).find_each(&member.placement, keys, &mut intervals);
                for (number, interval) in numbers.iter_mut().zip(intervals) {
                    *number = interval_numbers[interval];
                }
            }
        }
        for (class, number) in classes.iter_mut().zip(numbers) {
            *class = self.numbers.class(number, &self.classes);
        }
    }

    /// The number of bits of a key's value that determine its class.
    pub(super) fn bits(&self, schema: &Schema, key: &[u64]) -> u32 {
        self.members
            .iter()
            .map(|member| member.leading_bits(schema, key))
            .sum()
    }

    /// Adds these bits to `mask`.
    pub(super) fn want(&self, schema: &Schema, key: &[u64], mask: &mut [u64]) {
        for member in &self.members {
            let width = schema.field(member.id).width();
            let length = member.leading_bits(schema, key);
            (member.placement).set_bits(mask, prefix_mask(width, length));
        }
    }
}

impl Member {
    /// Returns the smallest number of leading bits that determine the interval of a
    /// key.
    fn leading_bits(&self, schema: &Schema, key: &[u64]) -> u32 {
        let width = schema.field(self.id).width();
        self.intervals.leading_bits(&self.placement, width, key)
    }
}

/// Returns the class number of a key from a table of all values.
#[inline(always)]
#[allow(clippy::cast_possible_truncation)] // sixteen bits
fn direct(parts: &[(Part, u32)], table: &[u16], key: &[u64]) -> u32 {
    let mut index = 0;
    for (part, shift) in parts {
        index |= part.get(key) << shift;
    }
    table[index as usize].into()
}
