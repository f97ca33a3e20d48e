//! `classyard switch reload`: a running switch reads its configuration file again.

use std::io::{self, Write};

use classyard_report::failure::Failure;
use classyard_report::output::table::{fact, remark};
use classyard_report::output::{OutputArgs, Report, csv};
use classyard_switch::control::{ReloadStatus, Request};
use serde::Serialize;

use super::target::NamedSwitch;

/// Make a running switch read its configuration file again
///
/// Ports, controllers and listeners are added and removed, and the PEM files of `[tls]` are read
/// again. Flows stay. Other settings take effect when the switch is started again; the report
/// lists their keys. A file with a mistake changes nothing.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  classyard switch reload
  classyard switch reload br0 --format json

The exit code is 1 if some changes failed; the report lists them.

JSON: switch, removed_ports, added_ports, removed_controllers, added_controllers, \
removed_listeners, added_listeners, restart_keys (settings that wait for the next start) and \
failures. All except switch are lists of texts.")]
pub(crate) struct Args {
    #[command(flatten)]
    switch: NamedSwitch,

    #[command(flatten)]
    output: OutputArgs,
}

#[derive(Serialize)]
struct ReloadReport {
    switch: String,
    #[serde(flatten)]
    status: ReloadStatus,
}

/// Runs the command.
pub(super) fn run(args: &Args) -> Result<(), Failure> {
    let mut target = args.switch.connect()?;
    let report = ReloadReport {
        status: target.request(&Request::Reload)?,
        switch: target.name,
    };
    args.output.report(&report)?;
    match report.status.failures.is_empty() {
        true => Ok(()),
        false => Err(Failure::Different),
    }
}

/// The kind of a change of ports, controllers or listeners.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Removed,
    Added,
}

impl ReloadReport {
    /// Returns the changed ports, controllers and listeners: the kind of change, the noun,
    /// the key, and the items.
    fn changes(&self) -> [(Kind, &'static str, &'static str, &[String]); 6] {
        use Kind::{Added, Removed};
        let status = &self.status;
        let removed_controllers = &status.removed_controllers;
        let added_controllers = &status.added_controllers;
        [
            (Removed, "port", "removed_ports", &status.removed_ports),
            (
                Removed,
                "controller",
                "removed_controllers",
                removed_controllers,
            ),
            (
                Removed,
                "listener",
                "removed_listeners",
                &status.removed_listeners,
            ),
            (Added, "port", "added_ports", &status.added_ports),
            (Added, "controller", "added_controllers", added_controllers),
            (
                Added,
                "listener",
                "added_listeners",
                &status.added_listeners,
            ),
        ]
    }

    /// Returns the lines for people of one kind of changes.
    fn lines(&self, kind: Kind) -> Vec<String> {
        let changes = self.changes().into_iter();
        let changes = changes.filter(|change| change.0 == kind);
        let lines = changes
            .flat_map(|(_, noun, _, items)| items.iter().map(move |item| format!("{noun} {item}")));
        lines.collect()
    }
}

impl Report for ReloadReport {
    fn table(&self, out: &mut dyn Write) -> io::Result<()> {
        fact(out, "Switch", &self.switch)?;
        let facts = [
            ("Removed", self.lines(Kind::Removed)),
            ("Added", self.lines(Kind::Added)),
            ("At restart", self.status.restart_keys.clone()),
            ("Failed", self.status.failures.clone()),
        ];
        for (label, lines) in &facts {
            if !lines.is_empty() {
                fact(out, label, lines.join("\n"))?;
            }
        }
        match facts.iter().all(|(_, lines)| lines.is_empty()) {
            true => remark(out, "the configuration has not changed"),
            false => Ok(()),
        }
    }

    fn csv(&self, out: &mut csv::Writer<'_>) -> io::Result<()> {
        out.row(&[&"change", &"item"])?;
        let status = &self.status;
        let changes = self.changes().map(|(_, _, key, items)| (key, items));
        let others: [(&str, &[String]); 2] = [
            ("restart_keys", &status.restart_keys),
            ("failures", &status.failures),
        ];
        for (key, items) in changes.into_iter().chain(others) {
            for item in items {
                out.row(&[&key, item])?;
            }
        }
        Ok(())
    }
}
