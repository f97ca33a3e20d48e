//! `classyard check`: engines against each other, or against expected answers.

use std::path::PathBuf;
use std::time::Instant;

use classyard::classifier::BATCH;
use classyard::policy::PartId;
use classyard::{EngineSpec, Policy, PolicyTrace, RuleId, RuleRef};
use classyard_conformance::collider::{self, CollisionReport, collide};
use classyard_conformance::random::{Dice, SeededDice, draw_header};
use classyard_conformance::{Subject, isa_specs};
use classyard_lab::cores::thread_count;
use classyard_report::failure::Failure;
use classyard_report::input::family::{
    FamilyName, hostile_sets, named_sets, openflow_set, profiles_of,
};
use classyard_report::input::files::{RulesFile, only_one_from_stdin};
use classyard_report::input::headers::{HeadersArgs, choice_of};
use classyard_report::input::rules::RulesArgs;
use classyard_report::input::{count, engine, read_text, source_name};
use classyard_report::output::OutputArgs;
use classyard_report::registry;
use classyard_report::reporter::Reporter;
use classyard_workload::formats::read_trace;
use classyard_workload::generate::{Family, Recipe};

mod report;
mod schemas;

use report::{CaseReport, CheckReport};

/// Check engines against each other, or against expected answers
///
/// All engines look up the same headers in batches, one by one, and with masks,
/// which must include every bit that the answer depends on. With --changes they do
/// so after random changes too. The first disagreement is reported with everything
/// needed to repeat it, and the exit code is 1.
///
/// Without files, checks the embedded example and every built-in profile at 1,000
/// rules.
///
/// With --schemas, draws random schemas, rules and headers in each round and
/// compares every answer with a plain scan of the rules.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  classyard check
  classyard check -r fw.rules -c dump.pcap --changes 10k
  classyard check -r acl1_1k.txt --expected acl1_1k.expected --engines all
  classyard check --profiles all --sizes 1k,10k --families ipv4,ipv6,openflow15,dual \\
      --changes 100k
  classyard check --profiles fw1 --engines linear,tuplemerge:c=4 --count 1M --threads 2
  classyard check --hostile all --sizes 500 --changes 2k
      rules that are hard for classifiers
  classyard check --schemas 200 --seed 7 --engines all,forest:isa=scalar
      random schemas, each with its own rules, headers and changes
  classyard check --schemas 1 --seed 23
      the round with seed 23 again")]
pub(crate) struct Args {
    #[command(flatten)]
    rules: RulesFile,

    #[command(flatten)]
    headers: HeadersArgs,

    /// Headers with the right answers: the fields as in a trace, then the number of
    /// the winning rule, from 0, or -1 for none
    #[arg(
        short = 'x',
        long,
        value_name = "FILE",
        conflicts_with_all = ["capture", "trace"],
        help_heading = "Input"
    )]
    expected: Option<PathBuf>,

    #[command(flatten)]
    reading: RulesArgs,

    /// Check generated rules instead: built-in profiles, or `all`
    #[arg(
        short_alias = 'p',
        long,
        value_name = "NAMES",
        value_delimiter = ',',
        conflicts_with_all = ["rules_given", "capture", "trace", "expected"],
        help_heading = "Generated rules"
    )]
    profiles: Vec<String>,

    /// Check rules that are hard for classifiers instead: overlapping, ranges,
    /// wildcards, nested-prefixes, alike, one-bucket, corners, or `all`
    #[arg(
        long,
        value_name = "NAMES",
        value_delimiter = ',',
        conflicts_with_all = ["rules_given", "capture", "trace", "expected", "profiles", "families"],
        help_heading = "Generated rules"
    )]
    hostile: Vec<String>,

    /// Check N random schemas instead: 1 to 64 fields of 1 to 128 bits, of all kinds
    ///
    /// Each round draws a schema and from 3 to 2,500 rules. Then rules are changed,
    /// all of them removed, and added again, while engines rebuild and re-optimise in
    /// between. The first round uses --seed, and each further round the next number.
    #[arg(
        long,
        value_name = "N",
        value_parser = count,
        conflicts_with_all = ["rules_given", "capture", "trace", "expected", "profiles", "hostile",
            "families", "sizes", "headers_drawn", "headers_per_update", "schema"],
        help_heading = "Generated rules"
    )]
    schemas: Option<usize>,

    /// The numbers of rules
    #[arg(
        long,
        value_name = "NS",
        value_delimiter = ',',
        value_parser = count,
        default_value = "1k",
        help_heading = "Generated rules"
    )]
    sizes: Vec<usize>,

    /// The families of headers
    #[arg(
        long,
        value_name = "NAMES",
        value_enum,
        value_delimiter = ',',
        default_value = "ipv4",
        help_heading = "Generated rules"
    )]
    families: Vec<FamilyName>,

    /// The engines: NAME or NAME:OPTION=VALUE:..., or `all` with their defaults
    ///
    /// The default is all. With --schemas, engines that have code for several
    /// instruction sets run with each set that the processor supports.
    #[arg(short, long, value_name = "SPECS", value_delimiter = ',')]
    engines: Vec<String>,

    /// The number of headers to draw from where answers change: corners of rules,
    /// overlaps, one step outside
    ///
    /// The default is 20k if no headers are given, else none.
    #[arg(short = 'n', long = "count", alias = "headers-drawn", value_name = "N", value_parser = count)]
    headers_drawn: Option<usize>,

    /// The number of random changes to make, with checks in between
    ///
    /// The default is none. With --schemas, the default is as many as it takes in
    /// each round to remove all rules and add them again.
    #[arg(long, alias = "updates", short_alias = 'u', value_name = "N", value_parser = count)]
    changes: Option<usize>,

    /// The number of headers to look up after each transaction
    #[arg(long, value_name = "N", value_parser = count, default_value = "16")]
    headers_per_update: usize,

    /// The seed of the random numbers
    #[arg(short, long, value_name = "N", default_value_t = 1)]
    seed: u64,

    /// Look headers up on N threads: batches of one engine are split over them; with
    /// --schemas, each thread runs rounds of its own
    #[arg(long, value_name = "N", value_parser = thread_count, default_value_t = 1)]
    threads: usize,

    #[command(flatten)]
    output: OutputArgs,
}

impl Args {
    /// Returns the requested engines.
    fn engine_words(&self) -> Vec<String> {
        match self.engines.as_slice() {
            [] => vec!["all".to_owned()],
            words => words.to_vec(),
        }
    }
}

/// The number of headers that are looked up repeatedly while rules change.
const SAMPLE_HEADERS: usize = 4096;

/// The number of headers drawn if none are given.
const DEFAULT_HEADERS: usize = 20_000;

/// Rules and headers to check.
struct Case {
    name: String,
    policy: Policy,
    trace: PolicyTrace,
    expected: Option<Vec<Option<usize>>>,
    /// The flags that reproduce this case.
    flags: String,
}

/// Runs the command.
pub(crate) fn run(args: &Args, reporter: Reporter) -> Result<(), Failure> {
    let [capture, trace] = args.headers.files();
    let expected = ("expected answers", args.expected.as_deref());
    only_one_from_stdin(&[("rules", args.rules.path()), capture, trace, expected])?;
    let mut specs = engines(&args.engine_words())?;
    if let Some(count) = args.schemas {
        if args.engines.is_empty() {
            specs.extend(isa_specs());
        }
        return schemas::run(args, count, &specs, reporter);
    }
    let mut report = CheckReport::new(&specs, args.seed, args.changes.unwrap_or(0));
    let subjects = || specs.iter().cloned().map(Subject::from).collect::<Vec<_>>();

    if args.profiles.is_empty() && args.hostile.is_empty() {
        let case = given(args, reporter)?;
        report.push(check(args, &case, &subjects(), reporter));
    }
    let nothing_given =
        args.rules.path().is_none() && args.headers.is_empty() && args.expected.is_none();
    if nothing_given && report.is_clean() {
        for recipe in recipes(args)? {
            let case = generated(args, &recipe, reporter)?;
            let clean = report.push(check(args, &case, &subjects(), reporter));
            if !clean {
                break;
            }
        }
    }
    args.output.report(&report)?;
    if report.is_clean() {
        Ok(())
    } else {
        Err(Failure::Different)
    }
}

fn check(args: &Args, case: &Case, subjects: &[Subject], reporter: Reporter) -> CaseReport {
    let options = collider::Options {
        seed: args.seed,
        single_every: 13,
        masked_every: 101,
        threads: args.threads,
        ..collider::Options::default()
    };
    let began = Instant::now();
    let mut reports: Vec<CollisionReport> = vec![collide(
        &case.policy,
        &case.trace,
        case.expected.as_deref(),
        subjects,
        &options,
        &mut reporter.progress(),
    )];
    let updates = args.changes.unwrap_or(0);
    if updates > 0 && reports[0].collision.is_none() {
        // After each change, batches are smaller, since a slow engine would otherwise
        // take all the time.
        let options = collider::Options {
            batch: args.headers_per_update.clamp(1, BATCH),
            updates,
            headers_per_update: args.headers_per_update,
            ..options
        };
        let sample = sample(&case.policy, &case.trace, SAMPLE_HEADERS);
        let mut progress = reporter.progress();
        let updated = collide(
            &case.policy,
            &sample,
            None,
            subjects,
            &options,
            &mut progress,
        );
        reports.push(updated);
    }
    for skip in reports.iter().flat_map(|report| &report.skips) {
        reporter.warn(&format!("{}: {skip}", case.name));
    }
    let mut repeat = format!("classyard check {}", case.flags);
    if updates > 0 {
        repeat.push_str(&format!(
            " --changes {updates} --headers-per-update {}",
            args.headers_per_update
        ));
    }
    repeat.push_str(&format!(
        " --seed {} --engines {}",
        args.seed,
        args.engine_words().join(",")
    ));
    if args.threads > 1 {
        repeat.push_str(&format!(" --threads {}", args.threads));
    }
    CaseReport::new(case, &reports, began.elapsed(), repeat)
}

/// Returns at most `most` headers, spread evenly over a trace.
fn sample(policy: &Policy, trace: &PolicyTrace, most: usize) -> PolicyTrace {
    let stride = trace.len().div_ceil(most).max(1);
    let mut sample = PolicyTrace::new(policy.schemas());
    for (part, key) in trace.iter().step_by(stride) {
        sample.push_key(part, key);
    }
    sample
}

/// Parses the engines' specifications.
fn engines(words: &[String]) -> Result<Vec<EngineSpec>, Failure> {
    let mut specs: Vec<EngineSpec> = Vec::new();
    for word in words {
        if word == "all" {
            specs.extend(registry::all());
        } else {
            specs.push(engine(word).map_err(Failure::usage)?);
        }
    }
    let mut seen = Vec::new();
    specs.retain(|spec| {
        let new = !seen.contains(spec);
        seen.push(spec.clone());
        new
    });
    Ok(specs)
}

/// Reads the given rules and headers, or the embedded example.
fn given(args: &Args, reporter: Reporter) -> Result<Case, Failure> {
    let rules = args.reading.load(args.rules.path(), reporter)?;
    let policy = rules.policy;
    let mut flags = Vec::new();
    if let Some(path) = args.rules.path() {
        flags.push(format!("--rules {}", path.display()));
    }
    flags.extend(
        args.reading
            .rules_format
            .map(|format| format!("--rules-format {}", format.name())),
    );
    flags.extend(
        args.reading
            .schema
            .as_ref()
            .map(|schema| format!("--schema {schema}")),
    );
    flags.extend(args.reading.table.map(|table| format!("--table {table}")));
    flags.extend(args.reading.skip_bad.then(|| "--skip-bad".to_owned()));
    let drawn = |given: bool| {
        args.headers_drawn
            .unwrap_or(if given { 0 } else { DEFAULT_HEADERS })
    };
    let (mut trace, expected, given, name) = if let Some(path) = &args.expected {
        let (trace, expected) = read_expected(args, path, &policy, reporter)?;
        flags.push(format!("--expected {}", path.display()));
        (trace, Some(expected), true, source_name(path))
    } else if !args.headers.is_empty() || args.rules.path().is_none() {
        let headers = args.headers.load(&policy, &args.reading, reporter)?;
        for (flag, path) in [
            ("--capture", &args.headers.capture),
            ("--trace", &args.headers.trace),
        ] {
            if let Some(path) = path {
                flags.push(format!("{flag} {}", path.display()));
            }
        }
        let given = !args.headers.is_empty();
        (headers.trace, None, given, headers.source)
    } else {
        (
            PolicyTrace::new(policy.schemas()),
            None,
            false,
            String::new(),
        )
    };
    let mut expected = expected;
    let count = if expected.is_some() { 0 } else { drawn(given) };
    if expected.is_some() && args.headers_drawn.is_some_and(|count| count > 0) {
        reporter.warn("no headers are drawn, since answers are expected");
    }
    draw(&mut trace, &policy, count, args.seed);
    if count > 0 {
        flags.push(format!("--count {count}"));
    }
    if let Some(expected) = &mut expected {
        expected.truncate(trace.len());
    }
    let name = match name.as_str() {
        "" => rules.source,
        name => format!("{} on {name}", rules.source),
    };
    Ok(Case {
        name,
        policy,
        trace,
        expected,
        flags: flags.join(" "),
    })
}

/// Reads headers and the positions of their winning rules.
fn read_expected(
    args: &Args,
    path: &std::path::Path,
    policy: &Policy,
    reporter: Reporter,
) -> Result<(PolicyTrace, Vec<Option<usize>>), Failure> {
    let options = args.headers.limit.trace(args.reading.options());
    let text = read_text(path, args.reading.bytes.text())?;
    let choice = choice_of(policy)?;
    let source = source_name(path);
    let loaded = read_trace(&source, &text, Some(&choice), true, &options)?;
    reporter.skipped(&loaded.skipped);
    let trace = loaded.value;
    // The numbers in the file are positions, independent of ids: the first rule is 0.
    let expected = trace.expected.unwrap_or_default().into_iter();
    let expected: Vec<Option<usize>> = expected.map(|id| id.map(RuleId::index)).collect();
    if let Some(number) = expected.iter().flatten().find(|&&at| at >= policy.len()) {
        return Err(Failure::usage(format!(
            "{source} expects rule {number}, but there are only {}",
            policy.len()
        )));
    }
    Ok((trace.headers, expected))
}

/// Adds headers from where answers change, spread over the parts by their number of
/// rules.
fn draw(trace: &mut PolicyTrace, policy: &Policy, count: usize, seed: u64) {
    let mut dice = SeededDice::new(seed);
    let rules: Vec<Vec<RuleRef<'_>>> = policy
        .parts()
        .iter()
        .map(|part| part.iter().collect())
        .collect();
    let weights: Vec<usize> = rules.iter().map(|rules| rules.len() + 1).collect();
    let total: usize = weights.iter().sum();
    for _ in 0..count {
        let mut offset = dice.below(total);
        let mut part = 0;
        while offset >= weights[part] {
            offset -= weights[part];
            part += 1;
        }
        let id = PartId::from_index(part);
        let header = draw_header(policy.part(id).schema(), &rules[part], &mut dice);
        trace
            .push(id, &header)
            .expect("headers are drawn for the schema");
    }
}

/// A set of rules to generate.
struct Wanted {
    name: String,
    flags: String,
    recipe: Recipe,
}

/// Returns the requested sets of rules.
fn recipes(args: &Args) -> Result<Vec<Wanted>, Failure> {
    if !args.hostile.is_empty() {
        return hostile_recipes(args);
    }
    let given: Vec<&str> = args.profiles.iter().map(String::as_str).collect();
    let mut recipes: Vec<Wanted> = Vec::new();
    for &family in &args.families {
        let mut names = given.clone();
        if names.is_empty() || names.contains(&"all") {
            names.retain(|name| *name != "all");
            names.extend(profiles_of(family));
        }
        let sets = named_sets(family, &names)?;
        for &size in &args.sizes {
            for (set, made_from) in &sets {
                let mut recipe = Recipe::new(made_from.clone(), size, args.seed);
                recipe.accept_fewer = true;
                let shown = match openflow_set(set) {
                    Some(_) => set.clone(),
                    None => format!("{set} {}", family.name()),
                };
                let name = format!("{shown} {size}");
                // Sets with OpenFlow fields are the same in each family.
                if recipes.iter().any(|known| known.name == name) {
                    continue;
                }
                recipes.push(Wanted {
                    name,
                    flags: format!(
                        "--profiles {set} --families {} --sizes {size}",
                        family.name()
                    ),
                    recipe,
                });
            }
        }
    }
    Ok(recipes)
}

/// Returns the requested hostile sets.
fn hostile_recipes(args: &Args) -> Result<Vec<Wanted>, Failure> {
    let mut recipes = Vec::new();
    for &size in &args.sizes {
        for set in hostile_sets(&args.hostile)? {
            let mut recipe = Recipe::new(Family::Hostile(set), size, args.seed);
            recipe.accept_fewer = true;
            recipes.push(Wanted {
                name: format!("hostile {} {size}", set.name()),
                flags: format!("--hostile {} --sizes {size}", set.name()),
                recipe,
            });
        }
    }
    Ok(recipes)
}

fn generated(args: &Args, wanted: &Wanted, reporter: Reporter) -> Result<Case, Failure> {
    let policy = super::generate::make(&wanted.recipe, reporter)?;
    let mut trace = PolicyTrace::new(policy.schemas());
    let count = args.headers_drawn.unwrap_or(DEFAULT_HEADERS);
    draw(&mut trace, &policy, count, args.seed);
    Ok(Case {
        name: wanted.name.clone(),
        policy,
        trace,
        expected: None,
        flags: format!("{} --count {count}", wanted.flags),
    })
}
