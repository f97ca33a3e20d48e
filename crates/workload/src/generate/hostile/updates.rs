//! Lists of updates that are hard for classifiers.
//!
//! Engines that support updates split tables that have grown, join tables that have
//! shrunk, and reuse memory. These lists trigger that as often as possible, or leave
//! free memory that fits no later request.

use classyard::{ActionId, FieldMatch, Priority, Progress, RuleId, RuleSet, Schema};

use super::{Hostile, Maker, Matches};
use crate::generate::draw::Draw;
use crate::generate::{Family, GenerateError, GeneratorConfig, Profile, Recipe, generate};

/// A kind of update list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum HostileUpdates {
    /// Half of the rules are friendly and present at the start. Then the other half,
    /// rules with equal addresses and protocols, is added and removed again.
    OneBucket,
    /// One rule in a hundred is present at the start; the other rules are added one by
    /// one.
    Growth,
    /// Groups of rules that repeatedly grow from 4 to 40 rules and shrink to 4, across
    /// the sizes at which engines split and join.
    Thresholds,
    /// Groups of rules that differ only in ranges grow by one rule each, all groups
    /// alternating: the run that a group frees is too short for the next group.
    LongerRuns,
    /// Friendly rules are removed until one in sixteen is left.
    Shrinking,
}

/// One update.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UpdateStep {
    /// Adds the rule with this id.
    Insert(RuleId),
    /// Removes the rule with this id.
    Remove(RuleId),
}

/// Rules and a list of updates.
#[derive(Clone, Debug)]
pub struct UpdateList {
    /// All rules that are present at any time.
    pub rules: RuleSet,
    /// The rules that are present at the start.
    pub initial: Vec<RuleId>,
    /// The updates, in order.
    pub steps: Vec<UpdateStep>,
}

impl UpdateList {
    /// Returns the ids of the rules that are present at the end, in no particular
    /// order.
    #[must_use]
    pub fn last(&self) -> Vec<RuleId> {
        let mut inside = vec![false; self.rules.len()];
        for id in &self.initial {
            inside[id.index()] = true;
        }
        for step in &self.steps {
            match step {
                UpdateStep::Insert(id) => inside[id.index()] = true,
                UpdateStep::Remove(id) => inside[id.index()] = false,
            }
        }
        let ids = inside.iter().enumerate().filter(|&(_, inside)| *inside);
        ids.map(|(index, _)| RuleId::from_index(index)).collect()
    }

    /// Returns some of the rules as a separate set.
    #[must_use]
    pub fn subset(&self, ids: &[RuleId]) -> RuleSet {
        let mut set = RuleSet::new(self.rules.schema());
        set.reserve(ids.len());
        for id in ids {
            let rule = self.rules.rule(id.index());
            set.push(rule).expect("ids are distinct");
        }
        set
    }
}

/// The smallest and the largest size of the groups of [`HostileUpdates::Thresholds`].
const MIN_GROUP_RULES: usize = 4;
const MAX_GROUP_RULES: usize = 40;

/// The number of times that groups grow and shrink.
const GROUP_CYCLES: usize = 3;

/// The number of rules of a group of [`HostileUpdates::LongerRuns`].
const LONG_GROUP_RULES: usize = 64;

impl HostileUpdates {
    /// All kinds.
    pub const ALL: [HostileUpdates; 5] = [
        HostileUpdates::OneBucket,
        HostileUpdates::Growth,
        HostileUpdates::Thresholds,
        HostileUpdates::LongerRuns,
        HostileUpdates::Shrinking,
    ];

    /// Returns the name on command lines.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            HostileUpdates::OneBucket => "one-bucket",
            HostileUpdates::Growth => "growth",
            HostileUpdates::Thresholds => "thresholds",
            HostileUpdates::LongerRuns => "longer-runs",
            HostileUpdates::Shrinking => "shrinking",
        }
    }

    /// Returns the list with `rules` rules at its largest. Every machine gets the same
    /// list.
    ///
    /// # Errors
    /// [`GenerateError::Stopped`] if the progress callback cancels.
    pub fn list(
        self,
        rules: usize,
        seed: u64,
        progress: &mut dyn Progress,
    ) -> Result<UpdateList, GenerateError> {
        let config = GeneratorConfig::benchmark(rules, seed);
        let mut draw = Draw::new(seed, self.name());
        Ok(match self {
            HostileUpdates::OneBucket => {
                let mut set = friendly(rules.div_ceil(2), &config, progress)?;
                let initial: Vec<RuleId> = set.iter().map(|rule| rule.id()).collect();
                let mut maker = Maker::new(Hostile::OneBucket, &config);
                let [src, dst, .., proto] = maker.anchor.map(FieldMatch::Exact);
                let coming: Vec<RuleId> = (0..rules / 2)
                    .map(|_| {
                        let ports = [maker.over_middle(), maker.over_middle()];
                        add(&mut set, &[src, dst, ports[0], ports[1], proto], &mut draw)
                    })
                    .collect();
                let mut steps = inserts(&coming);
                steps.extend(removals(&shuffled(coming, &mut draw)));
                UpdateList {
                    rules: set,
                    initial,
                    steps,
                }
            }
            HostileUpdates::Growth => {
                let set = friendly(rules, &config, progress)?;
                let ids = set.iter().map(|rule| rule.id()).collect();
                let mut initial = shuffled(ids, &mut draw);
                let coming = initial.split_off(initial.len().div_ceil(100));
                UpdateList {
                    rules: set,
                    initial,
                    steps: inserts(&coming),
                }
            }
            HostileUpdates::Thresholds => {
                let mut set = RuleSet::new(&Schema::ipv4_5tuple());
                let mut maker = Maker::new(Hostile::NestedPrefixes, &config);
                let groups: Vec<Vec<RuleId>> = (0..rules.div_ceil(MAX_GROUP_RULES))
                    .map(|group| {
                        (0..MAX_GROUP_RULES)
                            .map(|_| add(&mut set, &maker.grouped(group), &mut draw))
                            .collect()
                    })
                    .collect();
                let initial = groups.iter().flat_map(|group| &group[..MIN_GROUP_RULES]);
                let initial = initial.copied().collect();
                let mut steps = Vec::new();
                for _ in 0..GROUP_CYCLES {
                    for group in &groups {
                        let moving = &group[MIN_GROUP_RULES..];
                        steps.extend(inserts(moving));
                        steps.extend(removals(moving));
                    }
                }
                UpdateList {
                    rules: set,
                    initial,
                    steps,
                }
            }
            HostileUpdates::LongerRuns => {
                let mut set = RuleSet::new(&Schema::ipv4_5tuple());
                let mut maker = Maker::new(Hostile::Alike, &config);
                let groups = rules.div_ceil(LONG_GROUP_RULES);
                let ids: Vec<RuleId> = (0..LONG_GROUP_RULES * groups)
                    .map(|index| {
                        let rule = maker.alike(index % groups);
                        add(&mut set, &rule, &mut draw)
                    })
                    .collect();
                UpdateList {
                    rules: set,
                    initial: ids[..groups].to_vec(),
                    steps: inserts(&ids[groups..]),
                }
            }
            HostileUpdates::Shrinking => {
                let set = friendly(rules, &config, progress)?;
                let initial: Vec<RuleId> = set.iter().map(|rule| rule.id()).collect();
                let mut going = shuffled(initial.clone(), &mut draw);
                going.truncate(rules - rules / 16);
                UpdateList {
                    rules: set,
                    initial,
                    steps: removals(&going),
                }
            }
        })
    }
}

impl Maker {
    /// Returns a rule of a group, with random addresses in the group's network.
    fn grouped(&mut self, group: usize) -> Matches {
        let spread = (group as u128 * 0x9e37_79b9) & 0xffff_ff00;
        let host = self.draw.up_to(255);
        let port = FieldMatch::Exact(self.draw.up_to(1023));
        [
            super::prefix(spread | host, 24 + 8 * u32::from(!host.is_multiple_of(4))),
            FieldMatch::Exact(self.anchor[1]),
            self.over_middle(),
            port,
            FieldMatch::Exact(6),
        ]
    }

    /// Returns a rule of a group whose rules differ only in ranges.
    fn alike(&mut self, group: usize) -> Matches {
        [
            FieldMatch::Exact((group as u128 * 0x9e37_79b9) & 0xffff_ffff),
            FieldMatch::Exact(self.anchor[1]),
            self.over_middle(),
            self.over_middle(),
            FieldMatch::Exact(6),
        ]
    }
}

/// Returns rules of an access list, with the adjustments of benchmarks.
fn friendly(
    rules: usize,
    config: &GeneratorConfig,
    progress: &mut dyn Progress,
) -> Result<RuleSet, GenerateError> {
    let profile = Profile::built_in("acl1").expect("it is built in").clone();
    let mut recipe = Recipe::new(Family::Ipv4(profile.into()), rules, config.seed);
    recipe.config = GeneratorConfig { rules, ..*config };
    recipe.accept_fewer = true;
    let policy = generate(&recipe, progress)?;
    Ok(policy.parts()[0].clone())
}

/// Adds a rule with a random priority.
fn add(set: &mut RuleSet, matches: &Matches, draw: &mut Draw) -> RuleId {
    let id = RuleId::from_index(set.len());
    let priority = u32::try_from(draw.below(1 << 20)).expect("20 bits");
    set.add(id, Priority(priority), ActionId(0), matches)
        .expect("the matches fit five-tuples");
    id
}

fn shuffled(mut ids: Vec<RuleId>, draw: &mut Draw) -> Vec<RuleId> {
    for index in (1..ids.len()).rev() {
        ids.swap(index, draw.below(index + 1));
    }
    ids
}

fn inserts(ids: &[RuleId]) -> Vec<UpdateStep> {
    ids.iter().copied().map(UpdateStep::Insert).collect()
}

fn removals(ids: &[RuleId]) -> Vec<UpdateStep> {
    ids.iter().copied().map(UpdateStep::Remove).collect()
}
