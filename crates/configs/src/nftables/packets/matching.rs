//! Comparisons as sets of packets.

use std::net::IpAddr;

use classyard_text::line::quoted;

use super::compared::Compared;
use super::field::{Modelled, domain, modelled};
use super::fragment::compare_fragment;
use super::interval::Intervals;
use super::value::{NumberField, STATES, TCP_FLAGS, address, flags, number};
use crate::nftables::show;
use crate::nftables::tree::{
    Element, Expression, ExpressionKind, NamedSet, Operator, Parsed, Relation, Table, fault,
    unsupported,
};
use crate::packets::{
    Families, Field, MAX_BOXES, PacketSet, TooManyBoxes, Values, name_prefix, name_value,
    range_of_addresses,
};

/// The maximum number of elements of a set of concatenations, or of interfaces, that a
/// comparison negates. The time of a negation grows with its square.
pub(super) const MAX_NEGATED_ELEMENTS: usize = 1024;

/// The first and last value of `state` for each bit of the kernel.
const STATE_VALUES: [(u128, u8, u8); 5] = [(8, 0, 0), (2, 1, 1), (4, 2, 2), (1, 3, 3), (64, 4, 7)];

/// Compares fields with constants in the sets of a table.
#[derive(Clone, Copy, Debug)]
pub(super) struct Matcher<'a, 't> {
    pub(super) table: &'a Table<'t>,
}

impl<'a, 't> Matcher<'a, 't> {
    /// Returns the packets for which a comparison holds.
    pub(super) fn compare(
        self,
        left_side: &Expression<'t>,
        relation: Relation,
        right_side: &Expression<'t>,
    ) -> Parsed<'t, Compared> {
        if let ExpressionKind::SetReference(name) = &right_side.kind
            && self.named_set(right_side, name)?.is_changing
        {
            return Ok(Compared::Unknown(self.domain(left_side)?));
        }
        let elements = self.elements(right_side)?;
        if elements.iter().any(|element| element.is_limited) {
            return Ok(Compared::Unknown(self.domain(left_side)?));
        }
        match &left_side.kind {
            ExpressionKind::Selector(selector) => {
                self.compare_selector(left_side, selector, relation, right_side)
            }
            ExpressionKind::Concatenation(parts) => {
                self.compare_tuple(left_side, parts, relation, right_side)
            }
            ExpressionKind::Binary(Operator::And, operands) => {
                self.compare_masked(left_side, &operands[..], relation, right_side)
            }
            _ => Ok(Compared::Unknown(self.domain(left_side)?)),
        }
    }

    /// Returns a set of the table.
    pub(super) fn named_set(
        self,
        reference: &Expression<'t>,
        name: &str,
    ) -> Parsed<'t, &'a NamedSet<'t>> {
        self.table.find_set(name).ok_or_else(|| {
            let problem = format!("no set {} in this table", quoted(name));
            fault(reference.text, problem, "the name of a set")
        })
    }

    /// Returns the elements of a set; any other constant has none.
    pub(super) fn elements<'b>(self, set: &'b Expression<'t>) -> Parsed<'t, &'b [Element<'t>]>
    where
        'a: 'b,
    {
        Ok(match &set.kind {
            ExpressionKind::Set(elements) => elements,
            ExpressionKind::SetReference(name) => &self.named_set(set, name)?.elements,
            _ => &[],
        })
    }

    /// Returns the packets that have all fields of an expression.
    pub(super) fn domain(self, left_side: &Expression<'t>) -> Parsed<'t, PacketSet> {
        match &left_side.kind {
            ExpressionKind::Selector(selector) => {
                bounded(left_side, domain(selector, self.table.family))
            }
            ExpressionKind::Concatenation(parts) => self.domain_of_all(left_side, parts),
            ExpressionKind::Binary(_, parts) => self.domain_of_all(left_side, &parts[..]),
            ExpressionKind::Map(parts) => self.domain(&parts[0]),
            _ => Ok(PacketSet::all()),
        }
    }

    fn domain_of_all(
        self,
        left_side: &Expression<'t>,
        parts: &[Expression<'t>],
    ) -> Parsed<'t, PacketSet> {
        let mut packets = PacketSet::all();
        for part in parts {
            packets = bounded(left_side, packets.intersect(&self.domain(part)?))?;
        }
        Ok(packets)
    }

    fn compare_selector(
        self,
        left_side: &Expression<'t>,
        selector: &str,
        relation: Relation,
        right_side: &Expression<'t>,
    ) -> Parsed<'t, Compared> {
        if let Some(compared) = compare_fragment(selector, u128::MAX, relation, right_side) {
            return Ok(compared);
        }
        let domain = self.domain(left_side)?;
        let Some(property) = modelled(selector) else {
            return Ok(Compared::Unknown(domain));
        };
        let packets = match property {
            Modelled::Number(field) => self.compare_numbers(field, relation, right_side)?,
            Modelled::Interface(field) => {
                match self.compare_interfaces(field, relation, right_side)? {
                    Some(packets) => packets,
                    None => return Ok(Compared::Unknown(domain)),
                }
            }
            Modelled::TcpFlags => self.compare_flags(u128::MAX, relation, right_side)?,
            Modelled::State => self.compare_states(u128::MAX, relation, right_side)?,
            Modelled::Family => self.compare_families(relation, right_side)?,
        };
        Ok(Compared::Packets(bounded(
            left_side,
            domain.intersect(&packets),
        )?))
    }

    /// Returns the constants of the right side: the keys of a set, or the constant.
    fn constants<'b>(self, right_side: &'b Expression<'t>) -> Parsed<'t, Vec<&'b Expression<'t>>>
    where
        'a: 'b,
    {
        Ok(match &right_side.kind {
            ExpressionKind::Set(_) | ExpressionKind::SetReference(_) => {
                let elements = self.elements(right_side)?;
                elements.iter().map(|element| &element.key).collect()
            }
            _ => vec![right_side],
        })
    }

    fn compare_numbers(
        self,
        field: NumberField,
        relation: Relation,
        right_side: &Expression<'t>,
    ) -> Parsed<'t, PacketSet> {
        let constants = self.constants(right_side)?;
        let constants = constants.into_iter().map(|constant| field.read(constant));
        let intervals = constants.collect::<Result<Vec<_>, _>>()?;
        let intervals = match relation {
            Relation::Implicit | Relation::Equal => Intervals::new(intervals),
            Relation::NotEqual => Intervals::new(intervals).complement(field.max()),
            _ => {
                let &[(low, high)] = &intervals[..] else {
                    return Err(fault(
                        right_side.text,
                        "a set in a comparison of order",
                        "one value",
                    ));
                };
                ordered(field, relation, low, high).ok_or_else(|| {
                    fault(
                        right_side.text,
                        "`!` before a value that is not flags",
                        "`!=`",
                    )
                })?
            }
        };
        number_packets(field, &intervals).map_err(|error| too_many(right_side, error))
    }

    /// Returns `None` if the comparison is with the number of an interface.
    fn compare_interfaces(
        self,
        field: Field,
        relation: Relation,
        right_side: &Expression<'t>,
    ) -> Parsed<'t, Option<PacketSet>> {
        let mut names = Vec::new();
        for constant in self.constants(right_side)? {
            match &constant.kind {
                ExpressionKind::Word(word) if number(word).is_some() => return Ok(None),
                ExpressionKind::Word(word) if &word[..] == "*" => {
                    return Err(fault(constant.text, "a name that is only `*`", "a name"));
                }
                ExpressionKind::Word(word) => names.push(interface(word)),
                ExpressionKind::Any => names.push(Values::bits(0, 0)),
                _ => {
                    let shown = show::expression(constant);
                    return Err(fault(
                        constant.text,
                        quoted(&shown),
                        "the name of an interface",
                    ));
                }
            }
        }
        let count = names.len();
        let packets = PacketSet::of(field, names);
        match relation {
            Relation::Implicit | Relation::Equal => Ok(Some(packets)),
            Relation::NotEqual => {
                check_negation(right_side, count)?;
                bounded(right_side, PacketSet::all().subtract(&packets)).map(Some)
            }
            _ => Err(fault(right_side.text, "an order of names", "`==` or `!=`")),
        }
    }

    fn compare_families(
        self,
        relation: Relation,
        right_side: &Expression<'t>,
    ) -> Parsed<'t, PacketSet> {
        let mut packets = PacketSet::none();
        for constant in self.constants(right_side)? {
            let ExpressionKind::Word(word) = &constant.kind else {
                let shown = show::expression(constant);
                return Err(fault(
                    constant.text,
                    quoted(&shown),
                    "a family or a protocol",
                ));
            };
            let families = match &word[..] {
                "ip" | "ipv4" | "2" | "0x0800" | "0x800" => Families::IPV4,
                "ip6" | "ipv6" | "10" | "0x86dd" => Families::IPV6,
                "arp" | "vlan" | "8021q" | "8021ad" => continue,
                _ if number(word).is_some() => continue,
                _ => return Err(fault(constant.text, quoted(word), "a family or a protocol")),
            };
            packets = bounded(right_side, packets.union(PacketSet::of_families(families)))?;
        }
        match relation {
            Relation::Implicit | Relation::Equal => Ok(packets),
            Relation::NotEqual => bounded(right_side, PacketSet::all().subtract(&packets)),
            _ => Err(fault(
                right_side.text,
                "an order of protocols",
                "`==` or `!=`",
            )),
        }
    }

    /// Returns the bits of each constant, and whether they are elements of a set.
    fn bits(
        self,
        names: &[(&str, u8)],
        right_side: &Expression<'t>,
    ) -> Parsed<'t, (Vec<u128>, bool)> {
        let is_set = matches!(
            right_side.kind,
            ExpressionKind::Set(_) | ExpressionKind::SetReference(_)
        );
        let constants = self.constants(right_side)?;
        let bits = constants.into_iter().map(|constant| flags(names, constant));
        Ok((bits.collect::<Result<_, _>>()?, is_set))
    }

    fn compare_flags(
        self,
        mask: u128,
        relation: Relation,
        right_side: &Expression<'t>,
    ) -> Parsed<'t, PacketSet> {
        let constants = self.bits(&TCP_FLAGS, right_side)?;
        let members: Vec<bool> = (0..=u128::from(u8::MAX))
            .map(|value| flags_hold(value & mask, mask == u128::MAX, relation, &constants))
            .collect();
        let mut patterns = Vec::new();
        patterns_of(&members, 0, 0, &mut patterns);
        Ok(PacketSet::of(Field::TcpFlags, patterns))
    }

    fn compare_states(
        self,
        mask: u128,
        relation: Relation,
        right_side: &Expression<'t>,
    ) -> Parsed<'t, PacketSet> {
        let constants = self.bits(&STATES, right_side)?;
        let holds = |&&(bit, _, _): &&(u128, u8, u8)| {
            flags_hold(bit & mask, mask == u128::MAX, relation, &constants)
        };
        let states = STATE_VALUES.iter().filter(holds);
        let intervals = states.map(|&(_, low, high)| (low.into(), high.into()));
        let intervals = Intervals::new(intervals.collect());
        let ranges = intervals.parts().iter();
        let ranges = ranges.map(|&(low, high)| Values::range(low, high));
        Ok(PacketSet::of(Field::State, ranges))
    }

    /// Compares a field under a mask.
    fn compare_masked(
        self,
        left_side: &Expression<'t>,
        operands: &[Expression<'t>],
        relation: Relation,
        right_side: &Expression<'t>,
    ) -> Parsed<'t, Compared> {
        let domain = self.domain(left_side)?;
        let ExpressionKind::Selector(selector) = &operands[0].kind else {
            return Ok(Compared::Unknown(domain));
        };
        let mask = &operands[1];
        if let ExpressionKind::Word(word) = &mask.kind
            && let Some(bits) = number(word)
            && let Some(compared) = compare_fragment(selector, bits, relation, right_side)
        {
            return Ok(compared);
        }
        let packets = match modelled(selector) {
            Some(Modelled::TcpFlags) => {
                let packets = self.compare_flags(flags(&TCP_FLAGS, mask)?, relation, right_side)?;
                domain.intersect(&packets)
            }
            Some(Modelled::State) => {
                let packets = self.compare_states(flags(&STATES, mask)?, relation, right_side)?;
                domain.intersect(&packets)
            }
            Some(Modelled::Number(NumberField::Address { field, families })) => {
                match (masked_address(field, families, mask, right_side), relation) {
                    (Some(packets), Relation::Equal) => domain.intersect(&packets),
                    (Some(packets), Relation::NotEqual) => domain.subtract(&packets),
                    _ => return Ok(Compared::Unknown(domain)),
                }
            }
            _ => return Ok(Compared::Unknown(domain)),
        };
        Ok(Compared::Packets(bounded(right_side, packets)?))
    }

    fn compare_tuple(
        self,
        left_side: &Expression<'t>,
        parts: &[Expression<'t>],
        relation: Relation,
        right_side: &Expression<'t>,
    ) -> Parsed<'t, Compared> {
        let domain = self.domain(left_side)?;
        let constants = self.constants(right_side)?;
        let count = constants.len();
        let mut packets = PacketSet::none();
        for constant in constants {
            match self.tuple(parts, constant)? {
                Some(tuple) => packets = bounded(right_side, packets.union(tuple))?,
                None => return Ok(Compared::Unknown(domain)),
            }
        }
        let packets = match relation {
            Relation::Implicit | Relation::Equal => domain.intersect(&packets),
            Relation::NotEqual => {
                check_negation(right_side, count)?;
                domain.subtract(&packets)
            }
            _ => {
                return Err(fault(
                    right_side.text,
                    "an order of concatenations",
                    "`==` or `!=`",
                ));
            }
        };
        Ok(Compared::Packets(bounded(right_side, packets)?))
    }

    /// Returns the packets with the values of a concatenation. `None` if a field of it is not
    /// modelled.
    fn tuple(
        self,
        parts: &[Expression<'t>],
        constant: &Expression<'t>,
    ) -> Parsed<'t, Option<PacketSet>> {
        let values = match &constant.kind {
            ExpressionKind::Concatenation(values) => values,
            ExpressionKind::Any => return self.domain_of_all(constant, parts).map(Some),
            _ => std::slice::from_ref(constant),
        };
        if values.len() != parts.len() {
            let problem = format!("{} values for {} fields", values.len(), parts.len());
            return Err(fault(constant.text, problem, "a value for each field"));
        }
        let mut packets = PacketSet::all();
        for (part, value) in parts.iter().zip(values) {
            match self.compare(part, Relation::Equal, value)? {
                Compared::Packets(own) => packets = bounded(constant, packets.intersect(&own))?,
                Compared::Unknown(_) => return Ok(None),
            }
        }
        Ok(Some(packets))
    }
}

/// Turns a set with too many boxes into a fault.
pub(super) fn bounded<'t>(
    part: &Expression<'t>,
    packets: Result<PacketSet, TooManyBoxes>,
) -> Parsed<'t, PacketSet> {
    packets.map_err(|error| too_many(part, error))
}

fn too_many<'t>(part: &Expression<'t>, error: TooManyBoxes) -> classyard_text::Fault<'t> {
    fault(part.text, error.to_string(), "smaller sets")
}

fn check_negation<'t>(right_side: &Expression<'t>, count: usize) -> Parsed<'t, ()> {
    match count > MAX_NEGATED_ELEMENTS {
        true => Err(unsupported(
            right_side.text,
            format!("a negated set of more than {MAX_NEGATED_ELEMENTS} concatenations or names"),
        )),
        false => Ok(()),
    }
}

/// Returns the values that are below or above an interval.
fn ordered(field: NumberField, relation: Relation, low: u128, high: u128) -> Option<Intervals> {
    let below = |end: Option<u128>| end.map(|end| (0, end));
    let above = |start: Option<u128>| {
        start
            .filter(|&start| start <= field.max())
            .map(|start| (start, field.max()))
    };
    let interval = match relation {
        Relation::Less => below(low.checked_sub(1)),
        Relation::LessOrEqual => below(Some(high)),
        Relation::Greater => above(high.checked_add(1)),
        Relation::GreaterOrEqual => above(Some(low)),
        _ => return None,
    };
    Some(Intervals::new(interval.into_iter().collect()))
}

fn number_packets(field: NumberField, intervals: &Intervals) -> Result<PacketSet, TooManyBoxes> {
    let NumberField::Address { families, .. } = field else {
        let ranges = intervals.parts().iter();
        let ranges = ranges.map(|&(low, high)| Values::range(low, high));
        return Ok(PacketSet::of(field.field(), ranges));
    };
    let mut networks = Vec::new();
    for &(low, high) in intervals.parts() {
        let [low, high] = [low, high].map(|bits| ip_address(families, bits));
        networks.extend(range_of_addresses(low, high).unwrap_or_default());
        if networks.len() > MAX_BOXES {
            return Err(TooManyBoxes);
        }
    }
    Ok(PacketSet::of_addresses(field.field(), networks))
}

fn ip_address(families: Families, bits: u128) -> IpAddr {
    match u32::try_from(bits) {
        Ok(bits) if families == Families::IPV4 => IpAddr::V4(bits.into()),
        _ => IpAddr::V6(bits.into()),
    }
}

/// Returns the values of the name of an interface. `eth*` is a start of names; a backslash
/// before the star makes it a part of the name.
fn interface(word: &str) -> Values {
    match word.strip_suffix('*') {
        Some(start) if start.ends_with('\\') => {
            name_value(&format!("{}*", start.trim_end_matches('\\')))
        }
        Some(start) => name_prefix(start),
        None => name_value(word),
    }
}

/// True if flags under a mask agree with constants. Without an operator, values
/// without a mask need one common bit.
fn flags_hold(
    value: u128,
    is_unmasked: bool,
    relation: Relation,
    (constants, is_set): &(Vec<u128>, bool),
) -> bool {
    let joined = constants.iter().fold(0, |joined, bits| joined | bits);
    match relation {
        Relation::Implicit if !is_set && is_unmasked => value & joined != 0,
        Relation::Implicit | Relation::Equal => constants.contains(&value),
        Relation::NotEqual => !constants.contains(&value),
        Relation::NoCommonBit => value & joined == 0,
        Relation::Less => value < joined,
        Relation::LessOrEqual => value <= joined,
        Relation::Greater => value > joined,
        Relation::GreaterOrEqual => value >= joined,
    }
}

/// Adds the patterns of the values that are members and agree with `value` on the bits of
/// `mask`. `members` has an entry for each value of 8 bits.
fn patterns_of(members: &[bool], value: usize, mask: usize, patterns: &mut Vec<Values>) {
    let agreeing = || (0..members.len()).filter(|other| other & mask == value);
    if agreeing().all(|other| !members[other]) {
        return;
    }
    let changes = |bit: &usize| {
        mask & bit == 0 && agreeing().any(|other| members[other] != members[other ^ bit])
    };
    match (0..8).rev().map(|shift| 1 << shift).find(changes) {
        None => patterns.push(Values::bits(value as u128, mask as u128)),
        Some(bit) => {
            patterns_of(members, value | bit, mask | bit, patterns);
            patterns_of(members, value, mask | bit, patterns);
        }
    }
}

/// Returns the packets whose address under a mask has a value. `None` if the constants are
/// not addresses of the family.
fn masked_address<'t>(
    field: Field,
    families: Families,
    mask: &Expression<'t>,
    right_side: &Expression<'t>,
) -> Option<PacketSet> {
    let bits = |constant: &Expression<'t>| match &constant.kind {
        ExpressionKind::Word(word) => address(word).or_else(|| number(word)),
        _ => None,
    };
    let (mask, value) = (bits(mask)?, bits(right_side)?);
    let width = NumberField::Address { field, families }.max();
    if mask > width || value > width {
        return None;
    }
    if value & !mask != 0 {
        return Some(PacketSet::none());
    }
    Some(PacketSet::of_addresses(
        field,
        [(families, Values::bits(value, mask))],
    ))
}
