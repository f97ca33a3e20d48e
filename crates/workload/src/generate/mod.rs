//! Generated rule sets of any size and many degrees of difficulty.
//!
//! | family | rules over | made from |
//! |---|---|---|
//! | [`Family::Ipv4`] | `ipv4-5tuple` | a [`Profile`], as ClassBench does |
//! | [`Family::Ipv6`] | `ipv6-5tuple` | the same profile, mapped to IPv6 |
//! | [`Family::Dual`] | both in one policy | the same profile, mixed by a share |
//! | [`Family::OpenFlow15`] | `openflow15` | ratios of distinct values, [DEC14] Table III |
//! | [`Family::FlowTable`] | `openflow15` | typical flow tables of applications, see [`flow_table`] |
//! | [`Family::Schema`] | any schema | wildcards and overlap by probability |
//! | [`Family::Hostile`] | `ipv4-5tuple` | rules that are hard for classifiers, see [`hostile`] |
//!
//! Profiles come from three places: twelve are built in ([`Profile::BUILT_IN`]), others
//! are read from TOML ([`Profile::from_toml`]) or from ClassBench's parameter files
//! ([`SeedFile`], [`Profile::from_seed_file`]).
//!
//! ```
//! use classyard::NoProgress;
//! use classyard_workload::generate::{Family, Profile, Recipe, generate};
//! use std::sync::Arc;
//!
//! let profile = Arc::new(Profile::built_in("acl1").unwrap().clone());
//! let policy = generate(&Recipe::new(Family::Ipv4(profile), 1000, 42), &mut NoProgress)?;
//! assert_eq!(policy.len(), 1000);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Guarantees
//! * The same recipe gives the same policy on every machine.
//! * No two rules match the same headers field by field, except for [`Hostile::Alike`].
//! * The policy has exactly the requested number of rules. If the family has too few
//!   distinct rules, an error reports their number ([`GenerateError::TooFew`]), unless
//!   the recipe accepts fewer.
//! * Rule `i` has id `i` and priority `n - i`: the first rule wins. Rules from profiles
//!   and of flow tables are ordered from specific to general, so that no rule hides
//!   another.
//!
//! [DEC14]: classyard::papers#dec14

use std::ops::ControlFlow;
use std::sync::Arc;

use classyard::policy::PartId;
use classyard::{ActionId, FieldMatch, Policy, Priority, Progress, RuleId, RuleSet, Schema};
use foldhash::fast::RandomState;
use hashbrown::HashMap;
use thiserror::Error;

pub mod compare;
pub(crate) mod draw;
mod five_tuple;
pub mod flow_table;
pub mod hostile;
mod lengths;
pub mod openflow;
pub mod profile;
pub mod random;
pub mod seed_file;
mod trie;

pub use flow_table::FlowTable;
pub use hostile::Hostile;
pub use openflow::OpenFlowRules;
pub use profile::{Profile, ProfileError, ProfileParts};
pub use random::RandomRules;
pub use seed_file::SeedFile;

use draw::Draw;
use five_tuple::{FiveTupleRule, Seen};

/// The specification of a rule set to generate.
#[derive(Clone, Debug, PartialEq)]
pub struct Recipe {
    /// The kind of rules.
    pub family: Family,
    /// The number of rules, the seed, and adjustments.
    pub config: GeneratorConfig,
    /// The actions' names; each rule gets one, all equally likely.
    pub actions: Vec<String>,
    /// If true, returns fewer rules instead of an error if the family does not have
    /// enough distinct rules.
    pub accept_fewer: bool,
}

impl Recipe {
    /// Returns a recipe for `rules` rules of a family, without adjustments, with the
    /// actions `allow` and `deny`.
    #[must_use]
    pub fn new(family: Family, rules: usize, seed: u64) -> Recipe {
        Recipe {
            family,
            config: GeneratorConfig {
                rules,
                seed,
                ..GeneratorConfig::default()
            },
            actions: vec!["allow".to_owned(), "deny".to_owned()],
            accept_fewer: false,
        }
    }
}

/// A kind of rules.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Family {
    /// IPv4 five-tuples.
    Ipv4(Arc<Profile>),
    /// IPv6 five-tuples.
    Ipv6(Arc<Profile>),
    /// A policy over both; a rule without addresses is in both parts.
    Dual {
        /// The profile of the rules.
        profile: Arc<Profile>,
        /// The share of IPv6 rules, 0 to 1.
        ipv6_share: f64,
    },
    /// Fifteen fields.
    OpenFlow15(Box<OpenFlowRules>),
    /// Fifteen fields; each rule uses few of them, as in real flow tables.
    FlowTable(FlowTable),
    /// Any schema.
    Schema(Arc<Schema>, RandomRules),
    /// IPv4 five-tuples that are hard for classifiers.
    Hostile(Hostile),
}

/// The number of rules and the adjustments: ClassBench's parameters.
///
/// The last three fields adjust profiles and have no effect on the other families.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct GeneratorConfig {
    /// The number of rules.
    pub rules: usize,
    /// The seed of the random numbers.
    pub seed: u64,
    /// The spread of prefix lengths in bits, 0 to 64.
    pub smoothing: u32,
    /// Above 0: shorter prefixes; below 0: longer prefixes; -1 to 1.
    pub address_scope: f64,
    /// Above 0: more general ports; below 0: more specific ports; -1 to 1.
    pub port_scope: f64,
}

impl GeneratorConfig {
    /// Creates a configuration of `rules` rules, without adjustments of the profile.
    #[must_use]
    pub fn new(rules: usize, seed: u64) -> GeneratorConfig {
        GeneratorConfig {
            rules,
            seed,
            ..GeneratorConfig::default()
        }
    }

    /// Returns these settings with prefix lengths spread by `smoothing` bits.
    #[must_use]
    pub const fn with_smoothing(mut self, smoothing: u32) -> Self {
        self.smoothing = smoothing;
        self
    }

    /// Returns these settings with this address scope.
    #[must_use]
    pub const fn with_address_scope(mut self, address_scope: f64) -> Self {
        self.address_scope = address_scope;
        self
    }

    /// Returns these settings with this port scope.
    #[must_use]
    pub const fn with_port_scope(mut self, port_scope: f64) -> Self {
        self.port_scope = port_scope;
        self
    }

    /// Returns the adjustments of benchmarks in the literature: smoothing 2, address
    /// scope 0.5, port scope -0.1. They spread prefix lengths over several times as
    /// many tuples and make rules overlap more.
    #[must_use]
    pub fn benchmark(rules: usize, seed: u64) -> GeneratorConfig {
        GeneratorConfig {
            rules,
            seed,
            smoothing: 2,
            address_scope: 0.5,
            port_scope: -0.1,
        }
    }
}

impl Default for GeneratorConfig {
    /// A thousand rules without adjustments.
    fn default() -> GeneratorConfig {
        GeneratorConfig {
            rules: 1000,
            seed: 0,
            smoothing: 0,
            address_scope: 0.0,
            port_scope: 0.0,
        }
    }
}

/// A reason why rules cannot be generated.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum GenerateError {
    /// A parameter is out of its bounds.
    #[error("{parameter} is {found}; expected {expected}")]
    BadParameter {
        /// The parameter's name.
        parameter: &'static str,
        /// Its value.
        found: String,
        /// The allowed values.
        expected: String,
    },
    /// The family has too few distinct rules.
    #[error(
        "found only {found} of {wanted} distinct rules; request fewer, accept \
         fewer, or choose a profile with more variety"
    )]
    TooFew {
        /// The number of distinct rules generated.
        found: usize,
        /// The number of rules requested.
        wanted: usize,
    },
    /// The progress callback cancelled the work.
    #[error("stopped while {stage}, at {done} of {total}")]
    Stopped {
        /// The current stage.
        stage: &'static str,
        /// The number of steps done.
        done: usize,
        /// The total number of steps.
        total: usize,
    },
}

/// Counts the steps of a stage and reports progress periodically.
pub(crate) struct Steps<'a> {
    stage: &'static str,
    done: usize,
    total: usize,
    due: usize,
    progress: &'a mut dyn Progress,
}

/// The number of steps between two reports.
const REPORT_EVERY: usize = 1 << 14;

impl<'a> Steps<'a> {
    pub(crate) fn new(
        stage: &'static str,
        total: usize,
        progress: &'a mut dyn Progress,
    ) -> Steps<'a> {
        Steps {
            stage,
            done: 0,
            total,
            due: 0,
            progress,
        }
    }

    /// Adds `steps` to the number of steps done.
    pub(crate) fn advance(&mut self, steps: usize) -> Result<(), GenerateError> {
        self.done += steps;
        if self.done < self.due {
            return Ok(());
        }
        self.due = self.done + REPORT_EVERY;
        let &mut Steps {
            stage, done, total, ..
        } = self;
        match self.progress.report(stage, done, total) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(GenerateError::Stopped { stage, done, total }),
        }
    }
}

/// Generates a policy.
///
/// # Errors
/// [`GenerateError`] if a parameter is out of bounds, the family does not have enough
/// distinct rules, or the progress callback cancels.
pub fn generate(recipe: &Recipe, progress: &mut dyn Progress) -> Result<Policy, GenerateError> {
    check(recipe)?;
    let config = &recipe.config;
    let policy = match &recipe.family {
        Family::Ipv4(profile) => single(recipe, profile, trie::Family::Ipv4, progress)?,
        Family::Ipv6(profile) => single(recipe, profile, trie::Family::Ipv6, progress)?,
        Family::Dual {
            profile,
            ipv6_share,
        } => dual(recipe, profile, *ipv6_share, progress)?,
        Family::OpenFlow15(rules) => {
            let schema = Schema::openflow15();
            pack(recipe, &schema, rules.generate(config, progress)?, progress)?
        }
        Family::FlowTable(table) => {
            let schema = Schema::openflow15();
            pack(recipe, &schema, table.generate(config, progress)?, progress)?
        }
        Family::Schema(schema, rules) => {
            let draft = rules.generate(schema, config, progress)?;
            let matches = draft.iter().map(|rule| rule.fields());
            pack(recipe, schema, matches, progress)?
        }
        Family::Hostile(set) => {
            let matches = set.generate(config, progress)?;
            pack(recipe, &Schema::ipv4_5tuple(), matches, progress)?
        }
    };
    if policy.len() < config.rules && !recipe.accept_fewer {
        return Err(GenerateError::TooFew {
            found: policy.len(),
            wanted: config.rules,
        });
    }
    Ok(policy)
}

fn check(recipe: &Recipe) -> Result<(), GenerateError> {
    let config = &recipe.config;
    let bad = |parameter, found: String, expected: &str| {
        Err(GenerateError::BadParameter {
            parameter,
            found,
            expected: expected.to_owned(),
        })
    };
    if config.rules > RuleId::MAX.index() {
        return bad(
            "the number of rules",
            config.rules.to_string(),
            "at most 4294967294",
        );
    }
    if config.smoothing > 64 {
        return bad("smoothing", config.smoothing.to_string(), "0 to 64 bits");
    }
    for (name, scope) in [
        ("the address scope", config.address_scope),
        ("the port scope", config.port_scope),
    ] {
        if !(-1.0..=1.0).contains(&scope) {
            return bad(name, scope.to_string(), "a number from -1 to 1");
        }
    }
    if recipe.actions.is_empty() {
        return bad("the list of actions", "empty".to_owned(), "at least one");
    }
    if let Family::Dual { ipv6_share, .. } = recipe.family
        && !(0.0..=1.0).contains(&ipv6_share)
    {
        return bad(
            "the share of IPv6 rules",
            ipv6_share.to_string(),
            "a number from 0 to 1",
        );
    }
    Ok(())
}

/// Generates a policy over one five-tuple schema.
fn single(
    recipe: &Recipe,
    profile: &Profile,
    family: trie::Family,
    progress: &mut dyn Progress,
) -> Result<Policy, GenerateError> {
    let rules = five_tuple::rules(profile, &recipe.config, family, &Seen::default(), progress)?;
    let schema = match family {
        trie::Family::Ipv4 => Schema::ipv4_5tuple(),
        trie::Family::Ipv6 => Schema::ipv6_5tuple(),
    };
    let matches = rules.iter().map(|rule| rule.matches(family));
    pack(recipe, &schema, matches, progress)
}

/// Returns the ids, priorities and actions of a policy's rules.
fn identities(recipe: &Recipe, count: usize) -> impl Iterator<Item = (RuleId, Priority, ActionId)> {
    let mut draw = Draw::new(recipe.config.seed, "actions");
    let actions = recipe.actions.len();
    (0..count).map(move |index| {
        let priority = u32::try_from(count - index).expect("fewer rules than ids");
        let action = u32::try_from(draw.below(actions)).expect("a short list");
        (
            RuleId::from_index(index),
            Priority(priority),
            ActionId(action),
        )
    })
}

/// Builds a policy with one part.
fn pack<M: AsRef<[FieldMatch]>>(
    recipe: &Recipe,
    schema: &Arc<Schema>,
    matches: impl IntoIterator<Item = M, IntoIter: ExactSizeIterator>,
    progress: &mut dyn Progress,
) -> Result<Policy, GenerateError> {
    let matches = matches.into_iter();
    let count = matches.len();
    let mut steps = Steps::new("packing rules", count, progress);
    let mut rules = RuleSet::new(schema);
    rules.reserve(count);
    for ((id, priority, action), matches) in identities(recipe, count).zip(matches) {
        rules
            .add(id, priority, action, matches.as_ref())
            .expect("generated rules fit their schema");
        steps.advance(1)?;
    }
    let mut policy = Policy::from(rules);
    name_actions(&mut policy, recipe);
    Ok(policy)
}

fn name_actions(policy: &mut Policy, recipe: &Recipe) {
    for action in &recipe.actions {
        policy.declare_action(action);
    }
}

/// Generates a policy over IPv4 and IPv6.
fn dual(
    recipe: &Recipe,
    profile: &Profile,
    ipv6_share: f64,
    progress: &mut dyn Progress,
) -> Result<Policy, GenerateError> {
    let config = &recipe.config;
    let total = config.rules;
    let ipv6 = draw::whole((total as f64 * ipv6_share).round(), total);
    let (four, six) = (trie::Family::Ipv4, trie::Family::Ipv6);
    let part = |rules: usize| GeneratorConfig { rules, ..*config };
    let none = Seen::default();
    let first = five_tuple::rules(profile, &part(total - ipv6), four, &none, progress)?;
    // A rule without addresses is in both parts, so it must not occur twice.
    let taken: Seen<FiveTupleRule> = first
        .iter()
        .filter(|rule| rule.is_address_free())
        .copied()
        .collect();
    let second = five_tuple::rules(profile, &part(ipv6), six, &taken, progress)?;

    // Mix the two lists at random; each keeps its order. Rules without addresses go
    // last, because such a rule might hide rules of the other list.
    let mut free = Vec::new();
    let mut lists = [(four, first), (six, second)].map(|(family, rules)| {
        let (without, with): (Vec<_>, Vec<_>) =
            rules.into_iter().partition(FiveTupleRule::is_address_free);
        free.extend(without.into_iter().map(|rule| (rule, family)));
        (family, with.into_iter())
    });
    let mut draw = Draw::new(config.seed, "mixing");
    let mut mixed: Vec<(trie::Family, FiveTupleRule)> = Vec::with_capacity(total);
    loop {
        let remaining = lists.each_ref().map(|(_, rules)| rules.len());
        if remaining == [0, 0] {
            break;
        }
        let pick = usize::from(draw.below(remaining[0] + remaining[1]) >= remaining[0]);
        let (family, rules) = &mut lists[pick];
        mixed.extend(rules.next().map(|rule| (*family, rule)));
    }
    let families: HashMap<FiveTupleRule, trie::Family, RandomState> =
        free.iter().copied().collect();
    let mut free: Vec<FiveTupleRule> = free.into_iter().map(|(rule, _)| rule).collect();
    five_tuple::order(&mut free, four);
    mixed.extend(free.into_iter().map(|rule| (families[&rule], rule)));

    let mut policy = Policy::dual_stack();
    name_actions(&mut policy, recipe);
    policy.reserve(mixed.len());
    let mut steps = Steps::new("packing rules", mixed.len(), progress);
    let parts = [PartId::from_index(0), PartId::from_index(1)];
    let identities = identities(recipe, mixed.len());
    for ((id, priority, action), (family, rule)) in identities.zip(mixed) {
        let matches = rule.matches(family);
        let both_parts = parts.map(|part| (part, matches.as_slice()));
        let own_part = usize::from(family == six);
        // ICMP belongs to one family even in a rule without addresses.
        let stands = if rule.is_address_free() && !matches!(rule.protocol, Some(1 | 58)) {
            &both_parts[..]
        } else {
            &both_parts[own_part..=own_part]
        };
        policy
            .add(id, priority, action, stands)
            .expect("generated rules fit their schema");
        steps.advance(1)?;
    }
    Ok(policy)
}

#[cfg(test)]
mod tests;
