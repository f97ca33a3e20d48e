//! Flows: one per line, with attributes, a match and actions.

use super::command::Command;
use super::fields::{FieldSpec, Kind, SHORTHANDS, field};
use super::ports::PortNames;
use super::scan::{next_part, number};
use super::value::{FieldText, TAG_BIT, plain, value};
use crate::Fault;
use crate::line::quoted;

/// The priority of a flow whose line gives none.
const DEFAULT_PRIORITY: u16 = 32768;

/// Conditions that most flows have room for without a second allocation.
const USUAL_DEMANDS: usize = 8;

/// Statistics that a switch prints with its flows. They are ignored.
const STATISTICS: [&str; 5] = ["duration", "n_packets", "n_bytes", "idle_age", "hard_age"];

/// Flags of a flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools)] // flags of the OpenFlow protocol
pub struct FlowFlags {
    /// `send_flow_rem`
    pub send_flow_rem: bool,
    /// `check_overlap`
    pub check_overlap: bool,
    /// `reset_counts`
    pub reset_counts: bool,
    /// `no_packet_counts`
    pub no_packet_counts: bool,
    /// `no_byte_counts`
    pub no_byte_counts: bool,
}

/// The number of all tables together, in deletions.
const ALL_TABLES: u8 = 255;

/// A flow to add, or the flows to modify or delete: attributes, a match, and actions as
/// text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowLine<'t> {
    /// The command.
    pub command: Command,
    /// The table. If the line gives none, 0, or 255 for all tables in a deletion.
    pub table: u8,
    /// The priority; 32768 if the line gives none.
    pub priority: u16,
    /// The cookie.
    pub cookie: u64,
    /// The bits of cookies that modifications and deletions compare.
    pub cookie_mask: u64,
    /// A deletion applies only to flows with an output to this port.
    pub out_port: Option<u32>,
    /// A deletion applies only to flows that use this group.
    pub out_group: Option<u32>,
    /// Seconds without a packet until the flow expires.
    pub idle_timeout: u16,
    /// Seconds until the flow expires.
    pub hard_timeout: u16,
    /// Its importance.
    pub importance: u16,
    /// Its flags.
    pub flags: FlowFlags,
    /// The text after `actions=`.
    pub actions: &'t str,
    /// The kind of its packets.
    pub kind: Kind,
    demands: Vec<Demand<'t>>,
}

/// A condition of a flow on a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Demand<'t> {
    /// The field.
    pub field: &'static FieldSpec,
    /// The value; bits outside of the mask are 0.
    pub value: u128,
    /// The bits that must match, at least one.
    pub mask: u128,
    /// True if the text had bits outside of its mask or outside of the field.
    pub has_stray_bits: bool,
    /// True if the condition requires a VLAN tag, though it is not on `vlan_vid`.
    pub needs_tag: bool,
    /// The part of the line: `tp_dst=0x10/0xf0`, `tcp`.
    pub text: &'t str,
    /// The field's name on the line, or the word for a kind of packets.
    pub key: &'t str,
    /// The value on the line; for `vlan_tci` and words, the whole part of the line.
    pub value_text: &'t str,
}

impl Demand<'_> {
    /// True if all bits of the field must match.
    #[must_use]
    pub fn is_exact(&self) -> bool {
        self.mask == self.field.max_value()
    }
}

impl<'t> FlowLine<'t> {
    /// Reads a flow to add. Comments and the words `flow add` must have been removed.
    ///
    /// # Errors
    /// A [`Fault`] about a part of the line.
    pub fn parse(line: &'t str, ports: &mut PortNames<'_>) -> Result<FlowLine<'t>, Fault<'t>> {
        FlowLine::parse_command(line, Command::Add, ports)
    }

    /// Reads a flow to add, or the flows to modify or delete. Comments and the command must
    /// have been removed. A deletion has no actions, and may have `out_port` and
    /// `out_group`. A cookie of a modification or deletion may have a mask.
    ///
    /// # Errors
    /// A [`Fault`] about a part of the line.
    pub fn parse_command(
        line: &'t str,
        command: Command,
        ports: &mut PortNames<'_>,
    ) -> Result<FlowLine<'t>, Fault<'t>> {
        let (before, actions) = split(line);
        let deletes = matches!(command, Command::Delete { .. });
        let mut flow = FlowLine {
            command,
            table: if deletes { ALL_TABLES } else { 0 },
            priority: DEFAULT_PRIORITY,
            cookie: 0,
            cookie_mask: 0,
            out_port: None,
            out_group: None,
            idle_timeout: 0,
            hard_timeout: 0,
            importance: 0,
            flags: FlowFlags::default(),
            actions: actions.unwrap_or_default(),
            kind: Kind::default(),
            demands: Vec::with_capacity(USUAL_DEMANDS),
        };
        // Types are read first because the meaning of old field names depends on them.
        let mut unread = before;
        let mut is_first = true;
        while let Some(part) = next_part(&mut unread) {
            if is_first && is_other_command(part) {
                return Err(Fault::new(
                    part,
                    format!("a flow to {part}"),
                    "flows that are there, since this is not a script",
                ));
            }
            is_first = false;
            match part.split_once('=') {
                Some(("dl_type" | "eth_type", value)) => flow.eth_type(part, value)?,
                Some(_) => {}
                None => flow.word(part)?,
            }
        }
        let mut unread = before;
        while let Some(part) = next_part(&mut unread) {
            if let Some(("nw_proto" | "ip_proto", value)) = part.split_once('=')
                && !flow.kind.is_arp()
            {
                flow.protocol(part, value)?;
            }
        }
        let mut unread = before;
        while let Some(part) = next_part(&mut unread) {
            if let Some((key, value)) = part.split_once('=') {
                flow.attribute(part, key, value, ports)?;
            }
        }
        flow.check_needs()?;
        match actions {
            None if deletes => Ok(flow),
            Some(actions) if deletes => Err(Fault::new(
                actions,
                "a deletion with actions",
                "a match alone; `out_port=N` and `out_group=N` select flows by their actions",
            )),
            None => Err(Fault::missing(line, "`actions=…`")),
            Some("") => Err(Fault::missing(line, "actions, or `drop`")),
            Some(_) => Ok(flow),
        }
    }

    /// Returns the conditions of the flow, at most one per field.
    #[must_use]
    pub fn demands(&self) -> &[Demand<'t>] {
        &self.demands
    }

    /// Returns the table of a line's flow, 0 if the line gives none. Returns `None` if the
    /// table is not a number or the line is not a flow.
    #[must_use]
    pub fn table_of(line: &str) -> Option<u8> {
        let (before, actions) = split(line);
        let mut unread = before;
        let mut table = None;
        while let Some(part) = next_part(&mut unread) {
            if let Some(value) = part.strip_prefix("table=") {
                table = Some(number(value, "table").ok()?);
            }
        }
        table.or(actions.map(|_| 0))
    }

    fn word(&mut self, part: &'t str) -> Result<(), Fault<'t>> {
        if let Some(&(_, eth_type, protocol)) = SHORTHANDS.iter().find(|(word, ..)| *word == part) {
            self.set_eth_type(eth_type, part, part)?;
            return match protocol {
                Some(protocol) => self.set_protocol(protocol, part, part),
                None => Ok(()),
            };
        }
        let flag = match part {
            "eth" => return Ok(()),
            "send_flow_rem" => &mut self.flags.send_flow_rem,
            "check_overlap" => &mut self.flags.check_overlap,
            "reset_counts" => &mut self.flags.reset_counts,
            "no_packet_counts" => &mut self.flags.no_packet_counts,
            "no_byte_counts" => &mut self.flags.no_byte_counts,
            _ => {
                return Err(Fault::unsupported(
                    part,
                    format!("unsupported field {}", quoted(part)),
                    "NAME=VALUE, or a word such as `ip`, `tcp6`, `arp`, `send_flow_rem`",
                ));
            }
        };
        *flag = true;
        Ok(())
    }

    fn attribute(
        &mut self,
        part: &'t str,
        key: &'t str,
        value: &'t str,
        ports: &mut PortNames<'_>,
    ) -> Result<(), Fault<'t>> {
        match key {
            "table" => self.table = number(value, key)?,
            "priority" => {
                self.check_priority(part)?;
                self.priority = number(value, key)?;
            }
            "cookie" => self.cookie(value)?,
            "out_port" if matches!(self.command, Command::Delete { .. }) => {
                self.out_port = Some(ports.port(value, key)?);
            }
            "out_group" if matches!(self.command, Command::Delete { .. }) => {
                self.out_group = Some(number(value, key)?);
            }
            "idle_timeout" => self.idle_timeout = number(value, key)?,
            "hard_timeout" => self.hard_timeout = number(value, key)?,
            "importance" => self.importance = number(value, key)?,
            "dl_type" | "eth_type" => {}
            "nw_proto" | "ip_proto" if !self.kind.is_arp() => {}
            "vlan_tci" => self.vlan_tci(part, value)?,
            _ if STATISTICS.contains(&key) => {}
            _ => self.field(part, key, value, ports)?,
        }
        Ok(())
    }

    /// Refuses a priority that would have no effect.
    fn check_priority(&self, part: &'t str) -> Result<(), Fault<'t>> {
        let strict = match self.command {
            Command::Modify { strict: false } => "modify_strict",
            Command::Delete { strict: false } => "delete_strict",
            _ => return Ok(()),
        };
        Err(Fault::new(
            part,
            format!("{} in a command for flows of any priority", quoted(part)),
            format!("no priority, or `{strict}` for one flow"),
        ))
    }

    /// Reads a cookie. Modifications and deletions compare the bits of its mask, which are
    /// all bits if the text has no mask.
    fn cookie(&mut self, text: &'t str) -> Result<(), Fault<'t>> {
        if self.command == Command::Add {
            self.cookie = number(text, "cookie")?;
            return Ok(());
        }
        let (value, mask) = text.split_once('/').unwrap_or((text, "-1"));
        self.cookie = number(value, "cookie")?;
        self.cookie_mask = match mask {
            "-1" => u64::MAX,
            mask => number(mask, "cookie")?,
        };
        Ok(())
    }

    fn field(
        &mut self,
        part: &'t str,
        key: &'t str,
        text: &'t str,
        ports: &mut PortNames<'_>,
    ) -> Result<(), Fault<'t>> {
        let field = field(key, self.kind)?;
        if text == "*" {
            return Ok(());
        }
        let is_icmp_port = matches!(key, "tp_src" | "tp_dst") && self.kind.is_icmp();
        let read = value(key, field, text, ports).map_err(|fault| match is_icmp_port {
            true => no_type_of_icmp(part),
            false => fault,
        })?;
        self.demand(field, read, (part, key, text))
    }

    /// Adds a condition. `text` has the part of the line, its key and its value.
    fn demand(
        &mut self,
        field: &'static FieldSpec,
        read: FieldText,
        text: (&'t str, &'t str, &'t str),
    ) -> Result<(), Fault<'t>> {
        let (text, key, value_text) = text;
        if read.mask == 0 {
            return Ok(());
        }
        if let Some(earlier) = self.demands.iter().find(|earlier| earlier.field == field) {
            if matches!(field.name, "eth_type" | "ip_proto" | "arp_op") {
                return match earlier.value == read.value {
                    true => Ok(()),
                    false => Err(contradiction(text, earlier.text)),
                };
            }
            return Err(Fault::new(
                text,
                format!(
                    "{} after {}: one field twice",
                    quoted(text),
                    quoted(earlier.text)
                ),
                "each field at most once",
            ));
        }
        self.demands.push(Demand {
            field,
            value: read.value,
            mask: read.mask,
            has_stray_bits: read.has_stray_bits,
            needs_tag: field.name == "vlan_pcp",
            text,
            key,
            value_text,
        });
        Ok(())
    }

    fn eth_type(&mut self, part: &'t str, value: &'t str) -> Result<(), Fault<'t>> {
        match value {
            "*" => Ok(()),
            _ => self.set_eth_type(number(value, key_of(part))?, part, value),
        }
    }

    fn protocol(&mut self, part: &'t str, value: &'t str) -> Result<(), Fault<'t>> {
        match value {
            "*" => Ok(()),
            _ => self.set_protocol(number(value, key_of(part))?, part, value),
        }
    }

    fn set_eth_type(
        &mut self,
        eth_type: u16,
        part: &'t str,
        value: &'t str,
    ) -> Result<(), Fault<'t>> {
        self.kind.eth_type.get_or_insert(eth_type);
        let field = field("eth_type", self.kind)?;
        self.demand(
            field,
            whole(field, eth_type.into()),
            (part, key_of(part), value),
        )
    }

    fn set_protocol(
        &mut self,
        protocol: u8,
        part: &'t str,
        value: &'t str,
    ) -> Result<(), Fault<'t>> {
        self.kind.ip_proto.get_or_insert(protocol);
        let field = field("ip_proto", self.kind)?;
        self.demand(
            field,
            whole(field, protocol.into()),
            (part, key_of(part), value),
        )
    }

    /// Reads a whole VLAN tag: the priority in the upper 3 bits, a bit that is 1 if there
    /// is a tag, and the VLAN number.
    fn vlan_tci(&mut self, part: &'t str, text: &'t str) -> Result<(), Fault<'t>> {
        if text == "*" {
            return Ok(());
        }
        let (tci, mask) = match text.split_once('/') {
            None => (plain(text, "vlan_tci", 16)?, 0xffff),
            Some((tci, mask)) => (plain(tci, "vlan_tci", 16)?, plain(mask, "vlan_tci", 16)?),
        };
        let has_stray_bits = tci & !mask != 0;
        let tci = tci & mask;
        let texts = (part, "vlan_tci", part);
        let vid = field("vlan_vid", self.kind)?;
        if mask & TAG_BIT != 0 && tci & TAG_BIT == 0 {
            if tci != 0 {
                return Err(Fault::new(
                    part,
                    format!(
                        "{} asks whether there is a VLAN tag, and matches no packet",
                        quoted(part)
                    ),
                    "the bit 0x1000 for packets with a VLAN tag, or a value of 0 for packets without",
                ));
            }
            return self.demand(vid, whole(vid, 0), texts);
        }
        let read = FieldText {
            value: tci & 0x1fff,
            mask: mask & 0x1fff,
            has_stray_bits,
        };
        self.demand(vid, read, texts)?;
        let pcp = field("vlan_pcp", self.kind)?;
        let read = FieldText {
            value: tci >> 13,
            mask: mask >> 13,
            has_stray_bits: false,
        };
        self.demand(pcp, read, texts)?;
        if let Some(pcp) = self.demands.iter_mut().find(|demand| demand.field == pcp) {
            pcp.needs_tag = mask & TAG_BIT != 0;
        }
        Ok(())
    }

    /// Checks that the line has the kind of packets that each of its fields requires.
    fn check_needs(&self) -> Result<(), Fault<'t>> {
        for demand in &self.demands {
            let needs = demand.field.needs;
            if needs.are_met(self.kind) {
                continue;
            }
            let (message, expected) = match (demand.field.name, demand.key) {
                ("ip_proto", _) => (
                    "a protocol without `ip` or `ipv6`".to_owned(),
                    needs.expectation(),
                ),
                ("arp_op", _) => (
                    "an operation of ARP without `arp` or `rarp`".to_owned(),
                    needs.expectation(),
                ),
                (_, "tp_src" | "tp_dst") => (
                    lacks(demand.text),
                    "`tcp`, `udp` or `sctp`, or one with a 6, on the line",
                ),
                (_, "nw_src" | "nw_dst") => (
                    lacks(demand.text),
                    "`ip`, `tcp`, `arp`, … or dl_type=0x0800 on the line",
                ),
                _ => (lacks(demand.text), needs.expectation()),
            };
            return Err(Fault::new(demand.text, message, expected));
        }
        Ok(())
    }
}

/// Returns an exact value: all bits of the field must match.
fn whole(field: &FieldSpec, value: u128) -> FieldText {
    FieldText {
        value,
        mask: field.max_value(),
        has_stray_bits: false,
    }
}

/// Returns the name before `=`, or the whole word if there is no `=`.
fn key_of(part: &str) -> &str {
    part.split_once('=').map_or(part, |(key, _)| key)
}

fn lacks(text: &str) -> String {
    format!("{} without what it needs", quoted(text))
}

fn is_other_command(part: &str) -> bool {
    matches!(
        part,
        "modify" | "modify_strict" | "delete" | "delete_strict"
    )
}

/// Returns the text before `actions=`, and the text after it if the line has `actions=`.
fn split(line: &str) -> (&str, Option<&str>) {
    let mut unread = line;
    loop {
        let before = unread;
        let Some(part) = next_part(&mut unread) else {
            return (line, None);
        };
        let mut keys = ["actions=", "action="].into_iter();
        if let Some(key) = keys.find(|key| part.starts_with(key)) {
            let key_start = line.len() - before.len() + before.find(key).unwrap_or(0);
            return (
                &line[..key_start],
                Some(line[key_start + key.len()..].trim()),
            );
        }
    }
}

fn no_type_of_icmp(part: &str) -> Fault<'_> {
    Fault::new(
        part,
        format!("{} is not an ICMP type or code", quoted(part)),
        "a type or code of ICMP: 0 to 255, without a mask",
    )
}

fn contradiction<'t>(part: &'t str, other: &str) -> Fault<'t> {
    Fault::new(
        part,
        format!("{} contradicts {}", quoted(part), quoted(other)),
        "one Ethernet type and one protocol",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_have_their_own_attributes() {
        let mut ports = PortNames::default();
        let mut parse = |line: &'static str, command| {
            let read = FlowLine::parse_command(line, command, &mut ports);
            read.map_err(|fault| fault.at(1, line).to_string())
        };
        let delete = Command::Delete { strict: false };
        let every_flow = parse("", delete).unwrap();
        assert_eq!(
            (
                every_flow.table,
                every_flow.cookie_mask,
                every_flow.demands().len()
            ),
            (255, 0, 0)
        );
        let filtered = parse("table=3,cookie=5/7,out_port=2,out_group=9,ip", delete).unwrap();
        assert_eq!(
            (filtered.table, filtered.cookie, filtered.cookie_mask),
            (3, 5, 7)
        );
        assert_eq!((filtered.out_port, filtered.out_group), (Some(2), Some(9)));
        let modify = Command::Modify { strict: true };
        let by_cookie = parse("cookie=1/-1,priority=4 actions=drop", modify).unwrap();
        assert_eq!(
            (by_cookie.table, by_cookie.priority, by_cookie.cookie_mask),
            (0, 4, u64::MAX)
        );
        let refused = |line, command| {
            FlowLine::parse_command(line, command, &mut PortNames::default())
                .unwrap_err()
                .at(1, line)
                .to_string()
        };
        assert!(refused("ip actions=drop", delete).starts_with("1:12: a deletion with actions"));
        assert!(refused("priority=4", delete).contains("`delete_strict` for one flow"));
        let modify = Command::Modify { strict: false };
        assert!(refused("priority=4 actions=drop", modify).contains("`modify_strict`"));
        assert!(refused("ip", modify).contains("`actions=…`"));
        assert!(refused("out_port=2 actions=drop", Command::Add).contains("unsupported field"));
    }
}
