//! Own inputs: quantities of a figure for each rule set and each engine or algorithm.
//!
//! The rule sets are the user's, or the paper's by profile and size. The engines are the
//! figure's, and the user's after them.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Display;
use std::sync::Arc;

use classyard::policy::PartId;
use classyard::{ActionId, EngineSpec, NoProgress, Policy, PolicyTrace, Priority, RuleSet};
use classyard_report::chart::{Chart, Mark, Series};
use classyard_report::failure::Failure;
use classyard_report::input::family::OPENFLOW15;
use classyard_report::output::csv::Writer;
use classyard_workload::generate::{Family, Profile};
use serde::{Deserialize, Serialize};

use super::claims::{Figure as Number, Grid, Section};
use super::inputs::Inputs;
use super::statistics::{coordinate, mean};
use super::study::Study;
use crate::bench::{generated_policy, size_name};

/// A quantity, in the unit of its title.
pub(super) struct Quantity {
    /// Its column in the CSV file, and the end of its picture's name.
    pub(super) column: &'static str,
    /// Its name with the unit, for people.
    pub(super) title: &'static str,
}

/// A figure with own inputs.
pub(super) struct Comparison<'a> {
    /// The figure's name.
    pub(super) figure: &'static str,
    pub(super) title: &'static str,
    pub(super) method: String,
    pub(super) quantities: &'a [Quantity],
    /// The engines or algorithms of the figure.
    pub(super) engines: &'a [&'a str],
    /// The rules of the figure, if the user has none, and their numbers.
    pub(super) generated: Generated<'a>,
    pub(super) sizes: &'a [usize],
    /// True if headers are looked up.
    pub(super) has_headers: bool,
    /// The options that the measurements depend on, as text.
    pub(super) options: String,
}

/// The rules of a figure that does not take them unchanged from a file.
#[derive(Clone, Copy)]
pub(super) enum Generated<'a> {
    /// IPv4 five-tuples of each profile.
    Profiles,
    /// Rules of fifteen fields.
    OpenFlow15,
    /// Rule sets that the figure makes from its own lists or from own rules, also if there
    /// are own rules.
    Made(&'a [MadeSet]),
}

/// A rule set of one schema that a figure makes, with the headers to look up.
pub(super) struct MadeSet {
    pub(super) name: String,
    /// The content of rules and headers, for the names of points.
    pub(super) content: String,
    pub(super) rules: RuleSet,
    pub(super) headers: PolicyTrace,
}

/// The measured values of one engine over one rule set.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Cell {
    /// The reason why the engine was not built.
    pub(super) refused: Option<String>,
    /// A value for each quantity; empty if the engine was not built.
    pub(super) values: Vec<f64>,
    pub(super) wrong: usize,
}

impl Cell {
    /// Returns the cell of an engine that was not built.
    pub(super) fn refused(reason: &dyn Display) -> Cell {
        Cell {
            refused: Some(reason.to_string()),
            values: Vec::new(),
            wrong: 0,
        }
    }
}

/// A rule set of a comparison.
struct Subject<'a> {
    name: String,
    /// The content of rules and headers, for the names of points.
    content: String,
    origin: Origin<'a>,
}

enum Origin<'a> {
    /// The user's rules at an index.
    File(Arc<Inputs>, usize),
    /// A profile and a number of rules.
    Profile(Arc<Profile>, usize),
    /// A number of rules of fifteen fields.
    OpenFlow15(usize),
    Made(&'a MadeSet),
}

/// The rules and headers of a subject.
pub(super) struct Workload<'a> {
    pub(super) policy: Cow<'a, Policy>,
    /// Headers to look up.
    pub(super) trace: PolicyTrace,
    /// The first of these headers, to refill CPU caches and to compare answers.
    pub(super) few: PolicyTrace,
}

/// Headers in [`Workload::few`].
const FEW_HEADERS: usize = 5_000;

/// Traces with fewer headers are repeated, so that a pass takes measurable time.
const MIN_HEADERS: usize = 20_000;

impl Subject<'_> {
    /// Returns the rules, and `headers` headers if they are drawn.
    fn load(&self, study: &Study<'_>, headers: usize) -> Result<Workload<'_>, Failure> {
        let (policy, trace) = match &self.origin {
            Origin::OpenFlow15(rules) => {
                let family = Family::OpenFlow15(Box::default());
                let seed = study.list_seed(0);
                let policy = generated_policy(family, *rules, seed, &mut NoProgress)?;
                let trace = study.trace_with(&policy, headers)?;
                (Cow::Owned(policy), trace)
            }
            Origin::Profile(profile, rules) => {
                let policy = study.policy(profile, *rules)?;
                let trace = study.trace_with(&policy, headers)?;
                (Cow::Owned(policy), trace)
            }
            Origin::File(inputs, index) => {
                let own = &inputs.rules[*index];
                let trace = match &own.headers {
                    Some(own) => repeated(&own.trace, headers.min(MIN_HEADERS)),
                    None => study.trace_with(&own.policy, headers)?,
                };
                (Cow::Borrowed(&own.policy), trace)
            }
            Origin::Made(made) => {
                let policy = Policy::from_parts(&made.name, vec![made.rules.clone()]);
                let trace = repeated(&made.headers, headers.min(MIN_HEADERS));
                (Cow::Owned(policy), trace)
            }
        };
        let mut few = PolicyTrace::new(policy.schemas());
        for (part, key) in trace.iter().take(FEW_HEADERS) {
            few.push_key(part, key);
        }
        Ok(Workload { policy, trace, few })
    }
}

/// Returns a trace that is repeated as a whole until it has at least `min_headers`.
fn repeated(trace: &PolicyTrace, min_headers: usize) -> PolicyTrace {
    let mut all = trace.clone();
    while all.len() < min_headers {
        for (part, key) in trace.iter() {
            all.push_key(part, key);
        }
    }
    all
}

/// Returns the rule sets of a comparison.
fn subjects<'a>(study: &Study<'_>, comparison: &Comparison<'a>) -> Vec<Subject<'a>> {
    let inputs = &study.inputs;
    if let Generated::Made(sets) = comparison.generated {
        let sets = sets.iter().map(|made| Subject {
            name: made.name.clone(),
            content: made.content.clone(),
            origin: Origin::Made(made),
        });
        return sets.collect();
    }
    if inputs.rules.is_empty() && matches!(comparison.generated, Generated::OpenFlow15) {
        let sets = comparison.sizes.iter().map(|&size| Subject {
            name: OPENFLOW15.to_owned(),
            content: format!("{OPENFLOW15} {size}"),
            origin: Origin::OpenFlow15(size),
        });
        return sets.collect();
    }
    if inputs.rules.is_empty() {
        let sets = comparison.sizes.iter().flat_map(|&size| {
            study.profiles.iter().map(move |(name, profile)| Subject {
                name: name.clone(),
                content: format!("{name} {size}"),
                origin: Origin::Profile(Arc::clone(profile), size),
            })
        });
        return sets.collect();
    }
    let own = inputs.rules.iter().enumerate().map(|(index, rules)| {
        let headers = match &rules.headers {
            Some(headers) if comparison.has_headers => format!(", headers {}", headers.content),
            _ => String::new(),
        };
        Subject {
            name: rules.name.clone(),
            content: format!("rules {}{headers}", rules.content),
            origin: Origin::File(Arc::clone(inputs), index),
        }
    });
    own.collect()
}

/// Checks that all own rules are of one schema each, for a figure whose engines are not
/// part of a policy.
///
/// # Errors
/// [`Failure`] with the file of rules of several schemas.
pub(super) fn check_one_schema(study: &Study<'_>, figure: &str) -> Result<(), Failure> {
    let rules = study.inputs.rules.iter();
    match rules.into_iter().find(|own| own.policy.parts().len() > 1) {
        None => Ok(()),
        Some(own) => Err(Failure::usage(format!(
            "{}: figure {figure} needs rules of one schema, and the schema is {}",
            own.name,
            own.policy.name()
        ))
        .with_help("divide the rules by their schemas, or choose other figures")),
    }
}

/// Returns rules of one schema with priorities from their number down to 1, in the order of
/// their ranks: the default rule of a table of a pipeline has priority 0. Action names are
/// kept.
pub(super) fn with_priorities_from_1(policy: &Policy) -> Policy {
    let rules = policy.part(PartId::FIRST);
    let mut ranked = RuleSet::new(rules.schema());
    let priorities = (1..=u32::try_from(rules.len()).expect("at most 65,535 rules")).rev();
    for (position, priority) in rules.by_rank().into_iter().zip(priorities) {
        let rule = rules.rule(position as usize);
        let added = ranked.add(rule.id(), Priority(priority), rule.action(), &rule.fields());
        added.expect("the schema is the same");
    }
    let mut prioritised = Policy::from_parts(policy.name(), vec![ranked]);
    let names = (0..).map_while(|number| policy.action_name(ActionId(number)));
    for name in names {
        prioritised.declare_action(name);
    }
    prioritised
}

/// Returns the engines of a comparison: the figure's, then the user's, without duplicates.
fn engines(study: &Study<'_>, figure_engines: &[&str]) -> Vec<EngineSpec> {
    let of_figure = figure_engines
        .iter()
        .map(|engine| EngineSpec::parse(engine).expect("the engines of figures are registered"));
    let mut engines: Vec<EngineSpec> = Vec::new();
    for engine in of_figure.chain(study.inputs.engines.iter().cloned()) {
        if !engines
            .iter()
            .any(|known| known.to_string() == engine.to_string())
        {
            engines.push(engine);
        }
    }
    engines
}

/// A rule set with a cell for each engine.
struct Row {
    name: String,
    rules: usize,
    /// The requested number of rules; the generator may make fewer.
    size: usize,
    cells: Vec<Cell>,
}

/// The engines or algorithms that are compared over each rule set.
struct Candidates {
    /// The singular, which is also the column in the CSV file.
    word: &'static str,
    /// The heading of the reasons why candidates have no values.
    refusals: &'static str,
    names: Vec<String>,
    /// The number of headers that are drawn from rules.
    headers: usize,
}

/// Measures and draws a comparison of engines. `measure` returns a cell for each engine.
/// Claims are left to the caller.
pub(super) fn compare(
    study: &mut Study<'_>,
    comparison: &Comparison<'_>,
    measure: impl Fn(&Study<'_>, &Workload<'_>, &[EngineSpec]) -> Result<Vec<Cell>, Failure>,
) -> Result<Section, Failure> {
    let engines = engines(study, comparison.engines);
    let candidates = Candidates {
        word: "engine",
        refusals: "Not built",
        names: engines.iter().map(ToString::to_string).collect(),
        headers: study.headers(),
    };
    // A seed that the user did not choose is the same in every run.
    let seeded: Vec<EngineSpec> = engines.into_iter().map(|engine| engine.seeded(0)).collect();
    compare_candidates(study, comparison, &candidates, |study, workload| {
        measure(study, workload, &seeded)
    })
}

/// Measures and draws a comparison of algorithms that are not engines. `measure` returns a
/// cell for each algorithm, whose kind `word` names. At most `max_headers` headers are drawn
/// for rules without headers of their own. Claims are left to the caller.
pub(super) fn compare_algorithms(
    study: &mut Study<'_>,
    comparison: &Comparison<'_>,
    word: &'static str,
    max_headers: usize,
    measure: impl Fn(&Study<'_>, &Workload<'_>) -> Result<Vec<Cell>, Failure>,
) -> Result<Section, Failure> {
    let names = comparison.engines.iter().map(|&name| name.to_owned());
    let candidates = Candidates {
        word,
        refusals: "Without result",
        names: names.collect(),
        headers: study.headers().min(max_headers),
    };
    compare_candidates(study, comparison, &candidates, measure)
}

fn compare_candidates(
    study: &mut Study<'_>,
    comparison: &Comparison<'_>,
    candidates: &Candidates,
    measure: impl Fn(&Study<'_>, &Workload<'_>) -> Result<Vec<Cell>, Failure>,
) -> Result<Section, Failure> {
    let Candidates {
        word,
        names,
        headers,
        ..
    } = candidates;
    let subjects = subjects(study, comparison);
    study.expect_points(subjects.len());
    let mut rows = Vec::new();
    for subject in &subjects {
        let point = format!(
            "own {}, {}{}, {word}s {}",
            comparison.figure,
            subject.content,
            comparison.options,
            names.join(" ")
        );
        let (rules, cells) = study.point(&point, |study| {
            let workload = subject.load(study, *headers)?;
            let cells = measure(study, &workload)?;
            Ok((workload.policy.len(), cells))
        })?;
        rows.push(Row {
            name: subject.name.clone(),
            rules,
            size: match subject.origin {
                Origin::Profile(_, size) | Origin::OpenFlow15(size) => size,
                Origin::File(..) | Origin::Made(_) => rules,
            },
            cells,
        });
    }
    write(study, comparison, candidates, &rows)?;
    let mut section = Section {
        title: format!("{}, own inputs", comparison.title),
        method: method(comparison, candidates, &rows),
        claims: Vec::new(),
        grids: vec![grid(comparison.quantities, candidates, &rows)],
        pictures: Vec::new(),
    };
    for (index, quantity) in comparison.quantities.iter().enumerate() {
        let name = format!("own-{}-{}.svg", comparison.figure, quantity.column);
        draw(study, &name, comparison, index, names, &rows)?;
        section.pictures.push(name);
    }
    Ok(section)
}

fn method(comparison: &Comparison<'_>, candidates: &Candidates, rows: &[Row]) -> String {
    let mut method = comparison.method.clone();
    let cells = rows.iter().flat_map(|row| {
        let named = candidates.names.iter().zip(&row.cells);
        named.map(move |(name, cell)| (name, row, cell))
    });
    let refusals = cells.clone().filter_map(|(name, row, cell)| {
        let reason = cell.refused.as_ref()?;
        Some(format!("{name} over {}: {reason}", row.name))
    });
    let refusals: Vec<String> = refusals.collect();
    if !refusals.is_empty() {
        let heading = candidates.refusals;
        method.push_str(&format!(" {heading}: {}.", refusals.join("; ")));
    }
    let wrong: usize = cells.map(|(.., cell)| cell.wrong).sum();
    if wrong > 0 {
        method.push_str(&format!(
            " WRONG: {wrong} answers differ from a scan of the rules; see own-{}.csv.",
            comparison.figure
        ));
    }
    method
}

/// Writes the data: one row for each rule set and engine.
fn write(
    study: &mut Study<'_>,
    comparison: &Comparison<'_>,
    candidates: &Candidates,
    rows: &[Row],
) -> Result<(), Failure> {
    let mut heading = vec!["rule_set", "rules", candidates.word, "not_built", "wrong"];
    heading.extend(comparison.quantities.iter().map(|quantity| quantity.column));
    let mut lines = Vec::new();
    for row in rows {
        for (name, cell) in candidates.names.iter().zip(&row.cells) {
            let mut cells = vec![row.name.clone(), row.rules.to_string(), name.clone()];
            cells.push(cell.refused.clone().unwrap_or_default());
            cells.push(cell.wrong.to_string());
            let values = (0..comparison.quantities.len()).map(|index| cell.values.get(index));
            cells.extend(values.map(|value| value.map(f64::to_string).unwrap_or_default()));
            lines.push(csv_line(cells));
        }
    }
    let name = format!("own-{}.csv", comparison.figure);
    study.write_csv(&name, &heading.join(","), &lines)
}

/// Returns cells as a line of a CSV file: names of files may have commas.
pub(super) fn csv_line<T: Display>(cells: impl IntoIterator<Item = T>) -> String {
    let cells: Vec<T> = cells.into_iter().collect();
    let cells: Vec<&dyn Display> = cells.iter().map(|cell| cell as _).collect();
    let mut text = Vec::new();
    let written = Writer::new(&mut text).row(&cells);
    written.expect("memory takes every write");
    let text = String::from_utf8_lossy(&text);
    text.trim_end_matches('\n').to_owned()
}

/// Returns a table with a row for each rule set and candidate.
fn grid(quantities: &[Quantity], candidates: &Candidates, rows: &[Row]) -> Grid {
    let columns = ["rule set", candidates.word, "rules"];
    let mut columns = columns.map(str::to_owned).to_vec();
    columns.extend(quantities.iter().map(|quantity| quantity.title.to_owned()));
    let mut lines = Vec::new();
    for row in rows {
        for (name, cell) in candidates.names.iter().zip(&row.cells) {
            let mut cells = vec![row.name.clone(), name.clone(), size_name(row.rules)];
            cells.extend((0..quantities.len()).map(|index| {
                let value = cell.values.get(index);
                value.map_or("–".to_owned(), |&value| Number(value).to_string())
            }));
            lines.push(cells);
        }
    }
    Grid {
        title: format!("Each {} over each rule set", candidates.word),
        columns,
        words: 2,
        rows: lines,
    }
}

/// Draws a quantity: for each of the user's rule sets, or against generated rules as a mean
/// over profiles.
fn draw(
    study: &mut Study<'_>,
    name: &str,
    comparison: &Comparison<'_>,
    index: usize,
    engines: &[String],
    rows: &[Row],
) -> Result<(), Failure> {
    let is_made = matches!(comparison.generated, Generated::Made(_));
    let is_generated = study.inputs.rules.is_empty() && !is_made;
    let title = format!("{}, own inputs", comparison.quantities[index].title);
    let chart = Chart {
        title: &title,
        x_label: if is_generated { "rules" } else { "" },
        y_label: comparison.quantities[index].title,
        log_x: is_generated,
        log_y: true,
    };
    let series = engines.iter().enumerate().zip(Mark::ALL.iter().cycle());
    let series = series.map(|((engine, engine_name), &mark)| {
        let value = |row: &Row| {
            let value = row.cells[engine].values.get(index).copied();
            // A logarithmic axis has no zero.
            value.filter(|value| *value > 0.0)
        };
        let points: Vec<(f64, f64)> = match is_generated {
            true => means(rows, value),
            false => {
                let places = rows.iter().enumerate();
                let points = places.filter_map(|(at, row)| Some((coordinate(at), value(row)?)));
                points.collect()
            }
        };
        Series::marked(engine_name, engine_name, mark, points)
    });
    let series: Vec<Series> = series.collect();
    if is_generated {
        return study.draw(name, &chart, &series);
    }
    let groups: Vec<String> = rows.iter().map(|row| short_name(&row.name)).collect();
    study.draw_groups(name, &chart, &groups, &series)
}

/// Returns the mean over rule sets for each number of rules.
fn means(rows: &[Row], value: impl Fn(&Row) -> Option<f64>) -> Vec<(f64, f64)> {
    let mut by_size: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
    for row in rows {
        by_size.entry(row.size).or_default().extend(value(row));
    }
    let sizes = by_size.into_iter().filter(|(_, values)| !values.is_empty());
    let means = sizes.map(|(size, values)| (coordinate(size), mean(&values)));
    means.collect()
}

/// Returns the last part of a path, for the axis of a picture.
fn short_name(path: &str) -> String {
    path.rsplit('/').next().unwrap_or(path).to_owned()
}
