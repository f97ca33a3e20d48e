//! The command line of classyard, with the engines of the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    classyard_cli::run(classyard::engine::ENGINES, std::env::args_os())
}
