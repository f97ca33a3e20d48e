//! Ports: one per line, with a number, a name, the state of the link, a speed and flags.
//! Numbers and names of reserved ports.

use super::scan::{number, parts};
use crate::Fault;
use crate::line::quoted;

/// Names of reserved ports.
pub const RESERVED_PORTS: [(&str, u32); 9] = [
    ("UNSET", 0xffff_fff7),
    ("IN_PORT", 0xffff_fff8),
    ("TABLE", 0xffff_fff9),
    ("NORMAL", 0xffff_fffa),
    ("FLOOD", 0xffff_fffb),
    ("ALL", 0xffff_fffc),
    ("CONTROLLER", 0xffff_fffd),
    ("LOCAL", 0xffff_fffe),
    ("ANY", 0xffff_ffff),
];

/// The largest number of a port (`OFPP_MAX`).
const MAX_PORT: u32 = 0xffff_ff00;

/// The number of the switch's own port.
const LOCAL_PORT: u32 = 0xffff_fffe;

/// The maximum length of a port's name in bytes (`OFP_MAX_PORT_NAME_LEN`, without the zero
/// at the end).
pub const MAX_PORT_NAME_BYTES: usize = 15;

/// The keys and flags that a line may have, in messages.
const OPTIONS: &str = "`port=N`, `name=NAME`, `link=up|down`, `speed=10G`, `no-receive`, \
    `no-forward` or `no-flood`";

/// Units of speed, each with its kilobits per second.
const SPEED_UNITS: [(char, u64); 4] = [
    ('K', 1),
    ('M', 1_000),
    ('G', 1_000_000),
    ('T', 1_000_000_000),
];

/// A line about a port. Values that the line does not give are `None`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortLine<'t> {
    /// The number or name of the port.
    pub port: &'t str,
    /// Its name, without quotes.
    pub name: Option<&'t str>,
    /// True if the port has a link.
    pub is_up: Option<bool>,
    /// Its speed in kilobits per second, at least 1.
    pub speed: Option<u32>,
    /// False for `no-receive`, true for `receive`.
    pub receives: Option<bool>,
    /// False for `no-forward`, true for `forward`.
    pub forwards: Option<bool>,
    /// False for `no-flood`, true for `flood`.
    pub floods: Option<bool>,
}

impl<'t> PortLine<'t> {
    /// Reads `port=N[,name=NAME][,link=up|down][,speed=SPEED]` and flags. Each of them may
    /// occur once.
    ///
    /// ```
    /// use classyard_text::ofctl::PortLine;
    ///
    /// let line = PortLine::parse("port=1,name=eth0,link=down,speed=10G,no-flood").unwrap();
    /// assert_eq!((line.port, line.name), ("1", Some("eth0")));
    /// assert_eq!((line.is_up, line.speed), (Some(false), Some(10_000_000)));
    /// assert_eq!((line.floods, line.receives), (Some(false), None));
    /// ```
    ///
    /// # Errors
    /// A [`Fault`] about a part of the line.
    pub fn parse(line: &'t str) -> Result<PortLine<'t>, Fault<'t>> {
        let mut port = None;
        let mut read = PortLine {
            port: "",
            name: None,
            is_up: None,
            speed: None,
            receives: None,
            forwards: None,
            floods: None,
        };
        for part in parts(line) {
            match part.split_once('=') {
                Some(("port", value)) => set(&mut port, part, value)?,
                Some(("name", value)) => set(&mut read.name, part, port_name(value)?)?,
                Some(("link", value)) => set(&mut read.is_up, part, link(value)?)?,
                Some(("speed", value)) => set(&mut read.speed, part, speed(value)?)?,
                None if part == "receive" => set(&mut read.receives, part, true)?,
                None if part == "no-receive" => set(&mut read.receives, part, false)?,
                None if part == "forward" => set(&mut read.forwards, part, true)?,
                None if part == "no-forward" => set(&mut read.forwards, part, false)?,
                None if part == "flood" => set(&mut read.floods, part, true)?,
                None if part == "no-flood" => set(&mut read.floods, part, false)?,
                _ => {
                    let description = format!("unknown port option {}", quoted(part));
                    return Err(Fault::new(part, description, OPTIONS));
                }
            }
        }
        read.port = port.ok_or_else(|| Fault::missing(line, "`port=N`"))?;
        Ok(read)
    }
}

/// Reads the number of a port that a line describes: a number, or `LOCAL`.
///
/// # Errors
/// A [`Fault`] about the text.
pub fn port_number(text: &str) -> Result<u32, Fault<'_>> {
    if text.eq_ignore_ascii_case("LOCAL") {
        return Ok(LOCAL_PORT);
    }
    match number(text, "port") {
        Ok(port) if (1..=MAX_PORT).contains(&port) => Ok(port),
        _ => Err(Fault::new(
            text,
            format!("{} is not the number of a port", quoted(text)),
            format!("a number from 1 to {MAX_PORT}, or `LOCAL`; `name=` gives a port its name"),
        )),
    }
}

/// Sets a value that a line may give once.
fn set<'t, T>(value: &mut Option<T>, part: &'t str, new: T) -> Result<(), Fault<'t>> {
    match value.replace(new) {
        None => Ok(()),
        Some(_) => {
            let description = format!("{} after an earlier value", quoted(part));
            Err(Fault::new(part, description, "each option of a port once"))
        }
    }
}

/// Reads a name, which may be quoted.
fn port_name(text: &str) -> Result<&str, Fault<'_>> {
    let inner = text
        .strip_prefix('"')
        .and_then(|name| name.strip_suffix('"'));
    let name = inner.unwrap_or(text);
    let is_bare = is_bare_name(name);
    let is_printable = !name.contains(|c: char| c == '"' || c.is_control());
    if !(is_bare || inner.is_some() && is_printable && !name.is_empty()) {
        return Err(Fault::new(
            text,
            format!("{} is not a port name", quoted(text)),
            "a name such as `eth0`, in quotes if it begins with a digit or has spaces",
        ));
    }
    if name.len() > MAX_PORT_NAME_BYTES {
        return Err(Fault::new(
            text,
            format!("{} has {} bytes", quoted(text), name.len()),
            format!("a port name of at most {MAX_PORT_NAME_BYTES} bytes"),
        ));
    }
    let mut reserved = RESERVED_PORTS.iter();
    if reserved.any(|(word, _)| word.eq_ignore_ascii_case(name)) {
        return Err(Fault::new(
            text,
            format!("{} is the name of a reserved port", quoted(text)),
            "another name",
        ));
    }
    Ok(name)
}

/// True for a name that needs no quotes.
#[must_use]
pub fn is_bare_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"_-.@:".contains(&byte))
}

fn link(text: &str) -> Result<bool, Fault<'_>> {
    match text {
        "up" => Ok(true),
        "down" => Ok(false),
        _ => {
            let description = format!("{} is not the state of a link", quoted(text));
            Err(Fault::new(text, description, "`up` or `down`"))
        }
    }
}

/// Reads a speed such as `10G` or `2.5G`. Returns kilobits per second.
fn speed(text: &str) -> Result<u32, Fault<'_>> {
    const EXPECTED: &str = "a number of bits per second with its unit K, M, G or T, such as \
        `10G` or `2.5G`, up to 4.2T";
    let fault = |found: String| Err(Fault::new(text, found, EXPECTED));
    let mut units = SPEED_UNITS.into_iter();
    let unit = units.find(|(unit, _)| text.ends_with(*unit));
    let Some((_, scale)) = unit else {
        return match text.parse::<f64>() {
            Ok(_) => fault(format!("{} has no unit", quoted(text))),
            Err(_) => fault(format!("{} is not a speed", quoted(text))),
        };
    };
    let number = &text[..text.len() - 1];
    let Some((whole, decimals)) = decimal(number) else {
        return fault(format!("{} is not a speed", quoted(text)));
    };
    let power = 10_u64.pow(u32::try_from(decimals.len()).unwrap_or(0));
    let decimals: u64 = decimals.parse().unwrap_or(0);
    let kilobits = whole
        .checked_mul(scale)
        .and_then(|whole| Some((whole, decimals.checked_mul(scale)?)))
        .filter(|(_, decimals)| decimals.is_multiple_of(power))
        .and_then(|(whole, decimals)| whole.checked_add(decimals / power))
        .and_then(|kilobits| u32::try_from(kilobits).ok())
        .filter(|&kilobits| kilobits > 0);
    match kilobits {
        Some(kilobits) => Ok(kilobits),
        None => fault(format!(
            "{} is not from 1K to 4.2T in whole kilobits",
            quoted(text)
        )),
    }
}

/// Splits a decimal number such as `12` or `2.5` into its whole part and at most 9 digits
/// after the point.
pub(super) fn decimal(text: &str) -> Option<(u64, &str)> {
    let (whole, decimals) = text.split_once('.').unwrap_or((text, "0"));
    let are_digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let is_valid = are_digits(whole) && are_digits(decimals) && decimals.len() <= 9;
    let whole = whole.parse().ok().filter(|_| is_valid)?;
    Some((whole, decimals))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(line: &str) -> String {
        let fault = PortLine::parse(line).unwrap_err();
        fault.at(1, line).to_string()
    }

    #[test]
    fn speeds_have_units() {
        for (text, kilobits) in [
            ("1K", 1),
            ("100M", 100_000),
            ("2.5G", 2_500_000),
            ("0.064M", 64),
            ("4.2T", 4_200_000_000),
        ] {
            assert_eq!(speed(text).ok(), Some(kilobits), "{text}");
        }
        for bad in [
            "",
            "G",
            "0G",
            "-1G",
            "10",
            "1e3G",
            "1.0005K",
            "4.3T",
            ".5G",
            "5.G",
            "10g",
            "10Gb",
            "1.0000000001G",
            "99999999999999999999T",
        ] {
            assert!(speed(bad).is_err(), "{bad}");
        }
        assert!(fault("port=1,speed=1000").starts_with("1:14: `1000` has no unit"));
    }

    #[test]
    fn names_may_be_quoted() {
        for (line, name) in [
            ("port=1,name=eth0", "eth0"),
            ("port=1,name=\"eth 0, left\"", "eth 0, left"),
            ("port=1 name=\"1st\"", "1st"),
        ] {
            assert_eq!(PortLine::parse(line).unwrap().name, Some(name), "{line}");
        }
        for bad in [
            "",
            "1st",
            "\"\"",
            "\"a",
            "flood",
            "\"LOCAL\"",
            "sixteen-bytes-xx",
            "é",
            "\"\u{1b}\"",
        ] {
            assert!(port_name(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn ports_have_numbers_from_1() {
        assert_eq!(port_number("4294967040").ok(), Some(MAX_PORT));
        for bad in ["", "0", "4294967041", "eth0", "flood", "-1"] {
            assert!(port_number(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn faults_name_the_part() {
        assert_eq!(
            fault("port=1,link=dwn"),
            "1:13: `dwn` is not the state of a link; expected `up` or `down`"
        );
        assert!(fault("port=1,mtu=9000").starts_with("1:8: unknown port option `mtu=9000`"));
        assert!(fault("port=1,flood,no-flood").starts_with("1:14: `no-flood` after an earlier"));
        assert!(fault("name=eth0").starts_with("1:10: the line ends here"));
    }
}
