//! The input of commands: rules, headers, packets, and parsers for arguments.

use std::fs::File;
use std::io;
use std::path::Path;
use std::time::Duration;

use classyard::EngineSpec;
use classyard_workload::diagnostic::ReadError;
use classyard_workload::formats::{read_bytes_from, read_text_file, read_text_from};
use classyard_workload::limits::FileLimit;

use crate::output::file::is_dash;
use crate::registry;

pub mod build_limits;
mod cache_options;
pub mod caches;
pub mod family;
pub mod files;
pub mod frames;
pub mod header_text;
pub mod headers;
pub mod left_out;
pub mod limits;
pub mod load;
pub mod rules;
pub mod switch;

/// Returns the name of a path in messages.
pub fn source_name(path: &Path) -> String {
    if is_dash(path) {
        "standard input".to_owned()
    } else {
        path.display().to_string()
    }
}

/// Reads a file, or standard input for `-`; gzip is unpacked.
pub fn read_bytes(path: &Path, limit: FileLimit) -> Result<Vec<u8>, ReadError> {
    let source = source_name(path);
    if is_dash(path) {
        return read_bytes_from(&source, io::stdin().lock(), limit);
    }
    match File::open(path) {
        Ok(file) => read_bytes_from(&source, file, limit),
        Err(error) => Err(ReadError::Io {
            file: source,
            error,
        }),
    }
}

/// Parses a time, for the argument parser.
pub fn span(text: &str) -> Result<Duration, String> {
    let units = [("ms", 1e-3), ("s", 1.0), ("m", 60.0)];
    let seconds = units.iter().find_map(|(unit, seconds)| {
        let number = text.strip_suffix(unit)?.parse::<f64>().ok()?;
        Some(number * seconds)
    });
    match seconds {
        Some(seconds) if (0.01..=86_400.0).contains(&seconds) => {
            Ok(Duration::from_secs_f64(seconds))
        }
        _ => Err(format!(
            "`{text}` is not a time; expected a number with its unit such as 500ms, 5s or 1m, from \
             10ms to a day"
        )),
    }
}

/// Reads a text file, or standard input for `-`; gzip is unpacked.
pub fn read_text(path: &Path, limit: FileLimit) -> Result<String, ReadError> {
    if is_dash(path) {
        return read_text_from(&source_name(path), io::stdin().lock(), limit);
    }
    read_text_file(path, limit)
}

/// Parses an engine's specification, for the argument parser.
pub fn engine(text: &str) -> Result<EngineSpec, String> {
    registry::parse(text).map_err(|error| error.to_string())
}

/// The engines that one argument names: a single engine, or all.
#[derive(Clone, Debug)]
pub struct Engines(Vec<EngineSpec>);

impl Engines {
    /// The word for all registered engines.
    const ALL: &str = "all";

    /// Parses a specification or `all`, for the argument parser.
    pub fn parse(text: &str) -> Result<Engines, String> {
        if text == Engines::ALL {
            return Ok(Engines(registry::all().collect()));
        }
        Ok(Engines(vec![engine(text)?]))
    }

    /// Returns the engines that `words` name, in order, without duplicates.
    pub fn join(words: &[Engines]) -> Vec<EngineSpec> {
        let mut specs: Vec<EngineSpec> = Vec::new();
        for spec in words.iter().flat_map(|word| &word.0) {
            if !specs.contains(spec) {
                specs.push(spec.clone());
            }
        }
        specs
    }
}

/// Parses a count such as `500`, `10k` or `1M`, for the argument parser.
pub fn count(text: &str) -> Result<usize, String> {
    let expected = || format!("`{text}` is not a count; expected a number such as 500, 10k or 1M");
    let (digits, scale) = match text.as_bytes().last() {
        Some(b'k' | b'K') => (&text[..text.len() - 1], 1_000),
        Some(b'm' | b'M') => (&text[..text.len() - 1], 1_000_000),
        _ => (text, 1),
    };
    if let Ok(number) = digits.replace('_', "").parse::<usize>() {
        return number.checked_mul(scale).ok_or_else(expected);
    }
    // `1.5M`
    let number: f64 = digits.parse().map_err(|_| expected())?;
    #[allow(clippy::cast_precision_loss)] // scale is at most a million
    let product = number * scale as f64;
    if scale == 1 || !(0.0..=1e15).contains(&product) || product.fract() != 0.0 {
        return Err(expected());
    }
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // checked above
    Ok(product as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units() {
        assert_eq!(span("5s"), Ok(Duration::from_secs(5)));
        assert_eq!(span("250ms"), Ok(Duration::from_millis(250)));
        assert_eq!(span("1.5m"), Ok(Duration::from_secs(90)));
        for bad in ["", "5", "0s", "1ms", "-1s", "2d", "nans", "infs"] {
            assert!(span(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn counts_have_suffixes() {
        assert_eq!(count("0"), Ok(0));
        assert_eq!(count("10k"), Ok(10_000));
        assert_eq!(count("1M"), Ok(1_000_000));
        assert_eq!(count("1.5M"), Ok(1_500_000));
        for bad in [
            "", "k", "-1", "1.5", "1e", "ten", "inf", "nanM", "infk", "0.0001k",
        ] {
            assert!(count(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_near_word_is_suggested() {
        assert!(
            engine("tuplmerge")
                .unwrap_err()
                .contains("did you mean `tuplemerge`?")
        );
        assert!(!engine("zzz").unwrap_err().contains("did you mean"));
        assert!(engine("tuplemerge").is_ok());
    }

    #[test]
    fn all_engines_are_asked_for_with_one_word() {
        let read = |words: &[&str]| {
            let words = words.iter().map(|word| Engines::parse(word).unwrap());
            Engines::join(&words.collect::<Vec<_>>())
        };
        assert_eq!(read(&["all"]), EngineSpec::all().collect::<Vec<_>>());
        let engines = read(&["tss", "all", "tss:mask=no-ports", "tss"]);
        assert_eq!(engines.len(), EngineSpec::all().count() + 1);
        assert_eq!(engines[0].to_string(), "tss");
        assert!(Engines::parse("every").is_err());
    }
}
