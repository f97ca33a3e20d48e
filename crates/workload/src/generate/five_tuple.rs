//! The generator of five-tuple rules from a profile.
//!
//! # Idea
//! 1. For each rule, draw the protocol, the port class given the protocol, the ports
//!    given the class, and the two prefix lengths given the class.
//! 2. Grow source and destination addresses over all rules together ([`trie`]).
//! 3. Drop duplicate rules. If too few rules remain, start again from step 1 with more
//!    rules; if too many remain, drop random ones. If the profile's prefixes are too
//!    short for a large set, this would draw too many rules; in that case, grow further
//!    tries in addition to the first and add their new rules.
//! 4. Order by *scope*, the number of bits that a rule leaves open, so that a rule
//!    never follows a rule that covers it. Rules with the same tuple stay together.
//!
//! # Where we differ from ClassBench's generator, and why
//! * It writes fewer rules than requested if some are duplicates; we write as many as
//!   requested.
//! * It treats rules that differ only in their TCP flags as distinct. The five fields
//!   have no flags, so for us they are duplicates.
//! * It counts scope in whole bits, so if one port range contains another, either may
//!   come first. We count fractions too.
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

/// A rule over five fields. Addresses are in the top bits of their 128 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct FiveTupleRule {
    pub(super) source: u128,
    pub(super) destination: u128,
    pub(super) source_length: u8,
    pub(super) destination_length: u8,
    pub(super) source_port: (u16, u16),
    pub(super) destination_port: (u16, u16),
    pub(super) protocol: Option<u8>,
}

impl FiveTupleRule {
    /// True if the rule matches all addresses.
    pub(super) fn is_address_free(&self) -> bool {
        self.source_length == 0 && self.destination_length == 0
    }

    /// Returns the number of bits that the rule leaves open, in units of 2^-20 bit. A
    /// rule that covers another rule has a larger scope.
    fn scope(&self, family: Family) -> usize {
        let width = family.width();
        let open = |length: u8| f64::from(width - u32::from(length));
        let size = |(low, high): (u16, u16)| libm::log2(f64::from(high - low) + 1.0);
        let protocol = if self.protocol.is_some() { 0.0 } else { 8.0 };
        let ports = size(self.source_port) + size(self.destination_port);
        let bits = open(self.source_length) + open(self.destination_length) + ports + protocol;
        whole(bits * f64::from(1 << 20), usize::MAX)
    }

    /// Returns a key that is equal for rules that test the same bits.
    fn tuple(&self) -> (u8, u8, u16, u16, bool) {
        (
            self.source_length,
            self.destination_length,
            self.source_port.1 - self.source_port.0,
            self.destination_port.1 - self.destination_port.0,
            self.protocol.is_some(),
        )
    }

    /// Returns the matches, in the order of the five-tuple schemas.
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

/// The maximum number of times that all rules are drawn again to reach the requested
/// number.
const MAX_ATTEMPTS: u32 = 8;

/// The maximum number of further pairs of tries.
const MAX_EXTRA_TRIES: u32 = 64;

/// The maximum number of rules drawn at one time, as a multiple of the requested
/// number. For small sets [`MIN_DRAW_LIMIT`] is the limit instead.
const MAX_DRAWN_RATIO: f64 = 2.5;

/// The draw limit of small sets. Drawing this number of rules takes about a second.
const MIN_DRAW_LIMIT: f64 = 1_000_000.0;

/// The distributions of a profile, prepared for drawing.
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

    /// Draws a rule without its addresses.
    fn skeleton(&self, draw: &mut Draw) -> FiveTupleRule {
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
        FiveTupleRule {
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

    /// Draws `count` rules, which may include duplicates.
    fn rules(
        &self,
        count: usize,
        attempt: u32,
        progress: &mut dyn Progress,
    ) -> Result<Vec<FiveTupleRule>, GenerateError> {
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

/// ICMP has a different protocol number in IPv6.
fn in_family(protocol: u8, family: Family) -> u8 {
    match (family, protocol) {
        (Family::Ipv6, 1) => 58,
        _ => protocol,
    }
}

/// Returns distinct rules in order, without the rules in `taken`. Returns fewer rules
/// than requested only if the profile does not have enough.
pub(super) fn rules(
    profile: &Profile,
    config: &GeneratorConfig,
    family: Family,
    taken: &Seen<FiveTupleRule>,
    progress: &mut dyn Progress,
) -> Result<Vec<FiveTupleRule>, GenerateError> {
    let target = config.rules;
    if target == 0 {
        return Ok(Vec::new());
    }
    let sampler = Sampler::new(profile, config, family);
    let mut distinct_rules = in_one_trie(&sampler, target, taken, progress)?;
    let mut seen: Seen<FiveTupleRule> = Seen::default();
    let mut yielded = distinct_rules.len() as f64 / target as f64;
    for batch in 0..MAX_EXTRA_TRIES {
        if distinct_rules.len() >= target {
            break;
        }
        if batch == 0 {
            seen.extend(taken.iter().chain(&distinct_rules).copied());
        }
        let missing = (target - distinct_rules.len()) as f64;
        let count = whole(missing / yielded.max(0.05) * 1.05, target).max(64);
        let before = distinct_rules.len();
        let batch_rules = sampler.rules(count, MAX_ATTEMPTS + batch, progress)?;
        distinct_rules.extend(batch_rules.into_iter().filter(|rule| seen.insert(*rule)));
        yielded = (distinct_rules.len() - before) as f64 / count as f64;
        if yielded < 0.002 {
            break;
        }
    }
    if distinct_rules.len() > target {
        distinct_rules = thin_out(
            distinct_rules,
            target,
            &mut Draw::new(config.seed, "thinning"),
        );
    }
    order(&mut distinct_rules, family);
    Ok(distinct_rules)
}

/// Draws distinct rules from one pair of tries: at least `target` rules, unless that
/// requires drawing too many.
fn in_one_trie(
    sampler: &Sampler<'_>,
    target: usize,
    taken: &Seen<FiveTupleRule>,
    progress: &mut dyn Progress,
) -> Result<Vec<FiveTupleRule>, GenerateError> {
    let max_drawn = whole(
        (target as f64 * MAX_DRAWN_RATIO).max(MIN_DRAW_LIMIT),
        usize::MAX,
    );
    // Draw a few rules more than needed, because some will be duplicates.
    let mut count = target + target / 128 + 1;
    let (mut count_before, mut distinct_before) = (0, 0);
    for attempt in 0.. {
        let mut drawn = sampler.rules(count, attempt, progress)?;
        let mut seen = Seen::with_capacity_and_hasher(drawn.len(), Default::default());
        drawn.retain(|rule| !taken.contains(rule) && seen.insert(*rule));
        let distinct = drawn.len();
        // Estimate the missing draws from the yield of the last draws, and add a few.
        // Few only, because the tries widen with the number of rules drawn.
        let gained = distinct.saturating_sub(distinct_before);
        let yielded = gained as f64 / (count - count_before) as f64;
        let missing = target.saturating_sub(distinct) as f64;
        let extra = whole(missing / yielded.max(0.05) * 1.05, usize::MAX / 2);
        (count_before, distinct_before) = (count, distinct);
        count += extra + count / 256 + 1;
        if distinct >= target || count > max_drawn || attempt + 1 == MAX_ATTEMPTS {
            return Ok(drawn);
        }
    }
    unreachable!("the last attempt returns")
}

/// Keeps `target` of the items, all equally likely, in their order.
fn thin_out(items: Vec<FiveTupleRule>, target: usize, draw: &mut Draw) -> Vec<FiveTupleRule> {
    let mut remaining = items.len();
    let mut missing = target;
    let mut chosen = Vec::with_capacity(target);
    for item in items {
        if draw.below(remaining) < missing {
            chosen.push(item);
            missing -= 1;
        }
        remaining -= 1;
    }
    chosen
}

/// Sorts by scope, then by tuple in the order of the tuples' first occurrences, then in
/// the order of drawing.
pub(super) fn order(rules: &mut [FiveTupleRule], family: Family) {
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
        let rule = |port: u16| FiveTupleRule {
            source: 0,
            destination: 0,
            source_length: 0,
            destination_length: 0,
            source_port: (port, port),
            destination_port: (0, u16::MAX),
            protocol: None,
        };
        let items: Vec<FiveTupleRule> = (0..1000).map(rule).collect();
        let chosen = thin_out(items.clone(), 100, &mut Draw::new(1, "thin"));
        assert_eq!(chosen.len(), 100);
        assert!(chosen.is_sorted_by_key(|rule| rule.source_port.0));
        let last = chosen
            .iter()
            .filter(|rule| rule.source_port.0 >= 500)
            .count();
        assert!((30..70).contains(&last), "{last}");
        assert_eq!(
            thin_out(items.clone(), 1000, &mut Draw::new(1, "thin")),
            items
        );
    }
}
