//! Counts of rows by the rule that decides them.

use std::collections::{BTreeMap, HashMap};

use classyard_arrow::NO_RULE;

/// Ids below this number are counted in an array, larger ids in a map.
const MAX_ARRAY_IDS: u32 = 1 << 22;

/// Counts of rows by the rule that decides them.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) rows: u64,
    pub(crate) null_rows: u64,
    pub(crate) other_family_rows: u64,
    /// Rows that no rule decides, with a header or without.
    without_rule: u64,
    by_small_id: Vec<u64>,
    by_id: HashMap<u32, u64>,
}

impl Counts {
    /// Counts the rows of a batch. `without_header` is the number of rows without a header,
    /// with rows of another family.
    pub(crate) fn add(&mut self, rules: &[u32], without_header: usize, of_other_family: usize) {
        self.rows += rules.len() as u64;
        self.other_family_rows += of_other_family as u64;
        self.null_rows += (without_header - of_other_family) as u64;
        for &rule in rules {
            if let Some(count) = self.by_small_id.get_mut(rule as usize) {
                *count += 1;
            } else {
                self.add_new(rule);
            }
        }
    }

    #[cold]
    fn add_new(&mut self, rule: u32) {
        if rule == NO_RULE {
            self.without_rule += 1;
        } else if rule < MAX_ARRAY_IDS {
            let length = (rule as usize + 1).next_power_of_two();
            self.by_small_id.resize(length, 0);
            self.by_small_id[rule as usize] += 1;
        } else {
            *self.by_id.entry(rule).or_default() += 1;
        }
    }

    pub(crate) fn merge(&mut self, other: &Counts) {
        self.rows += other.rows;
        self.null_rows += other.null_rows;
        self.other_family_rows += other.other_family_rows;
        self.without_rule += other.without_rule;
        if self.by_small_id.len() < other.by_small_id.len() {
            self.by_small_id.resize(other.by_small_id.len(), 0);
        }
        for (count, more) in self.by_small_id.iter_mut().zip(&other.by_small_id) {
            *count += more;
        }
        for (&rule, more) in &other.by_id {
            *self.by_id.entry(rule).or_default() += more;
        }
    }

    /// Returns the number of rows with a header that no rule decides.
    pub(crate) fn unmatched(&self) -> u64 {
        self.without_rule - self.null_rows - self.other_family_rows
    }

    /// Returns the number of rows that each rule decides, by the rule's id, without zeros.
    pub(crate) fn hits(&self) -> BTreeMap<u32, u64> {
        let small = (0..).zip(self.by_small_id.iter().copied());
        let large = self.by_id.iter().map(|(&rule, &count)| (rule, count));
        small.chain(large).filter(|(_, count)| *count > 0).collect()
    }
}
