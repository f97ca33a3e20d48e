//! Running test cases on engines.

use std::fmt;
use std::sync::Arc;

use classyard::{
    Classifier, FieldMatch, KeyVec, Limits, NoProgress, Priority, Rule, RuleId, RuleSet, Scratch,
    Winner,
};

use crate::calls::{guarded, ring};
use crate::case::{Case, Probe};
use crate::differential::{Action, Counters, Finding, Question};
use crate::oracle::{Oracle, OwnedChange};
use crate::{Skip, Subject};

/// A way to create a rule set in a classifier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Way {
    /// Built with all rules, in the case's order.
    Built,
    /// Built with all rules, in the opposite order.
    Reversed,
    /// Built with all rules, then reorganised.
    Rebuilt,
    /// Built with all rules, then re-optimised: the classifier learns from its rules and
    /// rearranges them.
    Reoptimised,
    /// Built empty, then one transaction for each rule.
    OneByOne,
    /// Built empty, then one transaction for all rules.
    Together,
    /// Built with wildcard rules of other priorities, which are then modified.
    Replaced,
    /// Built with a duplicate of higher priority for each rule; the duplicates are then
    /// removed.
    Uncovered,
}

/// All ways.
pub const WAYS: [Way; 8] = [
    Way::Built,
    Way::Reversed,
    Way::Rebuilt,
    Way::Reoptimised,
    Way::OneByOne,
    Way::Together,
    Way::Replaced,
    Way::Uncovered,
];

impl Way {
    /// The way's name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Way::Built => "built",
            Way::Reversed => "built in reverse",
            Way::Rebuilt => "rebuilt",
            Way::Reoptimised => "re-optimised",
            Way::OneByOne => "inserted one by one",
            Way::Together => "inserted together",
            Way::Replaced => "replaced",
            Way::Uncovered => "uncovered",
        }
    }

    /// True if it requires updates.
    #[must_use]
    pub fn updates(self) -> bool {
        !matches!(self, Way::Built | Way::Reversed)
    }

    /// Returns the rules to build with, and the actions to do then.
    fn plan(self, case: &Case) -> (Vec<Arc<Rule>>, Vec<Action>) {
        let rules = case.rules.clone();
        let insert = |rule: &Arc<Rule>| OwnedChange::Insert(Arc::clone(rule));
        match self {
            Way::Built => (rules, Vec::new()),
            Way::Reversed => (rules.into_iter().rev().collect(), Vec::new()),
            Way::Rebuilt => (rules, vec![Action::Rebuild]),
            Way::Reoptimised => (rules, vec![Action::Reoptimise(usize::MAX)]),
            Way::OneByOne => {
                let single = |rule| Action::Apply(vec![insert(rule)]);
                (Vec::new(), rules.iter().map(single).collect())
            }
            Way::Together => {
                let insert_rules = Action::Apply(rules.iter().map(insert).collect());
                (Vec::new(), vec![insert_rules])
            }
            Way::Replaced => {
                let any = vec![FieldMatch::Any; case.schema.fields().len()];
                let wild = rules.iter().map(|rule| {
                    let priority = Priority(!rule.view().priority().0);
                    changed(rule, rule.view().id(), priority, &any)
                });
                let replace = |rule: &Arc<Rule>| OwnedChange::Modify(Arc::clone(rule));
                let replace = rules.iter().map(replace).collect();
                (wild.collect(), vec![Action::Apply(replace)])
            }
            Way::Uncovered => {
                let taken = |id| rules.iter().any(|rule| rule.view().id() == id);
                let mut free = (0..u32::MAX)
                    .filter_map(|number| RuleId::new(number).ok())
                    .filter(|&id| !taken(id));
                let mut initial = Vec::new();
                let mut actions = Vec::new();
                for rule in &rules {
                    let id = free.next().expect("fewer rules than ids");
                    let fields = rule.view().fields();
                    initial.push(changed(rule, id, Priority(u32::MAX), &fields));
                    initial.push(Arc::clone(rule));
                    actions.push(Action::Apply(vec![OwnedChange::Remove(id)]));
                }
                (initial, actions)
            }
        }
    }
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

fn changed(rule: &Rule, id: RuleId, priority: Priority, matches: &[FieldMatch]) -> Arc<Rule> {
    let view = rule.view();
    let changed = Rule::new(view.schema(), id, priority, view.action(), matches);
    let changed = changed.expect("matches of the schema");
    Arc::new(changed.with_cookie(view.cookie()))
}

/// A case for which an engine gave a wrong answer.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The engine's specification, or `oracle`.
    pub subject: String,
    /// The case's name.
    pub case: String,
    /// The way of creating the rule set.
    pub way: Way,
    /// The step, counted from 1; 0 before the first step.
    pub step: usize,
    /// The problem.
    pub what: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Failure {
            subject,
            case,
            way,
            step,
            what,
        } = self;
        write!(f, "{subject}, case `{case}`, {way}, step {step}: {what}")
    }
}

/// The result of running cases.
#[derive(Debug, Default)]
pub struct VectorReport {
    /// The number of cases.
    pub cases: usize,
    /// The number of probes in the cases.
    pub probes: usize,
    /// The number of runs: one for each case, subject and way, without `skips`.
    pub runs: usize,
    /// The numbers of checks.
    pub counters: Counters,
    /// The omitted runs.
    pub skips: Vec<Skip>,
    /// The failed runs.
    pub failures: Vec<Failure>,
}

impl fmt::Display for VectorReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let VectorReport {
            cases,
            probes,
            runs,
            counters,
            ..
        } = self;
        write!(
            f,
            "{cases} cases with {probes} probes, {runs} runs, {} skipped, {} failed\n{counters}",
            self.skips.len(),
            self.failures.len()
        )?;
        for skip in &self.skips {
            write!(f, "\n{skip}")?;
        }
        for failure in &self.failures {
            write!(f, "\n{failure}")?;
        }
        Ok(())
    }
}

/// Returns the reason for which a subject does not run a case in a way, or `None` if it does.
fn skip_of(case: &Case, subject: &Subject, way: Way) -> Option<Skip> {
    let engine = subject.name().split([':', '(']).next().unwrap_or_default();
    let marked = case.skips.iter().find(|(name, _)| name == engine);
    let refusal = subject.accepts(&case.schema).err();
    let refusal = refusal.map(|refusal| refusal.to_string());
    let reason = if let Some((_, reason)) = marked {
        reason.as_str()
    } else if let Some(reason) = &refusal {
        reason
    } else if way.updates() && !subject.is_dynamic() {
        "the engine takes no updates"
    } else if way == Way::Uncovered && case.limit.is_some() {
        "that takes more rules than the case allows"
    } else {
        return None;
    };
    Some(Skip {
        subject: subject.name().to_owned(),
        what: format!("case `{}`, {way}", case.name),
        reason: reason.to_owned(),
    })
}

/// Runs all cases on all subjects in all ways. Each case runs on the oracle first.
#[must_use]
pub fn run(cases: &[Case], subjects: &[Subject]) -> VectorReport {
    let mut report = VectorReport {
        cases: cases.len(),
        probes: cases.iter().map(Case::probe_count).sum(),
        ..VectorReport::default()
    };
    let mut scratch = Scratch::new();
    for case in cases {
        if let Err((step, what)) = run_oracle(case) {
            report.failures.push(Failure {
                subject: "oracle".to_owned(),
                case: case.name.clone(),
                way: Way::Built,
                step,
                what,
            });
            continue;
        }
        for subject in subjects {
            for way in WAYS {
                if let Some(skip) = skip_of(case, subject, way) {
                    report.skips.push(skip);
                    continue;
                }
                report.runs += 1;
                let mut session = Session {
                    subject,
                    case,
                    scratch: &mut scratch,
                    counters: &mut report.counters,
                };
                if let Err((step, what)) = session.run(way) {
                    report.failures.push(Failure {
                        subject: subject.name().to_owned(),
                        case: case.name.clone(),
                        way,
                        step,
                        what,
                    });
                }
            }
        }
    }
    report
}

/// The number of a step, and its problem.
type Wrong = (usize, String);

/// Checks the case itself against the oracle.
fn run_oracle(case: &Case) -> Result<(), Wrong> {
    let rules = case.rules.iter().cloned();
    let mut oracle = Oracle::of_rules(&case.schema, rules, &case.limits());
    check_matches(case, &oracle, &case.probes).map_err(|what| (0, what))?;
    for (step, number) in case.steps.iter().zip(1..) {
        let result = oracle.apply(&step.changes);
        match (&result, &step.refused) {
            (Ok(()), None) => {}
            (Err(error), Some(begins)) if error.to_string().starts_with(begins) => {}
            (Ok(()), Some(begins)) => {
                let what = format!("expected the error `{begins}…`, but nothing is wrong");
                return Err((number, what));
            }
            (Err(error), Some(begins)) => {
                let what = format!("expected the error `{begins}…`, found `{error}`");
                return Err((number, what));
            }
            (Err(error), None) => return Err((number, format!("refused: {error}"))),
        }
        check_matches(case, &oracle, &step.probes).map_err(|what| (number, what))?;
    }
    Ok(())
}

fn check_matches(case: &Case, oracle: &Oracle, probes: &[Probe]) -> Result<(), String> {
    let keys = keys_of(case, probes);
    // The packed rules are also scanned, because engines are built from them.
    let rules = oracle.to_rule_set();
    for (key, probe) in keys.as_slice().iter().zip(probes) {
        let expected = &probe.matches;
        let matches: Vec<RuleId> = oracle
            .all_matches(key)
            .into_iter()
            .filter_map(Winner::rule)
            .collect();
        let shown = super::text::write_header(&case.schema, &probe.header);
        if &matches != expected {
            return Err(format!("{shown}: expected {expected:?}, found {matches:?}"));
        }
        if rules.scan(key).rule() != expected.first().copied() {
            return Err(format!("{shown}: the packed rules give another winner"));
        }
    }
    Ok(())
}

fn keys_of(case: &Case, probes: &[Probe]) -> KeyVec {
    let mut keys = KeyVec::new(&case.schema);
    for probe in probes {
        keys.push(&probe.header).expect("checked when it was read");
    }
    keys
}

/// Batch lengths to use, in addition to the number of probes.
const BATCH_LENGTHS: [usize; 4] = [1, 2, 17, 64];

struct Session<'a> {
    subject: &'a Subject,
    case: &'a Case,
    scratch: &'a mut Scratch,
    counters: &'a mut Counters,
}

impl Session<'_> {
    fn run(&mut self, way: Way) -> Result<(), Wrong> {
        let (initial, actions) = way.plan(self.case);
        let limits = self.case.limits();
        let mut oracle = Oracle::of_rules(&self.case.schema, initial, &limits);
        let mut classifier = self
            .build(&oracle.to_rule_set(), &limits)
            .map_err(|w| (0, w))?;
        for action in &actions {
            self.act(action, classifier.as_mut(), &mut oracle)
                .map_err(|what| (0, what))?;
        }
        self.probe(&self.case.probes, classifier.as_ref(), &oracle)
            .map_err(|what| (0, what))?;
        for (step, number) in self.case.steps.iter().zip(1..) {
            let mut actions = vec![Action::Apply(step.changes.clone())];
            if step.rebuild {
                actions.push(Action::Rebuild);
            }
            actions.extend(step.reoptimise.map(Action::Reoptimise));
            for action in &actions {
                if self.subject.is_dynamic() {
                    self.act(action, classifier.as_mut(), &mut oracle)
                        .map_err(|what| (number, what))?;
                } else if let Action::Apply(changes) = action
                    && oracle.apply(changes).is_ok()
                {
                    let rules = oracle.to_rule_set();
                    classifier = self.build(&rules, &limits).map_err(|w| (number, w))?;
                }
            }
            self.probe(&step.probes, classifier.as_ref(), &oracle)
                .map_err(|what| (number, what))?;
        }
        Ok(())
    }

    fn build(&mut self, rules: &RuleSet, limits: &Limits) -> Result<Box<dyn Classifier>, String> {
        self.counters.builds += 1;
        guarded(|| self.subject.build(rules, limits, &mut NoProgress))
            .map_err(|message| format!("building panicked: {message}"))?
            .map_err(|error| format!("does not build: {error}"))
    }

    fn act(
        &mut self,
        action: &Action,
        classifier: &mut dyn Classifier,
        oracle: &mut Oracle,
    ) -> Result<(), String> {
        action
            .take(classifier, oracle, self.counters)
            .map_err(|finding| finding.describe(&self.case.schema))
    }

    /// Looks up the probes with every kind of lookup.
    fn probe(
        &mut self,
        probes: &[Probe],
        classifier: &dyn Classifier,
        oracle: &Oracle,
    ) -> Result<(), String> {
        self.ask(&Question::Held, classifier, oracle)?;
        if probes.is_empty() {
            return Ok(());
        }
        let keys = keys_of(self.case, probes);
        for length in BATCH_LENGTHS.into_iter().chain([keys.len()]) {
            let keys = ring(&keys, 0, length);
            let best = vec![Winner::MISS; length];
            self.ask(&Question::Batch { keys, best }, classifier, oracle)?;
        }
        let clear = vec![0; self.case.schema.key_words()];
        let best: Vec<Winner> = oracle.winners(&keys);
        let question = Question::BatchMasked {
            keys: keys.clone(),
            best: best.into_iter().rev().collect(),
            preset: clear.clone(),
        };
        self.ask(&question, classifier, oracle)?;
        let candidates = [
            Winner::MISS,
            Winner::new(Priority(10), RuleId::from_index(5)),
        ];
        for row in 0..keys.len() {
            let keys = ring(&keys, row, 1);
            let questions = [
                Question::One { keys: keys.clone() },
                Question::Trace { keys: keys.clone() },
            ];
            let masked = candidates.map(|best| Question::Masked {
                keys: keys.clone(),
                best,
                preset: clear.clone(),
                flips: (best == Winner::MISS).then_some(1),
            });
            for question in questions.iter().chain(&masked) {
                self.ask(question, classifier, oracle)?;
            }
        }
        Ok(())
    }

    fn ask(
        &mut self,
        question: &Question,
        classifier: &dyn Classifier,
        oracle: &Oracle,
    ) -> Result<(), String> {
        question
            .ask(classifier, oracle, self.scratch, self.counters)
            .map_err(|finding: Finding| {
                format!("{question}: {}", finding.describe(&self.case.schema))
            })
    }
}
