//! [TM19] Table V: what a front-end cache brings. Pipelines have none so far, so this is
//! the part without.
//!
//! [TM19]: classyard::papers#tm19

use super::sheets::{Measured, measured, short, sizes};
use super::{REAL, SYNTHETIC, TM, TSS};
use crate::bench::size_name;
use crate::commands::reproduce::Study;
use crate::commands::reproduce::claims::{Claim, Grid, Section, Verdict};
use crate::failure::Failure;

/// The paper's sizes.
const SIZES: [usize; 7] = [1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 64_000];

/// The paper's rows: whose throughput, with which traffic, and how many times as high it
/// is with the cache.
const ROWS: [(&str, usize, usize, [f64; 7]); 4] = [
    (
        "tuplemerge, synthetic",
        TM,
        SYNTHETIC,
        [2.48, 2.01, 1.58, 1.22, 1.1, 0.98, 1.03],
    ),
    (
        "tuplemerge, default rule",
        TM,
        REAL,
        [0.96, 0.98, 0.97, 0.98, 0.98, 0.99, 0.99],
    ),
    (
        "tss, synthetic",
        TSS,
        SYNTHETIC,
        [21.07, 12.38, 8.19, 4.02, 2.45, 1.73, 1.97],
    ),
    (
        "tss, default rule",
        TSS,
        REAL,
        [1.08, 1.08, 1.07, 1.08, 1.08, 1.13, 1.11],
    ),
];

/// What is missing for the claims.
const MISSING: &str = "pipelines have no cache so far";

/// Makes the table.
pub(in crate::commands::reproduce) fn draw(study: &mut Study<'_>) -> Result<Section, Failure> {
    let sizes = sizes(study);
    let measured = measured(study, sizes)?;
    let known = SIZES
        .iter()
        .enumerate()
        .filter_map(|(column, &size)| Some((column, size, measured.place(size)?)));
    let known: Vec<(usize, usize, usize)> = known.collect();
    let mut rows = Vec::new();
    for (name, contender, workload, gains) in ROWS {
        for &(column, size, place) in &known {
            let rate = measured.rate(workload, contender, place);
            rows.push(format!("{name},{size},{rate:.4},,{}", gains[column]).replace(", ", " "));
        }
    }
    let heading = "row,rules,mpps_without_cache,mpps_with_cache,gain_in_paper";
    study.write_csv("pipeline-cache.csv", heading, &rows)?;
    Ok(Section {
        title: "Front-end cache (Table V, §V.D)".to_owned(),
        method: "Pipelines have no front-end cache so far. So this is the table's throughput \
                 without cache, what the gains of a cache will be measured against; the columns \
                 with a cache follow when there is one. The gains are the paper's."
            .to_owned(),
        claims: claims(),
        grids: vec![grid(&measured, &known)],
        pictures: Vec::new(),
    })
}

fn grid(measured: &Measured, known: &[(usize, usize, usize)]) -> Grid {
    let mut columns = vec!["".to_owned(), "".to_owned()];
    columns.extend(known.iter().map(|&(_, size, _)| size_name(size)));
    let mut rows = Vec::new();
    for (name, contender, workload, gains) in ROWS {
        let line = |what: &str, cell: &dyn Fn(usize, usize) -> String| {
            let mut row = vec![name.to_owned(), what.to_owned()];
            row.extend(known.iter().map(|&(column, _, place)| cell(column, place)));
            row
        };
        rows.push(line("M packets/s without cache", &|_, place| {
            short(measured.rate(workload, contender, place))
        }));
        rows.push(line("M packets/s with cache", &|_, _| "–".to_owned()));
        rows.push(line("gain in the paper", &|column, _| {
            gains[column].to_string()
        }));
    }
    Grid {
        title: "Throughput without cache, mean over rule sets, and the paper's gains".to_owned(),
        columns,
        words: 2,
        rows,
    }
}

fn claims() -> Vec<Claim> {
    let claim = |paper| Claim {
        place: "Table V",
        paper,
        measured: "the throughput without cache only".to_owned(),
        verdict: Verdict::NotMeasured(MISSING.to_owned()),
    };
    vec![
        claim(
            "The cache helps with synthetic traffic more than with real traffic, where it slows \
             TupleMerge down.",
        ),
        claim("The cache helps tuple space search more than TupleMerge: 7.4 and 1.49 times."),
        claim("The cache helps less the more rules there are."),
    ]
}
