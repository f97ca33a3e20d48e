//! The files that are written while headers are looked up.

use std::fs;
use std::path::Path;

use classyard_report::failure::Failure;
use classyard_report::input::rules::LoadedRules;
use classyard_report::output::file::{is_dash, is_same_file};
use classyard_report::output::{Format, join};
use classyard_workload::packet::LinkType;

use super::Args;
use super::fields::FieldsFile;
use super::hits::{HitsFile, Written};
use super::lookups::Lookups;
use super::outcome::{Outcome, outcomes};
use super::packets::{Chunk, Kept};
use super::selection::Selection;
use super::winners::WinnersFile;

/// The files that are written while headers are looked up.
pub(super) struct Outputs<'a> {
    rules: &'a LoadedRules,
    selection: Selection,
    winners: Option<WinnersFile>,
    hits: Option<HitsFile>,
    fields: Option<FieldsFile<'a>>,
}

impl<'a> Outputs<'a> {
    /// Creates the files.
    ///
    /// # Errors
    /// [`Failure::Usage`] if the command line selects a rule that does not exist, or a file cannot
    /// be created.
    pub(super) fn create(args: &'a Args, rules: &'a LoadedRules) -> Result<Outputs<'a>, Failure> {
        let selection = match args.rule.is_empty() && args.action.is_empty() {
            true => Selection::all(rules),
            false => Selection::new(rules, &args.rule, &args.action)?,
        };
        let winners = args.winners.as_deref().map(WinnersFile::create);
        let hits = args.write.as_deref().map(HitsFile::create);
        let (format, is_capture) = (args.output.format, args.headers.trace.is_none());
        let fields = args.fields.as_deref();
        let fields = fields.map(|path| FieldsFile::create(path, rules, format, is_capture));
        Ok(Outputs {
            rules,
            selection,
            winners: winners.transpose()?,
            hits: hits.transpose()?,
            fields: fields.transpose()?,
        })
    }

    /// Writes the packets or headers of a chunk.
    pub(super) fn write(&mut self, chunk: &Chunk, lookups: &Lookups) -> Result<(), Failure> {
        if self.winners.is_none() && self.hits.is_none() && self.fields.is_none() {
            return Ok(());
        }
        let outcomes: Vec<Outcome> = outcomes(&self.rules.policy, chunk, lookups).collect();
        if let Some(winners) = &mut self.winners {
            winners.write(&outcomes)?;
        }
        if let Some(fields) = &mut self.fields {
            fields.write(chunk, &outcomes, &self.selection)?;
        }
        if let (Some(hits), Some(packets)) = (&mut self.hits, &chunk.packets) {
            hits.write(packets, &outcomes, &self.selection)?;
        }
        Ok(())
    }

    /// Writes what is buffered.
    pub(super) fn flush(&mut self) -> Result<(), Failure> {
        if let Some(winners) = &mut self.winners {
            winners.flush()?;
        }
        if let Some(fields) = &mut self.fields {
            fields.flush()?;
        }
        self.hits.as_mut().map_or(Ok(()), HitsFile::flush)
    }

    /// Completes the files. `link` is the link type of a capture file without packets.
    pub(super) fn finish(&mut self, link: LinkType) -> Result<Option<Written>, Failure> {
        self.flush()?;
        let hits = self.hits.as_mut();
        hits.map(|hits| hits.finish(link)).transpose()
    }
}

/// Returns what chunks must keep of their packets.
pub(super) fn kept(args: &Args) -> Kept {
    match (&args.write, &args.fields) {
        (Some(_), _) => Kept::Frames,
        (None, Some(_)) => Kept::Records,
        (None, None) => Kept::Nothing,
    }
}

/// True if data goes to standard output, so that no report does.
pub(super) fn only_data(args: &Args) -> bool {
    files(args).iter().any(|(_, path)| is_dash(path))
}

/// Returns the options for files that are written, with their files.
fn files(args: &Args) -> Vec<(&'static str, &Path)> {
    let files = [
        ("--winners", &args.winners),
        ("--write", &args.write),
        ("--fields", &args.fields),
    ];
    let files = files.into_iter();
    files
        .filter_map(|(option, path)| Some((option, path.as_deref()?)))
        .collect()
}

/// Checks the options for files that are written.
///
/// # Errors
/// [`Failure::Usage`] if options contradict each other, or a file would replace an input.
pub(super) fn check(args: &Args) -> Result<(), Failure> {
    let files = files(args);
    let to_stdout: Vec<&str> = files
        .iter()
        .filter(|(_, path)| is_dash(path))
        .map(|(option, _)| *option)
        .collect();
    if to_stdout.len() > 1 {
        let options = to_stdout.iter().map(|option| format!("{option} -"));
        return Err(Failure::usage(format!(
            "{} write to standard output; only one can",
            join(options, " and ")
        )));
    }
    let is_selective = !args.rule.is_empty() || !args.action.is_empty();
    if is_selective && args.write.is_none() && args.fields.is_none() {
        return Err(
            Failure::usage("--rule and --action select packets to write").with_help(
                "add --write FILE for the packets, or --fields FILE for a line for each",
            ),
        );
    }
    if args.write.is_some() && !is_selective {
        return Err(Failure::usage("--write needs the packets to write").with_help(
            "add --rule with a rule's number or `line:N`, or --action with the name of an action",
        ));
    }
    if let (Some(_), Some(option)) = (args.every, to_stdout.first()) {
        return Err(Failure::usage(format!(
            "--every and {option} - both write to standard output"
        ))
        .with_help(format!("give {option} a file")));
    }
    if args.every.is_some() && args.output.format == Format::Csv {
        return Err(Failure::usage("--every has no CSV form")
            .with_help("--format json gives a line for each report"));
    }
    for (index, (option, path)) in files.iter().enumerate() {
        let later_files = &files[index + 1..];
        let is_device = fs::metadata(path).is_ok_and(|metadata| !metadata.is_file());
        let same_file = later_files
            .iter()
            .find(|(_, other)| other == path && !is_device);
        if let Some((other, _)) = same_file {
            return Err(Failure::usage(format!(
                "{option} and {other} both write {}",
                path.display()
            )));
        }
    }
    keep_inputs(args, &files)
}

/// Fails if a file that is written is an input.
fn keep_inputs(args: &Args, files: &[(&'static str, &Path)]) -> Result<(), Failure> {
    let [capture, trace] = args.headers.files();
    let inputs = [("rules", args.rules.path()), capture, trace];
    for (option, path) in files {
        for (name, input) in inputs {
            if input.is_some_and(|input| is_same_file(path, input)) {
                return Err(Failure::usage(format!(
                    "{option} {} would replace the {name}",
                    path.display()
                )));
            }
        }
    }
    Ok(())
}
