//! The limit of steps of one kind of finding.

use crate::cover::Steps;

/// The steps that are left for one kind of finding, and their maximum number for one rule.
#[derive(Debug)]
pub(super) struct Limit {
    all: Steps,
    max_per_rule: u64,
}

impl Limit {
    /// Returns a limit of `max` steps. One rule takes at most `max_per_rule` of them.
    pub(super) fn new(max: u64, max_per_rule: u64) -> Limit {
        Limit {
            all: Steps::new(max),
            max_per_rule,
        }
    }

    /// Calls a function with the steps for one rule. Steps that are left are for later rules.
    pub(super) fn for_rule<R>(&mut self, decide: impl FnOnce(&mut Steps) -> R) -> R {
        let mut steps = self.all.portion(self.max_per_rule);
        let result = decide(&mut steps);
        self.all.give_back(&steps);
        result
    }
}
