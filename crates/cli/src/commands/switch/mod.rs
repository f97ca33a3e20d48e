//! `classyard switch`: a virtual OpenFlow switch.

use classyard_report::failure::Failure;
use classyard_report::reporter::Reporter;

mod capture;
mod check_config;
mod demo;
mod dump;
mod dump_megaflows;
mod ports;
mod reload;
mod run;
mod show;
mod stop;
mod target;
mod top;
mod trace;

/// Run a virtual OpenFlow switch; check its configuration, show and change running switches
///
/// docs/switch.md describes configurations.
#[derive(Debug, clap::Args)]
#[command(
    arg_required_else_help = true,
    subcommand_required = true,
    after_help = "\
Examples:
  classyard switch run --demo
  classyard switch run br0.toml
  classyard switch run --port veth1 --port veth2
  classyard switch check-config br0.toml
  classyard switch show
  classyard switch top
  classyard switch add-port veth1 --number 1
  classyard switch reload
  classyard switch stop br0

`classyard switch COMMAND --help` describes a command."
)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

/// The commands. A new command needs a line here and a line in [`run`].
#[derive(Debug, clap::Subcommand)]
enum Command {
    Run(run::Args),
    CheckConfig(check_config::Args),
    Show(show::Args),
    AddPort(ports::AddArgs),
    DelPort(ports::DelArgs),
    Dump(dump::Args),
    DumpMegaflows(dump_megaflows::Args),
    Trace(trace::Args),
    Top(top::Args),
    Capture(capture::Args),
    Reload(reload::Args),
    Stop(stop::Args),
}

/// Runs the command.
pub(crate) fn run(args: &Args, reporter: Reporter) -> Result<(), Failure> {
    match &args.command {
        Command::Run(args) => run::run(args, reporter),
        Command::CheckConfig(args) => check_config::run(args, reporter),
        Command::Show(args) => show::run(args),
        Command::AddPort(args) => ports::add(args, reporter),
        Command::DelPort(args) => ports::delete(args, reporter),
        Command::Dump(args) => dump::run(args),
        Command::DumpMegaflows(args) => dump_megaflows::run(args),
        Command::Trace(args) => trace::run(args),
        Command::Top(args) => top::run(args),
        Command::Capture(args) => capture::run(args, reporter),
        Command::Reload(args) => reload::run(args),
        Command::Stop(args) => stop::run(args, reporter),
    }
}
