//! Learning again while rules change.
//!
//! Some engines fit their structure to the rules that they are built over.
//! Updates keep that structure, so lookups get dearer as the rules become
//! others: the engine *drifts*. It can be fitted again without a pause:
//!
//! ```text
//! drift   DynamicClassifier::drift     what a lookup costs, against when learned
//! study   DynamicClassifier::study     notes on the rules, some at a time
//! learn   Study::learn                 without the classifier, on any thread
//! adopt   DynamicClassifier::adopt     from now on rules move, a few with each
//!                                      update and in calls of `maintain`
//! ```
//!
//! No answer changes at any time. What is learned from rules that are others by
//! now is adopted all the same: that costs speed and nothing else.
//!
//! ```
//! use classyard::*;
//!
//! let schema = Schema::ipv4_5tuple();
//! let engine = EngineSpec::parse("forest")?;
//! let empty = RuleSet::new(&schema);
//! let mut classifier = engine.build(&empty, &Limits::default(), &mut NoProgress)?;
//! let forest = classifier.as_dynamic().expect("it takes updates");
//! for number in 0..2000 {
//!     let mut matches = [FieldMatch::Any; 5];
//!     matches[1] = FieldMatch::Exact(u128::from(number) << 8);
//!     let rule = Rule::new(&schema, RuleId::new(number)?, Priority(1), ActionId(0), &matches)?;
//!     forest.apply(Transaction::new().insert(rule.view()))?;
//! }
//!
//! if forest.drift().is_some_and(|drift| drift.is_due()) {
//!     let plan = forest.learn(&mut NoProgress)?.expect("a forest learns");
//!     assert!(forest.adopt(&plan));
//!     while forest.maintain(64) {}
//! }
//! assert!(!forest.drift().expect("a forest says").is_due());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Beside readers the same is done through a live table; the
//! [`table`](crate::table) shows how.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use crate::classifier::{Classifier, Progress};
use crate::error::BuildError;
use crate::schema::Schema;

/// What a lookup costs now, and what it cost when the engine was fitted to its
/// rules: counted, not timed, over a few hundred of the rules, in units of the
/// engine's own.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Drift {
    /// With the rules and the structure of now.
    pub now: f64,
    /// When what was learned last was in place.
    pub learned: f64,
    /// A plan is being adopted: its effect is still to come.
    pub adopting: bool,
}

impl Drift {
    /// Lookups that cost this many times as much as when learned are worth
    /// learning again.
    pub const DUE: f64 = 1.5;

    /// The cost now, in costs when learned.
    #[must_use]
    pub fn ratio(&self) -> f64 {
        if self.learned > 0.0 {
            self.now / self.learned
        } else {
            1.0
        }
    }

    /// Whether it is time to learn again: lookups cost [`DUE`](Self::DUE) times
    /// what they did, and nothing is under way already.
    #[must_use]
    pub fn is_due(&self) -> bool {
        !self.adopting && self.ratio() >= Self::DUE
    }
}

/// What an engine notes down about its rules, in order to learn from it later.
pub trait Notes: Any + Send {
    /// Learns. Needs the classifier no more; may take as long as a build.
    ///
    /// # Errors
    /// [`BuildError::Stopped`] when the observer asks to stop.
    fn learn(&self, progress: &mut dyn Progress) -> Result<LookupPlan, BuildError>;
}

/// Notes on a classifier's rules, taken some at a time, so that no single look
/// at the classifier takes long. Rules may change between two looks.
#[derive(Default)]
pub struct Study {
    notes: Option<Box<dyn Notes>>,
}

impl Study {
    /// Nothing noted yet.
    #[must_use]
    pub fn new() -> Study {
        Study::default()
    }

    /// An engine's notes; `fresh` ones, if there are none or they are another
    /// engine's.
    pub fn notes<T: Notes>(&mut self, fresh: impl FnOnce() -> T) -> &mut T {
        let known = self.notes.as_deref().is_some_and(|notes| {
            let notes: &dyn Any = notes;
            notes.is::<T>()
        });
        if !known {
            self.notes = Some(Box::new(fresh()));
        }
        let notes: &mut dyn Any = self.notes.as_deref_mut().expect("just made");
        notes.downcast_mut().expect("just checked")
    }

    /// Learns from the notes; `None` if the engine took none.
    ///
    /// # Errors
    /// [`BuildError::Stopped`] when the observer asks to stop.
    pub fn learn(&self, progress: &mut dyn Progress) -> Result<Option<LookupPlan>, BuildError> {
        let notes = self.notes.as_ref();
        notes.map(|notes| notes.learn(progress)).transpose()
    }
}

impl fmt::Debug for Study {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Study").finish_non_exhaustive()
    }
}

/// What an engine has learned about rules: how to arrange them. Any classifier
/// of the same engine and schema can adopt it; copies share it.
#[derive(Clone)]
pub struct LookupPlan {
    engine: &'static str,
    schema: Arc<Schema>,
    plan: Arc<dyn Any + Send + Sync>,
}

impl LookupPlan {
    /// An engine's plan.
    pub fn new<T: Any + Send + Sync>(
        engine: &'static str,
        schema: &Arc<Schema>,
        plan: T,
    ) -> LookupPlan {
        LookupPlan {
            engine,
            schema: Arc::clone(schema),
            plan: Arc::new(plan),
        }
    }

    /// The engine that it is for.
    #[must_use]
    pub fn engine(&self) -> &'static str {
        self.engine
    }

    /// Whether a classifier can adopt it.
    #[must_use]
    pub fn fits(&self, classifier: &dyn Classifier) -> bool {
        self.engine == classifier.engine() && &self.schema == classifier.schema()
    }

    /// The engine's own plan, if it is of that type.
    #[must_use]
    pub fn get<T: Any + Send + Sync>(&self) -> Option<Arc<T>> {
        Arc::clone(&self.plan).downcast().ok()
    }
}

impl fmt::Debug for LookupPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LookupPlan")
            .field("engine", &self.engine)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn learning_is_due_where_lookups_have_become_dear() {
        let drift = |now, learned, adopting| Drift {
            now,
            learned,
            adopting,
        };
        assert!(drift(15.0, 10.0, false).is_due());
        assert!(!drift(14.9, 10.0, false).is_due());
        assert!(!drift(90.0, 10.0, true).is_due(), "it is being done");
        assert!(!drift(0.0, 0.0, false).is_due(), "no rules");
        assert!((drift(30.0, 10.0, false).ratio() - 3.0).abs() < 1e-9);
    }
}
