//! Detects the system of a configuration by its statements.

use classyard_text::line::lines;

use super::{Dialect, names};

/// Statements that a system has and the others do not, and statements that several have.
#[derive(Clone, Copy, Debug, Default)]
struct Marks {
    /// The system that a line names, such as `ASA Version 9.16`.
    named: Option<Dialect>,
    /// The number of statements of lists that only one system has.
    ios: usize,
    nxos: usize,
    xr: usize,
    asa: usize,
    /// Statements that are of NX-OS if the file has lists that several systems have.
    is_like_nxos: bool,
    is_like_xr: bool,
    is_like_asa: bool,
    /// Lists or groups that several systems have.
    has_lists: bool,
    is_foreign: bool,
}

/// Returns the system that a configuration is for. `None` if it has no access lists of
/// Cisco's systems.
pub(super) fn dialect(text: &str) -> Option<Dialect> {
    let mut marks = Marks::default();
    for (_, line) in lines(text) {
        marks.read(line);
    }
    marks.dialect()
}

impl Marks {
    fn dialect(&self) -> Option<Dialect> {
        let counts = [
            (self.asa, Dialect::Asa),
            (self.xr, Dialect::Xr),
            (self.ios, Dialect::Ios),
            (self.nxos, Dialect::NxOs),
        ];
        let has_lists = self.has_lists || counts.iter().any(|(count, _)| *count > 0);
        if self.is_foreign || !has_lists {
            return None;
        }
        if self.named.is_some() {
            return self.named;
        }
        let most = counts.iter().map(|(count, _)| *count).max().unwrap_or(0);
        if most > 0 {
            let mut counts = counts.iter();
            return counts
                .find(|(count, _)| *count == most)
                .map(|entry| entry.1);
        }
        Some(
            match (self.is_like_asa, self.is_like_xr, self.is_like_nxos) {
                (true, ..) => Dialect::Asa,
                (_, true, _) => Dialect::Xr,
                (_, _, true) => Dialect::NxOs,
                _ => Dialect::Ios,
            },
        )
    }

    fn read(&mut self, line: &str) {
        if line.starts_with('!') {
            self.read_comment(line);
            return;
        }
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let is_indented = line.starts_with([' ', '\t']);
        if !is_indented {
            self.read_name(&words);
        }
        let words = match &words[..] {
            ["no", words @ ..] | words => words,
        };
        match words {
            ["access-list", name, word, words @ ..] => {
                self.read_access_list(name, word, words.first());
            }
            ["ip", "access-list", "standard" | "extended", _, ..]
            | ["Standard" | "Extended", "IP", "access", "list", ..] => self.ios += 1,
            ["ip", "access-list", name] if !matches!(*name, "persistent") => self.nxos += 1,
            ["IP", "access", "list", _] | ["IPV4" | "IPV6", "ACL", _, ..] => self.nxos += 1,
            ["ipv4", "access-list", _, ..] => self.xr += 1,
            ["ipv6", "access-list", ..] | ["IPv6", "access", "list", _, ..] => {
                self.has_lists = true;
            }
            ["object-group", "network", "ipv4" | "ipv6", _] | ["object-group", "port", _] => {
                self.xr += 1;
            }
            ["object-group", "ip" | "ipv6", "address" | "port", _] => self.nxos += 1,
            ["object", "network" | "service", _] if !is_indented => self.asa += 1,
            ["object-group", "network" | "service", ..] => self.has_lists = true,
            ["statistics", "per-entry"] | ["feature", _, ..] | ["vdc", ..] => {
                self.is_like_nxos = true;
            }
            [.., counter] if counter.starts_with("[match=") => self.is_like_nxos = true,
            [
                "network-object" | "service-object" | "port-object" | "icmp-object"
                | "protocol-object" | "nameif" | "security-level",
                ..,
            ]
            | ["access-group", _, "in" | "out", "interface", ..]
            | ["access-group", _, "global"] => self.is_like_asa = true,
            [_, "permit" | "deny", "icmpv6" | "ipv4", ..]
            | ["permit" | "deny", "icmpv6" | "ipv4", ..]
            | ["ipv4", "access-group", ..]
            | ["ipv6", "access-group", _, "ingress" | "egress", ..] => self.is_like_xr = true,
            _ => {}
        }
    }

    /// Reads `access-list 101 permit ...` and `access-list NAME extended permit ...`.
    /// Other systems have `access-list NAME permit NETWORK`.
    fn read_access_list(&mut self, name: &str, word: &str, next: Option<&&str>) {
        let is_protocol = |word: &&str| {
            matches!(*word, "ip" | "object" | "object-group") || names::protocol(word).is_some()
        };
        match word {
            "advanced" | "extended" | "standard" | "line" | "ethertype" | "webtype" => {
                self.asa += 1;
            }
            "permit" | "deny" | "remark" | "dynamic" if names::is_number(name) => self.ios += 1,
            "permit" | "deny" if next.is_some_and(is_protocol) => self.asa += 1,
            _ => {}
        }
    }

    /// Reads a statement that names its system.
    fn read_name(&mut self, words: &[&str]) {
        match words {
            ["ASA" | "PIX" | "FWSM", "Version", ..] | ["NGFW", "Version", ..] => {
                self.set_name(Dialect::Asa);
            }
            ["version", version, ..] if version.contains('(') && self.named.is_none() => {
                self.is_like_nxos = true;
            }
            _ => {}
        }
    }

    /// Reads a comment at the start of a configuration that names its system.
    fn read_comment(&mut self, line: &str) {
        let systems = [
            ("IOS XR", Dialect::Xr),
            ("cisco-xr", Dialect::Xr),
            ("cisco-nx", Dialect::NxOs),
            ("!Command: show running-config", Dialect::NxOs),
            ("cisco-asa", Dialect::Asa),
        ];
        for (mark, dialect) in systems {
            if line.contains(mark) {
                self.set_name(dialect);
            }
        }
        let is_eos = line.starts_with("! device:") && line.contains("EOS");
        self.is_foreign |=
            is_eos || line.contains("(ACOS)") || line.contains("RANCID-CONTENT-TYPE: arista");
    }

    fn set_name(&mut self, dialect: Dialect) {
        self.named.get_or_insert(dialect);
    }
}
