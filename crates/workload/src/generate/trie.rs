//! Address generation: grows two binary tries over the rules' prefix lengths.
//!
//! # Idea
//! All rules start at the root of the source trie. A rule whose prefix is as long as a
//! node is deep gets the node's address. The other rules continue: all to one child, or
//! in two groups whose sizes follow the level's skew. Prefixes that would nest too
//! deeply get a separate branch if there is room.
//!
//! The destination trie grows in the same way, with one addition: a rule follows its
//! own source address as long as the two addresses *correlate*, bit by bit. Then it
//! leaves the source address and joins the other rules at that node. It never follows
//! its source prefix to the end, so that the two prefixes do not nest in each other.
//!
//! In both tries, groups are cut from the list in the order of drawing. So rules that
//! were drawn consecutively share source *and* destination networks, as related rules
//! in real policies do.
//!
//! # Larger sets
//! A trie that was measured on a few hundred rules cannot spread a million. For a set
//! `f` times as large, levels are changed to branch fully and evenly, from the root
//! down. Each level has a cost, its one-sidedness: 2 if the level never branches, 0 if
//! it splits evenly. The change stops when the costs add up to `f`.
//!
//! # IPv6
//! Profiles have IPv4 lengths. Each prefix length maps to an IPv6 length with the same
//! role ([`ipv6_length`]). A level that branches in IPv4 branches in IPv6 at the start
//! of the step between two mapped lengths, and the remaining bits of the step are the
//! same for a whole subtree.
//!
//! # Cost
//! Time O(rules × levels with a shared path): when a rule is alone at a node, the rest
//! of its address is drawn immediately. Memory: one number per rule and list.
//!
//! # References
//! D. E. Taylor and J. S. Turner, ClassBench, 2007, §IV.C, §V.

use super::draw::{Draw, whole};
use super::profile::{LEVELS, Level, TrieShape};
use super::{GenerateError, Steps};

/// The top bit. Addresses of any width are built from bit 127 down.
const TOP_BIT: u32 = 127;

/// Returns the bit that decides at a level.
fn bit_at(level: u32) -> u128 {
    1 << (TOP_BIT - level)
}

/// Returns a mask of the first `length` bits.
pub(super) fn leading(length: u32) -> u128 {
    if length == 0 {
        0
    } else {
        u128::MAX << (128 - length)
    }
}

/// An address family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Family {
    Ipv4,
    Ipv6,
}

impl Family {
    /// Returns the number of bits of an address.
    pub(super) fn width(self) -> u32 {
        match self {
            Family::Ipv4 => 32,
            Family::Ipv6 => 128,
        }
    }

    /// Returns the prefix length with the same role as an IPv4 length.
    pub(super) fn length(self, ipv4: u8) -> u8 {
        match self {
            Family::Ipv4 => ipv4,
            Family::Ipv6 => ipv6_length(ipv4),
        }
    }
}

/// Returns the IPv6 prefix length with the same role as an IPv4 length.
///
/// A registry's block: /8 to /24. A provider: /16 to /32. A site: /24 to /48. A subnet:
/// /28 to /31 become /56 to /64. A host: /32 to /128. No length maps to between /0 and
/// /16.
pub(super) fn ipv6_length(ipv4: u8) -> u8 {
    match ipv4 {
        0 => 0,
        1..=7 => 15 + ipv4,
        8..=16 => 16 + ipv4,
        17..=30 => 2 * ipv4,
        31 => 64,
        _ => 128,
    }
}

/// The branching of a trie, level by level.
pub(super) struct Branching {
    family: Family,
    nesting: u32,
    levels: Vec<Level>,
}

impl Branching {
    /// Returns the branching of a trie with this shape, for sets `growth` times as
    /// large as the sets that the shape describes.
    pub(super) fn new(shape: &TrieShape, growth: f64, family: Family) -> Branching {
        let measured = widened(&shape.levels, growth);
        let levels = match family {
            Family::Ipv4 => measured[..LEVELS - 1].to_vec(),
            Family::Ipv6 => {
                let single = Level {
                    two_children: 0.0,
                    skew: 0.5,
                };
                let mut levels = vec![single; 128];
                for (ipv4, level) in (0..).zip(&measured[..LEVELS - 1]) {
                    levels[ipv6_branch(ipv4)] = *level;
                }
                levels
            }
        };
        Branching {
            family,
            nesting: shape.nesting,
            levels,
        }
    }

    /// Returns the parameters of a level above the last bit.
    fn level(&self, level: u32) -> Level {
        self.levels[level as usize]
    }

    /// True if prefixes that end at the next level need a separate branch.
    fn nests_too_deep(&self, level: u32, nested: u32) -> bool {
        nested.saturating_add(1) >= self.nesting && level + 1 < self.family.width()
    }

    /// Draws the bits from `level` to `length` of an address.
    fn rest(&self, draw: &mut Draw, level: u32, length: u32) -> u128 {
        let random = match self.family {
            Family::Ipv4 => u128::from(draw.bits()) << 64,
            Family::Ipv6 if length > 64 => host(draw),
            Family::Ipv6 => draw.bits128(),
        };
        random & leading(length) & !leading(level)
    }
}

/// Returns the IPv6 level at which an IPv4 level branches: the start of the step to the
/// next length, after the three bits that all global addresses share.
fn ipv6_branch(ipv4: u8) -> usize {
    usize::from(ipv6_length(ipv4).max(GLOBAL_BITS))
}

/// All global unicast addresses begin with the bits 001 (RFC 4291).
const GLOBAL_BITS: u8 = 3;

/// Draws a network with an interface identifier of a usual kind: assigned by hand, made
/// from an Ethernet address, or random.
fn host(draw: &mut Draw) -> u128 {
    let network = u128::from(draw.bits()) << 64;
    let random = draw.bits();
    let identifier = match draw.below(3) {
        0 => 1 + random % 0xffff,
        1 => (random & 0xfdff_ff00_00ff_ffff) | 0x0200_00ff_fe00_0000,
        _ => random,
    };
    network | u128::from(identifier)
}

/// Returns the levels of a trie for sets `growth` times as large.
fn widened(levels: &[Level; LEVELS], growth: f64) -> [Level; LEVELS] {
    let mut levels = *levels;
    if growth.is_nan() || growth <= 1.0 {
        return levels;
    }
    let mut budget = growth;
    for level in &mut levels[..LEVELS - 1] {
        let Level { two_children, skew } = *level;
        // The cost of the level: 2 for each node that does not branch, twice the skew
        // for each node that does.
        let cost = 2.0 * (1.0 - two_children + skew * two_children);
        if cost <= budget {
            budget -= cost;
            *level = Level {
                two_children: 1.0,
                skew: 0.0,
            };
            continue;
        }
        let branching = cost - 2.0 * skew;
        *level = if branching > budget {
            Level {
                two_children: (1.0 - (cost - budget) / 2.0) / (1.0 - skew),
                skew,
            }
        } else {
            Level {
                two_children: 1.0,
                skew: (skew - budget / 2.0).max(0.0),
            }
        };
        break;
    }
    levels
}

/// Returns how many of `count` rules take the heavy side at a skew.
fn heavy_part(count: usize, skew: f64) -> usize {
    whole(count as f64 / (2.0 - skew), count)
}

/// Grows the source trie. Returns an address for each rule, from the top bit down.
pub(super) fn sources(
    branching: &Branching,
    lengths: &[u8],
    draw: &mut Draw,
    steps: &mut Steps<'_>,
) -> Result<Vec<u128>, GenerateError> {
    let count = u32::try_from(lengths.len()).expect("fewer rules than ids");
    let mut trie = SourceTrie {
        branching,
        lengths,
        draw,
        steps,
        addresses: vec![0; lengths.len()],
        scratch: Vec::new(),
    };
    let mut members: Vec<u32> = (0..count).collect();
    trie.grow(&mut members, 0, 0, 0)?;
    Ok(global(branching.family, trie.addresses, lengths))
}

/// Moves IPv6 addresses into global unicast space.
fn global(family: Family, mut addresses: Vec<u128>, lengths: &[u8]) -> Vec<u128> {
    if family == Family::Ipv6 {
        for (address, &length) in addresses.iter_mut().zip(lengths) {
            if length > 0 {
                *address = (*address & !leading(GLOBAL_BITS.into())) | bit_at(2);
            }
        }
    }
    addresses
}

struct SourceTrie<'a, 'b> {
    branching: &'a Branching,
    lengths: &'a [u8],
    draw: &'a mut Draw,
    steps: &'a mut Steps<'b>,
    addresses: Vec<u128>,
    scratch: Vec<u32>,
}

impl SourceTrie<'_, '_> {
    fn length(&self, rule: u32) -> u32 {
        self.lengths[rule as usize].into()
    }

    /// Distributes rules below a node.
    fn grow(
        &mut self,
        members: &mut [u32],
        level: u32,
        prefix: u128,
        nested: u32,
    ) -> Result<(), GenerateError> {
        let lengths = self.lengths;
        let ends_at = |end: u32| move |rule: u32| u32::from(lengths[rule as usize]) == end;
        let ended = stable_partition(members, &mut self.scratch, ends_at(level));
        let (ended_rules, rest) = members.split_at_mut(ended);
        for &rule in ended_rules.iter() {
            self.addresses[rule as usize] = prefix;
        }
        self.steps.advance(ended_rules.len())?;
        let nested = nested + u32::from(!ended_rules.is_empty());
        match rest {
            [] => return Ok(()),
            &mut [rule] => {
                let length = self.length(rule);
                let suffix = self.branching.rest(self.draw, level, length);
                self.addresses[rule as usize] = prefix | suffix;
                return self.steps.advance(1);
            }
            _ => {}
        }
        let next = level + 1;
        let down = |one: bool| if one { prefix | bit_at(level) } else { prefix };
        let heavy = self.draw.coin();
        if self.branching.nests_too_deep(level, nested) && rest.iter().any(|&r| ends_at(next)(r)) {
            let cut = stable_partition(rest, &mut self.scratch, ends_at(next));
            let (ending, longer) = rest.split_at_mut(cut);
            let way = if ending.len() > longer.len() {
                heavy
            } else {
                !heavy
            };
            self.grow(ending, next, down(way), nested)?;
            return self.grow(longer, next, down(!way), nested);
        }
        let shape = self.branching.level(level);
        if !self.draw.chance(shape.two_children) {
            return self.grow(rest, next, down(heavy), nested);
        }
        let lite = rest.len() - heavy_part(rest.len(), shape.skew);
        let (light_side, heavy_side) = rest.split_at_mut(lite);
        self.grow(light_side, next, down(!heavy), nested)?;
        self.grow(heavy_side, next, down(heavy), nested)
    }
}

/// Moves the members that pass to the front; both groups keep their order. Returns how
/// many members passed.
fn stable_partition(
    members: &mut [u32],
    scratch: &mut Vec<u32>,
    pass: impl Fn(u32) -> bool,
) -> usize {
    scratch.clear();
    let mut passed = 0;
    for index in 0..members.len() {
        let member = members[index];
        if pass(member) {
            members[passed] = member;
            passed += 1;
        } else {
            scratch.push(member);
        }
    }
    members[passed..].copy_from_slice(scratch);
    passed
}

/// Returns the probability, at each bit counted from 1, that source and destination
/// continue to agree.
pub(super) fn correlation(measured: &[f64; LEVELS], family: Family) -> Vec<f64> {
    match family {
        Family::Ipv4 => measured.to_vec(),
        Family::Ipv6 => {
            let mut bits = vec![1.0; 129];
            for ipv4 in 0..32u8 {
                bits[ipv6_branch(ipv4) + 1] = measured[usize::from(ipv4) + 1];
            }
            bits
        }
    }
}

/// Grows the destination trie for the given sources. Returns an address for each rule.
pub(super) fn destinations(
    branching: &Branching,
    correlation: &[f64],
    sources: (&[u128], &[u8]),
    lengths: &[u8],
    draw: &mut Draw,
    steps: &mut Steps<'_>,
) -> Result<Vec<u128>, GenerateError> {
    let count = u32::try_from(lengths.len()).expect("fewer rules than ids");
    let mut trie = DestinationTrie {
        branching,
        correlation,
        sources: sources.0,
        source_lengths: sources.1,
        lengths,
        draw,
        steps,
        addresses: vec![0; lengths.len()],
    };
    let root = Arriving {
        walking: (0..count).collect(),
        ..Arriving::default()
    };
    trie.grow(root, 0, 0, Nested::default())?;
    Ok(global(branching.family, trie.addresses, lengths))
}

struct DestinationTrie<'a, 'b> {
    branching: &'a Branching,
    correlation: &'a [f64],
    sources: &'a [u128],
    source_lengths: &'a [u8],
    lengths: &'a [u8],
    draw: &'a mut Draw,
    steps: &'a mut Steps<'b>,
    addresses: Vec<u128>,
}

/// The rules that reach a node.
#[derive(Default)]
struct Arriving {
    /// The rules that follow their source address.
    walking: Vec<u32>,
    /// The rules that left their source address at the parent.
    aside: Vec<u32>,
    /// The rules that the parent sent down by its branching.
    sent: Vec<u32>,
}

impl Arriving {
    fn len(&self) -> usize {
        self.walking.len() + self.aside.len() + self.sent.len()
    }
}

/// The number of prefixes above a node: of walking rules, and of all rules.
#[derive(Clone, Copy, Default)]
struct Nested {
    walking: u32,
    all: u32,
}

impl DestinationTrie<'_, '_> {
    fn length(&self, rule: u32) -> u32 {
        self.lengths[rule as usize].into()
    }

    fn grow(
        &mut self,
        mut arriving: Arriving,
        level: u32,
        prefix: u128,
        nested: Nested,
    ) -> Result<(), GenerateError> {
        if arriving.len() <= 1 {
            return self.alone(&arriving, level, prefix);
        }
        let mut children = [Arriving::default(), Arriving::default()];
        let ended = self.settle(&mut arriving.walking, level, prefix)?;
        let walking_nested = nested.walking + u32::from(ended);
        let parked = self.walk(&arriving.walking, level, walking_nested, &mut children);

        let mut list = arriving.sent;
        list.append(&mut arriving.aside);
        list.extend(parked);
        let ended = self.settle(&mut list, level, prefix)? || ended;
        let nested = Nested {
            walking: walking_nested,
            all: nested.all + u32::from(ended),
        };
        if !list.is_empty() {
            self.branch(list, level, nested.all, &mut children);
        }
        let [zero, one] = children;
        if zero.len() + one.len() == 0 {
            return Ok(());
        }
        for (child, bit) in [(zero, 0), (one, bit_at(level))] {
            if child.len() > 0 {
                self.grow(child, level + 1, prefix | bit, nested)?;
            }
        }
        Ok(())
    }

    /// Gives the node's address to the rules whose prefix ends at the node, and removes
    /// them from the list. Returns true if there were any.
    fn settle(
        &mut self,
        list: &mut Vec<u32>,
        level: u32,
        prefix: u128,
    ) -> Result<bool, GenerateError> {
        let before = list.len();
        let (lengths, addresses) = (self.lengths, &mut self.addresses);
        list.retain(|&rule| {
            let ends = u32::from(lengths[rule as usize]) == level;
            if ends {
                addresses[rule as usize] = prefix;
            }
            !ends
        });
        self.steps.advance(before - list.len())?;
        Ok(list.len() < before)
    }

    /// Draws the next bit of a walking rule, and whether it still agrees with the
    /// source. Returns `None` if the source prefix is too short to follow.
    fn next_bit(&mut self, rule: u32, level: u32) -> Option<(bool, bool)> {
        let source_length = u32::from(self.source_lengths[rule as usize]);
        if source_length <= level {
            return None;
        }
        let bit = self.sources[rule as usize] & bit_at(level) != 0;
        let follows =
            source_length > level + 1 && self.draw.chance(self.correlation[level as usize + 1]);
        Some((bit == follows, follows))
    }

    /// Moves walking rules to the children. Returns the rules that remain for the
    /// node's own branching.
    fn walk(
        &mut self,
        walking: &[u32],
        level: u32,
        nested: u32,
        children: &mut [Arriving; 2],
    ) -> Vec<u32> {
        let next_ends = |&rule: &u32| self.length(rule) == level + 1;
        let deep = self.branching.nests_too_deep(level, nested);
        if deep && walking.len() > 1 && walking.iter().any(next_ends) {
            return walking.to_vec();
        }
        let mut parked = Vec::new();
        for &rule in walking {
            match self.next_bit(rule, level) {
                None => parked.push(rule),
                Some((bit, true)) => children[usize::from(bit)].walking.push(rule),
                Some((bit, false)) => children[usize::from(bit)].aside.push(rule),
            }
        }
        parked
    }

    /// Sends rules down by the level's branching, considering the rules already sent
    /// down.
    fn branch(
        &mut self,
        mut list: Vec<u32>,
        level: u32,
        nested: u32,
        children: &mut [Arriving; 2],
    ) {
        let child_sizes = [children[0].len(), children[1].len()];
        let heavy = match child_sizes[0].cmp(&child_sizes[1]) {
            std::cmp::Ordering::Greater => 0,
            std::cmp::Ordering::Less => 1,
            std::cmp::Ordering::Equal => usize::from(self.draw.coin()),
        };
        let ends_next = |rule: u32| u32::from(self.lengths[rule as usize]) == level + 1;
        if list.len() > 1
            && self.branching.nests_too_deep(level, nested)
            && list.iter().any(|&rule| ends_next(rule))
        {
            let (ending, longer): (Vec<u32>, Vec<u32>) =
                list.into_iter().partition(|&rule| ends_next(rule));
            let way = if ending.len() > longer.len() {
                heavy
            } else {
                1 - heavy
            };
            children[way].sent = ending;
            children[1 - way].sent = longer;
            return;
        }
        let shape = self.branching.level(level);
        let single = !self.draw.chance(shape.two_children);
        if single && (child_sizes[0] == 0 || child_sizes[1] == 0) {
            // An only child receives all rules; if there is a child already, `heavy` is
            // that child.
            children[heavy].sent = list;
            return;
        }
        let total = list.len() + child_sizes[0] + child_sizes[1];
        let heavy_target = heavy_part(total, shape.skew);
        let lite_room = (total - heavy_target).saturating_sub(child_sizes[1 - heavy]);
        let heavy_room = heavy_target.saturating_sub(child_sizes[heavy]);
        let lite = if lite_room == 0 {
            0
        } else if heavy_room == 0 {
            list.len()
        } else {
            lite_room
        };
        let heavy_list = list.split_off(lite.min(list.len()));
        children[1 - heavy].sent = list;
        children[heavy].sent = heavy_list;
    }

    /// Completes the address of the only rule at a node.
    fn alone(
        &mut self,
        arriving: &Arriving,
        level: u32,
        prefix: u128,
    ) -> Result<(), GenerateError> {
        let (mut level, mut address) = (level, prefix);
        let rule = match (&*arriving.walking, &*arriving.aside, &*arriving.sent) {
            (&[rule], _, _) => {
                let length = self.length(rule);
                while level < length {
                    let Some((bit, follows)) = self.next_bit(rule, level) else {
                        break;
                    };
                    if bit {
                        address |= bit_at(level);
                    }
                    level += 1;
                    if !follows {
                        break;
                    }
                }
                rule
            }
            (_, &[rule], _) | (_, _, &[rule]) => rule,
            _ => return Ok(()),
        };
        let length = self.length(rule);
        let suffix = self.branching.rest(self.draw, level.min(length), length);
        self.addresses[rule as usize] = address | suffix;
        self.steps.advance(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ipv6_lengths_keep_the_order() {
        let lengths: Vec<u8> = (0..=32).map(ipv6_length).collect();
        assert!(lengths.is_sorted_by(|a, b| a < b), "{lengths:?}");
        assert_eq!((lengths[8], lengths[16], lengths[24]), (24, 32, 48));
        assert_eq!((lengths[28], lengths[31], lengths[32]), (56, 64, 128));
    }

    #[test]
    fn partition_keeps_both_orders() {
        let mut members = [5, 2, 9, 4, 7, 6];
        let passed = stable_partition(&mut members, &mut Vec::new(), |m| m % 2 == 0);
        assert_eq!((passed, members), (3, [2, 4, 6, 5, 9, 7]));
    }

    #[test]
    fn larger_sets_get_wider_tries() {
        let narrow = [Level {
            two_children: 0.5,
            skew: 0.5,
        }; LEVELS];
        assert_eq!(widened(&narrow, 1.0), narrow);
        // Each level costs 1.5.
        let wide = widened(&narrow, 4.0);
        assert_eq!((wide[1].two_children, wide[1].skew), (1.0, 0.0));
        assert!((wide[2].two_children, wide[2].skew) == (1.0, 0.0));
        assert_eq!(wide[3], narrow[3]);
        let partly = widened(&narrow, 3.4);
        assert!((partly[2].two_children - 0.9).abs() < 1e-9, "{partly:?}");
        let skewed = widened(&narrow, 3.6);
        assert!((skewed[2].two_children - 1.0).abs() < 1e-9);
        assert!((skewed[2].skew - 0.2).abs() < 1e-9);
        let even = widened(&narrow, 1e6);
        assert!(even[..32].iter().all(|level| level.skew.abs() < 1e-9));
    }
}
