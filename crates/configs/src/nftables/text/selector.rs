//! Fields and other properties of packets, as words of a rule.
//!
//! A selector is known by its words, joined by spaces, such as `tcp dport`. Keys of `meta`
//! that may stand alone get the word `meta`, so that all forms of a ruleset agree.

use super::Parser;
use super::lexer::TokenKind;
use crate::nftables::tree::{Parsed, raw_selector};

/// Headers that one word for the field follows.
const HEADERS: [&str; 26] = [
    "ether", "vlan", "arp", "ip", "icmp", "igmp", "ip6", "icmpv6", "ah", "esp", "comp", "udp",
    "udplite", "tcp", "dccp", "sctp", "th", "gre", "gretap", "geneve", "vxlan", "hbh", "frag",
    "dst", "mh", "srh",
];

/// Keys of `meta` that may stand without it.
const UNQUALIFIED_META: [&str; 22] = [
    "mark",
    "iif",
    "iifname",
    "iiftype",
    "oif",
    "oifname",
    "oiftype",
    "skuid",
    "skgid",
    "nftrace",
    "rtclassid",
    "ibrname",
    "ibriport",
    "obrname",
    "obriport",
    "pkttype",
    "cpu",
    "iifgroup",
    "oifgroup",
    "cgroup",
    "nfproto",
    "l4proto",
];

/// Flags of `fib` before its result.
const FIB_FLAGS: [&str; 5] = ["saddr", "daddr", "mark", "iif", "oif"];

impl<'t> Parser<'t> {
    /// Reads a selector if one is next.
    pub(super) fn selector(&mut self) -> Parsed<'t, Option<String>> {
        let token = self.peek();
        if token.kind != TokenKind::Word {
            return Ok(None);
        }
        let word = token.text;
        if word.starts_with('@') && word.contains(',') {
            self.advance();
            return Ok(Some(raw_selector(word)));
        }
        if HEADERS.contains(&word) {
            self.advance();
            return self.header(word).map(Some);
        }
        if UNQUALIFIED_META.contains(&word) {
            self.advance();
            return Ok(Some(format!("meta {word}")));
        }
        let selector = match word {
            "meta" | "exthdr" | "tunnel" => self.words(2),
            "ct" => self.connection(),
            "fib" => self.route_lookup(),
            "rt" => match self.peek_at(1).text {
                "ip" | "ip6" => self.words(3),
                _ => self.words(2),
            },
            "socket" => match self.peek_at(1).text {
                "cgroupv2" => self.words(4),
                _ => self.words(2),
            },
            "osf" => match self.peek_at(1).text {
                "ttl" => self.words(4),
                _ => self.words(2),
            },
            "ipsec" => self.security(),
            "numgen" | "symhash" | "jhash" => self.generator(),
            _ => return Ok(None),
        };
        selector.map(Some)
    }

    /// Reads a number of words.
    fn words(&mut self, count: usize) -> Parsed<'t, String> {
        let mut words = Vec::with_capacity(count);
        for _ in 0..count {
            words.push(self.word("a field of packets")?);
        }
        Ok(words.join(" "))
    }

    /// Reads the field of a header.
    fn header(&mut self, header: &str) -> Parsed<'t, String> {
        let field = self.word("a field of the header")?;
        let is_option = matches!(
            (header, field),
            ("tcp" | "ip", "option") | ("sctp", "chunk")
        );
        if !is_option {
            return Ok(format!("{header} {field}"));
        }
        let option = self.word("the name of an option")?;
        let ends = ["exists", "missing", "set"];
        let has_field = self.peek().kind == TokenKind::Word && !ends.contains(&self.peek().text);
        match has_field {
            true => Ok(format!("{header} {field} {option} {}", self.advance().text)),
            false => Ok(format!("{header} {field} {option}")),
        }
    }

    fn connection(&mut self) -> Parsed<'t, String> {
        self.advance();
        let direction = match self.peek().text {
            "original" | "reply" => format!("{} ", self.advance().text),
            _ => String::new(),
        };
        let key = match self.peek().text {
            "ip" | "ip6" => self.words(2)?,
            _ => self.words(1)?,
        };
        Ok(format!("ct {direction}{key}"))
    }

    /// Reads `fib saddr . iif oif`.
    fn route_lookup(&mut self) -> Parsed<'t, String> {
        self.advance();
        let mut flags = Vec::new();
        loop {
            let flag = self.word("`saddr`, `daddr`, `mark`, `iif` or `oif`")?;
            if !FIB_FLAGS.contains(&flag) {
                self.next -= 1;
                return Err(self.unexpected("`saddr`, `daddr`, `mark`, `iif` or `oif`"));
            }
            flags.push(flag);
            if !self.accept(".") {
                break;
            }
        }
        let result = self.word("`type`, `oif` or `oifname`")?;
        Ok(format!("fib {} {result}", flags.join(" . ")))
    }

    fn security(&mut self) -> Parsed<'t, String> {
        let mut words = self.words(2)?;
        if self.is_next("spnum") {
            words = format!("{words} {}", self.words(2)?);
        }
        let key = match self.peek().text {
            "ip" | "ip6" => self.words(2)?,
            _ => self.words(1)?,
        };
        Ok(format!("{words} {key}"))
    }

    /// Reads `numgen random mod 2 offset 1`, or a hash.
    fn generator(&mut self) -> Parsed<'t, String> {
        let kind = self.advance().text;
        let argument = match kind {
            "numgen" => format!(" {}", self.word("`inc` or `random`")?),
            "jhash" => format!(" {}", crate::nftables::show::expression(&self.fields()?)),
            _ => String::new(),
        };
        self.expect("mod")?;
        let mut selector = format!("{kind}{argument} mod {}", self.word("a number")?);
        for option in ["seed", "offset"] {
            if self.accept(option) {
                let value = self.word("a number")?;
                if value != "0" {
                    selector = format!("{selector} {option} {value}");
                }
            }
        }
        Ok(selector)
    }
}
