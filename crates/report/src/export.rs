//! Files of rules and of packets that commands write, and their losses.

use std::path::Path;

use classyard::{Policy, PolicyTrace};
use classyard_configs::{ConfigFormat, WriteError as ConfigError};
use classyard_workload::capture;
use classyard_workload::formats::{Effect, RuleFormat, WriteError, WriteReport, write_statements};

use crate::failure::Failure;
use crate::input::rules::LoadedRules;
use crate::output::file::{WriteFailure, is_dash, to_file};
use crate::output::style::counted;
use crate::reporter::Reporter;

/// Writes rules to a file or to standard output and reports what the format could
/// not express.
///
/// # Errors
/// [`Failure::Different`] if a rule was lost or changed; the file has the rest.
pub fn write_rules(
    policy: &Policy,
    format: RuleFormat,
    path: &Path,
    reporter: Reporter,
) -> Result<(), Failure> {
    write_rules_of(policy, &[], format, path, reporter)
}

/// As [`write_rules`], with the statement of each rule: see [`write_statements`].
fn write_rules_of(
    policy: &Policy,
    statement_of_rule: &[u32],
    format: RuleFormat,
    path: &Path,
    reporter: Reporter,
) -> Result<(), Failure> {
    let report = to_file(path, |out| {
        write_statements(policy, statement_of_rule, format, out).map_err(written)
    })?;
    tell(&report, reporter);
    if report.losses.is_empty() {
        return Ok(());
    }
    let file = match is_dash(path) {
        true => "standard output".to_owned(),
        false => path.display().to_string(),
    };
    reporter.losses(&report, &file);
    Err(Failure::Different)
}

/// Writes rules as a configuration of a firewall, to a file or to standard output.
///
/// # Errors
/// [`Failure::Usage`] if the format cannot express the rules. It names the first such rules,
/// and nothing is written.
pub fn write_config(
    rules: &LoadedRules,
    format: ConfigFormat,
    default_action: Option<&str>,
    path: &Path,
    reporter: Reporter,
) -> Result<(), Failure> {
    let written = rules.to_config(format, default_action);
    let written = written.map_err(|error| refused(rules, format.name(), &error))?;
    to_file(path, |out| {
        out.write_all(written.text.as_bytes())
            .map_err(WriteFailure::Io)
    })?;
    for note in &written.notes {
        reporter.note(note);
    }
    reporter.note(&format!(
        "{} written as {}",
        counted(rules.policy.len(), "rule"),
        counted(written.statements, "statement")
    ));
    Ok(())
}

/// Writes rules in a format of rules with a line each. Rules of firewalls become five-tuples
/// in formats that have no other fields: Open vSwitch and ClassBench.
///
/// # Errors
/// As [`write_rules`], and as [`write_config`] for rules of firewalls.
pub fn write_loaded(
    rules: &LoadedRules,
    format: RuleFormat,
    path: &Path,
    reporter: Reporter,
) -> Result<(), Failure> {
    if rules.policy.name() != Policy::ACL || matches!(format, RuleFormat::Rules | RuleFormat::Json)
    {
        let statements = rules.statement_of_rule().unwrap_or_default();
        return write_rules_of(&rules.policy, statements, format, path, reporter);
    }
    let is_ovs = format == RuleFormat::Ovs;
    let action = |name: &str| {
        Some(match name {
            "permit" | "accept" | "allow" if is_ovs => "NORMAL".to_owned(),
            "deny" | "drop" if is_ovs => "drop".to_owned(),
            _ if is_ovs => return None,
            name => name.to_owned(),
        })
    };
    let tuples = classyard_configs::as_five_tuples(&rules.policy, action);
    let tuples = tuples.map_err(|error| refused(rules, format.name(), &error))?;
    write_rules(&tuples, format, path, reporter)
}

/// Returns the failure for rules that a format cannot express.
fn refused(rules: &LoadedRules, format: &str, error: &ConfigError) -> Failure {
    let failure = |message| Failure::usage(format!("{}: {message}", rules.source));
    match error {
        ConfigError::Rules { shown, total } => {
            let mut text = format!(
                "{format} cannot express {}; nothing was written",
                counted(*total, "rule")
            );
            for refusal in shown {
                let position = rules.policy.position(refusal.rule);
                let line = position.and_then(|position| rules.line(position));
                let line = line.map_or_else(String::new, |line| line.to_string());
                text.push_str(&format!("\n  {}:{line}: {}", rules.source, refusal.reason));
            }
            if *total > shown.len() {
                text.push_str(&format!("\n  and {} more", total - shown.len()));
            }
            failure(text)
        }
        ConfigError::NoDefault { .. } => failure(error.to_string())
            .with_help("--default permit or --default deny sets the action of such packets"),
        ConfigError::List { .. } => {
            failure(error.to_string()).with_help("--list NAME selects one list")
        }
        _ => failure(error.to_string()),
    }
}

/// Distinguishes a failed write from rules that the format cannot express.
fn written(error: WriteError) -> WriteFailure {
    match error {
        WriteError::Io(error) => WriteFailure::Io(error),
        other => WriteFailure::Other(Failure::usage(other.to_string())),
    }
}

/// Reports losses and changes of rules that were written to a file.
fn tell(report: &WriteReport, reporter: Reporter) {
    if report.rules != report.lines {
        reporter.note(&format!(
            "{} written as {}",
            counted(report.rules, "rule"),
            counted(report.lines, "line")
        ));
    }
    // Lost rules are named one by one, unless they are too many.
    let named = report.losses.shown().len() == report.losses.total();
    for note in &report.notes {
        match note.effect {
            Effect::Exact | Effect::Restated => reporter.note(&note.text),
            Effect::Changed if named => {}
            Effect::Changed => reporter.warn(&note.text),
        }
    }
}

/// True if a file's name is a capture's name.
pub fn is_capture(path: &Path) -> bool {
    let extension = path.extension().and_then(|extension| extension.to_str());
    matches!(extension, Some("pcap" | "cap"))
}

/// Writes headers as packets, each with its time in nanoseconds, and reports what
/// packets could not express.
pub fn write_capture(
    trace: &PolicyTrace,
    path: &Path,
    time: impl Fn(usize) -> u64,
    reporter: Reporter,
) -> Result<(), Failure> {
    let report = to_file(path, |out| {
        capture::write_trace(out, trace, time).map_err(|error| match error {
            capture::WriteError::Io(error) => WriteFailure::Io(error),
            other => WriteFailure::Other(Failure::usage(other.to_string())),
        })
    })?;
    for (count, what) in [
        (
            report.ports_lost,
            "lost ports, which their protocol does not have",
        ),
        (report.protocols_lost, "could not keep their protocol"),
    ] {
        if count > 0 {
            reporter.warn(&format!("{} {what}", counted(count, "header")));
        }
    }
    Ok(())
}

/// Returns the time of a packet that has none: one packet per microsecond.
pub fn one_a_microsecond(index: usize) -> u64 {
    u64::try_from(index)
        .unwrap_or(u64::MAX)
        .saturating_mul(1000)
}
