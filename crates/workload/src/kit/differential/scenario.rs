//! How to repeat a disagreement, and how to make that small.

use std::ops::ControlFlow;
use std::sync::Arc;

use classyard::key::unpack;
use classyard::{
    BuildError, Classifier, Field, FieldMatch, KeyVec, Limits, NoProgress, Progress, Rule, RuleId,
    Schema, Scratch,
};

use super::Counters;
use super::question::{Finding, Question, apply, chain, rebuild, reoptimise};
use crate::kit::oracle::{Oracle, OwnedChange};
use crate::kit::vectors::{Case, Probe, Step};
use crate::kit::{Subject, guarded, quietly};

/// Something that was done to a classifier.
#[derive(Clone, Debug)]
pub enum Action {
    /// A transaction, perhaps a refused one.
    Apply(Vec<OwnedChange>),
    /// A reorganisation.
    Rebuild,
    /// To re-optimise, with the number of steps of installing the plan that are
    /// done at once; the others come with later transactions.
    Reoptimise(usize),
}

impl Action {
    /// Does it to the oracle and to a classifier over the same rules, and
    /// compares what both say.
    ///
    /// # Errors
    /// [`Finding`] says how the classifier's answer differs.
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

/// Everything that happened to a classifier, up to the question that it
/// answered wrongly.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// The schema.
    pub schema: Arc<Schema>,
    /// The limits.
    pub limits: Limits,
    /// The rules that it was built over, in order.
    pub initial: Vec<Arc<Rule>>,
    /// What was done to it then.
    pub history: Vec<Action>,
    /// The question.
    pub question: Question,
}

impl Scenario {
    /// The oracle of the rules that the classifier is built over.
    #[must_use]
    pub fn start(&self) -> Oracle {
        Oracle::of_rules(&self.schema, self.initial.iter().cloned(), &self.limits)
    }

    /// The oracle of the rules that are there when the question is asked.
    #[must_use]
    pub fn end(&self) -> Oracle {
        let mut oracle = self.start();
        for action in &self.history {
            if let Action::Apply(changes) = action {
                // What is refused changes nothing.
                let _ = oracle.apply(changes);
            }
        }
        oracle
    }

    /// The number of rules and changes in it: its size for people.
    #[must_use]
    pub fn size(&self) -> usize {
        let changes = |action: &Action| match action {
            Action::Apply(changes) => changes.len(),
            Action::Rebuild | Action::Reoptimise(_) => 1,
        };
        let asked = match &self.question {
            Question::Apply(changes) => changes.len(),
            other => other.keys().map_or(0, KeyVec::len),
        };
        self.initial.len() + self.history.iter().map(changes).sum::<usize>() + asked
    }

    /// Does it all again with a fresh classifier, and says what is found.
    ///
    /// # Errors
    /// [`BuildError`] when the classifier does not build.
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

    /// The scenario as a case with the right answers, for the vectors.
    #[must_use]
    pub fn to_case(&self, name: &str, finding: &Finding) -> Case {
        let mut oracle = self.start();
        let mut steps = Vec::new();
        let asked = match &self.question {
            Question::Apply(changes) => Some(Action::Apply(changes.clone())),
            _ => None,
        };
        for action in self.history.iter().chain(&asked) {
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

/// How much work a minimisation may take: rules, changes and headers of all
/// replays together. A few seconds' worth.
const WORK: usize = 3_000_000;

/// What a replay costs beside its size.
const REPLAY: usize = 100;

/// Greedily leaves out whatever is not needed for the same kind of finding.
struct Minimiser<'a> {
    subject: &'a Subject,
    kind: &'static str,
    best: Scenario,
    finding: Finding,
    left: usize,
    progress: &'a mut dyn Progress,
}

/// The smallest scenario that could be found with the same kind of finding,
/// and its finding; `None` if the scenario as it is does not repeat it.
///
/// Leaves out transactions, changes, rules, headers, fields of schemas that are
/// not built in, and demands of rules, one after the other, as long as the finding
/// stays; so what is left is needed.
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
            left: WORK,
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

    /// Leaves fields out of the schema, unless it is one that people know.
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

    /// Takes the candidate over if it shows the same.
    fn take(&mut self, candidate: Scenario) -> bool {
        if self.left == 0 {
            return false;
        }
        self.left = self.left.saturating_sub(candidate.size() + REPLAY);
        let done = WORK - self.left;
        if let ControlFlow::Break(()) = self.progress.report("minimising", done, WORK) {
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

    /// Builds over later rules, the final ones at best, instead of updating to
    /// them.
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

    /// Leaves out runs of a list's items, long ones first.
    fn fewer<T: Clone>(
        &mut self,
        list: impl Fn(&Scenario) -> Vec<T>,
        set: impl Fn(&mut Scenario, Vec<T>),
        least: usize,
    ) {
        let mut run = list(&self.best).len().div_ceil(2);
        while run > 0 {
            let mut at = 0;
            loop {
                let mut items = list(&self.best);
                if at >= items.len() {
                    break;
                }
                let end = (at + run).min(items.len());
                if items.len() - (end - at) < least {
                    break;
                }
                items.drain(at..end);
                let mut candidate = self.best.clone();
                set(&mut candidate, items);
                if !self.take(candidate) {
                    at += run;
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

    /// Leaves headers of a batch out, and their candidates with them.
    fn fewer_keys(&mut self) {
        let rows = |s: &Scenario| match &s.question {
            Question::Batch { keys, .. }
            | Question::BatchMasked { keys, .. }
            | Question::Chain { keys } => (0..keys.len()).collect(),
            _ => Vec::new(),
        };
        // Rows are positions in the batch as it is at each step.
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

    /// Makes fields of the rules wildcards, while there are few rules.
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

/// The scenario over a schema without one of the fields; `None` if it is the only
/// one.
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
            let made = Rule::new(&new, view.id(), view.priority(), view.action(), &matches);
            let made = made.expect("matches of the same fields");
            *rule = Arc::new(made.with_cookie(view.cookie()));
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

/// Visits every rule of a scenario, wherever it is.
fn for_each_rule(scenario: &mut Scenario, visit: &mut dyn FnMut(&mut Arc<Rule>)) {
    scenario.initial.iter_mut().for_each(&mut *visit);
    let asked = match &mut scenario.question {
        Question::Apply(changes) => Some(changes),
        _ => None,
    };
    let told = scenario.history.iter_mut().filter_map(|a| match a {
        Action::Apply(changes) => Some(changes),
        Action::Rebuild | Action::Reoptimise(_) => None,
    });
    for change in told.chain(asked).flatten() {
        if let OwnedChange::Insert(rule) | OwnedChange::Modify(rule) = change {
            visit(rule);
        }
    }
}
