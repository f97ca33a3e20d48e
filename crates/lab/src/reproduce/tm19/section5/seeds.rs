//! [TM19] Figs. 14 and 15: throughput at the greatest size, seed by seed.
//!
//! [TM19]: classyard::papers#tm19

use classyard_report::chart::{Chart, Mark, Series};
use classyard_report::failure::Failure;

use super::cached_sheets::{self, Cached, VPP_TUPLE_MERGE, VPP_TUPLE_SPACE};
use super::columns::{Column, csv_rows};
use super::sheets::{Measured, largest, measured, short};
use super::{
    CONTENDERS, DEFAULT_RULE_TRAFFIC, FOREST, LINEAR_SEARCH, NO_RULES, OVS_TUPLE_MERGE,
    OVS_TUPLE_SPACE, SYNTHETIC_TRAFFIC, TUPLE_MERGE, TUPLE_SPACE, WORKLOADS,
};
use crate::bench::size_name;
use crate::reproduce::Study;
use crate::reproduce::claims::{Claim, Grid, Part, Section, Threshold};
use crate::reproduce::statistics::{coordinate, mean};

/// The contenders without caches in tables, and in pictures.
const IN_TABLES: [usize; 7] = [
    LINEAR_SEARCH,
    TUPLE_SPACE,
    TUPLE_MERGE,
    FOREST,
    OVS_TUPLE_SPACE,
    OVS_TUPLE_MERGE,
    NO_RULES,
];
const IN_PICTURES: [usize; 5] = [
    TUPLE_MERGE,
    TUPLE_SPACE,
    OVS_TUPLE_SPACE,
    OVS_TUPLE_MERGE,
    FOREST,
];

/// The marks of contenders in a picture, in their order.
const MARKS: [Mark; 5] = [
    Mark::Circle,
    Mark::Square,
    Mark::Triangle,
    Mark::Diamond,
    Mark::Cross,
];

/// The pictures with caches, by workload; the paper's figures.
const CACHED_PICTURES: [&str; 2] = ["pipeline-seeds-synthetic.svg", "pipeline-seeds-default.svg"];
const PLAIN_PICTURES: [&str; 2] = [
    "pipeline-seeds-synthetic-no-cache.svg",
    "pipeline-seeds-default-no-cache.svg",
];

/// The paper's figures, by workload.
const FIGURES: [&str; 2] = ["Fig. 15", "Fig. 14"];

/// Workloads in the order of the paper's figures.
const IN_ORDER: [usize; 2] = [DEFAULT_RULE_TRAFFIC, SYNTHETIC_TRAFFIC];

/// TupleMerge's rate divided by another contender's, by workload and profile.
struct Ratios {
    name: &'static str,
    by_workload: [Vec<f64>; 2],
}

/// The caption of the pictures with caches.
const PAPER_RATIOS: &str = "The paper states ratios, with caches (§V.E): VPP's TupleMerge is 12.63 \
                            times as fast as Open vSwitch with real traffic and 2.86 times with \
                            synthetic traffic. It is 31.20 and 45.86 times as fast as VPP's tuple \
                            space search.";

/// Draws the figures.
pub(in crate::reproduce) fn draw(study: &mut Study<'_>) -> Result<Section, Failure> {
    let size = largest(study);
    let plain = measured(study, vec![size])?;
    let cached = cached_sheets::measured(study, vec![size])?;
    let plain_columns = plain_columns(&plain);
    let cached_columns = cached_columns(&cached);
    let labels = plain.names.iter().map(|name| format!("{name},{size}"));
    let labels: Vec<String> = labels.collect();
    let mut rows = csv_rows(&labels, &plain_columns);
    rows.extend(csv_rows(&labels, &cached_columns));
    let heading = "profile,rules,workload,engine,cache,mpps";
    study.write_csv("pipeline-seeds.csv", heading, &rows)?;
    let mut pictures = Vec::new();
    for workload in IN_ORDER {
        let file = CACHED_PICTURES[workload];
        let what = format!("with caches ([TM19] {})", FIGURES[workload]);
        let columns: Vec<&Column> = cached_columns.iter().collect();
        study.caption(file, PAPER_RATIOS);
        picture(study, file, &what, (workload, size), &columns)?;
        pictures.push(file.to_owned());
    }
    for workload in IN_ORDER {
        let file = PLAIN_PICTURES[workload];
        let columns = IN_PICTURES.map(|contender| &plain_columns[contender]);
        picture(study, file, "without caches", (workload, size), &columns)?;
        pictures.push(file.to_owned());
    }
    let mut grids = Vec::new();
    for workload in IN_ORDER {
        let columns: Vec<&Column> = cached_columns.iter().collect();
        grids.push(grid(
            &cached_title(workload, size),
            &cached.names,
            workload,
            &columns,
            &cached_ratios(&cached),
        ));
    }
    for workload in IN_ORDER {
        let title = format!(
            "Without caches, {} traffic, {} rules: M packets/s",
            WORKLOADS[workload].0,
            size_name(size)
        );
        let columns = IN_TABLES.map(|contender| &plain_columns[contender]);
        let ratios = plain_ratios(&plain);
        let grid = grid(&title, &plain.names, workload, &columns, &ratios);
        grids.push(with_entries(grid, &plain));
    }
    Ok(Section {
        title: format!(
            "Seeds, at {} rules (Figs. 14 and 15, §V.E)",
            size_name(size)
        ),
        method: "As in Fig. 13, which has the differences from the paper and the details of Open \
                 vSwitch. The paper has dashed lines for means over seeds; they are the last row \
                 of the tables. A speed-up is the mean over profiles of ratios. If a seed has one \
                 rule set, the samples of its cases are turns: the contenders are interleaved."
            .to_owned(),
        claims: claims(&cached),
        grids,
        pictures,
    })
}

/// Returns the throughput of each contender without caches, in the order of [`CONTENDERS`].
fn plain_columns(measured: &Measured) -> Vec<Column> {
    let of = |workload: usize, contender: usize, number: usize| {
        let mean = measured.rates[workload].mean(contender, |at| at.0 == number);
        mean.unwrap_or(0.0)
    };
    let columns = CONTENDERS.iter().enumerate().map(|(contender, shown)| {
        let count = measured.names.len();
        Column::of(shown.label, "none", count, |workload, number| {
            of(workload, contender, number)
        })
    });
    columns.collect()
}

/// Returns the throughput of each contender with its cache.
fn cached_columns(measured: &cached_sheets::Measured) -> Vec<Column> {
    let columns = measured.shown().into_iter().map(|contender| {
        let count = measured.names.len();
        Column::of(
            contender.label(),
            contender.cache(),
            count,
            |workload, number| measured.rate_of((number, 0), workload, contender),
        )
    });
    columns.collect()
}

/// Returns TupleMerge's throughput divided by another contender's, without caches.
fn plain_ratios(measured: &Measured) -> Vec<Ratios> {
    let others = [("TM / TSS", TUPLE_SPACE), ("TM / OVS TSS", OVS_TUPLE_SPACE)];
    let ratios = others.map(|(name, other)| Ratios {
        name,
        by_workload: [0, 1].map(|workload| {
            let numbers = 0..measured.names.len();
            numbers
                .map(|number| measured.gain_of(workload, (TUPLE_MERGE, other), number, 0))
                .collect()
        }),
    });
    ratios.into()
}

/// Returns TupleMerge's throughput divided by another contender's, with caches.
fn cached_ratios(measured: &cached_sheets::Measured) -> Vec<Ratios> {
    let others = [
        ("TM / TSS", VPP_TUPLE_SPACE),
        ("TM / OVS", Cached::OpenVswitch),
    ];
    let shown = measured.shown();
    let others = others.into_iter();
    let others = others.filter(|(_, other)| shown.contains(other));
    let ratios = others.map(|(name, other)| Ratios {
        name,
        by_workload: [0, 1].map(|workload| {
            let numbers = 0..measured.names.len();
            numbers
                .map(|number| measured.mean_ratio((number, 0), workload, (VPP_TUPLE_MERGE, other)))
                .collect()
        }),
    });
    ratios.collect()
}

fn picture(
    study: &mut Study<'_>,
    file: &str,
    what: &str,
    (workload, size): (usize, usize),
    columns: &[&Column],
) -> Result<(), Failure> {
    let series = columns.iter().zip(MARKS).map(|(column, mark)| {
        let rates = column.rates[workload].iter().enumerate();
        let points = rates.map(|(number, &rate)| (coordinate(number), rate));
        Series::marked(&column.name, &column.name, mark, points)
    });
    let series: Vec<Series> = series.collect();
    let chart = Chart {
        title: &format!(
            "Throughput at {} rules, {} traffic, {what}",
            size_name(size),
            if workload == DEFAULT_RULE_TRAFFIC {
                "the default rule's"
            } else {
                "synthetic"
            }
        ),
        x_label: "profile",
        y_label: "million packets a second",
        log_x: false,
        log_y: true,
    };
    let names: Vec<String> = study
        .profiles
        .iter()
        .map(|(name, _)| name.clone())
        .collect();
    study.draw_groups(file, &chart, &names, &series)
}

/// Returns the title of the table of a paper's figure.
fn cached_title(workload: usize, size: usize) -> String {
    format!(
        "{}, {} traffic, {} rules: M packets/s with caches",
        FIGURES[workload],
        WORKLOADS[workload].0,
        size_name(size)
    )
}

fn grid(
    title: &str,
    names: &[String],
    workload: usize,
    columns: &[&Column],
    ratios: &[Ratios],
) -> Grid {
    let mut heading = vec!["profile".to_owned()];
    heading.extend(columns.iter().map(|column| column.name.clone()));
    heading.extend(ratios.iter().map(|ratios| ratios.name.to_owned()));
    let columns = columns.iter().map(|column| &column.rates[workload]);
    let ratios = ratios.iter().map(|ratios| &ratios.by_workload[workload]);
    let values: Vec<&Vec<f64>> = columns.chain(ratios).collect();
    let of_profiles = names.iter().enumerate().map(|(number, name)| {
        let mut row = vec![name.clone()];
        row.extend(values.iter().map(|values| short(values[number])));
        row
    });
    let mut rows: Vec<Vec<String>> = of_profiles.collect();
    let mut last = vec!["mean".to_owned()];
    last.extend(values.iter().map(|values| short(mean(values))));
    rows.push(last);
    Grid {
        title: title.to_owned(),
        columns: heading,
        words: 1,
        rows,
    }
}

/// Adds a column with the flow entries of each profile.
fn with_entries(mut grid: Grid, measured: &Measured) -> Grid {
    grid.columns.insert(1, "entries".to_owned());
    for (number, row) in grid.rows.iter_mut().enumerate() {
        let point = measured.points.iter().find(|(at, _)| at.0 == number);
        let entries = point.map(|(_, point)| point.flows[0].to_string());
        // The last row has the means.
        row.insert(1, entries.unwrap_or_default());
    }
    grid
}

/// The paper's number of rules.
const PAPER_RULES: usize = 64_000;

/// The paper's mean speed-ups over Open vSwitch and over VPP's tuple space search, by
/// workload: synthetic traffic and real traffic.
const SPEEDUPS_OVER_SWITCH: [f64; 2] = [2.86, 12.63];
const SPEEDUPS: [f64; 2] = [45.86, 31.2];

/// The seeds with which TupleMerge does not outperform Open vSwitch, by workload.
const EXCEPTIONS: [&str; 2] = ["fw2", "acl5"];

/// TupleMerge and another contender: their rates, and the other one's name.
type Compared = ((Cached, Cached), &'static str);

const OVER_SWITCH: Compared = ((VPP_TUPLE_MERGE, Cached::OpenVswitch), "Open vSwitch");
const OVER_TUPLE_SPACE: Compared = ((VPP_TUPLE_MERGE, VPP_TUPLE_SPACE), "tss");

fn claims(measured: &cached_sheets::Measured) -> Vec<Claim> {
    vec![
        every_seed(
            measured,
            "TupleMerge outperforms OVS's tuple space search on all seeds but ACL5 (real traffic) \
             and FW2 (synthetic), with caches.",
            OVER_SWITCH,
            EXCEPTIONS.map(Some),
        ),
        average(
            measured,
            "Over OVS's tuple space search the average speed-up is 12.63 for real traffic and \
             2.86 for synthetic traffic, with caches.",
            OVER_SWITCH,
            SPEEDUPS_OVER_SWITCH,
        ),
        every_seed(
            measured,
            "TupleMerge outperforms VPP's tuple space search on all seeds with both kinds of \
             traffic, with caches.",
            OVER_TUPLE_SPACE,
            [None; 2],
        ),
        average(
            measured,
            "Over VPP's tuple space search the average speed-up is 31.20 for real traffic and \
             45.86 for synthetic traffic, with caches.",
            OVER_TUPLE_SPACE,
            SPEEDUPS,
        ),
    ]
}

/// Returns the quantity of a comparison.
fn quantity(workload: usize, other: &str) -> String {
    format!(
        "packets a second at 64k with caches, TupleMerge / {other}, {} traffic",
        WORKLOADS[workload].0
    )
}

/// Returns the claim that TupleMerge is faster with every seed, except one by workload.
fn every_seed(
    measured: &cached_sheets::Measured,
    paper: &'static str,
    (pair, other): Compared,
    exceptions: [Option<&str>; 2],
) -> Claim {
    let mut claim = Claim::new("Figs. 14, 15", paper);
    for workload in IN_ORDER {
        let cases = measured.by_seed(workload, pair, PAPER_RULES, exceptions[workload]);
        claim = claim.part(
            Part::new(quantity(workload, other), Threshold::Above(1.0))
                .cases(cases)
                .picture(CACHED_PICTURES[workload]),
        );
    }
    claim
}

/// Returns the claim about the mean speed-up of TupleMerge.
fn average(
    measured: &cached_sheets::Measured,
    paper: &'static str,
    (pair, other): Compared,
    speedups: [f64; 2],
) -> Claim {
    let mut claim = Claim::new("Figs. 14, 15", paper);
    for workload in IN_ORDER {
        let speedup = speedups[workload];
        claim = claim.part(
            Part::new(
                quantity(workload, other),
                Threshold::Within(speedup * 0.5, speedup * 2.0),
            )
            .paper(speedup)
            .case(measured.at_size("", workload, pair, PAPER_RULES))
            .grid(FIGURES[workload], "mean"),
        );
    }
    claim
}

#[cfg(test)]
mod tests {
    use classyard_workload::generate::Profile;

    use super::*;

    const OPEN: &str = "not measured";

    fn words(
        sizes: &[usize],
        rates: impl Fn(usize, usize) -> ([f64; 2], Option<f64>),
    ) -> Vec<&'static str> {
        let measured =
            cached_sheets::Measured::of_rates(sizes, |workload, number, _| rates(workload, number));
        let claims = claims(&measured);
        claims.iter().map(|claim| claim.verdict().word()).collect()
    }

    /// Rates of `tuplemerge`, `tss` and Open vSwitch as in the paper.
    fn of_paper(workload: usize, number: usize) -> [f64; 3] {
        let is_exception = Profile::BUILT_IN[number] == EXCEPTIONS[workload];
        match workload {
            DEFAULT_RULE_TRAFFIC if is_exception => [3.0, 0.1, 3.5],
            DEFAULT_RULE_TRAFFIC => [3.0, 0.1, 0.25],
            _ if is_exception => [4.5, 0.1, 5.0],
            _ => [4.5, 0.1, 1.5],
        }
    }

    #[test]
    fn claims_hold_over_figures_like_the_papers() {
        let words = words(&[64_000], |workload, number| {
            let [tm, tss, switch] = of_paper(workload, number);
            ([tm, tss], Some(switch))
        });
        assert_eq!(words, ["holds"; 4]);
    }

    #[test]
    fn other_figures_do_not_bear_them_out() {
        let words = words(&[64_000], |_, number| match number {
            0 => ([4.0, 3.0], Some(3.0)),
            _ => ([4.0, 4.5], Some(5.0)),
        });
        assert_eq!(words, ["does not hold here"; 4]);
    }

    #[test]
    fn cases_without_a_measurement_are_open() {
        let without_switch = |sizes: &[usize]| {
            words(sizes, |workload, number| {
                let [tm, tss, _] = of_paper(workload, number);
                ([tm, tss], None)
            })
        };
        assert_eq!(without_switch(&[64_000]), [OPEN, OPEN, "holds", "holds"]);
        assert_eq!(without_switch(&[16_000]), [OPEN; 4]);
        let measured = cached_sheets::Measured::of_rates(&[64_000], |_, _, _| ([1.0, 1.0], None));
        let claims = claims(&measured);
        let (case, _) = claims[1].parts()[0].outcomes().next().unwrap();
        assert_eq!(case.text(), cached_sheets::NO_OPEN_VSWITCH.to_string());
    }
}
