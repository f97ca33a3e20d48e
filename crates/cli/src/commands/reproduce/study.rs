//! What the figures of a paper are drawn from, and where they go.

use std::fs;
use std::io::Write as _;
use std::sync::Arc;

use classyard::{Policy, PolicyTrace, Progress as _};
use classyard_workload::generate::Profile;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::claims::Section;
use super::html::{self, Heading};
use super::points::{Circumstances, Points};
use super::{Args, Paper};
use crate::bench::{CpuPair, CpuPinning, Run, generated_policy, generated_trace};
use crate::chart::{Chart, Series};
use crate::failure::Failure;
use crate::input::family::{FamilyName, profile};
use crate::output::stdout;
use crate::output::table::{Side, Table};
use crate::reporter::{Progress, Reporter};

/// The name of the report in the folder.
const REPORT: &str = "report.html";

/// Headers in a trace unless asked for otherwise; few in a quick run.
const HEADERS: usize = 200_000;
const PAPER_HEADERS: usize = 100_000;
const FEW_HEADERS: usize = 20_000;

/// Rule sets for a point, in the paper and in a quick run.
const SETS: usize = 10;
const FEW_SETS: usize = 2;

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
    /// Measurements that this run needs, and those it has.
    expected: usize,
    had: usize,
    /// Files written, for the user to know.
    written: Vec<String>,
}

impl<'a> Study<'a> {
    /// Opens the folder. A report of an earlier run is removed: the one at the
    /// end is about everything.
    pub(super) fn new(args: &'a Args, reporter: Reporter) -> Result<Study<'a>, Failure> {
        fs::create_dir_all(&args.out).map_err(|error| Failure::file(&args.out, error))?;
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
            points: Points::open(&args.out, &circumstances(args, &run), args.restart)?,
            profiles,
            processors: CpuPinning::Automatic.choose().unwrap_or_default(),
            reporter,
            progress: reporter.progress(),
            expected: 0,
            had: 0,
            written: Vec::new(),
        };
        if study.points.len() > 0 {
            let measured = crate::output::style::counted(study.points.len(), "measurement");
            study.reporter.note(&format!(
                "going on after {measured} in {}",
                args.out.join(super::points::FILE).display()
            ));
        }
        let report = args.out.join(REPORT);
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
            Paper::Sfl17 | Paper::Dec14 => PAPER_HEADERS,
        })
    }

    /// Rule sets for a point.
    pub(super) fn sets(&self) -> usize {
        let own = if self.args.quick { FEW_SETS } else { SETS };
        self.args.sets.unwrap_or(own)
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
        let family = FamilyName::Ipv4.with(Arc::clone(profile), 0.0);
        let mut silent = classyard::NoProgress;
        generated_policy(family, rules, self.args.seed, &mut silent)
    }

    /// Headers for rules.
    pub(super) fn trace(&self, policy: &Policy) -> Result<PolicyTrace, Failure> {
        let mut silent = classyard::NoProgress;
        generated_trace(policy, self.headers(), self.args.seed, &mut silent)
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
        let _ = self.progress.report("measuring", done, self.expected);
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
        let path = self.args.out.join(name);
        chart
            .draw(&path, series)
            .map_err(|error| Failure::file(&path, error))?;
        self.written.push(name.to_owned());
        Ok(())
    }

    fn write(&mut self, name: &str, text: &str) -> Result<(), Failure> {
        let path = self.args.out.join(name);
        fs::write(&path, text).map_err(|error| Failure::file(&path, error))?;
        self.written.push(name.to_owned());
        Ok(())
    }

    /// Writes the report and says what was found.
    pub(super) fn end(mut self, sections: &[Section]) -> Result<(), Failure> {
        let run = Run::now(self.args.seed);
        let columns = run.columns();
        let facts: Vec<(&str, String)> = columns
            .iter()
            .map(|(name, value)| (*name, value.clone()))
            .collect();
        let mut remarks = Vec::new();
        if self.args.quick {
            remarks.push(
                "A quick reproduction: fewer rule sets, sizes and points, and shorter runs than \
                 in the paper. Its figures are rough."
                    .to_owned(),
            );
        }
        let heading = Heading {
            title: self.args.paper.title(),
            facts: &facts,
            remarks: &remarks,
        };
        let folder = self.args.out.clone();
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

/// Everything that a measurement depends on.
fn circumstances(args: &Args, run: &Run) -> Circumstances {
    let join = |names: &[String]| names.join(",");
    let sizes: Vec<String> = args.sizes.iter().map(usize::to_string).collect();
    let or_own = |value: Option<String>| value.unwrap_or_else(|| "of the paper".to_owned());
    let options = [
        ("--quick", args.quick.to_string()),
        ("--sizes", join(&sizes)),
        ("--profiles", join(&args.profiles)),
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
