//! The command line of classyard: see [`app`] for the commands.

mod app;
mod bench;
mod chart;
mod commands;
mod embedded;
mod failure;
mod input;
mod output;
mod talk;

use std::process::ExitCode;

fn main() -> ExitCode {
    app::run(std::env::args_os())
}
