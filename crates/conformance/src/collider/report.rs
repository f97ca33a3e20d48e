//! Reports of comparing engines.

use std::fmt;

use classyard::policy::PartId;
use classyard::{RuleId, Stats, UpdateError, Winner};

use crate::Skip;
use crate::differential::Disagreement;

/// The sizes of an engine that took part in a comparison.
#[derive(Clone, Debug, PartialEq)]
pub struct EngineReport {
    /// The engine's specification.
    pub subject: String,
    /// Counts and sizes, one for each part of the policy.
    pub parts: Vec<Stats>,
}

/// The numbers of comparisons, summed over all engines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Counters {
    /// Headers in the trace.
    pub headers: usize,
    /// Headers looked up in batches.
    pub batch_lookups: usize,
    /// Headers looked up one at a time.
    pub single_lookups: usize,
    /// Headers looked up with a mask.
    pub masked_lookups: usize,
    /// Masks that were proved right against all rules.
    pub proofs: usize,
    /// Answers that were compared with the expected answers.
    pub expected: usize,
    /// Headers that match no rule.
    pub misses: usize,
    /// Transactions.
    pub transactions: usize,
    /// Changes in the transactions.
    pub changes: usize,
    /// Re-optimisations of engines.
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

/// The result of a comparison.
#[derive(Debug, Default)]
pub struct CollisionReport {
    /// The engines that took part, in order.
    pub engines: Vec<EngineReport>,
    /// The numbers of comparisons.
    pub counters: Counters,
    /// The engines and checks that were left out, with the reasons.
    pub skips: Vec<Skip>,
    /// The first disagreement, if there was one.
    pub collision: Option<Box<Collision>>,
    /// True if the progress callback cancelled the comparison.
    pub stopped: bool,
}

impl CollisionReport {
    /// True if there was no disagreement and nothing was left out.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.collision.is_none() && self.skips.is_empty() && !self.stopped
    }
}

/// The check that revealed a disagreement.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Lookup {
    /// In a batch lookup.
    Batch,
    /// In a single lookup.
    Single,
    /// In a masked lookup.
    Masked,
    /// The mask of a masked lookup lacks a bit: the header `escape` is equal on the mask's
    /// bits, but has another winner.
    Mask {
        /// The mask, field by field.
        mask: Vec<u128>,
        /// The header that proves the mask wrong.
        escape: Vec<u128>,
        /// The winner of that header.
        winner: Winner,
    },
    /// The answer differs from the expected answer.
    Expected,
    /// The engine panicked.
    Panic(String),
    /// The engine refused a valid transaction.
    Refused(UpdateError),
}

/// A disagreement, with all data to repeat it.
#[derive(Clone, Debug)]
pub struct Collision {
    /// The check that revealed it.
    pub lookup: Lookup,
    /// The header's position in the trace, from 0.
    pub index: usize,
    /// The part of the policy that the header belongs to.
    pub part: PartId,
    /// The header.
    pub header: Vec<u128>,
    /// The first engine with a wrong answer, or else the engine whose check revealed the
    /// disagreement.
    pub subject: String,
    /// Each engine's answer to the header in a batch of one.
    pub answers: Vec<(String, Result<Winner, String>)>,
    /// The expected answer, if there was a list of expected answers.
    pub expected: Option<Winner>,
    /// The right answer, found by scanning all rules.
    pub truth: Winner,
    /// The number of changes before.
    pub changes: usize,
    /// The seed of these changes.
    pub seed: u64,
    /// The rules that the answers name, each as text.
    pub rules: Vec<(RuleId, String)>,
    /// The header as text.
    pub header_text: String,
    /// A small scenario that repeats the disagreement with a new build; `None` if a new
    /// build does not repeat it.
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
