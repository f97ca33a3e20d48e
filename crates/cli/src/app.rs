//! The command line: its commands, and how failures end the program.

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::process::ExitCode;

use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use classyard::engine::Engine;
use classyard_lab::{bench, calibrate, reproduce};
use classyard_report::command_line;
use classyard_report::failure::{EXIT_USAGE, Failure};
use classyard_report::interrupt;
use classyard_report::output;
use classyard_report::registry;
use classyard_report::reporter::Reporter;

use crate::commands::{
    advise, check, classify, completions, convert, diff, engines, explain, formats, generate,
    inspect, lint, minimise, plot, profiles, query, replay, switch, trace,
};

/// The columns of help on a wide terminal.
const HELP_WIDTH: usize = 100;

/// Packet classification: which rule does a packet hit, how fast, and why
///
/// Without files, most commands work on an embedded example: the traffic of a
/// small office and its firewall.
#[derive(Debug, Parser)]
#[command(
    name = "classyard",
    version,
    arg_required_else_help = true,
    subcommand_required = true,
    max_term_width = HELP_WIDTH,
    after_help = "\
Examples:
  classyard classify                             the embedded example, classified
  classyard classify -r fw.rules -c dump.pcap    packets of a capture against rules
  classyard explain -r fw.rules --header \"src=10.0.0.1 dst=10.0.0.2 dport=443 proto=tcp\"

`classyard help COMMAND` describes a command.

Exit codes: 0 fine; 1 answers differ, problems were found or rules were lost; 2 bad usage, \
unreadable input or unwritable output; 130 and 143 interrupted (Ctrl-C, SIGTERM)."
)]
struct Cli {
    /// Print errors only
    #[arg(short, long, global = true, help_heading = "Output")]
    quiet: bool,

    #[command(subcommand)]
    command: Command,
}

/// The commands. A new command needs a line here and a line in [`dispatch`].
#[derive(Debug, Subcommand)]
enum Command {
    Classify(classify::Args),
    Explain(explain::Args),
    Replay(replay::Args),
    Trace(trace::Args),
    Switch(switch::Args),
    Bench(Box<bench::Args>),
    Plot(plot::Args),
    Reproduce(reproduce::Args),
    Check(check::Args),
    Generate(Box<generate::Args>),
    Convert(convert::Args),
    Inspect(inspect::Args),
    Lint(lint::Args),
    Minimise(minimise::Args),
    Diff(diff::Args),
    Query(query::Args),
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
        Command::Switch(args) => switch::run(args, reporter),
        Command::Bench(args) => bench::run(args, reporter),
        Command::Plot(args) => plot::run(args, reporter),
        Command::Reproduce(args) => reproduce::run(args, reporter),
        Command::Check(args) => check::run(args, reporter),
        Command::Generate(args) => generate::run(args, reporter),
        Command::Convert(args) => convert::run(args, reporter),
        Command::Inspect(args) => inspect::run(args, reporter),
        Command::Lint(args) => lint::run(args, reporter),
        Command::Minimise(args) => minimise::run(args, reporter),
        Command::Diff(args) => diff::run(args, reporter),
        Command::Query(args) => query::run(args, reporter),
        Command::Advise(args) => advise::run(args, reporter),
        Command::Calibrate(args) => calibrate::run(args, reporter),
        Command::Profiles(args) => profiles::run(args),
        Command::Formats(args) => formats::run(args),
        Command::Engines(args) => engines::run(args),
        Command::Completions(args) => completions::run(args, &mut Cli::command()),
    }
}

/// Runs a command line whose first word is the program's name. The commands offer
/// the engines in `engines`, which must include `linear` (the oracle) and `forest`
/// (the default). Later calls in the same process keep the engines of the first
/// call.
pub fn run(engines: &'static [Engine], words: impl IntoIterator<Item = OsString>) -> ExitCode {
    registry::set(engines);
    let words: Vec<OsString> = words.into_iter().collect();
    command_line::keep(&words);
    interrupt::install();
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

/// Parses a command line. Help is as wide as the terminal, at most 100 columns.
fn parse(words: impl IntoIterator<Item = OsString>) -> Result<Cli, clap::Error> {
    let mut command = Cli::command();
    if let Some(width) = output::width() {
        command = command.term_width(usize::from(width).min(HELP_WIDTH));
    }
    let matches = command.try_get_matches_from_mut(words)?;
    Cli::from_arg_matches(&matches).map_err(|error| error.format(&mut command))
}

/// Prints the requested help or version, or the error in a command line.
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
    use std::collections::BTreeMap;

    use clap::{Arg, Command};

    use super::*;

    fn built() -> Command {
        let mut command = Cli::command();
        command.build();
        command
    }

    /// Returns `root` and all commands below it with their names, except clap's
    /// built-in `help`.
    fn commands(root: &Command) -> Vec<(String, &Command)> {
        let mut commands = Vec::new();
        let mut pending = vec![(String::new(), root)];
        while let Some((path, command)) = pending.pop() {
            let subcommands = command.get_subcommands();
            let subcommands = subcommands.filter(|command| command.get_name() != "help");
            pending.extend(subcommands.map(|below| {
                let name = format!("{path} {}", below.get_name());
                (name.trim().to_owned(), below)
            }));
            commands.push((path, command));
        }
        commands
    }

    fn help_after(command: &Command) -> String {
        let after = command.get_after_help().or(command.get_after_long_help());
        after.map(ToString::to_string).unwrap_or_default()
    }

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_command_has_an_example_and_every_flag_has_help() {
        let root = built();
        for (name, command) in commands(&root) {
            assert!(
                help_after(command).contains("Example"),
                "{name} has no example"
            );
            for argument in command.get_arguments() {
                let id = argument.get_id();
                assert!(argument.get_help().is_some(), "{name}: {id} has no help");
            }
        }
    }

    /// Returns the words of an example up to a pipe or redirection, or `None` if it
    /// ends in an ellipsis.
    fn words(line: &str) -> Option<Vec<String>> {
        let mut words = vec![String::new()];
        let mut is_quoted = false;
        for character in line.chars() {
            match character {
                '"' | '\'' => is_quoted = !is_quoted,
                ' ' if !is_quoted => words.push(String::new()),
                _ => words.last_mut()?.push(character),
            }
        }
        words.retain(|word| !word.is_empty());
        let end_index = words.iter().position(|word| word == "|" || word == ">");
        words.truncate(end_index.unwrap_or(words.len()));
        words
            .iter()
            .all(|word| !word.ends_with("..."))
            .then_some(words)
    }

    #[test]
    fn examples_are_taken_by_the_commands_that_show_them() {
        let root = built();
        let mut tried = 0;
        for (name, command) in commands(&root) {
            let text = help_after(command).replace("\\\n", "");
            for line in text.lines().filter_map(|line| {
                let begin = line.find("classyard ")?;
                // At least two spaces separate an example from its description.
                line.trim_start()
                    .starts_with("classyard ")
                    .then(|| &line[begin..])
            }) {
                let line = line.split("  ").next().unwrap_or(line);
                let Some(words) = words(line) else { continue };
                let taken = Cli::command().try_get_matches_from(&words);
                assert!(taken.is_ok(), "{name}: {line}\n{}", taken.unwrap_err());
                tried += 1;
            }
        }
        assert!(tried >= 50, "{tried}");
    }

    /// Returns the kind of value that a flag takes, from its placeholder in the help.
    fn kind(argument: &Arg) -> String {
        if !argument.get_action().takes_values() {
            return "nothing".to_owned();
        }
        let names = argument.get_value_names().unwrap_or_default();
        let name = names.first().map_or("", |name| name.as_str());
        let kind = match name {
            "N" | "COUNT" | "NUMBER" | "K" => "a number",
            "NS" | "COUNTS" => "numbers",
            // A list may have a single item.
            "NAMES" => "NAME",
            "SPECS" => "SPEC",
            "OTHER" => "FILE",
            other => other,
        };
        kind.to_owned()
    }

    /// A flag's letter and the kind of value that it takes.
    type Meaning = (Option<char>, String);

    #[test]
    fn a_flag_means_the_same_in_every_command() {
        // A folder counts as a place for several files.
        let place_kinds = ["FILE", "DIR"];
        let root = built();
        let mut by_name: BTreeMap<String, (String, Meaning)> = BTreeMap::new();
        let mut by_letter: BTreeMap<char, (String, String)> = BTreeMap::new();
        for (command_name, command) in commands(&root) {
            for argument in command.get_arguments() {
                let Some(long) = argument.get_long() else {
                    continue;
                };
                let takes = kind(argument);
                let is_place = long == "output" && place_kinds.contains(&takes.as_str());
                let takes = if is_place {
                    "a place".to_owned()
                } else {
                    takes
                };
                let meaning = (argument.get_short(), takes);
                let known = by_name
                    .entry(long.to_owned())
                    .or_insert_with(|| (command_name.clone(), meaning.clone()));
                assert_eq!(
                    known.1, meaning,
                    "--{long} of `{}` and of `{command_name}`",
                    known.0
                );
                let Some(letter) = argument.get_short() else {
                    continue;
                };
                // `--engine` and `--engines` count as the same name.
                let long = long.strip_suffix('s').unwrap_or(long).to_owned();
                let known = by_letter
                    .entry(letter)
                    .or_insert_with(|| (command_name.clone(), long.clone()));
                assert_eq!(
                    known.1, long,
                    "-{letter} of `{}` and of `{command_name}`",
                    known.0
                );
            }
        }
        for (letter, long) in [
            ('c', "capture"),
            ('n', "count"),
            ('o', "output"),
            ('p', "pipeline"),
            ('r', "rule"),
        ] {
            assert_eq!(by_letter[&letter].1, long);
        }
    }

    #[test]
    fn reports_that_have_json_have_ndjson() {
        let root = built();
        let mut reports = 0;
        for (name, command) in commands(&root) {
            let format = command.get_arguments();
            let mut format = format.filter(|argument| argument.get_long() == Some("format"));
            let Some(format) = format.next() else {
                continue;
            };
            let values = format.get_possible_values();
            let values: Vec<&str> = values
                .iter()
                .map(clap::builder::PossibleValue::get_name)
                .collect();
            assert!(values.contains(&"json"), "{name}: {values:?}");
            assert!(values.contains(&"ndjson"), "{name}: {values:?}");
            reports += 1;
        }
        assert!(reports >= 12, "{reports}");
    }
}
