//! The report of `classify`.

use std::io::{self, Write};

use classyard::{EngineSpec, Policy, PolicyClassifier};
use classyard_report::input::rules::LoadedRules;
use classyard_report::output::style::{
    self, BAR, BOLD, DIM, NOTABLE, action_style, bar, bytes, counted, grouped, large, paint,
    percent, seconds, three_digits,
};
use classyard_report::output::table::{Side, Table, fact, remark};
use classyard_report::output::{Report, csv, join};
use classyard_report::rule_view::RuleView;
use serde::Serialize;

use super::hits::Written;
use super::input_report::{InputReport, Named};
use super::logs_report::LogsReport;
use super::lookups::Rate;
use super::tally::{Count, Tally};

/// The width of the bars that show shares.
const BAR_WIDTH: u32 = 14;

/// The number of rules without a hit that a table names by default.
const NEVER_HIT_SHOWN: usize = 8;

/// The report of `classify`. Keys are stable: new ones may be added, existing ones
/// do not change.
#[derive(Serialize)]
pub(super) struct ClassifyReport {
    rules: RulesReport,
    input: InputReport,
    pub(super) engine: EngineReport,
    /// `None` for flow logs, whose report has the rate of rows.
    pub(super) rate: Option<Rate>,
    pub(super) seconds: Seconds,
    hits: Vec<Hit>,
    misses: Share,
    actions: Vec<ActionReport>,
    never_hit: NeverHit,
    /// The number of rules that were hit, whether or not `hits` lists them.
    rules_hit: usize,
    /// The packets that were copied to a capture file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) written: Option<Written>,
    /// The flow logs, if the headers come from some.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) logs: Option<LogsReport>,
    #[serde(skip)]
    list_all: bool,
}

#[derive(Serialize)]
struct RulesReport {
    source: String,
    embedded: bool,
    schema: String,
    count: usize,
    skipped: usize,
    parts: Vec<PartReport>,
}

#[derive(Serialize)]
struct PartReport {
    schema: String,
    rules: usize,
}

/// The engine and its build.
#[derive(Default, Serialize)]
pub(super) struct EngineReport {
    spec: String,
    /// True if the user named it, false for the default.
    asked_for: bool,
    summary: &'static str,
    tables: usize,
    rule_bytes: usize,
    index_bytes: usize,
    parts: Vec<EnginePart>,
}

#[derive(Serialize)]
struct EnginePart {
    schema: String,
    rules: usize,
    tables: usize,
    bytes: usize,
}

/// The duration of each stage.
#[derive(Default, Serialize)]
pub(super) struct Seconds {
    pub(super) read_rules: f64,
    pub(super) read_headers: f64,
    pub(super) build: f64,
    /// All timed passes together.
    pub(super) classify: f64,
}

#[derive(Serialize)]
struct Hit {
    #[serde(flatten)]
    rule: RuleView,
    #[serde(flatten)]
    share: Share,
}

#[derive(Clone, Copy, Serialize)]
struct Share {
    headers: u64,
    /// Bytes on the wire, if the headers come from packets.
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<u64>,
    /// The share of all headers.
    share: f64,
}

#[derive(Serialize)]
struct ActionReport {
    action: Option<String>,
    rules: u64,
    rules_hit: u64,
    #[serde(flatten)]
    share: Share,
}

#[derive(Serialize)]
struct NeverHit {
    count: usize,
    rules: Vec<usize>,
    #[serde(skip)]
    views: Vec<RuleView>,
}

impl ClassifyReport {
    /// Creates a report with the counts; engine, rate and seconds are added later.
    pub(super) fn new(
        rules: &LoadedRules,
        input: InputReport,
        tally: &Tally<'_>,
        top: usize,
        list_all: bool,
    ) -> ClassifyReport {
        let policy = &rules.policy;
        let with_bytes = input.packets.is_some();
        let share = |count: Count| Share::new(count, tally, with_bytes);
        let ranking = tally.ranking();
        let never_hit = tally.never_hit();
        ClassifyReport {
            rules: RulesReport::new(rules),
            input,
            engine: EngineReport::default(),
            rate: Some(Rate::default()),
            seconds: Seconds::default(),
            rules_hit: ranking.len(),
            hits: ranking
                .iter()
                .take(top)
                .map(|&at| Hit {
                    rule: RuleView::at(rules, at),
                    share: share(tally.rules[at]),
                })
                .collect(),
            misses: share(tally.misses),
            actions: tally
                .actions(policy)
                .into_iter()
                .map(|(action, tally)| ActionReport {
                    action,
                    rules: tally.rules,
                    rules_hit: tally.rules_hit,
                    share: share(tally.count),
                })
                .collect(),
            never_hit: NeverHit {
                count: never_hit.len(),
                views: never_hit
                    .iter()
                    .take(if list_all {
                        usize::MAX
                    } else {
                        NEVER_HIT_SHOWN
                    })
                    .map(|&at| RuleView::at(rules, at))
                    .collect(),
                rules: never_hit,
            },
            written: None,
            logs: None,
            list_all,
        }
    }
}

impl Share {
    #[allow(clippy::cast_precision_loss)] // a share is shown with one digit
    fn new(count: Count, tally: &Tally<'_>, packets: bool) -> Share {
        Share {
            headers: count.headers,
            bytes: packets.then_some(count.bytes),
            share: match tally.total.headers {
                0 => 0.0,
                total => count.headers as f64 / total as f64,
            },
        }
    }
}

impl RulesReport {
    fn new(rules: &LoadedRules) -> RulesReport {
        let parts = rules.policy.parts().iter().map(|part| PartReport {
            schema: part.schema().name().to_owned(),
            rules: part.len(),
        });
        RulesReport {
            source: rules.source.clone(),
            embedded: rules.embedded,
            schema: rules.policy.name().to_owned(),
            count: rules.policy.len(),
            skipped: rules.skipped,
            parts: parts.collect(),
        }
    }
}

impl EngineReport {
    /// Describes a built engine.
    pub(super) fn new(
        spec: &EngineSpec,
        asked_for: bool,
        policy: &Policy,
        classifier: &PolicyClassifier,
    ) -> EngineReport {
        let stats: Vec<_> = classifier.parts().iter().map(|part| part.stats()).collect();
        let parts = policy
            .schemas()
            .zip(&stats)
            .map(|(schema, stats)| EnginePart {
                schema: schema.name().to_owned(),
                rules: stats.rules,
                tables: stats.tables,
                bytes: stats.bytes(),
            });
        EngineReport {
            spec: spec.to_string(),
            asked_for,
            summary: spec.engine().summary,
            tables: stats.iter().map(|stats| stats.tables).sum(),
            rule_bytes: stats.iter().map(|stats| stats.rule_bytes).sum(),
            index_bytes: stats.iter().map(|stats| stats.index_bytes).sum(),
            parts: parts.collect(),
        }
    }
}

/// The counts of a capture so far, with the keys of [`ClassifyReport`].
#[derive(Serialize)]
struct Interim<'a> {
    /// Always true; the final report does not have this key.
    interim: bool,
    /// The time since reading began.
    seconds: f64,
    packets: u64,
    bytes: u64,
    headers: usize,
    rules_hit: usize,
    hits: &'a [Hit],
    misses: Share,
    actions: &'a [ActionReport],
}

impl ClassifyReport {
    /// Writes the counts `seconds` after reading began, as one line of JSON or for
    /// people.
    pub(super) fn interim(
        &self,
        seconds_so_far: f64,
        json: bool,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let input = &self.input;
        let (packets, length) = input
            .packets
            .as_ref()
            .map_or((0, 0), |p| (p.count, p.bytes));
        if json {
            let interim = Interim {
                interim: true,
                seconds: seconds_so_far,
                packets,
                bytes: length,
                headers: input.headers,
                rules_hit: self.rules_hit,
                hits: &self.hits,
                misses: self.misses,
                actions: &self.actions,
            };
            serde_json::to_writer(&mut *out, &interim)?;
            return out.write_all(b"\n");
        }
        let text = format!(
            "{}: {} ({}), {} of them classified",
            paint(BOLD, &seconds(seconds_so_far)),
            counted(packets, "packet"),
            bytes(usize::try_from(length).unwrap_or(usize::MAX)),
            grouped(input.headers)
        );
        fact(out, "After", text)?;
        writeln!(out)?;
        self.write_hits(out)?;
        self.write_actions(out)
    }
}

impl Report for ClassifyReport {
    fn table(&self, out: &mut dyn Write) -> io::Result<()> {
        self.write_facts(out)?;
        self.write_hits(out)?;
        self.write_actions(out)?;
        if let Some(logs) = &self.logs {
            logs.write_verdicts(out)?;
        }
        self.write_never_hit(out)
    }

    fn csv(&self, out: &mut csv::Writer<'_>) -> io::Result<()> {
        out.row(&[
            &"rule",
            &"id",
            &"name",
            &"action",
            &"priority",
            &"match",
            &"headers",
            &"bytes",
            &"share",
            &"line",
        ])?;
        for Hit { rule, share } in &self.hits {
            out.row(&[
                &rule.rule,
                &rule.id,
                &csv::optional(rule.name.as_ref()),
                &csv::optional(rule.action.as_ref()),
                &rule.priority,
                &rule.matches,
                &share.headers,
                &csv::optional(share.bytes.as_ref()),
                &format!("{:.6}", share.share),
                &csv::optional(rule.line.as_ref()),
            ])?;
        }
        Ok(())
    }
}

impl ClassifyReport {
    /// Returns the singular of `packets`, `rows` or `headers`: where the headers come from.
    fn noun(&self) -> &'static str {
        match (&self.input.packets, &self.logs) {
            (Some(_), _) => "packet",
            (None, Some(_)) => "row",
            (None, None) => "header",
        }
    }

    fn write_facts(&self, out: &mut dyn Write) -> io::Result<()> {
        let RulesReport {
            source,
            schema,
            count,
            parts,
            ..
        } = &self.rules;
        let mut text = format!(
            "{} of {schema} from {}",
            counted(*count, "rule"),
            paint(BOLD, source)
        );
        if self.rules.embedded {
            text.push_str(", the embedded example");
        }
        if parts.len() > 1 {
            let parts = parts
                .iter()
                .map(|part| format!("{} {}", grouped(part.rules), family(&part.schema)));
            text.push_str(&format!("\n{}", join(parts, ", ")));
            if self
                .rules
                .parts
                .iter()
                .map(|part| part.rules)
                .sum::<usize>()
                > *count
            {
                text.push_str("; some hold for both");
            }
        }
        fact(out, "Rules", text)?;
        self.write_input(out)?;

        let engine = &self.engine;
        let why = if engine.asked_for { "" } else { " by default" };
        let mut text = format!("{}{why}: {}", paint(BOLD, &engine.spec), engine.summary);
        text.push_str(&format!(
            "\n{} in {}, built in {}",
            counted(engine.tables, "table"),
            bytes(engine.rule_bytes + engine.index_bytes),
            seconds(self.seconds.build)
        ));
        fact(out, "Engine", text)?;

        if let Some(rate) = self.rate.as_ref().filter(|rate| rate.passes > 0) {
            let spread = &rate.headers_per_second;
            let threads = match rate.threads {
                1 => "one thread".to_owned(),
                count => format!("{count} threads, by elapsed time"),
            };
            let mut text = format!(
                "{} headers/s, {} ns per header\nmedian of {} ({} to {}) in batches of {}, {threads}",
                paint(BOLD, &large(spread.median)),
                three_digits(rate.nanoseconds_per_header),
                passes(rate.passes),
                large(spread.min),
                large(spread.max),
                rate.batch
            );
            if let Some(doubt) = &rate.doubt {
                let remark = format!("does not show what this processor can do: {doubt}");
                text.push_str(&format!("\n{}", paint(NOTABLE, &remark)));
            }
            fact(out, "Rate", text)?;
        }
        if let Some(Written { file, packets }) = &self.written {
            let text = format!("{} to {}", counted(*packets, "packet"), paint(BOLD, file));
            fact(out, "Written", text)?;
        }
        writeln!(out)
    }

    fn write_input(&self, out: &mut dyn Write) -> io::Result<()> {
        let input = &self.input;
        if let Some(logs) = &self.logs {
            return logs.write_facts(&input.source, out);
        }
        let Some(packets) = &input.packets else {
            let text = format!(
                "{} from {}",
                counted(input.headers, "header"),
                paint(BOLD, &input.source)
            );
            return fact(out, "Headers", text);
        };
        let mut text = format!(
            "{} ({}) from {}",
            counted(packets.count, "packet"),
            bytes(usize::try_from(packets.bytes).unwrap_or(usize::MAX)),
            paint(BOLD, &input.source)
        );
        if self.rules.embedded && input.source == classyard_report::embedded::CAPTURE_NAME {
            text.push_str(", the embedded example");
        }
        for rows in [&packets.kinds, &packets.transports, &packets.properties] {
            if !rows.is_empty() {
                text.push_str(&format!("\n{}", listed(rows)));
            }
        }
        if !packets.anomalies.is_empty() {
            let odd = format!("odd: {}", listed(&packets.anomalies));
            text.push_str(&format!("\n{}", paint(NOTABLE, &odd)));
        }
        if !packets.unknown_ethertypes.is_empty() {
            let types = packets.unknown_ethertypes.iter();
            let types = types.map(|one| format!("{} {}", grouped(one.packets), one.ethertype));
            text.push_str(&format!(
                "\nunknown Ethernet types: {}",
                style::listed(types)
            ));
        }
        fact(out, "Packets", text)?;
        let total = packets.count;
        let headers = grouped(input.headers);
        let unclassified = total - input.headers as u64;
        let text = match unclassified {
            0 if total == 1 => "the packet".to_owned(),
            0 => format!("all {headers} packets"),
            unclassified => format!(
                "{headers} of them; {} no header for these rules: {}",
                if unclassified == 1 {
                    "1 has".to_owned()
                } else {
                    format!("{} have", grouped(unclassified))
                },
                listed(&packets.without_header)
            ),
        };
        fact(out, "Classified", text)
    }

    fn write_hits(&self, out: &mut dyn Write) -> io::Result<()> {
        let with_bytes = self.misses.bytes.is_some();
        let with_names = self.hits.iter().any(|hit| hit.rule.name.is_some());
        let with_actions = self.hits.iter().any(|hit| hit.rule.action.is_some());
        let noun = format!("{}s", self.noun());
        let mut columns = vec![("rule", Side::Right), ("line", Side::Right)];
        if with_names {
            columns.push(("name", Side::Left));
        }
        if with_actions {
            columns.push(("action", Side::Left));
        }
        columns.push(("match", Side::Left));
        columns.push((&noun, Side::Right));
        columns.push(("share", Side::Right));
        columns.push(("", Side::Bar));
        if with_bytes {
            columns.push(("bytes", Side::Right));
        }
        let largest = self.hits.first().map_or(0.0, |hit| hit.share.share);
        let largest = largest.max(self.misses.share);
        let mut table = Table::new(&columns);
        for Hit { rule, share } in &self.hits {
            let mut row = vec![rule.rule.to_string(), rule.line_cell()];
            if with_names {
                row.push(rule.name.clone().unwrap_or_default());
            }
            if with_actions {
                let action = rule.action.as_deref().unwrap_or_default();
                row.push(paint(action_style(action), action));
            }
            row.push(rule.matches.clone());
            share.push_cells(&mut row, largest);
            table.row(row);
        }
        if self.misses.headers > 0 {
            let mut row = vec![paint(NOTABLE, "-"), String::new()];
            row.extend(with_names.then(String::new));
            row.extend(with_actions.then(String::new));
            row.push(paint(NOTABLE, "no rule matches"));
            self.misses.push_cells(&mut row, largest);
            table.row(row);
        }
        if !table.is_empty() {
            table.write(out)?;
        }
        let hidden = self.rules_hit - self.hits.len();
        if hidden > 0 {
            let text = format!(
                "and {} that {} hit less; --all lists them",
                counted(hidden, "more rule"),
                if hidden == 1 { "was" } else { "were" }
            );
            remark(out, &text)?;
        }
        writeln!(out)
    }

    fn write_actions(&self, out: &mut dyn Write) -> io::Result<()> {
        if self.actions.iter().all(|action| action.action.is_none()) {
            return Ok(());
        }
        let noun = format!("{}s", self.noun());
        let mut columns = vec![
            ("action", Side::Left),
            ("rules", Side::Right),
            ("hit", Side::Right),
            (noun.as_str(), Side::Right),
            ("share", Side::Right),
            ("", Side::Bar),
        ];
        if self.misses.bytes.is_some() {
            columns.push(("bytes", Side::Right));
        }
        let mut table = Table::new(&columns);
        let largest = self.actions.iter().map(|action| action.share.share);
        let largest = largest.fold(0.0, f64::max);
        for action in &self.actions {
            let name = action.action.as_deref().unwrap_or("(none)");
            let mut row = vec![
                paint(action_style(name), name),
                grouped(action.rules),
                grouped(action.rules_hit),
            ];
            action.share.push_cells(&mut row, largest);
            table.row(row);
        }
        table.write(out)?;
        writeln!(out)
    }

    fn write_never_hit(&self, out: &mut dyn Write) -> io::Result<()> {
        let NeverHit { count, views, .. } = &self.never_hit;
        if *count == 0 {
            return fact(out, "Never hit", "every rule was hit");
        }
        let summary = format!(
            "{} of {}",
            grouped(*count),
            counted(self.rules.count, "rule")
        );
        if self.list_all {
            fact(out, "Never hit", summary)?;
            let mut table = Table::new(&[
                ("rule", Side::Right),
                ("line", Side::Right),
                ("name", Side::Left),
                ("action", Side::Left),
                ("match", Side::Left),
            ]);
            for rule in views {
                let action = rule.action.as_deref().unwrap_or_default();
                table.row(vec![
                    rule.rule.to_string(),
                    rule.line_cell(),
                    rule.name.clone().unwrap_or_default(),
                    paint(action_style(action), action),
                    rule.matches.clone(),
                ]);
            }
            return table.write(out);
        }
        let shown = views
            .iter()
            .take(NEVER_HIT_SHOWN)
            .map(|rule| match &rule.name {
                Some(name) => format!("{} {name}", rule.rule),
                None => rule.rule.to_string(),
            });
        let list_hint = if *count > NEVER_HIT_SHOWN {
            paint(DIM, "; the first of them follow, --all lists all")
        } else {
            String::new()
        };
        let text = format!("{summary}{list_hint}\n{}", style::listed(shown));
        fact(out, "Never hit", text)
    }
}

impl Share {
    /// Appends the cells for number, share, bar and bytes.
    fn push_cells(&self, row: &mut Vec<String>, largest: f64) {
        row.push(grouped(self.headers));
        row.push(percent(self.share));
        let width = if largest > 0.0 {
            self.share / largest
        } else {
            0.0
        };
        row.push(paint(BAR, &bar(width, BAR_WIDTH)));
        if let Some(bytes) = self.bytes {
            row.push(grouped(bytes));
        }
    }
}

fn passes(count: usize) -> String {
    counted(count, "pass")
}

/// Joins counts with their names: `12 arp, 3 llc`.
fn listed(rows: &[Named]) -> String {
    let mut rows = rows.to_vec();
    rows.sort_by_key(|row| std::cmp::Reverse(row.packets));
    let rows = rows.iter();
    style::listed(rows.map(|row| format!("{} {}", grouped(row.packets), row.name)))
}

/// Returns the common name of a schema's headers.
fn family(schema: &str) -> &str {
    match schema {
        "ipv4-5tuple" => "IPv4",
        "ipv6-5tuple" => "IPv6",
        other => other,
    }
}
