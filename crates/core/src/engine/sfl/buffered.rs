//! The form of the default: rules known by id, deleted ones hidden.

use std::collections::VecDeque;
use std::sync::Arc;

use hashbrown::HashSet;

use super::buffer::Buffer;
use super::master::Master;
use super::rebuild::Plan;
use super::{Counted, PATIENCE, Settings, inner_of};
use crate::classifier::{Classifier, LookupTrace, Metric, Probe, Scratch};
use crate::engine::EngineSpec;
use crate::engine::adapter::{Algorithm, BuildRequest, Updates};
use crate::error::BuildError;
use crate::key::KeySlice;
use crate::limits::Limits;
use crate::memory::{Memory, bytes_of};
use crate::progress::{NoProgress, Progress};
use crate::reoptimise::Reoptimise;
use crate::rule::{ActionId, Priority, RuleId, RuleRef, Winner};
use crate::seed::MapState;

/// Rules that may be gone from the inner engine, beside a quarter of those that
/// are left: the memory of some engines grows with a power of the rules.
const SPARE: usize = 8;

/// What progress observers are told while building.
const COPYING: &str = "copying rules";

/// An inner engine over the rules of its build, and what changed since.
pub(super) struct Buffered {
    /// Of the inner engine.
    pub(super) spec: EngineSpec,
    pub(super) limits: Limits,
    pub(super) settings: Settings,
    pub(super) master: Master,
    pub(super) inner: Inner,
    buffer: Buffer,
    /// Rules of the inner engine that are gone.
    gone: usize,
    log: Log,
    /// The changes that may wait.
    delta: usize,
    /// So many changes must wait before a rebuild is tried that the inner engine
    /// refused.
    patience: usize,
    rebuilds: usize,
}

/// An engine that takes no updates, and which of its rules are gone.
pub(super) struct Inner {
    /// Shared with other classifiers until one hides a rule.
    engine: Arc<dyn Classifier>,
    bytes: usize,
    tables: usize,
    /// Rules that are gone and that the engine cannot hide.
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

    /// Whether a rule is gone that the engine could not hide.
    #[inline(always)]
    fn refuses(&self, id: RuleId) -> bool {
        !self.refused.is_empty() && self.refused.contains(&id)
    }

    /// Passes over a rule from now on.
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

/// The ids of the rules that changed, since the rules of the inner engine were
/// read or somewhat later.
#[derive(Default)]
struct Log {
    ids: VecDeque<RuleId>,
    /// Changes before the first of these.
    before: u64,
}

impl Log {
    /// Entries beside one for each rule.
    const SPARE: usize = 256;

    /// The number of changes so far.
    fn sequence(&self) -> u64 {
        self.before + self.ids.len() as u64
    }

    /// Notes a change. Forgets the oldest where there are more than rules.
    fn push(&mut self, id: RuleId, rules: usize) {
        self.ids.push_back(id);
        if self.ids.len() > rules + Self::SPARE {
            self.forget(self.before + self.ids.len() as u64 / 2);
        }
    }

    /// Forgets the changes before a sequence number.
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

    /// The changes that wait: rules in the buffer, and rules of the inner engine
    /// that are gone.
    pub(super) fn waiting(&self) -> usize {
        self.buffer.len() + self.gone
    }

    pub(super) fn delta(&self) -> usize {
        self.delta
    }

    /// Whether an update has to rebuild, or memory is held for rules that are
    /// gone.
    fn must_rebuild(&self) -> bool {
        let most = match self.settings.at_once {
            true => self.delta,
            false => (self.delta.saturating_add(1)).saturating_mul(PATIENCE),
        };
        let waiting = self.waiting();
        let left = self.master.len();
        let (spare, gone) = (if left == 0 { 0 } else { SPARE }, self.gone);
        (waiting > most || gone > left / 4 + spare) && waiting >= self.patience
    }

    /// Builds the inner engine anew over all rules.
    fn rebuild_now(&mut self, progress: &mut dyn Progress) -> Result<(), BuildError> {
        let rules = self.master.to_rule_set();
        let mut memory = Memory::unlimited();
        let mut counted = Counted::new(progress);
        let inner = self
            .spec
            .build_within(&rules, &self.limits, &mut counted, &mut memory)?;
        self.delta = self.settings.delta(rules.schema(), counted.reports);
        self.inner = Inner::new(Arc::from(inner));
        self.buffer.clear();
        self.log.forget(self.log.sequence());
        (self.gone, self.patience) = (0, 0);
        self.rebuilds += 1;
        Ok(())
    }

    /// Takes in an engine that was built over rules that were read from a
    /// sequence number on, some of them later. Does nothing where what changed
    /// since is not known any more, or the rules are others.
    pub(super) fn take_in(&mut self, plan: &Plan, sequence: u64) {
        if sequence < self.log.before || sequence > self.log.sequence() {
            return;
        }
        let since = usize::try_from(sequence - self.log.before).expect("within the log");
        let changed: HashSet<RuleId, MapState> = self.log.ids.range(since..).copied().collect();
        // What did not change must be the same here and there.
        let (mut here, mut there) = (self.master.sum(), 0_u64);
        for hash in plan.hashes.values() {
            there = there.wrapping_add(*hash);
        }
        for id in &changed {
            let rule = self.master.get(*id);
            here = here.wrapping_sub(rule.map_or(0, |rule| Master::hash(&rule)));
            there = there.wrapping_sub(plan.hashes.get(id).copied().unwrap_or(0));
        }
        if here != there {
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
        (self.delta, self.patience) = (plan.delta, 0);
        self.rebuilds += 1;
    }

    /// The outcome, after what the inner engine found. Of a rule that is gone, where
    /// that cannot hide it, a search of all rules is.
    #[inline(always)]
    fn corrected<const W: usize>(&self, key: &[u64; W], found: Winner, best: Winner) -> Winner {
        match found.rule() {
            Some(id) if self.inner.refuses(id) && found != best => self.master.scan(key, best),
            _ => self.buffer.improve(key, found),
        }
    }
}

/// Working memory of batches.
#[derive(Default)]
pub(super) struct Buffers {
    scratch: Scratch,
    /// The candidates.
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
        let delta = settings.delta(rules.schema(), counted.reports);
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
            delta,
            patience: 0,
            rebuilds: 0,
        })
    }

    fn improve(&self, key: &[u64; W], best: Winner) -> Winner {
        let found = self.inner.engine.improve_one(key, best);
        self.corrected(key, found, best)
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
        for ((key, winner), &best) in keys.iter().zip(winners).zip(best.iter()) {
            *winner = self.corrected(key, *winner, best);
        }
    }

    fn improve_masked(&self, key: &[u64; W], best: Winner, mask: &mut [u64; W]) -> Winner {
        let engine = &self.inner.engine;
        let found = engine.improve_masked(key, best, mask);
        match found.rule() {
            Some(id) if found != best && self.inner.refused.contains(&id) => {
                self.master.scan_masked(key, best, mask)
            }
            _ => self.buffer.improve_masked(key, found, mask),
        }
    }

    /// The inner engine's, and the buffer as one more table.
    fn trace(&self, key: &[u64; W]) -> LookupTrace {
        let mut trace = self.inner.engine.trace(key);
        let found = trace.winner;
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
        let winner = self.corrected(key, found, Winner::MISS);
        let (rules, compared) = match winner == found || winner.beats(found) {
            true => (self.buffer.len(), self.buffer.compared(key, found)),
            // The rule was gone: all were searched.
            false => {
                let all = self.master.winners().iter();
                (
                    self.master.len(),
                    all.filter_map(|rank| rank.rule()).collect(),
                )
            }
        };
        if rules > 0 {
            trace.probes.push(Probe {
                table: trace.tables,
                mask: vec![0; W],
                rules,
                compared,
                winner: if winner == found {
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
            Metric::count("changes that may wait", self.delta),
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
        self.buffer.insert(rule);
        self.log.push(rule.id(), self.master.len());
        true
    }

    fn remove(&mut self, id: RuleId) -> bool {
        let Some(winner) = self.master.remove(id) else {
            return false;
        };
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
