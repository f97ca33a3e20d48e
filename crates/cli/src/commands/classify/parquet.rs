//! Lookup of flow logs in Parquet files.

use std::io::{self, IsTerminal as _, Write};
use std::path::Path;
use std::time::Instant;

use classyard::ActionId;
use classyard_arrow::{BatchError, BuiltPolicy, HeaderFields, Mapping};
use classyard_lab::cores::Clocks;
use classyard_parquet::{LogColumns, LogError, Logs, Lookups, Summary, column_names, find_files};
use classyard_report::failure::Failure;
use classyard_report::input::rules::LoadedRules;
use classyard_report::input::source_name;
use classyard_report::output::file::{WholeFile, is_dash, is_same_file};
use classyard_report::reporter::Reporter;

use super::input_report::InputReport;
use super::logs_report::LogsReport;
use super::report::{ClassifyReport, EngineReport, Seconds};
use super::tally::Tally;
use super::{Args, build};

/// Looks up the rows of the logs, writes the results and the report.
pub(super) fn run(args: &Args, reporter: Reporter) -> Result<(), Failure> {
    let Some(rules_path) = args.rules.path() else {
        return Err(Failure::usage("--parquet needs rules").with_help("add -r FILE"));
    };
    let began = Instant::now();
    let rules = args.reading.load_for_packets(Some(rules_path), reporter)?;
    let rules_seconds = began.elapsed().as_secs_f64();
    let began = Instant::now();
    let (logs, verdict) = open(args, rules_path, &rules, reporter)?;
    let open_seconds = began.elapsed().as_secs_f64();
    let (spec, classifier, build_seconds) = build(args, &rules, reporter)?;
    let policy = BuiltPolicy {
        policy: &rules.policy,
        classifier: &classifier,
    };
    let (summary, clocks) = Clocks::time(|| classify(args, &logs, &policy, reporter));
    let summary = summary?;
    let output = args.parquet.output.as_deref();
    if output.is_some_and(is_dash) {
        return Ok(());
    }
    let tally = Tally::of_hits(&rules.policy, &summary.hits, summary.unmatched);
    let source = args.parquet.parquet.join(", ");
    let input = InputReport::logs(
        &source,
        usize::try_from(summary.headers()).unwrap_or(usize::MAX),
    );
    let mut report = ClassifyReport::new(&rules, input, &tally, args.top_rules(), args.all);
    report.engine = EngineReport::new(&spec, args.engine.is_some(), &rules.policy, &classifier);
    report.rate = None;
    report.seconds = Seconds {
        read_rules: rules_seconds,
        read_headers: open_seconds,
        build: build_seconds,
        classify: clocks.wall,
    };
    let output = output.map(source_name);
    let logs = LogsReport::new(
        &logs,
        &summary,
        &rules,
        verdict.as_deref(),
        clocks.wall,
        output,
    );
    report.logs = Some(logs);
    args.write_report(&report)
}

/// Opens the logs. Returns them and the column of verdicts.
fn open(
    args: &Args,
    rules_path: &Path,
    rules: &LoadedRules,
    reporter: Reporter,
) -> Result<(Logs, Option<String>), Failure> {
    let paths = find_files(&args.parquet.parquet).map_err(|error| failure(&error))?;
    let output = args.parquet.output.as_deref();
    if let Some(output) = output {
        if is_dash(output) && io::stdout().is_terminal() {
            return Err(Failure::usage("-o - writes a Parquet file to the terminal")
                .with_help("give -o a file, or redirect standard output"));
        }
        let inputs = paths.iter().map(AsRef::as_ref).chain([rules_path]);
        for input in inputs {
            if is_same_file(output, input) {
                let (output, input) = (output.display(), input.display());
                return Err(Failure::usage(format!(
                    "--output {output} would replace the input {input}"
                )));
            }
        }
    }
    let mapping = args.parquet.mapping();
    let verdict = match (
        &args.parquet.verdict,
        mapping.verdict_column(),
        paths.first(),
    ) {
        (Some(column), _, _) => Some(column.clone()),
        (None, Some(column), Some(first)) => default_verdict(column, first, reporter)?,
        (None, _, _) => None,
    };
    let columns = LogColumns {
        prefix: args.parquet.prefix(&mapping),
        mapping,
        fields: HeaderFields::of(&rules.policy),
        verdict: verdict.clone(),
        keep: args.parquet.keep.clone().unwrap_or_default(),
    };
    let logs = Logs::open(paths, columns, output.is_some()).map_err(|error| failure(&error))?;
    Ok((logs, verdict))
}

/// Returns the preset's column of verdicts, if the first file has it.
fn default_verdict(
    column: &str,
    first: &Path,
    reporter: Reporter,
) -> Result<Option<String>, Failure> {
    let columns = column_names(first).map_err(|error| failure(&error))?;
    if columns.iter().any(|name| name == column) {
        return Ok(Some(column.to_owned()));
    }
    let file = first.display();
    reporter.note(&format!(
        "{file} has no column `{column}`, so verdicts are not compared; --verdict names another"
    ));
    Ok(None)
}

fn classify(
    args: &Args,
    logs: &Logs,
    policy: &BuiltPolicy<'_>,
    reporter: Reporter,
) -> Result<Summary, Failure> {
    let names = (0..).map_while(|id| policy.policy.action_name(ActionId(id)));
    let names: Vec<String> = names.map(str::to_owned).collect();
    let lookups = Lookups {
        rules: policy,
        actions: &names,
        verdicts: &args.parquet.verdict_names(),
        threads: args.threads,
    };
    let mut progress = reporter.progress();
    let Some(path) = args.parquet.output.as_deref() else {
        let nowhere: Option<io::Sink> = None;
        return logs
            .classify(&lookups, nowhere, &mut progress)
            .map_err(|error| failure(&error));
    };
    let is_stdout = is_dash(path);
    let target = if is_stdout {
        Path::new("/dev/stdout")
    } else {
        path
    };
    let mut file = ResultFile(WholeFile::create(target)?);
    let summary = logs.classify(&lookups, Some(&mut file), &mut progress);
    let summary = summary.map_err(|error| match error {
        LogError::Output(error) if is_stdout => Failure::Output(error),
        LogError::Output(error) => Failure::file(path, error),
        other => failure(&other),
    })?;
    file.0.finish()?;
    Ok(summary)
}

/// A file that replaces its target when it is complete.
struct ResultFile(WholeFile);

impl Write for ResultFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.out().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.out().flush()
    }
}

/// Returns the failure for an error, with the option that helps.
fn failure(error: &LogError) -> Failure {
    let help = match error {
        LogError::Batch {
            error: BatchError::MissingColumn { field, .. },
            ..
        } => Some(format!(
            "--columns maps fields: a preset ({}), `{field}=COLUMN`, or `{field}:=VALUE`",
            Mapping::PRESETS.join(", ")
        )),
        LogError::NameClash { .. } => Some(
            "--prefix TEXT begins the names of results; --keep-columns NAMES keeps others".to_owned(),
        ),
        LogError::OtherColumns { .. } => Some(
            "--keep-columns NAMES keeps columns that all files have; --keep-columns none keeps none".to_owned(),
        ),
        LogError::VerdictType { .. }
        | LogError::MissingColumn {
            purpose: "verdicts",
            ..
        } => Some("--verdict COLUMN names another column".to_owned()),
        LogError::NoMatch { .. } => {
            Some("* stands for names in one folder, ** for folders of any depth".to_owned())
        }
        _ => None,
    };
    let failure = Failure::usage(error.to_string());
    match help {
        Some(help) => failure.with_help(help),
        None => failure,
    }
}
