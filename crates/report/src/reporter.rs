//! Messages to the user on standard error: notes, warnings, errors, progress.
//!
//! Never writes data: data goes to standard output.

use std::io::{self, IsTerminal as _, Write as _};
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use anstyle::{AnsiColor, Style};
use classyard_workload::diagnostic::{Problems, ReadError};
use classyard_workload::formats::WriteReport;
use classyard_workload::limits::FileLimit;
use indicatif::{ProgressBar, ProgressStyle};

use crate::failure::Failure;
use crate::output::diagnostics;
use crate::output::style::{counted, paint};
use crate::suggestion::similar_file;

/// Work that takes less time shows no progress bar.
const MIN_TIME_FOR_BAR: Duration = Duration::from_secs(1);

/// The maximum number of skipped lines that are listed one by one.
const SKIPPED_SHOWN: usize = 5;

const ERROR: Style = AnsiColor::Red.on_default().bold();
const WARNING: Style = AnsiColor::Yellow.on_default().bold();
const NOTE: Style = AnsiColor::Cyan.on_default().bold();

/// Writes messages to the user.
#[derive(Clone, Copy, Debug)]
pub struct Reporter {
    quiet: bool,
}

impl Reporter {
    /// Creates a reporter; with `quiet` it prints errors only.
    pub fn new(quiet: bool) -> Reporter {
        Reporter { quiet }
    }

    /// Prints a note.
    pub fn note(self, text: &str) {
        if !self.quiet {
            say(NOTE, "note", text);
        }
    }

    /// Prints a warning.
    pub fn warn(self, text: &str) {
        if !self.quiet {
            say(WARNING, "warning", text);
        }
    }

    /// Notes that a part of a long job is done, if no progress bar shows it.
    pub fn finished(self, text: &str) {
        if !self.quiet && !io::stderr().is_terminal() {
            say(NOTE, "measured", text);
        }
    }

    /// Prints the number of skipped lines of a file, and the reasons.
    pub fn skipped(self, problems: &Problems) {
        if self.quiet || problems.is_empty() {
            return;
        }
        let lines = format!(
            "{} {} skipped",
            counted(problems.total(), "bad line"),
            if problems.total() == 1 { "was" } else { "were" }
        );
        let mut text = format!("{}: {lines}", problems.source());
        for problem in problems.shown().iter().take(SKIPPED_SHOWN) {
            text.push_str(&format!("\n  {}:{problem}", problems.source()));
        }
        if problems.total() > SKIPPED_SHOWN {
            text.push_str(&format!(
                "\n  and {} more",
                problems.total() - SKIPPED_SHOWN
            ));
            let reasons = problems.by_reason();
            let reasons = reasons
                .iter()
                .map(|(reason, count)| format!("{count} {reason}"));
            let reasons: Vec<String> = reasons.collect();
            text.push_str(&format!("\n  in all: {}", reasons.join(", ")));
        }
        self.warn(&text);
    }

    /// Lists the rules that a written file lacks, or has for fewer headers, and the
    /// reasons. Printed even if quiet, since the exit code reports the loss as well.
    pub(crate) fn losses(self, report: &WriteReport, file: &str) {
        let losses = &report.losses;
        let mut text = format!(
            "{} of {} lost or changed in {file}; the rest was written",
            losses.total(),
            counted(report.rules, "rule")
        );
        for loss in losses.shown() {
            text.push_str(&format!("\n  {loss}"));
        }
        let hidden = losses.total() - losses.shown().len();
        if hidden > 0 {
            text.push_str(&format!("\n  and {hidden} more"));
        }
        say(ERROR, "error", &text);
    }

    /// Prints why the command failed.
    pub fn failure(self, failure: &Failure) {
        match failure {
            Failure::Different => {}
            Failure::Interrupted { .. } => {
                self.warn("interrupted; the report and the files cover the input up to that point");
            }
            Failure::Output(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
            Failure::Output(error) => say(ERROR, "error", &format!("standard output: {error}")),
            Failure::Usage { message, help } => {
                say(ERROR, "error", message);
                if let Some(help) = help {
                    say(NOTE, "help", help);
                }
            }
            Failure::Read(ReadError::Bad(problems)) => {
                write(&diagnostics::render(problems));
            }
            Failure::Read(error) => {
                say(ERROR, "error", &error.to_string());
                if let Some(advice) = advice(error) {
                    say(NOTE, "help", advice);
                }
                if let ReadError::Io { file, error } = error
                    && error.kind() == io::ErrorKind::NotFound
                    && let Some(near) = similar_file(file)
                {
                    say(NOTE, "help", &format!("did you mean `{near}`?"));
                }
                let help = match error {
                    ReadError::SeveralTables { .. } | ReadError::NoSuchTable { .. } => {
                        "--table N reads only the flows of table N"
                    }
                    ReadError::NoTables { .. } => "--table applies to flows of Open vSwitch only",
                    _ => return,
                };
                say(NOTE, "help", help);
            }
        }
    }

    /// Returns a progress bar for work that begins now.
    pub fn progress(self) -> Progress {
        Progress {
            shown: !self.quiet && io::stderr().is_terminal(),
            began: Instant::now(),
            stage: "",
            stage_began: Instant::now(),
            bar: None,
        }
    }
}

/// Returns the help for a file that exceeds a limit.
fn advice(error: &ReadError) -> Option<&'static str> {
    match error {
        ReadError::Limit { what: "rules", .. } => Some("--limit-rules raises the limit"),
        ReadError::Limit {
            what: "headers" | "packets",
            ..
        } => Some("--limit-headers raises the limit"),
        ReadError::TooLong { limit, .. }
            if limit.what == FileLimit::TEXT.what || limit.what == FileLimit::CAPTURE.what =>
        {
            Some("--limit-bytes raises the limit; the bytes are held in memory")
        }
        _ => None,
    }
}

fn say(style: Style, label: &str, text: &str) {
    write(&format!("{} {text}\n", paint(style, &format!("{label}:"))));
}

fn write(text: &str) {
    // If standard error is closed, the error cannot be reported.
    let _ = anstream::AutoStream::auto(io::stderr().lock()).write_all(text.as_bytes());
}

/// A progress bar that appears only if the work takes long.
pub struct Progress {
    shown: bool,
    began: Instant,
    stage: &'static str,
    stage_began: Instant,
    bar: Option<ProgressBar>,
}

impl classyard::Progress for Progress {
    fn report(&mut self, stage: &'static str, done: usize, total: usize) -> ControlFlow<()> {
        if !self.shown {
            return ControlFlow::Continue(());
        }
        if stage != self.stage {
            self.stage = stage;
            self.stage_began = Instant::now();
        }
        if self.began.elapsed() < MIN_TIME_FOR_BAR {
            return ControlFlow::Continue(());
        }
        let bar = self.bar.get_or_insert_with(|| {
            let style = "{msg:20} {bar:30} {percent:>3} %  {prefix}";
            let style = ProgressStyle::with_template(style).expect("the template is valid");
            ProgressBar::new(0).with_style(style)
        });
        bar.set_message(stage);
        bar.set_prefix(to_go(self.stage_began.elapsed(), done, total));
        bar.set_length(total as u64);
        bar.set_position(done as u64);
        ControlFlow::Continue(())
    }
}

/// Estimates the remaining time of a stage from its speed so far.
#[allow(clippy::cast_precision_loss)] // an estimate
fn to_go(so_far: Duration, done: usize, total: usize) -> String {
    if done == 0 || done > total {
        return String::new();
    }
    let remaining_seconds = so_far.as_secs_f64() * (total - done) as f64 / done as f64;
    match remaining_seconds {
        seconds if seconds >= 90.0 => format!("about {:.0} min to go", seconds / 60.0),
        seconds => format!("about {:.0} s to go", seconds.ceil()),
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rest_takes_as_long_as_the_start_did() {
        assert_eq!(to_go(Duration::from_secs(2), 20, 100), "about 8 s to go");
        assert_eq!(to_go(Duration::from_secs(60), 10, 100), "about 9 min to go");
        assert_eq!(to_go(Duration::from_secs(1), 0, 100), "");
    }

    #[test]
    fn every_limit_that_a_flag_raises_names_it() {
        let limit = |what| ReadError::Limit {
            file: "f".into(),
            line: 1,
            limit: 1,
            what,
        };
        for (what, flag) in [
            ("rules", "--limit-rules"),
            ("headers", "--limit-headers"),
            ("packets", "--limit-headers"),
        ] {
            assert!(advice(&limit(what)).unwrap().starts_with(flag));
        }
        let long = |limit| ReadError::TooLong {
            file: "f".into(),
            limit,
        };
        assert!(advice(&long(FileLimit::TEXT)).is_some());
        assert!(advice(&long(FileLimit::CAPTURE)).is_some());
        assert!(advice(&long(FileLimit::SCHEMA)).is_none());
    }
}
