//! `classyard plot`: draws the results of `bench`.

use std::path::PathBuf;

mod estimates;
mod figures;
mod read;

use classyard_report::chart::draw_page;
use classyard_report::failure::Failure;
use classyard_report::input::files::only_one_from_stdin;
use classyard_report::output::file::is_dash;
use classyard_report::output::file::to_file;
use classyard_report::output::join;
use classyard_report::reporter::Reporter;
use read::{Kind, Results};

/// Draw the results of bench: lookups against rules, and against updates
///
/// Reads one or more files of `classyard bench --format json`, ndjson or csv, plain
/// or gzip'd, and draws one SVG page: the lookup rate against the number of rules;
/// the lookup rate against the update rate, if updates were measured; and for the
/// mixed load (`--mixed`) lookups with concurrent updates and the latency of
/// batches. If files have the same engine on the same set, the last one counts. On
/// each set a peer is represented by its fastest algorithm.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  classyard bench --sizes 1k,10k,100k -e forest,tuplemerge --updates --format json > bench.json
  classyard plot bench.json -o bench.svg
  classyard plot bench.json --estimates -o estimates.svg
  classyard plot lookups.json.gz updates.csv mixed.json --only forest,tuplemerge,rte_acl")]
pub(crate) struct Args {
    /// Results of bench; - is standard input
    #[arg(required = true, value_name = "FILES")]
    files: Vec<PathBuf>,

    /// The picture to write; - for standard output
    #[arg(
        short,
        long,
        alias = "out",
        default_value = "bench.svg",
        value_name = "FILE",
        help_heading = "Output"
    )]
    output: PathBuf,

    /// Draw estimated against measured times instead: batches, single lookups and
    /// updates, with a mark for each engine and set
    #[arg(long)]
    estimates: bool,

    /// Draw only these engines, with their options, and peers
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    only: Vec<String>,
}

/// Runs the command.
pub(crate) fn run(args: &Args, reporter: Reporter) -> Result<(), Failure> {
    let names = (1..=args.files.len()).map(|number| format!("file {number}"));
    let names: Vec<String> = names.collect();
    let named = names.iter().zip(&args.files);
    let named = named.map(|(name, path)| (name.as_str(), Some(path.as_path())));
    only_one_from_stdin(&named.collect::<Vec<_>>())?;
    let mut results = Results::default();
    for file in &args.files {
        results.read(file)?;
    }
    for (what, rows) in [
        ("gave wrong answers", &results.wrong),
        ("failed", &results.failed),
    ] {
        if !rows.is_empty() {
            reporter.warn(&format!(
                "left out, because they {what}: {}",
                join(rows, "; ")
            ));
        }
    }
    results.keep_best_of_peers();
    let engines = results.engines();
    if let Some(unknown) = args.only.iter().find(|name| !engines.contains(name)) {
        let message = format!("there are no results of `{unknown}` to draw");
        return Err(Failure::usage(message).with_help(format!("there are {}", join(engines, ", "))));
    }
    if !args.only.is_empty() {
        results.rows.retain(|row| args.only.contains(&row.engine));
    }
    let mut page = Vec::new();
    if args.estimates {
        page.extend(estimates::figures(&results));
    } else if results.rows.iter().any(|row| row.kind == Kind::Alone) {
        page.push(figures::lookups_against_rules(&results));
        page.extend(figures::lookups_against_updates(&results));
    }
    if !args.estimates && results.rows.iter().any(|row| row.kind == Kind::Mixed) {
        page.extend(figures::mixed_load(&results));
    }
    if page.is_empty() {
        let missing = match args.estimates {
            true => "there are no estimates to draw: CSV and older files have none",
            false => "there are no results to draw",
        };
        return Err(Failure::usage(missing));
    }
    let picture = draw_page(&page).map_err(|error| Failure::file(&args.output, error))?;
    to_file(&args.output, |out| Ok(out.write_all(picture.as_bytes())?))?;
    if !is_dash(&args.output) {
        reporter.note(&format!("wrote {}", args.output.display()));
    }
    Ok(())
}
