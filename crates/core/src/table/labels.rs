//! The labels of rules: actions and cookies, which no lookup compares with a header.

use crate::model::rule::{ActionId, RuleId};
use crate::model::ruleset::RuleSet;
use crate::model::transaction::Change;

use super::actions::Actions;
use super::cookies::Cookies;

/// The actions and cookies of one engine's rules. They change with the engine's rules.
/// Public in a private module because a hidden trait of the live table names it.
#[derive(Debug)]
pub struct Labels {
    actions: Actions,
    cookies: Cookies,
}

impl Labels {
    /// Copies the actions and cookies of a rule set.
    pub(super) fn new(rules: &RuleSet) -> Labels {
        Labels {
            actions: Actions::new(rules),
            cookies: Cookies::new(rules),
        }
    }

    /// Applies a change that the engine has accepted.
    #[inline]
    pub(super) fn change(&mut self, change: &Change<'_>) {
        self.actions.change(change);
        self.cookies.change(change);
    }

    /// Returns the action of a rule; `None` if only the engine has it.
    #[inline]
    pub(super) fn action(&self, id: RuleId) -> Option<ActionId> {
        self.actions.get(id)
    }

    /// Returns the cookie of a rule in the engine; 0 if none was set.
    pub(super) fn cookie(&self, id: RuleId) -> u64 {
        self.cookies.get(id)
    }

    /// Returns the bytes held, including unused capacity.
    pub(super) fn bytes(&self) -> usize {
        self.actions.bytes() + self.cookies.bytes()
    }
}
