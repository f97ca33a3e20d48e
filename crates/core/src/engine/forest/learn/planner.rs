//! Learning for a forest of any key width.
//!
//! Learning is compiled for a few key widths only: it is much code, and it is
//! not on the way of a lookup. The outlines of rules are copied to the next wider
//! key, whose added words are open in every rule, so no mask has bits there.

use std::fmt;
use std::sync::Arc;

use super::cost::Cost;
use super::effort::Level;
use super::plan::Plan;
use super::{Learner, LearnerOptions};
use crate::engine::forest::outline::Outline;
use crate::error::BuildError;
use crate::monitor::Monitor;
use crate::schema::Schema;

/// Copies the value and the mask of the rule at an index into the first words of
/// the two slices; returns its rank.
type CopyOutline<'a> = dyn Fn(usize, &mut [u64], &mut [u64]) -> u64 + 'a;

/// Masks of a plan, one after the other, and the rest of the plan.
struct WidePlan {
    mask_words: Vec<u64>,
    cost: Cost,
    words: usize,
}

/// A [`Learner`] of some key width.
trait LearnsMasks: fmt::Debug + Send + Sync {
    fn plan(
        &self,
        level: Level,
        rules: usize,
        copy_outline: &CopyOutline<'_>,
        monitor: &mut Monitor<'_>,
    ) -> Result<WidePlan, BuildError>;

    /// Words of a mask.
    fn mask_width(&self) -> usize;
}

impl<const P: usize> LearnsMasks for Learner<P> {
    fn plan(
        &self,
        level: Level,
        rules: usize,
        copy_outline: &CopyOutline<'_>,
        monitor: &mut Monitor<'_>,
    ) -> Result<WidePlan, BuildError> {
        let outline = |index| {
            let (mut value, mut mask) = ([0; P], [0; P]);
            let rank = copy_outline(index, &mut value, &mut mask);
            Outline { value, mask, rank }
        };
        let plan = self.plan(level, rules, outline, monitor)?;
        Ok(WidePlan {
            mask_words: plan.masks.into_flattened(),
            cost: plan.cost,
            words: plan.words,
        })
    }

    fn mask_width(&self) -> usize {
        P
    }
}

/// Chooses masks for rules of a schema.
#[derive(Clone, Debug)]
pub(in crate::engine::forest) struct Planner {
    learner: Arc<dyn LearnsMasks>,
}

/// Calls a function that is generic over a key width with the first compiled
/// width that holds keys of `$key_words` words.
macro_rules! at_learning_width {
    ($key_words:expr, $call:ident($($argument:expr),*)) => {
        match $key_words {
            ..=2 => $call::<2>($($argument),*),
            3..=6 => $call::<6>($($argument),*),
            _ => $call::<32>($($argument),*),
        }
    };
}

impl Planner {
    pub(in crate::engine::forest) fn new(
        schema: &Arc<Schema>,
        options: &LearnerOptions,
    ) -> Planner {
        fn learner<const P: usize>(
            schema: &Arc<Schema>,
            options: &LearnerOptions,
        ) -> Arc<dyn LearnsMasks> {
            Arc::new(Learner::<P>::new(schema, options))
        }
        Planner {
            learner: at_learning_width!(schema.key_words(), learner(schema, options)),
        }
    }

    /// Bytes of a planner for a schema.
    pub(in crate::engine::forest) fn bytes(schema: &Schema, any_bits: bool) -> usize {
        fn bytes<const P: usize>(schema: &Schema, any_bits: bool) -> usize {
            Learner::<P>::bytes(schema, any_bits)
        }
        at_learning_width!(schema.key_words(), bytes(schema, any_bits))
    }

    /// Returns the masks for tables of these rules; no mask if no bits tell the
    /// rules apart.
    ///
    /// # Errors
    /// [`BuildError`] when a limit is met or the observer cancels.
    pub(in crate::engine::forest) fn plan<const W: usize>(
        &self,
        level: Level,
        rules: usize,
        outline: impl Fn(usize) -> Outline<W>,
        monitor: &mut Monitor<'_>,
    ) -> Result<Plan<W>, BuildError> {
        let copy_outline = |index: usize, value: &mut [u64], mask: &mut [u64]| {
            let outline = outline(index);
            value[..W].copy_from_slice(&outline.value);
            mask[..W].copy_from_slice(&outline.mask);
            outline.rank
        };
        let plan = (self.learner).plan(level, rules, &copy_outline, monitor)?;
        let masks = plan.mask_words.chunks_exact(self.learner.mask_width());
        Ok(Plan {
            masks: masks
                .map(|mask| std::array::from_fn(|word| mask[word]))
                .collect(),
            cost: plan.cost,
            words: plan.words,
        })
    }
}
