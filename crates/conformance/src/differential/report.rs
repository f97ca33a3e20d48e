//! The report of a wrong answer, with a scenario that repeats it.

use std::fmt;

use classyard::Progress;

use super::scenario::{Scenario, minimise};
use super::{Finding, Question};
use crate::{Subject, text};

/// A classifier's wrong answer, with all data to repeat it.
///
/// Its text ends with a case in the format of [`crate::vectors`], which can be pasted
/// into a file of regression cases.
#[derive(Clone, Debug)]
pub struct Disagreement {
    /// The engine's specification.
    pub subject: String,
    /// The seed of the run.
    pub seed: u64,
    /// The number of transactions, reorganisations and re-optimisations before.
    pub step: usize,
    /// The problem.
    pub finding: Finding,
    /// The steps to repeat it.
    pub scenario: Scenario,
    /// True if the scenario was made small, and a replay repeats the finding.
    pub minimal: bool,
}

impl Disagreement {
    /// Returns the disagreement with the smallest scenario that [`minimise`] finds.
    #[must_use]
    pub fn minimised(mut self, subject: &Subject, progress: &mut dyn Progress) -> Disagreement {
        let kind = self.finding.kind();
        if let Some((scenario, finding)) = minimise(subject, &self.scenario, kind, progress) {
            self.scenario = scenario;
            self.finding = finding;
            self.minimal = true;
        }
        self
    }

    /// Returns the scenario as a case for a file of vectors.
    #[must_use]
    pub fn to_case(&self) -> String {
        let name = format!(
            "{}: wrong {} (seed {}, step {})",
            self.subject,
            self.finding.kind(),
            self.seed,
            self.step
        );
        self.scenario.to_case(&name, &self.finding).to_toml()
    }
}

impl fmt::Display for Disagreement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Disagreement {
            subject,
            seed,
            step,
            finding,
            scenario,
            minimal,
        } = self;
        let schema = &scenario.schema;
        writeln!(f, "engine {subject}: {} is wrong", scenario.question)?;
        writeln!(f, "  {}", finding.describe(schema))?;
        writeln!(f, "found with seed {seed} after {step} steps")?;
        if !minimal {
            writeln!(f, "(the scenario below was not made smaller)")?;
        }
        let oracle = scenario.end();
        for id in finding.rules() {
            match oracle.get(id) {
                Some(rule) => writeln!(f, "  rule {}", text::write_rule(rule.view()))?,
                None => writeln!(f, "  rule {id} is not there")?,
            }
        }
        match &scenario.question {
            Question::Batch { best, .. } | Question::BatchMasked { best, .. } => {
                writeln!(f, "  candidates {best:?}")?;
            }
            Question::Masked { best, preset, .. } => {
                writeln!(f, "  candidate {best:?}, mask before {preset:x?}")?;
            }
            _ => {}
        }
        writeln!(f, "as a case:\n")?;
        f.write_str(&self.to_case())
    }
}
