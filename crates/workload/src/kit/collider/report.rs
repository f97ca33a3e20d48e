//! What came of comparing engines.

use std::fmt;

use classyard::policy::PartId;
use classyard::{RuleId, Stats, UpdateError, Winner};

use crate::kit::Skip;
use crate::kit::differential::Disagreement;

/// What an engine took part in.
#[derive(Clone, Debug, PartialEq)]
pub struct EngineReport {
    /// The engine's specification.
    pub subject: String,
    /// Counts and sizes, one for each part of the policy.
    pub parts: Vec<Stats>,
}

/// How much was compared, over all engines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Counters {
    /// Headers in the trace.
    pub headers: usize,
    /// Headers looked up in batches.
    pub batch_lookups: usize,
    /// Headers looked up singly.
    pub single_lookups: usize,
    /// Headers looked up with a mask.
    pub masked_lookups: usize,
    /// Masks that were proved right against all rules.
    pub proofs: usize,
    /// Answers that were held against the expected ones.
    pub expected: usize,
    /// Headers that match no rule.
    pub misses: usize,
    /// Transactions.
    pub transactions: usize,
    /// Changes in them.
    pub changes: usize,
    /// Times that an engine re-optimised from its rules.
    pub reoptimisations: usize,
}

impl fmt::Display for Counters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counts = [
            ("headers", self.headers),
            ("batch lookups", self.batch_lookups),
            ("single lookups", self.single_lookups),
            ("masked lookups", self.masked_lookups),
            ("masks proved", self.proofs),
            ("expected answers", self.expected),
            ("misses", self.misses),
            ("transactions", self.transactions),
            ("changes", self.changes),
            ("reoptimisations", self.reoptimisations),
        ];
        let done = counts.into_iter().filter(|&(_, count)| count > 0);
        for (index, (name, count)) in done.enumerate() {
            let separator = if index == 0 { "" } else { ", " };
            write!(f, "{separator}{count} {name}")?;
        }
        Ok(())
    }
}

/// What came of a comparison.
#[derive(Debug, Default)]
pub struct CollisionReport {
    /// The engines that took part, in order.
    pub engines: Vec<EngineReport>,
    /// How much was compared.
    pub counters: Counters,
    /// What did not take part, and why.
    pub skips: Vec<Skip>,
    /// The first disagreement, if there was one.
    pub collision: Option<Box<Collision>>,
    /// Whether the observer ended it early.
    pub stopped: bool,
}

impl CollisionReport {
    /// Whether nothing was wrong and nothing was left out.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.collision.is_none() && self.skips.is_empty() && !self.stopped
    }
}

/// How a disagreement showed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Lookup {
    /// In a batch lookup.
    Batch,
    /// In a single lookup.
    Single,
    /// In a masked lookup.
    Masked,
    /// The mask of a masked lookup misses a bit: this header agrees on it, and
    /// its winner is another.
    Mask {
        /// The mask, field by field.
        mask: Vec<u128>,
        /// The header.
        escape: Vec<u128>,
        /// Its winner.
        winner: Winner,
    },
    /// The expected answer is another.
    Expected,
    /// The engine panicked.
    Panic(String),
    /// The engine refused a transaction that is right.
    Refused(UpdateError),
}

/// A disagreement, with everything that is needed to repeat it.
#[derive(Clone, Debug)]
pub struct Collision {
    /// How it showed.
    pub lookup: Lookup,
    /// The header's position in the trace, from 0.
    pub index: usize,
    /// The part of the policy that the header belongs to.
    pub part: PartId,
    /// The header.
    pub header: Vec<u128>,
    /// The first engine that is wrong, or the one that showed it.
    pub subject: String,
    /// Each engine's answer to the header in a batch of one.
    pub answers: Vec<(String, Result<Winner, String>)>,
    /// The answer that was expected, where there was a list.
    pub expected: Option<Winner>,
    /// The right answer, found by scanning all rules.
    pub truth: Winner,
    /// Changes that were made before.
    pub changes: usize,
    /// The seed of these changes.
    pub seed: u64,
    /// The rules that are named, each as text.
    pub rules: Vec<(RuleId, String)>,
    /// The header as text.
    pub header_text: String,
    /// A small scenario that shows the same, built afresh; `None` when the
    /// wrong answer does not show then.
    pub minimal: Option<Box<Disagreement>>,
}

impl fmt::Display for Collision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Collision {
            index,
            subject,
            header_text,
            truth,
            changes,
            seed,
            ..
        } = self;
        let what = match &self.lookup {
            Lookup::Batch => "a batch lookup is wrong",
            Lookup::Single => "a single lookup is wrong",
            Lookup::Masked => "a masked lookup is wrong",
            Lookup::Mask { .. } => "a mask misses a bit",
            Lookup::Expected => "the expected answer is another",
            Lookup::Panic(_) => "panicked",
            Lookup::Refused(_) => "refuses a transaction",
        };
        writeln!(f, "engine {subject}: {what}")?;
        writeln!(f, "  header {index}: {header_text}")?;
        match &self.lookup {
            Lookup::Panic(message) => writeln!(f, "  message: {message}")?,
            Lookup::Refused(error) => writeln!(f, "  error: {error}")?,
            Lookup::Mask {
                mask,
                escape,
                winner,
            } => {
                writeln!(f, "  mask, field by field: {mask:#x?}")?;
                writeln!(
                    f,
                    "  header {escape:?} agrees on it; its winner is {winner:?}"
                )?;
            }
            _ => {}
        }
        writeln!(f, "  right: {truth:?}")?;
        if let Some(expected) = self.expected {
            writeln!(f, "  expected: {expected:?}")?;
        }
        for (subject, answer) in &self.answers {
            match answer {
                Ok(winner) => writeln!(f, "  {subject}: {winner:?}")?,
                Err(message) => writeln!(f, "  {subject}: panicked: {message}")?,
            }
        }
        for (_, rule) in &self.rules {
            writeln!(f, "  rule {rule}")?;
        }
        if *changes > 0 {
            writeln!(f, "after {changes} random changes with seed {seed}")?;
        }
        if let Some(minimal) = &self.minimal {
            write!(f, "made smaller:\n{minimal}")?;
        }
        Ok(())
    }
}
