//! [SFL17] Table II and Fig. 6: headers and changes in 10 seconds.
//!
//! [SFL17]: classyard::papers#sfl17

use classyard_report::chart::{Chart, Series};
use classyard_report::failure::Failure;

use super::cases::Kind;
use super::simulator::SAMPLE_COUNT;
use super::{DYNAMIC, ROLES, RUN_SECONDS, RunPlan, STATIC, Study, buffered, wrong_answers};
use crate::reproduce::claims::{Claim, Grid, Section, Verdict};
use crate::reproduce::statistics::{Mean, coordinate};

/// Changes in 10 seconds.
const CHANGES: [usize; 4] = [10, 100, 300, 600];

/// The δ of this experiment.
const EXPERIMENT_DELTA: usize = 20;

/// The changes of Fig. 6, and the engine whose forms it shows.
const FIGURE: (usize, &str) = (100, "rfc");

/// The paper's Table II: for each engine, in our order, the millions of headers and the
/// changes made, for insertions and then for deletions.
const PAPER: [(&str, [f64; 8], [f64; 8]); 8] = [
    (
        "linear",
        [1.3, 1.2, 1.0, 0.8, 1.3, 1.3, 1.2, 1.1],
        [10.0, 100.0, 299.7, 599.7, 10.0, 100.0, 299.9, 599.7],
    ),
    (
        "tss",
        [2.7, 2.4, 2.4, 2.3, 2.7, 2.6, 2.6, 2.7],
        [10.0, 100.0, 299.7, 557.2, 10.0, 100.0, 300.0, 567.4],
    ),
    (
        "hyper-split",
        [27.7, 4.5, 2.0, 1.9, 26.6, 3.9, 2.2, 2.3],
        [9.9, 75.6, 72.2, 81.1, 9.4, 72.9, 85.3, 85.0],
    ),
    (
        "sfl(hyper-split)",
        [35.0, 28.7, 19.0, 11.2, 32.1, 23.0, 18.5, 12.7],
        [10.0, 100.0, 273.9, 560.1, 10.0, 99.9, 300.0, 586.0],
    ),
    (
        "rfc",
        [50.6, 16.0, 5.5, 4.5, 47.3, 13.0, 5.7, 5.3],
        [8.3, 44.1, 75.8, 64.1, 8.2, 45.2, 77.8, 74.2],
    ),
    (
        "sfl(rfc)",
        [81.6, 43.6, 30.5, 21.8, 67.8, 29.8, 22.1, 17.5],
        [10.0, 75.7, 159.8, 288.2, 10.0, 72.9, 172.4, 288.6],
    ),
    (
        "bit-vector",
        [34.6, 17.8, 8.0, 5.4, 34.4, 17.8, 9.0, 7.1],
        [10.0, 100.0, 244.2, 264.3, 10.0, 100.0, 270.9, 324.9],
    ),
    (
        "sfl(bit-vector)",
        [32.4, 31.0, 27.9, 23.0, 30.7, 25.6, 24.0, 22.2],
        [10.0, 100.0, 299.7, 599.7, 10.0, 99.9, 299.9, 599.7],
    ),
];

/// The smallest acceptable share of its processor's time that a reader gets.
const MIN_READER_SHARE: f64 = 0.9;

/// One cell of the table.
#[derive(Clone, Copy, Default)]
struct Cell {
    headers: Mean,
    changes: Mean,
    /// Changes issued in each run.
    issued: usize,
}

impl Cell {
    fn none_lost(self) -> bool {
        self.changes.mean >= coordinate(self.issued) - 1e-9
    }
}

/// Draws the table and the figure.
pub(in crate::reproduce) fn draw(study: &mut Study<'_>) -> Result<Section, Failure> {
    let mut engines: Vec<String> = DYNAMIC.map(str::to_owned).to_vec();
    for inner in STATIC {
        engines.extend([inner.to_owned(), buffered(inner, EXPERIMENT_DELTA)]);
    }
    study.expect_points(Kind::BOTH.len() * engines.len() * CHANGES.len() * study.sets());
    let mut section = Section {
        title: "Headers and changes in 10 seconds (Table II, Fig. 6)".to_owned(),
        method: format!(
            "{} rules at the beginning, {} rule sets for each cell, 90 % confidence intervals, \
             δ = {EXPERIMENT_DELTA}. A run lasts {} s{}. {ROLES}",
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
                let (mut headers, mut made) = (Vec::new(), Vec::new());
                for set in 0..study.sets() {
                    let outcome = study.simulated(&RunPlan {
                        engine,
                        kind,
                        changes,
                        paper_seconds: RUN_SECONDS,
                        set,
                    })?;
                    wrong += outcome.wrong;
                    least_share = outcome.reader_share.min(least_share);
                    rows.push(format!(
                        "{},{engine},{changes},{set},{},{},{},{:.3}",
                        kind.name(),
                        outcome.headers,
                        study.issued(changes),
                        outcome.changes,
                        outcome.reader_share
                    ));
                    headers.push(millions(outcome.headers));
                    made.push(coordinate(outcome.changes));
                    let forms = [FIGURE.1, "tss"].contains(&engine.as_str())
                        || *engine == buffered(FIGURE.1, EXPERIMENT_DELTA);
                    if set == 0 && changes == FIGURE.0 && forms {
                        lines.push(trend(engine, &outcome.counted, study.run_seconds()));
                    }
                }
                of_engine.push(Cell {
                    headers: Mean::of(&headers),
                    changes: Mean::of(&made),
                    issued: study.issued(changes),
                });
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
        study.draw(&name, &chart, &lines)?;
        section.pictures.push(name);
        section.grids.push(grid(kind, &engines, &of_kind));
        section.grids.push(paper_grid(kind));
        cells.push(of_kind);
    }
    let heading = "kind,engine,changes_in_10_s,set,headers,issued,made,reader_share";
    study.write_csv("updates.csv", heading, &rows)?;
    section.claims = claims(&engines, &cells, study.run_seconds());
    if least_share < MIN_READER_SHARE {
        section.method.push_str(&format!(
            " In one run the reader had its processor only {:.0} % of the time: the machine was \
             busy with something else.",
            least_share * 100.0
        ));
    }
    wrong_answers(&mut section, wrong);
    Ok(section)
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

fn grid(kind: Kind, engines: &[String], cells: &[Vec<Cell>]) -> Grid {
    let mut columns = vec!["engine".to_owned(), String::new()];
    columns.extend(CHANGES.map(|changes| format!("{changes} in 10 s")));
    let mut rows = Vec::new();
    for (engine, cells) in engines.iter().zip(cells) {
        let mut row = vec![engine.clone(), "million headers".to_owned()];
        row.extend(cells.iter().map(|cell| format!("{:.2}", cell.headers)));
        rows.push(row);
        let mut row = vec![String::new(), "changes made".to_owned()];
        row.extend(cells.iter().map(|cell| format!("{:.1}", cell.changes)));
        rows.push(row);
    }
    Grid {
        title: format!("Continuous {}", kind.name()),
        columns,
        words: 2,
        rows,
    }
}

/// Returns the headers of SFL(RFC), RFC and tuple space search with the changes of Fig.
/// 6.
fn figure_headers<'a>(cells_of: impl Fn(usize, &str) -> &'a [Cell], kind: usize) -> [f64; 3] {
    let index = CHANGES.iter().position(|&changes| changes == FIGURE.0);
    let index = index.expect("one of the numbers of changes");
    let sfl = buffered(FIGURE.1, EXPERIMENT_DELTA);
    [sfl.as_str(), FIGURE.1, "tss"].map(|engine| cells_of(kind, engine)[index].headers.mean)
}

fn figure_rates<'a>(cells_of: impl Fn(usize, &str) -> &'a [Cell], kind: usize) -> String {
    let [sfl, rfc, tss] = figure_headers(cells_of, kind);
    format!("{sfl:.2}, {rfc:.2} and {tss:.2} million")
}

fn figure_first<'a>(cells_of: impl Fn(usize, &str) -> &'a [Cell], kind: usize) -> bool {
    let [sfl, rfc, tss] = figure_headers(cells_of, kind);
    sfl > rfc && sfl > tss
}

/// Returns the paper's values for one kind of changes.
fn paper_grid(kind: Kind) -> Grid {
    let first_column = match kind {
        Kind::Insert => 0,
        Kind::Delete => CHANGES.len(),
    };
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

fn claims(engines: &[String], cells: &[Vec<Vec<Cell>>], seconds: f64) -> Vec<Claim> {
    let cells_of = |kind: usize, engine: &str| -> &[Cell] {
        let index = engines.iter().position(|one| one == engine);
        &cells[kind][index.expect("one of the engines")]
    };
    let headline = |kind: usize| {
        let sfl = cells_of(kind, &buffered("bit-vector", EXPERIMENT_DELTA))[CHANGES.len() - 1];
        let tss = cells_of(kind, "tss")[CHANGES.len() - 1];
        (sfl, sfl.headers.mean / tss.headers.mean)
    };
    let ratios = [headline(0), headline(1)];
    let tss = cells_of(0, "tss")[CHANGES.len() - 1].headers.mean / seconds;
    let tenfold = ratios.iter().filter(|(_, ratio)| *ratio >= 10.0).count();
    let lossless = ratios.iter().filter(|(cell, _)| cell.none_lost()).count();
    let (mut equal, mut fewer) = (0, Vec::new());
    let (mut beats, mut beaten) = (0, Vec::new());
    let combinations = Kind::BOTH.len() * STATIC.len() * CHANGES.len();
    for (kind, name) in Kind::BOTH.iter().enumerate() {
        for inner in STATIC {
            let (sfl, plain) = (
                cells_of(kind, &buffered(inner, EXPERIMENT_DELTA)),
                cells_of(kind, inner),
            );
            for (index, changes) in CHANGES.iter().enumerate() {
                let label = format!("{inner} with {changes} {}", name.name());
                if sfl[index].changes.mean >= plain[index].changes.mean {
                    equal += 1;
                } else {
                    fewer.push(label.clone());
                }
                let other_headers = ["linear", "tss", inner].map(|one| cells_of(kind, one)[index]);
                let other_headers = other_headers.iter().map(|cell| cell.headers.mean);
                if sfl[index].headers.mean > other_headers.fold(0.0, f64::max) {
                    beats += 1;
                } else {
                    beaten.push(label);
                }
            }
        }
    }
    let steady = |engine: &str| {
        let cells = cells_of(0, engine);
        cells[CHANGES.len() - 1].headers.mean / cells[0].headers.mean
    };
    vec![
        Claim {
            place: "Table II",
            paper: "SFL(bit vector) makes as many changes as linear search and tuple space \
                    search, and processes more than ten times the headers of tuple space search.",
            measured: format!(
                "at 600 insertions {:.1} times the headers, at 600 deletions {:.1} times; {} of \
                 2 lost no change",
                ratios[0].1, ratios[1].1, lossless
            ),
            verdict: match (tenfold, lossless) {
                (2, 2) => Verdict::Holds,
                (_, 2) => Verdict::InPart(format!(
                    "no change is lost; our tuple space search classifies {tss:.2} million \
                     headers a second here, the paper's 0.23 to 0.27"
                )),
                _ => Verdict::Fails("changes were lost".to_owned()),
            },
        },
        Claim {
            place: "Table II",
            paper: "Engines with an update buffer make at least as many changes as without.",
            measured: format!("{equal} of {combinations} combinations"),
            verdict: Verdict::for_most(
                equal,
                combinations,
                &format!("fewer: {}", fewer.join(", ")),
            ),
        },
        Claim {
            place: "Table II",
            paper: "In most cases engines with an update buffer process more headers than the \
                    same engine without, linear search and tuple space search.",
            measured: format!("{beats} of {combinations} combinations"),
            verdict: match 2 * beats > combinations {
                true => Verdict::Holds,
                false => {
                    Verdict::for_most(beats, combinations, &format!("not: {}", beaten.join(", ")))
                }
            },
        },
        Claim {
            place: "Fig. 6",
            paper: "Tuple space search has a near-constant rate under changes; RFC that is built \
                    anew for each change does not.",
            measured: format!(
                "with 600 insertions instead of 10, tss keeps {:.0} % of its rate and rfc {:.0} %",
                steady("tss") * 100.0,
                steady("rfc") * 100.0
            ),
            verdict: Verdict::of(
                steady("tss") > 0.8 && steady("rfc") < steady("tss"),
                "the rates change otherwise",
            ),
        },
        Claim {
            place: "Fig. 6",
            paper: "With 100 changes, SFL(RFC) processes more headers than RFC and than tuple \
                    space search.",
            measured: format!(
                "insertions: {}; deletions: {}",
                figure_rates(cells_of, 0),
                figure_rates(cells_of, 1)
            ),
            verdict: Verdict::for_most(
                [0, 1]
                    .iter()
                    .filter(|&&kind| figure_first(cells_of, kind))
                    .count(),
                2,
                "not with both kinds of changes",
            ),
        },
        Claim {
            place: "Table II",
            paper: "SFL(HyperSplit) and SFL(RFC) make fewer changes than linear search and tuple \
                    space search, because every 21st one is expensive.",
            measured: format!(
                "at 600 in 10 s they make {} of those issued",
                [
                    (0, "hyper-split"),
                    (0, "rfc"),
                    (1, "hyper-split"),
                    (1, "rfc")
                ]
                .map(|(kind, inner)| {
                    let cell =
                        cells_of(kind, &buffered(inner, EXPERIMENT_DELTA))[CHANGES.len() - 1];
                    let share = cell.changes.mean / coordinate(cell.issued.max(1));
                    format!("{:.0} %", share * 100.0)
                })
                .join(", ")
            ),
            verdict: match ["hyper-split", "rfc"]
                .iter()
                .flat_map(|inner| {
                    [0, 1].map(|kind| cells_of(kind, &buffered(inner, EXPERIMENT_DELTA)))
                })
                .any(|cells| !cells[CHANGES.len() - 1].none_lost())
            {
                true => Verdict::Holds,
                false => Verdict::Fails(
                    "no change waits for a rebuild: sfl is rebuilt beside changes".to_owned(),
                ),
            },
        },
    ]
}
