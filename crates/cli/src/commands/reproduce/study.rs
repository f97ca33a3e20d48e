//! What the figures of a paper are drawn from, and where they go.

use std::fs;
use std::io::Write as _;
use std::sync::Arc;
use std::time::Duration;

use classyard::{Policy, PolicyTrace, Progress as _};
use classyard_workload::generate::Profile;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::claims::Section;
use super::html::{self, Heading};
use super::points::{Circumstances, Points};
use super::{Args, Paper};
use crate::bench::{
    CpuPair, CpuPinning, PAPER_CHANGES, Run, generated_policy, generated_trace, size_name,
};
use crate::chart::{Chart, Picture, Series, draw_groups};
use crate::failure::Failure;
use crate::input::family::{FamilyName, profile};
use crate::output::file::to_file;
use crate::output::stdout;
use crate::output::table::{Side, Table};
use crate::reporter::{Progress, Reporter};

/// The name of the report in the folder.
const REPORT: &str = "report.html";

/// Headers in a trace unless asked for otherwise; few in a quick run.
const HEADERS: usize = 200_000;
const PAPER_HEADERS: usize = 100_000;
const FEW_HEADERS: usize = 20_000;

/// Packets that fch14 classifies, as many as the paper.
const CLASSIFICATIONS: usize = 10_000_000;

/// Rule sets for a point of sfl17, in the paper and in a quick run.
const SETS: usize = 10;
const FEW_SETS: usize = 2;

/// Rule sets for each profile and size of tm19, in the paper and in a quick run.
const LISTS: usize = 5;
const FEW_LISTS: usize = 1;

/// Insertions, and as many deletions, of a quick run.
const FEW_CHANGES: usize = 20_000;

/// How long an offline engine may be built, and in a quick run.
const BUILD_TIME: Duration = Duration::from_secs(300);
const SHORT_BUILD_TIME: Duration = Duration::from_secs(10);

/// Headers whose answers are compared after updates.
const CHECKED_HEADERS: usize = 5_000;

/// Seconds of a run of the simulator, in the paper and in a quick run.
const RUN_SECONDS: f64 = 10.0;
const QUICK_SECONDS: f64 = 0.6;

/// A reproduction that is under way.
pub(super) struct Study<'a> {
    pub(super) args: &'a Args,
    pub(super) profiles: Vec<(String, Arc<Profile>)>,
    /// For threads that need a processor of their own.
    pub(super) processors: Option<CpuPair>,
    reporter: Reporter,
    points: Points,
    progress: Progress,
    /// The figure that is being measured.
    figure: &'static str,
    /// Measurements that it needs, and those it has.
    expected: usize,
    had: usize,
    /// Files written, for the user to know.
    written: Vec<String>,
}

impl<'a> Study<'a> {
    /// Opens the folder. A report of an earlier run is removed: the one at the
    /// end is about everything.
    pub(super) fn new(args: &'a Args, reporter: Reporter) -> Result<Study<'a>, Failure> {
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
            reporter,
            progress: reporter.progress(),
            figure: "measuring",
            expected: 0,
            had: 0,
            written: Vec::new(),
        };
        if study.points.len() > 0 {
            let measured = crate::output::style::counted(study.points.len(), "measurement");
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

    /// The numbers of rules that were asked for, else a figure's own.
    pub(super) fn sizes(&self, own: &[usize]) -> Vec<usize> {
        match self.args.sizes.as_slice() {
            [] => own.to_vec(),
            given => given.to_vec(),
        }
    }

    /// Headers in a trace.
    pub(super) fn headers(&self) -> usize {
        self.args.headers.unwrap_or(match self.args.paper {
            _ if self.args.quick => FEW_HEADERS,
            Paper::Tm19 => HEADERS,
            Paper::Sfl17 | Paper::Dec14 | Paper::Fts25 => PAPER_HEADERS,
            Paper::Fch14 => CLASSIFICATIONS,
        })
    }

    /// Rule sets for a point.
    pub(super) fn sets(&self) -> usize {
        let own = if self.args.quick { FEW_SETS } else { SETS };
        self.args.sets.unwrap_or(own)
    }

    /// Rule sets for each profile and size.
    pub(super) fn lists(&self) -> usize {
        let own = if self.args.quick { FEW_LISTS } else { LISTS };
        self.args.sets.unwrap_or(own)
    }

    /// Insertions, and as many deletions, whose time is taken.
    pub(super) fn changes(&self) -> usize {
        let own = match self.args.quick {
            true => FEW_CHANGES,
            false => PAPER_CHANGES,
        };
        self.args.changes.unwrap_or(own)
    }

    /// How long building an offline engine may take.
    pub(super) fn build_time(&self) -> Duration {
        let own = match self.args.quick {
            true => SHORT_BUILD_TIME,
            false => BUILD_TIME,
        };
        self.args.build_time.unwrap_or(own)
    }

    /// Where random numbers of one of several rule sets begin.
    pub(super) fn list_seed(&self, list: usize) -> u64 {
        self.args.seed.wrapping_add(list as u64)
    }

    /// Seconds of a run of the simulator that lasts 10 in the paper.
    pub(super) fn run_seconds(&self) -> f64 {
        let own = match self.args.quick {
            true => QUICK_SECONDS,
            false => RUN_SECONDS,
        };
        self.args.run.map_or(own, |run| run.as_secs_f64())
    }

    /// Says that runs are shorter than the paper's, if they are.
    pub(super) fn shortened(&self, paper_seconds: f64) -> &'static str {
        match self.run_seconds() < paper_seconds {
            true => ", less than in the paper, with as many changes a second",
            false => "",
        }
    }

    /// Rules of a profile.
    pub(super) fn policy(&self, profile: &Arc<Profile>, rules: usize) -> Result<Policy, Failure> {
        self.policy_of(profile, rules, 0)
    }

    /// The rules of one of several rule sets of a profile.
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

    /// Headers for rules.
    pub(super) fn trace(&self, policy: &Policy) -> Result<PolicyTrace, Failure> {
        self.trace_of(policy, 0)
    }

    /// Headers for one of several rule sets.
    pub(super) fn trace_of(&self, policy: &Policy, list: usize) -> Result<PolicyTrace, Failure> {
        let mut silent = classyard::NoProgress;
        generated_trace(policy, self.headers(), self.list_seed(list), &mut silent)
    }

    /// A few headers, to compare answers.
    pub(super) fn few_headers(&self, policy: &Policy, list: usize) -> Result<PolicyTrace, Failure> {
        let mut silent = classyard::NoProgress;
        let headers = self.headers().min(CHECKED_HEADERS);
        generated_trace(policy, headers, self.list_seed(list), &mut silent)
    }

    /// Says which figure comes next, for the progress bar.
    pub(super) fn begin(&mut self, figure: &'static str) {
        (self.figure, self.expected, self.had) = (figure, 0, 0);
    }

    /// Says how many measurements come next, for the progress bar.
    pub(super) fn expect_points(&mut self, points: usize) {
        self.expected += points;
    }

    /// A measurement: the one that is kept in the folder, or a new one, which is
    /// kept there.
    pub(super) fn point<T: Serialize + DeserializeOwned>(
        &mut self,
        point: &str,
        measure: impl FnOnce(&Study<'_>) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let done = self.had.min(self.expected);
        // A bar that does not stop anything.
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

    /// Draws a figure.
    pub(super) fn draw(
        &mut self,
        name: &str,
        chart: &Chart<'_>,
        series: &[Series],
    ) -> Result<(), Failure> {
        self.write_picture(name, chart.draw(series))
    }

    /// Draws a figure whose x axis has names.
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

    /// Writes a file, which is there in full or not at all.
    fn write(&mut self, name: &str, text: &str) -> Result<(), Failure> {
        let path = self.args.output.join(name);
        to_file(&path, |out| Ok(out.write_all(text.as_bytes())?))?;
        self.written.push(name.to_owned());
        Ok(())
    }

    /// Writes the report and says what was found.
    pub(super) fn end(mut self, sections: &[Section]) -> Result<(), Failure> {
        let run = Run::now(self.args.seed);
        let columns = run.columns();
        let mut facts: Vec<(&str, String)> = columns
            .iter()
            .map(|(name, value)| (*name, value.clone()))
            .collect();
        let known = facts.iter().position(|(name, _)| *name == "processor");
        let place = known.map_or(facts.len(), |place| place + 1);
        facts.splice(place..place, super::machine::facts());
        let mut remarks = Vec::new();
        if self.args.quick {
            remarks.push(
                "A quick reproduction: fewer rule sets, sizes and points, and shorter runs than \
                 in the paper. Its figures are rough."
                    .to_owned(),
            );
        }
        if let Some(limits) = limited(self.args) {
            remarks.push(format!("Not the whole reproduction: limited by {limits}."));
        }
        let heading = Heading {
            title: self.args.paper.title(self.args.section),
            facts: &facts,
            remarks: &remarks,
        };
        let folder = self.args.output.clone();
        let picture = |name: &str| -> Result<String, Failure> {
            let path = folder.join(name);
            fs::read_to_string(&path).map_err(|error| Failure::file(&path, error))
        };
        let page = html::report(&heading, sections, picture)?;
        self.write(REPORT, &page)?;
        drop(self.progress);
        let mut out = stdout();
        for section in sections {
            writeln!(out, "{}\n", section.title)?;
            for grid in &section.grids {
                let side = |index| {
                    if index < grid.words {
                        Side::Left
                    } else {
                        Side::Right
                    }
                };
                let columns = grid.columns.iter().enumerate();
                let columns: Vec<_> = columns
                    .map(|(index, name)| (name.as_str(), side(index)))
                    .collect();
                let mut table = Table::new(&columns);
                for row in &grid.rows {
                    table.row(row.clone());
                }
                writeln!(out, "{}", grid.title)?;
                table.write(&mut out)?;
                writeln!(out)?;
            }
        }
        let claims = || sections.iter().flat_map(|section| &section.claims);
        let mut table = Table::new(&[
            ("where", Side::Left),
            ("the paper", Side::Left),
            ("measured", Side::Left),
            ("verdict", Side::Left),
        ]);
        for claim in claims() {
            table.row(vec![
                claim.place.to_owned(),
                claim.paper.to_owned(),
                claim.measured.clone(),
                claim.verdict.text(),
            ]);
        }
        table.write(&mut out)?;
        writeln!(out)?;
        run.write(&mut out)?;
        out.flush()?;
        let wrote = self.written.join(", ");
        let folder = folder.display();
        self.reporter.note(&format!("wrote {wrote} to {folder}"));
        Ok(())
    }
}

/// What makes a reproduction smaller than the paper's, besides `--quick`; `None`
/// if nothing does.
fn limited(args: &Args) -> Option<String> {
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

/// Everything that a measurement depends on.
fn circumstances(args: &Args, run: &Run) -> Circumstances {
    let join = |names: &[String]| names.join(",");
    let sizes: Vec<String> = args.sizes.iter().map(usize::to_string).collect();
    // The measurements of tm19 are known by profile and size.
    let known = args.paper == Paper::Tm19;
    let sizes = if known { Vec::new() } else { sizes };
    let own_profile = |name: &&String| known && Profile::BUILT_IN.contains(&name.as_str());
    let profiles = args.profiles.iter().filter(|name| !own_profile(name));
    let profiles: Vec<String> = profiles.cloned().collect();
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
        let found = of_run.iter().find(|(name, _)| *name == wanted);
        found.map_or(String::new(), |(_, value)| value.clone())
    };
    Circumstances {
        paper: args.paper.key().to_owned(),
        version: column("version"),
        processor: column("processor"),
        options: options
            .map(|(name, value)| (name.to_owned(), value))
            .to_vec(),
    }
}
