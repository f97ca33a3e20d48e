//! `classyard calibrate`: measures the prices of work on this machine.

use std::io::{self, Write};
use std::path::PathBuf;

use classyard::Progress as _;
use classyard::machine::{Machine, Operation};
use classyard_report::failure::Failure;
use classyard_report::machine::processor;
use classyard_report::machine::{Calibration, default_place, today, write};
use classyard_report::output::table::{Side, Table};
use classyard_report::output::{OutputArgs, Report, csv};
use classyard_report::reporter::Reporter;
use serde::Serialize;

mod caches;
mod factors;
mod prices;

use factors::{Factor, Plan};
use prices::Effort;

/// Calibrate the cost model for this machine, which estimates use
///
/// Measures instructions, mispredicted branches and cache lines, then each engine
/// over a few generated rule sets, to find by which factor it takes longer here
/// than the model predicts. Takes about a minute on an idle machine. `inspect`,
/// `bench` and `advise` read the file.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  classyard calibrate
  classyard calibrate -o machine.toml
  classyard inspect fw.rules --machine machine.toml
  classyard calibrate --no-engines --format json
      prices alone, in seconds

JSON: file, processor, date, instruction_ns, misprediction_ns, caches, dependent and overlapped
(lists of [bytes, ns]), and factors, a list of engine, operation (batch, single, update or build),
factor, sets, and least and greatest of the ratios that it is the mean of.")]
pub struct Args {
    /// Write this file instead of the default one
    ///
    /// The default is $XDG_CONFIG_HOME/classyard/machine.toml, or
    /// ~/.config/classyard/machine.toml.
    #[arg(
        short = 'o',
        long = "output",
        value_name = "FILE",
        help_heading = "Output"
    )]
    path: Option<PathBuf>,

    /// Do not measure engines
    #[arg(long)]
    no_engines: bool,

    /// A smoke test: measures so little that the file is useless
    #[arg(long)]
    quick: bool,

    /// The seed of the random numbers
    #[arg(short, long, default_value_t = 1, value_name = "N")]
    seed: u64,

    #[command(flatten)]
    output: OutputArgs,
}

/// The results of a calibration.
#[derive(Serialize)]
struct Calibrated {
    file: String,
    processor: String,
    date: String,
    instruction_ns: f64,
    misprediction_ns: f64,
    caches: [usize; 3],
    dependent: Vec<(f64, f64)>,
    overlapped: Vec<(f64, f64)>,
    factors: Vec<Factor>,
}

/// Runs the command.
pub fn run(args: &Args, reporter: Reporter) -> Result<(), Failure> {
    let path = match &args.path {
        Some(path) => path.clone(),
        None => default_place().ok_or_else(|| {
            Failure::usage("there is no home directory to write machine.toml to")
                .with_help("use -o FILE to write it elsewhere")
        })?,
    };
    let effort = match args.quick {
        true => Effort::QUICK,
        false => Effort::FULL,
    };
    let mut progress = reporter.progress();
    let mut machine = prices(effort, &mut progress)?;
    let mut factors = Vec::new();
    if !args.no_engines {
        let plan = match args.quick {
            true => Plan::quick(args.seed),
            false => Plan::full(args.seed),
        };
        factors = factors::measure(&plan, &machine, &mut progress)?;
        for factor in &factors {
            let operation = Operation::ALL.into_iter();
            let operation = { operation }.find(|one| one.name() == factor.operation);
            let operation = operation.expect("a factor of an operation");
            let set = machine.set_factor(&factor.engine, operation, factor.factor);
            set.map_err(|error| Failure::usage(format!("{}: {error}", factor.engine)))?;
        }
    }
    drop(progress);
    let calibration = Calibration {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        processor: processor(),
        date: today(),
        machine,
    };
    write(&path, &calibration)?;
    reporter.note(&format!("written to {}", path.display()));
    let machine = &calibration.machine;
    args.output.report(&Calibrated {
        file: path.display().to_string(),
        processor: calibration.processor.clone(),
        date: calibration.date.clone(),
        instruction_ns: machine.instruction_ns(),
        misprediction_ns: machine.misprediction_ns(),
        caches: machine.caches(),
        dependent: machine.dependent().points().to_vec(),
        overlapped: machine.overlapped().points().to_vec(),
        factors,
    })
}

/// Measures prices.
fn prices(
    effort: Effort,
    progress: &mut classyard_report::reporter::Progress,
) -> Result<Machine, Failure> {
    let steps = effort.steps() + 1;
    let mut steps_done = 0;
    let mut step = || {
        let _ = progress.report("measuring prices", steps_done, steps);
        steps_done += 1;
    };
    step();
    let instruction_ns = prices::instruction_ns(effort);
    let misprediction_ns = prices::misprediction_ns(effort);
    let curves = prices::curves(effort, |_| step());
    let machine = Machine::new(
        instruction_ns,
        misprediction_ns,
        curves.dependent,
        curves.overlapped,
        caches::sizes().unwrap_or(Machine::default().caches()),
    );
    machine.map_err(|error| Failure::usage(format!("the measured prices are invalid: {error}")))
}

impl Report for Calibrated {
    fn table(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "{}, {}", self.processor, self.date)?;
        writeln!(
            out,
            "instruction {:.3} ns, mispredicted branch {:.2} ns",
            self.instruction_ns, self.misprediction_ns
        )?;
        let mut table = Table::new(&[
            ("working set, KiB", Side::Right),
            ("dependent, ns/line", Side::Right),
            ("overlapped, ns/line", Side::Right),
        ]);
        for (dependent, overlapped) in self.dependent.iter().zip(&self.overlapped) {
            table.row(vec![
                format!("{:.0}", dependent.0 / 1024.0),
                format!("{:.2}", dependent.1),
                format!("{:.2}", overlapped.1),
            ]);
        }
        table.write(out)?;
        if self.factors.is_empty() {
            return Ok(());
        }
        writeln!(
            out,
            "\nmeasured over predicted, geometric mean over sets (least to greatest):"
        )?;
        let mut table = Table::new(&[
            ("engine", Side::Left),
            ("operation", Side::Left),
            ("factor", Side::Right),
            ("range", Side::Right),
        ]);
        for factor in &self.factors {
            table.row(vec![
                factor.engine.clone(),
                factor.operation.to_owned(),
                format!("{:.2}", factor.factor),
                format!("{:.2}-{:.2}", factor.least, factor.greatest),
            ]);
        }
        table.write(out)
    }

    fn csv(&self, out: &mut csv::Writer<'_>) -> io::Result<()> {
        out.row(&[&"engine", &"operation", &"factor", &"least", &"greatest"])?;
        for factor in &self.factors {
            out.row(&[
                &factor.engine,
                &factor.operation,
                &factor.factor,
                &factor.least,
                &factor.greatest,
            ])?;
        }
        Ok(())
    }
}
