//! Tests with ClassBench's own files, if a folder with them exists. The files are read,
//! written and read again, and a scan finds the expected rule for each header.
//!
//! The folder is the nearest `shared/classbench` above this crate. The files are packed
//! with xz, which must be installed. Missing files are printed as skipped, with the reason.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use classyard::policy::PartId;
use classyard_workload::diagnostic::ReadOptions;
use classyard_workload::formats::{
    RuleFormat, SchemaChoice, read_policy, read_trace, write_policy, write_trace,
};

/// The number of checked files, and the skipped files with the reasons.
#[derive(Default)]
struct Tally {
    checked: usize,
    skipped: Vec<String>,
}

impl Drop for Tally {
    /// Prints the skipped files, also if all tests pass. Writes to standard error directly,
    /// because the test runner hides other output.
    fn drop(&mut self) {
        let mut stderr = std::io::stderr();
        let _ = writeln!(
            stderr,
            "classbench files: {} checked, {} skipped",
            self.checked,
            self.skipped.len()
        );
        for reason in &self.skipped {
            let _ = writeln!(stderr, "  skipped: {reason}");
        }
    }
}

fn folder() -> PathBuf {
    let above = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
    let mut folders = above.map(|folder| folder.join("shared/classbench"));
    let folder = folders.find(|folder| folder.is_dir());
    folder.unwrap_or_else(|| "shared/classbench".into())
}

/// Returns the files of a folder whose names end with `ending`, with their names without it.
fn files(folder: &Path, ending: &str, tally: &mut Tally) -> Vec<(PathBuf, String)> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) => {
            tally.skipped.push(format!("{}: {error}", folder.display()));
            return Vec::new();
        }
    };
    let mut files: Vec<_> = entries
        .filter_map(|entry| {
            let path = entry.ok()?.path();
            let name = path.file_name()?.to_str()?.strip_suffix(ending)?.to_owned();
            Some((path, name))
        })
        .collect();
    files.sort();
    if files.is_empty() {
        tally
            .skipped
            .push(format!("{}: no file {ending}", folder.display()));
    }
    files
}

fn unpack(path: &Path, tally: &mut Tally) -> Option<String> {
    let reason = match Command::new("xz").arg("-dc").arg(path).output() {
        Ok(output) if output.status.success() => {
            return Some(String::from_utf8(output.stdout).expect("ClassBench is ASCII"));
        }
        Ok(output) => String::from_utf8_lossy(&output.stderr).into_owned(),
        Err(error) => format!("xz: {error}"),
    };
    tally.skipped.push(format!("{}: {reason}", path.display()));
    None
}

#[test]
fn rule_files_survive_the_trip() {
    let mut tally = Tally::default();
    let options = ReadOptions::default();
    for (path, name) in files(&folder().join("rulesets"), ".rules.xz", &mut tally) {
        let Some(text) = unpack(&path, &mut tally) else {
            continue;
        };
        let policy = read_policy(&name, &text, None, None, &options)
            .unwrap()
            .value;
        assert_eq!(policy.len(), text.lines().count(), "{name}");
        assert_eq!(policy.name(), "ipv4-5tuple");
        let choice = SchemaChoice::of(&policy);
        for format in [RuleFormat::Classbench, RuleFormat::Rules] {
            let mut written = Vec::new();
            let report = write_policy(&policy, format, &mut written).unwrap();
            assert!(report.is_exact(), "{name}: {report}");
            let written = String::from_utf8(written).unwrap();
            let again = read_policy(&name, &written, None, choice.as_ref(), &options);
            let again = again.unwrap().value;
            let rules = policy.part(PartId::FIRST).iter();
            let others = again.part(PartId::FIRST).iter();
            assert_eq!(rules.len(), others.len());
            for (rule, other) in rules.zip(others) {
                assert_eq!(rule.words(), other.words(), "{name}");
                assert_eq!(rule.winner(), other.winner(), "{name}");
            }
        }
        // Our writer and the original writer differ only in the flags.
        let mut written = Vec::new();
        write_policy(&policy, RuleFormat::Classbench, &mut written).unwrap();
        let five = |line: &str| line.split('\t').take(5).collect::<Vec<_>>().join("\t");
        for (ours, theirs) in String::from_utf8(written)
            .unwrap()
            .lines()
            .zip(text.lines())
        {
            let (ours, theirs) = (five(ours), five(theirs));
            assert!(ours.eq_ignore_ascii_case(&theirs), "{ours} {theirs}");
        }
        tally.checked += 1;
    }
}

#[test]
fn expected_files_agree_with_a_scan() {
    let mut tally = Tally::default();
    let options = ReadOptions::default();
    let folder = folder();
    for (path, name) in files(&folder.join("expected"), ".expected.xz", &mut tally) {
        let rules = folder.join("rulesets").join(format!("{name}.rules.xz"));
        let unpacked = (unpack(&path, &mut tally), unpack(&rules, &mut tally));
        let (Some(text), Some(rules)) = unpacked else {
            continue;
        };
        let policy = read_policy(&name, &rules, None, None, &options)
            .unwrap()
            .value;
        let trace = read_trace(&name, &text, None, true, &options)
            .unwrap()
            .value;
        let expected = trace.expected.expect("asked for");
        let mut written = Vec::new();
        write_trace(&trace.headers, Some(&expected), &mut written).unwrap();
        assert_eq!(String::from_utf8(written).unwrap(), text, "{name}");
        // If there are many rules, only some headers are scanned, to limit the time.
        let rules = policy.part(PartId::FIRST);
        let step = 1 + rules.len() / 1000;
        let headers = trace.headers.iter().zip(&expected).step_by(step);
        for ((_, key), expected) in headers {
            assert_eq!(rules.scan(key).rule(), *expected, "{name}");
        }
        tally.checked += 1;
    }
}
