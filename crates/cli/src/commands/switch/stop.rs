//! `classyard switch stop`: ends a running switch.

use classyard_report::failure::Failure;
use classyard_report::reporter::Reporter;
use classyard_switch::control::Request;

use super::target::RunDir;

/// Stop a running switch
///
/// The switch closes its ports and the connections to controllers. Flows are not kept.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  classyard switch stop
  classyard switch stop br0")]
pub(crate) struct Args {
    /// The name of the switch; without it, the only running switch
    #[arg(value_name = "NAME")]
    name: Option<String>,

    #[command(flatten)]
    run_dir: RunDir,
}

/// Runs the command.
pub(super) fn run(args: &Args, reporter: Reporter) -> Result<(), Failure> {
    let mut target = args.run_dir.connect(args.name.as_deref())?;
    target.request::<()>(&Request::Stop)?;
    reporter.note(&format!("switch `{}` is stopping", target.name));
    Ok(())
}
