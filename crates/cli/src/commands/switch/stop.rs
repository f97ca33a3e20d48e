//! `classyard switch stop`: ends a running switch.

use classyard_report::failure::Failure;
use classyard_report::reporter::Reporter;
use classyard_switch::control::Request;

use super::target::NamedSwitch;

/// Stop a running switch
///
/// The switch closes its ports and the connections to controllers. Flows are not kept.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  classyard switch stop
  classyard switch stop br0")]
pub(crate) struct Args {
    #[command(flatten)]
    switch: NamedSwitch,
}

/// Runs the command.
pub(super) fn run(args: &Args, reporter: Reporter) -> Result<(), Failure> {
    let mut target = args.switch.connect()?;
    target.request::<()>(&Request::Stop)?;
    reporter.note(&format!("switch `{}` is stopping", target.name));
    Ok(())
}
