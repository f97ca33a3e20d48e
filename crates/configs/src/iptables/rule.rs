//! A rule: the packets that it selects, and its target.

use classyard_text::Fault;
use classyard_text::line::quoted;

use super::matcher::{Context, Matcher};
use super::matches;
use super::modules::{Effect, effect, is_modelled, is_stateless, parse_protocol};
use super::notes::SetNote;
use super::options::{Common, Module, OptionUse, RuleOptions, TargetUse, sort};
use super::words::Word;
use crate::builder::{Builder, DENY, PERMIT, REJECT, SourceId};
use crate::packets::{
    AddressError, Families, Field, PacketSet, Values, name_prefix, name_value, parse_network,
    wildcard,
};

/// The maximum number of bytes of an interface's name.
const INTERFACE_BYTES: usize = 15;

/// A rule's target, with chains by their names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum RuleTarget<'t> {
    Verdict(String),
    Return,
    Continue,
    Jump(&'t str),
    Goto(&'t str),
}

/// A rule that was understood.
#[derive(Clone, Debug)]
pub(super) struct Rule<'t> {
    pub(super) packets: PacketSet,
    /// If the target is `Return` or `Goto`, the packets that the rule does not select. `None`
    /// if they are too many boxes.
    pub(super) others: Option<PacketSet>,
    pub(super) target: RuleTarget<'t>,
    pub(super) comment: Option<String>,
}

/// Reads the rules of a table.
pub(super) struct RuleReader<'a, 'b, 't> {
    pub(super) builder: &'a mut Builder<'b>,
    pub(super) context: &'a mut Context<'t>,
    pub(super) family: Families,
}

impl<'t> RuleReader<'_, '_, 't> {
    /// Reads a rule. `words` are the words of `statement` after the name of the chain.
    pub(super) fn read(
        &mut self,
        statement: &'t str,
        words: &[Word<'t>],
        source: SourceId,
    ) -> Result<Rule<'t>, Fault<'t>> {
        let options = sort(statement, words)?;
        let mut matcher = Matcher {
            builder: self.builder,
            context: self.context,
            family: self.family,
            source,
            statement,
            protocol: protocol(&options)?,
            factors: Vec::new(),
            needs_others: options
                .target
                .as_ref()
                .is_some_and(|target| target.is_goto || target.name == "RETURN"),
        };
        matcher.add_common(&options)?;
        let mut comments = Vec::new();
        for module in &options.modules {
            if module.name == "comment" {
                let texts = module.options.iter().flat_map(|option| option.values);
                comments.extend(texts.map(|word| word.value.as_ref()));
                matcher.refuse_negation(module)?;
                continue;
            }
            matcher.add_module(module)?;
        }
        let target = match &options.target {
            Some(target) => matcher.target(target)?,
            None => RuleTarget::Continue,
        };
        let (packets, others) = matcher.product()?;
        let comment = (!comments.is_empty()).then(|| comments.join(" "));
        Ok(Rule {
            packets,
            others,
            target,
            comment,
        })
    }
}

/// Returns the protocol that a rule is about, 0 for all.
fn protocol<'t>(options: &RuleOptions<'_, 't>) -> Result<u8, Fault<'t>> {
    match options.common(Common::Protocol) {
        None => Ok(0),
        Some(option) => {
            let protocol = parse_protocol(option.value()).ok_or_else(|| {
                Fault::new(
                    option.value(),
                    format!("the protocol {}", quoted(option.value())),
                    "a protocol such as tcp, udp, icmp, all or a number up to 255",
                )
            })?;
            Ok(if option.is_negated { 0 } else { protocol })
        }
    }
}

impl<'t> Matcher<'_, '_, 't> {
    /// Adds the options that need no match.
    fn add_common(&mut self, options: &RuleOptions<'_, 't>) -> Result<(), Fault<'t>> {
        for (common, option) in &options.common {
            let selected = match common {
                Common::Source => self.addresses(Field::Source, option)?,
                Common::Destination => self.addresses(Field::Destination, option)?,
                Common::InInterface => interface(Field::InInterface, option.value())?,
                Common::OutInterface => interface(Field::OutInterface, option.value())?,
                Common::Protocol => protocol_packets(option)?,
                Common::Fragment => self.fragments(option)?,
                Common::Ipv4 => PacketSet::of_families(Families::IPV4),
                Common::Ipv6 => PacketSet::of_families(Families::IPV6),
                Common::Counters => {
                    self.count(option)?;
                    continue;
                }
                Common::Match | Common::Jump | Common::Goto => continue,
            };
            self.require(selected, option.is_negated)?;
        }
        Ok(())
    }

    fn addresses(&self, field: Field, option: &OptionUse<'_, 't>) -> Result<PacketSet, Fault<'t>> {
        let list = option.value();
        if option.is_negated && list.contains(',') {
            return Err(Fault::new(
                list,
                "`!` before several addresses, which iptables does not take",
                "a rule without `!`, or `-m set`",
            ));
        }
        let networks: Result<Vec<_>, _> = list
            .split(',')
            .map(|text| network(text, self.family))
            .collect();
        Ok(PacketSet::of_addresses(field, networks?))
    }

    fn fragments(&self, option: &OptionUse<'_, 't>) -> Result<PacketSet, Fault<'t>> {
        if self.family == Families::IPV6 {
            return Err(Fault::new(
                option.text,
                "`-f` in a rule for IPv6",
                "`-m frag`",
            ));
        }
        Ok(PacketSet::of(Field::Fragment, [Values::range(2u8, 3u8)]))
    }

    fn count(&mut self, option: &OptionUse<'_, 't>) -> Result<(), Fault<'t>> {
        let packets = option.value();
        let hits = packets
            .parse()
            .map_err(|_| Fault::new(packets, quoted(packets), "a number of packets"))?;
        self.builder.source_mut(self.source).hits = Some(hits);
        Ok(())
    }

    /// Adds a match.
    fn add_module(&mut self, module: &Module<'_, 't>) -> Result<(), Fault<'t>> {
        if is_modelled(module.name) {
            return matches::add(self, module);
        }
        let is_altered = self.context.altered.contains(module.name);
        let is_stateless = is_stateless(module.name) && !is_altered;
        let condition = self.opaque_condition(module.text, is_stateless)?;
        self.require(condition, false)
    }

    /// Returns the target. A target may decide a part of the packets only.
    fn target(&mut self, target: &TargetUse<'_, 't>) -> Result<RuleTarget<'t>, Fault<'t>> {
        let effect = match target.is_goto {
            true => None,
            false => effect(target.name),
        };
        let may_have_options = !matches!(
            effect,
            None | Some(Effect::Accept | Effect::Drop | Effect::Return)
        );
        if let Some(option) = target.options.first().filter(|_| !may_have_options) {
            return Err(Fault::unsupported(
                option.text,
                format!("the option {} of the target", quoted(option.text)),
                "an option of iptables, after the -p or -m that it belongs to",
            ));
        }
        Ok(match effect {
            None if target.is_goto => RuleTarget::Goto(target.name),
            None => RuleTarget::Jump(target.name),
            Some(Effect::Accept) => RuleTarget::Verdict(PERMIT.to_owned()),
            Some(Effect::Drop) => RuleTarget::Verdict(DENY.to_owned()),
            Some(Effect::Reject) => {
                reject_options(target)?;
                RuleTarget::Verdict(REJECT.to_owned())
            }
            Some(Effect::Return) => RuleTarget::Return,
            Some(Effect::Continue) => {
                self.note_changed_set(target);
                RuleTarget::Continue
            }
            Some(Effect::Terminate) => RuleTarget::Verdict(action_name(target)),
            Some(Effect::TerminateHandshake) => {
                self.require(matches::tcp_handshake(), false)?;
                RuleTarget::Verdict(action_name(target))
            }
        })
    }

    /// Notes that a rule changes a set of the file.
    fn note_changed_set(&mut self, target: &TargetUse<'_, 't>) {
        if target.name != "SET" {
            return;
        }
        for pair in target.options.windows(2) {
            let (option, set) = (pair[0].text, pair[1].slice());
            if matches!(option, "--add-set" | "--del-set") && self.context.sets.has(set) {
                self.context.notes.add(SetNote::Changed, set);
            }
        }
    }
}

fn reject_options<'t>(target: &TargetUse<'_, 't>) -> Result<(), Fault<'t>> {
    match target.options {
        [] => Ok(()),
        [option, value] if option.is("--reject-with") && !value.is("!") => Ok(()),
        [option, ..] => Err(Fault::unsupported(
            option.text,
            "options of the target `REJECT`",
            "`--reject-with` and a type, or no option",
        )),
    }
}

/// Returns the name of the action of a target: its name in lower case, with its options.
fn action_name(target: &TargetUse<'_, '_>) -> String {
    let mut name = target.name.to_ascii_lowercase();
    let mut is_port = false;
    for word in target.options {
        name.push(' ');
        match word.text {
            "--to-destination" | "--to-source" => name.push_str("to"),
            "--to-ports" => name.push_str("to"),
            option if word.is_option() => name.push_str(option.trim_start_matches('-')),
            _ if is_port => {
                name.push(':');
                name.push_str(&word.value);
            }
            _ => name.push_str(&word.value),
        }
        is_port = word.is("--to-ports");
    }
    name
}

/// Reads a network of the dump's family.
fn network(text: &str, family: Families) -> Result<(Families, Values), Fault<'_>> {
    let network = match parse_network(text) {
        Err(AddressError::Mask) => masked_addresses(text),
        network => network,
    };
    let expected = match family == Families::IPV4 {
        true => "an IPv4 address or network, such as 192.0.2.0/24",
        false => "an IPv6 address or network, such as 2001:db8::/32",
    };
    match network {
        Ok((own, values)) if own == family => Ok((own, values)),
        Ok(_) => Err(Fault::new(
            text,
            format!("{} in a rule for the other IP version", quoted(text)),
            expected,
        )),
        Err(error) => Err(Fault::new(
            text,
            format!("{}: {error}", quoted(text)),
            expected,
        )),
    }
}

/// Reads an address with a mask whose bits are not contiguous.
fn masked_addresses(text: &str) -> Result<(Families, Values), AddressError> {
    let (address, mask) = text.split_once('/').ok_or(AddressError::Form)?;
    let address = address.parse().map_err(|_| AddressError::Form)?;
    let free = match mask.parse().map_err(|_| AddressError::Form)? {
        std::net::IpAddr::V4(mask) => std::net::IpAddr::V4(!mask),
        std::net::IpAddr::V6(mask) => std::net::IpAddr::V6(!mask),
    };
    wildcard(address, free)
}

/// Returns the packets of an interface. A name with `+` at its end is the start of names.
fn interface(field: Field, name: &str) -> Result<PacketSet, Fault<'_>> {
    if name.is_empty() || name.len() > INTERFACE_BYTES {
        return Err(Fault::new(
            name,
            format!("the interface {}", quoted(name)),
            format!("a name of 1 to {INTERFACE_BYTES} bytes"),
        ));
    }
    let values = match name.strip_suffix('+') {
        Some(start) => name_prefix(start),
        None => name_value(name),
    };
    Ok(PacketSet::of(field, [values]))
}

fn protocol_packets<'t>(option: &OptionUse<'_, 't>) -> Result<PacketSet, Fault<'t>> {
    match parse_protocol(option.value()) {
        Some(0) if option.is_negated => Err(Fault::new(
            option.text,
            "`!` before all protocols, which selects no packet",
            "a protocol, or no `!`",
        )),
        Some(0) | None => Ok(PacketSet::all()),
        Some(number) => Ok(PacketSet::of(Field::Protocol, [Values::number(number)])),
    }
}
