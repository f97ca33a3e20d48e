//! The default form: rules identified by id; deleted rules are hidden.

use std::collections::VecDeque;
use std::sync::Arc;

use hashbrown::{HashMap, HashSet};

use super::buffer::Buffer;
use super::master::Master;
use super::threshold::{LookupCount, Threshold};
use super::{Counted, Settings, build_cost, inner_of};
use crate::budget::memory::{Memory, bytes_of};
use crate::budget::progress::{NoProgress, Progress};
use crate::contract::adapter::{Algorithm, Updates};
use crate::contract::classifier::{Classifier, LookupTrace, Metric, Probe, Scratch};
use crate::contract::reoptimise::Reoptimise;
use crate::contract::spec::BuildRequest;
use crate::contract::spec::EngineSpec;
use crate::model::error::BuildError;
use crate::model::key::KeySlice;
use crate::model::limits::Limits;
use crate::model::rule::{ActionId, Priority, RuleId, RuleRef, Winner};
use crate::model::seed::MapState;

/// An update rebuilds if the inner engine has more deleted rules than this number plus a
/// quarter of the remaining rules. It bounds memory, which in some engines grows with a
/// power of the rules.
const SPARE_DELETED_RULES: usize = 8;

/// Name of the build phase for the progress callback.
const COPYING: &str = "copying rules";

/// An inner engine over the rules of its build, and the changes since.
pub(super) struct Buffered {
    /// The inner engine's specification.
    pub(super) spec: EngineSpec,
    pub(super) limits: Limits,
    pub(super) settings: Settings,
    pub(super) master: Master,
    pub(super) inner: Inner,
    buffer: Buffer,
    /// The number of deleted rules in the inner engine.
    gone: usize,
    log: Log,
    pub(super) threshold: Threshold,
    /// After a refused rebuild, the number of pending changes before the next attempt.
    patience: usize,
    rebuilds: usize,
}

/// An engine that takes no updates, and its deleted rules.
pub(super) struct Inner {
    /// Shared with other classifiers until one hides a rule.
    engine: Arc<dyn Classifier>,
    bytes: usize,
    tables: usize,
    /// Deleted rules that the engine cannot hide.
    refused: HashSet<RuleId, MapState>,
}

impl Inner {
    pub(super) fn new(engine: Arc<dyn Classifier>) -> Inner {
        let stats = engine.stats();
        Inner {
            bytes: stats.bytes(),
            tables: stats.tables,
            engine,
            refused: HashSet::default(),
        }
    }

    fn bytes(&self) -> usize {
        self.bytes + self.refused.allocation_size()
    }

    /// True if a rule is deleted but the engine could not hide it.
    #[inline(always)]
    fn refuses(&self, id: RuleId) -> bool {
        !self.refused.is_empty() && self.refused.contains(&id)
    }

    /// Hides a rule in later lookups.
    fn hide(&mut self, id: RuleId) {
        if Arc::get_mut(&mut self.engine).is_none()
            && let Some(own) = self.engine.duplicate()
        {
            self.engine = Arc::from(own);
        }
        let hidden = Arc::get_mut(&mut self.engine).and_then(|engine| engine.hide(id));
        if hidden.is_none() {
            self.refused.insert(id);
        }
    }
}

/// A new inner engine.
pub(super) struct Plan {
    pub(super) engine: Arc<dyn Classifier>,
    /// The cost of its build in comparisons.
    pub(super) build_cost: f64,
    /// The lookups of the engine that was copied, if they are counted. All that install
    /// the plan count there: the two sides of a live table.
    pub(super) lookups: Option<Arc<LookupCount>>,
    /// The hash of each of its rules.
    pub(super) hashes: HashMap<RuleId, u64, MapState>,
}

/// The ids of changed rules, from the time when the inner engine's rules were read, or
/// from a later time.
#[derive(Default)]
struct Log {
    ids: VecDeque<RuleId>,
    /// The number of changes before the first in `ids`.
    before: u64,
}

impl Log {
    /// The number of entries allowed in addition to one for each rule. It bounds the
    /// memory of the log.
    const SPARE_ENTRIES: usize = 256;

    /// The number of changes so far.
    fn sequence(&self) -> u64 {
        self.before + self.ids.len() as u64
    }

    /// Records a change. If there are too many, drops the older half.
    fn push(&mut self, id: RuleId, rules: usize) {
        self.ids.push_back(id);
        if self.ids.len() > rules + Self::SPARE_ENTRIES {
            self.forget(self.before + self.ids.len() as u64 / 2);
        }
    }

    /// Drops the changes before a sequence number.
    fn forget(&mut self, before: u64) {
        let old = usize::try_from(before.saturating_sub(self.before)).expect("as many entries");
        self.ids.drain(..old.min(self.ids.len()));
        self.before = self.before.max(before);
        self.ids.shrink_to(self.ids.len() * 2);
    }
}

impl Buffered {
    /// The number of changes so far.
    pub(super) fn sequence(&self) -> u64 {
        self.log.sequence()
    }

    /// The number of pending changes: rules in the buffer, and deleted rules of the
    /// inner engine.
    pub(super) fn waiting(&self) -> usize {
        self.buffer.len() + self.gone
    }

    /// True if an update must rebuild: too many changes are pending, or deleted rules
    /// take too much memory.
    fn must_rebuild(&self) -> bool {
        let waiting = self.waiting();
        let is_late = match self.settings.at_once {
            true => self.threshold.is_due(waiting),
            false => self.threshold.is_overdue(waiting),
        };
        let remaining = self.master.len();
        let (spare, gone) = (
            if remaining == 0 {
                0
            } else {
                SPARE_DELETED_RULES
            },
            self.gone,
        );
        (is_late || gone > remaining / 4 + spare) && waiting >= self.patience
    }

    /// Rebuilds the inner engine over all rules.
    fn rebuild_now(&mut self, progress: &mut dyn Progress) -> Result<(), BuildError> {
        let rules = self.master.to_rule_set();
        let mut memory = Memory::unlimited();
        let mut counted = Counted::new(progress);
        let inner = self
            .spec
            .build_within(&rules, &self.limits, &mut counted, &mut memory)?;
        let build_cost = build_cost(rules.schema(), counted.reports);
        self.threshold = (self.settings).threshold(self.threshold.lookups(), build_cost);
        self.inner = Inner::new(Arc::from(inner));
        self.buffer.clear();
        self.log.forget(self.log.sequence());
        (self.gone, self.patience) = (0, 0);
        self.rebuilds += 1;
        Ok(())
    }

    /// Adopts an engine built over rules that were copied from a sequence number on,
    /// some of them later. Does nothing if the log no longer has all changes since, or
    /// if the plan is for other rules.
    pub(super) fn take_in(&mut self, plan: &Plan, sequence: u64) {
        if sequence < self.log.before || sequence > self.log.sequence() {
            return;
        }
        let since = usize::try_from(sequence - self.log.before).expect("within the log");
        let changed: HashSet<RuleId, MapState> = self.log.ids.range(since..).copied().collect();
        // Rules that did not change must be equal in the master set and in the plan.
        let (mut master_sum, mut plan_sum) = (self.master.sum(), 0_u64);
        for hash in plan.hashes.values() {
            plan_sum = plan_sum.wrapping_add(*hash);
        }
        for id in &changed {
            let rule = self.master.get(*id);
            master_sum = master_sum.wrapping_sub(rule.map_or(0, |rule| Master::hash(&rule)));
            plan_sum = plan_sum.wrapping_sub(plan.hashes.get(id).copied().unwrap_or(0));
        }
        if master_sum != plan_sum {
            return;
        }
        let mut inner = Inner::new(Arc::clone(&plan.engine));
        self.gone = 0;
        for &id in changed.iter().filter(|id| plan.hashes.contains_key(*id)) {
            inner.hide(id);
            self.gone += 1;
        }
        self.inner = inner;
        self.log.forget(sequence);
        self.buffer.keep_only(|id| changed.contains(&id));
        self.threshold = (self.settings).threshold(plan.lookups.as_ref(), plan.build_cost);
        self.patience = 0;
        self.rebuilds += 1;
    }

    /// Returns the outcome after the inner engine's result. If the result is a deleted
    /// rule that the engine could not hide, scans all rules.
    #[inline(always)]
    fn corrected<const W: usize>(
        &self,
        key: &[u64; W],
        inner_winner: Winner,
        best: Winner,
    ) -> Winner {
        match inner_winner.rule() {
            Some(id) if self.inner.refuses(id) && inner_winner != best => {
                self.master.scan(key, best)
            }
            _ => self.buffer.improve(key, inner_winner),
        }
    }
}

/// Working memory of batches.
#[derive(Default)]
pub(super) struct Buffers {
    scratch: Scratch,
    /// The candidates of the batch.
    best: Vec<Winner>,
}

impl<const W: usize> Algorithm<W> for Buffered {
    type Buffers = Buffers;

    fn build(request: &mut BuildRequest<'_>) -> Result<Buffered, BuildError> {
        let spec = inner_of(request.spec).clone();
        let settings = Settings::of(request.spec);
        let (rules, limits) = (request.rules, *request.limits);
        let mut counted = Counted::new(request.progress);
        let inner = spec.build_within(rules, &limits, &mut counted, request.memory)?;
        let build_cost = build_cost(rules.schema(), counted.reports);
        let mut monitor = request.monitor();
        monitor.begin(COPYING, rules.len())?;
        let master = Master::build(rules, &mut monitor)?;
        Ok(Buffered {
            spec,
            limits,
            settings,
            buffer: Buffer::new(master.schema(), settings.isa),
            master,
            inner: Inner::new(Arc::from(inner)),
            gone: 0,
            log: Log::default(),
            threshold: settings.threshold(None, build_cost),
            patience: 0,
            rebuilds: 0,
        })
    }

    fn improve(&self, key: &[u64; W], best: Winner) -> Winner {
        let inner_winner = self.inner.engine.improve_one(key, best);
        if self.waiting() > 0 {
            self.threshold.count_one();
        }
        self.corrected(key, inner_winner, best)
    }

    fn improve_batch(&self, keys: &[[u64; W]], winners: &mut [Winner], buffers: &mut Buffers) {
        if keys.is_empty() {
            return;
        }
        let Buffers { scratch, best } = buffers;
        best.clear();
        best.extend_from_slice(winners);
        let slice = KeySlice::new(keys.as_flattened(), W);
        self.inner.engine.improve_batch(slice, winners, scratch);
        if self.waiting() == 0 {
            return;
        }
        self.threshold.count(keys.len());
        for ((key, winner), &best) in keys.iter().zip(winners).zip(best.iter()) {
            *winner = self.corrected(key, *winner, best);
        }
    }

    fn improve_masked(&self, key: &[u64; W], best: Winner, mask: &mut [u64; W]) -> Winner {
        let engine = &self.inner.engine;
        let inner_winner = engine.improve_masked(key, best, mask);
        if self.waiting() > 0 {
            self.threshold.count_one();
        }
        match inner_winner.rule() {
            Some(id) if inner_winner != best && self.inner.refused.contains(&id) => {
                self.master.scan_masked(key, best, mask)
            }
            _ => self.buffer.improve_masked(key, inner_winner, mask),
        }
    }

    /// Lists the probes of the inner engine, and the buffer as one more table.
    fn trace(&self, key: &[u64; W]) -> LookupTrace {
        let mut trace = self.inner.engine.trace(key);
        let inner_winner = trace.winner;
        let refused = &self.inner.refused;
        for probe in &mut trace.probes {
            probe.compared.retain(|rule| !refused.contains(rule));
            if probe
                .winner
                .rule()
                .is_some_and(|rule| refused.contains(&rule))
            {
                probe.winner = Winner::MISS;
            }
        }
        let winner = self.corrected(key, inner_winner, Winner::MISS);
        let (rules, compared) = match winner == inner_winner || winner.beats(inner_winner) {
            true => (self.buffer.len(), self.buffer.compared(key, inner_winner)),
            // The rule was deleted: all rules were searched.
            false => {
                let winners = self.master.winners().iter();
                (
                    self.master.len(),
                    winners.filter_map(|rank| rank.rule()).collect(),
                )
            }
        };
        if rules > 0 {
            trace.probes.push(Probe {
                table: trace.tables,
                mask: vec![0; W],
                rules,
                compared,
                winner: if winner == inner_winner {
                    Winner::MISS
                } else {
                    winner
                },
            });
        }
        trace.tables += 1;
        trace.winner = winner;
        trace
    }

    fn rules(&self) -> usize {
        self.master.len()
    }

    fn tables(&self) -> usize {
        self.inner.tables + 1
    }

    fn bytes(&self) -> usize {
        self.master.bytes()
            + self.inner.bytes()
            + self.buffer.bytes()
            + bytes_of::<RuleId>(self.log.ids.capacity())
    }

    fn metrics(&self) -> Vec<Metric> {
        vec![
            Metric::count("rules in the update buffer", self.buffer.len()),
            Metric::count("deleted rules in the inner engine", self.gone),
            Metric::count("changes that may wait", self.threshold.delta()),
            Metric::count("rebuilds", self.rebuilds),
        ]
    }
}

impl<const W: usize> Updates<W> for Buffered {
    fn contains(&self, id: RuleId) -> bool {
        self.master.contains(id)
    }

    fn copy_rule(&self, id: RuleId, words: &mut Vec<u64>) -> Option<Priority> {
        let rule = self.master.get(id)?;
        words.extend_from_slice(rule.words());
        Some(rule.priority())
    }

    fn action(&self, id: RuleId) -> Option<ActionId> {
        Some(self.master.get(id)?.action())
    }

    fn winners(&self) -> Vec<Winner> {
        self.master.winners().to_vec()
    }

    fn insert(&mut self, rule: &RuleRef<'_>) -> bool {
        if !self.master.insert(rule) {
            return false;
        }
        (self.threshold).add_change(self.waiting(), self.buffer.len());
        self.buffer.insert(rule);
        self.log.push(rule.id(), self.master.len());
        true
    }

    fn remove(&mut self, id: RuleId) -> bool {
        let Some(winner) = self.master.remove(id) else {
            return false;
        };
        (self.threshold).add_change(self.waiting(), self.buffer.len());
        if !self.buffer.remove(winner) {
            self.inner.hide(id);
            self.gone += 1;
        }
        self.log.push(id, self.master.len());
        true
    }

    fn settle(&mut self, _: usize) {
        if self.must_rebuild() && self.rebuild_now(&mut NoProgress).is_err() {
            self.patience = self.waiting() * 2;
        }
    }

    fn rebuild(&mut self, progress: &mut dyn Progress) -> Result<(), BuildError> {
        self.rebuild_now(progress)
    }

    fn reoptimise(&self) -> Option<&dyn Reoptimise> {
        Some(self)
    }

    fn reoptimise_mut(&mut self) -> Option<&mut dyn Reoptimise> {
        Some(self)
    }
}
