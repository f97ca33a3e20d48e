//! `classyard switch capture`: the frames of a running switch's ports.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::PathBuf;

use classyard_report::failure::Failure;
use classyard_report::output::file::is_dash;
use classyard_report::reporter::Reporter;
use classyard_switch::control::{CaptureLimits, Request};

use super::target::RunDir;

/// Bytes that are copied at a time.
const COPY_BYTES: usize = 1 << 16;

/// Capture the frames of a running switch's ports
///
/// Writes pcapng, with the name of the port and the direction of each frame. Frames are as
/// the switch has them: checksums may be partial, and frames longer than the MTU are cut into
/// segments later. The capture ends at a limit, or when this command ends. Frames that come
/// faster than they are written are left out, and counted by `switch show`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  classyard switch capture veth1 -w veth1.pcapng -n 100
  classyard switch capture -w - | tcpdump -r -
      all ports, until Ctrl-C")]
pub(crate) struct Args {
    /// The name of the port; without it, all ports
    #[arg(value_name = "PORT")]
    port: Option<String>,

    /// The file to write, or - for standard output
    #[arg(short, long = "write", value_name = "FILE")]
    write: PathBuf,

    /// The number of frames after which the capture ends
    #[arg(short = 'n', long, value_name = "COUNT")]
    count: Option<u64>,

    /// The number of bytes of each frame that are kept
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u32).range(14..))]
    snap: Option<u32>,

    /// The number of seconds after which the capture ends
    #[arg(long, value_name = "SECONDS")]
    seconds: Option<u64>,

    /// The name of the switch; without it, the only running switch
    #[arg(long, value_name = "NAME")]
    switch: Option<String>,

    #[command(flatten)]
    run_dir: RunDir,
}

/// Runs the command.
pub(super) fn run(args: &Args, reporter: Reporter) -> Result<(), Failure> {
    let mut target = args.run_dir.connect(args.switch.as_deref())?;
    target.request::<()>(&Request::Capture {
        port: args.port.clone(),
        limits: CaptureLimits {
            max_packets: args.count,
            max_packet_bytes: args.snap,
            max_seconds: args.seconds,
        },
    })?;
    let stream = target.into_stream();
    // A capture may have no frames for any time.
    let set = stream.get_ref().set_read_timeout(None);
    set.map_err(|error| Failure::usage(format!("the connection to the switch fails: {error}")))?;
    if is_dash(&args.write) {
        return copy(stream, &mut io::stdout().lock()).map_err(Failure::Output);
    }
    let failed = |error: io::Error| Failure::file(&args.write, error);
    let mut file = File::create(&args.write).map_err(failed)?;
    copy(stream, &mut file).map_err(failed)?;
    reporter.note(&format!("the capture is in {}", args.write.display()));
    Ok(())
}

/// Copies frames as they come.
fn copy(mut stream: impl Read, out: &mut dyn Write) -> io::Result<()> {
    let mut bytes = vec![0; COPY_BYTES];
    loop {
        let count = stream.read(&mut bytes)?;
        if count == 0 {
            return out.flush();
        }
        out.write_all(&bytes[..count])?;
        out.flush()?;
    }
}
