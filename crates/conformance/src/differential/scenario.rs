//! Scenarios that repeat a disagreement, and making them small.

use std::ops::ControlFlow;
use std::sync::Arc;

use classyard::key::unpack;
use classyard::{
    BuildError, Classifier, Field, FieldMatch, KeyVec, Limits, NoProgress, Progress, Rule, RuleId,
    Schema, Scratch,
};

use super::Counters;
use super::question::{Finding, Question, apply, chain, rebuild, reoptimise};
use crate::Subject;
use crate::calls::{guarded, quietly};
use crate::case::{Case, Probe, Step};
use crate::oracle::{Oracle, OwnedChange};

/// A change of a classifier's state.
#[derive(Clone, Debug)]
pub enum Action {
    /// A transaction, applied or refused.
    Apply(Vec<OwnedChange>),
    /// A reorganisation.
    Rebuild,
    /// A re-optimisation. The number is the steps of installing the plan that are done
    /// immediately; later transactions do the other steps.
    Reoptimise(usize),
}

impl Action {
    /// Applies the action to the oracle and to a classifier over the same rules, and
    /// compares their answers.
    ///
    /// # Errors
    /// [`Finding`]: the problem of the classifier's answer.
    pub fn take(
        &self,
        classifier: &mut dyn Classifier,
        oracle: &mut Oracle,
        counters: &mut Counters,
    ) -> Result<(), Finding> {
        match self {
            Action::Apply(changes) => {
                let expected = oracle.apply(changes);
                match &expected {
                    Ok(()) => {
                        counters.transactions += 1;
                        counters.changes += changes.len();
                    }
                    Err(_) => counters.refused += 1,
                }
                apply(classifier, changes, &expected)
            }
            Action::Rebuild => {
                counters.rebuilds += 1;
                rebuild(classifier)
            }
            Action::Reoptimise(steps) => {
                counters.reoptimisations += 1;
                reoptimise(classifier, *steps)
            }
        }
    }
}

/// The complete history of a classifier, and the question with the wrong answer.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// The schema.
    pub schema: Arc<Schema>,
    /// The limits.
    pub limits: Limits,
    /// The rules over which the classifier was built, in order.
    pub initial: Vec<Arc<Rule>>,
    /// The actions after that, in order.
    pub history: Vec<Action>,
    /// The question.
    pub question: Question,
}

impl Scenario {
    /// Returns the oracle of the rules over which the classifier is built.
    #[must_use]
    pub fn start(&self) -> Oracle {
        Oracle::of_rules(&self.schema, self.initial.iter().cloned(), &self.limits)
    }

    /// Returns the oracle of the rules at the time of the question.
    #[must_use]
    pub fn end(&self) -> Oracle {
        let mut oracle = self.start();
        for action in &self.history {
            if let Action::Apply(changes) = action {
                // A refused transaction changes nothing.
                let _ = oracle.apply(changes);
            }
        }
        oracle
    }

    /// The size of the scenario: its number of rules, changes and headers.
    #[must_use]
    pub fn size(&self) -> usize {
        let changes = |action: &Action| match action {
            Action::Apply(changes) => changes.len(),
            Action::Rebuild | Action::Reoptimise(_) => 1,
        };
        let question_size = match &self.question {
            Question::Apply(changes) => changes.len(),
            question => question.keys().map_or(0, KeyVec::len),
        };
        self.initial.len() + self.history.iter().map(changes).sum::<usize>() + question_size
    }

    /// Repeats the scenario with a new classifier, and returns the finding, if there is one.
    ///
    /// # Errors
    /// [`BuildError`] if the classifier does not build.
    pub fn replay(&self, subject: &Subject) -> Result<Option<Finding>, BuildError> {
        let mut oracle = self.start();
        let rules = oracle.to_rule_set();
        let mut classifier = match guarded(|| subject.build(&rules, &self.limits, &mut NoProgress))
        {
            Ok(built) => built?,
            Err(message) => return Ok(Some(Finding::Panic { message })),
        };
        let mut counters = Counters::default();
        for action in &self.history {
            if let Err(finding) = action.take(classifier.as_mut(), &mut oracle, &mut counters) {
                return Ok(Some(finding));
            }
        }
        let mut scratch = Scratch::new();
        let answer = match &self.question {
            Question::Apply(changes) => {
                Action::Apply(changes.clone()).take(classifier.as_mut(), &mut oracle, &mut counters)
            }
            Question::Rebuild => rebuild(classifier.as_mut()),
            Question::Reoptimise => reoptimise(classifier.as_mut(), 0),
            Question::Chain { keys } => {
                let expected = oracle.winners(keys);
                chain(
                    subject,
                    keys,
                    &expected,
                    &oracle,
                    &mut scratch,
                    &mut counters,
                )
            }
            question => question.ask(classifier.as_ref(), &oracle, &mut scratch, &mut counters),
        };
        Ok(answer.err())
    }

    /// Returns the scenario as a case with the right answers, for a file of vectors.
    #[must_use]
    pub fn to_case(&self, name: &str, finding: &Finding) -> Case {
        let mut oracle = self.start();
        let mut steps = Vec::new();
        let last_action = match &self.question {
            Question::Apply(changes) => Some(Action::Apply(changes.clone())),
            _ => None,
        };
        for action in self.history.iter().chain(&last_action) {
            steps.push(match action {
                Action::Rebuild => Step {
                    rebuild: true,
                    ..Step::default()
                },
                Action::Reoptimise(steps) => Step {
                    reoptimise: Some(*steps),
                    ..Step::default()
                },
                Action::Apply(changes) => Step {
                    changes: changes.clone(),
                    refused: oracle.apply(changes).err().map(|error| error.to_string()),
                    ..Step::default()
                },
            });
        }
        let mut headers: Vec<Vec<u128>> = finding.headers().iter().map(|h| h.to_vec()).collect();
        if headers.is_empty()
            && let Some(keys) = self.question.keys()
        {
            let keys = keys.as_slice().iter();
            headers = keys.map(|key| unpack(&self.schema, key)).collect();
        }
        let probes: Vec<Probe> = headers
            .into_iter()
            .map(|header| {
                let mut keys = KeyVec::new(&self.schema);
                keys.push(&header).expect("a header of the schema");
                let matches = oracle.all_matches(keys.key(0));
                Probe {
                    header,
                    matches: matches.iter().filter_map(|w| w.rule()).collect(),
                }
            })
            .collect();
        let mut case = Case::new(name, &self.schema);
        case.limit = (self.limits.rules < Limits::default().rules).then_some(self.limits.rules);
        case.rules = self.initial.clone();
        match steps.last_mut() {
            Some(last) => last.probes = probes,
            None => case.probes = probes,
        }
        case.steps = steps;
        case
    }
}

/// The maximum work of a minimisation, in rules, changes and headers of all replays
/// together. It takes a few seconds.
const MAX_WORK: usize = 3_000_000;

/// The work of a replay in addition to its size.
const WORK_PER_REPLAY: usize = 100;

/// Greedily removes everything that is not necessary for the same kind of finding.
struct Minimiser<'a> {
    subject: &'a Subject,
    kind: &'static str,
    best: Scenario,
    finding: Finding,
    left: usize,
    progress: &'a mut dyn Progress,
}

/// Searches for the smallest scenario with the same kind of finding. Returns it with its
/// finding, or `None` if the given scenario does not repeat its finding.
///
/// Removes, one after the other, transactions, changes, rules, headers, fields of schemas
/// that are not built in, and conditions of rules, if the finding remains without them.
/// So everything that remains is necessary.
#[must_use]
pub fn minimise(
    subject: &Subject,
    scenario: &Scenario,
    kind: &'static str,
    progress: &mut dyn Progress,
) -> Option<(Scenario, Finding)> {
    quietly(|| {
        let finding = scenario.replay(subject).ok().flatten()?;
        if finding.kind() != kind {
            return None;
        }
        let mut minimiser = Minimiser {
            subject,
            kind,
            best: scenario.clone(),
            finding,
            left: MAX_WORK,
            progress,
        };
        minimiser.run();
        Some((minimiser.best, minimiser.finding))
    })
}

impl Minimiser<'_> {
    fn run(&mut self) {
        self.shorter_history();
        loop {
            let before = self.best.size();
            self.fewer_actions();
            self.fewer_changes();
            self.fewer_rules();
            self.fewer_keys();
            if self.best.size() == before || self.left == 0 {
                break;
            }
        }
        self.fewer_fields();
        self.fewer_demands();
    }

    /// Removes fields from the schema, unless it is built in.
    fn fewer_fields(&mut self) {
        let schema = &self.best.schema;
        if Schema::built_in(schema.name()).is_some_and(|known| known == *schema) {
            return;
        }
        for index in (0..schema.fields().len()).rev() {
            if let Some(candidate) = without_field(&self.best, index) {
                self.take(candidate);
            }
        }
    }

    /// Replaces the best scenario by the candidate if it has the same kind of finding.
    fn take(&mut self, candidate: Scenario) -> bool {
        if self.left == 0 {
            return false;
        }
        let work = candidate.size() + WORK_PER_REPLAY;
        self.left = self.left.saturating_sub(work);
        let done = MAX_WORK - self.left;
        if let ControlFlow::Break(()) = self.progress.report("minimising", done, MAX_WORK) {
            self.left = 0;
            return false;
        }
        match candidate.replay(self.subject) {
            Ok(Some(finding)) if finding.kind() == self.kind => {
                self.best = candidate;
                self.finding = finding;
                true
            }
            _ => false,
        }
    }

    /// Builds over the rules after some actions, if possible after all, instead of taking
    /// these actions.
    fn shorter_history(&mut self) {
        let whole = self.best.clone();
        let mut keep = 0;
        while keep < whole.history.len() {
            let cut = whole.history.len() - keep;
            let mut early = whole.clone();
            early.history.truncate(cut);
            let mut candidate = whole.clone();
            candidate.initial = early.end().rules().cloned().collect();
            candidate.history.drain(..cut);
            if self.take(candidate) {
                break;
            }
            keep = (2 * keep).max(1);
        }
    }

    /// Removes runs of a list's items, long runs first. Keeps at least `min_items` items.
    fn fewer<T: Clone>(
        &mut self,
        list: impl Fn(&Scenario) -> Vec<T>,
        set: impl Fn(&mut Scenario, Vec<T>),
        min_items: usize,
    ) {
        let mut run = list(&self.best).len().div_ceil(2);
        while run > 0 {
            let mut start = 0;
            loop {
                let mut items = list(&self.best);
                if start >= items.len() {
                    break;
                }
                let run_end = (start + run).min(items.len());
                if items.len() - (run_end - start) < min_items {
                    break;
                }
                items.drain(start..run_end);
                let mut candidate = self.best.clone();
                set(&mut candidate, items);
                if !self.take(candidate) {
                    start += run;
                }
            }
            if run == 1 {
                break;
            }
            run = run.div_ceil(2);
        }
    }

    fn fewer_actions(&mut self) {
        self.fewer(|s| s.history.clone(), |s, items| s.history = items, 0);
    }

    fn fewer_changes(&mut self) {
        for index in 0..self.best.history.len() {
            let list = |s: &Scenario| match &s.history[index] {
                Action::Apply(changes) => changes.clone(),
                Action::Rebuild | Action::Reoptimise(_) => Vec::new(),
            };
            self.fewer(list, |s, items| s.history[index] = Action::Apply(items), 0);
        }
        let list = |s: &Scenario| match &s.question {
            Question::Apply(changes) => changes.clone(),
            _ => Vec::new(),
        };
        self.fewer(list, |s, items| s.question = Question::Apply(items), 0);
    }

    fn fewer_rules(&mut self) {
        self.fewer(|s| s.initial.clone(), |s, items| s.initial = items, 0);
    }

    /// Removes headers of a batch, with their candidates.
    fn fewer_keys(&mut self) {
        let rows = |s: &Scenario| match &s.question {
            Question::Batch { keys, .. }
            | Question::BatchMasked { keys, .. }
            | Question::Chain { keys } => (0..keys.len()).collect(),
            _ => Vec::new(),
        };
        // Rows are positions in the batch of the best scenario so far.
        self.fewer(
            rows,
            |s, rows| {
                let choose_keys = |keys: &KeyVec| {
                    let mut chosen = KeyVec::new(keys.schema());
                    rows.iter().for_each(|&row| chosen.push_key(keys.key(row)));
                    chosen
                };
                match &mut s.question {
                    Question::Batch { keys, best } | Question::BatchMasked { keys, best, .. } => {
                        *best = rows.iter().map(|&row| best[row]).collect();
                        *keys = choose_keys(keys);
                    }
                    Question::Chain { keys } => *keys = choose_keys(keys),
                    _ => {}
                }
            },
            1,
        );
    }

    /// Replaces matches of the rules by wildcards, if there are at most 16 rules.
    fn fewer_demands(&mut self) {
        let mut ids: Vec<RuleId> = Vec::new();
        let mut note = |rule: &Arc<Rule>| ids.push(rule.view().id());
        self.best.initial.iter().for_each(&mut note);
        for_each_rule(&mut self.best.clone(), &mut |rule| note(rule));
        ids.sort();
        ids.dedup();
        if ids.len() > 16 {
            return;
        }
        for id in ids {
            for field in self.best.schema.field_ids() {
                let mut candidate = self.best.clone();
                let mut changed = false;
                for_each_rule(&mut candidate, &mut |rule| {
                    if rule.view().id() == id
                        && rule.view().schema() == &self.best.schema
                        && rule.view().field(field) != FieldMatch::Any
                    {
                        let mut matches = rule.view().fields();
                        matches[field.index()] = FieldMatch::Any;
                        let view = rule.view();
                        let (schema, priority, action) =
                            (view.schema(), view.priority(), view.action());
                        if let Ok(wider) = Rule::new(schema, id, priority, action, &matches) {
                            *rule = Arc::new(wider.with_cookie(view.cookie()));
                            changed = true;
                        }
                    }
                });
                if changed {
                    self.take(candidate);
                }
            }
        }
    }
}

/// Returns the scenario over a schema without the field `index`, or `None` if the schema has
/// no other field.
fn without_field(scenario: &Scenario, index: usize) -> Option<Scenario> {
    let old = &scenario.schema;
    let mut fields: Vec<Field> = old.fields().to_vec();
    fields.remove(index);
    let new = Schema::new(old.name(), fields).ok()?;
    let shorter = |words: &[u64]| {
        let mut values = unpack(old, words);
        values.remove(index);
        values
    };
    let mut candidate = scenario.clone();
    for_each_rule(&mut candidate, &mut |rule| {
        let view = rule.view();
        if view.schema() == old {
            let mut matches = view.fields();
            matches.remove(index);
            let new_rule = Rule::new(&new, view.id(), view.priority(), view.action(), &matches);
            let new_rule = new_rule.expect("matches of the same fields");
            *rule = Arc::new(new_rule.with_cookie(view.cookie()));
        }
    });
    match &mut candidate.question {
        Question::Batch { keys, .. }
        | Question::One { keys }
        | Question::Masked { keys, .. }
        | Question::BatchMasked { keys, .. }
        | Question::Chain { keys }
        | Question::Trace { keys } => {
            let mut fewer = KeyVec::new(&new);
            for key in keys.as_slice().iter() {
                let header = shorter(key);
                fewer.push(&header).expect("values of the same fields");
            }
            *keys = fewer;
        }
        Question::Build
        | Question::Apply(_)
        | Question::Rebuild
        | Question::Reoptimise
        | Question::Held => {}
    }
    if let Question::Masked { preset, .. } | Question::BatchMasked { preset, .. } =
        &mut candidate.question
    {
        let mut mask = KeyVec::new(&new);
        mask.push(&shorter(preset))
            .expect("values of the same fields");
        *preset = mask.key(0).to_vec();
    }
    candidate.schema = new;
    Some(candidate)
}

/// Visits every rule of a scenario: initial rules, and rules of the history and question.
fn for_each_rule(scenario: &mut Scenario, visit: &mut dyn FnMut(&mut Arc<Rule>)) {
    scenario.initial.iter_mut().for_each(&mut *visit);
    let question_changes = match &mut scenario.question {
        Question::Apply(changes) => Some(changes),
        _ => None,
    };
    let transactions = scenario.history.iter_mut().filter_map(|a| match a {
        Action::Apply(changes) => Some(changes),
        Action::Rebuild | Action::Reoptimise(_) => None,
    });
    for change in transactions.chain(question_changes).flatten() {
        if let OwnedChange::Insert(rule) | OwnedChange::Modify(rule) = change {
            visit(rule);
        }
    }
}
