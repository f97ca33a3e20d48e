//! Profiles as TOML; the docs of [`Profile::from_toml`] have an example.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};

use serde::Deserialize;
use serde::de::{self, Deserializer, Visitor};
use toml::Spanned;

use super::{
    LEVELS, Level, PORT_CLASSES, PairShare, PortClass, PortPool, PortShare, Profile, ProfileParts,
    ProtocolShare, TrieShape, check_protocol,
};
use crate::diagnostic::{Problem, Problems, ReadError};
use crate::limits::FileLimit;
use classyard::value::ValueFormat;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    name: String,
    summary: String,
    reference_rules: Bounded<1, { u32::MAX }>,
    protocol: Vec<Protocol>,
    #[serde(default)]
    source_ports: Ports,
    #[serde(default)]
    destination_ports: Ports,
    prefix_lengths: BTreeMap<Class, Vec<(Length, Length, Share)>>,
    source_addresses: Addresses,
    destination_addresses: Addresses,
    #[serde(default)]
    correlation: Correlation,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Protocol {
    protocol: ProtocolName,
    share: Share,
    ports: Spanned<BTreeMap<Class, Share>>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct Ports {
    #[serde(default)]
    ranges: Vec<(PortRange, Share)>,
    #[serde(default)]
    exact: Vec<(PortRange, Share)>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Addresses {
    nesting: Bounded<0, { u32::MAX }>,
    levels: Vec<(LevelIndex, LevelIndex, Probability, Probability)>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct Correlation {
    bits: Vec<(LevelIndex, LevelIndex, Probability)>,
}

type Length = Bounded<0, 32>;
type LevelIndex = Bounded<0, 32>;

/// A whole number within bounds.
#[derive(Clone, Copy)]
struct Bounded<const LOW: u32, const HIGH: u32>(u32);

impl<'de, const LOW: u32, const HIGH: u32> Deserialize<'de> for Bounded<LOW, HIGH> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Within<const LOW: u32, const HIGH: u32>;
        impl<const LOW: u32, const HIGH: u32> Visitor<'_> for Within<LOW, HIGH> {
            type Value = Bounded<LOW, HIGH>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "a whole number from {LOW} to {HIGH}")
            }

            fn visit_i64<E: de::Error>(self, number: i64) -> Result<Self::Value, E> {
                let fits = u32::try_from(number).ok();
                let fits = fits.filter(|number| (LOW..=HIGH).contains(number));
                fits.map(Bounded)
                    .ok_or_else(|| E::invalid_value(de::Unexpected::Signed(number), &self))
            }
        }
        deserializer.deserialize_i64(Within)
    }
}

/// A number from 0 to `HIGH`, or without an upper bound if `HIGH` is 0.
struct Number<const HIGH: u32>(f64);

type Share = Number<0>;
type Probability = Number<1>;

impl<'de, const HIGH: u32> Deserialize<'de> for Number<HIGH> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Within<const HIGH: u32>;
        impl<const HIGH: u32> Visitor<'_> for Within<HIGH> {
            type Value = Number<HIGH>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match HIGH {
                    0 => f.write_str("a share of at least 0"),
                    _ => write!(f, "a number from 0 to {HIGH}"),
                }
            }

            fn visit_f64<E: de::Error>(self, number: f64) -> Result<Self::Value, E> {
                let in_bounds = HIGH == 0 || number <= f64::from(HIGH);
                if number >= 0.0 && number.is_finite() && in_bounds {
                    Ok(Number(number))
                } else {
                    Err(E::invalid_value(de::Unexpected::Float(number), &self))
                }
            }

            fn visit_i64<E: de::Error>(self, number: i64) -> Result<Self::Value, E> {
                self.visit_f64(number as f64)
            }
        }
        deserializer.deserialize_f64(Within)
    }
}

/// A port, `80`, or a range of ports, `"100-200"`.
struct PortRange(u16, u16);

impl<'de> Deserialize<'de> for PortRange {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Port;
        impl Visitor<'_> for Port {
            type Value = PortRange;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a port such as 80 or a range of ports such as \"100-200\"")
            }

            fn visit_i64<E: de::Error>(self, number: i64) -> Result<PortRange, E> {
                match u16::try_from(number) {
                    Ok(port) => Ok(PortRange(port, port)),
                    Err(_) => Err(E::invalid_value(de::Unexpected::Signed(number), &self)),
                }
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<PortRange, E> {
                let (low, high) = text.split_once('-').unwrap_or((text, text));
                match (low.parse(), high.parse()) {
                    (Ok(low), Ok(high)) if low <= high => Ok(PortRange(low, high)),
                    _ => Err(E::invalid_value(de::Unexpected::Str(text), &self)),
                }
            }
        }
        deserializer.deserialize_any(Port)
    }
}

/// A protocol's name or number; `None` for `any`.
struct ProtocolName(Option<u8>);

impl<'de> Deserialize<'de> for ProtocolName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Name;
        impl Visitor<'_> for Name {
            type Value = ProtocolName;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a protocol's name or number, or \"any\"")
            }

            fn visit_i64<E: de::Error>(self, number: i64) -> Result<ProtocolName, E> {
                match u8::try_from(number) {
                    Ok(number) => Ok(ProtocolName(Some(number))),
                    Err(_) => Err(E::invalid_value(de::Unexpected::Signed(number), &self)),
                }
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<ProtocolName, E> {
                if text == "any" {
                    return Ok(ProtocolName(None));
                }
                let number = ValueFormat::IpProtocol.parse(text);
                match number.and_then(|number| u8::try_from(number).ok()) {
                    Some(number) => Ok(ProtocolName(Some(number))),
                    None => Err(E::invalid_value(de::Unexpected::Str(text), &self)),
                }
            }
        }
        deserializer.deserialize_any(Name)
    }
}

/// A port class by name, or `default`, which is valid only among prefix lengths.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Class(Option<PortClass>);

impl<'de> Deserialize<'de> for Class {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Name;
        impl Visitor<'_> for Name {
            type Value = Class;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(
                    "two of any, high, low, range and exact, for source and destination port, \
                     such as any-exact (or default, among prefix lengths)",
                )
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Class, E> {
                if text == DEFAULT {
                    return Ok(Class(None));
                }
                match PortClass::from_name(text) {
                    Some(class) => Ok(Class(Some(class))),
                    None => Err(E::invalid_value(de::Unexpected::Str(text), &self)),
                }
            }
        }
        deserializer.deserialize_str(Name)
    }
}

const DEFAULT: &str = "default";

impl Profile {
    /// Reads a profile from TOML; `source` is the file's name for messages.
    ///
    /// ```toml
    #[doc = include_str!("../../../profiles/example.toml")]
    /// ```
    ///
    /// # Errors
    /// [`ReadError::Bad`] with line and column of a problem; [`ReadError::TooLong`] if
    /// the text is longer than [`FileLimit::PROFILE`], before anything is parsed.
    pub fn from_toml(source: &str, text: &str) -> Result<Profile, ReadError> {
        FileLimit::PROFILE.check(source, text)?;
        let file: File = toml::from_str(text).map_err(|error| {
            let start = error.span().map_or(0, |span| span.start);
            let length = error.span().map_or(0, |span| span.len());
            bad(source, text, start, length, &explain(error.message()))
        })?;
        let spans: Vec<std::ops::Range<usize>> =
            file.protocol.iter().map(|p| p.ports.span()).collect();
        let mut parts = freeze(file).map_err(|span| {
            let what = ("`default`".to_owned(), "a port class".to_owned());
            bad(source, text, span.start, span.len(), &what)
        })?;
        parts.name = parts.name.trim().to_owned();
        // A protocol's problem is reported at its ports, any other problem at the top
        // of the file.
        let protocol_error = parts
            .protocols
            .iter()
            .zip(spans)
            .filter(|(protocol, _)| protocol.share > 0.0)
            .find_map(|(protocol, span)| {
                let error = check_protocol(&parts, protocol).err()?;
                Some((error, span))
            });
        if let Some((error, span)) = protocol_error {
            let what = (format!("{}: {}", error.place, error.found), error.expected);
            return Err(bad(source, text, span.start, span.len(), &what));
        }
        Profile::new(parts).map_err(|error| {
            let what = (format!("{}: {}", error.place, error.found), error.expected);
            bad(source, text, 0, 0, &what)
        })
    }

    /// Returns the profile as TOML that [`Profile::from_toml`] can read.
    #[must_use]
    pub fn to_toml(&self) -> String {
        let parts = self.parts();
        let mut out = String::new();
        // Writing to a string cannot fail.
        let _ = write_profile(&mut out, parts);
        out
    }
}

/// Returns an error for a part of the text, given by start and length in bytes.
fn bad(
    source: &str,
    text: &str,
    start: usize,
    length: usize,
    what: &(String, String),
) -> ReadError {
    let start = start.min(text.len());
    let before = text.get(..start).unwrap_or(text);
    let line_start = before.rfind('\n').map_or(0, |at| at + 1);
    let line = text[line_start..].lines().next().unwrap_or("");
    let part_start = (start - line_start).min(line.len());
    let part_end = (part_start + length).min(line.len());
    let part = line.get(part_start..part_end).unwrap_or("");
    let number = before.matches('\n').count() + 1;
    let mut problems = Problems::new(source);
    problems.push(Problem::at(
        number,
        line,
        part,
        what.0.clone(),
        what.1.clone(),
    ));
    ReadError::Bad(problems)
}

/// Splits a message of the TOML reader into the actual and the expected content.
fn explain(message: &str) -> (String, String) {
    let message = message.trim_end().replace('\n', "; ");
    match message.split_once(", expected ") {
        Some((found, expected)) => (found.to_owned(), expected.to_owned()),
        None => (message, "a profile; see its description".to_owned()),
    }
}

/// Converts the file. Returns an error with the span of the ports if they have the
/// class `default`.
fn freeze(file: File) -> Result<ProfileParts, std::ops::Range<usize>> {
    let mut protocols = Vec::with_capacity(file.protocol.len());
    for protocol in file.protocol {
        let mut classes = [0.0; PORT_CLASSES];
        let span = protocol.ports.span();
        for (class, share) in protocol.ports.into_inner() {
            let class = class.0.ok_or(span.clone())?;
            classes[class.index()] = share.0;
        }
        protocols.push(ProtocolShare {
            protocol: protocol.protocol.0,
            share: protocol.share.0,
            classes,
        });
    }
    let mut pairs: [Vec<PairShare>; PORT_CLASSES] = std::array::from_fn(|_| Vec::new());
    let mut default = Vec::new();
    for (class, list) in file.prefix_lengths {
        let list = list
            .into_iter()
            .map(|(source, destination, share)| PairShare {
                source: length(source),
                destination: length(destination),
                share: share.0,
            });
        match class.0 {
            Some(class) => pairs[class.index()] = list.collect(),
            None => default = list.collect(),
        }
    }
    for (index, list) in pairs.iter_mut().enumerate() {
        let used = |p: &ProtocolShare| p.share > 0.0 && p.classes[index] > 0.0;
        if list.is_empty() && protocols.iter().any(used) {
            list.clone_from(&default);
        }
    }
    let mut correlation = [0.0; LEVELS];
    for (first, last, probability) in file.correlation.bits {
        fill(&mut correlation, first, last, probability.0);
    }
    Ok(ProfileParts {
        name: file.name,
        summary: file.summary,
        reference_rules: file.reference_rules.0,
        protocols,
        source_ports: pool(file.source_ports),
        destination_ports: pool(file.destination_ports),
        pairs,
        source: shape(file.source_addresses),
        destination: shape(file.destination_addresses),
        correlation,
    })
}

fn length(length: Length) -> u8 {
    u8::try_from(length.0).expect("at most 32")
}

fn pool(ports: Ports) -> PortPool {
    let list = |ports: Vec<(PortRange, Share)>| {
        let port = |(PortRange(low, high), Number(share))| PortShare { low, high, share };
        ports.into_iter().map(port).collect()
    };
    PortPool {
        ranges: list(ports.ranges),
        exact: list(ports.exact),
    }
}

fn shape(addresses: Addresses) -> TrieShape {
    let mut levels = [Level {
        two_children: 0.0,
        skew: 0.0,
    }; LEVELS];
    for (first, last, two_children, skew) in addresses.levels {
        let level = Level {
            two_children: two_children.0,
            skew: skew.0,
        };
        fill(&mut levels, first, last, level);
    }
    TrieShape {
        nesting: addresses.nesting.0,
        levels,
    }
}

fn fill<T: Copy>(list: &mut [T; LEVELS], first: LevelIndex, last: LevelIndex, value: T) {
    for item in list
        .iter_mut()
        .take(last.0 as usize + 1)
        .skip(first.0 as usize)
    {
        *item = value;
    }
}

fn write_profile(out: &mut String, parts: &ProfileParts) -> fmt::Result {
    writeln!(out, "name = {}", quoted(&parts.name))?;
    writeln!(out, "summary = {}", quoted(&parts.summary))?;
    writeln!(out, "reference_rules = {}", parts.reference_rules)?;
    for protocol in &parts.protocols {
        let name = match protocol.protocol {
            None => "any".to_owned(),
            Some(number) => ValueFormat::IpProtocol.display(number.into()).to_string(),
        };
        let used = PortClass::ALL.iter().zip(&protocol.classes);
        let classes: Vec<String> = used
            .filter(|(_, share)| **share > 0.0)
            .map(|(class, share)| format!("{} = {share}", class.name()))
            .collect();
        writeln!(out, "\n[[protocol]]\nprotocol = {}", quoted(&name))?;
        writeln!(out, "share = {}", protocol.share)?;
        writeln!(out, "ports = {{ {} }}", classes.join(", "))?;
    }
    for (name, pool) in [
        ("source_ports", &parts.source_ports),
        ("destination_ports", &parts.destination_ports),
    ] {
        writeln!(out, "\n[{name}]")?;
        for (kind, list) in [("ranges", &pool.ranges), ("exact", &pool.exact)] {
            let port = |port: &PortShare| match port.low == port.high {
                true => format!("[{}, {}]", port.low, port.share),
                false => format!("[\"{}-{}\", {}]", port.low, port.high, port.share),
            };
            write_list(out, kind, list.iter().map(port))?;
        }
    }
    writeln!(out, "\n# source length, destination length, share")?;
    writeln!(out, "[prefix_lengths]")?;
    for (class, list) in PortClass::ALL.iter().zip(&parts.pairs) {
        if !list.is_empty() {
            let pair = |p: &PairShare| format!("[{}, {}, {}]", p.source, p.destination, p.share);
            write_list(out, &class.name(), list.iter().map(pair))?;
        }
    }
    for (name, shape) in [
        ("source_addresses", &parts.source),
        ("destination_addresses", &parts.destination),
    ] {
        writeln!(out, "\n[{name}]\nnesting = {}", shape.nesting)?;
        writeln!(
            out,
            "# first level, last level, probability of two children, skew"
        )?;
        let level = |(first, last, level): (usize, usize, Level)| {
            format!("[{first}, {last}, {}, {}]", level.two_children, level.skew)
        };
        write_list(out, "levels", runs(&shape.levels).into_iter().map(level))?;
    }
    writeln!(out, "\n[correlation]")?;
    writeln!(
        out,
        "# first bit, last bit, probability that both addresses go on agreeing"
    )?;
    let bits = runs(&parts.correlation).into_iter();
    let bits = bits.map(|(first, last, p)| format!("[{first}, {last}, {p}]"));
    write_list(out, "bits", bits)
}

/// Returns runs of equal items: first index, last index, item.
fn runs<T: Copy + PartialEq>(items: &[T]) -> Vec<(usize, usize, T)> {
    let mut runs: Vec<(usize, usize, T)> = Vec::new();
    for (index, &item) in items.iter().enumerate() {
        match runs.last_mut() {
            Some((_, last, same)) if *same == item => *last = index,
            _ => runs.push((index, index, item)),
        }
    }
    runs
}

fn write_list(out: &mut String, name: &str, items: impl Iterator<Item = String>) -> fmt::Result {
    let items: Vec<String> = items.collect();
    if items.len() <= 3 {
        return writeln!(out, "{name} = [{}]", items.join(", "));
    }
    writeln!(out, "{name} = [")?;
    for row in items.chunks(5) {
        writeln!(out, "    {},", row.join(", "))?;
    }
    writeln!(out, "]")
}

fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXAMPLE: &str = include_str!("../../../profiles/example.toml");

    #[test]
    fn the_example_is_a_profile() {
        let profile = Profile::from_toml("example", EXAMPLE).unwrap();
        let parts = profile.parts();
        assert_eq!(parts.source.nesting, 3);
        let default = &parts.pairs[PortClass::from_name("any-exact").unwrap().index()];
        assert_eq!(default.len(), 2);
        assert!(parts.pairs[24].is_empty());
    }

    #[test]
    fn mistakes_are_found_with_their_place() {
        let cases = [
            (
                "reference_rules = 300",
                "reference_rules = 0",
                "p:3:19",
                "from 1 to",
            ),
            ("\"tcp\"", "\"tpc\"", "p:6:12", "protocol's name"),
            ("share = 80", "share = -80", "p:7:9", "at least 0"),
            ("any-exact = 7", "any-some = 7", "p:8:", "such as any-exact"),
            ("any-exact = 7", "default = 7", "p:8:9", "a port class"),
            ("any-exact = 7", "exact-any = 7", "p:8:9", "at least one"),
            ("any-exact = 7", "low-any = 0", "p:8:9", "any-any"),
            ("[443, 5]", "[70000, 5]", "p:11:11", "a port such as 80"),
            (
                "\"6000-6063\"",
                "\"6063-6000\"",
                "p:12:12",
                "a range of ports",
            ),
            ("[0, 24, 1]", "[0, 33, 1]", "p:15:16", "from 0 to 32"),
            ("[0, 24, 1]", "[0, 24]", "p:15:12", "tuple of size 3"),
            ("0.3, 0.6", "0.3, 1.6", "p:21:23", "from 0 to 1"),
            ("nesting = 3", "nestling = 3", "p:19:1", "nesting"),
            ("[correlation]", "[correlation", "p:27:13", "`]`"),
        ];
        for (old, new, place, expected) in cases {
            let text = EXAMPLE.replacen(old, new, 1);
            assert_ne!(text, EXAMPLE, "{old:?} is not there");
            let result = Profile::from_toml("p", &text);
            if new == "low-any = 0" {
                assert!(result.is_ok(), "any-any is left");
                continue;
            }
            let message = result.expect_err(new).to_string();
            assert!(message.starts_with(place), "{message} is not at {place}");
            assert!(message.contains(expected), "{message} lacks {expected}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_text_makes_the_reader_panic(
            cut in 0usize..1500,
            junk in "[ -~\n]{0,40}",
            keep in 0usize..1500,
        ) {
            let (cut, keep) = (cut.min(EXAMPLE.len()), keep.min(EXAMPLE.len()));
            let spoilt = format!("{}{junk}{}", &EXAMPLE[..cut], &EXAMPLE[keep..]);
            let _ = Profile::from_toml("p", &spoilt);
        }
    }
}
