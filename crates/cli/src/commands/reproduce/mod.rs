//! `classyard reproduce`: a paper's figures, drawn anew from measurements.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use classyard::{Policy, PolicyTrace};
use classyard_workload::generate::Profile;

use crate::bench::{generated_policy, generated_trace};
use crate::failure::Failure;
use crate::input::count;
use crate::input::family::{FamilyName, profile};
use crate::reporter::Reporter;

mod collision_limit;
mod growth;
mod tables;

/// Draw the figures of a paper anew, from measurements on generated rule sets
///
/// Each figure is an SVG picture with its data beside it as CSV. The figures
/// of tm19 (TupleMerge, ToN 2019): tables.svg, the number of tables against
/// the number of rules (Fig. 2); collision-limit.svg, search time against the
/// collision limit (Figs. 7 and 8); growth.svg and memory.svg, what building
/// costs as rule sets grow.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  classyard reproduce tm19
  classyard reproduce tm19 --figures tables --sizes 1k,4k,16k,64k,256k --out figures")]
pub(crate) struct Args {
    /// The paper
    #[arg(value_enum)]
    paper: Paper,

    /// The folder to write to; it is made if it is not there
    #[arg(short, long, default_value = "reproduced", value_name = "FOLDER")]
    out: PathBuf,

    /// The figures to draw
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        default_values = ["tables", "collision-limit", "growth"],
        value_name = "NAMES"
    )]
    figures: Vec<Figure>,

    /// Numbers of rules, of every figure
    ///
    /// Without them, tables has 1k, 2k, 4k, ... 256k, growth 10k, 20k, 50k, ...
    /// 1M. collision-limit has the greatest of them that is at most 64k.
    #[arg(long, value_delimiter = ',', value_parser = sizes, value_name = "COUNTS")]
    sizes: Vec<usize>,

    /// Profiles: built-in names or TOML files; all built-in ones unless given
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    profiles: Vec<String>,

    /// Headers in each trace
    #[arg(long, value_parser = count, default_value = "200k", value_name = "COUNT")]
    headers: usize,

    /// Where random numbers begin
    #[arg(long, default_value_t = 1, value_name = "NUMBER")]
    seed: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Paper {
    /// Daly et al., TupleMerge, ToN 2019
    Tm19,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Figure {
    /// Fig. 2: the number of tables against the number of rules
    Tables,
    /// Figs. 7 and 8: search time against the collision limit
    CollisionLimit,
    /// Time and memory of building against the number of rules, to a million
    /// unless --sizes says otherwise
    Growth,
}

/// Runs the command.
pub(crate) fn run(args: &Args, reporter: Reporter) -> Result<(), Failure> {
    let Paper::Tm19 = args.paper;
    fs::create_dir_all(&args.out).map_err(|error| Failure::file(&args.out, error))?;
    let study = Study::new(args, reporter)?;
    for figure in &args.figures {
        match figure {
            Figure::Tables => tables::draw(&study)?,
            Figure::CollisionLimit => collision_limit::draw(&study)?,
            Figure::Growth => growth::draw(&study)?,
        }
    }
    Ok(())
}

/// Reads a number of rules, for the argument parser.
fn sizes(text: &str) -> Result<usize, String> {
    match count(text)? {
        0 => Err("figures need at least 1 rule".to_owned()),
        size => Ok(size),
    }
}

/// What all figures are drawn from.
struct Study<'a> {
    args: &'a Args,
    profiles: Vec<(String, Arc<Profile>)>,
    reporter: Reporter,
}

impl Study<'_> {
    fn new(args: &Args, reporter: Reporter) -> Result<Study<'_>, Failure> {
        let names: Vec<&str> = match args.profiles.as_slice() {
            [] => Profile::BUILT_IN.to_vec(),
            given => given.iter().map(String::as_str).collect(),
        };
        let profiles = names
            .into_iter()
            .map(|name| Ok((name.to_owned(), profile(name)?)));
        Ok(Study {
            args,
            profiles: profiles.collect::<Result<_, Failure>>()?,
            reporter,
        })
    }

    /// The numbers of rules that were asked for, else a figure's own.
    fn sizes(&self, own: &[usize]) -> Vec<usize> {
        match self.args.sizes.as_slice() {
            [] => own.to_vec(),
            given => given.to_vec(),
        }
    }

    /// Rules of a profile.
    fn policy(&self, profile: &Arc<Profile>, rules: usize) -> Result<Policy, Failure> {
        let family = FamilyName::Ipv4.with(Arc::clone(profile), 0.0);
        generated_policy(family, rules, self.args.seed, &mut self.reporter.progress())
    }

    /// Headers for rules.
    fn trace(&self, policy: &Policy) -> Result<PolicyTrace, Failure> {
        let mut progress = self.reporter.progress();
        generated_trace(policy, self.args.headers, self.args.seed, &mut progress)
    }

    /// Writes a figure's data.
    fn write_csv(&self, name: &str, heading: &str, rows: &[String]) -> Result<(), Failure> {
        let path = self.args.out.join(name);
        let mut text = format!("{heading}\n");
        for row in rows {
            text.push_str(row);
            text.push('\n');
        }
        fs::write(&path, text).map_err(|error| Failure::file(&path, error))?;
        self.wrote(&path);
        Ok(())
    }

    /// Draws a figure.
    fn draw(
        &self,
        name: &str,
        chart: &crate::chart::Chart<'_>,
        series: &[crate::chart::Series],
    ) -> Result<(), Failure> {
        let path = self.args.out.join(name);
        chart
            .draw(&path, series)
            .map_err(|error| Failure::file(&path, error))?;
        self.wrote(&path);
        Ok(())
    }

    fn wrote(&self, path: &Path) {
        self.reporter.note(&format!("wrote {}", path.display()));
    }
}

/// The arithmetic mean, as the paper averages.
#[allow(clippy::cast_precision_loss)] // a few dozen values
fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// A count as a coordinate.
#[allow(clippy::cast_precision_loss)] // far below 2^52
fn coordinate(count: usize) -> f64 {
    count as f64
}
