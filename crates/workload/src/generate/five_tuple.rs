//! Five-tuple rules from a profile.
//!
//! # Idea
//! 1. For each rule draw the protocol, the port class given the protocol, the
//!    ports given the class, and the two prefix lengths given the class.
//! 2. Grow source and destination addresses over all rules together ([`trie`]).
//! 3. Drop rules that repeat another; when fewer than wanted are left, start
//!    again from step 1 with more, when more are left, drop some at random.
//!    Where that would take too many, because the profile's prefixes are short
//!    for so large a set, grow further tries beside the first and join what is
//!    new.
//! 4. Order by *scope*, the number of bits that a rule leaves open, so that a
//!    rule never stands behind one that covers it. Rules of one tuple stay
//!    together.
//!
//! # Where we differ from ClassBench's generator, and why
//! * It writes fewer rules than requested when some repeat each other; we write
//!   as many as requested.
//! * It takes rules that differ only in their TCP flags for different. The five
//!   fields have no flags, so for us they are the same.
//! * It counts scope in whole bits, so if one port range contains another, either
//!   may come first. We count fractions too.
//!
//! # References
//! D. E. Taylor and J. S. Turner, ClassBench, 2007, §V; [TM19] §IV.A.
//!
//! [TM19]: classyard::papers#tm19

use classyard::{FieldMatch, Progress};
use hashbrown::{HashMap, HashSet};

use super::draw::{Choice, Draw, whole};
use super::lengths::{Lengths, biased};
use super::profile::{PORT_CLASSES, PortClass, PortPool, PortShare, PortSide, Profile};
use super::trie::{self, Branching, Family};
use super::{GenerateError, GeneratorConfig, Steps};

pub(super) type Seen<T> = HashSet<T, foldhash::fast::RandomState>;

/// A rule over five fields. Addresses stand at the top of their 128 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct FiveTuple {
    pub(super) source: u128,
    pub(super) destination: u128,
    pub(super) source_length: u8,
    pub(super) destination_length: u8,
    pub(super) source_port: (u16, u16),
    pub(super) destination_port: (u16, u16),
    pub(super) protocol: Option<u8>,
}

impl FiveTuple {
    /// Whether the rule says nothing about addresses.
    pub(super) fn is_address_free(&self) -> bool {
        self.source_length == 0 && self.destination_length == 0
    }

    /// The bits that the rule leaves open, in millionths or so. A rule that
    /// covers another has a larger scope.
    fn scope(&self, family: Family) -> usize {
        let width = family.width();
        let open = |length: u8| f64::from(width - u32::from(length));
        let size = |(low, high): (u16, u16)| libm::log2(f64::from(high - low) + 1.0);
        let protocol = if self.protocol.is_some() { 0.0 } else { 8.0 };
        let ports = size(self.source_port) + size(self.destination_port);
        let bits = open(self.source_length) + open(self.destination_length) + ports + protocol;
        whole(bits * f64::from(1 << 20), usize::MAX)
    }

    /// What decides which rules look at the same bits.
    fn tuple(&self) -> (u8, u8, u16, u16, bool) {
        (
            self.source_length,
            self.destination_length,
            self.source_port.1 - self.source_port.0,
            self.destination_port.1 - self.destination_port.0,
            self.protocol.is_some(),
        )
    }

    /// The matches, in the order of the five-tuple schemas.
    pub(super) fn matches(&self, family: Family) -> [FieldMatch; 5] {
        [
            prefix(self.source, self.source_length, family),
            prefix(self.destination, self.destination_length, family),
            ports(self.source_port),
            ports(self.destination_port),
            self.protocol
                .map_or(FieldMatch::Any, |number| FieldMatch::Exact(number.into())),
        ]
    }
}

fn prefix(address: u128, length: u8, family: Family) -> FieldMatch {
    match length {
        0 => FieldMatch::Any,
        length => FieldMatch::Prefix {
            value: address >> (128 - family.width()),
            length: length.into(),
        },
    }
}

fn ports((low, high): (u16, u16)) -> FieldMatch {
    match (low, high) {
        (0, u16::MAX) => FieldMatch::Any,
        (low, high) if low == high => FieldMatch::Exact(low.into()),
        (low, high) => FieldMatch::Range {
            low: low.into(),
            high: high.into(),
        },
    }
}

/// The most times that all rules are drawn anew to reach the wanted number.
const ATTEMPTS: u32 = 8;

/// The most tries grown beside each other.
const TRIES: u32 = 64;

/// The most rules that are drawn in one go, for each one wanted; for small sets
/// more, up to [`CHEAP`] in all.
const MOST_DRAWN: f64 = 2.5;

/// Drawing that many rules takes about a second.
const CHEAP: f64 = 1_000_000.0;

/// What rules are made of: a profile's distributions, ready to be drawn from.
struct Sampler<'a> {
    profile: &'a Profile,
    config: &'a GeneratorConfig,
    family: Family,
    protocols: Choice,
    classes: Vec<Option<Choice>>,
    source_ports: Ports,
    destination_ports: Ports,
    lengths: [Option<Lengths>; PORT_CLASSES],
}

/// The ports of one side.
struct Ports {
    ranges: Pool,
    exact: Pool,
}

struct Pool {
    ports: Vec<PortShare>,
    choice: Option<Choice>,
}

impl Ports {
    fn new(pool: &PortPool) -> Ports {
        let list = |ports: &[PortShare]| Pool {
            ports: ports.to_vec(),
            choice: Choice::new(ports.iter().map(|port| port.share)),
        };
        Ports {
            ranges: list(&pool.ranges),
            exact: list(&pool.exact),
        }
    }

    fn draw(&self, side: PortSide, draw: &mut Draw) -> (u16, u16) {
        let pool = match side {
            PortSide::Any => return (0, u16::MAX),
            PortSide::High => return (1024, u16::MAX),
            PortSide::Low => return (0, 1023),
            PortSide::Range => &self.ranges,
            PortSide::Exact => &self.exact,
        };
        let choice = pool.choice.as_ref().expect("profiles have what they use");
        let port = pool.ports[choice.draw(draw)];
        (port.low, port.high)
    }
}

impl<'a> Sampler<'a> {
    fn new(profile: &'a Profile, config: &'a GeneratorConfig, family: Family) -> Sampler<'a> {
        let parts = profile.parts();
        let protocols = parts.protocols.iter().map(|protocol| protocol.share);
        Sampler {
            profile,
            config,
            family,
            protocols: Choice::new(protocols).expect("profiles have a protocol"),
            classes: parts
                .protocols
                .iter()
                .map(|protocol| Choice::new(protocol.classes))
                .collect(),
            source_ports: Ports::new(&parts.source_ports),
            destination_ports: Ports::new(&parts.destination_ports),
            lengths: std::array::from_fn(|class| {
                Lengths::new(&parts.pairs[class], config.smoothing)
            }),
        }
    }

    /// All of a rule but its addresses.
    fn skeleton(&self, draw: &mut Draw) -> FiveTuple {
        let index = self.protocols.draw(draw);
        let classes = self.classes[index].as_ref();
        let classes = classes.expect("protocols with a share have port classes");
        let class = classes.at(biased(draw.unit(), self.config.port_scope));
        let PortClass {
            source,
            destination,
        } = PortClass::ALL[class];
        let lengths = self.lengths[class].as_ref();
        let lengths = lengths.expect("profiles have what they use");
        let source_port = self.source_ports.draw(source, draw);
        let destination_port = self.destination_ports.draw(destination, draw);
        let (source_length, destination_length) = lengths.draw(draw, self.config.address_scope);
        FiveTuple {
            source: 0,
            destination: 0,
            source_length: self.family.length(source_length),
            destination_length: self.family.length(destination_length),
            source_port,
            destination_port,
            protocol: self.profile.parts().protocols[index]
                .protocol
                .map(|number| in_family(number, self.family)),
        }
    }

    /// That many rules, some of which may repeat each other.
    fn rules(
        &self,
        count: usize,
        attempt: u32,
        progress: &mut dyn Progress,
    ) -> Result<Vec<FiveTuple>, GenerateError> {
        let parts = self.profile.parts();
        let stream = |what: &str| {
            let stream = format!("{what} {:?} {attempt}", self.family);
            Draw::new(self.config.seed, &stream)
        };
        let mut draw = stream("skeletons");
        let mut steps = Steps::new("drawing rules", count, progress);
        let mut rules = Vec::with_capacity(count);
        for _ in 0..count {
            rules.push(self.skeleton(&mut draw));
            steps.advance(1)?;
        }
        let growth = count as f64 / f64::from(parts.reference_rules);

        let lengths: Vec<u8> = rules.iter().map(|rule| rule.source_length).collect();
        let branching = Branching::new(&parts.source, growth, self.family);
        let mut steps = Steps::new("growing source addresses", count, progress);
        let sources = trie::sources(&branching, &lengths, &mut stream("sources"), &mut steps)?;

        let branching = Branching::new(&parts.destination, growth, self.family);
        let correlation = trie::correlation(&parts.correlation, self.family);
        let source = (&*sources, &*lengths);
        let lengths: Vec<u8> = rules.iter().map(|rule| rule.destination_length).collect();
        let mut steps = Steps::new("growing destination addresses", count, progress);
        let destinations = trie::destinations(
            &branching,
            &correlation,
            source,
            &lengths,
            &mut stream("destinations"),
            &mut steps,
        )?;
        for ((rule, source), destination) in rules.iter_mut().zip(sources).zip(destinations) {
            rule.source = source;
            rule.destination = destination;
        }
        Ok(rules)
    }
}

/// ICMP has a number of its own in IPv6.
fn in_family(protocol: u8, family: Family) -> u8 {
    match (family, protocol) {
        (Family::Ipv6, 1) => 58,
        _ => protocol,
    }
}

/// Distinct rules in order, none of them among `taken`. Fewer than the config
/// wants only when the profile does not have as many.
pub(super) fn rules(
    profile: &Profile,
    config: &GeneratorConfig,
    family: Family,
    taken: &Seen<FiveTuple>,
    progress: &mut dyn Progress,
) -> Result<Vec<FiveTuple>, GenerateError> {
    let wanted = config.rules;
    if wanted == 0 {
        return Ok(Vec::new());
    }
    let sampler = Sampler::new(profile, config, family);
    let mut found = in_one_trie(&sampler, wanted, taken, progress)?;
    let mut seen: Seen<FiveTuple> = Seen::default();
    let mut yielded = found.len() as f64 / wanted as f64;
    for batch in 0..TRIES {
        if found.len() >= wanted {
            break;
        }
        if batch == 0 {
            seen.extend(taken.iter().chain(&found).copied());
        }
        let missing = (wanted - found.len()) as f64;
        let count = whole(missing / yielded.max(0.05) * 1.05, wanted).max(64);
        let before = found.len();
        let more = sampler.rules(count, ATTEMPTS + batch, progress)?;
        found.extend(more.into_iter().filter(|rule| seen.insert(*rule)));
        yielded = (found.len() - before) as f64 / count as f64;
        if yielded < 0.002 {
            break;
        }
    }
    if found.len() > wanted {
        found = thin_out(found, wanted, &mut Draw::new(config.seed, "thinning"));
    }
    order(&mut found, family);
    Ok(found)
}

/// Distinct rules from one pair of tries: at least as many as wanted, unless
/// that takes too many.
fn in_one_trie(
    sampler: &Sampler<'_>,
    wanted: usize,
    taken: &Seen<FiveTuple>,
    progress: &mut dyn Progress,
) -> Result<Vec<FiveTuple>, GenerateError> {
    let most = whole((wanted as f64 * MOST_DRAWN).max(CHEAP), usize::MAX);
    // A few more than wanted, for some will repeat others.
    let mut count = wanted + wanted / 128 + 1;
    let (mut count_before, mut distinct_before) = (0, 0);
    for attempt in 0.. {
        let mut found = sampler.rules(count, attempt, progress)?;
        let mut seen = Seen::with_capacity_and_hasher(found.len(), Default::default());
        found.retain(|rule| !taken.contains(rule) && seen.insert(*rule));
        let distinct = found.len();
        // As many more as should do by the yield of the last ones, and a few on
        // top. Not many: the tries widen with the number of rules drawn.
        let gained = distinct.saturating_sub(distinct_before);
        let yielded = gained as f64 / (count - count_before) as f64;
        let missing = wanted.saturating_sub(distinct) as f64;
        let more = whole(missing / yielded.max(0.05) * 1.05, usize::MAX / 2);
        (count_before, distinct_before) = (count, distinct);
        count += more + count / 256 + 1;
        if distinct >= wanted || count > most || attempt + 1 == ATTEMPTS {
            return Ok(found);
        }
    }
    unreachable!("the last attempt returns")
}

/// Keeps `wanted` of the items, all equally likely, in their order.
fn thin_out(items: Vec<FiveTuple>, wanted: usize, draw: &mut Draw) -> Vec<FiveTuple> {
    let mut left = items.len();
    let mut missing = wanted;
    let mut kept = Vec::with_capacity(wanted);
    for item in items {
        if draw.below(left) < missing {
            kept.push(item);
            missing -= 1;
        }
        left -= 1;
    }
    kept
}

/// Sorts by scope, then by tuple in the order in which tuples first come, then
/// by the order of drawing.
pub(super) fn order(rules: &mut [FiveTuple], family: Family) {
    let mut tuples: HashMap<_, usize, foldhash::fast::RandomState> = HashMap::default();
    rules.sort_by_cached_key(|rule| {
        let next = tuples.len();
        (
            rule.scope(family),
            *tuples.entry(rule.tuple()).or_insert(next),
        )
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thinning_out_keeps_the_order_and_hits_the_number() {
        let rule = |port: u16| FiveTuple {
            source: 0,
            destination: 0,
            source_length: 0,
            destination_length: 0,
            source_port: (port, port),
            destination_port: (0, u16::MAX),
            protocol: None,
        };
        let items: Vec<FiveTuple> = (0..1000).map(rule).collect();
        let kept = thin_out(items.clone(), 100, &mut Draw::new(1, "thin"));
        assert_eq!(kept.len(), 100);
        assert!(kept.is_sorted_by_key(|rule| rule.source_port.0));
        let last = kept.iter().filter(|rule| rule.source_port.0 >= 500).count();
        assert!((30..70).contains(&last), "{last}");
        assert_eq!(
            thin_out(items.clone(), 1000, &mut Draw::new(1, "thin")),
            items
        );
    }
}
