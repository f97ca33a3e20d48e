//! The source of a reproduction's data, and the writer of its files.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::sync::Arc;
use std::time::Duration;

use classyard::{Policy, PolicyTrace, Progress as _};
use classyard_report::chart::{Chart, Picture, Series, draw_groups};
use classyard_report::failure::Failure;
use classyard_report::input::family::{FamilyName, profile};
use classyard_report::output::OutputArgs;
use classyard_report::output::file::to_file;
use classyard_report::reporter::{Progress, Reporter};
use classyard_report::run::Run;
use classyard_workload::generate::Profile;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::claims::Section;
use super::html::{self, Heading};
use super::identity;
use super::inputs::{Inputs, LeftOut, ReportedInput};
use super::paper_values::{self, PaperValues};
use super::points::{Circumstances, Points};
use super::report::{Remarks, Reproduction};
use super::request::Request;
use crate::bench::{
    CpuPair, CpuPinning, PAPER_CHANGES, SwitchPeer, generated_policy, generated_trace, size_name,
};

/// The option that names the program which measures Open vSwitch.
pub(super) const OPEN_VSWITCH_OPTION: &str = "--open-vswitch";

/// The name of the report in the folder.
const REPORT: &str = "report.html";

/// Headers of a trace in a quick run.
const QUICK_HEADERS: usize = 20_000;

/// Rule sets for a point of sfl17, in the paper and in a quick run: fewer than five have no
/// confidence interval.
const SETS_PER_POINT: usize = 10;
const FEW_SETS: usize = 5;

/// Rule sets for each profile and size of tm19, in the paper and in a quick run.
const LISTS_PER_PROFILE: usize = 5;
const FEW_LISTS: usize = 1;

/// Insertions of a quick run, and the same number of deletions.
const FEW_CHANGES: usize = 20_000;

/// The longest time to build an offline engine; a shorter one for quick runs.
const BUILD_TIME: Duration = Duration::from_secs(300);
const SHORT_BUILD_TIME: Duration = Duration::from_secs(10);

/// Headers whose answers are compared after updates.
const CHECKED_HEADERS: usize = 5_000;

/// Seconds of a simulator run: of the paper, and of a quick run.
const RUN_SECONDS: f64 = 10.0;
const QUICK_SECONDS: f64 = 0.25;

/// A reproduction in progress.
pub(super) struct Study<'a> {
    pub(super) args: &'a Request,
    pub(super) profiles: Vec<(String, Arc<Profile>)>,
    /// Processors for threads that must not share theirs.
    pub(super) processors: Option<CpuPair>,
    /// The user's own inputs.
    pub(super) inputs: Arc<Inputs>,
    /// The program that measures Open vSwitch.
    pub(super) open_vswitch: Option<RefCell<SwitchPeer>>,
    /// Figures that cannot use them.
    left_out: Vec<LeftOut>,
    reporter: Reporter,
    points: Points,
    progress: Progress,
    /// The figure that is being measured.
    figure: &'static str,
    /// Measurements of the figure: their number, and how many are done.
    expected: usize,
    had: usize,
    /// Names of the files written, for the final note.
    written: Vec<String>,
    /// Texts below pictures, by the name of the picture.
    captions: BTreeMap<String, String>,
    /// The rows of the file of the paper's values.
    paper_rows: Vec<String>,
}

/// The file of the paper's values that pictures show.
const PAPER_VALUES: &str = "paper-values.csv";

impl<'a> Study<'a> {
    /// Reads own inputs, starts the program that measures Open vSwitch, opens the folder and
    /// removes an earlier report: a report exists only for a finished run. Warns of the
    /// figures that are left out.
    pub(super) fn new(
        args: &'a Request,
        left_out: Vec<LeftOut>,
        reporter: Reporter,
    ) -> Result<Study<'a>, Failure> {
        let inputs = Arc::new(args.inputs.load(reporter)?);
        for one in &left_out {
            reporter.warn(&format!("left out: {}", one.text()));
        }
        let open_vswitch = args.open_vswitch.as_ref();
        let open_vswitch = open_vswitch
            .map(|spec| SwitchPeer::start(OPEN_VSWITCH_OPTION, spec))
            .transpose()?;
        fs::create_dir_all(&args.output).map_err(|error| Failure::file(&args.output, error))?;
        let names: Vec<&str> = match args.profiles.as_slice() {
            [] => Profile::BUILT_IN.to_vec(),
            given => given.iter().map(String::as_str).collect(),
        };
        let profiles = names
            .into_iter()
            .map(|name| Ok((name.to_owned(), profile(name)?)));
        let profiles: Vec<_> = profiles.collect::<Result<_, Failure>>()?;
        let run = Run::now(args.seed);
        let mut study = Study {
            args,
            points: Points::open(&args.output, &circumstances(args, &run), args.restart)?,
            profiles,
            processors: CpuPinning::Automatic.choose().unwrap_or_default(),
            inputs,
            open_vswitch: open_vswitch.map(RefCell::new),
            left_out,
            reporter,
            progress: reporter.progress(),
            figure: "measuring",
            expected: 0,
            had: 0,
            written: Vec::new(),
            captions: BTreeMap::new(),
            paper_rows: Vec::new(),
        };
        study.check_open_vswitch()?;
        if study.points.len() > 0 {
            let measured =
                classyard_report::output::style::counted(study.points.len(), "measurement");
            study.reporter.note(&format!(
                "going on after {measured} in {}",
                args.output.join(super::points::FILE).display()
            ));
        }
        if !args.quick {
            study.reporter.note(
                "every measurement is kept: an interrupted run goes on with the same command",
            );
        }
        let report = args.output.join(REPORT);
        match fs::remove_file(&report) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(Failure::file(&report, error));
            }
            _ => {}
        }
        study.written.clear();
        Ok(study)
    }

    /// Checks that Open vSwitch can hold all packets.
    fn check_open_vswitch(&self) -> Result<(), Failure> {
        let Some(switch) = &self.open_vswitch else {
            return Ok(());
        };
        let (switch, headers) = (switch.borrow(), self.headers());
        match switch.max_packets() {
            max if headers > max => Err(switch
                .failure(&format!(
                    "the switch holds at most {max} packets, and traces have {headers}"
                ))
                .with_help(format!("--headers {max} is the most"))),
            _ => Ok(()),
        }
    }

    /// Returns the sizes of `--sizes`, or else `default_sizes`.
    pub(super) fn sizes(&self, default_sizes: &[usize]) -> Vec<usize> {
        match self.args.sizes.as_slice() {
            [] => default_sizes.to_vec(),
            given => given.to_vec(),
        }
    }

    /// The number of headers in a trace.
    pub(super) fn headers(&self) -> usize {
        self.args.headers.unwrap_or(match self.args.quick {
            true => QUICK_HEADERS,
            false => self.args.paper.headers,
        })
    }

    /// The number of rule sets for a point.
    pub(super) fn sets(&self) -> usize {
        let default_sets = if self.args.quick {
            FEW_SETS
        } else {
            SETS_PER_POINT
        };
        self.args.sets.unwrap_or(default_sets)
    }

    /// The number of rule sets for each profile and size.
    pub(super) fn lists(&self) -> usize {
        let default_lists = if self.args.quick {
            FEW_LISTS
        } else {
            LISTS_PER_PROFILE
        };
        self.args.sets.unwrap_or(default_lists)
    }

    /// The number of timed insertions, and of timed deletions.
    pub(super) fn changes(&self) -> usize {
        let default_changes = match self.args.quick {
            true => FEW_CHANGES,
            false => PAPER_CHANGES,
        };
        self.args.changes.unwrap_or(default_changes)
    }

    /// The longest time to build an offline engine.
    pub(super) fn build_time(&self) -> Duration {
        let default_time = match self.args.quick {
            true => SHORT_BUILD_TIME,
            false => BUILD_TIME,
        };
        self.args.build_time.unwrap_or(default_time)
    }

    /// The seed of rule set number `list`.
    pub(super) fn list_seed(&self, list: usize) -> u64 {
        self.args.seed.wrapping_add(list as u64)
    }

    /// Seconds of a simulator run, 10 in the paper.
    pub(super) fn run_seconds(&self) -> f64 {
        let default_seconds = match self.args.quick {
            true => QUICK_SECONDS,
            false => RUN_SECONDS,
        };
        self.args
            .run
            .map_or(default_seconds, |run| run.as_secs_f64())
    }

    /// Returns a note for the report if runs are shorter than the paper's.
    pub(super) fn shortened(&self, paper_seconds: f64) -> &'static str {
        match self.run_seconds() < paper_seconds {
            true => ", less than in the paper, with as many changes a second",
            false => "",
        }
    }

    /// Generates rules of a profile.
    pub(super) fn policy(&self, profile: &Arc<Profile>, rules: usize) -> Result<Policy, Failure> {
        self.policy_of(profile, rules, 0)
    }

    /// Generates rule set number `list` of a profile.
    pub(super) fn policy_of(
        &self,
        profile: &Arc<Profile>,
        rules: usize,
        list: usize,
    ) -> Result<Policy, Failure> {
        let family = FamilyName::Ipv4.with(Arc::clone(profile), 0.0);
        let mut silent = classyard::NoProgress;
        generated_policy(family, rules, self.list_seed(list), &mut silent)
    }

    /// Generates headers for rules.
    pub(super) fn trace(&self, policy: &Policy) -> Result<PolicyTrace, Failure> {
        self.trace_of(policy, 0)
    }

    /// Generates headers for rule set number `list`.
    pub(super) fn trace_of(&self, policy: &Policy, list: usize) -> Result<PolicyTrace, Failure> {
        let mut silent = classyard::NoProgress;
        generated_trace(policy, self.headers(), self.list_seed(list), &mut silent)
    }

    /// Generates a number of headers for rules.
    pub(super) fn trace_with(
        &self,
        policy: &Policy,
        headers: usize,
    ) -> Result<PolicyTrace, Failure> {
        let mut silent = classyard::NoProgress;
        generated_trace(policy, headers, self.list_seed(0), &mut silent)
    }

    /// Generates a few headers, to compare answers.
    pub(super) fn few_headers(&self, policy: &Policy, list: usize) -> Result<PolicyTrace, Failure> {
        let mut silent = classyard::NoProgress;
        let headers = self.headers().min(CHECKED_HEADERS);
        generated_trace(policy, headers, self.list_seed(list), &mut silent)
    }

    /// Sets the next figure, for the progress bar.
    pub(super) fn begin(&mut self, figure: &'static str) {
        (self.figure, self.expected, self.had) = (figure, 0, 0);
    }

    /// Adds `points` measurements to the progress bar.
    pub(super) fn expect_points(&mut self, points: usize) {
        self.expected += points;
    }

    /// Returns a measurement from the folder, or else measures it and stores it there.
    pub(super) fn point<T: Serialize + DeserializeOwned>(
        &mut self,
        point: &str,
        measure: impl FnOnce(&Study<'_>) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let done = self.had.min(self.expected);
        // This progress bar never cancels.
        let _ = self.progress.report(self.figure, done, self.expected);
        self.had += 1;
        if let Some(known) = self.points.get(point)? {
            return Ok(known);
        }
        let measured = measure(self)?;
        self.points.keep(point, &measured)?;
        Ok(measured)
    }

    /// Writes a figure's data.
    pub(super) fn write_csv(
        &mut self,
        name: &str,
        heading: &str,
        rows: &[String],
    ) -> Result<(), Failure> {
        let mut text = format!("{heading}\n");
        for row in rows {
            text.push_str(row);
            text.push('\n');
        }
        self.write(name, &text)
    }

    /// Adds the paper's values to the lines of a picture, to its caption, and to their file.
    /// Pictures with own inputs have no values of the paper.
    pub(super) fn add_paper(
        &mut self,
        picture: &str,
        values: &PaperValues,
        series: &mut Vec<Series>,
    ) {
        if !self.inputs.is_empty() {
            return;
        }
        series.extend(values.series());
        self.caption(picture, &values.caption());
        self.paper_rows.extend(values.rows(picture));
    }

    /// Sets the text about the paper below a picture, unless it is of own inputs.
    pub(super) fn caption(&mut self, picture: &str, caption: &str) {
        if self.inputs.is_empty() {
            self.captions.insert(picture.to_owned(), caption.to_owned());
        }
    }

    /// Draws a figure.
    pub(super) fn draw(
        &mut self,
        name: &str,
        chart: &Chart<'_>,
        series: &[Series],
    ) -> Result<(), Failure> {
        self.write_picture(name, chart.draw(series))
    }

    /// Draws a figure whose x axis has named groups.
    pub(super) fn draw_groups(
        &mut self,
        name: &str,
        chart: &Chart<'_>,
        groups: &[String],
        series: &[Series],
    ) -> Result<(), Failure> {
        self.write_picture(name, draw_groups(chart, groups, series))
    }

    fn write_picture(&mut self, name: &str, picture: Picture) -> Result<(), Failure> {
        let path = self.args.output.join(name);
        let picture = picture.map_err(|error| Failure::file(&path, error))?;
        self.write(name, &picture)
    }

    /// Writes a file completely or not at all.
    fn write(&mut self, name: &str, text: &str) -> Result<(), Failure> {
        let path = self.args.output.join(name);
        to_file(&path, |out| Ok(out.write_all(text.as_bytes())?))?;
        self.written.push(name.to_owned());
        Ok(())
    }

    /// Returns the limits of the whole reproduction, and its own inputs.
    fn remarks(&self, inputs: &[ReportedInput]) -> Vec<String> {
        let mut remarks = Vec::new();
        if self.args.quick {
            remarks.push(
                "A quick reproduction: fewer rule sets, sizes and points, and shorter runs than \
                 in the paper. Parts of claims that it leaves out are open."
                    .to_owned(),
            );
        }
        if let Some(limits) = limited(self.args) {
            remarks.push(format!("Not the whole reproduction: limited by {limits}."));
        }
        if !inputs.is_empty() {
            let texts: Vec<String> = inputs.iter().map(ReportedInput::text).collect();
            remarks.push(format!(
                "Own inputs: {}. The paper says nothing about them, so no claim is measured.",
                texts.join(", ")
            ));
        }
        if !self.left_out.is_empty() {
            let left_out: Vec<String> = self.left_out.iter().map(LeftOut::text).collect();
            remarks.push(format!("Left out: {}.", left_out.join("; ")));
        }
        remarks
    }

    /// Writes the report's page, and the report to standard output.
    pub(super) fn end(mut self, sections: &[Section]) -> Result<(), Failure> {
        let run = Run::now(self.args.seed);
        let columns = run.columns();
        let mut facts: Vec<(&str, String)> = columns
            .iter()
            .map(|(name, value)| (*name, value.clone()))
            .collect();
        let known = facts.iter().position(|(name, _)| *name == "processor");
        let index = known.map_or(facts.len(), |index| index + 1);
        facts.splice(index..index, super::machine::facts());
        if !self.paper_rows.is_empty() {
            let rows = std::mem::take(&mut self.paper_rows);
            self.write_csv(PAPER_VALUES, paper_values::HEADING, &rows)?;
        }
        let inputs = self.inputs.reported();
        let remarks = self.remarks(&inputs);
        let heading = Heading {
            title: self.args.paper.title,
            facts: &facts,
            remarks: &remarks,
        };
        let folder = self.args.output.clone();
        let picture = |name: &str| -> Result<String, Failure> {
            let path = folder.join(name);
            fs::read_to_string(&path).map_err(|error| Failure::file(&path, error))
        };
        let page = html::report(&heading, sections, &self.captions, picture)?;
        self.write(REPORT, &page)?;
        drop(self.progress);
        let report = Reproduction::new(
            self.args.paper,
            &run,
            &facts,
            Remarks {
                texts: &remarks,
                inputs: &inputs,
                left_out: &self.left_out,
            },
            sections,
        );
        let format = self.args.format;
        OutputArgs { format }.report(&report)?;
        let wrote = self.written.join(", ");
        let folder = folder.display();
        self.reporter.note(&format!("wrote {wrote} to {folder}"));
        Ok(())
    }
}

/// Returns the options, except `--quick`, that make a reproduction smaller than the
/// paper's; `None` if no option does.
fn limited(args: &Request) -> Option<String> {
    let mut limits = Vec::new();
    let names = |names: &[String]| names.join(", ");
    if !args.figures.is_empty() {
        limits.push(format!("--figures {}", names(&args.figures)));
    }
    if !args.sizes.is_empty() {
        let sizes: Vec<String> = args.sizes.iter().map(|&size| size_name(size)).collect();
        limits.push(format!("--sizes {}", names(&sizes)));
    }
    if !args.profiles.is_empty() {
        limits.push(format!("--profiles {}", names(&args.profiles)));
    }
    let counts = [
        ("--headers", args.headers),
        ("--sets", args.sets),
        ("--changes", args.changes),
    ];
    for (option, count) in counts {
        if let Some(count) = count {
            limits.push(format!("{option} {}", size_name(count)));
        }
    }
    for (option, time) in [("--run", args.run), ("--build-time", args.build_time)] {
        if let Some(time) = time {
            limits.push(format!("{option} {time:?}"));
        }
    }
    (!limits.is_empty()).then(|| limits.join("; "))
}

/// Collects everything that a measurement depends on.
fn circumstances(args: &Request, run: &Run) -> Circumstances {
    let join = |names: &[String]| names.join(",");
    let sizes: Vec<String> = args.sizes.iter().map(usize::to_string).collect();
    let by_set = args.paper.is_stored_by_set;
    let sizes = if by_set { Vec::new() } else { sizes };
    let own_profile = |name: &&String| by_set && Profile::BUILT_IN.contains(&name.as_str());
    let profiles = args.profiles.iter().filter(|name| !own_profile(name));
    let profiles = profiles.map(|name| match Profile::BUILT_IN.contains(&name.as_str()) {
        true => name.clone(),
        false => format!("{name} {}", identity::of_file(name)),
    });
    let profiles: Vec<String> = profiles.collect();
    let or_own = |value: Option<String>| value.unwrap_or_else(|| "of the paper".to_owned());
    let options = [
        ("--quick", args.quick.to_string()),
        ("--sizes", join(&sizes)),
        ("--profiles", join(&profiles)),
        (
            "--headers",
            or_own(args.headers.map(|count| count.to_string())),
        ),
        ("--sets", or_own(args.sets.map(|count| count.to_string()))),
        ("--run", or_own(args.run.map(|run| format!("{run:?}")))),
        ("--seed", args.seed.to_string()),
    ];
    let of_run = run.columns();
    let column = |wanted: &str| {
        let entry = of_run.iter().find(|(name, _)| *name == wanted);
        entry.map_or(String::new(), |(_, value)| value.clone())
    };
    Circumstances {
        paper: args.paper.key.to_owned(),
        version: column("version"),
        build: identity::of_program(),
        processor: column("processor"),
        options: options
            .map(|(name, value)| (name.to_owned(), value))
            .to_vec(),
    }
}
