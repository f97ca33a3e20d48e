//! Finished measurements, kept in a file, so that an interrupted reproduction continues.
//!
//! The file's first line records the [`Circumstances`]; every other line is one
//! measurement, written as soon as it is finished. A last line that was cut short is
//! dropped.

use std::collections::HashMap;
use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use classyard_report::failure::Failure;
use classyard_report::output::records::RecordFile;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The name of the file.
pub(super) const FILE: &str = "points.ndjson";

/// Everything that all measurements depend on: the paper, the program, the machine and the
/// options. The names of points have the hashes of own inputs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Circumstances {
    pub(super) paper: String,
    pub(super) version: String,
    /// The hash of the program's file.
    #[serde(default)]
    pub(super) build: String,
    pub(super) processor: String,
    /// Options by name, as text.
    pub(super) options: Vec<(String, String)>,
}

impl Circumstances {
    /// Returns the first value of `other` that differs, as text; `None` if all are equal.
    fn difference(&self, other: &Circumstances) -> Option<String> {
        let named = |circumstances: &Circumstances| -> Vec<(String, String)> {
            let mut named = vec![
                ("paper".to_owned(), circumstances.paper.clone()),
                ("version".to_owned(), circumstances.version.clone()),
                ("build".to_owned(), circumstances.build.clone()),
                ("processor".to_owned(), circumstances.processor.clone()),
            ];
            named.extend(circumstances.options.iter().cloned());
            named
        };
        let (own, others) = (named(self), named(other));
        let differs = others.iter().find(|entry| !own.contains(entry));
        differs.map(|(name, value)| match value.as_str() {
            "" => format!("{name} unknown"),
            value => format!("{name} {value}"),
        })
    }
}

/// A measurement.
#[derive(Serialize, Deserialize)]
struct Line {
    point: String,
    measured: Value,
}

/// The finished measurements.
pub(super) struct Points {
    path: PathBuf,
    file: RecordFile,
    done: HashMap<String, Value>,
}

impl Points {
    /// Opens the file in a folder, or creates it.
    ///
    /// # Errors
    /// If the file has measurements of other circumstances, cannot be parsed, or cannot
    /// be written.
    pub(super) fn open(
        folder: &Path,
        circumstances: &Circumstances,
        restart: bool,
    ) -> Result<Points, Failure> {
        let path = folder.join(FILE);
        let fail = |error: &dyn std::fmt::Display| Failure::file(&path, error);
        let text = match fs::read_to_string(&path) {
            Ok(text) if !restart => text,
            Err(error) if error.kind() != ErrorKind::NotFound && !restart => {
                return Err(fail(&error));
            }
            _ => String::new(),
        };
        // An interrupted write leaves a last line without a newline.
        let whole = text.rfind('\n').map_or("", |end| &text[..=end]);
        let done = read(&path, whole, circumstances)?;
        let mut file = OpenOptions::new()
            .create(true)
            .write(true)
            .truncate(false)
            .open(&path)
            .map_err(|error| fail(&error))?;
        let length = u64::try_from(whole.len()).unwrap_or(u64::MAX);
        file.set_len(length).map_err(|error| fail(&error))?;
        std::io::Seek::seek(&mut file, std::io::SeekFrom::End(0)).map_err(|error| fail(&error))?;
        let file = RecordFile::after(&path, file, length);
        let mut points = Points { path, file, done };
        if whole.is_empty() {
            points.write(circumstances)?;
        }
        Ok(points)
    }

    /// The number of measurements.
    pub(super) fn len(&self) -> usize {
        self.done.len()
    }

    /// Returns the measurement of a point if it is finished.
    ///
    /// # Errors
    /// If the file's value for the point has another type.
    pub(super) fn get<T: DeserializeOwned>(&self, point: &str) -> Result<Option<T>, Failure> {
        let Some(value) = self.done.get(point) else {
            return Ok(None);
        };
        let known = T::deserialize(value).map_err(|error| {
            Failure::file(&self.path, format!("the point `{point}` is bad: {error}"))
                .with_help(RESTART)
        });
        known.map(Some)
    }

    /// Stores a measurement.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub(super) fn keep(&mut self, point: &str, measured: &impl Serialize) -> Result<(), Failure> {
        let value = serde_json::to_value(measured)?;
        self.write(&Line {
            point: point.to_owned(),
            measured: value.clone(),
        })?;
        self.done.insert(point.to_owned(), value);
        Ok(())
    }

    fn write(&mut self, line: &impl Serialize) -> Result<(), Failure> {
        let mut text = serde_json::to_vec(line)?;
        text.push(b'\n');
        let written = self.file.write_all(&text).and_then(|()| self.file.flush());
        written.map_err(|error| self.file.failure(error))
    }
}

/// The help for a file that cannot be used.
const RESTART: &str = "--output names another folder; --restart measures everything again";

fn read(
    path: &Path,
    text: &str,
    circumstances: &Circumstances,
) -> Result<HashMap<String, Value>, Failure> {
    let mut lines = text.lines();
    let Some(first) = lines.next() else {
        return Ok(HashMap::new());
    };
    let bad = |line: usize, error: serde_json::Error| {
        Failure::usage(format!(
            "{}:{line}: expected a measurement of `classyard reproduce`: {error}",
            path.display()
        ))
        .with_help(RESTART)
    };
    let before: Circumstances = serde_json::from_str(first).map_err(|error| bad(1, error))?;
    if let Some(difference) = circumstances.difference(&before) {
        return Err(Failure::usage(format!(
            "{} has measurements of another reproduction: {difference}",
            path.display()
        ))
        .with_help(RESTART));
    }
    let mut done = HashMap::new();
    for (index, line) in lines.enumerate() {
        let line: Line = serde_json::from_str(line).map_err(|error| bad(index + 2, error))?;
        done.insert(line.point, line.measured);
    }
    Ok(done)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn circumstances(seed: &str) -> Circumstances {
        Circumstances {
            paper: "tm19".to_owned(),
            version: "1".to_owned(),
            build: "b".to_owned(),
            processor: "one".to_owned(),
            options: vec![("--seed".to_owned(), seed.to_owned())],
        }
    }

    fn refused(result: Result<Points, Failure>) -> String {
        match result {
            Err(Failure::Usage { message, help }) => format!("{message}; {}", help.unwrap()),
            Err(other) => panic!("{other:?}"),
            Ok(_) => panic!("opened"),
        }
    }

    #[test]
    fn points_are_found_again_unless_something_differs() {
        let folder = std::env::temp_dir().join(format!("points-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let mut points = Points::open(&folder, &circumstances("1"), false).unwrap();
        assert_eq!((points.len(), points.get::<f64>("a").unwrap()), (0, None));
        points.keep("a", &1.5).unwrap();
        points.keep("b", &vec![1, 2]).unwrap();
        drop(points);

        // Cuts the last line short.
        let path = folder.join(FILE);
        let mut text = fs::read_to_string(&path).unwrap();
        text.push_str("{\"point\":\"c\",\"meas");
        fs::write(&path, &text).unwrap();
        let mut points = Points::open(&folder, &circumstances("1"), false).unwrap();
        assert_eq!(points.len(), 2);
        assert_eq!(points.get("a").unwrap(), Some(1.5));
        assert!(points.get::<f64>("b").is_err());
        points.keep("c", &3).unwrap();
        drop(points);
        let points = Points::open(&folder, &circumstances("1"), false).unwrap();
        assert_eq!(points.get("c").unwrap(), Some(3));
        drop(points);

        let refusal = refused(Points::open(&folder, &circumstances("2"), false));
        assert!(
            refusal.contains("another reproduction: --seed 1; --output"),
            "{refusal}"
        );
        fs::write(&path, "nonsense\n").unwrap();
        let bad = refused(Points::open(&folder, &circumstances("1"), false));
        assert!(bad.contains("points.ndjson:1: expected"), "{bad}");
        let points = Points::open(&folder, &circumstances("2"), true).unwrap();
        assert_eq!(points.len(), 0);
        fs::remove_dir_all(&folder).unwrap();
    }
}
