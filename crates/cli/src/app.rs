//! The command line: which commands there are, and what becomes of failures.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{CommandFactory as _, Parser, Subcommand};
use classyard::engine::Engine;

use crate::commands::{
    bench, check, classify, completions, convert, engines, explain, generate, inspect, plot,
    profiles, reproduce,
};
use crate::failure::{EXIT_USAGE, Failure};
use crate::registry;
use crate::talk::Talk;

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
    max_term_width = 100,
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
    Bench(Box<bench::Args>),
    Plot(plot::Args),
    Reproduce(reproduce::Args),
    Check(check::Args),
    Generate(Box<generate::Args>),
    Convert(convert::Args),
    Inspect(inspect::Args),
    Engines(engines::Args),
    Profiles(profiles::Args),
    Completions(completions::Args),
}

fn dispatch(command: &Command, talk: Talk) -> Result<(), Failure> {
    match command {
        Command::Classify(args) => classify::run(args, talk),
        Command::Explain(args) => explain::run(args, talk),
        Command::Bench(args) => bench::run(args, talk),
        Command::Plot(args) => plot::run(args, talk),
        Command::Reproduce(args) => reproduce::run(args, talk),
        Command::Check(args) => check::run(args, talk),
        Command::Generate(args) => generate::run(args, talk),
        Command::Convert(args) => convert::run(args, talk),
        Command::Inspect(args) => inspect::run(args, talk),
        Command::Profiles(args) => profiles::run(args),
        Command::Engines(args) => engines::run(args),
        Command::Completions(args) => completions::run(args, &mut Cli::command()),
    }
}

/// Runs a command line: `words` begin with the program's name. Commands know
/// the engines of that list; `linear` and `forest` must be among them, the
/// oracle and the default. The engines of the first call count.
pub fn run(engines: &'static [Engine], words: impl IntoIterator<Item = OsString>) -> ExitCode {
    registry::set(engines);
    let cli = match Cli::try_parse_from(words) {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version are asked for; everything else is bad usage.
            let code = if error.use_stderr() { EXIT_USAGE } else { 0 };
            // There is nobody left to tell if the streams are gone.
            let _ = error.print();
            return ExitCode::from(code);
        }
    };
    let talk = Talk::new(cli.quiet);
    match dispatch(&cli.command, talk) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            talk.failure(&failure);
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
