//! Lists of changes that are hard for classifiers.
//!
//! Engines that update themselves split what has grown, join what has shrunk
//! and use memory again. These lists make them do so as often as can be, or
//! leave behind memory that fits nothing.

use classyard::{ActionId, FieldMatch, Priority, Progress, RuleId, RuleSet, Schema};

use super::{Hostile, Maker, Matches};
use crate::generate::draw::Draw;
use crate::generate::{Family, GenerateError, GeneratorConfig, Profile, Recipe, generate};

/// A kind of list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum HostileUpdates {
    /// Half of the rules are friendly and in; then as many rules come whose
    /// addresses and protocol are all the same, and go again.
    OneBucket,
    /// One rule in a hundred is in; the others come one by one.
    Growth,
    /// Groups of rules that grow from 4 to 40 and shrink to 4 again and again,
    /// over and under the sizes at which engines split and join.
    Thresholds,
    /// Groups of rules that nothing tells apart but ranges grow by one rule
    /// each, all groups in turn: what one leaves is too short for the next.
    LongerRuns,
    /// Friendly rules go until one in sixteen is left.
    Shrinking,
}

/// One change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UpdateStep {
    /// The rule of that id comes.
    Insert(RuleId),
    /// The rule of that id goes.
    Remove(RuleId),
}

/// Rules and what happens to them.
#[derive(Clone, Debug)]
pub struct UpdateList {
    /// All rules that are in at any time.
    pub rules: RuleSet,
    /// Those that are in at the beginning.
    pub initial: Vec<RuleId>,
    /// The changes, in order.
    pub steps: Vec<UpdateStep>,
}

impl UpdateList {
    /// The ids of the rules that are in at the end, in no particular order.
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

    /// Some of the rules as a set of their own.
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

/// Sizes between which groups go up and down.
const LOW: usize = 4;
const HIGH: usize = 40;

/// How often groups go up and down.
const CYCLES: usize = 3;

/// The rules of a group of [`HostileUpdates::LongerRuns`].
const LONG: usize = 64;

impl HostileUpdates {
    /// All of them.
    pub const ALL: [HostileUpdates; 5] = [
        HostileUpdates::OneBucket,
        HostileUpdates::Growth,
        HostileUpdates::Thresholds,
        HostileUpdates::LongerRuns,
        HostileUpdates::Shrinking,
    ];

    /// The name on command lines.
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

    /// The list with that many rules at its largest; the same on every machine.
    ///
    /// # Errors
    /// [`GenerateError::Stopped`] when the observer cancels.
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
                let groups: Vec<Vec<RuleId>> = (0..rules.div_ceil(HIGH))
                    .map(|group| {
                        (0..HIGH)
                            .map(|_| add(&mut set, &maker.grouped(group), &mut draw))
                            .collect()
                    })
                    .collect();
                let initial = groups.iter().flat_map(|group| &group[..LOW]);
                let initial = initial.copied().collect();
                let mut steps = Vec::new();
                for _ in 0..CYCLES {
                    for group in &groups {
                        let moving = &group[LOW..];
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
                let groups = rules.div_ceil(LONG);
                let ids: Vec<RuleId> = (0..LONG * groups)
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
    /// A rule of a group: addresses of its own within the group's.
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

    /// A rule of a group in which nothing but a range differs.
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

/// Rules like those of an access list, as the benchmarks have them.
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

/// Adds a rule of a random priority.
fn add(set: &mut RuleSet, matches: &Matches, draw: &mut Draw) -> RuleId {
    let id = RuleId::from_index(set.len());
    let priority = u32::try_from(draw.below(1 << 20)).expect("20 bits");
    set.add(id, Priority(priority), ActionId(0), matches)
        .expect("the matches fit five-tuples");
    id
}

fn shuffled(mut ids: Vec<RuleId>, draw: &mut Draw) -> Vec<RuleId> {
    for left in (1..ids.len()).rev() {
        ids.swap(left, draw.below(left + 1));
    }
    ids
}

fn inserts(ids: &[RuleId]) -> Vec<UpdateStep> {
    ids.iter().copied().map(UpdateStep::Insert).collect()
}

fn removals(ids: &[RuleId]) -> Vec<UpdateStep> {
    ids.iter().copied().map(UpdateStep::Remove).collect()
}
