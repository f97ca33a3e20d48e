//! [SFL17] Table II and Fig. 6: headers and changes in 10 seconds.
//!
//! [SFL17]: classyard::papers#sfl17

use classyard_report::chart::{Chart, Series};
use classyard_report::failure::Failure;

use super::cases::Kind;
use super::simulator::SAMPLE_COUNT;
use super::update_claims::{
    self, CHANGES, Cell, Cells, EXPERIMENT_DELTA, FIGURE, PAPER, paper_cell,
};
use super::{
    DYNAMIC, ROLES, RUN_SECONDS, RunPlan, STATIC, Study, buffered, published, wrong_answers,
};
use crate::reproduce::claims::{Claim, Grid, MIN_READER_SHARE, Section};
use crate::reproduce::paper_values::PaperValues;
use crate::reproduce::statistics::{Mean, coordinate};

/// Draws the table and the figure.
pub(in crate::reproduce) fn draw(study: &mut Study<'_>) -> Result<Section, Failure> {
    let engines = engines();
    study.expect_points(Kind::BOTH.len() * engines.len() * CHANGES.len() * study.sets());
    let mut section = Section {
        title: "Headers and changes in 10 seconds (Table II, Fig. 6)".to_owned(),
        method: format!(
            "{} rules at the beginning, {} rule sets for each cell, 90 % confidence intervals, \
             δ = {EXPERIMENT_DELTA}. A run lasts {} s{}. The published form (form=paper) keeps the \
             paper's algorithms to the letter, so a change that exceeds δ waits for a rebuild; our \
             form is rebuilt beside changes. {ROLES}",
            study.sizes(&[super::DEFAULT_RULES])[0],
            study.sets(),
            study.run_seconds(),
            study.shortened(RUN_SECONDS)
        ),
        claims: Vec::new(),
        grids: Vec::new(),
        pictures: Vec::new(),
    };
    // cells[kind][engine][changes]
    let mut cells: Vec<Vec<Vec<Cell>>> = Vec::new();
    let (mut rows, mut wrong, mut least_share) = (Vec::new(), 0, f64::INFINITY);
    for kind in Kind::BOTH {
        let mut lines = Vec::new();
        let mut of_kind = Vec::new();
        for engine in &engines {
            let mut of_engine = Vec::new();
            for changes in CHANGES {
                let mut cell = Cell {
                    reader_share: f64::INFINITY,
                    ..Cell::default()
                };
                for set in 0..study.sets() {
                    let outcome = study.simulated(&RunPlan {
                        engine,
                        kind,
                        changes,
                        paper_seconds: RUN_SECONDS,
                        set,
                    })?;
                    wrong += outcome.wrong;
                    cell.reader_share = outcome.reader_share.min(cell.reader_share);
                    rows.push(format!(
                        "{},{engine},{changes},{set},{},{},{},{},{:.3}",
                        kind.name(),
                        outcome.headers,
                        study.issued(changes),
                        outcome.changes,
                        outcome.rebuilds,
                        outcome.reader_share
                    ));
                    cell.headers.push(millions(outcome.headers));
                    cell.changes.push(coordinate(outcome.changes));
                    cell.rebuilds.push(outcome.rebuilds);
                    let forms = [FIGURE.1, "tss"].contains(&engine.as_str())
                        || *engine == buffered(FIGURE.1, EXPERIMENT_DELTA)
                        || *engine == published(FIGURE.1, EXPERIMENT_DELTA);
                    if set == 0 && changes == FIGURE.0 && forms {
                        lines.push(trend(engine, &outcome.counted, study.run_seconds()));
                    }
                }
                least_share = cell.reader_share.min(least_share);
                of_engine.push(cell);
            }
            of_kind.push(of_engine);
        }
        let title = format!(
            "Headers while {} {} are made in 10 s ([SFL17] Fig. 6)",
            FIGURE.0,
            kind.name()
        );
        let chart = Chart {
            title: &title,
            x_label: "seconds",
            y_label: "million headers a second",
            log_x: false,
            log_y: false,
        };
        let name = format!("throughput-{}.svg", kind.name());
        study.add_paper(&name, &paper_values(kind), &mut lines);
        study.draw(&name, &chart, &lines)?;
        section.pictures.push(name);
        section.grids.push(grid(kind, &engines, &of_kind));
        section.grids.push(paper_grid(kind));
        cells.push(of_kind);
    }
    let heading = "kind,engine,changes_in_10_s,set,headers,issued,made,rebuilds,\
                   reader_share";
    study.write_csv("updates.csv", heading, &rows)?;
    section.claims = update_claims::claims(&Cells { engines, cells });
    if least_share < MIN_READER_SHARE {
        section.method.push_str(&format!(
            " In one run the reader had its processor only {:.0} % of the time: the machine was \
             busy with something else. Comparisons with such runs are open.",
            least_share * 100.0
        ));
    }
    wrong_answers(&mut section, wrong);
    Ok(section)
}

/// Returns the engines of the table.
pub(super) fn engines() -> Vec<String> {
    let mut engines: Vec<String> = DYNAMIC.map(str::to_owned).to_vec();
    for inner in STATIC {
        engines.extend([
            inner.to_owned(),
            buffered(inner, EXPERIMENT_DELTA),
            published(inner, EXPERIMENT_DELTA),
        ]);
    }
    engines
}

/// Returns the claims without measurements, for a run with own inputs.
pub(super) fn unmeasured_claims() -> Vec<Claim> {
    let engines = engines();
    let of_engine = vec![Cell::default(); CHANGES.len()];
    let cells = vec![vec![of_engine; engines.len()]; Kind::BOTH.len()];
    update_claims::claims(&Cells { engines, cells })
}

#[allow(clippy::cast_precision_loss)] // far below 2^52
fn millions(headers: u64) -> f64 {
    headers as f64 / 1e6
}

/// Returns millions of headers a second in each interval of the counter.
fn trend(engine: &str, counted: &[u64], seconds: f64) -> Series {
    let width = seconds / f64::from(SAMPLE_COUNT);
    let mut before = 0;
    let points = counted.iter().enumerate().map(|(index, &count)| {
        let headers = count - before;
        before = count;
        (coordinate(index + 1) * width, millions(headers) / width)
    });
    Series::line(engine, points.collect::<Vec<_>>())
}

/// Returns the mean rates of the engines of Fig. 6.
pub(super) fn paper_values(kind: Kind) -> PaperValues {
    let (changes, inner) = FIGURE;
    let with_buffer = (format!("sfl({inner})"), published(inner, EXPERIMENT_DELTA));
    let plain = ["tss", inner].map(|engine| (engine.to_owned(), engine.to_owned()));
    let values = PaperValues::new("means over 10 s, from the numbers of headers in Table II");
    plain.iter().chain([&with_buffer]).fold(
        values.on(super::MACHINE),
        |values, (name, colour_key)| match paper_cell(name, kind, changes) {
            Some((headers, _)) => {
                let name = format!("{name}, mean");
                values.level(&name, colour_key, headers / RUN_SECONDS)
            }
            None => values,
        },
    )
}

fn grid(kind: Kind, engines: &[String], cells: &[Vec<Cell>]) -> Grid {
    let mut columns = vec!["engine".to_owned(), String::new()];
    columns.extend(CHANGES.map(|changes| format!("{changes} in 10 s")));
    let mut rows = Vec::new();
    for (engine, cells) in engines.iter().zip(cells) {
        let mut row = vec![engine.clone(), "million headers".to_owned()];
        row.extend((cells.iter()).map(|cell| format!("{:.2}", Mean::of(&cell.headers))));
        rows.push(row);
        let mut row = vec![String::new(), "changes made".to_owned()];
        row.extend((cells.iter()).map(|cell| format!("{:.1}", Mean::of(&cell.changes))));
        rows.push(row);
        let mut row = vec![String::new(), "fewest rebuilds of a run".to_owned()];
        let fewest = |cell: &Cell| cell.rebuilds.iter().min().copied().unwrap_or(0);
        row.extend(cells.iter().map(|cell| fewest(cell).to_string()));
        rows.push(row);
    }
    Grid {
        title: format!("Continuous {}", kind.name()),
        columns,
        words: 2,
        rows,
    }
}

/// Returns the paper's values for one kind of changes.
fn paper_grid(kind: Kind) -> Grid {
    let first_column = update_claims::first_column(kind);
    let mut columns = vec!["engine".to_owned(), String::new()];
    columns.extend(CHANGES.map(|changes| format!("{changes} in 10 s")));
    let mut rows = Vec::new();
    for (engine, headers, changes) in PAPER {
        for (first, what, values) in [
            (engine, "million headers", headers),
            ("", "changes made", changes),
        ] {
            let mut row = vec![first.to_owned(), what.to_owned()];
            let values = &values[first_column..first_column + CHANGES.len()];
            row.extend(values.iter().map(|value| format!("{value:.1}")));
            rows.push(row);
        }
    }
    Grid {
        title: format!("The paper's Table II, {}, runs of 10 s", kind.name()),
        columns,
        words: 2,
        rows,
    }
}
