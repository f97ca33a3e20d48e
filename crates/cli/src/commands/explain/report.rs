//! The report of `explain`.

use std::io::{self, Write};
use std::slice;
use std::sync::Arc;

use classyard::{EngineSpec, LookupTrace, Policy, RuleRef, Schema};
use classyard_report::input::rules::LoadedRules;
use classyard_report::output::style::{
    BOLD, DIM, GOOD, NOTABLE, action_style, counted, grouped, paint,
};
use classyard_report::output::table::{Side, Table, fact, heading, remark};
use classyard_report::output::{Report, csv, join};
use classyard_report::rule_view::RuleView;
use serde::Serialize;

use super::fields::{Compared, MaskField, compare, mask_fields, mask_words, masked_value, refused};
use super::findings::Findings;
use crate::commands::named_rules::named_short;

/// The number of compared rules that a table names one by one.
const COMPARED_SHOWN: usize = 6;

/// The number of matching rules in a table; JSON has all.
const MATCHES_SHOWN: usize = 30;

/// The report of `explain`. Keys are stable.
#[derive(Serialize)]
pub(super) struct ExplainReport {
    rules: RulesReport,
    header: HeaderReport,
    winner: Option<RuleView>,
    /// The fields that the winner constrains.
    pub(super) decided: Vec<Compared>,
    /// Every matching rule, best first; the first is the winner.
    matches: Vec<RuleView>,
    /// Findings of `lint` about the winner, and about matching rules that decide no packet.
    pub(super) findings: Findings,
    /// Better rules that almost matched.
    near: Vec<Near>,
    lookup: LookupReport,
    depends_on: DependsOn,
}

#[derive(Serialize)]
struct RulesReport {
    source: String,
    embedded: bool,
    schema: String,
    count: usize,
}

/// The header and its source.
#[derive(Serialize)]
pub(super) struct HeaderReport {
    schema: String,
    source: String,
    fields: Vec<HeaderField>,
}

#[derive(Serialize)]
struct HeaderField {
    field: String,
    value: String,
}

#[derive(Serialize)]
struct Near {
    #[serde(flatten)]
    rule: RuleView,
    refused: Vec<Compared>,
}

#[derive(Default, Serialize)]
struct LookupReport {
    engine: String,
    tables: usize,
    tables_looked_at: usize,
    /// True if the search skipped later tables because they cannot hold a better
    /// rule.
    stopped_early: bool,
    rules_compared: usize,
    probes: Vec<ProbeReport>,
}

#[derive(Serialize)]
struct ProbeReport {
    table: usize,
    mask: Vec<MaskField>,
    rules: usize,
    /// The compared rules' numbers in file order.
    compared: Vec<usize>,
    /// The number of the best matching rule.
    found: Option<usize>,
}

#[derive(Default, Serialize)]
struct DependsOn {
    bits: u32,
    of: u32,
    fields: Vec<DependsField>,
}

#[derive(Serialize)]
struct DependsField {
    field: String,
    /// The values that get the same answer, if other fields are unchanged.
    values: String,
    bits: u32,
    width: u32,
}

impl HeaderReport {
    /// Describes a header of a schema.
    pub(super) fn new(schema: &Schema, values: &[u128], source: String) -> HeaderReport {
        let fields = schema.fields().iter().zip(values);
        HeaderReport {
            schema: schema.name().to_owned(),
            source,
            fields: fields
                .map(|(field, &value)| HeaderField {
                    field: field.name().to_owned(),
                    value: field.format().display(value).to_string(),
                })
                .collect(),
        }
    }
}

impl ExplainReport {
    /// Creates a report on a header; the other parts are added later.
    pub(super) fn new(rules: &LoadedRules, header: HeaderReport) -> ExplainReport {
        ExplainReport {
            rules: RulesReport {
                source: rules.source.clone(),
                embedded: rules.embedded,
                schema: rules.policy.name().to_owned(),
                count: rules.policy.len(),
            },
            header,
            winner: None,
            decided: Vec::new(),
            matches: Vec::new(),
            findings: Findings::default(),
            near: Vec::new(),
            lookup: LookupReport::default(),
            depends_on: DependsOn::default(),
        }
    }

    /// Sets the matching rules, best first.
    pub(super) fn set_matches(&mut self, rules: &LoadedRules, matching: &[RuleRef<'_>]) {
        let views = matching.iter().map(|rule| RuleView::of(rules, rule.id()));
        self.matches = views.flatten().collect();
        self.winner = self.matches.first().cloned();
    }

    /// Sets the better rules that almost matched, nearest first.
    pub(super) fn set_near(&mut self, rules: &LoadedRules, near: &[RuleRef<'_>], header: &[u128]) {
        let near_rules = near.iter().filter_map(|rule| {
            let refused = refused(rule, header).into_iter();
            Some(Near {
                rule: RuleView::of(rules, rule.id())?,
                refused: refused.map(|id| compare(rule, id, header)).collect(),
            })
        });
        self.near = near_rules.collect();
    }

    /// Sets the engine's lookup steps.
    pub(super) fn set_lookup(
        &mut self,
        policy: &Policy,
        spec: &EngineSpec,
        lookup: &LookupTrace,
        schema: &Schema,
    ) {
        let probes = lookup.probes.iter().map(|probe| ProbeReport {
            table: probe.table,
            mask: mask_fields(schema, &probe.mask),
            rules: probe.rules,
            compared: probe
                .compared
                .iter()
                .filter_map(|&id| policy.position(id))
                .collect(),
            found: probe.winner.rule().and_then(|id| policy.position(id)),
        });
        self.lookup = LookupReport {
            engine: spec.to_string(),
            tables: lookup.tables,
            tables_looked_at: lookup.probes.len(),
            stopped_early: lookup.probes.len() < lookup.tables,
            rules_compared: lookup.probes.iter().map(|probe| probe.compared.len()).sum(),
            probes: probes.collect(),
        };
    }

    /// Sets the bits that the answer depends on.
    pub(super) fn set_mask(&mut self, schema: &Arc<Schema>, key: &[u64], mask: &[u64]) {
        let fields = schema.field_ids().map(|id| {
            let field = schema.field(id);
            let bits = schema.placement(id).get(mask);
            DependsField {
                field: field.name().to_owned(),
                values: masked_value(field, schema.placement(id).get(key), bits),
                bits: bits.count_ones(),
                width: field.width(),
            }
        });
        self.depends_on = DependsOn {
            bits: mask.iter().map(|word| word.count_ones()).sum(),
            of: schema.total_bits(),
            fields: fields.collect(),
        };
    }
}

impl Report for ExplainReport {
    fn table(&self, out: &mut dyn Write) -> io::Result<()> {
        self.write_facts(out)?;
        self.write_decided(out)?;
        self.write_matches(out)?;
        self.write_findings(out)?;
        self.write_near(out)?;
        self.write_lookup(out)?;
        self.write_mask(out)
    }

    fn csv(&self, out: &mut csv::Writer<'_>) -> io::Result<()> {
        out.row(&[
            &"rule",
            &"id",
            &"name",
            &"action",
            &"priority",
            &"match",
            &"line",
        ])?;
        for rule in &self.matches {
            out.row(&[
                &rule.rule,
                &rule.id,
                &csv::optional(rule.name.as_ref()),
                &csv::optional(rule.action.as_ref()),
                &rule.priority,
                &rule.matches,
                &csv::optional(rule.line.as_ref()),
            ])?;
        }
        Ok(())
    }
}

impl ExplainReport {
    fn write_facts(&self, out: &mut dyn Write) -> io::Result<()> {
        let fields = self.header.fields.iter();
        let fields = fields.map(|field| format!("{}={}", field.field, paint(BOLD, &field.value)));
        let header = format!(
            "{}\nof {}, from {}",
            join(fields, " "),
            self.header.schema,
            self.header.source
        );
        fact(out, "Header", header)?;
        let embedded = if self.rules.embedded {
            ", the embedded example"
        } else {
            ""
        };
        let rules = format!(
            "{} of {} from {}{embedded}",
            counted(self.rules.count, "rule"),
            self.rules.schema,
            paint(BOLD, &self.rules.source)
        );
        fact(out, "Rules", rules)?;
        let winner = match &self.winner {
            None => paint(NOTABLE, "none: no rule matches"),
            Some(rule) => {
                let name = rule.name.as_deref().map(|name| format!(" {name}"));
                let title = format!("rule {}{}", rule.rule, name.unwrap_or_default());
                let action = rule.action.as_deref().unwrap_or_default();
                let action = match action {
                    "" => String::new(),
                    action => format!(": {}", paint(action_style(action), action)),
                };
                let line = rule.line.map(|line| format!(", line {line}"));
                let line = line.unwrap_or_default();
                format!("{}{line}{action}", paint(GOOD.bold(), &title))
            }
        };
        fact(out, "Winner", winner)?;
        let statement = self
            .winner
            .as_ref()
            .and_then(|rule| rule.statement.as_ref());
        if let Some(statement) = statement {
            fact(out, "Statement", statement.clone())?;
        }
        writeln!(out)
    }

    fn write_decided(&self, out: &mut dyn Write) -> io::Result<()> {
        if self.winner.is_none() {
            return Ok(());
        }
        heading(out, "Why it matches")?;
        if self.decided.is_empty() {
            remark(out, "it demands nothing: it matches every header")?;
            return writeln!(out);
        }
        let mut table = Table::new(&[
            ("field", Side::Left),
            ("header", Side::Left),
            ("rule wants", Side::Left),
        ]);
        for Compared {
            field,
            value,
            wanted,
            ..
        } in &self.decided
        {
            table.row(vec![field.clone(), value.clone(), wanted.clone()]);
        }
        table.write(out)?;
        let free = self.header.fields.iter().map(|field| field.field.as_str());
        let free = free.filter(|name| self.decided.iter().all(|d| d.field != *name));
        let free = join(free, ", ");
        if !free.is_empty() {
            remark(out, &format!("any value will do: {free}"))?;
        }
        writeln!(out)
    }

    fn write_matches(&self, out: &mut dyn Write) -> io::Result<()> {
        if self.matches.is_empty() {
            return Ok(());
        }
        heading(
            out,
            &format!("Matching rules, best first: {}", self.matches.len()),
        )?;
        let mut table = Table::new(&[
            ("", Side::Left),
            ("rule", Side::Right),
            ("line", Side::Right),
            ("name", Side::Left),
            ("action", Side::Left),
            ("priority", Side::Right),
            ("match", Side::Left),
        ]);
        for (index, rule) in self.matches.iter().take(MATCHES_SHOWN).enumerate() {
            let action = rule.action.as_deref().unwrap_or_default();
            table.row(vec![
                if index == 0 {
                    paint(GOOD, "wins")
                } else {
                    String::new()
                },
                rule.rule.to_string(),
                rule.line_cell(),
                rule.name.clone().unwrap_or_default(),
                paint(action_style(action), action),
                rule.priority.to_string(),
                rule.matches.clone(),
            ]);
        }
        table.write(out)?;
        if self.matches.len() > MATCHES_SHOWN {
            let hidden = counted(self.matches.len() - MATCHES_SHOWN, "more rule");
            remark(out, &format!("and {hidden}"))?;
        }
        writeln!(out)
    }

    fn write_findings(&self, out: &mut dyn Write) -> io::Result<()> {
        let Findings { found, undecided } = &self.findings;
        if found.is_empty() && undecided.is_empty() {
            return Ok(());
        }
        heading(out, "Findings of lint about these rules")?;
        for row in found.iter().take(MATCHES_SHOWN) {
            let rule = named_short(row.about.rule().map_or(&[], slice::from_ref));
            let label = row.finding.label;
            writeln!(
                out,
                "  {rule} is {}: {}",
                paint(NOTABLE, label),
                row.sentence()
            )?;
        }
        if !undecided.is_empty() {
            let rules = counted(undecided.len(), "rule");
            let lint = "classyard lint examines all rules";
            remark(out, &format!("{rules} undecided, to save time; {lint}"))?;
        }
        writeln!(out)
    }

    fn write_near(&self, out: &mut dyn Write) -> io::Result<()> {
        if self.near.is_empty() {
            return Ok(());
        }
        heading(out, "Better rules that came closest")?;
        let mut table = Table::new(&[
            ("rule", Side::Right),
            ("line", Side::Right),
            ("name", Side::Left),
            ("action", Side::Left),
            ("refused by", Side::Left),
        ]);
        for Near { rule, refused } in &self.near {
            let action = rule.action.as_deref().unwrap_or_default();
            let refused = refused
                .iter()
                .map(|field| format!("{} {} is not {}", field.field, field.value, field.wanted));
            table.row(vec![
                rule.rule.to_string(),
                rule.line_cell(),
                rule.name.clone().unwrap_or_default(),
                paint(action_style(action), action),
                join(refused, "; "),
            ]);
        }
        table.write(out)?;
        writeln!(out)
    }

    fn write_lookup(&self, out: &mut dyn Write) -> io::Result<()> {
        let LookupReport {
            engine,
            tables,
            tables_looked_at: looked_at,
            stopped_early,
            rules_compared,
            probes,
        } = &self.lookup;
        heading(
            out,
            &format!(
                "How {engine} found it: {looked_at} of {} looked at, {} compared",
                counted(*tables, "table"),
                counted(*rules_compared, "rule")
            ),
        )?;
        let mut table = Table::new(&[
            ("table", Side::Right),
            ("hashed bits", Side::Left),
            ("rules", Side::Right),
            ("compared", Side::Left),
            ("found", Side::Left),
        ]);
        for probe in probes {
            let shown = probe.compared.iter().take(COMPARED_SHOWN);
            let mut compared = join(shown, ", ");
            if probe.compared.len() > COMPARED_SHOWN {
                compared.push_str(&format!(
                    ", and {} more",
                    probe.compared.len() - COMPARED_SHOWN
                ));
            }
            let mask = match mask_words(&probe.mask) {
                none if none.is_empty() => paint(DIM, "none: every rule is compared"),
                mask => mask,
            };
            table.row(vec![
                probe.table.to_string(),
                mask,
                grouped(probe.rules),
                compared,
                match probe.found {
                    Some(rule) => paint(GOOD, &format!("rule {rule}")),
                    None => paint(DIM, "nothing"),
                },
            ]);
        }
        if !table.is_empty() {
            table.write(out)?;
        }
        if *stopped_early {
            let other_tables = counted(tables - looked_at, "other table");
            remark(
                out,
                &format!("the search stopped: no rule of the {other_tables} can be better"),
            )?;
        }
        writeln!(out)
    }

    fn write_mask(&self, out: &mut dyn Write) -> io::Result<()> {
        let DependsOn { bits, of, fields } = &self.depends_on;
        heading(
            out,
            &format!("The answer depends on {bits} of {}", counted(*of, "bit")),
        )?;
        let mut table = Table::new(&[
            ("field", Side::Left),
            ("same answer for", Side::Left),
            ("bits", Side::Right),
        ]);
        for field in fields {
            table.row(vec![
                field.field.clone(),
                field.values.clone(),
                format!("{} of {}", field.bits, field.width),
            ]);
        }
        table.write(out)
    }
}
