//! [TM19] Table V: the gain of a front-end cache.
//!
//! [TM19]: classyard::papers#tm19

use classyard_report::chart::{Chart, Mark, Series};
use classyard_report::failure::Failure;

use super::cached::{Front, LEARNING_PASSES, LEARNING_SECONDS, Point, SHORT_LEARNING_SECONDS};
use super::cached_sheets::{
    Cached, Measured, NO_CACHE, OUR_CACHE, PAPER_CACHE, SIZES, engine, gain, measured, sizes,
};
use super::sheets::short;
use super::{
    CONTENDERS, DEFAULT_RULE_TRAFFIC, FOREST, SYNTHETIC_TRAFFIC, TUPLE_MERGE, TUPLE_SPACE,
    WORKLOADS,
};
use crate::bench::size_name;
use crate::reproduce::Study;
use crate::reproduce::claims::{Case, Claim, Gap, Grid, Part, Section, Threshold};
use crate::reproduce::paper_values::PaperValues;
use crate::reproduce::statistics::{coordinate, mean};

/// The table's rows: a contender, its traffic, and the paper's ratios of throughput with
/// the cache to throughput without, at [`SIZES`].
const ROWS: [(usize, usize, Option<[f64; 7]>); 6] = [
    (
        TUPLE_MERGE,
        SYNTHETIC_TRAFFIC,
        Some([2.48, 2.01, 1.58, 1.22, 1.1, 0.98, 1.03]),
    ),
    (
        TUPLE_MERGE,
        DEFAULT_RULE_TRAFFIC,
        Some([0.96, 0.98, 0.97, 0.98, 0.98, 0.99, 0.99]),
    ),
    (
        TUPLE_SPACE,
        SYNTHETIC_TRAFFIC,
        Some([21.07, 12.38, 8.19, 4.02, 2.45, 1.73, 1.97]),
    ),
    (
        TUPLE_SPACE,
        DEFAULT_RULE_TRAFFIC,
        Some([1.08, 1.08, 1.07, 1.08, 1.08, 1.13, 1.11]),
    ),
    (FOREST, SYNTHETIC_TRAFFIC, None),
    (FOREST, DEFAULT_RULE_TRAFFIC, None),
];

/// Marks of measured gains, by workload.
const MEASURED_MARKS: [Mark; 2] = [Mark::Circle, Mark::Triangle];

fn row_name(contender: usize, workload: usize) -> String {
    format!(
        "{}, {}",
        CONTENDERS[contender].engine, WORKLOADS[workload].0
    )
}

/// Returns the paper's gain at a number of rules, if it has one.
fn of_paper(gains: Option<[f64; 7]>, size: usize) -> Option<f64> {
    let column = SIZES.iter().position(|&other| other == size)?;
    gains.map(|gains| gains[column])
}

/// Returns the curves of Table V.
pub(super) fn paper_values() -> PaperValues {
    let mut values = PaperValues::new("stated in Table V").on(super::MACHINE);
    for (contender, workload, gains) in ROWS {
        if let Some(gains) = gains {
            let name = row_name(contender, workload);
            let points = SIZES.iter().zip(gains);
            let points = points.map(|(&size, gain)| (coordinate(size), gain));
            values = values
                .curve(&name, CONTENDERS[contender].engine, points)
                .marked(MEASURED_MARKS[workload]);
        }
    }
    values
}

/// Creates the table and its pictures.
pub(in crate::reproduce) fn draw(study: &mut Study<'_>) -> Result<Section, Failure> {
    let sizes = sizes(study);
    let measured = measured(study, sizes)?;
    write(study, &measured)?;
    let pictures = pictures(study, &measured)?;
    Ok(Section {
        title: "Front-end cache (Table V, §V.D)".to_owned(),
        method: method(&measured, study.args.quick),
        claims: claims(&measured),
        grids: vec![gains_grid(&measured), rates_grid(&measured)],
        pictures,
    })
}

fn write(study: &mut Study<'_>, measured: &Measured) -> Result<(), Failure> {
    let mut rows = Vec::new();
    for (at, point) in &measured.points {
        for (contender, workload, gains) in ROWS {
            let engine = engine(contender);
            for (front, known) in Front::ALL.iter().zip(0..) {
                let in_paper = of_paper(gains, measured.sizes[at.1]);
                let in_paper = in_paper.filter(|_| known == PAPER_CACHE);
                rows.push(format!(
                    "{},{},{},{},{},{},{},{:.0},{:.4},{:.4},{},{}",
                    measured.names[at.0],
                    measured.sizes[at.1],
                    CONTENDERS[contender].engine,
                    WORKLOADS[workload].0,
                    front.name(),
                    point.room,
                    point.flows[workload],
                    point.rate(workload, engine, known),
                    point.known[workload][engine][known],
                    gain(point, workload, engine, known),
                    in_paper.map_or(String::new(), |gain| gain.to_string()),
                    point.compared
                ));
            }
        }
    }
    let heading = "profile,rules,engine,workload,cache,cache_flows,traffic_flows,\
                   packets_per_second,known,gain,gain_in_paper,compared";
    study.write_csv("pipeline-cache.csv", heading, &rows)
}

fn method(measured: &Measured, quick: bool) -> String {
    let rooms = measured.points.iter().map(|(_, point)| point.room);
    let compared = measured.points.iter().map(|(_, point)| point.compared);
    format!(
        "A worker without caches, one with the paper's cache and one with ours share a pipeline; \
         each kind of traffic has workers of its own. heavy-hitter is the paper's cache: the \
         flows that are seen most often, asked for every packet, no megaflows. adaptive and \
         megaflows is what workers have unless told otherwise; it is bypassed where it does not \
         pay for itself. Both have room for {} flows. The paper does not say how many its cache \
         has room for: this is a choice of ours, with which the synthetic traffic of 4k rules \
         fits nearly, and that of 64k does not. Of the paper's cache two things differ here: what \
         it says is held against the packet's key, and a flow that it does not know is learned by \
         watching the packet on its way through the tables, for at most 32 packets of a vector, \
         which costs more than to store a flow. The default rule's traffic stands for the paper's \
         trace, and has fewer flows: one for ten packets at most. Caches begin empty; before \
         anything is timed all frames are processed {} times, or for {} s of CPU time. Meanwhile \
         each entry has counted the same packets with caches as without, over {} packets or more \
         for each worker. Workers \
         take turns; the median of their turns counts, in CPU time. A gain is the rate with a \
         cache over that without, the mean over rule sets; the mean of ratios, not the ratio of \
         means. Known: the share of packets that caches knew while they were timed; those of a \
         slow engine have learned less in that time.",
        rooms.max().unwrap_or(0),
        LEARNING_PASSES,
        if quick {
            SHORT_LEARNING_SECONDS
        } else {
            LEARNING_SECONDS
        },
        compared.min().unwrap_or(0)
    )
}

/// Draws gains against rules: for the paper's cache, and for ours.
fn pictures(study: &mut Study<'_>, measured: &Measured) -> Result<Vec<String>, Failure> {
    let mut files = Vec::new();
    for (front, file, title) in [
        (
            PAPER_CACHE,
            "pipeline-cache.svg",
            "Gain of the paper's cache, heavy-hitter ([TM19] Table V)",
        ),
        (
            OUR_CACHE,
            "pipeline-cache-ours.svg",
            "Gain of our caches, adaptive and megaflows",
        ),
    ] {
        let mut series = Vec::new();
        for (contender, workload, _) in ROWS {
            let name = row_name(contender, workload);
            let colour_key = CONTENDERS[contender].engine;
            let sizes = measured.sizes.iter().enumerate();
            let points = sizes.map(|(place, &size)| {
                let gain = measured.gain(place, workload, contender, front);
                (coordinate(size), gain)
            });
            series.push(Series::marked(
                &name,
                colour_key,
                MEASURED_MARKS[workload],
                points,
            ));
        }
        if front == PAPER_CACHE {
            study.add_paper(file, &paper_values(), &mut series);
        }
        let chart = Chart {
            title,
            x_label: "rules",
            y_label: "times the throughput without cache",
            log_x: true,
            log_y: true,
        };
        study.draw(file, &chart, &series)?;
        files.push(file.to_owned());
    }
    Ok(files)
}

/// A grid whose columns are sizes.
fn grid(measured: &Measured, title: &str, last: Option<&str>, rows: Vec<Vec<String>>) -> Grid {
    let mut columns = vec![String::new(), String::new()];
    columns.extend(measured.sizes.iter().map(|&size| size_name(size)));
    columns.extend(last.map(str::to_owned));
    Grid {
        title: title.to_owned(),
        columns,
        words: 2,
        rows,
    }
}

/// Returns a row of the grid.
fn line(
    measured: &Measured,
    name: &str,
    what: &str,
    cell: impl Fn(usize) -> String,
) -> Vec<String> {
    let mut row = vec![name.to_owned(), what.to_owned()];
    row.extend((0..measured.sizes.len()).map(cell));
    row
}

/// Returns the paper's table.
fn gains_grid(measured: &Measured) -> Grid {
    let mut rows = Vec::new();
    for (contender, workload, gains) in ROWS {
        let name = row_name(contender, workload);
        if let Some(gains) = gains {
            let mut row = line(measured, &name, "the paper", |place| {
                let gain = of_paper(Some(gains), measured.sizes[place]);
                gain.map_or_else(|| "–".to_owned(), |gain| format!("{gain:.2}"))
            });
            // The paper's mean is over all its sizes.
            row.push(format!("{:.2}", mean(&gains)));
            rows.push(row);
        }
        for front in [PAPER_CACHE, OUR_CACHE] {
            let mut row = line(measured, &name, Front::ALL[front].name(), |place| {
                format!("{:.2}", measured.gain(place, workload, contender, front))
            });
            row.push(format!(
                "{:.2}",
                measured.average(workload, contender, front)
            ));
            rows.push(row);
        }
    }
    let title = "Times the throughput without cache, mean over rule sets (Table V)";
    grid(measured, title, Some("mean"), rows)
}

/// Returns the rates behind the gains, and the hit rates of caches.
fn rates_grid(measured: &Measured) -> Grid {
    let mut rows = Vec::new();
    for (workload, (name, _)) in WORKLOADS.iter().enumerate() {
        rows.push(line(measured, name, "flows of the traffic", |place| {
            format!("{:.0}", measured.flows(place, workload))
        }));
    }
    for (contender, workload, _) in ROWS {
        let name = row_name(contender, workload);
        for (front, cache) in [NO_CACHE, PAPER_CACHE, OUR_CACHE]
            .into_iter()
            .zip(Front::ALL)
        {
            let what = format!("M packets/s, {}", cache.name());
            rows.push(line(measured, &name, &what, |place| {
                short(measured.rate(place, workload, Cached::Engine(contender, front)))
            }));
        }
        for front in [PAPER_CACHE, OUR_CACHE] {
            let what = format!("known, {}", Front::ALL[front].name());
            rows.push(line(measured, &name, &what, |place| {
                let known = measured.known(place, workload, contender, front);
                format!("{:.0} %", known * 100.0)
            }));
        }
    }
    let title = "Throughput and the share of packets that caches knew, mean over rule sets";
    grid(measured, title, None, rows)
}

/// The title of the table of gains.
const GAINS: &str = "Times the throughput without cache";

/// The gain of the paper's cache.
fn of_cache(point: &Point, workload: usize, contender: usize) -> f64 {
    gain(point, workload, engine(contender), PAPER_CACHE)
}

/// The paper's mean gain over sizes.
fn paper_mean(contender: usize, workload: usize) -> f64 {
    let row = ROWS
        .iter()
        .find(|row| (row.0, row.1) == (contender, workload));
    row.and_then(|row| row.2)
        .map_or(f64::NAN, |gains| mean(&gains))
}

fn claims(measured: &Measured) -> Vec<Claim> {
    vec![
        by_workload(measured),
        by_engine(measured),
        by_size(measured),
    ]
}

fn by_workload(measured: &Measured) -> Claim {
    let mut claim = Claim::new(
        "Table V",
        "The cache helps with synthetic traffic more than with real traffic, where it slows \
         TupleMerge down.",
    );
    for contender in [TUPLE_MERGE, TUPLE_SPACE] {
        let name = CONTENDERS[contender].engine;
        let ratio = |point: &Point| {
            of_cache(point, SYNTHETIC_TRAFFIC, contender)
                / of_cache(point, DEFAULT_RULE_TRAFFIC, contender)
        };
        let paper =
            paper_mean(contender, SYNTHETIC_TRAFFIC) / paper_mean(contender, DEFAULT_RULE_TRAFFIC);
        claim = claim.part(
            Part::new(
                format!("gain of the cache with {name}: synthetic / default rule's traffic"),
                Threshold::Above(1.0),
            )
            .paper(paper)
            .case(measured.pooled("", |point| Some(ratio(point))))
            .grid(GAINS, name),
        );
    }
    let slowed = |point: &Point| of_cache(point, DEFAULT_RULE_TRAFFIC, TUPLE_MERGE);
    claim.part(
        Part::new(
            "gain of the cache with tuplemerge, default rule's traffic",
            Threshold::Below(1.0),
        )
        .paper(paper_mean(TUPLE_MERGE, DEFAULT_RULE_TRAFFIC))
        .case(measured.pooled("", |point| Some(slowed(point))))
        .grid(GAINS, "tuplemerge, default rule"),
    )
}

fn by_engine(measured: &Measured) -> Claim {
    let mut claim = Claim::new(
        "Table V",
        "The cache helps tuple space search more than TupleMerge: 7.4 and 1.49 times (synthetic), \
         1.09 and 0.98 times (real).",
    );
    for (workload, (what, _)) in WORKLOADS.iter().enumerate() {
        let ratio = |point: &Point| {
            of_cache(point, workload, TUPLE_SPACE) / of_cache(point, workload, TUPLE_MERGE)
        };
        claim = claim.part(
            Part::new(
                format!("gain of the cache: tss / tuplemerge, {what} traffic"),
                Threshold::Above(1.0),
            )
            .paper(paper_mean(TUPLE_SPACE, workload) / paper_mean(TUPLE_MERGE, workload))
            .case(measured.pooled("", |point| Some(ratio(point))))
            .grid(GAINS, format!("tss, {what}")),
        );
    }
    claim
}

fn by_size(measured: &Measured) -> Claim {
    let ends = measured
        .place(SIZES[0])
        .zip(measured.place(SIZES[SIZES.len() - 1]));
    let cases = [TUPLE_MERGE, TUPLE_SPACE].map(|contender| {
        let name = CONTENDERS[contender].engine;
        let Some((first, last)) = ends else {
            return Case::missing(name, Gap::NotRun("1k and 64k rules"));
        };
        let gains = |place: usize| {
            let points = measured.points.iter().filter(move |(at, _)| at.1 == place);
            points.map(move |(_, point)| of_cache(point, SYNTHETIC_TRAFFIC, contender))
        };
        Case::samples(
            name,
            gains(last)
                .zip(gains(first))
                .map(|(last, first)| last / first),
        )
    });
    Claim::new(
        "Table V",
        "The cache helps less the more rules there are, since fewer packets are known to it.",
    )
    .part(
        Part::new(
            "gain of the cache, synthetic traffic: at 64k / at 1k",
            Threshold::Below(1.0),
        )
        .cases(cases)
        .grid(GAINS, ""),
    )
}

#[cfg(test)]
mod tests {
    use super::super::cached::CACHED;
    use super::*;

    /// Points of five profiles, with the gains of the paper's cache given for each size:
    /// for `tuplemerge` and `tss`, by workload.
    fn of_gains(gains: &[(usize, [[f64; 2]; 2])]) -> Measured {
        let points = gains.iter().enumerate().flat_map(|(place, (_, gains))| {
            let rates = [SYNTHETIC_TRAFFIC, DEFAULT_RULE_TRAFFIC].map(|workload| {
                let [tm, tss] = gains[workload];
                let mut rates = [[1.0; 3]; CACHED.len()];
                rates[engine(TUPLE_MERGE)] = [4.0, 4.0 * tm, 6.0];
                rates[engine(TUPLE_SPACE)] = [0.5, 0.5 * tss, 1.0];
                rates
            });
            (0..5).map(move |number| ((number, place), Point::of_rates(rates)))
        });
        Measured {
            points: points.collect(),
            sizes: gains.iter().map(|&(size, _)| size).collect(),
            ..Measured::default()
        }
    }

    fn words(measured: &Measured) -> Vec<&'static str> {
        let claims = claims(measured);
        claims.iter().map(|claim| claim.verdict().word()).collect()
    }

    #[test]
    fn claims_hold_over_the_papers_figures() {
        let gains = SIZES.iter().enumerate().map(|(column, &size)| {
            let of_row = |row: usize| ROWS[row].2.unwrap()[column];
            (size, [[of_row(0), of_row(2)], [of_row(1), of_row(3)]])
        });
        let gains: Vec<_> = gains.collect();
        assert_eq!(words(&of_gains(&gains)), ["holds"; 3]);
        assert_eq!(words(&of_gains(&gains[1..])), ["not measured"; 3]);
    }

    #[test]
    fn other_figures_do_not_bear_them_out() {
        let gains = SIZES.map(|size| match size {
            64_000 => (size, [[1.4, 2.0], [1.5, 1.0]]),
            _ => (size, [[1.2, 3.0], [1.5, 2.9]]),
        });
        let part = "holds in part";
        assert_eq!(
            words(&of_gains(&gains)),
            ["does not hold here", "holds", part]
        );
    }

    #[test]
    fn the_table_has_the_papers_columns_where_it_has_the_size() {
        let measured = of_gains(&[
            (500, [[1.0, 1.0], [1.0, 1.0]]),
            (2_000, [[2.0, 8.0], [1.0, 1.1]]),
        ]);
        let grid = gains_grid(&measured);
        assert_eq!(grid.columns, ["", "", "500", "2k", "mean"]);
        assert_eq!(
            grid.rows[..3],
            [
                ["tuplemerge, synthetic", "the paper", "–", "2.01", "1.49"],
                [
                    "tuplemerge, synthetic",
                    "heavy-hitter",
                    "1.00",
                    "2.00",
                    "1.50"
                ],
                [
                    "tuplemerge, synthetic",
                    "adaptive and megaflows",
                    "1.50",
                    "1.50",
                    "1.50"
                ],
            ]
        );
        // The paper has no results for forest.
        assert_eq!(grid.rows.len(), 4 * 3 + 2 * 2);
        assert_eq!(rates_grid(&measured).rows.len(), 2 + 6 * 5);
    }
}
