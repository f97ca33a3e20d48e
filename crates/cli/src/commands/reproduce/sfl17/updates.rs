//! [SFL17] Table II and Fig. 6: headers and changes in 10 seconds.
//!
//! [SFL17]: classyard::papers#sfl17

use super::cases::Kind;
use super::simulator::SAMPLES;
use super::{DYNAMIC, ROLES, RUN_SECONDS, RunPlan, STATIC, Study, buffered, wrong_answers};
use crate::chart::{Chart, Series};
use crate::commands::reproduce::claims::{Claim, Grid, Section, Verdict};
use crate::commands::reproduce::statistics::{Mean, coordinate};
use crate::failure::Failure;

/// Changes in 10 seconds.
const CHANGES: [usize; 4] = [10, 100, 300, 600];

/// The δ of this experiment.
const DELTA: usize = 20;

/// The changes of Fig. 6, and the engine whose forms are in it.
const FIGURE: (usize, &str) = (100, "rfc");

/// The least share of the time in which a reader should have its processor.
const SHARE: f64 = 0.9;

/// One cell of the table.
#[derive(Clone, Copy, Default)]
struct Cell {
    headers: Mean,
    changes: Mean,
    /// Changes that were issued in each run.
    issued: usize,
}

impl Cell {
    fn none_lost(self) -> bool {
        self.changes.mean >= coordinate(self.issued) - 1e-9
    }
}

/// Draws table and figure.
pub(in crate::commands::reproduce) fn draw(study: &mut Study<'_>) -> Result<Section, Failure> {
    let mut engines: Vec<String> = DYNAMIC.map(str::to_owned).to_vec();
    for inner in STATIC {
        engines.extend([inner.to_owned(), buffered(inner, DELTA)]);
    }
    study.expect_points(Kind::BOTH.len() * engines.len() * CHANGES.len() * study.sets());
    let mut section = Section {
        title: "Headers and changes in 10 seconds (Table II, Fig. 6)".to_owned(),
        method: format!(
            "{} rules at the beginning, {} rule sets for each cell, 90 % confidence intervals, \
             δ = {DELTA}. A run lasts {} s{}. {ROLES}",
            study.sizes(&[super::RULES])[0],
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
                        || *engine == buffered(FIGURE.1, DELTA);
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
        cells.push(of_kind);
    }
    let heading = "kind,engine,changes_in_10_s,set,headers,issued,made,reader_share";
    study.write_csv("updates.csv", heading, &rows)?;
    section.claims = claims(&engines, &cells, study.run_seconds());
    if least_share < SHARE {
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

/// Million headers a second in each interval of the counter.
fn trend(engine: &str, counted: &[u64], seconds: f64) -> Series {
    let width = seconds / f64::from(SAMPLES);
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

fn claims(engines: &[String], cells: &[Vec<Vec<Cell>>], seconds: f64) -> Vec<Claim> {
    let of = |kind: usize, engine: &str| -> &[Cell] {
        let place = engines.iter().position(|one| one == engine);
        &cells[kind][place.expect("one of the engines")]
    };
    let headline = |kind: usize| {
        let sfl = of(kind, &buffered("bit-vector", DELTA))[CHANGES.len() - 1];
        let tss = of(kind, "tss")[CHANGES.len() - 1];
        (sfl, sfl.headers.mean / tss.headers.mean)
    };
    let ratios = [headline(0), headline(1)];
    let tss = of(0, "tss")[CHANGES.len() - 1].headers.mean / seconds;
    let tenfold = ratios.iter().filter(|(_, ratio)| *ratio >= 10.0).count();
    let lossless = ratios.iter().filter(|(cell, _)| cell.none_lost()).count();
    let (mut equal, mut fewer) = (0, Vec::new());
    let (mut beats, mut beaten) = (0, Vec::new());
    let all = Kind::BOTH.len() * STATIC.len() * CHANGES.len();
    for (kind, name) in Kind::BOTH.iter().enumerate() {
        for inner in STATIC {
            let (sfl, plain) = (of(kind, &buffered(inner, DELTA)), of(kind, inner));
            for (index, changes) in CHANGES.iter().enumerate() {
                let label = format!("{inner} with {changes} {}", name.name());
                if sfl[index].changes.mean >= plain[index].changes.mean {
                    equal += 1;
                } else {
                    fewer.push(label.clone());
                }
                let others = ["linear", "tss", inner].map(|one| of(kind, one)[index]);
                let others = others.iter().map(|cell| cell.headers.mean);
                if sfl[index].headers.mean > others.fold(0.0, f64::max) {
                    beats += 1;
                } else {
                    beaten.push(label);
                }
            }
        }
    }
    let steady = |engine: &str| {
        let cells = of(0, engine);
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
            measured: format!("{equal} of {all} combinations"),
            verdict: Verdict::for_most(equal, all, &format!("fewer: {}", fewer.join(", "))),
        },
        Claim {
            place: "Table II",
            paper: "In most cases engines with an update buffer process more headers than the \
                    same engine without, linear search and tuple space search.",
            measured: format!("{beats} of {all} combinations"),
            verdict: match 2 * beats > all {
                true => Verdict::Holds,
                false => Verdict::for_most(beats, all, &format!("not: {}", beaten.join(", "))),
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
    ]
}
