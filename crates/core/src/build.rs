//! Builders of engines, policies and live tables, with defaults for limits and
//! progress.

use crate::budget::progress::{NoProgress, Progress};
use crate::contract::classifier::Classifier;
use crate::contract::spec::EngineSpec;
use crate::model::error::BuildError;
use crate::model::limits::Limits;
use crate::model::ruleset::RuleSet;
use crate::policy::{Policy, PolicyClassifier};
use crate::table::{PolicyTable, PolicyWriter, Table, Writer};

/// Builds classifiers and live tables with the engine of an [`EngineSpec`]. By default,
/// there are no limits and no progress callback. [`EngineSpec::builder`] returns a
/// builder.
pub struct EngineBuilder<'a> {
    spec: &'a EngineSpec,
    limits: Limits,
    progress: Option<&'a mut dyn Progress>,
}

impl EngineSpec {
    /// Returns a builder for this engine.
    ///
    /// [`EngineSpec::build`] builds the same classifier; it takes limits and a progress
    /// callback as arguments.
    ///
    /// ```
    /// use classyard::{EngineSpec, Rule, RuleSet, Schema};
    ///
    /// let schema = Schema::ipv4_5tuple();
    /// let mut rules = RuleSet::new(&schema);
    /// rules.push(Rule::builder(&schema).id(1).field("dport", 443).build()?.view())?;
    ///
    /// let engine = EngineSpec::parse("forest")?;
    /// let classifier = engine.builder().build(&rules)?;
    /// assert_eq!(classifier.stats().rules, 1);
    ///
    /// // A live table of the same rules: a writer changes it while readers use it.
    /// let (writer, table) = engine.builder().max_rules(1000).table(&rules)?;
    /// assert_eq!((writer.rules(), table.reader().pin().len()), (1, 1));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn builder(&self) -> EngineBuilder<'_> {
        EngineBuilder {
            spec: self,
            limits: Limits::default(),
            progress: None,
        }
    }
}

impl<'a> EngineBuilder<'a> {
    /// Sets all limits.
    #[must_use]
    pub fn limits(self, limits: Limits) -> Self {
        EngineBuilder { limits, ..self }
    }

    /// Sets the maximum number of rules, in the build and after every update.
    #[must_use]
    pub fn max_rules(mut self, rules: usize) -> Self {
        self.limits.rules = rules;
        self
    }

    /// Sets the maximum number of bytes that a built engine holds.
    #[must_use]
    pub fn max_bytes(mut self, bytes: usize) -> Self {
        self.limits.bytes = bytes;
        self
    }

    /// Sets the maximum number of bytes that are allocated at any moment of the build.
    #[must_use]
    pub fn max_peak_bytes(mut self, bytes: usize) -> Self {
        self.limits.peak_bytes = bytes;
        self
    }

    /// Sets the progress callback, which can cancel the build.
    #[must_use]
    pub fn progress(self, progress: &'a mut dyn Progress) -> Self {
        EngineBuilder {
            progress: Some(progress),
            ..self
        }
    }

    fn run<T>(
        self,
        build: impl FnOnce(&EngineSpec, &Limits, &mut dyn Progress) -> Result<T, BuildError>,
    ) -> Result<T, BuildError> {
        match self.progress {
            Some(progress) => build(self.spec, &self.limits, progress),
            None => build(self.spec, &self.limits, &mut NoProgress),
        }
    }

    /// Builds a classifier over a copy of the rules.
    ///
    /// # Errors
    /// As for [`EngineSpec::build`].
    pub fn build(self, rules: &RuleSet) -> Result<Box<dyn Classifier>, BuildError> {
        self.run(|spec, limits, progress| spec.build(rules, limits, progress))
    }

    /// Builds an engine for each part of a policy.
    ///
    /// # Errors
    /// As for [`Policy::build`].
    pub fn policy(self, policy: &Policy) -> Result<PolicyClassifier, BuildError> {
        self.run(|spec, limits, progress| policy.build(spec, limits, progress))
    }

    /// Builds a live table. Returns its writer, and the handle that creates readers.
    ///
    /// # Errors
    /// As for [`Table::build`].
    pub fn table(self, rules: &RuleSet) -> Result<(Writer, Table), BuildError> {
        self.run(|spec, limits, progress| Table::build(rules, spec, limits, progress))
    }

    /// Builds a live table with an engine for each part of a policy.
    ///
    /// # Errors
    /// As for [`PolicyTable::build_policy`].
    pub fn policy_table(self, policy: &Policy) -> Result<(PolicyWriter, PolicyTable), BuildError> {
        self.run(|spec, limits, progress| PolicyTable::build_policy(policy, spec, limits, progress))
    }
}
