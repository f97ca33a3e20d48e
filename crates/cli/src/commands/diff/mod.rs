//! `classyard diff`: packets that two policies decide differently.

use std::path::PathBuf;

use classyard_analysis::diff;
use classyard_configs::with_impossible_headers_denied;
use classyard_report::failure::Failure;
use classyard_report::input::count;
use classyard_report::input::rules::RulesArgs;
use classyard_report::output::OutputArgs;
use classyard_report::reporter::Reporter;

mod report;

use report::DiffReport;

use crate::commands::analysis_failure::failure;
use crate::commands::two_files;

/// Compare two policies: packets with another action, and the rules that decide them
///
/// The comparison is proven, not sampled, and does not depend on the order or the
/// number of rules: two lists without a common rule can be equivalent. Actions are
/// compared by name; accept, allow and permit are one action, deny and drop another.
///
/// Files of any formats can be compared. Lists of firewalls with different names are
/// compared if each file has one list, or with --list and --second-list.
///
/// Exit code 0 says that every packet gets the same action; 1 that some packets
/// get another action, or that the limit of steps was reached.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  classyard diff old.rules new.rules
  classyard diff old.rules new.rules --equivalent     exits with 0 if nothing differs
  classyard diff asa.cfg fw.nft --list OUTSIDE_IN --second-list input
  git show HEAD~1:fw.rules | classyard diff - fw.rules --format json")]
pub(crate) struct Args {
    /// The first rules; - for standard input, gzip is unpacked
    #[arg(value_name = "FIRST", help_heading = "Input")]
    first: PathBuf,

    /// The second rules
    #[arg(value_name = "SECOND", help_heading = "Input")]
    second: PathBuf,

    #[command(flatten)]
    reading: RulesArgs,

    /// The list of the second file, if it has another name than --list
    #[arg(long, value_name = "NAME", requires = "list", help_heading = "Input")]
    second_list: Option<String>,

    /// Stop after the first rule with a difference
    #[arg(long)]
    equivalent: bool,

    /// The maximum number of steps for each changed rule
    ///
    /// A step compares a rule with a part of another rule; a million take some 10 ms.
    /// The limit for all rules together is 100 times as high.
    #[arg(long, value_name = "N", value_parser = count, default_value = "20M")]
    steps: usize,

    /// Stop after N differences (10k, 1M, ...)
    #[arg(long, value_name = "N", value_parser = count, default_value = "100k")]
    limit_differences: usize,

    #[command(flatten)]
    output: OutputArgs,
}

/// Runs the command.
pub(crate) fn run(args: &Args, reporter: Reporter) -> Result<(), Failure> {
    let files = [args.first.as_path(), args.second.as_path()];
    let second_list = args.second_list.as_ref();
    let [first, second] = two_files::load(&args.reading, second_list, files, reporter)?;
    let mut settings = two_files::settings(args.steps);
    settings.max_differences = if args.equivalent {
        1
    } else {
        args.limit_differences
    };
    let mut progress = reporter.progress();
    let [of_first, of_second] =
        [&first, &second].map(|rules| with_impossible_headers_denied(&rules.policy));
    let diff = diff(&of_first, &of_second, &settings, &mut progress);
    drop(progress);
    let diff = diff.map_err(failure)?;
    args.output
        .report(&DiffReport::new(&first, &second, &diff))?;
    match diff.is_equivalent() {
        Some(true) => Ok(()),
        _ => Err(Failure::Different),
    }
}
