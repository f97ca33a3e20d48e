//! The description of a port (`ofp_port`): its name and its speed. They do not change how
//! packets are processed.

use std::fmt;

use classyard_text::ofctl::{MAX_PORT_NAME_BYTES, RESERVED_PORTS, is_bare_name};

/// The name of a port, from 1 to 15 bytes.
///
/// ```
/// use classyard_datapath::pipeline::PortName;
///
/// assert_eq!(PortName::new("eth0").unwrap().as_str(), "eth0");
/// assert_eq!(PortName::new("a name that is too long"), None);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PortName {
    bytes: [u8; MAX_PORT_NAME_BYTES],
    length: u8,
}

impl PortName {
    /// Returns a name. Returns `None` if it is empty, has more than 15 bytes, is the name of
    /// a reserved port such as `flood`, or has a quotation mark, a `#` or a control
    /// character, which a line of text cannot have in a name.
    #[must_use]
    pub fn new(name: &str) -> Option<PortName> {
        let is_bad = |c: char| c.is_control() || c == '"' || c == '#';
        let mut reserved = RESERVED_PORTS.iter();
        let is_reserved = reserved.any(|(word, _)| word.eq_ignore_ascii_case(name));
        if name.is_empty() || is_reserved || name.contains(is_bad) {
            return None;
        }
        let mut bytes = [0; MAX_PORT_NAME_BYTES];
        bytes
            .get_mut(..name.len())?
            .copy_from_slice(name.as_bytes());
        let length = u8::try_from(name.len()).ok()?;
        Some(PortName { bytes, length })
    }

    /// Returns the name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        let bytes = &self.bytes[..usize::from(self.length)];
        std::str::from_utf8(bytes).expect("the bytes of a text")
    }
}

impl fmt::Debug for PortName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_str().fmt(f)
    }
}

impl fmt::Display for PortName {
    /// Writes the name as in a line of text: in quotes if it needs them.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match is_bare_name(self.as_str()) {
            true => f.write_str(self.as_str()),
            false => write!(f, "\"{}\"", self.as_str()),
        }
    }
}

/// The speed of a port, in kilobits per second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PortSpeed(pub u32);

impl fmt::Display for PortSpeed {
    /// Writes the speed with the largest unit that needs no decimals, such as `10G`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = [("T", 1_000_000_000), ("G", 1_000_000), ("M", 1_000)];
        let mut units = units.into_iter();
        let fitting = units.find(|(_, scale)| self.0 > 0 && self.0.is_multiple_of(*scale));
        let (unit, scale) = fitting.unwrap_or(("K", 1));
        write!(f, "{}{unit}", self.0 / scale)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_a_line_cannot_have_are_refused() {
        for bad in ["", "Flood", "a\"b", "a#b", "a\nb", "0123456789abcdef"] {
            assert_eq!(PortName::new(bad), None, "{bad:?}");
        }
        assert_eq!(
            PortName::new("0123456789abcde").unwrap().to_string(),
            "\"0123456789abcde\""
        );
        assert_eq!(PortName::new("é").unwrap().as_str(), "é");
    }

    #[test]
    fn speeds_have_the_largest_unit() {
        for (kilobits, text) in [
            (10_000_000, "10G"),
            (2_500_000, "2500M"),
            (64, "64K"),
            (4_000_000_000, "4T"),
            (0, "0K"),
        ] {
            assert_eq!(PortSpeed(kilobits).to_string(), text);
        }
    }
}
