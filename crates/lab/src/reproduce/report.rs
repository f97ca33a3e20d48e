//! The report on standard output: claims, tables and the run, as text, JSON or CSV.

use std::io::{self, Write};

use classyard_report::output::Report;
use classyard_report::output::csv::{Writer, optional};
use classyard_report::output::table::{Side, Table};
use classyard_report::run::Run;
use serde::Serialize;

use super::claims::{Claim, Figure, Grid, Part, Section, Source, Tally};
use super::inputs::{LeftOut, ReportedInput};
use super::request::Paper;

/// A finished reproduction.
#[derive(Serialize)]
pub(super) struct Reproduction<'a> {
    paper: &'static str,
    title: &'static str,
    run: &'a Run,
    machine: Vec<Fact<'a>>,
    /// Limits of the whole reproduction.
    remarks: &'a [String],
    inputs: &'a [ReportedInput],
    left_out: &'a [LeftOut],
    sections: Vec<ReportedSection<'a>>,
}

/// The limits of a reproduction, and its own inputs.
#[derive(Clone, Copy)]
pub(super) struct Remarks<'a> {
    pub(super) texts: &'a [String],
    pub(super) inputs: &'a [ReportedInput],
    /// Figures that cannot use the inputs.
    pub(super) left_out: &'a [LeftOut],
}

#[derive(Serialize)]
struct Fact<'a> {
    name: &'a str,
    value: &'a str,
}

#[derive(Serialize)]
struct ReportedSection<'a> {
    title: &'a str,
    method: &'a str,
    claims: Vec<ReportedClaim>,
    grids: &'a [Grid],
    pictures: &'a [String],
}

#[derive(Serialize)]
struct ReportedClaim {
    place: &'static str,
    claim: &'static str,
    verdict: &'static str,
    cases: Tally,
    parts: Vec<ReportedPart>,
}

#[derive(Serialize)]
struct ReportedPart {
    compared: String,
    paper: Option<f64>,
    threshold: String,
    cases: Vec<ReportedCase>,
    sources: Vec<Source>,
}

#[derive(Serialize)]
struct ReportedCase {
    name: String,
    low: Option<f64>,
    median: Option<f64>,
    high: Option<f64>,
    samples: usize,
    outcome: &'static str,
    /// The value with its interval as text, or the reason why there is none.
    measured: String,
}

impl<'a> Reproduction<'a> {
    /// Collects a report. `facts` has names and values of the machine and the run.
    pub(super) fn new(
        paper: &'static Paper,
        run: &'a Run,
        facts: &'a [(&'a str, String)],
        remarks: Remarks<'a>,
        sections: &'a [Section],
    ) -> Reproduction<'a> {
        let fact = |(name, value): &'a (&'a str, String)| Fact { name, value };
        Reproduction {
            paper: paper.name,
            title: paper.title,
            run,
            machine: facts.iter().map(fact).collect(),
            remarks: remarks.texts,
            inputs: remarks.inputs,
            left_out: remarks.left_out,
            sections: sections.iter().map(ReportedSection::of).collect(),
        }
    }

    fn claims(&self) -> impl Iterator<Item = &ReportedClaim> {
        self.sections.iter().flat_map(|section| &section.claims)
    }
}

impl<'a> ReportedSection<'a> {
    fn of(section: &'a Section) -> ReportedSection<'a> {
        ReportedSection {
            title: &section.title,
            method: &section.method,
            claims: section.claims.iter().map(ReportedClaim::of).collect(),
            grids: &section.grids,
            pictures: &section.pictures,
        }
    }
}

impl ReportedClaim {
    fn of(claim: &Claim) -> ReportedClaim {
        let verdict = claim.verdict();
        ReportedClaim {
            place: claim.place,
            claim: claim.paper,
            verdict: verdict.word(),
            cases: verdict.tally(),
            parts: claim.parts().iter().map(ReportedPart::of).collect(),
        }
    }
}

impl ReportedPart {
    fn of(part: &Part) -> ReportedPart {
        let cases = part.outcomes().map(|(case, outcome)| {
            let interval = case.interval();
            let value_at = |index: usize| interval.map(|(ends, _)| ends[index]);
            ReportedCase {
                name: case.name().to_owned(),
                low: value_at(0),
                median: value_at(1),
                high: value_at(2),
                samples: interval.map_or(0, |(_, samples)| samples),
                outcome: outcome.word(),
                measured: case.text(),
            }
        });
        ReportedPart {
            compared: part.compared().to_owned(),
            paper: part.paper_value(),
            threshold: part.threshold_text(),
            cases: cases.collect(),
            sources: part.sources().to_vec(),
        }
    }
}

impl Report for Reproduction<'_> {
    fn table(&self, out: &mut dyn Write) -> io::Result<()> {
        for section in &self.sections {
            writeln!(out, "{}\n", section.title)?;
            for grid in section.grids {
                write_grid(grid, out)?;
            }
        }
        for claim in self.claims() {
            let Tally {
                holding,
                failing,
                open,
            } = claim.cases;
            writeln!(out, "{}: {}", claim.place, claim.claim)?;
            writeln!(
                out,
                "  {} ({holding} hold, {failing} do not, {open} open)",
                claim.verdict
            )?;
            for part in &claim.parts {
                let paper = part.paper.map_or(String::new(), |paper| {
                    format!(", the paper {}", Figure(paper))
                });
                writeln!(out, "  {}: {}{paper}", part.compared, part.threshold)?;
                for case in &part.cases {
                    let name = match case.name.as_str() {
                        "" => String::new(),
                        name => format!("{name}: "),
                    };
                    writeln!(out, "    {name}{}, {}", case.measured, case.outcome)?;
                }
            }
            writeln!(out)?;
        }
        for input in self.inputs {
            writeln!(out, "own input: {}", input.text())?;
        }
        for one in self.left_out {
            writeln!(out, "left out: {}", one.text())?;
        }
        self.run.write(out)
    }

    fn csv(&self, out: &mut Writer<'_>) -> io::Result<()> {
        out.row(&[
            &"place",
            &"claim",
            &"verdict",
            &"compared",
            &"paper",
            &"threshold",
            &"case",
            &"low",
            &"median",
            &"high",
            &"samples",
            &"outcome",
        ])?;
        for claim in self.claims() {
            for part in &claim.parts {
                for case in &part.cases {
                    out.row(&[
                        &claim.place,
                        &claim.claim,
                        &claim.verdict,
                        &part.compared,
                        &optional(part.paper.as_ref()),
                        &part.threshold,
                        &case.name,
                        &optional(case.low.as_ref()),
                        &optional(case.median.as_ref()),
                        &optional(case.high.as_ref()),
                        &case.samples,
                        &case.outcome,
                    ])?;
                }
            }
        }
        Ok(())
    }
}

fn write_grid(grid: &Grid, out: &mut dyn Write) -> io::Result<()> {
    let columns = grid.columns.iter().enumerate();
    let columns: Vec<(&str, Side)> = columns
        .map(|(index, name)| match index < grid.words {
            true => (name.as_str(), Side::Left),
            false => (name.as_str(), Side::Right),
        })
        .collect();
    let mut table = Table::new(&columns);
    for row in &grid.rows {
        table.row(row.clone());
    }
    writeln!(out, "{}", grid.title)?;
    table.write(out)?;
    writeln!(out)
}
