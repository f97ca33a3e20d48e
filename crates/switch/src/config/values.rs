//! Values of a configuration file that are texts of a special form.

use std::path::{Path, PathBuf};
use std::time::Duration;

use classyard_text::line::quoted;

use super::faults::Mistake;

/// The largest number of bytes of the name of a switch, a port or an interface.
pub(super) const MAX_NAME_BYTES: usize = 15;

/// Units of durations, each with its number of milliseconds. Units that end in the letters
/// of another unit come first.
const UNITS_MS: [(&str, u64); 3] = [("ms", 1), ("s", 1_000), ("m", 60_000)];

/// Reads a duration such as `5s`, `500ms` or `2m`, from `min` to `max`.
pub(super) fn duration(text: &str, min: Duration, max: Duration) -> Result<Duration, Mistake> {
    let parsed = UNITS_MS.iter().find_map(|(unit, unit_ms)| {
        let number = text.strip_suffix(unit)?;
        let is_whole = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
        let number: u64 = number.parse().ok().filter(|_| is_whole)?;
        number.checked_mul(*unit_ms).map(Duration::from_millis)
    });
    let parsed = parsed.filter(|duration| (min..=max).contains(duration));
    parsed.ok_or_else(|| {
        let (min, max) = (duration_text(min), duration_text(max));
        let expected = format!("a duration with its unit from \"{min}\" to \"{max}\"");
        Mistake::new(quoted(text), expected)
    })
}

/// Returns a duration as configuration files have it, such as `5s`. Fractions of a millisecond are left out.
#[must_use]
pub fn duration_text(duration: Duration) -> String {
    let milliseconds = duration.as_millis();
    match milliseconds % 1_000 {
        0 => format!("{}s", milliseconds / 1_000),
        _ => format!("{milliseconds}ms"),
    }
}

/// Returns a datapath id as eight bytes in hexadecimal with colons, such as
/// `00:00:00:00:00:00:00:01`.
#[must_use]
pub fn datapath_id_text(id: u64) -> String {
    let bytes = id.to_be_bytes().map(|byte| format!("{byte:02x}"));
    bytes.join(":")
}

/// Reads a datapath id: eight bytes in hexadecimal with colons, or 16 hexadecimal digits.
pub(super) fn datapath_id(text: &str) -> Option<u64> {
    let digits: String = match text.split(':').collect::<Vec<_>>() {
        parts if parts.len() == 1 => text.to_owned(),
        parts if parts.len() == 8 && parts.iter().all(|part| part.len() == 2) => parts.concat(),
        _ => return None,
    };
    let is_hex = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    let id = u64::from_str_radix(&digits, 16).ok()?;
    (digits.len() == 16 && is_hex).then_some(id)
}

/// Checks the name of a switch, which names its files in the run folder.
pub(super) fn switch_name(name: &str) -> Result<(), Mistake> {
    let is_good = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
    let begins_well = name.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
    if begins_well && name.len() <= MAX_NAME_BYTES && name.bytes().all(is_good) {
        return Ok(());
    }
    let expected = format!(
        "a name of 1 to {MAX_NAME_BYTES} letters, digits, `_`, `-` and `.` that begins with a \
         letter, a digit or `_`"
    );
    Err(Mistake::new(quoted(name), expected))
}

/// Checks the name of a network interface, as Linux does.
pub(super) fn interface_name(name: &str) -> Result<(), Mistake> {
    let is_bad = |c: char| c == '/' || c == ':' || c.is_whitespace() || c.is_control();
    let has_length = (1..=MAX_NAME_BYTES).contains(&name.len());
    if has_length && !name.contains(is_bad) && name != "." && name != ".." {
        return Ok(());
    }
    let expected = format!(
        "the name of a network interface: 1 to {MAX_NAME_BYTES} bytes without spaces, `/` and `:`"
    );
    Err(Mistake::new(quoted(name), expected))
}

/// Returns a path of the configuration, which is relative to the folder of the file.
pub(super) fn path(text: &str, folder: &Path) -> Result<PathBuf, Mistake> {
    if text.is_empty() || text.contains('\0') {
        return Err(Mistake::new(quoted(text), "a path in quotes"));
    }
    Ok(folder.join(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIN_TIME: Duration = Duration::from_millis(100);
    const MAX_TIME: Duration = Duration::from_secs(3600);

    #[test]
    fn durations_have_units() {
        let read = |text| duration(text, MIN_TIME, MAX_TIME);
        assert_eq!(read("5s"), Ok(Duration::from_secs(5)));
        assert_eq!(read("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(read("2m"), Ok(Duration::from_secs(120)));
        for text in [
            "",
            "5",
            "s",
            "+5s",
            "-5s",
            "5.5s",
            "5 s",
            "99ms",
            "61m",
            "5h",
            "99999999999999999999s",
        ] {
            let mistake = read(text).unwrap_err();
            assert_eq!(mistake.found, format!("`{text}`"));
            assert_eq!(
                mistake.expected,
                "a duration with its unit from \"100ms\" to \"3600s\""
            );
        }
    }

    #[test]
    fn datapath_ids_are_read_and_written() {
        let text = "00:1b:21:ff:fe:a0:00:2c";
        let id = datapath_id(text).unwrap();
        assert_eq!(id, 0x001b_21ff_fea0_002c);
        assert_eq!(datapath_id_text(id), text);
        assert_eq!(datapath_id("001b21fffea0002c"), Some(id));
        for text in [
            "",
            "1",
            "00:01",
            "00:00:00:00:00:00:00:0g",
            "+01b21fffea0002c",
        ] {
            assert_eq!(datapath_id(text), None, "{text}");
        }
        for text in ["0:00:00:00:00:00:00:001", "001b21fffea0002c0"] {
            assert_eq!(datapath_id(text), None, "{text}");
        }
    }

    #[test]
    fn names_are_short_and_name_files() {
        for name in ["br0", "_", "a.b-c_d", "123456789012345"] {
            assert_eq!(switch_name(name), Ok(()), "{name}");
        }
        for name in ["", ".", "..", "-a", "a/b", "a b", "ü", "1234567890123456"] {
            assert!(switch_name(name).is_err(), "{name}");
        }
        assert_eq!(interface_name("eth0.100@if2"), Ok(()));
        for name in ["", "..", "a b", "a/b", "eth0:1", "1234567890123456"] {
            assert!(interface_name(name).is_err(), "{name}");
        }
    }
}
