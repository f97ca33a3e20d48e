//! The command line: which commands there are, and what becomes of failures.

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::process::ExitCode;

use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use classyard::engine::Engine;

use crate::command_line;
use crate::commands::{
    advise, bench, calibrate, check, classify, completions, convert, engines, explain, formats,
    generate, inspect, plot, profiles, replay, reproduce, trace,
};
use crate::failure::{EXIT_USAGE, Failure};
use crate::output;
use crate::registry;
use crate::reporter::Reporter;

/// The columns of help on a wide terminal.
const HELP_WIDTH: usize = 100;

/// Packet classification: which rule does a packet hit, how fast, and why.
///
/// Without files, most commands work on an embedded example: the traffic of a
/// small office and its firewall.
#[derive(Debug, Parser)]
#[command(
    name = "classyard",
    version,
    arg_required_else_help = true,
    subcommand_required = true,
    disable_help_subcommand = true,
    max_term_width = HELP_WIDTH,
    after_help = "\
Examples:
  classyard classify                             the embedded example, classified
  classyard classify -r fw.rules -c dump.pcap    packets of a capture against rules
  classyard explain -r fw.rules --header \"src=10.0.0.1 dst=10.0.0.2 dport=443 proto=tcp\"

Exit codes: 0 fine; 1 answers differ, problems were found or rules were lost; 2 bad usage or unreadable input."
)]
struct Cli {
    /// Say nothing on standard error but errors
    #[arg(short, long, global = true, help_heading = "Output")]
    quiet: bool,

    #[command(subcommand)]
    command: Command,
}

/// The commands. One more is a line here and a line in [`dispatch`].
#[derive(Debug, Subcommand)]
enum Command {
    Classify(classify::Args),
    Explain(explain::Args),
    Replay(replay::Args),
    Trace(trace::Args),
    Bench(Box<bench::Args>),
    Plot(plot::Args),
    Reproduce(reproduce::Args),
    Check(check::Args),
    Generate(Box<generate::Args>),
    Convert(convert::Args),
    Inspect(inspect::Args),
    Advise(advise::Args),
    Calibrate(calibrate::Args),
    Engines(engines::Args),
    Profiles(profiles::Args),
    Formats(formats::Args),
    Completions(completions::Args),
}

fn dispatch(command: &Command, reporter: Reporter) -> Result<(), Failure> {
    match command {
        Command::Classify(args) => classify::run(args, reporter),
        Command::Explain(args) => explain::run(args, reporter),
        Command::Replay(args) => replay::run(args, reporter),
        Command::Trace(args) => trace::run(args, reporter),
        Command::Bench(args) => bench::run(args, reporter),
        Command::Plot(args) => plot::run(args, reporter),
        Command::Reproduce(args) => reproduce::run(args, reporter),
        Command::Check(args) => check::run(args, reporter),
        Command::Generate(args) => generate::run(args, reporter),
        Command::Convert(args) => convert::run(args, reporter),
        Command::Inspect(args) => inspect::run(args, reporter),
        Command::Advise(args) => advise::run(args, reporter),
        Command::Calibrate(args) => calibrate::run(args, reporter),
        Command::Profiles(args) => profiles::run(args),
        Command::Formats(args) => formats::run(args),
        Command::Engines(args) => engines::run(args),
        Command::Completions(args) => completions::run(args, &mut Cli::command()),
    }
}

/// Runs a command line: `words` begin with the program's name. Commands know
/// the engines of that list; `linear` and `forest` must be among them, the
/// oracle and the default. The engines of the first call count.
pub fn run(engines: &'static [Engine], words: impl IntoIterator<Item = OsString>) -> ExitCode {
    registry::set(engines);
    let words: Vec<OsString> = words.into_iter().collect();
    command_line::keep(&words);
    let cli = match parse(words) {
        Ok(cli) => cli,
        Err(error) => return explain(&error),
    };
    let reporter = Reporter::new(cli.quiet);
    match dispatch(&cli.command, reporter) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            reporter.failure(&failure);
            ExitCode::from(failure.code())
        }
    }
}

/// Reads a command line; help is as wide as the terminal, 100 columns at most.
fn parse(words: impl IntoIterator<Item = OsString>) -> Result<Cli, clap::Error> {
    let mut command = Cli::command();
    if let Some(width) = output::width() {
        command = command.term_width(usize::from(width).min(HELP_WIDTH));
    }
    let matches = command.try_get_matches_from_mut(words)?;
    Cli::from_arg_matches(&matches).map_err(|error| error.format(&mut command))
}

/// Prints help or the version, which were asked for, or what is wrong with a
/// command line.
fn explain(error: &clap::Error) -> ExitCode {
    let printed = error.print().and_then(|()| io::stdout().flush());
    if error.use_stderr() {
        // If standard error is closed, the error cannot be reported.
        return ExitCode::from(EXIT_USAGE);
    }
    match printed {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let failure = Failure::Output(error);
            Reporter::new(false).failure(&failure);
            ExitCode::from(failure.code())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_command_has_an_example_and_every_flag_has_help() {
        fn check(command: &clap::Command) {
            let name = command.get_name();
            let after = command.get_after_help().or(command.get_after_long_help());
            let text = after.map(ToString::to_string).unwrap_or_default();
            assert!(text.contains("Example"), "{name} has no example");
            for argument in command.get_arguments() {
                assert!(
                    argument.get_help().is_some(),
                    "{name}: {} has no help",
                    argument.get_id()
                );
            }
            command.get_subcommands().for_each(check);
        }
        let mut command = Cli::command();
        command.build();
        check(&command);
    }
}
