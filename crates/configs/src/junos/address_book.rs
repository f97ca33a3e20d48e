//! Address books of security policies.
//!
//! A name of a policy is looked up in the books that are attached to the policy's zone, then
//! in the book `global`.

use std::collections::{HashMap, HashSet};
use std::net::Ipv4Addr;

use classyard_text::Fault;
use classyard_text::line::quoted;

use super::prefixes::{PrefixList, bad_prefix, parse_prefix, too_many};
use super::statements::{Reader, is_bookkeeping};
use super::tree::{Tree, WordId};
use crate::builder::SourceId;
use crate::packets::{
    AddressError, Families, Field, PacketSet, Values, range_of_addresses, wildcard,
};

/// The maximum number of address sets, or sets of applications, inside each other.
pub(super) const MAX_SETS: usize = 32;

/// The books of each zone.
#[derive(Debug, Default)]
pub(super) struct AddressBooks<'t> {
    /// The books of zones, in the order of lookups.
    of_zones: HashMap<&'t str, Vec<WordId>>,
    global: Option<WordId>,
}

/// What names of a policy stand for.
#[derive(Debug, Default)]
struct Addresses<'t> {
    prefixes: PrefixList<'t>,
    /// Networks of ranges and of wildcard addresses.
    networks: Vec<(Families, Values)>,
    /// Domain names.
    domains: Vec<&'t str>,
}

/// The names that a policy lists for one end of a connection.
pub(super) struct Names<'a, 't> {
    pub(super) field: Field,
    pub(super) zone: Option<&'t str>,
    pub(super) keyword: &'t str,
    pub(super) names: &'a [&'t str],
    /// True if the policy selects the other addresses.
    pub(super) is_excluded: bool,
}

impl<'t> AddressBooks<'t> {
    /// Finds the books of a configuration.
    pub(super) fn new(tree: &Tree<'t>) -> AddressBooks<'t> {
        let mut books = AddressBooks::default();
        for zone in children_at(tree, &["security", "zones", "security-zone"]) {
            let zone_book = tree.child(zone, "address-book");
            books
                .of_zones
                .entry(tree.text(zone))
                .or_default()
                .extend(zone_book);
        }
        for book in children_at(tree, &["security", "address-book"]) {
            if tree.text(book) == "global" {
                books.global = Some(book);
            }
            let zones = tree.child(book, "attach");
            let zones = zones.and_then(|attach| tree.child(attach, "zone"));
            for zone in zones.into_iter().flat_map(|zones| tree.children(zones)) {
                books
                    .of_zones
                    .entry(tree.text(zone))
                    .or_default()
                    .push(book);
            }
        }
        books
    }

    /// Returns the packets with an address of the names, or the other packets.
    pub(super) fn packets(
        &self,
        reader: &mut Reader<'_, '_, 't>,
        source: SourceId,
        names: &Names<'_, 't>,
    ) -> Result<PacketSet, Fault<'t>> {
        let mut addresses = Addresses::default();
        let mut selected = PacketSet::none();
        let large = |error| too_many(names.keyword, error);
        for name in names.names {
            let families = match *name {
                "any" => Families::BOTH,
                "any-ipv4" => Families::IPV4,
                "any-ipv6" => Families::IPV6,
                _ => {
                    let (book, word) = self.find(reader.tree, names.zone, name)?;
                    add_name(reader, (book, word), &mut addresses)?;
                    continue;
                }
            };
            selected = selected
                .union(PacketSet::of_families(families))
                .map_err(large)?;
        }
        let field = names.field;
        for domain in &addresses.domains {
            let text = match field {
                Field::Source => format!("source dns-name {domain}"),
                _ => format!("destination dns-name {domain}"),
            };
            let condition = reader.condition(source, &text, names.keyword)?;
            selected = selected.union(condition).map_err(large)?;
        }
        let networks = PacketSet::of_addresses(field, addresses.networks);
        selected = selected.union(networks).map_err(large)?;
        if names.is_excluded {
            let other_packets = addresses.prefixes.other_packets(field)?;
            return other_packets.subtract(&selected).map_err(large);
        }
        selected
            .union(addresses.prefixes.packets(field)?)
            .map_err(large)
    }

    /// Returns the address or address set with a name, and its book.
    fn find(
        &self,
        tree: &Tree<'t>,
        zone: Option<&str>,
        name: &'t str,
    ) -> Result<(WordId, WordId), Fault<'t>> {
        let of_zone = zone.and_then(|zone| self.of_zones.get(zone));
        let mut books = of_zone.into_iter().flatten().copied().chain(self.global);
        let entry = books.find_map(|book| Some((book, entry(tree, book, name)?)));
        entry.ok_or_else(|| {
            let zone = zone.map_or(String::new(), |zone| {
                format!(" of the zone {}", quoted(zone))
            });
            let message = format!(
                "the address {} is not in an address book{zone}",
                quoted(name)
            );
            Fault::new(name, message, "an address of a book, or `any`")
        })
    }
}

/// Returns the words below a path.
pub(super) fn children_at<'a, 't>(
    tree: &'a Tree<'t>,
    path: &[&str],
) -> impl Iterator<Item = WordId> + use<'a, 't> {
    tree.at(path)
        .into_iter()
        .flat_map(|word| tree.children(word))
}

/// Returns the address or address set of a book.
fn entry(tree: &Tree<'_>, book: WordId, name: &str) -> Option<WordId> {
    let kinds = ["address", "address-set"].into_iter();
    let mut entries = kinds.filter_map(|kind| tree.child(tree.child(book, kind)?, name));
    entries.next()
}

/// Adds what an address or an address set of a book stands for.
fn add_name<'t>(
    reader: &Reader<'_, '_, 't>,
    (book, word): (WordId, WordId),
    addresses: &mut Addresses<'t>,
) -> Result<(), Fault<'t>> {
    let tree = reader.tree;
    let mut added = HashSet::new();
    // The sets that are being added, each with its members that are not added yet.
    let mut path: Vec<(WordId, Vec<WordId>)> = vec![(word, vec![word])];
    while let Some((_, members)) = path.last_mut() {
        let Some(member) = members.pop() else {
            path.pop();
            continue;
        };
        let is_set = tree.text(tree.parent(member)) == "address-set";
        if !is_set {
            if added.insert(member) {
                add_address(reader, member, addresses)?;
            }
            continue;
        }
        let is_start = path.len() == 1 && member == word;
        if !is_start && path.iter().any(|(set, _)| *set == member) {
            let message = format!("the address set {} has itself", quoted(tree.text(member)));
            return Err(Fault::new(
                tree.text(member),
                message,
                "sets without a loop",
            ));
        }
        if path.len() > MAX_SETS {
            let message = format!("more than {MAX_SETS} address sets inside each other");
            return Err(Fault::new(tree.text(member), message, "fewer sets"));
        }
        if added.insert(member) {
            path.push((member, members_of(reader, book, member)?));
        }
    }
    Ok(())
}

/// Returns the addresses and sets of an address set, the last one first.
fn members_of<'t>(
    reader: &Reader<'_, '_, 't>,
    book: WordId,
    set: WordId,
) -> Result<Vec<WordId>, Fault<'t>> {
    let tree = reader.tree;
    let mut members = Vec::new();
    for kind in tree.children(set) {
        match tree.text(kind) {
            "address" | "address-set" => {
                for member in tree.children(kind) {
                    let name = tree.text(member);
                    reader.expect_leaf(member)?;
                    let kinds = tree.child(book, tree.text(kind));
                    let entry = kinds.and_then(|kinds| tree.child(kinds, name));
                    members.push(entry.ok_or_else(|| {
                        let message = format!("{} is not in the address book", quoted(name));
                        Fault::new(name, message, "an address or a set of the book")
                    })?);
                }
            }
            "description" => {}
            text if is_bookkeeping(text) => {}
            text => {
                let message = format!("{} in an address set", quoted(text));
                return Err(Fault::unsupported(
                    text,
                    message,
                    "`address` or `address-set`",
                ));
            }
        }
    }
    if members.is_empty() {
        let text = tree.text(set);
        let message = format!("the address set {} is empty", quoted(text));
        return Err(Fault::new(text, message, "a set with an address"));
    }
    members.reverse();
    Ok(members)
}

/// Adds the address that an entry of a book defines.
fn add_address<'t>(
    reader: &Reader<'_, '_, 't>,
    address: WordId,
    addresses: &mut Addresses<'t>,
) -> Result<(), Fault<'t>> {
    let tree = reader.tree;
    let name = tree.text(address);
    let mut count = 0;
    for word in tree.children(address) {
        let text = tree.text(word);
        if text == "description" || is_bookkeeping(text) {
            continue;
        }
        count += 1;
        let value = || {
            let values: Vec<WordId> = tree.children(word).collect();
            match values[..] {
                [value] => Ok(value),
                _ => {
                    let message = format!("{} without one value", quoted(text));
                    Err(Fault::new(text, message, "one value after it"))
                }
            }
        };
        match text {
            "ip-prefix" => addresses.prefixes.add(tree.text(value()?), false)?,
            "dns-name" => addresses.domains.push(tree.text(value()?)),
            "range-address" => {
                let networks = range(tree, value()?)?;
                addresses.networks.extend(networks);
            }
            "wildcard-address" => {
                let text = tree.text(value()?);
                let network = masked(text).map_err(|error| bad_prefix(text, error))?;
                addresses.networks.push(network);
            }
            _ => {
                parse_prefix(text).map_err(|error| bad_prefix(text, error))?;
                addresses.prefixes.add(text, false)?;
                reader.expect_leaf(word)?;
            }
        }
    }
    match count {
        1 => Ok(()),
        _ => {
            let message = format!("the address {} has {count} values", quoted(name));
            Err(Fault::new(name, message, "one prefix, range or name"))
        }
    }
}

/// Returns the networks of `LOW to HIGH`.
fn range<'t>(tree: &Tree<'t>, low: WordId) -> Result<Vec<(Families, Values)>, Fault<'t>> {
    let text = tree.text(low);
    let high = tree.child(low, "to");
    let high = high.and_then(|to| tree.children(to).next());
    let high = high.ok_or_else(|| {
        Fault::new(
            text,
            format!("{} without `to`", quoted(text)),
            "a first and a last address",
        )
    })?;
    let bad = |text: &'t str| bad_prefix(text, AddressError::Form);
    let first_address = text.parse().map_err(|_| bad(text))?;
    let last_address = tree.text(high).parse().map_err(|_| bad(tree.text(high)))?;
    range_of_addresses(first_address, last_address).map_err(|error| bad_prefix(text, error))
}

/// Parses `ADDRESS/MASK`; the bits of the mask must agree.
fn masked(text: &str) -> Result<(Families, Values), AddressError> {
    let (address, mask) = text.split_once('/').ok_or(AddressError::Form)?;
    let address: Ipv4Addr = address.parse().map_err(|_| AddressError::Form)?;
    let mask: Ipv4Addr = match mask.parse() {
        Ok(mask) => mask,
        Err(_) => return parse_prefix(text),
    };
    wildcard(address.into(), Ipv4Addr::from_bits(!mask.to_bits()).into())
}
