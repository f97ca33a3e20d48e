//! [TM19] Figs. 14 and 15: throughput at the greatest size, seed by seed.
//!
//! [TM19]: classyard::papers#tm19

use classyard_report::chart::{Chart, Mark, Series};
use classyard_report::failure::Failure;

use super::sheets::{Measured, largest, measured, short};
use super::{
    CONTENDERS, DEFAULT_RULE_TRAFFIC, FOREST, LINEAR_SEARCH, NO_RULES, OVS_TUPLE_MERGE,
    OVS_TUPLE_SPACE, SYNTHETIC_TRAFFIC, TUPLE_MERGE, TUPLE_SPACE, WORKLOADS,
};
use crate::bench::size_name;
use crate::reproduce::Study;
use crate::reproduce::claims::{Claim, Grid, Section, Verdict};
use crate::reproduce::statistics::{coordinate, mean};

/// The contenders in the pictures.
const SHOWN: [(usize, &str, Mark); 5] = [
    (TUPLE_MERGE, "tuplemerge", Mark::Circle),
    (TUPLE_SPACE, "tss", Mark::Square),
    (OVS_TUPLE_SPACE, "tss, single ports", Mark::Triangle),
    (OVS_TUPLE_MERGE, "tuplemerge, single ports", Mark::Diamond),
    (FOREST, "forest", Mark::Cross),
];

/// Draws the figures.
pub(in crate::reproduce) fn draw(study: &mut Study<'_>) -> Result<Section, Failure> {
    let size = largest(study);
    let measured = measured(study, vec![size])?;
    let mut rows = Vec::new();
    for (workload, (what, _)) in WORKLOADS.iter().enumerate() {
        for (number, name) in measured.names.iter().enumerate() {
            for (contender, shown) in CONTENDERS.iter().enumerate() {
                let rate = of(&measured, workload, contender, number);
                let label = shown.label.replace(',', "");
                rows.push(format!("{name},{size},{what},{label},{rate:.4}"));
            }
        }
    }
    let heading = "profile,rules,workload,engine,mpps";
    study.write_csv("pipeline-seeds.csv", heading, &rows)?;
    let mut pictures = Vec::new();
    for (workload, file, figure) in [
        (DEFAULT_RULE_TRAFFIC, "default", "14"),
        (SYNTHETIC_TRAFFIC, "synthetic", "15"),
    ] {
        let series = SHOWN.map(|(contender, colour, mark)| {
            let points = (0..measured.names.len()).map(|number| {
                (
                    coordinate(number),
                    of(&measured, workload, contender, number),
                )
            });
            Series::marked(CONTENDERS[contender].label, colour, mark, points)
        });
        let chart = Chart {
            title: &format!(
                "Throughput at {} rules, {} traffic ([TM19] Fig. {figure})",
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
        let file = format!("pipeline-seeds-{file}.svg");
        study.draw_groups(&file, &chart, &measured.names, &series)?;
        pictures.push(file);
    }
    let grids = [
        (DEFAULT_RULE_TRAFFIC, "14, the default rule's"),
        (SYNTHETIC_TRAFFIC, "15, synthetic"),
    ];
    let grids = grids.map(|(workload, what)| grid(&measured, workload, what, size));
    Ok(Section {
        title: format!(
            "Seeds, at {} rules (Figs. 14 and 15, §V.E)",
            size_name(size)
        ),
        method:
            "As in Fig. 13: without caches, and Open vSwitch's rules in place of Open vSwitch. \
                 The paper has dashed lines for means over seeds; they are the last row of the \
                 tables. A speed-up is the mean over profiles of ratios."
                .to_owned(),
        claims: claims(&measured),
        grids: grids.to_vec(),
        pictures,
    })
}

/// Returns a contender's throughput over a profile.
fn of(measured: &Measured, workload: usize, contender: usize, number: usize) -> f64 {
    let mean = measured.rates[workload].mean(contender, |at| at.0 == number);
    mean.unwrap_or(0.0)
}

fn grid(measured: &Measured, workload: usize, what: &str, size: usize) -> Grid {
    let shown = [
        LINEAR_SEARCH,
        TUPLE_SPACE,
        TUPLE_MERGE,
        FOREST,
        OVS_TUPLE_SPACE,
        OVS_TUPLE_MERGE,
        NO_RULES,
    ];
    let mut columns = vec!["profile".to_owned(), "entries".to_owned()];
    columns.extend(shown.map(|contender| CONTENDERS[contender].label.to_owned()));
    columns.extend(["TM / TSS".to_owned(), "TM / OVS TSS".to_owned()]);
    let names = measured.names.iter().enumerate();
    let mut rows: Vec<Vec<String>> = names
        .map(|(number, name)| {
            let flows = measured.points.iter().find(|(at, _)| at.0 == number);
            let flows = flows.map_or(0, |(_, point)| point.flows[0]);
            let mut row = vec![name.clone(), flows.to_string()];
            row.extend(shown.map(|contender| short(of(measured, workload, contender, number))));
            let gain = |other| measured.gain_of(workload, (TUPLE_MERGE, other), number, 0);
            row.extend([TUPLE_SPACE, OVS_TUPLE_SPACE].map(|other| short(gain(other))));
            row
        })
        .collect();
    let mut last = vec!["mean".to_owned(), String::new()];
    last.extend(shown.map(|contender| short(measured.rate(workload, contender, 0))));
    last.extend(
        [TUPLE_SPACE, OVS_TUPLE_SPACE].map(|other| short(speedup(measured, workload, other))),
    );
    rows.push(last);
    Grid {
        title: format!(
            "Fig. {what} traffic, {} rules: M packets/s",
            size_name(size)
        ),
        columns,
        words: 1,
        rows,
    }
}

/// Returns the ratios of TupleMerge's throughput to another contender's, for each
/// profile.
fn gains(measured: &Measured, workload: usize, other: usize) -> Vec<f64> {
    let numbers = 0..measured.names.len();
    numbers
        .map(|number| measured.gain_of(workload, (TUPLE_MERGE, other), number, 0))
        .collect()
}

fn speedup(measured: &Measured, workload: usize, other: usize) -> f64 {
    mean(&gains(measured, workload, other))
}

fn claims(measured: &Measured) -> Vec<Claim> {
    let lost = |workload: usize, other: usize| {
        let names = measured.names.iter().zip(gains(measured, workload, other));
        let lost = names.filter(|(_, gain)| *gain <= 1.0);
        lost.map(|(name, _)| name.clone()).collect::<Vec<_>>()
    };
    let seeds = measured.names.len();
    let seeds_text = |lost: &[String]| match lost {
        [] => "all seeds".to_owned(),
        lost => format!("all seeds but {}", lost.join(", ")),
    };
    let ovs =
        [DEFAULT_RULE_TRAFFIC, SYNTHETIC_TRAFFIC].map(|workload| lost(workload, OVS_TUPLE_SPACE));
    let tss = [DEFAULT_RULE_TRAFFIC, SYNTHETIC_TRAFFIC].map(|workload| lost(workload, TUPLE_SPACE));
    let gain_and_ratio = |workload: usize, other: usize, paper: f64| {
        let gain = speedup(measured, workload, other);
        (gain, gain / paper)
    };
    let average = |place, paper, other: usize, papers: [f64; 2]| {
        let results = [
            (DEFAULT_RULE_TRAFFIC, papers[0]),
            (SYNTHETIC_TRAFFIC, papers[1]),
        ];
        let results = results.map(|(workload, paper)| gain_and_ratio(workload, other, paper));
        let alike = results
            .iter()
            .filter(|(_, times)| (0.5..=2.0).contains(times));
        let ahead = results.iter().filter(|(gain, _)| *gain > 1.0).count();
        Claim {
            place,
            paper,
            measured: format!(
                "without caches {} times (default rule's traffic) and {} times (synthetic)",
                short(results[0].0),
                short(results[1].0)
            ),
            verdict: match (alike.count(), ahead) {
                (2, _) => Verdict::Holds,
                (_, 0) => Verdict::Fails("it is no faster".to_owned()),
                _ => Verdict::InPart(format!(
                    "{:.2} and {:.2} times the paper's factors",
                    results[0].1, results[1].1
                )),
            },
        }
    };
    let verdict = |lost: &[Vec<String>; 2], allowed: usize| {
        let lost = lost.each_ref().map(Vec::len);
        let held = lost.iter().filter(|&&lost| lost <= allowed).count();
        match held {
            _ if lost.iter().all(|&lost| 2 * lost >= seeds) => {
                Verdict::Fails("slower on half of the seeds or more".to_owned())
            }
            2 => Verdict::Holds,
            _ => Verdict::InPart(format!(
                "slower on {} and {} of {seeds} seeds",
                lost[0], lost[1]
            )),
        }
    };
    vec![
        Claim {
            place: "Figs. 14, 15",
            paper: "TupleMerge outperforms OVS's tuple space search on all seeds but ACL5 (real \
                    traffic) and FW2 (synthetic), with caches.",
            measured: format!(
                "without caches on {} (default rule's traffic), on {} (synthetic)",
                seeds_text(&ovs[0]),
                seeds_text(&ovs[1])
            ),
            verdict: verdict(&ovs, 1),
        },
        average(
            "Figs. 14, 15",
            "Over OVS's tuple space search the average speed-up is 12.63 for real traffic and \
             2.86 for synthetic traffic, with caches.",
            OVS_TUPLE_SPACE,
            [12.63, 2.86],
        ),
        Claim {
            place: "Figs. 14, 15",
            paper: "TupleMerge outperforms VPP's tuple space search on all seeds with both kinds \
                    of traffic.",
            measured: format!(
                "on {} (default rule's traffic), on {} (synthetic)",
                seeds_text(&tss[0]),
                seeds_text(&tss[1])
            ),
            verdict: verdict(&tss, 0),
        },
        average(
            "Figs. 14, 15",
            "Over VPP's tuple space search the average speed-up is 31.20 for real traffic and \
             45.86 for synthetic traffic, with caches.",
            TUPLE_SPACE,
            [31.2, 45.86],
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn speed_ups_are_held_against_the_papers() {
        let measured = Measured::of_rates(&[64_000], |workload, _| match workload {
            DEFAULT_RULE_TRAFFIC => [0.01, 0.1, 3.0, 5.0, 0.25, 8.0, 9.0],
            _ => [0.01, 0.1, 4.5, 5.0, 1.5, 8.0, 9.0],
        });
        for claim in claims(&measured) {
            assert_eq!(claim.verdict, Verdict::Holds, "{claim:?}");
        }
        let measured = Measured::of_rates(&[64_000], |_, _| [0.01, 2.0, 4.0, 5.0, 8.0, 8.0, 9.0]);
        let texts = claims(&measured);
        let texts: Vec<String> = texts.iter().map(|claim| claim.verdict.text()).collect();
        assert_eq!(
            texts,
            [
                "does not hold here: slower on half of the seeds or more",
                "does not hold here: it is no faster",
                "holds",
                "holds in part: 0.06 and 0.04 times the paper's factors"
            ]
        );
    }
}
