//! The conditions of a term of a firewall filter.
//!
//! Values of one condition are alternatives, and all conditions must hold. As Junos's
//! documentation says, conditions on ports, ICMP and TCP flags do not test the protocol, and
//! no condition tests fragments implicitly.
//!
//! | conditions | packets |
//! |---|---|
//! | `source-address`, `source-prefix-list` | one list; the longest prefix decides, `except` excludes |
//! | `destination-address`, `destination-prefix-list` | the same for the destination |
//! | `address`, `prefix-list` | the source or the destination is in the list |
//! | `protocol`, `ip-protocol`, `next-header`, `payload-protocol` | the protocol; extension headers after `next-header` are conditions |
//! | `source-port`, `destination-port`, `port` | the ports; `port` is either of them |
//! | `icmp-type`, `icmp-code` | the type and the code |
//! | `tcp-flags`, `tcp-established`, `tcp-initial` | the flags |
//! | `first-fragment`, `is-fragment`, `fragment-offset` | the kind of fragment |
//! | `interface` | the incoming interface |
//! | [`UNMODELLED`], such as `ttl`, `dscp`, `packet-length` | a condition for each statement |
//! | others | a fault with their name |
//!
//! `-except` after a name selects the other packets; for `port-except`, neither port may be
//! one of the values. A list of addresses with exceptions only selects no packet. Prefixes of
//! another family in a prefix list are ignored.

use classyard_text::Fault;
use classyard_text::line::quoted;

use super::flags;
use super::groups;
use super::names::{Names, complement, merged};
use super::prefixes::{PrefixList, bad_prefix, parse_prefix, too_many};
use super::statements::{Attribute, Reader, is_bookkeeping};
use super::tree::WordId;
use crate::builder::SourceId;
use crate::packets::{Families, Field, PacketSet, Values, name_prefix, name_value};

/// The bits of TCP flags.
const SYN: u128 = 0x02;
const RST: u128 = 0x04;
const ACK: u128 = 0x10;

/// Conditions that no field can express, without `-except`.
const UNMODELLED: [&str; 24] = [
    "ah-spi",
    "destination-class",
    "dscp",
    "esp-spi",
    "extension-header",
    "extension-headers",
    "flexible-match-mask",
    "flexible-match-range",
    "forwarding-class",
    "fragment-flags",
    "gre-key",
    "hop-limit",
    "interface-group",
    "interface-set",
    "ip-options",
    "loss-priority",
    "packet-length",
    "policy-map",
    "precedence",
    "redirect-reason",
    "service-filter-hit",
    "source-class",
    "traffic-class",
    "ttl",
];

/// The maximum length of an `apply-path`.
const MAX_PATH_BYTES: usize = 512;

/// The lists of addresses of a term.
#[derive(Default)]
struct AddressLists<'t> {
    /// With the keyword of each, for messages.
    source: Option<(&'t str, PrefixList<'t>)>,
    destination: Option<(&'t str, PrefixList<'t>)>,
    either: Option<(&'t str, PrefixList<'t>)>,
}

/// The conditions of a term while they are read.
pub(super) struct Conditions<'r, 'a, 'o, 't> {
    reader: &'r mut Reader<'a, 'o, 't>,
    source: SourceId,
    families: Families,
}

/// True for keywords whose values have several words.
fn is_whole(keyword: &str) -> bool {
    matches!(keyword, "flexible-match-mask" | "flexible-match-range")
}

impl<'r, 'a, 'o, 't> Conditions<'r, 'a, 'o, 't> {
    /// Returns a reader of the conditions of the term that `source` is.
    pub(super) fn new(
        reader: &'r mut Reader<'a, 'o, 't>,
        source: SourceId,
        families: Families,
    ) -> Conditions<'r, 'a, 'o, 't> {
        Conditions {
            reader,
            source,
            families,
        }
    }

    /// Returns the packets for which the conditions of a term hold.
    pub(super) fn packets_of(&mut self, term: WordId) -> Result<PacketSet, Fault<'t>> {
        match self.reader.tree.child(term, "from") {
            Some(from) => self.packets(from),
            None => Ok(PacketSet::of_families(self.families)),
        }
    }

    /// Returns the packets for which the conditions below `from` hold.
    fn packets(&mut self, from: WordId) -> Result<PacketSet, Fault<'t>> {
        let mut packets = PacketSet::of_families(self.families);
        let mut lists = AddressLists::default();
        for attribute in self.reader.attributes(from, is_whole) {
            let keyword = self.reader.tree.text(attribute.keyword);
            if self.add_addresses(&attribute, &mut lists)? {
                continue;
            }
            let selected = self.condition(keyword, &attribute)?;
            packets = both(&packets, &selected, keyword)?;
        }
        for (field, list) in [
            (Field::Source, lists.source),
            (Field::Destination, lists.destination),
        ] {
            if let Some((keyword, list)) = list {
                let selected = self.addresses(keyword, &list, field)?;
                packets = both(&packets, &selected, keyword)?;
            }
        }
        if let Some((keyword, list)) = lists.either {
            let sources = self.addresses(keyword, &list, Field::Source)?;
            let destinations = self.addresses(keyword, &list, Field::Destination)?;
            let either = sources.union(destinations);
            let either = either.map_err(|error| too_many(keyword, error))?;
            packets = both(&packets, &either, keyword)?;
        }
        Ok(packets)
    }

    /// Adds addresses or prefix lists to the lists of a term. Returns false if the attribute
    /// is another condition. A prefix list is one list with the addresses of its direction.
    fn add_addresses(
        &mut self,
        attribute: &Attribute,
        lists: &mut AddressLists<'t>,
    ) -> Result<bool, Fault<'t>> {
        let keyword = self.reader.tree.text(attribute.keyword);
        let list = match keyword {
            "source-address" | "source-prefix-list" => &mut lists.source,
            "destination-address" | "destination-prefix-list" => &mut lists.destination,
            "address" | "prefix-list" => &mut lists.either,
            _ => return Ok(false),
        };
        let (_, list) = list.get_or_insert_with(|| (keyword, PrefixList::default()));
        if attribute.values.is_empty() {
            self.reader.values(attribute)?;
        }
        for value in &attribute.values {
            let text = self.reader.tree.text(value.word);
            if keyword.ends_with("prefix-list") {
                let mut named = named_list(self.reader, text)?;
                named.retain(self.families);
                if named.is_empty(self.families) {
                    return Err(Fault::unsupported(
                        text,
                        "a prefix list without prefixes of the filter's family",
                        "a prefix list with such a prefix",
                    ));
                }
                list.add_list(&named, value.is_except)?;
            } else {
                let network = parse_prefix(text).map_err(|error| bad_prefix(text, error))?;
                if network.0 != self.families {
                    return Err(Fault::new(
                        text,
                        format!("{} in a filter of another family", quoted(text)),
                        "an address of the filter's family",
                    ));
                }
                list.add(text, value.is_except)?;
            }
        }
        Ok(true)
    }

    fn addresses(
        &mut self,
        keyword: &'t str,
        list: &PrefixList<'t>,
        field: Field,
    ) -> Result<PacketSet, Fault<'t>> {
        if list.has_only_exceptions(self.families) {
            self.reader.builder.note(format!(
                "a list of addresses with exceptions only has no address, so its term matches no \
                 packet ({} on line {})",
                quoted(keyword),
                self.reader.lines.line_of(keyword).0,
            ));
        }
        list.packets(field)
    }

    /// Returns the packets for which a condition holds, other than lists of addresses.
    fn condition(
        &mut self,
        keyword: &'t str,
        attribute: &Attribute,
    ) -> Result<PacketSet, Fault<'t>> {
        let (name, is_except) = match keyword.strip_suffix("-except") {
            Some(name) => (name, true),
            None => (keyword, false),
        };
        let is_ipv6 = self.families == Families::IPV6;
        let numbers = |names: Names, fields: &[Field]| {
            let ranges = self.ranges(attribute, names)?;
            let packets = of_ranges(&ranges, names.max(), is_except, fields);
            packets.map_err(|error| too_many(keyword, error))
        };
        match name {
            "protocol" | "ip-protocol" | "next-header" | "payload-protocol" => {
                self.protocol(name, is_except, attribute)
            }
            "source-port" => numbers(Names::PORT, &[Field::SourcePort]),
            "destination-port" => numbers(Names::PORT, &[Field::DestinationPort]),
            "port" => numbers(Names::PORT, &[Field::SourcePort, Field::DestinationPort]),
            "icmp-type" => numbers(Names::icmp_types(is_ipv6), &[Field::IcmpType]),
            "icmp-code" => numbers(Names::icmp_codes(is_ipv6), &[Field::IcmpCode]),
            "fragment-offset" => self.fragment_offset(is_except, attribute),
            _ if UNMODELLED.contains(&name) => self.unmodelled(keyword, attribute),
            _ if is_except => Err(unknown_condition(keyword)),
            "interface" => self.interfaces(attribute),
            "tcp-flags" => {
                let text = self.reader.value(attribute)?;
                Ok(PacketSet::of(Field::TcpFlags, flags::parse(text)?))
            }
            "source-port-range-optimize" | "destination-port-range-optimize" => {
                Ok(PacketSet::all())
            }
            _ if is_bookkeeping(name) => Ok(PacketSet::all()),
            _ => {
                let packets = alias(name).ok_or_else(|| unknown_condition(keyword))?;
                match attribute.values.first() {
                    None => Ok(packets),
                    Some(value) => {
                        let text = self.reader.tree.text(value.word);
                        Err(Fault::new(text, quoted(text), "the end of the statement"))
                    }
                }
            }
        }
    }

    fn ranges(&self, attribute: &Attribute, names: Names) -> Result<Vec<(u32, u32)>, Fault<'t>> {
        let texts = self.reader.values(attribute)?.into_iter();
        let ranges: Result<Vec<_>, _> = texts.map(|text| names.parse(text)).collect();
        Ok(merged(ranges?))
    }

    /// The policy's field has no extension headers of IPv6, so they are conditions.
    fn protocol(
        &mut self,
        name: &str,
        is_except: bool,
        attribute: &Attribute,
    ) -> Result<PacketSet, Fault<'t>> {
        let keyword = self.reader.tree.text(attribute.keyword);
        let has_extensions = self.families == Families::IPV6 && name == "next-header";
        let extensions = Names::EXTENSION;
        let mut ranges = Vec::new();
        let mut packets = PacketSet::none();
        for text in self.reader.values(attribute)? {
            let (low, high) = match extensions.number(text) {
                Some(number) => (number, number),
                None => Names::PROTOCOL.parse(text)?,
            };
            if has_extensions && low == high && extensions.has(low) {
                let text = format!("next-header {low}");
                let condition = self.reader.condition(self.source, &text, keyword)?;
                packets = packets
                    .union(condition)
                    .map_err(|error| too_many(keyword, error))?;
            } else {
                ranges.push((low, high));
            }
        }
        let protocols = merged(ranges).into_iter();
        let protocols = protocols.map(|(low, high)| Values::range(low, high));
        let packets = packets.union(PacketSet::of(Field::Protocol, protocols));
        let packets = packets.and_then(|packets| match is_except {
            true => PacketSet::all().subtract(&packets),
            false => Ok(packets),
        });
        packets.map_err(|error| too_many(keyword, error))
    }

    /// The field has only the difference between 0 and other offsets, so that some of the
    /// other offsets are a condition.
    fn fragment_offset(
        &mut self,
        is_except: bool,
        attribute: &Attribute,
    ) -> Result<PacketSet, Fault<'t>> {
        let keyword = self.reader.tree.text(attribute.keyword);
        let max = Names::FRAGMENT_OFFSET.max();
        let mut ranges = self.ranges(attribute, Names::FRAGMENT_OFFSET)?;
        if is_except {
            ranges = complement(&ranges, max);
        }
        let has_zero = ranges.first().is_some_and(|range| range.0 == 0);
        let zero = has_zero.then(|| Values::range(0_u8, 1_u8));
        let zero = PacketSet::of(Field::Fragment, zero);
        let later = PacketSet::of(Field::Fragment, [Values::range(2_u8, 3_u8)]);
        let mut later_ranges = Vec::new();
        for &(low, high) in &ranges {
            if high > 0 {
                later_ranges.push((low.max(1), high));
            }
        }
        let later = match later_ranges[..] {
            [] => PacketSet::none(),
            [(1, high)] if high == max => later,
            _ => {
                let texts = later_ranges.iter().map(|(low, high)| match low == high {
                    true => low.to_string(),
                    false => format!("{low}-{high}"),
                });
                let text = format!("fragment-offset {}", texts.collect::<Vec<_>>().join(" "));
                let condition = self.reader.condition(self.source, &text, keyword)?;
                both(&later, &condition, keyword)?
            }
        };
        zero.union(later).map_err(|error| too_many(keyword, error))
    }

    fn interfaces(&mut self, attribute: &Attribute) -> Result<PacketSet, Fault<'t>> {
        let mut names = Vec::new();
        for text in self.reader.values(attribute)? {
            match text.split_once('*') {
                None => names.push(name_value(text)),
                Some((start, "")) => names.push(name_prefix(start)),
                Some(_) => {
                    return Err(Fault::unsupported(
                        text,
                        "`*` inside the name of an interface",
                        "`*` at the end of a name",
                    ));
                }
            }
        }
        Ok(PacketSet::of(Field::InInterface, names))
    }

    fn unmodelled(
        &mut self,
        keyword: &'t str,
        attribute: &Attribute,
    ) -> Result<PacketSet, Fault<'t>> {
        let tree = self.reader.tree;
        let values = attribute.values.iter();
        let mut values: Vec<String> = values
            .map(|value| match is_whole(keyword) {
                true => tree.statement(value.word),
                false => tree.text(value.word).to_owned(),
            })
            .collect();
        values.sort_unstable();
        let text = [&[keyword.to_owned()], &values[..]].concat().join(" ");
        self.reader.condition(self.source, &text, keyword)
    }
}

/// Returns the packets of a condition without values.
fn alias(name: &str) -> Option<PacketSet> {
    let flags = |value, mask| Values::bits(value, mask);
    Some(match name {
        "tcp-established" => {
            PacketSet::of(Field::TcpFlags, [flags(ACK, ACK), flags(RST, RST | ACK)])
        }
        "tcp-initial" => PacketSet::of(Field::TcpFlags, [flags(SYN, SYN | ACK)]),
        "first-fragment" => PacketSet::of(Field::Fragment, [Values::number(1_u8)]),
        "is-fragment" => PacketSet::of(Field::Fragment, [Values::range(2_u8, 3_u8)]),
        _ => return None,
    })
}

fn unknown_condition(keyword: &str) -> Fault<'_> {
    match keyword == "filter" {
        true => Fault::unsupported(keyword, "a filter in a term", "the terms of that filter"),
        false => Fault::unsupported(
            keyword,
            format!("the condition {}", quoted(keyword)),
            "a condition on addresses, protocols, ports, ICMP, TCP flags or fragments",
        ),
    }
}

/// Returns the packets whose fields have, or do not have, a value in ranges.
fn of_ranges(
    ranges: &[(u32, u32)],
    max: u32,
    is_except: bool,
    fields: &[Field],
) -> Result<PacketSet, crate::packets::TooManyBoxes> {
    let packets_in = |field: &Field, ranges: &[(u32, u32)]| {
        let values = ranges.iter().map(|&(low, high)| Values::range(low, high));
        PacketSet::of(*field, values)
    };
    let other_ranges = complement(ranges, max);
    match is_except {
        true => fields.iter().try_fold(PacketSet::all(), |packets, field| {
            packets.intersect(&packets_in(field, &other_ranges))
        }),
        false => fields.iter().try_fold(PacketSet::none(), |packets, field| {
            packets.union(packets_in(field, ranges))
        }),
    }
}

fn both<'t>(
    packets: &PacketSet,
    others: &PacketSet,
    part: &'t str,
) -> Result<PacketSet, Fault<'t>> {
    packets
        .intersect(others)
        .map_err(|error| too_many(part, error))
}

/// Returns the prefixes of a list of `policy-options`.
fn named_list<'t>(
    reader: &mut Reader<'_, '_, 't>,
    name: &'t str,
) -> Result<PrefixList<'t>, Fault<'t>> {
    if let Some(prefixes) = reader.prefix_lists.get(name) {
        return Ok(prefixes.clone());
    }
    let tree = reader.tree;
    let Some(list) = tree.at(&["policy-options", "prefix-list", name]) else {
        let message = format!("the prefix list {} is not in the file", quoted(name));
        return Err(Fault::new(name, message, "a prefix list of the file"));
    };
    let mut prefixes = PrefixList::default();
    for word in tree.children(list) {
        match tree.text(word) {
            "apply-path" => {
                for path in tree.children(word) {
                    add_path(reader, tree.text(path), &mut prefixes)?;
                }
            }
            text if is_bookkeeping(text) => {}
            text => {
                reader.expect_leaf(word)?;
                prefixes.add(text, false)?;
            }
        }
    }
    reader.prefix_lists.insert(name, prefixes.clone());
    Ok(prefixes)
}

/// Adds the addresses that a pattern of statements selects. Other words are ignored.
fn add_path<'t>(
    reader: &Reader<'_, '_, 't>,
    path: &'t str,
    prefixes: &mut PrefixList<'t>,
) -> Result<(), Fault<'t>> {
    let tree = reader.tree;
    if path.len() > MAX_PATH_BYTES {
        let message = format!("an `apply-path` of more than {MAX_PATH_BYTES} bytes");
        return Err(Fault::new(path, message, "a shorter path"));
    }
    let first = path.split_whitespace().next().unwrap_or("");
    let groups = tree.at(&["groups"]);
    let mut groups = groups.into_iter().flat_map(|groups| tree.children(groups));
    if first != "interfaces" && groups.any(|group| tree.child(group, first).is_some()) {
        return Err(Fault::unsupported(
            path,
            "`apply-path` through statements that a group may have",
            "a list of prefixes",
        ));
    }
    for word in groups::select(tree, path) {
        if parse_prefix(tree.text(word)).is_ok() {
            prefixes.add(tree.text(word), false)?;
        }
    }
    Ok(())
}
