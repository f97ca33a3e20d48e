//! Headers to classify: from a capture, from a trace or from the embedded
//! example.

use std::path::{Path, PathBuf};

use classyard::{Policy, PolicyTrace};
use classyard_workload::capture::{self, Capture, CaptureTrace, read_capture, read_capture_from};
use classyard_workload::diagnostic::ReadOptions;
use classyard_workload::formats::{SchemaChoice, Trace, read_trace};

use super::{is_dash, read_text, source_name};
use crate::embedded;
use crate::failure::Failure;
use crate::output::style::counted;
use crate::talk::Talk;

/// The flags of every command that reads headers.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct HeadersArgs {
    /// Packets: a pcap or pcapng file, plain or gzip'd; - for standard input
    #[arg(
        short,
        long,
        value_name = "FILE",
        conflicts_with = "trace",
        help_heading = "Input"
    )]
    pub(crate) capture: Option<PathBuf>,

    /// Headers as text, one per line as ClassBench writes them; - for standard
    /// input
    #[arg(short, long, value_name = "FILE", help_heading = "Input")]
    pub(crate) trace: Option<PathBuf>,
}

/// Headers that were read.
pub(crate) struct Headers {
    /// The headers.
    pub(crate) trace: PolicyTrace,
    /// Where they come from.
    pub(crate) source: String,
    /// The packets that they come from, if they do.
    pub(crate) packets: Option<Packets>,
    /// How many bad lines were left out.
    pub(crate) skipped: usize,
}

/// The packets that headers come from.
pub(crate) struct Packets {
    /// The capture.
    pub(crate) capture: Capture,
    /// Where each header comes from, and the counts. Its trace is empty.
    pub(crate) origin: CaptureTrace,
}

impl HeadersArgs {
    /// Whether neither a capture nor a trace is given.
    pub(crate) fn is_empty(&self) -> bool {
        self.capture.is_none() && self.trace.is_none()
    }

    /// The files, by what they are called in messages.
    pub(crate) fn files(&self) -> [(&'static str, Option<&Path>); 2] {
        [
            ("capture", self.capture.as_deref()),
            ("trace", self.trace.as_deref()),
        ]
    }

    /// Reads the headers for a policy; those of the embedded example if there
    /// is no file.
    pub(crate) fn load(
        &self,
        policy: &Policy,
        skip_bad: bool,
        talk: Talk,
    ) -> Result<Headers, Failure> {
        match &self.trace {
            Some(path) => {
                let options = ReadOptions {
                    skip_bad,
                    ..ReadOptions::default()
                };
                let source = source_name(path);
                let text = read_text(path)?;
                let choice = choice_of(policy)?;
                let loaded = read_trace(&source, &text, Some(&choice), false, &options)?;
                talk.skipped(&loaded.skipped);
                let Trace { headers, .. } = loaded.value;
                Ok(Headers {
                    trace: headers,
                    source,
                    packets: None,
                    skipped: loaded.skipped.total(),
                })
            }
            None => self.load_capture(policy, talk),
        }
    }

    /// Reads the capture, or the embedded one.
    pub(crate) fn read_capture(&self, talk: Talk) -> Result<Capture, Failure> {
        let options = capture::ReadOptions::default();
        let capture = match &self.capture {
            None => read_capture(embedded::CAPTURE_NAME, embedded::CAPTURE, &options)?,
            Some(path) if is_dash(path) => {
                read_capture_from(&source_name(path), std::io::stdin().lock(), &options)?
            }
            Some(path) => capture::read_capture_file(path, &options)?,
        };
        HeadersArgs::warn(&capture, talk);
        Ok(capture)
    }

    /// Says what is wrong with a capture that could be read all the same.
    pub(crate) fn warn(capture: &Capture, talk: Talk) {
        for warning in capture.warnings() {
            talk.warn(&format!("{}: {warning}", capture.source()));
        }
        if capture.more_warnings() > 0 {
            let more = counted(capture.more_warnings(), "more warning");
            talk.warn(&format!("{}: {more}", capture.source()));
        }
    }

    fn load_capture(&self, policy: &Policy, talk: Talk) -> Result<Headers, Failure> {
        let capture = self.read_capture(talk)?;
        let origin = capture.classify_input(policy.schemas());
        let mut origin = origin.map_err(|error| Failure::usage(error.to_string()))?;
        let trace = std::mem::replace(&mut origin.trace, PolicyTrace::new(policy.schemas()));
        Ok(Headers {
            trace,
            source: capture.source().to_owned(),
            packets: Some(Packets { capture, origin }),
            skipped: 0,
        })
    }
}

/// The schema or schemas that headers for a policy have.
pub(crate) fn choice_of(policy: &Policy) -> Result<SchemaChoice, Failure> {
    SchemaChoice::of(policy).ok_or_else(|| {
        Failure::usage(format!(
            "headers for rules of `{}` cannot be read as text",
            policy.name()
        ))
    })
}
