//! The forest as an engine: forwards the adapter's calls.

use super::index::Forest;
use super::learn::Learner;
use super::lookup::{Buffers, LookupConfig};
use super::settings::{Feature, NAME, Settings, wants_fingerprints};
use super::slot::MAX_RUN;
use crate::contract::adapter::{Algorithm, DynamicEveryWidth, Updates};
use crate::contract::classifier::{LookupTrace, Metric, Progress};
use crate::contract::options::EngineOptions;
use crate::contract::reoptimise::{Drift, LookupPlan, Reoptimise, Snapshot};
use crate::contract::spec::BuildRequest;
use crate::model::error::BuildError;
use crate::model::rule::{ActionId, Priority, RuleId, RuleRef, Winner};
use crate::model::transaction::Change;
use crate::parts::simd::Isa;

/// The engine at every key width.
pub(super) struct AnyWidth;

impl DynamicEveryWidth for AnyWidth {
    type At<const W: usize> = Forest<W>;
}

/// Converts the engine's options.
fn settings(options: &EngineOptions) -> (Settings, LookupConfig) {
    let without = Feature::named(options.choice("without"));
    let settings = Settings {
        target: options.whole("bucket"),
        most: if without == Some(Feature::NestedTables) {
            MAX_RUN
        } else {
            options.whole("most")
        },
        seed: options.seed("seed").number(),
        without,
    };
    let isa = Isa::named(options.choice("isa")).expect("the specification was checked");
    let instead = |feature| {
        if settings.has(feature) {
            isa
        } else {
            Isa::Scalar
        }
    };
    let lookup = LookupConfig {
        probing: instead(Feature::Vectors),
        comparing: instead(Feature::Blocks),
        prefetch: settings.has(Feature::Prefetch),
    };
    (settings, lookup)
}

impl<const W: usize> Algorithm<W> for Forest<W> {
    type Buffers = Buffers;

    fn build(request: &mut BuildRequest<'_>) -> Result<Self, BuildError> {
        let rules = request.rules;
        let options = request.spec.options();
        let (settings, lookup) = settings(options);
        let learner = Learner::<W>::bytes(rules.schema(), settings.has(Feature::AnyBits));
        request.memory.take(learner)?;
        let fingerprints = wants_fingerprints(options.choice("fingerprints"), rules);
        let mut forest = Forest::for_rules(rules, settings, lookup, fingerprints);
        let bytes = rules.len().saturating_mul(forest.rule_bytes());
        request.limits.check_bytes(bytes)?;
        forest.fill(rules.iter(), &mut request.monitor())?;
        Ok(forest)
    }

    fn improve(&self, key: &[u64; W], best: Winner) -> Winner {
        Forest::improve(self, key, best)
    }

    fn improve_batch(&self, keys: &[[u64; W]], winners: &mut [Winner], buffers: &mut Buffers) {
        Forest::improve_batch(self, keys, winners, buffers);
    }

    fn improve_masked(&self, key: &[u64; W], best: Winner, mask: &mut [u64; W]) -> Winner {
        Forest::improve_masked(self, key, best, mask)
    }

    fn trace(&self, key: &[u64; W]) -> LookupTrace {
        Forest::trace(self, key)
    }

    fn rules(&self) -> usize {
        self.len()
    }

    fn tables(&self) -> usize {
        self.table_count()
    }

    fn bytes(&self) -> usize {
        Forest::bytes(self)
    }

    fn metrics(&self) -> Vec<Metric> {
        Forest::metrics(self)
    }
}

impl<const W: usize> Updates<W> for Forest<W> {
    fn capacity(&self) -> usize {
        Forest::capacity(self)
    }

    fn contains(&self, id: RuleId) -> bool {
        Forest::contains(self, id)
    }

    fn copy_rule(&self, id: RuleId, words: &mut Vec<u64>) -> Option<Priority> {
        Forest::copy_rule(self, id, words)
    }

    fn action(&self, id: RuleId) -> Option<ActionId> {
        Forest::action(self, id)
    }

    fn winners(&self) -> Vec<Winner> {
        Forest::winners(self)
    }

    fn insert(&mut self, rule: &RuleRef<'_>) -> bool {
        let inserted = Forest::insert(self, rule);
        self.maintain_after(inserted)
    }

    fn remove(&mut self, id: RuleId) -> bool {
        let removed = Forest::remove(self, id);
        self.maintain_after(removed)
    }

    fn replace(&mut self, rule: &RuleRef<'_>) -> bool {
        let replaced = Forest::replace(self, rule);
        self.maintain_after(replaced)
    }

    fn prefetch(&self, changes: &[Change<'_>]) {
        Forest::prefetch(self, changes);
    }

    fn make(&mut self, changes: &[Change<'_>]) {
        Forest::make(self, changes);
    }

    fn rebuild(&mut self, progress: &mut dyn Progress) -> Result<(), BuildError> {
        Forest::rebuild(self, progress)
    }

    fn reoptimise(&self) -> Option<&dyn Reoptimise> {
        Some(self)
    }

    fn reoptimise_mut(&mut self) -> Option<&mut dyn Reoptimise> {
        Some(self)
    }
}

impl<const W: usize> Reoptimise for Forest<W> {
    fn drift(&self) -> Drift {
        Forest::drift(self)
    }

    fn look(&self, snapshot: &mut Snapshot) -> bool {
        let fresh = || self.snapshot();
        let copied = snapshot.contents(NAME, self.schema(), self.changes(), fresh);
        self.add_to(copied) && snapshot.complete()
    }

    fn install(&mut self, plan: &LookupPlan) -> bool {
        let plan = plan.get(NAME, self.schema());
        let fits = plan.is_some();
        if let Some(plan) = plan {
            self.adopt(plan);
        }
        fits
    }

    fn step(&mut self, steps: usize) -> bool {
        self.maintain(steps);
        self.is_unfinished()
    }

    fn is_installing(&self) -> bool {
        self.is_unfinished()
    }
}
