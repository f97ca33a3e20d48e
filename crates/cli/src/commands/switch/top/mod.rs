//! `classyard switch top`: the rates of a running switch, again and again.

use std::io::{self, Write};
use std::thread;
use std::time::{Duration, Instant};

use classyard_report::failure::Failure;
use classyard_report::interrupt::{self, SoftStop};
use classyard_report::output::{self, Format, OutputArgs, Report, csv, json};
use classyard_switch::control::{Request, SwitchStatus};

use super::target::{NamedSwitch, Target};

mod rates;
mod report;

use rates::TopReport;

/// The pause between two checks for Ctrl-C.
const INTERRUPT_PAUSE: Duration = Duration::from_millis(50);

/// Moves the cursor of a terminal to the first row, and clears the screen.
const CLEAR_SCREEN: &[u8] = b"\x1b[H\x1b[2J";

/// Show the rates of ports and workers of a running switch, refreshed each second
///
/// On a terminal, the screen shows packets and bits a second of each port, the load of each
/// worker, the hits of its flow caches, drops by reason, and controllers. If standard output is
/// not a terminal, each interval has a line for each of them. Ctrl-C ends the command.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  classyard switch top
  classyard switch top br0 --interval 5
  classyard switch top --count 1 --format json
      the rates of the next second

docs/switch.md describes the reasons of drops.")]
pub(crate) struct Args {
    #[command(flatten)]
    switch: NamedSwitch,

    /// The seconds between two reports, 0.1 to 3600
    #[arg(long, default_value = "1", value_name = "SECONDS", value_parser = interval)]
    interval: Duration,

    /// The number of reports after which the command ends
    #[arg(short = 'n', long, value_name = "COUNT")]
    count: Option<u64>,

    #[command(flatten)]
    output: OutputArgs,
}

/// Parses the interval, for the argument parser.
fn interval(text: &str) -> Result<Duration, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.1..=3600.0).contains(&seconds) => Ok(Duration::from_secs_f64(seconds)),
        _ => Err(format!("`{text}`; expected 0.1 to 3600 seconds")),
    }
}

/// Runs the command.
pub(super) fn run(args: &Args) -> Result<(), Failure> {
    let _soft_stop = SoftStop::hold();
    let mut target = args.switch.connect()?;
    let mut status = show(&mut target)?;
    let mut due = Instant::now();
    let mut reports = 0;
    while args.count.is_none_or(|count| reports < count) {
        due += args.interval;
        if !sleep_until(due) {
            break;
        }
        let new = show(&mut target)?;
        let report = TopReport::between(&status, &new);
        write(&report, args.output.format, reports == 0)?;
        status = new;
        reports += 1;
        // After a pause of the process, no report is made up for.
        due = due.max(Instant::now() - args.interval);
    }
    Ok(())
}

fn show(target: &mut Target) -> Result<SwitchStatus, Failure> {
    target.request(&Request::Show)
}

/// Sleeps until a time. Returns false if Ctrl-C comes before.
fn sleep_until(time: Instant) -> bool {
    loop {
        let rest = time.saturating_duration_since(Instant::now());
        if interrupt::is_requested() {
            return false;
        }
        if rest.is_zero() {
            return true;
        }
        thread::sleep(rest.min(INTERRUPT_PAUSE));
    }
}

/// Writes a report to standard output. JSON has one line for each.
fn write(report: &TopReport, format: Format, is_first: bool) -> Result<(), Failure> {
    if format == Format::Table && output::width().is_some() {
        return write_screen(report).map_err(Failure::Output);
    }
    let mut out = output::stdout();
    let written = match format {
        Format::Table => report.lines(&mut out),
        Format::Json | Format::Ndjson => json::write_line(report, &mut out),
        Format::Csv => report.rows(&mut csv::Writer::new(&mut out), is_first),
    };
    written.and_then(|()| out.flush()).map_err(Failure::Output)
}

/// Writes a report to a cleared terminal. Lines below the last row are left out.
fn write_screen(report: &TopReport) -> io::Result<()> {
    let mut text = Vec::new();
    report.table(&mut text)?;
    let text = String::from_utf8_lossy(&text);
    let rows = output::height().unwrap_or(u16::MAX);
    let shown: Vec<&str> = text
        .lines()
        .take(usize::from(rows).saturating_sub(1))
        .collect();
    let mut codes = output::raw_stdout();
    codes.write_all(CLEAR_SCREEN)?;
    codes.flush()?;
    drop(codes);
    let mut out = output::stdout();
    writeln!(out, "{}", shown.join("\n"))?;
    out.flush()
}
