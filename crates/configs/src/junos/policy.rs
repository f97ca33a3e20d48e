//! Security policies of SRX firewalls.
//!
//! All policies are the list `policies`. A policy of a pair of zones matches packets whose
//! fields `in` and `out` are the zones, so policies of different pairs do not overlap. The
//! global policies follow, and then the default: `deny-all` unless the file states another.
//!
//! A device examines the policies for the first packet of a session; later packets follow the
//! session. So the list says what happens to packets that start a session.
//!
//! | statements | effect |
//! |---|---|
//! | `source-address`, `destination-address`, with `-excluded` | addresses of the zone's books, then of the book `global` |
//! | `application` | protocols, ports and ICMP types of applications and sets |
//! | `from-zone`, `to-zone` of global policies | the zones |
//! | [`UNMODELLED`], such as `dynamic-application`; `scheduler-name` | a condition for each statement |
//! | `permit`, `deny`, `reject` | the action; services and tunnels after `permit` give a note |
//! | `log`, `count`, `description` | none; the description is the comment |
//! | others | a fault with their name |

use classyard_text::Fault;
use classyard_text::line::quoted;
use classyard_workload::diagnostic::ReadError;

use super::address_book::{AddressBooks, Names, children_at};
use super::application;
use super::prefixes::too_many;
use super::statements::{Attribute, Reader, is_bookkeeping};
use super::tree::WordId;
use crate::builder::{DENY, PERMIT, REJECT, SourceId};
use crate::packets::{Field, PacketSet, name_value};

/// The name of the list.
pub(super) const LIST: &str = "policies";

/// Statements of `security policies` that decide nothing.
const OPTIONS: [&str; 7] = [
    "default-policy",
    "log",
    "policy-rematch",
    "policy-stats",
    "pre-id-default-policy",
    "traceoptions",
    "unified-policy",
];

/// Conditions of `match` that no field can express, with the values that always hold.
const UNMODELLED: [(&str, &[&str]); 7] = [
    ("dynamic-application", &["any", "none"]),
    ("source-identity", &["any"]),
    ("source-end-user-profile", &[]),
    ("url-category", &["any", "none"]),
    ("source-l3vpn-vrf-group", &["any"]),
    ("destination-l3vpn-vrf-group", &["any"]),
    ("dynamic-application-group", &[]),
];

/// The zones of a policy; `None` for global policies.
type Zones<'t> = Option<(&'t str, &'t str)>;

/// Reads all policies.
pub(super) fn read(reader: &mut Reader<'_, '_, '_>) -> Result<(), ReadError> {
    let tree = reader.tree;
    let Some(policies) = tree.at(&["security", "policies"]) else {
        return Ok(());
    };
    let books = AddressBooks::new(tree);
    for word in tree.children(policies) {
        match tree.text(word) {
            "from-zone" => {
                for from in tree.children(word) {
                    read_pairs(reader, &books, from)?;
                }
            }
            "global" => {}
            text if OPTIONS.contains(&text) || is_bookkeeping(text) => {}
            text => reader.problem(Fault::unsupported(
                text,
                format!("{} of `security policies`", quoted(text)),
                "`from-zone`, `global` or `default-policy`",
            )),
        }
    }
    if let Some(global) = tree.child(policies, "global") {
        read_list(reader, &books, (global, None))?;
    }
    read_default(reader, policies)
}

/// Reads the policies from a zone.
fn read_pairs<'t>(
    reader: &mut Reader<'_, '_, 't>,
    books: &AddressBooks<'t>,
    from: WordId,
) -> Result<(), ReadError> {
    let tree = reader.tree;
    for word in tree.children(from) {
        let text = tree.text(word);
        if text != "to-zone" {
            reader.problem(Fault::new(text, quoted(text), "`to-zone`"));
            continue;
        }
        for to in tree.children(word) {
            let zones = (tree.text(from), tree.text(to));
            match [zones.0, zones.1].into_iter().find(|zone| *zone == "any") {
                Some(zone) => reader.problem(Fault::unsupported(
                    zone,
                    "the zone `any` outside of global policies",
                    "the name of a zone",
                )),
                None => read_list(reader, books, (to, Some(zones)))?,
            }
        }
    }
    Ok(())
}

/// Reads the policies of a pair of zones, or the global policies.
fn read_list<'t>(
    reader: &mut Reader<'_, '_, 't>,
    books: &AddressBooks<'t>,
    (list, zones): (WordId, Zones<'t>),
) -> Result<(), ReadError> {
    let tree = reader.tree;
    for word in tree.children(list) {
        let text = tree.text(word);
        match text {
            "policy" => {
                for policy in tree.children(word) {
                    read_policy(reader, books, (policy, zones))?;
                }
            }
            _ if is_bookkeeping(text) => {}
            _ => {
                let message = format!("{} in a list of policies", quoted(text));
                reader.problem(Fault::unsupported(text, message, "`policy`"));
            }
        }
    }
    Ok(())
}

fn read_policy<'t>(
    reader: &mut Reader<'_, '_, 't>,
    books: &AddressBooks<'t>,
    (policy, zones): (WordId, Zones<'t>),
) -> Result<(), ReadError> {
    let tree = reader.tree;
    let source = reader.source(policy, LIST);
    if let Some(description) = tree.child(policy, "description") {
        let text = tree
            .children(description)
            .next()
            .map(|text| tree.text(text).to_owned());
        let statement = reader.builder.source_mut(source);
        statement.comment = text.or_else(|| statement.comment.take());
    }
    let decided = action(reader, policy).and_then(|action| {
        let mut conditions = Match {
            reader,
            books,
            source,
            zones,
        };
        Ok((conditions.packets(policy)?, action))
    });
    match decided {
        Ok((packets, action)) => reader.builder.add(source, packets, action),
        Err(fault) => {
            reader.problem(fault);
            Ok(())
        }
    }
}

/// The conditions of a policy while they are read.
struct Match<'r, 'a, 'o, 't> {
    reader: &'r mut Reader<'a, 'o, 't>,
    books: &'r AddressBooks<'t>,
    source: SourceId,
    zones: Zones<'t>,
}

impl<'t> Match<'_, '_, '_, 't> {
    fn packets(&mut self, policy: WordId) -> Result<PacketSet, Fault<'t>> {
        let tree = self.reader.tree;
        let name = tree.text(policy);
        let conditions = tree.child(policy, "match");
        let attributes = match conditions {
            Some(conditions) => self.reader.attributes(conditions, |_| false),
            None => Vec::new(),
        };
        let has = |keyword| {
            attributes
                .iter()
                .any(|other| tree.text(other.keyword) == keyword)
        };
        for keyword in ["source-address", "destination-address", "application"] {
            let is_optional = keyword == "application" && has("dynamic-application");
            if !has(keyword) && !is_optional {
                let message = format!("the policy {} has no {}", quoted(name), quoted(keyword));
                return Err(Fault::new(name, message, "a complete policy"));
            }
        }
        let list = self.reader.builder.list(LIST);
        let mut packets = list.map_err(|fault| Fault::new(name, fault.found(), "another name"))?;
        if let Some(scheduler) = tree.child(policy, "scheduler-name") {
            let values = tree.children(scheduler).map(|value| tree.text(value));
            let text = format!("scheduler-name {}", values.collect::<Vec<_>>().join(" "));
            let condition = self.reader.condition(self.source, &text, name)?;
            packets = self.both(&packets, &condition, name)?;
        }
        for (field, keyword) in [
            (Field::InInterface, "from-zone"),
            (Field::OutInterface, "to-zone"),
        ] {
            let is_from = keyword == "from-zone";
            let names = match self.zones {
                Some((from, to)) => vec![if is_from { from } else { to }],
                None => {
                    let mut attributes = attributes.iter();
                    match attributes.find(|attribute| tree.text(attribute.keyword) == keyword) {
                        Some(attribute) => self.reader.values(attribute)?,
                        None => continue,
                    }
                }
            };
            if !names.contains(&"any") {
                let selected = PacketSet::of(field, names.into_iter().map(name_value));
                packets = self.both(&packets, &selected, name)?;
            }
        }
        for attribute in &attributes {
            let selected = self.condition(attribute, has)?;
            packets = self.both(&packets, &selected, name)?;
        }
        Ok(packets)
    }

    fn both(
        &self,
        packets: &PacketSet,
        others: &PacketSet,
        part: &'t str,
    ) -> Result<PacketSet, Fault<'t>> {
        packets
            .intersect(others)
            .map_err(|error| too_many(part, error))
    }

    /// Returns the packets for which a condition holds. `has` is true for the
    /// keywords of the policy.
    fn condition(
        &mut self,
        attribute: &Attribute,
        has: impl Fn(&'static str) -> bool,
    ) -> Result<PacketSet, Fault<'t>> {
        let keyword = self.reader.tree.text(attribute.keyword);
        let addresses = match keyword {
            "source-address" => {
                let zone = self.zones.map(|zones| zones.0);
                Some((Field::Source, zone, has("source-address-excluded")))
            }
            "destination-address" => {
                let zone = self.zones.map(|zones| zones.1);
                Some((
                    Field::Destination,
                    zone,
                    has("destination-address-excluded"),
                ))
            }
            _ => None,
        };
        if let Some((field, zone, is_excluded)) = addresses {
            let names = Names {
                field,
                zone,
                keyword,
                names: &self.reader.values(attribute)?,
                is_excluded,
            };
            return self.books.packets(self.reader, self.source, &names);
        }
        match keyword {
            "application" => {
                let names = self.reader.values(attribute)?;
                application::packets(self.reader, self.source, &names)
            }
            "from-zone" | "to-zone" if self.zones.is_none() => Ok(PacketSet::all()),
            "source-address-excluded" | "destination-address-excluded" => Ok(PacketSet::all()),
            _ if is_bookkeeping(keyword) => Ok(PacketSet::all()),
            _ => self.unmodelled(keyword, attribute),
        }
    }

    fn unmodelled(
        &mut self,
        keyword: &'t str,
        attribute: &Attribute,
    ) -> Result<PacketSet, Fault<'t>> {
        let Some((_, neutral)) = UNMODELLED.iter().find(|(name, _)| *name == keyword) else {
            return Err(Fault::unsupported(
                keyword,
                format!("the condition {} of a policy", quoted(keyword)),
                "addresses and applications",
            ));
        };
        let mut values = self.reader.values(attribute)?;
        if values.iter().any(|value| neutral.contains(value)) {
            return Ok(PacketSet::all());
        }
        values.sort_unstable();
        let text = format!("{keyword} {}", values.join(" "));
        self.reader.condition(self.source, &text, keyword)
    }
}

/// Returns the action of a policy.
fn action<'t>(reader: &mut Reader<'_, '_, 't>, policy: WordId) -> Result<&'static str, Fault<'t>> {
    let tree = reader.tree;
    for word in tree.children(policy) {
        match tree.text(word) {
            "match" | "then" | "description" | "scheduler-name" => {}
            text if is_bookkeeping(text) => {}
            text => {
                let message = format!("{} in a policy", quoted(text));
                return Err(Fault::unsupported(text, message, "`match` or `then`"));
            }
        }
    }
    let mut action = None;
    let then = tree.child(policy, "then");
    for word in then.into_iter().flat_map(|then| tree.children(then)) {
        let text = tree.text(word);
        let other = match text {
            "permit" => {
                check_permit(reader, word)?;
                PERMIT
            }
            "deny" => DENY,
            "reject" => REJECT,
            "count" | "log" => continue,
            _ if is_bookkeeping(text) => continue,
            _ => {
                let message = format!("the action {} of a policy", quoted(text));
                return Err(Fault::unsupported(text, message, "permit, deny or reject"));
            }
        };
        if action.replace(other).is_some() {
            let message = format!("{} after another action", quoted(text));
            return Err(Fault::new(text, message, "one of permit, deny and reject"));
        }
    }
    action.ok_or_else(|| {
        let name = tree.text(policy);
        let message = format!("the policy {} has no action", quoted(name));
        Fault::new(name, message, "permit, deny or reject after `then`")
    })
}

/// Checks what a policy requires of packets that it permits.
fn check_permit<'t>(reader: &mut Reader<'_, '_, 't>, permit: WordId) -> Result<(), Fault<'t>> {
    let tree = reader.tree;
    for word in tree.children(permit) {
        let text = tree.text(word);
        match text {
            "application-services" | "firewall-authentication" | "tunnel" => {
                reader.builder.note(format!(
                    "policies with `permit {text}` count as permitting; what the service drops \
                     is not modelled"
                ));
            }
            "tcp-options" | "services-offload" | "advanced-connection-tracking" => {}
            _ if is_bookkeeping(text) => {}
            _ => {
                let message = format!("{} after `permit`", quoted(text));
                return Err(Fault::unsupported(text, message, "`permit` alone"));
            }
        }
    }
    Ok(())
}

/// Adds the rule for packets that no policy decides.
fn read_default(reader: &mut Reader<'_, '_, '_>, policies: WordId) -> Result<(), ReadError> {
    let tree = reader.tree;
    let mut stated = None;
    for word in children_at(tree, &["security", "policies", "default-policy"]) {
        let text = tree.text(word);
        match (text, stated) {
            ("permit-all" | "deny-all", None) => stated = Some(word),
            ("reject-all", None) => stated = Some(word),
            _ => {
                let fault = Fault::new(text, quoted(text), "one of permit-all and deny-all");
                reader.problem(fault);
                return Ok(());
            }
        }
    }
    let (source, action) = match stated {
        Some(word) => {
            let action = match tree.text(word) {
                "permit-all" => PERMIT,
                "reject-all" => REJECT,
                _ => DENY,
            };
            (reader.source(word, LIST), action)
        }
        None => {
            let text = "default-policy deny-all";
            (reader.implied_source(policies, text, LIST), DENY)
        }
    };
    reader.builder.source_mut(source).is_default = true;
    match reader.builder.list(LIST) {
        Ok(list) => reader.builder.add(source, list, action),
        Err(fault) => {
            let message = fault.found().to_owned();
            let part = tree.text(policies);
            reader.problem(Fault::new(part, message, "another name of the filter"));
            Ok(())
        }
    }
}
