//! Classifiers with one deliberate fault each. Apart from the fault they use `linear` and
//! the oracle.

use std::collections::HashMap;
use std::sync::Arc;

use classyard::{
    ActionId, BuildError, Classifier, DynamicClassifier, EngineSpec, FieldMatch, KeySlice, Limits,
    LookupTrace, NoProgress, Priority, Progress, Rule, RuleId, RuleSet, Schema, Scratch, Stats,
    Transaction, UpdateError, Winner,
};
use classyard_conformance::Subject;
use classyard_conformance::oracle::{Oracle, OwnedChange, transaction};

/// The fault of a classifier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Sometimes returns the second best rule.
    SecondBest,
    /// Among equal priorities the higher id wins.
    HigherIdOnTie,
    /// Some removed rules still match.
    ForgetsRemoval,
    /// A rule with the matches of a better rule is dropped permanently.
    DropsShadowedDuplicate,
    /// The last value of a range does not match.
    RangeEndOpen,
    /// The last header of a batch of 17 misses.
    BatchOf17,
    /// Panics at a batch of 33.
    PanicsAt33,
    /// Batch lookups overwrite the candidate.
    IgnoresCandidate,
    /// Batch lookups use the previous contents of the buffer as candidates.
    KeepsBuffer,
    /// Masked lookups overwrite the candidate.
    MaskedIgnoresCandidate,
    /// A lookup whose winner ties with the candidate's priority loses.
    TieWithCandidate,
    /// Some masks lack a bit.
    MaskMissesBit,
    /// Masks are overwritten instead of extended.
    MaskForgetsPreset,
    /// Single lookups miss if the winner has the largest possible priority.
    SingleMissesTop,
    /// Inserting a used id replaces the rule.
    TakesDuplicates,
    /// The valid changes before the first bad change of a refused transaction are made.
    HalfTransactions,
    /// The limit on rules is one too low.
    LimitOffByOne,
    /// An error names the first change instead of the bad change.
    BlamesFirstChange,
    /// `check` accepts everything.
    CheckTakesAll,
    /// A modification keeps the old priority.
    ModifyKeepsPriority,
    /// Reorganising loses the worst rule.
    RebuildLosesWorst,
    /// Building drops a rule if an earlier rule has equal matches.
    BuildLosesDuplicates,
    /// Old answers remain in the scratch and are used for later batches.
    StaleScratch,
    /// The trace names a rule that does not exist.
    TraceNamesStranger,
    /// The statistics count a rule too many.
    CountOffByOne,
    /// `contains` is still true for a removed rule.
    ContainsRemoved,
    /// The thirteenth rule of a tuple is lost.
    ThirteenthOfTuple,
    /// A rule is read back with ranges one value too short.
    CopyCutsRanges,
    /// A modified rule is read back in its original form.
    CopyIsStale,
    /// A removed rule can still be read back.
    CopyFindsRemoved,
    /// A modified rule still has its original action.
    ActionIsStale,
    /// A removed rule still has an action.
    ActionOfRemoved,
    /// The worst of four rules or more is not listed.
    ListLacksWorst,
    /// The best rule is listed twice.
    ListsBestTwice,
    /// The list has the original priorities of rules.
    ListIsStale,
}

/// All faults.
pub(crate) const FAULTS: [Fault; 35] = [
    Fault::SecondBest,
    Fault::HigherIdOnTie,
    Fault::ForgetsRemoval,
    Fault::DropsShadowedDuplicate,
    Fault::RangeEndOpen,
    Fault::BatchOf17,
    Fault::PanicsAt33,
    Fault::IgnoresCandidate,
    Fault::KeepsBuffer,
    Fault::MaskedIgnoresCandidate,
    Fault::TieWithCandidate,
    Fault::MaskMissesBit,
    Fault::MaskForgetsPreset,
    Fault::SingleMissesTop,
    Fault::TakesDuplicates,
    Fault::HalfTransactions,
    Fault::LimitOffByOne,
    Fault::BlamesFirstChange,
    Fault::CheckTakesAll,
    Fault::ModifyKeepsPriority,
    Fault::RebuildLosesWorst,
    Fault::BuildLosesDuplicates,
    Fault::StaleScratch,
    Fault::TraceNamesStranger,
    Fault::CountOffByOne,
    Fault::ContainsRemoved,
    Fault::ThirteenthOfTuple,
    Fault::CopyCutsRanges,
    Fault::CopyIsStale,
    Fault::CopyFindsRemoved,
    Fault::ActionIsStale,
    Fault::ActionOfRemoved,
    Fault::ListLacksWorst,
    Fault::ListsBestTwice,
    Fault::ListIsStale,
];

impl Fault {
    /// Returns a subject with the fault.
    pub(crate) fn subject(self) -> Subject {
        Subject::new(&format!("{self:?}"), true, move |rules, limits, _| {
            Ok(Box::new(Broken::new(self, rules, limits)))
        })
    }
}

struct Broken {
    fault: Fault,
    /// The rules that it reports.
    oracle: Oracle,
    /// The classifier for its lookups.
    inner: Box<dyn Classifier>,
    removed: Vec<RuleId>,
    /// The original form of each rule.
    first: HashMap<RuleId, Arc<Rule>>,
}

fn linear(rules: &RuleSet) -> Box<dyn Classifier> {
    let spec = EngineSpec::parse("linear").unwrap();
    let limits = Limits::default();
    spec.build(rules, &limits, &mut NoProgress).unwrap()
}

/// True for one key in four.
fn now_and_then(key: &[u64]) -> bool {
    let mix = |sum: u64, word: &u64| {
        (sum ^ word)
            .wrapping_mul(0x9e37_79b9_7f4a_7c15)
            .rotate_left(29)
    };
    key.iter().fold(1, mix) % 4 == 0
}

impl Broken {
    fn new(fault: Fault, rules: &RuleSet, limits: &Limits) -> Broken {
        let oracle = Oracle::new(rules, limits);
        let mut kept = RuleSet::new(rules.schema());
        for rule in rules.iter() {
            let duplicate = kept.iter().find(|k| k.words() == rule.words());
            let lost = match fault {
                Fault::BuildLosesDuplicates => duplicate.is_some(),
                Fault::DropsShadowedDuplicate => {
                    duplicate.is_some_and(|t| t.winner().beats(rule.winner()))
                }
                Fault::ThirteenthOfTuple => {
                    kept.iter().filter(|k| k.mask() == rule.mask()).count() == 12
                }
                _ => false,
            };
            if !lost {
                kept.push(rule).unwrap();
            }
        }
        Broken {
            fault,
            oracle,
            inner: linear(&kept),
            removed: Vec::new(),
            first: (rules.iter())
                .map(|rule| (rule.id(), Arc::new(rule.to_rule())))
                .collect(),
        }
    }

    /// Returns the best rule, changed by the fault.
    fn best(&self, key: &[u64], right: Winner) -> Winner {
        let Some(id) = right.rule() else {
            return right;
        };
        match self.fault {
            Fault::SecondBest if now_and_then(key) => {
                let all = self.oracle.all_matches(key);
                all.get(1).copied().unwrap_or(right)
            }
            Fault::HigherIdOnTie => {
                let all = self.oracle.all_matches(key);
                let ties = all.iter().filter(|w| w.priority() == right.priority());
                ties.copied().next_back().unwrap_or(right)
            }
            Fault::RangeEndOpen => {
                let schema = self.oracle.schema();
                let rule = self.oracle.get(id);
                let at_end = schema.field_ids().any(|field| {
                    let found = schema.placement(field).get(key);
                    rule.is_some_and(|rule| match rule.view().field(field) {
                        FieldMatch::Range { high, .. } => found == high,
                        _ => false,
                    })
                });
                if at_end { Winner::MISS } else { right }
            }
            _ => right,
        }
    }

    fn improve(&self, key: &[u64], best: Winner) -> Winner {
        let right = self.inner.classify_one(key);
        let found = self.best(key, right);
        match self.fault {
            Fault::TieWithCandidate if found.priority() == best.priority() => best,
            _ => best.or(found),
        }
    }

    fn rebuild_inner(&mut self, rules: impl IntoIterator<Item = Arc<Rule>>) {
        let limits = Limits::default();
        let rules = Oracle::of_rules(self.oracle.schema(), rules, &limits).to_rule_set();
        self.inner = linear(&rules);
    }

    fn make(&mut self, change: &OwnedChange) {
        let id = change.view().id();
        let inner = self.inner.as_dynamic().unwrap();
        let there = inner.contains(id);
        match change {
            OwnedChange::Remove(_) => {
                if self.fault == Fault::ForgetsRemoval && id.get() % 7 == 3 {
                    return;
                }
                if there {
                    inner.apply(Transaction::new().remove(id)).unwrap();
                }
                self.removed.push(id);
            }
            OwnedChange::Insert(rule) | OwnedChange::Modify(rule) => {
                let mut rule = Arc::clone(rule);
                self.first.entry(id).or_insert_with(|| Arc::clone(&rule));
                if self.fault == Fault::DropsShadowedDuplicate
                    && self.oracle.rules().any(|other| {
                        let (other, rule) = (other.view(), rule.view());
                        other.words() == rule.words() && other.winner().beats(rule.winner())
                    })
                {
                    if there {
                        inner.apply(Transaction::new().remove(id)).unwrap();
                    }
                    return;
                }
                if self.fault == Fault::ModifyKeepsPriority
                    && let OwnedChange::Modify(_) = change
                    && let Some(old) = self.oracle.get(id)
                {
                    let (view, old) = (rule.view(), old.view());
                    let matches = view.fields();
                    let kept =
                        Rule::new(view.schema(), id, old.priority(), view.action(), &matches);
                    rule = Arc::new(kept.unwrap());
                }
                let mut transaction = Transaction::new();
                if there {
                    transaction.modify(rule.view());
                } else {
                    transaction.insert(rule.view());
                }
                inner.apply(&transaction).unwrap();
            }
        }
    }

    /// Returns the rules after a transaction, and its result, both changed by the fault.
    fn verdict(&self, changes: &[OwnedChange]) -> (Oracle, Result<(), UpdateError>) {
        let mut after = self.oracle.clone();
        let mut result = after.apply(changes);
        if self.fault == Fault::LimitOffByOne
            && result.is_ok()
            && after.len() == after.limits().rules
        {
            result = Err(UpdateError::TooManyRules {
                change: changes.len() - 1,
                found: after.len(),
                limit: after.limits().rules - 1,
            });
        }
        if self.fault == Fault::BlamesFirstChange
            && let Err(UpdateError::UnknownId { change, .. }) = &mut result
        {
            *change = 0;
        }
        (after, result)
    }
}

fn owned(changes: &Transaction<'_>) -> Vec<OwnedChange> {
    use classyard::Change;
    let changes = changes.changes().iter();
    changes
        .map(|change| match *change {
            Change::Insert(rule) => OwnedChange::Insert(Arc::new(rule.to_rule())),
            Change::Modify(rule) => OwnedChange::Modify(Arc::new(rule.to_rule())),
            Change::Remove(id) => OwnedChange::Remove(id),
        })
        .collect()
}

/// The old answers of [`Fault::StaleScratch`].
#[derive(Default)]
struct Stale {
    winners: HashMap<Vec<u64>, Winner>,
}

impl Classifier for Broken {
    fn engine(&self) -> &'static str {
        "broken"
    }

    fn schema(&self) -> &Arc<Schema> {
        self.oracle.schema()
    }

    fn improve_batch(&self, keys: KeySlice<'_>, winners: &mut [Winner], scratch: &mut Scratch) {
        assert!(
            self.fault != Fault::PanicsAt33 || keys.len() != 33,
            "33 headers are too many"
        );
        for (key, winner) in keys.iter().zip(winners.iter_mut()) {
            *winner = match self.fault {
                Fault::IgnoresCandidate => self.improve(key, Winner::MISS),
                Fault::StaleScratch => {
                    let mut stale = scratch.take::<Stale>();
                    let fresh = || self.improve(key, Winner::MISS);
                    let found = *stale.winners.entry(key.to_vec()).or_insert_with(fresh);
                    scratch.put(stale);
                    winner.or(found)
                }
                _ => self.improve(key, *winner),
            };
        }
        if self.fault == Fault::BatchOf17 && keys.len() == 17 {
            winners[16] = Winner::MISS;
        }
    }

    fn classify_batch(&self, keys: KeySlice<'_>, winners: &mut [Winner], scratch: &mut Scratch) {
        if self.fault != Fault::KeepsBuffer {
            winners.fill(Winner::MISS);
        }
        self.improve_batch(keys, winners, scratch);
    }

    fn classify_one(&self, key: &[u64]) -> Winner {
        let found = self.improve(key, Winner::MISS);
        let top = found.priority().is_some_and(|p| p.0 == u32::MAX);
        if self.fault == Fault::SingleMissesTop && top {
            Winner::MISS
        } else {
            found
        }
    }

    fn improve_masked(&self, key: &[u64], best: Winner, mask: &mut [u64]) -> Winner {
        let before = mask.to_vec();
        match self.fault {
            Fault::MaskForgetsPreset => mask.fill(0),
            Fault::MaskedIgnoresCandidate => {
                return self.inner.improve_masked(key, Winner::MISS, mask);
            }
            _ => {}
        }
        self.inner.improve_masked(key, best, mask);
        if self.fault == Fault::MaskMissesBit && now_and_then(key) {
            let added = mask.iter().zip(&before).position(|(m, b)| m & !b != 0);
            if let Some(word) = added {
                let bit = (mask[word] & !before[word]).trailing_zeros();
                mask[word] &= !(1 << bit);
            }
        }
        self.improve(key, best)
    }

    fn trace(&self, key: &[u64]) -> LookupTrace {
        let mut trace = self.inner.trace(key);
        if self.fault == Fault::TraceNamesStranger {
            trace.probes[0].rules += 1;
            trace.probes[0].compared.push(RuleId::new(123_456).unwrap());
        }
        trace
    }

    fn stats(&self) -> Stats {
        let extra = usize::from(self.fault == Fault::CountOffByOne && self.oracle.len() > 20);
        Stats {
            rules: self.oracle.len() + extra,
            rule_bytes: 1,
            ..self.inner.stats()
        }
    }

    fn dynamic(&self) -> Option<&dyn DynamicClassifier> {
        Some(self)
    }

    fn as_dynamic(&mut self) -> Option<&mut dyn DynamicClassifier> {
        Some(self)
    }
}

impl DynamicClassifier for Broken {
    fn contains(&self, id: RuleId) -> bool {
        let removed = self.fault == Fault::ContainsRemoved && self.removed.contains(&id);
        removed || self.oracle.contains(id)
    }

    fn copy_rule(&self, id: RuleId, words: &mut Vec<u64>) -> Option<Priority> {
        let first = self.first.get(&id);
        let rule = match self.fault {
            Fault::CopyFindsRemoved => self.oracle.get(id).or(first),
            Fault::CopyIsStale => self.oracle.get(id).and(first),
            _ => self.oracle.get(id),
        }?;
        let rule = rule.view();
        words.extend_from_slice(rule.words());
        if self.fault == Fault::CopyCutsRanges {
            let schema = rule.schema();
            let start = words.len() - schema.high_words();
            for range in schema.range_fields() {
                let (low, high) = rule.ends(range.field);
                if low < high {
                    range.high.set(&mut words[start..], high - 1);
                }
            }
        }
        Some(rule.priority())
    }

    fn action(&self, id: RuleId) -> Option<ActionId> {
        let first = self.first.get(&id);
        let rule = match self.fault {
            Fault::ActionOfRemoved => self.oracle.get(id).or(first),
            Fault::ActionIsStale => self.oracle.get(id).and(first),
            _ => self.oracle.get(id),
        };
        Some(rule?.view().action())
    }

    fn winners(&self) -> Vec<Winner> {
        let rules = self.oracle.rules().map(|rule| match self.fault {
            Fault::ListIsStale => &self.first[&rule.view().id()],
            _ => rule,
        });
        let mut winners: Vec<Winner> = rules.map(|rule| rule.view().winner()).collect();
        winners.sort_unstable_by_key(|winner| winner.rank());
        match self.fault {
            Fault::ListLacksWorst if winners.len() > 3 => drop(winners.pop()),
            Fault::ListsBestTwice => winners.extend(winners.first().copied()),
            _ => {}
        }
        winners
    }

    fn check(&self, transaction: &Transaction<'_>) -> Result<(), UpdateError> {
        match self.fault {
            Fault::CheckTakesAll => Ok(()),
            Fault::TakesDuplicates => self.tolerant(&owned(transaction)).1,
            _ => self.verdict(&owned(transaction)).1,
        }
    }

    fn replay(&mut self, transaction: &Transaction<'_>) {
        self.apply(transaction)
            .expect("changes that were accepted before");
    }

    fn apply(&mut self, transaction: &Transaction<'_>) -> Result<(), UpdateError> {
        let changes = owned(transaction);
        let (after, result) = match self.fault {
            Fault::TakesDuplicates => self.tolerant(&changes),
            _ => self.verdict(&changes),
        };
        if result.is_ok() {
            for change in &changes {
                self.make(change);
                // `make` reads the oracle, so the oracle must have the changes so far.
                let _ = self.oracle.apply(std::slice::from_ref(change));
            }
            self.oracle = after;
        } else if self.fault == Fault::HalfTransactions {
            for change in &changes {
                if self
                    .oracle
                    .clone()
                    .apply(std::slice::from_ref(change))
                    .is_err()
                {
                    break;
                }
                self.make(change);
            }
        }
        result
    }

    fn rebuild(&mut self, _: &mut dyn Progress) -> Result<(), BuildError> {
        if self.fault == Fault::RebuildLosesWorst {
            let worst = self
                .oracle
                .rules()
                .map(|rule| rule.view().winner().rank())
                .max();
            let rules: Vec<_> = self.oracle.rules().cloned().collect();
            let kept = rules.into_iter();
            self.rebuild_inner(kept.filter(|rule| Some(rule.view().winner().rank()) != worst));
        }
        Ok(())
    }
}

impl Broken {
    /// As `verdict`, but accepts inserts of used ids.
    fn tolerant(&self, changes: &[OwnedChange]) -> (Oracle, Result<(), UpdateError>) {
        let mut after = self.oracle.clone();
        for (index, change) in changes.iter().enumerate() {
            let change = match change {
                OwnedChange::Insert(rule) if after.contains(rule.view().id()) => {
                    OwnedChange::Modify(Arc::clone(rule))
                }
                other => other.clone(),
            };
            let transaction = transaction(std::slice::from_ref(&change));
            let there = |id| after.contains(id);
            let (schema, limits) = (after.schema(), after.limits());
            let checked = transaction.validate(schema, limits, after.len(), &|| 0, &there);
            if checked.is_err() {
                // The oracle determines which change is wrong.
                let right = self.oracle.clone().apply(changes);
                let found = right.err().unwrap_or(UpdateError::UnknownId {
                    change: index,
                    operation: "insert",
                    id: change.view().id().get(),
                });
                return (self.oracle.clone(), Err(found));
            }
            after.apply(&[change]).unwrap();
        }
        (after, Ok(()))
    }
}
