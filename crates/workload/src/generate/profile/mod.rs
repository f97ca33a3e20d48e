//! Profiles: distributions that describe a family of rule sets.
//!
//! A profile describes five-tuple rules in the terms of ClassBench: a mix of protocols,
//! each with a mix of *port classes*; the port values of each side; the lengths of
//! source and destination prefixes for each port class; and the shape of the two
//! address tries. A shape has the frequency of nodes with two children, the skew of
//! their shares of the rules, the depth of nested prefixes, and the length over which
//! source and destination agree. The generator has no other input.
//!
//! Twelve profiles are built in ([`Profile::BUILT_IN`]). Their figures are our own:
//! five resemble access control lists, five firewalls, two Linux's IP chains. Others
//! come from TOML files ([`Profile::from_toml`]) and from ClassBench's parameter files
//! ([`Profile::from_seed_file`]).

use std::sync::OnceLock;

use thiserror::Error;

mod text;

/// The ports that one side of a port class admits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum PortSide {
    /// Any port.
    Any,
    /// 1024-65535.
    High,
    /// 0-1023.
    Low,
    /// Another range, from the profile's pool.
    Range,
    /// One port, from the profile's pool.
    Exact,
}

impl PortSide {
    /// Returns the name in profile files.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            PortSide::Any => "any",
            PortSide::High => "high",
            PortSide::Low => "low",
            PortSide::Range => "range",
            PortSide::Exact => "exact",
        }
    }

    /// Returns the name in ClassBench's parameter files.
    #[must_use]
    pub fn seed_name(self) -> &'static str {
        match self {
            PortSide::Any => "wc",
            PortSide::High => "hi",
            PortSide::Low => "lo",
            PortSide::Range => "ar",
            PortSide::Exact => "em",
        }
    }

    /// Returns the side of a port range.
    #[must_use]
    pub fn of(low: u16, high: u16) -> PortSide {
        match (low, high) {
            (0, u16::MAX) => PortSide::Any,
            (1024, u16::MAX) => PortSide::High,
            (0, 1023) => PortSide::Low,
            (low, high) if low == high => PortSide::Exact,
            _ => PortSide::Range,
        }
    }
}

/// A class of a rule's two ports; there are 25 classes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PortClass {
    /// The source port.
    pub source: PortSide,
    /// The destination port.
    pub destination: PortSide,
}

/// The number of port classes.
pub const PORT_CLASSES: usize = 25;

impl PortClass {
    /// All classes, from the most general to the most specific: the order in
    /// ClassBench's files and along the port scope.
    pub const ALL: [PortClass; PORT_CLASSES] = {
        use PortSide::{Any, Exact, High, Low, Range};
        const fn class(source: PortSide, destination: PortSide) -> PortClass {
            PortClass {
                source,
                destination,
            }
        }
        [
            class(Any, Any),
            class(Any, High),
            class(High, Any),
            class(High, High),
            class(Any, Low),
            class(Low, Any),
            class(High, Low),
            class(Low, High),
            class(Low, Low),
            class(Any, Range),
            class(Range, Any),
            class(High, Range),
            class(Range, High),
            class(Any, Exact),
            class(Exact, Any),
            class(High, Exact),
            class(Exact, High),
            class(Low, Range),
            class(Range, Low),
            class(Low, Exact),
            class(Exact, Low),
            class(Range, Range),
            class(Range, Exact),
            class(Exact, Range),
            class(Exact, Exact),
        ]
    };

    /// Returns the position in [`PortClass::ALL`].
    ///
    /// # Panics
    /// Never: every pair of sides is in the list.
    #[must_use]
    pub fn index(self) -> usize {
        PortClass::ALL
            .iter()
            .position(|&class| class == self)
            .expect("all pairs are listed")
    }

    /// Returns the name in profile files: `any-exact`.
    #[must_use]
    pub fn name(self) -> String {
        format!("{}-{}", self.source.name(), self.destination.name())
    }

    /// Returns the name in ClassBench's parameter files: `wc_em`.
    #[must_use]
    pub fn seed_name(self) -> String {
        format!(
            "{}_{}",
            self.source.seed_name(),
            self.destination.seed_name()
        )
    }

    /// Returns the class with a name of profile files.
    #[must_use]
    pub fn from_name(name: &str) -> Option<PortClass> {
        PortClass::ALL
            .into_iter()
            .find(|class| class.name() == name)
    }

    /// Returns the class with a name of ClassBench's parameter files.
    #[must_use]
    pub fn from_seed_name(name: &str) -> Option<PortClass> {
        PortClass::ALL
            .into_iter()
            .find(|class| class.seed_name() == name)
    }
}

/// A protocol with the port classes of its rules.
#[derive(Clone, Debug, PartialEq)]
pub struct ProtocolShare {
    /// The protocol's number; `None` for rules that admit every protocol.
    pub protocol: Option<u8>,
    /// The share of rules with this protocol, relative to the other protocols.
    pub share: f64,
    /// The shares of port classes in these rules, relative to each other, in the order
    /// of [`PortClass::ALL`].
    pub classes: [f64; PORT_CLASSES],
}

/// A range of ports with its frequency.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PortShare {
    /// The lowest port.
    pub low: u16,
    /// The highest port.
    pub high: u16,
    /// The frequency, relative to the other ranges.
    pub share: f64,
}

/// The ports in the rules, for one side.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct PortPool {
    /// Ranges.
    pub ranges: Vec<PortShare>,
    /// Single ports.
    pub exact: Vec<PortShare>,
}

/// A pair of prefix lengths with its frequency.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PairShare {
    /// The source prefix's length, 0 to 32.
    pub source: u8,
    /// The destination prefix's length, 0 to 32.
    pub destination: u8,
    /// The frequency, relative to the other pairs.
    pub share: f64,
}

/// One level of an address trie.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Level {
    /// The probability that a node has two children rather than one.
    pub two_children: f64,
    /// The imbalance of the rules of two children: 0 if each gets half, near 1 if one
    /// child gets nearly all.
    pub skew: f64,
}

/// The number of levels of an address trie, including the root. The last level has no
/// children, so its figures are ignored.
pub const LEVELS: usize = 33;

/// The shape of an address trie.
#[derive(Clone, Debug, PartialEq)]
pub struct TrieShape {
    /// The target for the maximum number of prefixes along a path from the root to a
    /// leaf. Not a strict bound: short prefixes and many rules can make it impossible.
    pub nesting: u32,
    /// The levels, from the root.
    pub levels: [Level; LEVELS],
}

/// The figures of a profile; [`Profile::new`] checks them.
///
/// Shares are relative to each other: they need not sum to 1.
#[derive(Clone, Debug, PartialEq)]
pub struct ProfileParts {
    /// The profile's name.
    pub name: String,
    /// A one-line description.
    pub summary: String,
    /// The size of the rule sets that the tries describe. Larger sets get wider tries,
    /// see [`GeneratorConfig`](super::GeneratorConfig).
    pub reference_rules: u32,
    /// The protocols.
    pub protocols: Vec<ProtocolShare>,
    /// Source ports.
    pub source_ports: PortPool,
    /// Destination ports.
    pub destination_ports: PortPool,
    /// The prefix lengths for each port class, in the order of [`PortClass::ALL`].
    pub pairs: [Vec<PairShare>; PORT_CLASSES],
    /// The trie of source addresses.
    pub source: TrieShape,
    /// The trie of destination addresses.
    pub destination: TrieShape,
    /// At position `i`, the probability that source and destination agree on bit `i` if
    /// they agree on the first `i - 1` bits; position 0 is ignored.
    pub correlation: [f64; LEVELS],
}

/// A checked profile. See the [module](self) for its content.
#[derive(Clone, Debug, PartialEq)]
pub struct Profile(ProfileParts);

/// An error in the figures of a profile.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{place}: {found}; expected {expected}")]
pub struct ProfileError {
    /// The position in the profile.
    pub place: String,
    /// The invalid content.
    pub found: String,
    /// The expected content.
    pub expected: String,
}

impl Profile {
    /// The built-in profiles, by name.
    pub const BUILT_IN: [&'static str; 12] = [
        "acl1", "acl2", "acl3", "acl4", "acl5", "fw1", "fw2", "fw3", "fw4", "fw5", "ipc1", "ipc2",
    ];

    /// Returns the built-in profile with the name `name`, if there is one.
    ///
    /// # Panics
    /// Never: the built-in profiles are valid, which a test checks.
    #[must_use]
    pub fn built_in(name: &str) -> Option<&'static Profile> {
        static PROFILES: [OnceLock<Profile>; 12] = [const { OnceLock::new() }; 12];
        let index = Profile::BUILT_IN.iter().position(|&known| known == name)?;
        let read = || {
            let file = format!("{name}.toml");
            Profile::from_toml(&file, BUILT_IN_TEXT[index]).expect("built-in profiles are valid")
        };
        Some(PROFILES[index].get_or_init(read))
    }

    /// Returns the text of a built-in profile, as a starting point for a new profile.
    #[must_use]
    pub fn built_in_text(name: &str) -> Option<&'static str> {
        let index = Profile::BUILT_IN.iter().position(|&known| known == name)?;
        Some(BUILT_IN_TEXT[index])
    }

    /// Checks figures and makes a profile of them.
    ///
    /// # Errors
    /// [`ProfileError`] if a share is not a number of at least 0, a probability or skew
    /// is not between 0 and 1, a required list is empty, or a prefix or port range is
    /// invalid.
    pub fn new(parts: ProfileParts) -> Result<Profile, ProfileError> {
        check(&parts)?;
        Ok(Profile(parts))
    }

    /// Returns the name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Returns the one-line description.
    #[must_use]
    pub fn summary(&self) -> &str {
        &self.0.summary
    }

    /// Returns the figures.
    #[must_use]
    pub fn parts(&self) -> &ProfileParts {
        &self.0
    }

    /// Returns the figures by value, to change them and make a new profile.
    #[must_use]
    pub fn into_parts(self) -> ProfileParts {
        self.0
    }
}

fn error(place: impl Into<String>, found: impl Into<String>, expected: &str) -> ProfileError {
    ProfileError {
        place: place.into(),
        found: found.into(),
        expected: expected.to_owned(),
    }
}

fn check(parts: &ProfileParts) -> Result<(), ProfileError> {
    if parts.reference_rules == 0 {
        return Err(error(
            "reference_rules",
            "0",
            "the size of the rule set that the tries describe, at least 1",
        ));
    }
    check_shares(
        "protocol",
        parts.protocols.iter().map(|protocol| protocol.share),
        true,
    )?;
    for (side, pool) in [
        ("source ports", &parts.source_ports),
        ("destination ports", &parts.destination_ports),
    ] {
        for (kind, list) in [("ranges", &pool.ranges), ("exact", &pool.exact)] {
            let location = format!("{side}, {kind}");
            check_shares(&location, list.iter().map(|port| port.share), false)?;
            if let Some(port) = list.iter().find(|port| port.low > port.high) {
                return Err(error(
                    location,
                    format!("{}-{}", port.low, port.high),
                    "the lower port first",
                ));
            }
        }
    }
    for (class, pairs) in PortClass::ALL.iter().zip(&parts.pairs) {
        let location = format!("prefix lengths of {}", class.name());
        check_shares(&location, pairs.iter().map(|pair| pair.share), false)?;
        let long = |pair: &&PairShare| pair.source > 32 || pair.destination > 32;
        if let Some(pair) = pairs.iter().find(long) {
            return Err(error(
                location,
                format!("/{} and /{}", pair.source, pair.destination),
                "lengths of at most 32",
            ));
        }
    }
    for protocol in parts.protocols.iter().filter(|p| p.share > 0.0) {
        check_protocol(parts, protocol)?;
    }
    for (place, shape) in [
        ("source", &parts.source),
        ("destination", &parts.destination),
    ] {
        for (index, level) in shape.levels.iter().enumerate() {
            let fits = |x: f64| (0.0..=1.0).contains(&x);
            if !fits(level.two_children) || !fits(level.skew) {
                return Err(error(
                    format!("{place} addresses, level {index}"),
                    format!("{} and {}", level.two_children, level.skew),
                    "a probability and a skew from 0 to 1",
                ));
            }
        }
    }
    for (index, &probability) in parts.correlation.iter().enumerate() {
        if !(0.0..=1.0).contains(&probability) {
            return Err(error(
                format!("correlation, level {index}"),
                probability.to_string(),
                "a probability from 0 to 1",
            ));
        }
    }
    Ok(())
}

/// Checks that the profile has the lists that a protocol's port classes require.
fn check_protocol(parts: &ProfileParts, protocol: &ProtocolShare) -> Result<(), ProfileError> {
    let name = match protocol.protocol {
        Some(number) => format!("protocol {number}"),
        None => "protocol any".to_owned(),
    };
    let location = format!("port classes of {name}");
    check_shares(&location, protocol.classes.iter().copied(), true)?;
    let used = PortClass::ALL
        .iter()
        .zip(&protocol.classes)
        .zip(&parts.pairs)
        .filter(|((_, share), _)| **share > 0.0);
    for ((class, _), pairs) in used {
        if pairs.iter().all(|pair| pair.share <= 0.0) {
            return Err(error(
                format!("prefix lengths of {}", class.name()),
                "none",
                &format!("at least one pair, for {name} uses this port class"),
            ));
        }
        for (side, pool, what) in [
            (class.source, &parts.source_ports, "source"),
            (class.destination, &parts.destination_ports, "destination"),
        ] {
            let list = match side {
                PortSide::Range => &pool.ranges,
                PortSide::Exact => &pool.exact,
                PortSide::Any | PortSide::High | PortSide::Low => continue,
            };
            if list.iter().all(|port| port.share <= 0.0) {
                return Err(error(
                    format!("{what} ports, {}", side.name()),
                    "none",
                    &format!(
                        "at least one, for {name} uses the port class {}",
                        class.name()
                    ),
                ));
            }
        }
    }
    Ok(())
}

/// Checks that shares are finite and at least 0 and, if `needed`, that one is above 0.
fn check_shares(
    place: &str,
    shares: impl Iterator<Item = f64>,
    needed: bool,
) -> Result<(), ProfileError> {
    let mut total = 0.0;
    for share in shares {
        if !(share >= 0.0 && share.is_finite()) {
            return Err(error(place, share.to_string(), "a share of at least 0"));
        }
        total += share;
    }
    if needed && total <= 0.0 {
        return Err(error(place, "no share", "at least one share above 0"));
    }
    if !total.is_finite() {
        return Err(error(
            place,
            "shares without bound",
            "shares that can be added",
        ));
    }
    Ok(())
}

const BUILT_IN_TEXT: [&str; 12] = [
    include_str!("../../../profiles/acl1.toml"),
    include_str!("../../../profiles/acl2.toml"),
    include_str!("../../../profiles/acl3.toml"),
    include_str!("../../../profiles/acl4.toml"),
    include_str!("../../../profiles/acl5.toml"),
    include_str!("../../../profiles/fw1.toml"),
    include_str!("../../../profiles/fw2.toml"),
    include_str!("../../../profiles/fw3.toml"),
    include_str!("../../../profiles/fw4.toml"),
    include_str!("../../../profiles/fw5.toml"),
    include_str!("../../../profiles/ipc1.toml"),
    include_str!("../../../profiles/ipc2.toml"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_round_trip_through_their_names() {
        for (index, class) in PortClass::ALL.into_iter().enumerate() {
            assert_eq!(class.index(), index);
            assert_eq!(PortClass::from_name(&class.name()), Some(class));
            assert_eq!(PortClass::from_seed_name(&class.seed_name()), Some(class));
        }
        assert_eq!(PortClass::from_name("any-some"), None);
    }

    #[test]
    fn built_in_profiles_are_there_and_valid() {
        for name in Profile::BUILT_IN {
            let profile = Profile::built_in(name).unwrap();
            assert_eq!(profile.name(), name);
            assert!(!profile.summary().is_empty());
            let again = Profile::from_toml("again", &profile.to_toml()).unwrap();
            assert_eq!(&again, profile, "{name} does not survive being written");
        }
        assert!(Profile::built_in("acl6").is_none());
    }

    #[test]
    fn figures_that_do_not_go_together_are_refused() {
        let good = Profile::built_in("fw1").unwrap().parts();
        type Spoil = fn(&mut ProfileParts);
        let cases: [(Spoil, &str); 9] = [
            (|p| p.reference_rules = 0, "reference_rules"),
            (|p| p.protocols.clear(), "no share"),
            (|p| p.protocols[0].share = f64::NAN, "NaN"),
            (|p| p.protocols[0].classes = [0.0; 25], "no share"),
            (|p| p.source_ports.exact.clear(), "source ports"),
            (|p| p.pairs[0].clear(), "any-any"),
            (|p| p.pairs[0][0].source = 33, "at most 32"),
            (|p| p.destination.levels[3].skew = 1.5, "level 3"),
            (|p| p.correlation[2] = -0.5, "correlation"),
        ];
        for (spoil, expected) in cases {
            let mut parts = good.clone();
            spoil(&mut parts);
            let error = Profile::new(parts).expect_err(expected).to_string();
            assert!(error.contains(expected), "{error:?} lacks {expected:?}");
        }
    }
}
