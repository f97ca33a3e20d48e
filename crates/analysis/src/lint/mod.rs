//! Findings about the rules of a policy.

use std::collections::HashSet;

use classyard::policy::PartId;
use classyard::{ActionId, BuildError, FieldId, FieldMatch, Policy, Progress, RuleId};

use crate::cover::{Cover, CoverSearch, Steps};
use crate::error::AnalysisError;
use crate::part::AnalysedPart;

mod correlated;
mod dead;
mod equal_priority;
mod limit;
mod mergeable;
mod pairs;
mod rare_action;
mod redundant;
mod some;
mod statements;

use dead::{Life, Lives};
use limit::Limit;
pub use pairs::Conflict;
use pairs::PairSearch;
use redundant::{Redundancy, RedundancySearch};
pub use some::{RuleFindings, lint_some};
pub use statements::Statements;

/// The settings of [`lint()`].
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct LintSettings {
    /// The maximum number of steps for one rule and one kind of finding. A step compares one
    /// rule with a part of another rule; a million take some 10 ms. The default is 20
    /// million.
    pub max_steps_per_rule: u64,
    /// The maximum number of steps for all rules and one kind of finding. The default is 2
    /// billion.
    pub max_steps: u64,
    /// True to search for redundant rules. It makes no sense for rules without actions.
    pub redundant: bool,
    /// True to search for rules of equal priority whose order matters. The default is false,
    /// as for all further kinds.
    pub equal_priority: bool,
    /// True to search for correlated rules.
    pub correlated: bool,
    /// True to search for rules that can be merged.
    pub mergeable: bool,
    /// True to search for misspelled actions.
    pub rare_action: bool,
}

impl Default for LintSettings {
    fn default() -> LintSettings {
        LintSettings {
            max_steps_per_rule: 20_000_000,
            max_steps: 2_000_000_000,
            redundant: true,
            equal_priority: false,
            correlated: false,
            mergeable: false,
            rare_action: false,
        }
    }
}

/// A finding about a rule, or about the rules of a statement, which it names by the first of
/// them.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Finding {
    /// Better rules match everything that the rule matches. No header is decided by it.
    Dead {
        /// The rule.
        rule: RuleId,
        /// The better rules, best first.
        blockers: Vec<RuleId>,
        /// True if every blocker is needed: the others leave a header to the rule. False if
        /// the search for unneeded blockers reached its limit.
        all_needed: bool,
        /// True if all blockers and all rules of the statement have one action.
        same_action: bool,
    },
    /// Some rules of a statement are dead, and others decide headers.
    PartlyDead {
        /// The first rule of the statement.
        rule: RuleId,
        /// The dead rules of the statement, in file order.
        dead_rules: Vec<RuleId>,
        /// Better rules of other statements that cover the dead rules, together with rules of
        /// the statement; best first.
        blockers: Vec<RuleId>,
    },
    /// The rule decides headers, but without it the same headers get the same action.
    Redundant {
        /// The rule.
        rule: RuleId,
        /// Worse rules with the same action that decide its headers instead, best first.
        successors: Vec<RuleId>,
        /// True if the rule can be removed together with all other rules that are dead or
        /// removable. False if another removal needs it.
        removable: bool,
    },
    /// Rules of equal priority and different actions match headers that no rule of higher
    /// priority matches. The smaller id decides them here; OpenFlow leaves that undefined.
    EqualPriority(Conflict),
    /// Each of two rules with different actions matches headers that the other does not match,
    /// and the better one decides headers that both match.
    Correlated(Conflict),
    /// Two rules of the same action differ in one field, and can be one rule at the place of
    /// the better one.
    Mergeable {
        /// The worse rule.
        rule: RuleId,
        /// The better rule.
        other: RuleId,
        /// The first part that has the rules.
        part: PartId,
        /// The only field with different matches.
        field: FieldId,
        /// The match of the field with the values of both rules.
        merged: FieldMatch,
    },
    /// One or two rules of a long policy have an action whose name is close to the name of a
    /// common action.
    RareAction {
        /// The rule.
        rule: RuleId,
        /// The name of its action.
        action: String,
        /// The name of the common action.
        similar: String,
    },
}

impl Finding {
    /// Returns the rule that the finding is about.
    #[must_use]
    pub fn rule(&self) -> RuleId {
        match self {
            Finding::Dead { rule, .. }
            | Finding::PartlyDead { rule, .. }
            | Finding::Redundant { rule, .. }
            | Finding::Mergeable { rule, .. }
            | Finding::RareAction { rule, .. } => *rule,
            Finding::EqualPriority(conflict) | Finding::Correlated(conflict) => conflict.rule,
        }
    }
}

/// The findings of [`lint()`].
#[derive(Debug)]
pub struct Lint {
    findings: Vec<Finding>,
    unknown: Vec<RuleId>,
    witnesses: Vec<Option<Witness>>,
    lives: Vec<Lives>,
    bytes: usize,
}

/// A part, and a header of the part that a rule wins.
type Witness = (PartId, u32);

impl Lint {
    /// Returns the findings, in file order of their rules.
    #[must_use]
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    /// Returns the rules for which a search reached its limit, or that need too many boxes,
    /// in file order. They have no finding, but may be dead or redundant. Of a statement, its
    /// first rule.
    #[must_use]
    pub fn unknown(&self) -> &[RuleId] {
        &self.unknown
    }

    /// Returns a header that the rule at this position in file order wins, and its part.
    /// `None` if the rule is dead or unknown.
    #[must_use]
    pub fn witness(&self, position: usize) -> Option<(PartId, Vec<u128>)> {
        let (part, index) = self.witnesses[position]?;
        let headers = &self.lives[part.index()].witnesses;
        Some((part, headers.header(index as usize)))
    }

    /// Returns the bytes that the analysis held in addition to the policy and the engine.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

/// Searches a policy for rules that are dead or redundant, and for the other kinds of findings
/// that the settings select.
///
/// The findings are exact. A rule that cannot be decided within the limits is in
/// [`Lint::unknown`].
///
/// ```
/// use classyard::prelude::*;
/// use classyard::NoProgress;
/// use classyard_analysis::{Finding, LintSettings, lint};
///
/// let mut policy = Policy::single(&Schema::ipv4_5tuple());
/// let port = |low, high| {
///     let any = FieldMatch::Any;
///     [any, any, any, FieldMatch::Range { low, high }, any]
/// };
/// let [part] = policy.part_ids().collect::<Vec<_>>()[..] else { unreachable!() };
/// for (id, (low, high)) in [(0, 99), (100, 199), (50, 150)].into_iter().enumerate() {
///     let priority = Priority(10 - u32::try_from(id)?);
///     let matches = port(low, high);
///     policy.add(RuleId::from_index(id), priority, ActionId(0), &[(part, &matches)])?;
/// }
/// let result = lint(&policy, &LintSettings::default(), &mut NoProgress)?;
/// let Finding::Dead { rule, blockers, .. } = &result.findings()[0] else { unreachable!() };
/// assert_eq!(rule.get(), 2);
/// assert_eq!(blockers.len(), 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// [`AnalysisError`] if the rules need too much memory, the engine that looks up witnesses
/// cannot be built, or `progress` cancelled.
pub fn lint(
    policy: &Policy,
    settings: &LintSettings,
    progress: &mut dyn Progress,
) -> Result<Lint, AnalysisError> {
    let statements = Statements::of_one_rule(policy);
    lint_statements(policy, &statements, settings, progress)
}

/// Searches a policy for statements that are dead, partly dead or redundant, like [`lint`].
///
/// # Errors
/// As for [`lint`].
pub fn lint_statements(
    policy: &Policy,
    statements: &Statements,
    settings: &LintSettings,
    progress: &mut dyn Progress,
) -> Result<Lint, AnalysisError> {
    lint_examined(policy, statements, statements, settings, progress)
}

/// Searches for findings about some of the statements. `all` has the statements of all rules.
fn lint_examined(
    policy: &Policy,
    all: &Statements,
    statements: &Statements,
    settings: &LintSettings,
    progress: &mut dyn Progress,
) -> Result<Lint, AnalysisError> {
    let parts = policy.parts().iter();
    let parts = parts.map(|rules| AnalysedPart::new(&[rules]));
    let parts: Vec<AnalysedPart<'_>> = parts.collect::<Result<_, _>>()?;
    let mut steps = Steps::new(settings.max_steps);
    let mut lives = Vec::new();
    let is_whole = statements.rules().len() == policy.len();
    let selected = (!is_whole).then(|| statements.rules().iter().collect::<HashSet<_>>());
    let is_examined = |rule: RuleId| selected.as_ref().is_none_or(|rules| rules.contains(&rule));
    for part in &parts {
        lives.push(dead::find(
            part,
            is_examined,
            settings.max_steps_per_rule,
            &mut steps,
            progress,
        )?);
    }
    let linter = Linter {
        policy,
        statements,
        all,
        statement_of_rule: all.by_position(policy),
        places: parts.iter().map(places_by_position).collect(),
        parts: &parts,
        lives: &lives,
        settings,
    };
    let mut lint = Lint {
        findings: Vec::new(),
        unknown: Vec::new(),
        witnesses: linter.witnesses(),
        bytes: parts.iter().map(AnalysedPart::bytes).sum(),
        lives: Vec::new(),
    };
    linter.find_dead(&mut lint);
    if settings.redundant {
        linter.find_redundant(&mut lint, progress)?;
    }
    linter.find_pairs(&mut lint, progress)?;
    lint.findings
        .sort_by_key(|finding| policy.position(finding.rule()));
    lint.unknown.sort_by_key(|&rule| policy.position(rule));
    lint.unknown.dedup();
    lint.lives = lives;
    Ok(lint)
}

/// Returns the place of the rule at each position of a part.
fn places_by_position(part: &AnalysedPart<'_>) -> Vec<u32> {
    let mut place_by_position = vec![0; part.list(0).len()];
    for place in part.places(0) {
        let position = part.list(0).position(part.rule(place).id());
        place_by_position[position.expect("a rule of the part")] = place;
    }
    place_by_position
}

/// Combines what is known of the rules of a statement in each of their parts.
struct Linter<'a> {
    policy: &'a Policy,
    /// The statements that are examined.
    statements: &'a Statements,
    /// All statements, and the number of each rule's statement by position.
    all: &'a Statements,
    statement_of_rule: Vec<u32>,
    parts: &'a [AnalysedPart<'a>],
    /// By part and position.
    places: Vec<Vec<u32>>,
    lives: &'a [Lives],
    settings: &'a LintSettings,
}

impl Linter<'_> {
    /// Returns the parts that have a rule, with its place in each.
    fn places(&self, rule: RuleId) -> Vec<(PartId, u32)> {
        let parts = self.policy.rule(rule).map(|(part, _)| {
            let position = self.policy.part(part).position(rule).expect("a rule");
            (part, self.places[part.index()][position])
        });
        parts.collect()
    }

    fn life(&self, (part, place): (PartId, u32)) -> &Life {
        &self.lives[part.index()].by_place[place as usize]
    }

    fn action(&self, rule: RuleId) -> Option<ActionId> {
        let mut parts = self.policy.rule(rule);
        parts.next().map(|(_, rule)| rule.action())
    }

    /// Returns the ids of rules at places of a part, added to `ids`, best first.
    fn add_ids(&self, part: PartId, places: &[u32], ids: &mut Vec<RuleId>) {
        let part = &self.parts[part.index()];
        for &place in places {
            let id = part.rule(place).id();
            if !ids.contains(&id) {
                ids.push(id);
            }
        }
    }

    /// Returns a header that each rule wins, in file order.
    fn witnesses(&self) -> Vec<Option<Witness>> {
        let rules = self.policy.ids().iter();
        let witnesses = rules.map(|&rule| {
            let places = self.places(rule).into_iter();
            let mut lives = places.map(|at| (at.0, self.life(at)));
            lives.find_map(|(part, life)| match *life {
                Life::Live(witness) => Some((part, witness)),
                _ => None,
            })
        });
        witnesses.collect()
    }

    fn has_witness(&self, lint: &Lint, rule: RuleId) -> bool {
        let position = self.policy.position(rule).expect("a rule");
        lint.witnesses[position].is_some()
    }

    fn find_dead(&self, lint: &mut Lint) {
        for rules in self.statements.iter() {
            let is_live = rules.iter().any(|&rule| self.has_witness(lint, rule));
            match (self.dead(rules), is_live) {
                (Some(finding), false) => lint.findings.push(finding),
                (None, false) => lint.unknown.push(rules[0]),
                (_, true) => lint.findings.extend(self.partly_dead(rules)),
            }
        }
    }

    /// Returns the finding about a statement, if all its rules are dead in all parts.
    fn dead(&self, rules: &[RuleId]) -> Option<Finding> {
        let mut cover = StatementCover::new(rules);
        for &rule in rules {
            if !self.add_cover(rule, &mut cover) {
                return None;
            }
        }
        let has_several_rules = |&blocker: &RuleId| self.statement_of(blocker).len() > 1;
        let places = rules.iter().flat_map(|&rule| self.places(rule));
        if places.count() > 1 || cover.blockers.iter().any(has_several_rules) {
            cover.all_needed = self.reduce(rules, &mut cover.blockers);
        }
        let action = self.action(rules[0]);
        let mut other_rules = rules.iter().chain(&cover.blockers);
        Some(Finding::Dead {
            rule: rules[0],
            same_action: other_rules.all(|&rule| self.action(rule) == action),
            blockers: cover.blockers,
            all_needed: cover.all_needed,
        })
    }

    /// Returns the rules of the statement of a rule.
    fn statement_of(&self, rule: RuleId) -> &[RuleId] {
        let position = self.policy.position(rule).expect("a rule");
        self.all.rules_of(self.statement_of_rule[position] as usize)
    }

    /// Leaves out statements that the others make unnecessary, with all their rules, and then
    /// rules of the statements that are left. Returns false if the search reached its limit.
    fn reduce(&self, rules: &[RuleId], blockers: &mut Vec<RuleId>) -> bool {
        let mut reduction = Reduction {
            linter: self,
            rules,
            search: CoverSearch::default(),
            steps: Steps::new(self.settings.max_steps_per_rule),
            is_complete: true,
        };
        let mut statements: Vec<&[RuleId]> = Vec::new();
        for &blocker in &*blockers {
            let statement = self.statement_of(blocker);
            if !statements.iter().any(|other| other[0] == statement[0]) {
                statements.push(statement);
            }
        }
        reduction.leave_out(&mut statements, |statement, all| all.extend(*statement));
        let is_left = |rule: &RuleId| statements.iter().any(|statement| statement.contains(rule));
        blockers.retain(is_left);
        if !reduction.is_covered_by(blockers) {
            *blockers = self.overlapping(rules, statements.concat());
        }
        reduction.leave_out(blockers, |&rule, all| all.push(rule));
        reduction.is_complete
    }

    /// Returns the candidates that overlap at least one of the rules, best first.
    fn overlapping(&self, rules: &[RuleId], mut candidates: Vec<RuleId>) -> Vec<RuleId> {
        let forms = |rule: RuleId| self.policy.rule(rule);
        candidates.retain(|&candidate| {
            let mut pairs = forms(candidate).flat_map(|candidate| {
                let rules = rules.iter().flat_map(|&rule| forms(rule));
                rules.map(move |rule| (candidate, rule))
            });
            pairs.any(|((part, candidate), (other, rule))| {
                part == other && candidate.overlaps(&rule)
            })
        });
        let rank = |&rule: &RuleId| forms(rule).next().map(|(_, rule)| rule.winner().rank());
        candidates.sort_by_key(rank);
        candidates
    }

    /// True if better rules among `blockers` match everything that some rules match. `None`
    /// if the search reached its limit.
    fn is_covered(
        &self,
        rules: &[RuleId],
        blockers: &[RuleId],
        search: &mut CoverSearch,
        steps: &mut Steps,
    ) -> Option<bool> {
        for (part, place) in rules.iter().flat_map(|&rule| self.places(rule)) {
            let boxes = self.parts[part.index()].boxes();
            let places = blockers.iter().flat_map(|&blocker| self.places(blocker));
            let better = places.filter(|&(other, blocker)| other == part && blocker < place);
            let mut numbers: Vec<u32> = better.flat_map(|(_, blocker)| boxes.of(blocker)).collect();
            numbers.sort_unstable();
            for number in boxes.of(place) {
                match search.search(boxes, boxes.bounds(number), &numbers, steps) {
                    Cover::Covered(_) => {}
                    Cover::Uncovered(_) => return Some(false),
                    Cover::Unknown => return None,
                }
            }
        }
        Some(true)
    }

    /// Returns the finding about a statement with rules that are not dead, if other
    /// statements make some of its rules dead.
    fn partly_dead(&self, rules: &[RuleId]) -> Option<Finding> {
        let mut cover = StatementCover::new(rules);
        let dead_rules = rules.iter().copied().filter(|&rule| {
            let mut rule_cover = StatementCover::new(rules);
            let is_dead = self.add_cover(rule, &mut rule_cover);
            if is_dead {
                cover.blockers.extend(rule_cover.blockers);
            }
            is_dead
        });
        let dead_rules: Vec<RuleId> = dead_rules.collect();
        let mut blockers = cover.blockers;
        blockers.sort_unstable_by_key(|&rule| self.policy.position(rule));
        blockers.dedup();
        (!blockers.is_empty()).then_some(Finding::PartlyDead {
            rule: rules[0],
            dead_rules,
            blockers,
        })
    }

    /// Adds the rules that cover a dead rule. Returns false if the rule is not dead in all
    /// parts.
    fn add_cover(&self, rule: RuleId, cover: &mut StatementCover<'_>) -> bool {
        for (part, place) in self.places(rule) {
            let Life::Dead(blockers) = self.life((part, place)) else {
                return false;
            };
            let analysed = &self.parts[part.index()];
            let is_own = |&place: &u32| cover.statement.contains(&analysed.rule(place).id());
            let (own, others): (Vec<u32>, _) =
                blockers.places.iter().partition(|place| is_own(place));
            self.add_ids(part, &others, &mut cover.blockers);
            cover.all_needed &= blockers.all_needed && own.is_empty();
        }
        true
    }

    /// Adds the findings about pairs of rules, and about the names of actions.
    fn find_pairs(&self, lint: &mut Lint, progress: &mut dyn Progress) -> Result<(), BuildError> {
        let settings = self.settings;
        let limit = || Limit::new(settings.max_steps, settings.max_steps_per_rule);
        let pair_search = || PairSearch::new(self.policy, self.parts, self.statements);
        if settings.equal_priority {
            let ties = equal_priority::find(&mut pair_search(), &mut limit(), progress)?;
            let findings = ties.conflicts.into_iter().map(Finding::EqualPriority);
            lint.findings.extend(findings);
            lint.unknown.extend(ties.unknown);
        }
        if settings.correlated {
            let pairs = correlated::find(&mut pair_search(), &mut limit(), progress)?;
            let findings = pairs.conflicts.into_iter().map(Finding::Correlated);
            lint.findings.extend(findings);
            lint.unknown.extend(pairs.unknown);
        }
        if settings.mergeable {
            let (policy, statements) = (self.policy, self.statements);
            let limit = &mut limit();
            let merges = mergeable::find(policy, self.parts, statements, limit, progress)?;
            lint.findings.extend(merges.findings);
            lint.unknown.extend(merges.unknown);
        }
        if settings.rare_action {
            let misspelled = rare_action::find(self.policy, self.statements);
            lint.findings.extend(misspelled);
        }
        Ok(())
    }

    fn find_redundant(
        &self,
        lint: &mut Lint,
        progress: &mut dyn Progress,
    ) -> Result<(), BuildError> {
        let mut searches: Vec<_> = self.parts.iter().map(RedundancySearch::new).collect();
        let mut steps = Steps::new(self.settings.max_steps);
        let total = self.statements.len();
        let mut redundant = Vec::new();
        let mut dead = Vec::new();
        for (done, rules) in self.statements.iter().enumerate() {
            let stage = "searching for redundant rules";
            classyard::progress::report(progress, stage, done, total)?;
            if !rules.iter().any(|&rule| self.has_witness(lint, rule)) {
                dead.push(rules);
                continue;
            }
            match self.redundancy(rules, &mut searches, &mut steps) {
                Redundancy::Redundant(successors) => redundant.push((rules, successors)),
                Redundancy::Needed => {}
                Redundancy::Unknown => lint.unknown.push(rules[0]),
            }
        }
        for rules in dead.into_iter().filter(|rules| self.dead(rules).is_some()) {
            self.set_removed(rules, true, &mut searches);
        }
        // The last rules first: a rule that ends a list often has the headers of many others.
        for (rules, successors) in redundant.into_iter().rev() {
            let redundancy = self.redundancy(rules, &mut searches, &mut steps);
            let removable = matches!(redundancy, Redundancy::Redundant(_));
            self.set_removed(rules, removable, &mut searches);
            lint.findings.push(Finding::Redundant {
                rule: rules[0],
                successors,
                removable,
            });
        }
        Ok(())
    }

    /// Leaves out the rules of a statement in later searches of all parts, or puts them back.
    fn set_removed(
        &self,
        rules: &[RuleId],
        is_removed: bool,
        searches: &mut [RedundancySearch<'_>],
    ) {
        for (part, place) in rules.iter().flat_map(|&rule| self.places(rule)) {
            searches[part.index()].set_removed(place, is_removed);
        }
    }

    /// Decides if a statement is redundant: if no header gets another action without its
    /// rules. The successors are rule ids.
    fn redundancy(
        &self,
        rules: &[RuleId],
        searches: &mut [RedundancySearch<'_>],
        all_steps: &mut Steps,
    ) -> Redundancy<RuleId> {
        let mut steps = all_steps.portion(self.settings.max_steps_per_rule);
        self.set_removed(rules, true, searches);
        let mut successors = Vec::new();
        let mut result = None;
        for &rule in rules {
            result = self.redundancy_of_rule(rule, &mut successors, searches, &mut steps);
            if result.is_some() {
                break;
            }
        }
        self.set_removed(rules, false, searches);
        all_steps.give_back(&steps);
        result.unwrap_or(Redundancy::Redundant(successors))
    }

    /// Adds the successors of a rule of a removed statement. Returns the reason why the
    /// statement is not redundant, if there is one.
    fn redundancy_of_rule(
        &self,
        rule: RuleId,
        successors: &mut Vec<RuleId>,
        searches: &mut [RedundancySearch<'_>],
        steps: &mut Steps,
    ) -> Option<Redundancy<RuleId>> {
        for at in self.places(rule) {
            let (part, place) = at;
            let search = &mut searches[part.index()];
            let witnesses = &self.lives[part.index()].witnesses;
            match *self.life(at) {
                Life::Live(witness) if search.is_changed(place, witnesses, witness) => {
                    return Some(Redundancy::Needed);
                }
                // A dead rule too: the rules that cover it may have been removed.
                Life::Live(_) | Life::Dead(_) | Life::Unknown => {
                    match search.decide(place, steps) {
                        Redundancy::Redundant(places) => self.add_ids(part, &places, successors),
                        Redundancy::Needed => return Some(Redundancy::Needed),
                        Redundancy::Unknown => return Some(Redundancy::Unknown),
                    }
                }
            }
        }
        None
    }
}

/// Leaves out what is not needed to cover some rules.
struct Reduction<'a> {
    linter: &'a Linter<'a>,
    /// The covered rules.
    rules: &'a [RuleId],
    search: CoverSearch,
    steps: Steps,
    /// False if the search reached its limit.
    is_complete: bool,
}

impl Reduction<'_> {
    /// True if some rules are proven to cover the rules.
    fn is_covered_by(&mut self, blockers: &[RuleId]) -> bool {
        let (search, steps) = (&mut self.search, &mut self.steps);
        let is_covered = self.linter.is_covered(self.rules, blockers, search, steps);
        self.is_complete &= is_covered.is_some();
        is_covered == Some(true)
    }

    /// Leaves out items, the last ones first, as long as the rules of the others cover.
    fn leave_out<T: Copy>(&mut self, items: &mut Vec<T>, add: impl Fn(&T, &mut Vec<RuleId>)) {
        for index in (0..items.len()).rev() {
            let item = items.remove(index);
            let mut blockers = Vec::new();
            items.iter().for_each(|item| add(item, &mut blockers));
            if !self.is_covered_by(&blockers) {
                items.insert(index, item);
            }
        }
    }
}

/// The rules of other statements that cover dead rules of a statement.
struct StatementCover<'a> {
    statement: &'a [RuleId],
    blockers: Vec<RuleId>,
    all_needed: bool,
}

impl StatementCover<'_> {
    fn new(statement: &[RuleId]) -> StatementCover<'_> {
        StatementCover {
            statement,
            blockers: Vec::new(),
            all_needed: true,
        }
    }
}
