//! The sets of `ipset save`.
//!
//! | set | an element matches |
//! |---|---|
//! | `hash:ip`, `bitmap:ip`, `hash:net` | an address; of networks, the smallest one counts |
//! | `hash:ip,port`, `hash:net,port`, `hash:ip,port,ip`, `hash:ip,port,net`, `hash:net,port,net` | addresses, and a protocol with its port or its ICMP type and code |
//! | `hash:net,net`, `hash:net,iface` | two networks, or a network and an interface |
//! | `bitmap:port` | a port of TCP or UDP |
//! | `list:set` | an element of a set of the list |
//! | sets with `mac` or `mark` | a condition |
//!
//! A set has the elements that it had when it was saved; timeouts are noted.

use std::collections::HashMap;

use classyard_text::Fault;
use classyard_text::line::quoted;

use super::words::{self, Word};
use crate::packets::{Families, PacketSet};

mod element;
mod intervals;
mod lookup;

pub(super) use lookup::{Directions, LookupError};

use element::Item;
use lookup::Lookup;

/// The maximum number of elements of all sets, after ranges are split into networks.
const MAX_ELEMENTS: usize = 1 << 20;

/// A field of the elements of a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Dimension {
    Address,
    Network,
    Port,
    Interface,
}

/// The kind of a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Fields(&'static [Dimension]),
    /// Ports of TCP and UDP.
    Ports,
    /// Other sets.
    Sets,
    /// Elements that no field expresses.
    NotModelled,
}

impl Kind {
    fn of(name: &str) -> Option<Kind> {
        use Dimension::{Address, Interface, Network, Port};
        Some(match name {
            "hash:ip" | "bitmap:ip" => Kind::Fields(&[Address]),
            "hash:net" => Kind::Fields(&[Network]),
            "hash:ip,port" => Kind::Fields(&[Address, Port]),
            "hash:net,port" => Kind::Fields(&[Network, Port]),
            "hash:ip,port,ip" => Kind::Fields(&[Address, Port, Address]),
            "hash:ip,port,net" => Kind::Fields(&[Address, Port, Network]),
            "hash:net,port,net" => Kind::Fields(&[Network, Port, Network]),
            "hash:net,net" => Kind::Fields(&[Network, Network]),
            "hash:net,iface" => Kind::Fields(&[Network, Interface]),
            "bitmap:port" => Kind::Ports,
            "list:set" => Kind::Sets,
            "hash:mac" | "hash:ip,mac" | "bitmap:ip,mac" | "hash:ip,mark" => Kind::NotModelled,
            _ => return None,
        })
    }

    fn dimensions(self) -> u8 {
        match self {
            Kind::Fields(dimensions) => dimensions.len().try_into().unwrap_or(u8::MAX),
            Kind::Ports | Kind::Sets | Kind::NotModelled => 1,
        }
    }
}

/// An element: an item for each dimension.
#[derive(Clone, Debug)]
struct Element<'t> {
    items: Vec<Item<'t>>,
    /// True if the element excludes packets from larger elements.
    is_excluded: bool,
}

#[derive(Debug)]
struct IpSet<'t> {
    name: &'t str,
    kind: Kind,
    family: Families,
    /// The prefix length to which addresses are cut.
    netmask: Option<u32>,
    elements: Vec<Element<'t>>,
    /// The names of the sets of a list.
    members: Vec<&'t str>,
    expires: bool,
}

/// The sets of a file.
#[derive(Debug, Default)]
pub(super) struct Sets<'t> {
    sets: Vec<IpSet<'t>>,
    numbers: HashMap<&'t str, usize>,
    elements: usize,
    /// Results of lookups. A lookup that has not ended has an error.
    cache: HashMap<Lookup, Result<PacketSet, LookupError>>,
    cached_boxes: usize,
}

impl<'t> Sets<'t> {
    /// Reads a line that starts with `create`, `add` or another command of ipset. Returns the
    /// element that it adds, with the name of the set.
    pub(super) fn read_line(
        &mut self,
        line: &'t str,
    ) -> Result<Option<(&'t str, &'t str)>, Fault<'t>> {
        let words = words::split(line)?;
        let mut words = words.iter();
        let command = words.next().ok_or_else(|| missing(line, "a command"))?;
        let name = words.next().ok_or_else(|| missing(line, "a set"))?;
        let content = words.next();
        match command.text {
            "create" => {
                let kind = content.ok_or_else(|| missing(line, "a type such as hash:ip"))?;
                self.create(line, name.slice(), kind, words)?;
                Ok(None)
            }
            "add" => {
                let element = content.ok_or_else(|| missing(line, "an element"))?;
                self.add(line, name.slice(), element, words)?;
                Ok(Some((element.slice(), name.slice())))
            }
            _ => Err(Fault::unsupported(
                command.text,
                format!("the command {} of ipset", quoted(command.text)),
                "`create` and `add`, as ipset save prints",
            )),
        }
    }

    fn create<'w>(
        &mut self,
        line: &'t str,
        name: &'t str,
        kind: &Word<'t>,
        options: impl Iterator<Item = &'w Word<'t>>,
    ) -> Result<(), Fault<'t>>
    where
        't: 'w,
    {
        if self.numbers.contains_key(name) {
            return Err(Fault::new(
                name,
                format!("a second set {}", quoted(name)),
                "one definition of each set",
            ));
        }
        let mut set = IpSet {
            name,
            kind: Kind::of(kind.text).unwrap_or(Kind::NotModelled),
            family: Families::IPV4,
            netmask: None,
            elements: Vec::new(),
            members: Vec::new(),
            expires: false,
        };
        let options = match Kind::of(kind.text) {
            Some(_) => set.read_options(line, options),
            None => Err(Fault::unsupported(
                kind.text,
                format!("the type {} of sets", quoted(kind.text)),
                "a type such as hash:ip, hash:net,port, bitmap:port or list:set",
            )),
        };
        // The set exists in spite of a fault, so that its elements have no further faults.
        self.numbers.insert(name, self.sets.len());
        self.sets.push(set);
        options
    }

    fn add<'w>(
        &mut self,
        line: &'t str,
        name: &'t str,
        element: &Word<'t>,
        options: impl Iterator<Item = &'w Word<'t>>,
    ) -> Result<(), Fault<'t>>
    where
        't: 'w,
    {
        let number = self.numbers.get(name).ok_or_else(|| {
            Fault::new(
                name,
                format!(
                    "an element of the set {}, which is not defined",
                    quoted(name)
                ),
                "`create` with the set's name in an earlier line",
            )
        })?;
        let set = &mut self.sets[*number];
        let options = ElementOptions::read(line, options)?;
        set.expires |= options.expires;
        let elements_before = set.elements.len();
        match set.kind {
            Kind::NotModelled => {}
            Kind::Sets => set.members.push(element.slice()),
            _ => element::read(set, element.slice(), &options)?,
        }
        self.elements += set.elements.len() - elements_before;
        match self.elements > MAX_ELEMENTS {
            true => Err(Fault::new(
                element.text,
                format!("more than {MAX_ELEMENTS} elements of sets"),
                "fewer elements, or larger networks",
            )),
            false => Ok(()),
        }
    }

    /// Returns the names of the sets whose elements expire.
    pub(super) fn expiring(&self) -> impl Iterator<Item = &'t str> {
        let sets = self.sets.iter().filter(|set| set.expires);
        sets.map(|set| set.name)
    }

    /// True if there is a set with this name.
    pub(super) fn has(&self, name: &str) -> bool {
        self.numbers.contains_key(name)
    }
}

impl<'t> IpSet<'t> {
    /// Reads the options of a set.
    fn read_options<'w>(
        &mut self,
        line: &'t str,
        mut options: impl Iterator<Item = &'w Word<'t>>,
    ) -> Result<(), Fault<'t>>
    where
        't: 'w,
    {
        while let Some(option) = options.next() {
            match option.text {
                "counters" | "comment" | "skbinfo" | "forceadd" | "-exist" => {}
                "hashsize" | "maxelem" | "timeout" | "bucketsize" | "initval" | "markmask"
                | "size" | "range" => {
                    value(line, option, &mut options)?;
                }
                "family" => {
                    let family = value(line, option, &mut options)?;
                    self.family = match family.text {
                        "inet" => Families::IPV4,
                        "inet6" => Families::IPV6,
                        other => {
                            return Err(Fault::new(other, quoted(other), "`inet` or `inet6`"));
                        }
                    };
                }
                "netmask" => {
                    let length = value(line, option, &mut options)?;
                    self.netmask = Some(element::prefix_length(length.text, self.family)?);
                }
                other => {
                    return Err(Fault::unsupported(
                        other,
                        format!("the option {} of sets", quoted(other)),
                        "family, netmask, range, timeout or a size",
                    ));
                }
            }
        }
        Ok(())
    }
}

/// The options of an element.
struct ElementOptions {
    is_excluded: bool,
    expires: bool,
    /// True if the element's interface is the start of names.
    is_wildcard: bool,
}

impl ElementOptions {
    fn read<'t: 'w, 'w>(
        line: &'t str,
        mut options: impl Iterator<Item = &'w Word<'t>>,
    ) -> Result<ElementOptions, Fault<'t>> {
        let mut read = ElementOptions {
            is_excluded: false,
            expires: false,
            is_wildcard: false,
        };
        while let Some(option) = options.next() {
            match option.text {
                "nomatch" => read.is_excluded = true,
                "wildcard" => read.is_wildcard = true,
                "-exist" => {}
                "timeout" => read.expires |= value(line, option, &mut options)?.text != "0",
                "packets" | "bytes" | "comment" | "skbmark" | "skbprio" | "skbqueue" => {
                    value(line, option, &mut options)?;
                }
                other => {
                    return Err(Fault::unsupported(
                        other,
                        format!("the option {} of elements", quoted(other)),
                        "nomatch, wildcard, timeout, comment or counters",
                    ));
                }
            }
        }
        Ok(read)
    }
}

/// Returns the value of an option.
fn value<'w, 't: 'w>(
    line: &'t str,
    option: &Word<'t>,
    words: &mut impl Iterator<Item = &'w Word<'t>>,
) -> Result<&'w Word<'t>, Fault<'t>> {
    words
        .next()
        .ok_or_else(|| missing(line, &format!("the value of `{}`", option.text)))
}

fn missing<'t>(line: &'t str, expected: &str) -> Fault<'t> {
    Fault::missing(line, expected)
}
