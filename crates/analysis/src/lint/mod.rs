//! Findings about the rules of a policy.

use classyard::policy::PartId;
use classyard::{BuildError, Policy, Progress, RuleId};

use crate::cover::Steps;
use crate::error::AnalysisError;
use crate::part::AnalysedPart;

mod dead;
mod redundant;

use dead::{Life, Lives};
use redundant::{Redundancy, RedundancySearch};

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

/// A finding about a rule.
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
        /// True if all blockers have the action of the rule.
        same_action: bool,
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
            Finding::Dead { rule, .. } | Finding::Redundant { rule, .. } => *rule,
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
    /// in file order. They have no finding, but may be dead or redundant.
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
        places: parts.iter().map(places_by_position).collect(),
        parts: &parts,
        lives: &lives,
        settings,
    };
    let mut lint = Lint {
        findings: Vec::new(),
        unknown: Vec::new(),
        witnesses: Vec::new(),
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

/// Combines what is known of a rule in each of its parts.
struct Linter<'a> {
    policy: &'a Policy,
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

    fn find_dead(&self, lint: &mut Lint) {
        for &rule in self.policy.ids() {
            let rule_places = self.places(rule);
            let witness = rule_places.iter().find_map(|&at| match *self.life(at) {
                Life::Live(witness) => Some((at.0, witness)),
                _ => None,
            });
            lint.witnesses.push(witness);
            if witness.is_some() {
                continue;
            }
            match self.dead(rule, &rule_places) {
                Some(finding) => lint.findings.push(finding),
                None => lint.unknown.push(rule),
            }
        }
    }

    /// Returns the finding about a rule without a witness, if it is dead in all parts.
    fn dead(&self, rule: RuleId, places: &[(PartId, u32)]) -> Option<Finding> {
        let mut blockers = Vec::new();
        let (mut all_needed, mut same_action) = (true, true);
        for &(part, place) in places {
            let Life::Dead(found) = self.life((part, place)) else {
                return None;
            };
            let analysed = &self.parts[part.index()];
            let action = analysed.action(place);
            self.add_ids(part, &found.places, &mut blockers);
            all_needed &= found.all_needed;
            same_action &= found
                .places
                .iter()
                .all(|&blocker| analysed.action(blocker) == action);
        }
        Some(Finding::Dead {
            rule,
            blockers,
            all_needed,
            same_action,
        })
    }

    fn find_redundant(
        &self,
        lint: &mut Lint,
        progress: &mut dyn Progress,
    ) -> Result<(), BuildError> {
        let mut searches: Vec<_> = self.parts.iter().map(RedundancySearch::new).collect();
        let mut steps = Steps::new(self.settings.max_steps);
        let total = self.policy.len();
        let mut redundant = Vec::new();
        for (done, &rule) in self.policy.ids().iter().enumerate() {
            let stage = "searching for redundant rules";
            classyard::progress::report(progress, stage, done, total)?;
            if lint.witnesses[done].is_none() {
                continue;
            }
            match self.redundancy(rule, &mut searches, &mut steps) {
                Redundancy::Redundant(successors) => redundant.push((rule, successors)),
                Redundancy::Needed => {}
                Redundancy::Unknown => lint.unknown.push(rule),
            }
        }
        for rule in lint.findings.iter().map(Finding::rule) {
            self.remove(rule, &mut searches);
        }
        // The last rules first: a rule that ends a list often has the headers of many others.
        for (rule, successors) in redundant.into_iter().rev() {
            let redundancy = self.redundancy(rule, &mut searches, &mut steps);
            let removable = matches!(redundancy, Redundancy::Redundant(_));
            if removable {
                self.remove(rule, &mut searches);
            }
            lint.findings.push(Finding::Redundant {
                rule,
                successors,
                removable,
            });
        }
        Ok(())
    }

    /// Leaves out a rule of all parts in later searches.
    fn remove(&self, rule: RuleId, searches: &mut [RedundancySearch<'_>]) {
        for (part, place) in self.places(rule) {
            searches[part.index()].remove(place);
        }
    }

    /// Decides if a live rule is redundant in all its parts. The successors are rule ids.
    fn redundancy(
        &self,
        rule: RuleId,
        searches: &mut [RedundancySearch<'_>],
        all_steps: &mut Steps,
    ) -> Redundancy<RuleId> {
        let mut successors = Vec::new();
        let mut steps = all_steps.portion(self.settings.max_steps_per_rule);
        let mut result = None;
        for at in self.places(rule) {
            let (part, place) = at;
            let search = &mut searches[part.index()];
            let witnesses = &self.lives[part.index()].witnesses;
            result = match *self.life(at) {
                Life::Dead(_) => continue,
                Life::Live(witness) if search.is_changed(place, witnesses, witness) => {
                    Some(Redundancy::Needed)
                }
                Life::Live(_) | Life::Unknown => match search.decide(place, &mut steps) {
                    Redundancy::Redundant(places) => {
                        self.add_ids(part, &places, &mut successors);
                        continue;
                    }
                    Redundancy::Needed => Some(Redundancy::Needed),
                    Redundancy::Unknown => Some(Redundancy::Unknown),
                },
            };
            break;
        }
        all_steps.give_back(&steps);
        result.unwrap_or(Redundancy::Redundant(successors))
    }
}
