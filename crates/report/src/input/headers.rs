//! Headers to classify: from a capture, a trace or the embedded example.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use classyard::{Policy, PolicyTrace};
use classyard_workload::capture::{
    self, Capture, CaptureProblem, CaptureReader, CaptureTrace, Warning, read_capture,
    read_capture_from,
};
use classyard_workload::diagnostic::ReadError;
use classyard_workload::formats::{SchemaChoice, Trace, read_trace};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use super::limits::{ByteLimit, HeaderLimit, RecordLimit};
use super::rules::RulesArgs;
use super::{read_text, source_name};
use crate::embedded;
use crate::failure::Failure;
use crate::interrupt;
use crate::output::file::is_dash;
use crate::output::style::counted;
use crate::reporter::Reporter;

/// The flags of every command that reads headers.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct HeadersArgs {
    /// Packets: a pcap or pcapng file, plain or gzip'd; - for standard input
    #[arg(
        short,
        long,
        value_name = "FILE",
        conflicts_with = "trace",
        help_heading = "Input"
    )]
    pub capture: Option<PathBuf>,

    /// Headers as text, one per line, as ClassBench writes them; - for standard input
    #[arg(short, long, value_name = "FILE", help_heading = "Input")]
    pub trace: Option<PathBuf>,

    /// The limit on headers and packets.
    #[command(flatten)]
    pub limit: HeaderLimit,

    /// The limit on one record of a capture.
    #[command(flatten)]
    pub record: RecordLimit,
}

/// Headers that were read.
pub struct Headers {
    /// The headers.
    pub trace: PolicyTrace,
    /// The source of the headers.
    pub source: String,
    /// The packets that the headers come from, if any.
    pub packets: Option<CapturedPackets>,
    /// The number of bad lines that were skipped.
    pub skipped: usize,
}

/// The packets that headers come from.
pub struct CapturedPackets {
    /// The capture.
    pub capture: Capture,
    /// The packet of each header, and the counts. The trace in it is empty.
    pub origin: CaptureTrace,
}

/// A capture that is read packet by packet.
pub struct OpenCapture {
    /// The packets.
    pub reader: CaptureReader<Box<dyn Read + Send>>,
    /// The amount of the file that was read; `None` for other streams.
    pub extent: Option<Extent>,
}

/// The amount of a file that was read.
pub struct Extent {
    read: Arc<AtomicUsize>,
    /// The file's length in bytes.
    pub length: usize,
}

impl Extent {
    /// Returns the number of bytes that were read.
    pub fn read(&self) -> usize {
        self.read.load(Ordering::Relaxed)
    }
}

/// The longest time from an interrupt to the end of a read from an idle pipe.
const POLL_INTERVAL: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 100_000_000,
};

/// A file that counts the bytes read from it. A pipe ends when the command is
/// interrupted, even while it has no data.
struct CountedFile {
    file: File,
    read: Arc<AtomicUsize>,
    is_regular: bool,
}

impl CountedFile {
    /// Waits until there is data. Returns false if an interrupt came first.
    fn wait(&self) -> bool {
        loop {
            if interrupt::is_requested() {
                return false;
            }
            let mut polled = [PollFd::new(&self.file, PollFlags::IN)];
            match poll(&mut polled, Some(&POLL_INTERVAL)) {
                Ok(0) | Err(Errno::INTR) => {}
                // If polling fails, the read reports the error.
                Ok(_) | Err(_) => return true,
            }
        }
    }
}

impl Read for CountedFile {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if !self.is_regular && !self.wait() {
            return Ok(0);
        }
        let read = self.file.read(buffer)?;
        self.read.fetch_add(read, Ordering::Relaxed);
        Ok(read)
    }
}

impl HeadersArgs {
    /// True if neither a capture nor a trace is given.
    pub fn is_empty(&self) -> bool {
        self.capture.is_none() && self.trace.is_none()
    }

    /// Returns the files with their names in messages.
    pub fn files(&self) -> [(&'static str, Option<&Path>); 2] {
        [
            ("capture", self.capture.as_deref()),
            ("trace", self.trace.as_deref()),
        ]
    }

    /// Reads the headers for a policy into memory; without a file, the headers of the
    /// embedded example. `reading` is how the rules were read.
    pub fn load(
        &self,
        policy: &Policy,
        reading: &RulesArgs,
        reporter: Reporter,
    ) -> Result<Headers, Failure> {
        match &self.trace {
            Some(path) => self.load_trace(path, policy, reading, reporter),
            None => self.load_capture(policy, &reading.bytes, None, reporter),
        }
    }

    /// Reads at most `packets` packets of the capture or of the embedded example.
    pub fn load_first(
        &self,
        packets: usize,
        policy: &Policy,
        reading: &RulesArgs,
        reporter: Reporter,
    ) -> Result<Headers, Failure> {
        self.load_capture(policy, &reading.bytes, Some(packets), reporter)
    }

    /// Reads headers as text.
    pub fn load_trace(
        &self,
        path: &Path,
        policy: &Policy,
        reading: &RulesArgs,
        reporter: Reporter,
    ) -> Result<Headers, Failure> {
        let options = self.limit.trace(reading.options());
        let source = source_name(path);
        let text = read_text(path, reading.bytes.text())?;
        let choice = choice_of(policy)?;
        let loaded = read_trace(&source, &text, Some(&choice), false, &options)?;
        reporter.skipped(&loaded.skipped);
        let Trace { headers, .. } = loaded.value;
        Ok(Headers {
            trace: headers,
            source,
            packets: None,
            skipped: loaded.skipped.total(),
        })
    }

    /// Opens the capture or the embedded example for reading packet by packet. Limits
    /// without a flag are taken from `default`.
    pub fn open_capture(
        &self,
        bytes: &ByteLimit,
        default: capture::ReadOptions,
    ) -> Result<OpenCapture, Failure> {
        let options = self.limit.capture(bytes, &self.record, default);
        open_capture(self.capture.as_deref(), &options)
    }

    /// Warns of problems in a capture that could still be read.
    pub fn warn(source: &str, warnings: &[Warning], more: u64, reporter: Reporter) {
        // An interrupted capture may end in the middle of a packet.
        let is_cut_off = interrupt::is_requested();
        let is_expected = |warning: &&Warning| match warning.problem {
            CaptureProblem::Stopped => true,
            CaptureProblem::Truncated { .. } | CaptureProblem::Gzip { .. } => is_cut_off,
            _ => false,
        };
        for warning in warnings.iter().filter(|warning| !is_expected(warning)) {
            reporter.warn(&format!("{source}: {warning}"));
        }
        if more > 0 {
            reporter.warn(&format!("{source}: {}", counted(more, "more warning")));
        }
        let long = |warning: &Warning| matches!(warning.problem, CaptureProblem::LongPacket { .. });
        if warnings.iter().any(long) {
            reporter.note("--limit-record raises the limit on the length of packets");
        }
    }

    fn load_capture(
        &self,
        policy: &Policy,
        bytes: &ByteLimit,
        first: Option<usize>,
        reporter: Reporter,
    ) -> Result<Headers, Failure> {
        let default = capture::ReadOptions::default().with_first(first);
        let options = self.limit.capture(bytes, &self.record, default);
        let capture = whole_capture(self.capture.as_deref(), &options, reporter)?;
        let origin = capture.classify_input(policy.schemas());
        let mut origin = origin.map_err(|error| Failure::usage(error.to_string()))?;
        let trace = std::mem::replace(&mut origin.trace, PolicyTrace::new(policy.schemas()));
        Ok(Headers {
            trace,
            source: capture.source().to_owned(),
            packets: Some(CapturedPackets { capture, origin }),
            skipped: 0,
        })
    }
}

/// Opens a capture for reading packet by packet: a file, standard input for `-`, or
/// the embedded example for `None`.
pub fn open_capture(
    path: Option<&Path>,
    options: &capture::ReadOptions,
) -> Result<OpenCapture, Failure> {
    let mut extent = None;
    let (source, stream): (String, Box<dyn Read + Send>) = match path {
        None => (
            embedded::CAPTURE_NAME.to_owned(),
            Box::new(embedded::CAPTURE),
        ),
        Some(path) => {
            let source = source_name(path);
            let failed = |error| ReadError::Io {
                file: source.clone(),
                error,
            };
            let opened = match is_dash(path) {
                // Not through `io::stdin`: polling does not see the bytes in its buffer.
                true => io::stdin().as_fd().try_clone_to_owned().map(File::from),
                false => File::open(path),
            };
            let file = opened.map_err(failed)?;
            let metadata = file.metadata().map_err(failed)?;
            let read = Arc::new(AtomicUsize::new(0));
            if let Ok(length @ 1..) = usize::try_from(metadata.len())
                && !is_dash(path)
            {
                extent = Some(Extent {
                    read: Arc::clone(&read),
                    length,
                });
            }
            let is_regular = metadata.is_file();
            let counted = CountedFile {
                file,
                read,
                is_regular,
            };
            (source, Box::new(counted))
        }
    };
    let reader = CaptureReader::new(&source, stream, options)?;
    Ok(OpenCapture { reader, extent })
}

/// Reads a whole capture: a file, standard input for `-`, or the embedded example
/// for `None`. Warns of problems in a capture that could still be read.
fn whole_capture(
    path: Option<&Path>,
    options: &capture::ReadOptions,
    reporter: Reporter,
) -> Result<Capture, Failure> {
    let capture = match path {
        None => read_capture(embedded::CAPTURE_NAME, embedded::CAPTURE, options)?,
        Some(path) if is_dash(path) => {
            read_capture_from(&source_name(path), io::stdin().lock(), options)?
        }
        Some(path) => capture::read_capture_file(path, options)?,
    };
    let (warnings, more) = (capture.warnings(), capture.more_warnings());
    HeadersArgs::warn(capture.source(), warnings, more, reporter);
    Ok(capture)
}

/// Returns the schema or schemas of headers for a policy.
pub fn choice_of(policy: &Policy) -> Result<SchemaChoice, Failure> {
    SchemaChoice::of(policy).ok_or_else(|| {
        Failure::usage(format!(
            "headers for rules of `{}` cannot be read as text",
            policy.name()
        ))
    })
}
