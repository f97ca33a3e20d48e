//! The report of `inspect`.

use std::collections::BTreeMap;
use std::io::{self, Write};

use classyard::classifier::{Metric, MetricValue};
use classyard::estimate::Shape;
use classyard::machine::Machine;
use classyard::{Classifier, EngineSpec, Progress, RuleSet};
use classyard_lab::estimates::{EstimateRow, Shapes};
use classyard_lab::sax_pac::{self, Partitions};
use classyard_report::input::rules::LoadedRules;
use classyard_report::output::style::{
    BAR, BOLD, DIM, NOTABLE, action_style, bar, bytes, counted, grouped, large, paint, percent,
    seconds, three_digits,
};
use classyard_report::output::table::{Side, Table, fact, heading, remark};
use classyard_report::output::{Report, csv, join};
use classyard_report::rule_view::RuleView;
use classyard_workload::generate::compare::Summary;
use serde::Serialize;

use super::Args;
use super::measure::{self, FieldUse, Overlaps};
use super::shadows::Shadow;
use crate::commands::explain::fields::{mask_fields, mask_words};

/// Rows of a distribution in a table.
const DISTRIBUTION_ROWS: usize = 8;

/// Shadowed rules in a table.
const SHADOWS_SHOWN: usize = 10;

/// The width of the bars that show shares.
const BAR_WIDTH: u32 = 20;

/// The report of `inspect`. Keys are stable.
#[derive(Serialize)]
pub(super) struct InspectReport {
    pub(super) source: String,
    embedded: bool,
    pub(super) schema: String,
    pub(super) rules: usize,
    actions: Vec<ActionCount>,
    shadowed: ShadowReport,
    pub(super) engines: Vec<EngineTables>,
    pub(super) estimates: Vec<EngineEstimate>,
    pub(super) parts: Vec<PartReport>,
}

#[derive(Serialize)]
struct ActionCount {
    action: Option<String>,
    rules: usize,
}

/// The rules that can never win.
#[derive(Serialize)]
struct ShadowReport {
    /// The number of rules for which the search came to an end.
    examined: usize,
    /// Rules that better rules cover.
    shadowed: usize,
    /// Shadowed rules that no single better rule covers.
    by_several: usize,
    /// Shadowed rules with exactly the same match as a better rule.
    duplicates: usize,
    /// Shadowed rules that have another action than a better rule.
    other_action: usize,
    rules: Vec<ShadowRow>,
    /// Rules that differ from another only in columns that were not read.
    #[serde(skip)]
    merged: usize,
}

#[derive(Serialize)]
struct ShadowRow {
    rule: usize,
    line: Option<u32>,
    name: Option<String>,
    /// The best rule that covers it, or a part of it.
    by: usize,
    by_line: Option<u32>,
    by_name: Option<String>,
    /// Other rules that are needed to cover it.
    also_by: Vec<usize>,
    duplicate: bool,
    same_action: bool,
    #[serde(skip)]
    views: Option<Box<(RuleView, RuleView)>>,
}

/// The tables of one engine.
#[derive(Serialize)]
pub(super) struct EngineTables {
    pub(super) engine: String,
    pub(super) tables: usize,
    pub(super) bytes: usize,
    pub(super) metrics: Vec<MetricRow>,
}

/// A metric that an engine reports about itself, for one part.
#[derive(Serialize)]
pub(super) struct MetricRow {
    schema: String,
    name: &'static str,
    value: MetricNumber,
    /// `B`, `ns` or empty.
    unit: &'static str,
    /// The value as text.
    #[serde(skip)]
    text: String,
}

#[derive(Serialize)]
#[serde(untagged)]
enum MetricNumber {
    Whole(usize),
    Decimal(f64),
    Word(&'static str),
}

impl MetricRow {
    /// Returns the metrics that an engine reports about itself.
    pub(super) fn of(built: &dyn Classifier) -> Vec<MetricRow> {
        let metrics = built.stats().metrics.into_iter();
        let row = |metric: Metric| MetricRow {
            schema: built.schema().name().to_owned(),
            name: metric.name,
            value: match metric.value {
                MetricValue::Count(number) | MetricValue::Bytes(number) => {
                    MetricNumber::Whole(number)
                }
                MetricValue::Nanoseconds(number) | MetricValue::Ratio(number) => {
                    MetricNumber::Decimal(number)
                }
                MetricValue::Word(word) => MetricNumber::Word(word),
            },
            unit: metric.value.unit(),
            text: match metric.value {
                MetricValue::Bytes(count) => bytes(count),
                other => other.to_string(),
            },
        };
        metrics.map(row).collect()
    }
}

/// The estimated cost of an engine, or the reason why it would refuse the rules.
#[derive(Serialize)]
pub(super) struct EngineEstimate {
    engine: String,
    estimate: Option<EstimateRow>,
    refused: Option<String>,
}

impl EngineEstimate {
    /// Estimates the cost of an engine.
    pub(super) fn new(spec: &EngineSpec, shapes: &Shapes, machine: &Machine) -> EngineEstimate {
        let answer = shapes.estimate(spec, machine);
        EngineEstimate {
            engine: spec.to_string(),
            estimate: answer.as_ref().ok().copied(),
            refused: answer.err().map(|error| error.to_string()),
        }
    }
}

/// The rules of one family.
#[derive(Serialize)]
pub(super) struct PartReport {
    pub(super) schema: String,
    pub(super) rules: usize,
    pub(super) tuples: usize,
    sources: usize,
    destinations: usize,
    address_pairs: usize,
    /// The mean number of rules that match a header.
    matches: f64,
    overlaps: Overlaps,
    /// Absent if there are too many rules.
    partitions: Option<Partitions>,
    fields: Vec<FieldUse>,
    largest_tuples: Vec<TupleRow>,
    /// The number of rules in each tuple, largest first.
    pub(super) tuple_sizes: Vec<usize>,
    pub(super) prefix_lengths: Vec<LengthRow>,
    pub(super) port_classes: Vec<PortRow>,
    pub(super) protocols: Vec<ProtocolRow>,
    /// The width of the two addresses in bits.
    #[serde(skip)]
    pub(super) address_bits: u32,
}

#[derive(Serialize)]
struct TupleRow {
    mask: String,
    rules: usize,
}

#[derive(Serialize)]
pub(super) struct LengthRow {
    pub(super) source: u32,
    pub(super) destination: u32,
    pub(super) share: f64,
}

#[derive(Serialize)]
pub(super) struct PortRow {
    pub(super) source: &'static str,
    pub(super) destination: &'static str,
    pub(super) share: f64,
}

#[derive(Serialize)]
pub(super) struct ProtocolRow {
    pub(super) protocol: String,
    pub(super) share: f64,
}

impl PartReport {
    /// Measures a part.
    pub(super) fn new(
        rules: &RuleSet,
        shape: &Shape,
        summary: &Summary,
        args: &Args,
        progress: &mut dyn Progress,
    ) -> PartReport {
        let (seed, partitioned) = (args.seed, args.partitioned());
        let schema = rules.schema();
        let tuples = shape.tuples();
        let lengths = sorted(&summary.lengths);
        let ports = sorted(&summary.ports);
        let protocols = sorted(&summary.protocols);
        let source = schema.field_with_role(classyard::schema::FieldRole::SourceAddress);
        PartReport {
            schema: schema.name().to_owned(),
            rules: rules.len(),
            tuples: summary.tuples,
            sources: summary.sources,
            destinations: summary.destinations,
            address_pairs: summary.address_pairs,
            matches: summary.matches,
            overlaps: measure::overlaps(rules, seed, progress),
            partitions: (rules.len() <= partitioned)
                .then(|| sax_pac::partitions(rules, progress))
                .flatten(),
            fields: measure::fields(rules),
            largest_tuples: tuples
                .iter()
                .take(DISTRIBUTION_ROWS)
                .map(|tuple| TupleRow {
                    mask: mask_words(&mask_fields(schema, &tuple.mask)),
                    rules: tuple.rules,
                })
                .collect(),
            tuple_sizes: tuples.iter().map(|tuple| tuple.rules).collect(),
            prefix_lengths: lengths
                .into_iter()
                .map(|((source, destination), share)| LengthRow {
                    source,
                    destination,
                    share,
                })
                .collect(),
            port_classes: ports
                .into_iter()
                .map(|(class, share)| PortRow {
                    source: class.source.name(),
                    destination: class.destination.name(),
                    share,
                })
                .collect(),
            protocols: protocols
                .into_iter()
                .map(|(protocol, share)| ProtocolRow {
                    protocol: protocol_name(protocol),
                    share,
                })
                .collect(),
            address_bits: source.map_or(0, |id| schema.field(id).width()),
        }
    }
}

fn protocol_name(protocol: Option<u8>) -> String {
    match protocol {
        None => "any".to_owned(),
        Some(number) => classyard::value::ValueFormat::IpProtocol
            .display(number.into())
            .to_string(),
    }
}

fn sorted<K: Copy + Ord>(distribution: &BTreeMap<K, f64>) -> Vec<(K, f64)> {
    let mut rows: Vec<(K, f64)> = distribution
        .iter()
        .map(|(&key, &share)| (key, share))
        .collect();
    rows.sort_by(|a, b| b.1.total_cmp(&a.1));
    rows
}

impl InspectReport {
    /// Creates a report with the counts; the engines are added later.
    pub(super) fn new(
        rules: &LoadedRules,
        parts: Vec<PartReport>,
        shadows: &[Shadow],
        undecided: usize,
    ) -> InspectReport {
        let policy = &rules.policy;
        let mut actions: BTreeMap<Option<&str>, usize> = BTreeMap::new();
        for &id in policy.ids() {
            let rule = policy.rule(id).next();
            let name = rule.and_then(|(_, rule)| policy.action_name(rule.action()));
            *actions.entry(name).or_default() += 1;
        }
        let mut actions: Vec<ActionCount> = actions
            .into_iter()
            .map(|(action, rules)| ActionCount {
                action: action.map(str::to_owned),
                rules,
            })
            .collect();
        actions.sort_by_key(|action| std::cmp::Reverse(action.rules));
        let row = |(index, shadow): (usize, &Shadow)| {
            let position = |id| policy.position(id).unwrap_or_default();
            let (rule, by) = (position(shadow.rule), position(shadow.by[0]));
            ShadowRow {
                rule,
                line: rules.line(rule),
                name: policy.rule_name(shadow.rule).map(str::to_owned),
                by,
                by_line: rules.line(by),
                by_name: policy.rule_name(shadow.by[0]).map(str::to_owned),
                also_by: shadow.by[1..].iter().map(|&id| position(id)).collect(),
                duplicate: shadow.duplicate,
                same_action: shadow.same_action,
                views: (index < SHADOWS_SHOWN)
                    .then(|| Box::new((RuleView::at(rules, rule), RuleView::at(rules, by)))),
            }
        };
        let count = |has: fn(&Shadow) -> bool| shadows.iter().filter(|&shadow| has(shadow)).count();
        InspectReport {
            source: rules.source.clone(),
            embedded: rules.embedded,
            schema: policy.name().to_owned(),
            rules: policy.len(),
            actions,
            shadowed: ShadowReport {
                examined: policy.len() - undecided,
                shadowed: shadows.len(),
                by_several: count(|shadow| shadow.by.len() > 1),
                duplicates: count(|shadow| shadow.duplicate),
                other_action: count(|shadow| !shadow.same_action),
                rules: shadows.iter().enumerate().map(row).collect(),
                merged: rules.merged,
            },
            engines: Vec::new(),
            estimates: Vec::new(),
            parts,
        }
    }
}

impl Report for InspectReport {
    fn table(&self, out: &mut dyn Write) -> io::Result<()> {
        self.write_facts(out)?;
        self.write_estimates(out)?;
        self.shadowed.write(out)?;
        for part in &self.parts {
            part.write(out, self.parts.len() > 1)?;
        }
        Ok(())
    }

    fn csv(&self, out: &mut csv::Writer<'_>) -> io::Result<()> {
        out.row(&[&"part", &"measure", &"key", &"value"])?;
        for engine in &self.engines {
            out.row(&[&"all", &"tables", &engine.engine, &engine.tables])?;
        }
        for row in &self.estimates {
            let name = &row.engine;
            let Some(estimate) = &row.estimate else {
                let reason = row.refused.as_deref().unwrap_or_default();
                out.row(&[&"all", &"refused", name, &reason])?;
                continue;
            };
            out.row(&[&"all", &"estimated_bytes", name, &estimate.bytes])?;
            let seconds = &estimate.build_seconds;
            out.row(&[&"all", &"estimated_build_seconds", name, seconds])?;
            out.row(&[&"all", &"estimated_lookup_ns", name, &estimate.lookup_ns])?;
            out.row(&[&"all", &"estimated_single_ns", name, &estimate.single_ns])?;
            if let Some(ns) = &estimate.update_ns {
                out.row(&[&"all", &"estimated_update_ns", name, ns])?;
            }
        }
        out.row(&[&"all", &"rules", &"", &self.rules])?;
        out.row(&[&"all", &"shadowed", &"", &self.shadowed.shadowed])?;
        for row in &self.shadowed.rules {
            out.row(&[&"all", &"covered_by", &row.rule, &row.by])?;
        }
        for part in &self.parts {
            let name = &part.schema;
            out.row(&[name, &"rules", &"", &part.rules])?;
            out.row(&[name, &"tuples", &"", &part.tuples])?;
            out.row(&[name, &"matches_per_header", &"", &part.matches])?;
            out.row(&[name, &"overlapping_pairs_share", &"", &part.overlaps.share])?;
            if let Some(found) = &part.partitions {
                let sets = [
                    ("all", found.over_all_fields),
                    ("two", found.over_two_fields),
                ];
                for (fields, sets) in sets {
                    out.row(&[name, &"partitions", &fields, &sets])?;
                }
            }
            for row in &part.prefix_lengths {
                let key = format!("{}/{}", row.source, row.destination);
                out.row(&[name, &"prefix_lengths", &key, &row.share])?;
            }
            for row in &part.port_classes {
                let key = format!("{}-{}", row.source, row.destination);
                out.row(&[name, &"port_classes", &key, &row.share])?;
            }
            for row in &part.protocols {
                out.row(&[name, &"protocols", &row.protocol, &row.share])?;
            }
        }
        Ok(())
    }
}

impl InspectReport {
    fn write_facts(&self, out: &mut dyn Write) -> io::Result<()> {
        let embedded = if self.embedded {
            ", the embedded example"
        } else {
            ""
        };
        let rules = format!(
            "{} of {} from {}{embedded}",
            counted(self.rules, "rule"),
            self.schema,
            paint(BOLD, &self.source)
        );
        fact(out, "Rules", rules)?;
        if self.actions.iter().any(|action| action.action.is_some()) {
            let actions = self.actions.iter().map(|row| {
                let name = row.action.as_deref().unwrap_or("(none)");
                format!("{} {}", grouped(row.rules), paint(action_style(name), name))
            });
            fact(out, "Actions", join(actions, ", "))?;
        }
        let shadow = &self.shadowed;
        let mut text = match shadow.shadowed {
            0 => "none".to_owned(),
            count => format!(
                "{}; covered by several rules together: {}; same match as a better rule: {}; \
                 other action than a better rule: {}",
                paint(NOTABLE, &counted(count, "rule")),
                grouped(shadow.by_several),
                grouped(shadow.duplicates),
                grouped(shadow.other_action)
            ),
        };
        if shadow.examined < self.rules {
            text.push_str(&format!(
                "\nundecided within the limit of steps: {}",
                counted(self.rules - shadow.examined, "rule")
            ));
        }
        if shadow.merged > 0 {
            text.push_str(&format!(
                "\n{} from another only in columns that were left out of the file",
                match shadow.merged {
                    1 => "1 rule differs".to_owned(),
                    count => format!("{} differ", counted(count, "rule")),
                }
            ));
        }
        fact(out, "Shadowed", text)?;
        let largest = self.parts.iter().max_by_key(|part| part.rules);
        let largest = largest.map_or("", |part| part.schema.as_str());
        if !self.engines.is_empty() {
            let engines = self.engines.iter().map(|row| {
                let first = format!(
                    "{:20} {:>8}   {}",
                    row.engine,
                    counted(row.tables, "table"),
                    paint(DIM, &bytes(row.bytes))
                );
                let metrics = row.metrics.iter().filter(|metric| metric.schema == largest);
                let metrics = metrics.map(|metric| {
                    let line = format!("  {}: {}", metric.name, metric.text);
                    paint(DIM, &line)
                });
                join([first].into_iter().chain(metrics), "\n")
            });
            fact(out, "Engines", join(engines, "\n"))?;
        }
        writeln!(out)
    }
}

impl InspectReport {
    fn write_estimates(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut table = Table::new(&[
            ("estimate", Side::Left),
            ("memory", Side::Right),
            ("build", Side::Right),
            ("lookup", Side::Right),
            ("update", Side::Right),
        ]);
        for row in &self.estimates {
            let Some(estimate) = &row.estimate else {
                let dashes = [(); 4].map(|()| paint(DIM, "-"));
                table.row([row.engine.clone()].into_iter().chain(dashes).collect());
                continue;
            };
            let update = estimate.update_ns.map(|ns| seconds(ns * 1e-9));
            table.row(vec![
                row.engine.clone(),
                bytes(estimate.bytes),
                seconds(estimate.build_seconds),
                seconds(estimate.lookup_ns * 1e-9),
                update.unwrap_or_else(|| "static".to_owned()),
            ]);
        }
        table.write(out)?;
        for row in &self.estimates {
            if let Some(reason) = &row.refused {
                remark(out, &format!("{}: {reason}", row.engine))?;
            }
        }
        remark(
            out,
            "estimated without building, for sizing; times are for one core of one machine",
        )?;
        writeln!(out)
    }
}

impl ShadowReport {
    fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        if self.rules.is_empty() {
            return Ok(());
        }
        heading(out, "Rules that never win")?;
        let mut table = Table::new(&[
            ("rule", Side::Right),
            ("line", Side::Right),
            ("name", Side::Left),
            ("match", Side::Left),
            ("covered by", Side::Left),
            ("its line", Side::Right),
            ("", Side::Left),
        ]);
        for row in &self.rules {
            let Some(views) = &row.views else { break };
            let (rule, by) = views.as_ref();
            let name = by.name.as_deref().unwrap_or_default();
            let other_rules = match row.also_by.len() {
                0 => String::new(),
                count => format!(" and {}", counted(count, "other rule")),
            };
            table.row(vec![
                rule.rule.to_string(),
                rule.line_cell(),
                rule.name.clone().unwrap_or_default(),
                rule.matches.clone(),
                format!(
                    "{} {name} {}{other_rules}",
                    by.rule,
                    paint(DIM, &by.matches)
                )
                .trim()
                .to_owned(),
                by.line_cell(),
                match (row.duplicate, row.same_action) {
                    (_, false) if by.action == rule.action => {
                        paint(NOTABLE, "others have another action")
                    }
                    (_, false) => paint(
                        NOTABLE,
                        &format!(
                            "{} instead of {}",
                            by.action.as_deref().unwrap_or("none"),
                            rule.action.as_deref().unwrap_or("none")
                        ),
                    ),
                    (true, true) => "duplicate".to_owned(),
                    (false, true) => String::new(),
                },
            ]);
        }
        table.write(out)?;
        if self.shadowed > SHADOWS_SHOWN {
            let rules_left = counted(self.shadowed - SHADOWS_SHOWN, "more rule");
            remark(out, &format!("and {rules_left}; --format json lists all"))?;
        }
        writeln!(out)
    }
}

impl PartReport {
    fn write(&self, out: &mut dyn Write, several: bool) -> io::Result<()> {
        if several {
            let title = format!("{}: {}", self.schema, counted(self.rules, "rule"));
            heading(out, &title)?;
        }
        fact(
            out,
            "Tuples",
            format!("{} (distinct masks)", grouped(self.tuples)),
        )?;
        if self.sources > 0 {
            let text = format!(
                "{}, {}, {}",
                counted(self.sources, "source"),
                counted(self.destinations, "destination"),
                counted(self.address_pairs, "pair")
            );
            fact(out, "Prefixes", text)?;
        }
        let text = format!(
            "{} rules match a header that is a corner of a rule, on average",
            three_digits(self.matches)
        );
        fact(out, "Matches", text)?;
        let Overlaps {
            compared,
            share,
            pairs,
            exact,
            overlapping,
        } = self.overlaps;
        let text = if exact {
            format!(
                "{} of rules {} a header in common, {} of all pairs",
                counted(overlapping, "pair"),
                if overlapping == 1 { "has" } else { "have" },
                percent(share)
            )
        } else {
            format!(
                "about {} pairs of rules have a header in common, {} of {}",
                large(pairs),
                percent(share),
                counted(compared, "random pair")
            )
        };
        fact(out, "Overlaps", text)?;
        if let Some(found) = &self.partitions {
            let text = format!(
                "{} over all fields, {} over two fields each",
                counted(found.over_all_fields, "set"),
                found.over_two_fields
            );
            fact(out, "Rules apart", text)?;
        }
        writeln!(out)?;
        self.write_fields(out)?;
        let rows = self.largest_tuples.iter().map(|row| {
            #[allow(clippy::cast_precision_loss)] // shown with one digit
            let share = row.rules as f64 / self.rules.max(1) as f64;
            let mask = if row.mask.is_empty() {
                "(no bit)"
            } else {
                &row.mask
            };
            (mask.to_owned(), share)
        });
        shares(out, "largest tuples", rows.collect(), self.tuples)?;
        let rows = self.prefix_lengths.iter();
        let rows = rows.map(|row| (format!("/{} /{}", row.source, row.destination), row.share));
        let total = self.prefix_lengths.len();
        shares(
            out,
            "prefix lengths (source destination)",
            rows.take(DISTRIBUTION_ROWS).collect(),
            total,
        )?;
        let rows = self.port_classes.iter();
        let rows = rows.map(|row| (format!("{} {}", row.source, row.destination), row.share));
        let total = self.port_classes.len();
        shares(
            out,
            "port classes (source destination)",
            rows.take(DISTRIBUTION_ROWS).collect(),
            total,
        )?;
        let rows = self.protocols.iter();
        let rows = rows.map(|row| (row.protocol.clone(), row.share));
        shares(
            out,
            "protocols",
            rows.take(DISTRIBUTION_ROWS).collect(),
            self.protocols.len(),
        )
    }

    fn write_fields(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut table = Table::new(&[
            ("field", Side::Left),
            ("kind", Side::Left),
            ("any", Side::Right),
            ("exact", Side::Right),
            ("prefix", Side::Right),
            ("range", Side::Right),
            ("ternary", Side::Right),
            ("distinct", Side::Right),
        ]);
        let cell = |count: usize| match count {
            0 => paint(DIM, "-"),
            count => grouped(count),
        };
        for row in &self.fields {
            table.row(vec![
                row.field.clone(),
                row.kind.to_owned(),
                cell(row.any),
                cell(row.exact),
                cell(row.prefix),
                cell(row.range),
                cell(row.ternary),
                cell(row.distinct),
            ]);
        }
        table.write(out)?;
        writeln!(out)
    }
}

/// Writes shares with bars; `total` is the number of rows.
fn shares(
    out: &mut dyn Write,
    title: &str,
    rows: Vec<(String, f64)>,
    total: usize,
) -> io::Result<()> {
    if rows.is_empty() {
        return Ok(());
    }
    let mut table = Table::new(&[(title, Side::Left), ("share", Side::Right), ("", Side::Bar)]);
    let largest = rows.iter().map(|&(_, share)| share).fold(0.0, f64::max);
    let shown = rows.len();
    for (name, share) in rows {
        let width = if largest > 0.0 { share / largest } else { 0.0 };
        let bar = paint(BAR, &bar(width, BAR_WIDTH));
        table.row(vec![name, percent(share), bar]);
    }
    table.write(out)?;
    if total > shown {
        remark(out, &format!("and {} more", grouped(total - shown)))?;
    }
    writeln!(out)
}
