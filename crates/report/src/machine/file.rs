//! The file format of a calibrated machine.
//!
//! ```toml
//! form = 1
//! classyard = "0.1.0"
//! processor = "AMD EPYC 9B14"
//! date = "2026-11-24"
//!
//! [prices]
//! instruction_ns = 0.11
//! misprediction_ns = 5.3
//! caches = [49152, 1048576, 33554432]
//! dependent = [[8192, 1.6], [262144, 5.1], [268435456, 130.0]]
//! overlapped = [[8192, 0.6], [262144, 1.1], [268435456, 12.0]]
//!
//! [factors.forest]
//! batch = 1.04
//! ```

use std::fmt::Write as _;
use std::ops::Range;
use std::time::{SystemTime, UNIX_EPOCH};

use classyard::machine::{Curve, Machine, MachineError, Operation};
use classyard_workload::diagnostic::{Problem, Problems, ReadError};
use serde::Deserialize;
use toml::Spanned;

/// The version of the file format; other versions are rejected.
const FORMAT_VERSION: u32 = 1;

/// A calibrated machine, with the processor and date of the calibration.
#[derive(Clone, Debug, PartialEq)]
pub struct Calibration {
    /// The version of the program that measured the machine.
    pub version: String,
    /// The processor's name.
    pub processor: String,
    /// The day, as in `2026-11-24`.
    pub date: String,
    /// The prices of the machine's work.
    pub machine: Machine,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    form: Spanned<u32>,
    classyard: String,
    processor: String,
    date: String,
    prices: Prices,
    #[serde(default)]
    factors: std::collections::BTreeMap<String, Factors>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Prices {
    instruction_ns: Spanned<f64>,
    misprediction_ns: Spanned<f64>,
    caches: [usize; 3],
    dependent: Spanned<Vec<(f64, f64)>>,
    overlapped: Spanned<Vec<(f64, f64)>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Factors {
    batch: Option<Spanned<f64>>,
    single: Option<Spanned<f64>>,
    update: Option<Spanned<f64>>,
    build: Option<Spanned<f64>>,
}

/// An error in a file, and its position.
struct Wrong {
    place: Range<usize>,
    found: String,
    expected: String,
}

impl Wrong {
    fn at<T>(value: &Spanned<T>) -> impl FnOnce(MachineError) -> Wrong + use<T> {
        let bytes_range = value.span();
        move |error| Wrong {
            place: bytes_range,
            found: error.to_string(),
            expected: "what `classyard calibrate` writes".to_owned(),
        }
    }
}

impl Calibration {
    /// Parses a file's text; `source` names the file in errors.
    ///
    /// # Errors
    /// [`ReadError::Bad`] with line and column.
    pub fn from_toml(source: &str, text: &str) -> Result<Calibration, ReadError> {
        parse(text).map_err(|wrong| {
            let before = text.get(..wrong.place.start).unwrap_or(text);
            let line_start = before.rfind('\n').map_or(0, |at| at + 1);
            let line = text[line_start..].lines().next().unwrap_or("");
            let start_column = (before.len() - line_start).min(line.len());
            let end_column = (start_column + wrong.place.len()).clamp(start_column, line.len());
            let part = line.get(start_column..end_column).unwrap_or("");
            let number = before.matches('\n').count() + 1;
            let mut problems = Problems::new(source);
            problems.push(Problem::at(number, line, part, wrong.found, wrong.expected));
            ReadError::Bad(problems)
        })
    }

    /// Returns the file's text, which [`from_toml`](Self::from_toml) reads back.
    pub fn to_toml(&self) -> String {
        let word = |text: &str| toml::Value::String(text.to_owned()).to_string();
        let mut out = String::new();
        let machine = &self.machine;
        let [first, second, third] = machine.caches();
        // Writing to a string cannot fail.
        let _ = writeln!(
            out,
            "# Prices of a machine's work, measured by `classyard calibrate`: nanoseconds for\n\
             # instructions, mispredicted branches and cache lines, by bytes of the working set.\n\
             form = {FORMAT_VERSION}\n\
             classyard = {}\n\
             processor = {}\n\
             date = {}\n\
             \n\
             [prices]\n\
             instruction_ns = {:?}\n\
             misprediction_ns = {:?}\n\
             caches = [{first}, {second}, {third}]",
            word(&self.version),
            word(&self.processor),
            word(&self.date),
            machine.instruction_ns(),
            machine.misprediction_ns(),
        );
        let curves = [
            ("dependent", machine.dependent()),
            ("overlapped", machine.overlapped()),
        ];
        for (name, curve) in curves {
            let points = curve.points().iter();
            let points: Vec<String> = points
                .map(|(bytes, ns)| format!("    [{bytes:?}, {ns:?}],\n"))
                .collect();
            let _ = write!(out, "{name} = [\n{}]\n", points.concat());
        }
        let mut last = "";
        for (engine, operation, factor) in machine.factors() {
            if engine != last {
                let _ = write!(out, "\n[factors.{}]\n", word(engine));
                last = engine;
            }
            let _ = writeln!(out, "{} = {factor:?}", operation.name());
        }
        out
    }
}

fn parse(text: &str) -> Result<Calibration, Wrong> {
    let file: File = toml::from_str(text).map_err(|error| Wrong {
        place: error.span().unwrap_or(0..0),
        found: error.message().to_owned(),
        expected: "what `classyard calibrate` writes".to_owned(),
    })?;
    if *file.form.get_ref() != FORMAT_VERSION {
        return Err(Wrong {
            place: file.form.span(),
            found: format!("a file of form {}", file.form.get_ref()),
            expected: format!("form {FORMAT_VERSION}: calibrate again with this version"),
        });
    }
    let prices = file.prices;
    let curve =
        |points: &Spanned<Vec<(f64, f64)>>| Curve::new(points.get_ref()).map_err(Wrong::at(points));
    let (dependent, overlapped) = (curve(&prices.dependent)?, curve(&prices.overlapped)?);
    let instruction = &prices.instruction_ns;
    let misprediction = &prices.misprediction_ns;
    let mut machine = Machine::new(
        *instruction.get_ref(),
        *misprediction.get_ref(),
        dependent,
        overlapped,
        prices.caches,
    )
    .map_err(|error| {
        let bad_instruction =
            matches!(error, MachineError::BadPrice { name, .. } if name.starts_with("instruction"));
        Wrong::at(if bad_instruction {
            instruction
        } else {
            misprediction
        })(error)
    })?;
    for (engine, factors) in &file.factors {
        let factors = [
            (Operation::Batch, &factors.batch),
            (Operation::Single, &factors.single),
            (Operation::Update, &factors.update),
            (Operation::Build, &factors.build),
        ];
        for (operation, factor) in factors {
            let Some(factor) = factor else { continue };
            let set = machine.set_factor(engine, operation, *factor.get_ref());
            set.map_err(Wrong::at(factor))?;
        }
    }
    Ok(Calibration {
        version: file.classyard,
        processor: file.processor,
        date: file.date,
        machine,
    })
}

/// Returns today's date in UTC, such as `2026-11-24`.
pub fn today() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    date_of(since.map_or(0, |since| since.as_secs() / 86_400))
}

/// Returns the Gregorian date `days` days after 1970-01-01.
fn date_of(days: u64) -> String {
    // Count years from March, so that a leap day is the last day of its year.
    let days = days + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 {
        (month + 3, 0)
    } else {
        (month - 9, 1)
    };
    format!("{:04}-{month:02}-{day:02}", year + era * 400 + next)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn calibration() -> Calibration {
        let curve = |ns: f64| Curve::new(&[(8192.0, ns), (1e9, ns * 3.5)]).unwrap();
        let caches = [1 << 15, 1 << 20, 1 << 25];
        let mut machine = Machine::new(0.125, 5.5, curve(2.0), curve(0.5), caches).unwrap();
        machine
            .set_factor("forest", Operation::Batch, 1.25)
            .unwrap();
        machine.set_factor("forest", Operation::Build, 0.5).unwrap();
        machine
            .set_factor("own engine", Operation::Update, 2.0)
            .unwrap();
        Calibration {
            version: "1.2.3".to_owned(),
            processor: "A \"fast\" one".to_owned(),
            date: "2026-11-24".to_owned(),
            machine,
        }
    }

    #[test]
    fn what_is_written_is_read_back() {
        let text = calibration().to_toml();
        let read = Calibration::from_toml("m", &text).unwrap();
        assert_eq!(read, calibration(), "{text}");
    }

    /// Reports each fault at its position.
    #[test]
    fn faults_have_line_and_column() {
        let text = calibration().to_toml();
        let faults = [
            ("form = 1", "form = 2", "form 2"),
            (
                "instruction_ns = 0.125",
                "instruction_ns = -1.0",
                "instruction_ns is -1",
            ),
            (
                "misprediction_ns = 5.5",
                "misprediction_ns = nan",
                "misprediction_ns is NaN",
            ),
            (
                "misprediction_ns = 5.5",
                "misprediction_ns = \"x\"",
                "invalid type",
            ),
            ("batch = 1.25", "batch = 0.0", "factor is 0"),
            ("batch = 1.25", "butch = 1.25", "unknown field"),
            ("[8192.0, 2.0]", "[8192.0, 9.0]", "point 2"),
        ];
        for (right, wrong, found) in faults {
            let broken = text.replacen(right, wrong, 1);
            assert_ne!(broken, text, "{right}");
            let error = Calibration::from_toml("m", &broken).unwrap_err();
            let ReadError::Bad(problems) = error else {
                panic!("{error}");
            };
            let problem = &problems.shown()[0];
            assert!(problem.found.contains(found), "{problem}");
            let line = broken.lines().nth(problem.line - 1).unwrap();
            let column = problem.column - 1;
            assert!(column <= line.len(), "{problem}: {line}");
            let key = right.split(' ').next().unwrap();
            let name = key.trim_start_matches(['[', 'b']);
            assert!(
                line.contains(name) || line.contains("dependent") || line.contains("butch"),
                "{problem}: {line}"
            );
        }
        assert!(Calibration::from_toml("m", "").is_err());
        assert!(Calibration::from_toml("m", "form = ").is_err());
    }

    #[test]
    fn days_have_dates() {
        let days = [
            (0, "1970-01-01"),
            (58, "1970-02-28"),
            (59, "1970-03-01"),
            (11_016, "2000-02-29"),
            (20_781, "2026-11-24"),
        ];
        for (days, expected) in days {
            assert_eq!(date_of(days), expected);
        }
        assert_eq!(today().len(), 10);
    }
}
