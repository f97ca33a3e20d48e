//! `classyard switch dump`: the contents of a running switch as text.

use std::io::Write;

use classyard_report::failure::Failure;
use classyard_switch::control::Request;

use super::target::NamedSwitch;

/// Write the ports, tables, groups, meters and flows of a running switch
///
/// The text is in the syntax of `ovs-ofctl`, and has no counts. `classyard trace`, `replay`
/// and the `flows` of a configuration read it.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  classyard switch dump > br0.flows
  classyard switch dump br0 > br0.flows && classyard trace -p br0.flows -c dump.pcap
      the way of a captured packet through the flows that the switch has now")]
pub(crate) struct Args {
    #[command(flatten)]
    switch: NamedSwitch,
}

/// Runs the command.
pub(super) fn run(args: &Args) -> Result<(), Failure> {
    let mut target = args.switch.connect()?;
    let text: String = target.request(&Request::Dump)?;
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())
        .and_then(|()| out.flush())
        .map_err(Failure::Output)
}
