//! The request for a reproduction: a paper, and the amount of measuring.

use std::path::PathBuf;
use std::time::Duration;

use classyard_report::failure::Failure;
use classyard_report::input::{count, span};
use classyard_report::output::{Format, OutputArgs};

use super::inputs::{Input, InputArgs};
use crate::bench::PeerSpec;

/// A paper, or a part of it that is reproduced by itself.
pub(super) struct Paper {
    /// The paper's key in citations and in stored measurements.
    pub(super) key: &'static str,
    /// Its name on the command line, for messages.
    pub(super) name: &'static str,
    /// The title of the report.
    pub(super) title: &'static str,
    /// The default number of headers in a trace.
    pub(super) headers: usize,
    /// True if measurements are stored by profile and size, so that other profiles and
    /// sizes continue with the same folder.
    pub(super) is_stored_by_set: bool,
}

/// The arguments that all papers take.
#[derive(Debug, clap::Args)]
pub(super) struct Common {
    /// The folder to write to; it is created if missing
    #[arg(
        short,
        long,
        alias = "out",
        default_value = "reproduced",
        value_name = "DIR",
        help_heading = "Output"
    )]
    output: PathBuf,

    #[command(flatten)]
    report: OutputArgs,

    /// The figures to draw [default: all of the paper]
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    figures: Vec<String>,

    /// Fewer rule sets, sizes and points, and shorter runs: a few minutes
    #[arg(long)]
    quick: bool,

    /// Measure everything again and discard the measurements in the folder
    #[arg(long)]
    restart: bool,

    /// Seed of the random numbers
    #[arg(short, long, default_value_t = 1, value_name = "N")]
    seed: u64,

    #[command(flatten)]
    inputs: InputArgs,
}

/// A reproduction: the paper, and the arguments of the command line. Arguments that a
/// paper does not take are absent.
pub(super) struct Request {
    pub(super) paper: &'static Paper,
    pub(super) output: PathBuf,
    /// The format of the report on standard output.
    pub(super) format: Format,
    /// The names of the figures; empty for all.
    pub(super) figures: Vec<String>,
    pub(super) quick: bool,
    pub(super) restart: bool,
    pub(super) seed: u64,
    /// Numbers of rules.
    pub(super) sizes: Vec<usize>,
    /// Profiles of rules.
    pub(super) profiles: Vec<String>,
    /// Headers in each trace.
    pub(super) headers: Option<usize>,
    /// Rule sets for each point.
    pub(super) sets: Option<usize>,
    /// The number of insertions, and of deletions.
    pub(super) changes: Option<usize>,
    /// The longest time to build an engine.
    pub(super) build_time: Option<Duration>,
    /// The length of a run.
    pub(super) run: Option<Duration>,
    /// The program that measures Open vSwitch.
    pub(super) open_vswitch: Option<PeerSpec>,
    /// The user's own inputs.
    pub(super) inputs: InputArgs,
}

impl Request {
    /// Returns a request for a paper without arguments of its own.
    pub(super) fn new(paper: &'static Paper, common: &Common) -> Request {
        Request {
            paper,
            output: common.output.clone(),
            format: common.report.format,
            figures: common.figures.clone(),
            quick: common.quick,
            restart: common.restart,
            seed: common.seed,
            sizes: Vec::new(),
            profiles: Vec::new(),
            headers: None,
            sets: None,
            changes: None,
            build_time: None,
            run: None,
            open_vswitch: None,
            inputs: common.inputs.clone(),
        }
    }

    /// Checks that no option describes generated rules or headers that own inputs replace.
    ///
    /// # Errors
    /// [`Failure`] with the two options.
    pub(super) fn check_inputs(&self) -> Result<(), Failure> {
        let has_one_of = |wanted: &[Input]| {
            let given = self.inputs.given().into_iter();
            given.into_iter().find(|input| wanted.contains(input))
        };
        let rules = has_one_of(&[Input::Rules]);
        let headers = has_one_of(&[Input::Trace, Input::CapturedHeaders, Input::Packets]);
        let conflicts = [
            ("--sizes", !self.sizes.is_empty(), rules),
            ("--profiles", !self.profiles.is_empty(), rules),
            ("--sets", self.sets.is_some(), rules),
            ("--headers", self.headers.is_some(), headers),
        ];
        for (option, is_given, replaced_by) in conflicts {
            if let (true, Some(input)) = (is_given, replaced_by) {
                return Err(Failure::usage(format!(
                    "{option} describes generated inputs, and {} replaces them",
                    input.option()
                ))
                .with_help(format!("leave {option} out")));
            }
        }
        Ok(())
    }

    /// Checks that all sizes are at most `max`, the number of `what` that there are.
    ///
    /// # Errors
    /// [`Failure`] with the first larger size.
    pub(super) fn check_sizes(&self, max: usize, what: &str, help: &str) -> Result<(), Failure> {
        match self.sizes.iter().find(|&&size| size > max) {
            Some(size) => Err(Failure::usage(format!("--sizes {size}: {what}")).with_help(help)),
            None => Ok(()),
        }
    }
}

/// Reads a number of rules, for the argument parser.
pub(super) fn sizes(text: &str) -> Result<usize, String> {
    match count(text)? {
        0 => Err("figures need at least 1 rule".to_owned()),
        size => Ok(size),
    }
}

/// Reads a count of at least 1, for the argument parser.
pub(super) fn at_least_one(text: &str) -> Result<usize, String> {
    match count(text)? {
        0 => Err("expected at least 1".to_owned()),
        count => Ok(count),
    }
}

/// Reads the length of a run, for the argument parser.
pub(super) fn run_time(text: &str) -> Result<Duration, String> {
    match span(text)? {
        run if run < Duration::from_millis(10) => Err("expected at least 10ms".to_owned()),
        run if run > Duration::from_secs(3_600) => Err("expected at most 1h".to_owned()),
        run => Ok(run),
    }
}
