//! Findings about the rules of a policy.

use classyard::policy::PartId;
use classyard::{ActionId, BuildError, Policy, Progress, RuleId};

use crate::cover::{Cover, CoverSearch, Steps};
use crate::error::AnalysisError;
use crate::part::AnalysedPart;

mod dead;
mod redundant;
mod statements;

use dead::{Life, Lives};
use redundant::{Redundancy, RedundancySearch};
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
}

impl Default for LintSettings {
    fn default() -> LintSettings {
        LintSettings {
            max_steps_per_rule: 20_000_000,
            max_steps: 2_000_000_000,
            redundant: true,
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
}

impl Finding {
    /// Returns the rule that the finding is about.
    #[must_use]
    pub fn rule(&self) -> RuleId {
        match self {
            Finding::Dead { rule, .. }
            | Finding::PartlyDead { rule, .. }
            | Finding::Redundant { rule, .. } => *rule,
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

/// Searches a policy for rules that are dead or redundant.
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
    let parts = policy.parts().iter();
    let parts = parts.map(|rules| AnalysedPart::new(&[rules]));
    let parts: Vec<AnalysedPart<'_>> = parts.collect::<Result<_, _>>()?;
    let mut steps = Steps::new(settings.max_steps);
    let mut lives = Vec::new();
    for part in &parts {
        lives.push(dead::find(
            part,
            settings.max_steps_per_rule,
            &mut steps,
            progress,
        )?);
    }
    let linter = Linter {
        policy,
        statements,
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
        lint.findings
            .sort_by_key(|finding| policy.position(finding.rule()));
        lint.unknown.sort_by_key(|&rule| policy.position(rule));
        lint.unknown.dedup();
    }
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
    statements: &'a Statements,
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
        if rules.iter().flat_map(|&rule| self.places(rule)).count() > 1 {
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

    /// Leaves out blockers that the others make unnecessary. Returns false if the search
    /// reached its limit.
    fn reduce(&self, rules: &[RuleId], blockers: &mut Vec<RuleId>) -> bool {
        let mut steps = Steps::new(self.settings.max_steps_per_rule);
        let mut search = CoverSearch::default();
        let mut is_complete = true;
        for index in (0..blockers.len()).rev() {
            let blocker = blockers.remove(index);
            let is_covered = self.is_covered(rules, blockers, &mut search, &mut steps);
            if is_covered != Some(true) {
                blockers.insert(index, blocker);
            }
            is_complete &= is_covered.is_some();
        }
        is_complete
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
