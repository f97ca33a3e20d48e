//! `classyard completions`: scripts that complete commands in a shell.

use std::io::Write as _;

use clap_complete::Shell;
use classyard_report::failure::Failure;
use classyard_report::output;

/// Print a script that completes commands and flags in a shell
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  classyard completions bash > ~/.local/share/bash-completion/completions/classyard
  classyard completions zsh > ~/.zfunc/_classyard
  classyard completions fish > ~/.config/fish/completions/classyard.fish")]
pub(crate) struct Args {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

/// Runs the command.
pub(crate) fn run(args: &Args, command: &mut clap::Command) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, command, "classyard", &mut script);
    let mut out = output::raw_stdout();
    out.write_all(&script)?;
    out.flush()?;
    Ok(())
}
