//! `classyard reproduce`: measures the figures and tables of papers again, one module a
//! paper.

use classyard_report::failure::Failure;
use classyard_report::reporter::Reporter;

mod claims;
mod comparison;
mod dec14;
mod fch14;
mod figure;
mod fts25;
mod html;
mod identity;
mod inputs;
mod machine;
mod paper_values;
mod points;
mod report;
mod request;
mod sfl17;
mod statistics;
mod study;
mod tm19;

use claims::{Claim, Section};
use figure::{Figure, chosen};
use request::Request;
use study::Study;

/// Measure the figures and tables of a paper again
///
/// Each figure is an SVG picture and a CSV file with its data. At the end report.html has
/// all pictures and tables, and lists for each claim of the paper what was compared, the
/// paper's value, the measured values with their confidence intervals, the threshold, and
/// the verdict that is computed from them. Every measurement is kept in points.ndjson: to continue an
/// interrupted reproduction, give the same command again.
///
/// Figures can also show your own engines, rules, headers and captures. Then no claim is
/// measured, since the paper says nothing about them.
#[derive(Debug, clap::Args)]
#[command(
    subcommand_value_name = "PAPER",
    subcommand_help_heading = "Papers",
    after_help = "\
`classyard reproduce PAPER --help` lists the figures of a paper and its options.

Examples:
  classyard reproduce sfl17 --quick
  classyard reproduce dec14 --quick
  classyard reproduce tm19
  classyard reproduce tm19 --section 5 --quick -o switch
  classyard reproduce tm19 --figures tables --sizes 1k,4k,16k,64k,256k -o figures
  classyard reproduce sfl17 --figures updates --sets 3 --run 2s
  classyard reproduce tm19 -e cut-split -r acl.rules -t acl.trace -o own
  classyard reproduce fts25 -c link.pcap -o own"
)]
pub struct Args {
    #[command(subcommand)]
    paper: PaperArgs,
}

/// The papers.
#[derive(Debug, clap::Subcommand)]
enum PaperArgs {
    Tm19(tm19::Args),
    Sfl17(sfl17::Args),
    Dec14(dec14::Args),
    Fch14(fch14::Args),
    Fts25(fts25::Args),
}

impl PaperArgs {
    /// Returns the request, and all figures that it may choose from.
    fn request(&self) -> Result<(Request, &'static [Figure]), Failure> {
        match self {
            PaperArgs::Tm19(args) => Ok((args.request()?, args.figures())),
            PaperArgs::Sfl17(args) => Ok((args.request(), sfl17::FIGURES)),
            PaperArgs::Dec14(args) => Ok((args.request(), dec14::FIGURES)),
            PaperArgs::Fch14(args) => Ok((args.request()?, fch14::FIGURES)),
            PaperArgs::Fts25(args) => Ok((args.request(), fts25::FIGURES)),
        }
    }
}

/// Runs the command.
///
/// # Errors
/// [`Failure`] if an argument is refused, an engine cannot be built, or a file cannot be
/// written.
pub fn run(args: &Args, reporter: Reporter) -> Result<(), Failure> {
    let (request, figures) = args.paper.request()?;
    request.check_inputs()?;
    let chosen = chosen(&request, figures)?;
    let mut study = Study::new(&request, chosen.left_out, reporter)?;
    let mut sections = Vec::new();
    for (name, draw) in chosen.figures {
        study.begin(name);
        let section = draw(&mut study)?;
        sections.push(match study.inputs.is_empty() {
            true => section,
            false => on_own_inputs(section),
        });
    }
    study.end(&sections)
}

/// Returns a section whose claims are not measured: the paper says nothing about the user's
/// own inputs.
fn on_own_inputs(section: Section) -> Section {
    let claims = section.claims.into_iter().map(Claim::on_own_inputs);
    Section {
        claims: claims.collect(),
        ..section
    }
}
