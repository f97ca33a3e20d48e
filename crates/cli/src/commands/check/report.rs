//! The report of `check`.

use std::io::{self, Write};
use std::time::Duration;

use classyard::EngineSpec;
use classyard_conformance::Skip;
use classyard_conformance::collider::{CollisionReport, Counters};
use classyard_report::output::style::{BAD, BOLD, GOOD, NOTABLE, counted, grouped, paint, seconds};
use classyard_report::output::table::{Side, Table, fact};
use classyard_report::output::{Report, csv, join};
use serde::Serialize;

use super::Case;

/// The report of `check`. Keys are stable.
#[derive(Serialize)]
pub(super) struct CheckReport {
    equal: bool,
    engines: Vec<String>,
    seed: u64,
    updates: usize,
    cases: Vec<CaseReport>,
}

/// One set of rules and headers.
#[derive(Serialize)]
pub(super) struct CaseReport {
    name: String,
    schema: String,
    rules: usize,
    headers: usize,
    equal: bool,
    seconds: f64,
    engines: Vec<EngineReport>,
    compared: Compared,
    skipped: Vec<Skipped>,
    /// The first disagreement as text, if there was one.
    disagreement: Option<String>,
    /// The command that repeats this case.
    repeat: String,
}

#[derive(Serialize)]
struct EngineReport {
    engine: String,
    tables: usize,
    bytes: usize,
}

/// The number of comparisons, over all engines.
#[derive(Clone, Copy, Default, Serialize)]
struct Compared {
    batch_lookups: usize,
    single_lookups: usize,
    masked_lookups: usize,
    masks_proved: usize,
    expected_answers: usize,
    misses: usize,
    transactions: usize,
    changes: usize,
    reoptimisations: usize,
}

#[derive(Serialize)]
struct Skipped {
    engine: String,
    what: String,
    reason: String,
}

impl CheckReport {
    /// Creates a report without cases.
    pub(super) fn new(specs: &[EngineSpec], seed: u64, updates: usize) -> CheckReport {
        CheckReport {
            equal: true,
            engines: specs.iter().map(ToString::to_string).collect(),
            seed,
            updates,
            cases: Vec::new(),
        }
    }

    /// Adds a case. Returns true if all engines agreed in it.
    pub(super) fn push(&mut self, case: CaseReport) -> bool {
        let equal = case.equal;
        self.equal &= equal;
        self.cases.push(case);
        equal
    }

    /// True if all engines agreed in every case.
    pub(super) fn is_clean(&self) -> bool {
        self.equal
    }

    fn sum(&self) -> Compared {
        let cases = self.cases.iter();
        cases.fold(Compared::default(), |sum, case| sum.plus(&case.compared))
    }
}

impl CaseReport {
    /// Creates the report on a case, from comparing headers and, if there is a second
    /// report, from changing rules.
    pub(super) fn new(
        case: &Case,
        reports: &[CollisionReport],
        took: Duration,
        repeat: String,
    ) -> CaseReport {
        let engines = reports.iter().take(1).flat_map(|report| &report.engines);
        let engines = engines.map(|engine| EngineReport {
            engine: engine.subject.clone(),
            tables: engine.parts.iter().map(|part| part.tables).sum(),
            bytes: engine.parts.iter().map(classyard::Stats::bytes).sum(),
        });
        let mut collisions = reports
            .iter()
            .filter_map(|report| report.collision.as_ref());
        let compared = reports.iter().map(|report| Compared::new(&report.counters));
        let disagreement = collisions.next().map(ToString::to_string);
        CaseReport {
            name: case.name.clone(),
            schema: case.policy.name().to_owned(),
            rules: case.policy.len(),
            headers: case.trace.len(),
            equal: disagreement.is_none(),
            seconds: took.as_secs_f64(),
            engines: engines.collect(),
            compared: compared.fold(Compared::default(), |sum, report| sum.plus(&report)),
            skipped: reports
                .iter()
                .flat_map(|report| &report.skips)
                .map(Skipped::new)
                .collect(),
            disagreement,
            repeat,
        }
    }
}

impl Compared {
    fn new(counters: &Counters) -> Compared {
        Compared {
            batch_lookups: counters.batch_lookups,
            single_lookups: counters.single_lookups,
            masked_lookups: counters.masked_lookups,
            masks_proved: counters.proofs,
            expected_answers: counters.expected,
            misses: counters.misses,
            transactions: counters.transactions,
            changes: counters.changes,
            reoptimisations: counters.reoptimisations,
        }
    }

    fn plus(self, other: &Compared) -> Compared {
        Compared {
            batch_lookups: self.batch_lookups + other.batch_lookups,
            single_lookups: self.single_lookups + other.single_lookups,
            masked_lookups: self.masked_lookups + other.masked_lookups,
            masks_proved: self.masks_proved + other.masks_proved,
            expected_answers: self.expected_answers + other.expected_answers,
            misses: self.misses + other.misses,
            transactions: self.transactions + other.transactions,
            changes: self.changes + other.changes,
            reoptimisations: self.reoptimisations + other.reoptimisations,
        }
    }

    fn rows(&self) -> Vec<(&'static str, usize)> {
        let mut rows = vec![
            ("batch lookup", self.batch_lookups),
            ("single lookup", self.single_lookups),
            ("masked lookup", self.masked_lookups),
            ("mask proved against all rules", self.masks_proved),
            ("expected answer", self.expected_answers),
            ("change", self.changes),
            ("transaction", self.transactions),
            ("reoptimising", self.reoptimisations),
        ];
        rows.retain(|&(_, count)| count > 0);
        rows
    }
}

impl Skipped {
    fn new(skip: &Skip) -> Skipped {
        Skipped {
            engine: skip.subject.clone(),
            what: skip.what.clone(),
            reason: skip.reason.clone(),
        }
    }
}

impl Report for CheckReport {
    fn table(&self, out: &mut dyn Write) -> io::Result<()> {
        fact(out, "Engines", join(&self.engines, ", "))?;
        writeln!(out)?;
        let mut table = Table::new(&[
            ("rules and headers", Side::Left),
            ("rules", Side::Right),
            ("headers", Side::Right),
            ("tables", Side::Left),
            ("lookups", Side::Right),
            ("changes", Side::Right),
            ("time", Side::Right),
            ("answers", Side::Left),
        ]);
        for case in &self.cases {
            let compared = &case.compared;
            let lookups =
                compared.batch_lookups + compared.single_lookups + compared.masked_lookups;
            table.row(vec![
                case.name.clone(),
                grouped(case.rules),
                grouped(case.headers),
                join(case.engines.iter().map(|engine| engine.tables), "/"),
                grouped(lookups),
                grouped(compared.changes),
                seconds(case.seconds),
                if case.equal {
                    paint(GOOD, "equal")
                } else {
                    paint(BAD, "DIFFERENT")
                },
            ]);
        }
        table.write(out)?;
        writeln!(out)?;
        let compared = self.sum().rows();
        let compared = compared
            .iter()
            .map(|(noun, count)| match noun.split_once(' ') {
                Some(("mask", rest)) => format!("{} {rest}", counted(*count, "mask")),
                _ => counted(*count, noun),
            });
        fact(out, "Compared", join(compared, ", "))?;
        let skips: Vec<_> = self.cases.iter().flat_map(|case| &case.skipped).collect();
        if !skips.is_empty() {
            let text = format!(
                "{} (named on standard error)",
                counted(skips.len(), "comparison")
            );
            fact(out, "Left out", paint(NOTABLE, &text))?;
        }
        if self.equal {
            let verdict = format!(
                "{} in {}",
                paint(GOOD.bold(), "all engines agree"),
                counted(self.cases.len(), "case")
            );
            return fact(out, "Result", verdict);
        }
        fact(out, "Result", paint(BAD.bold(), "answers differ"))?;
        for case in self.cases.iter().filter(|case| !case.equal) {
            writeln!(out, "\n{}", paint(BOLD, &case.name))?;
            if let Some(text) = &case.disagreement {
                writeln!(out, "{}", text.trim_end())?;
            }
            writeln!(out, "\nto repeat: {}", case.repeat)?;
        }
        Ok(())
    }

    fn csv(&self, out: &mut csv::Writer<'_>) -> io::Result<()> {
        out.row(&[
            &"case",
            &"schema",
            &"rules",
            &"headers",
            &"equal",
            &"batch_lookups",
            &"single_lookups",
            &"masked_lookups",
            &"masks_proved",
            &"expected_answers",
            &"transactions",
            &"changes",
            &"reoptimisations",
            &"seconds",
        ])?;
        for case in &self.cases {
            let compared = &case.compared;
            out.row(&[
                &case.name,
                &case.schema,
                &case.rules,
                &case.headers,
                &case.equal,
                &compared.batch_lookups,
                &compared.single_lookups,
                &compared.masked_lookups,
                &compared.masks_proved,
                &compared.expected_answers,
                &compared.transactions,
                &compared.changes,
                &compared.reoptimisations,
                &case.seconds,
            ])?;
        }
        Ok(())
    }
}
