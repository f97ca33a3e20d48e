//! [TM19] Figs. 14 and 15: throughput at the greatest size, seed by seed.
//!
//! [TM19]: classyard::papers#tm19

use classyard_report::chart::{Chart, Mark, Series};
use classyard_report::failure::Failure;

use super::super::coverage::Coverage;
use super::sheets::{Measured, largest, measured, short};
use super::{
    CONTENDERS, DEFAULT_RULE_TRAFFIC, FOREST, LINEAR_SEARCH, NO_RULES, OVS_TUPLE_MERGE,
    OVS_TUPLE_SPACE, SYNTHETIC_TRAFFIC, TUPLE_MERGE, TUPLE_SPACE, WORKLOADS,
};
use crate::bench::size_name;
use crate::reproduce::Study;
use crate::reproduce::claims::{Case, Claim, Gap, Grid, Part, Section, Threshold};
use crate::reproduce::statistics::{coordinate, mean};

/// The contenders in the pictures.
const SHOWN: [(usize, &str, Mark); 5] = [
    (TUPLE_MERGE, "tuplemerge", Mark::Circle),
    (TUPLE_SPACE, "tss", Mark::Square),
    (OVS_TUPLE_SPACE, "tss, single ports", Mark::Triangle),
    (OVS_TUPLE_MERGE, "tuplemerge, single ports", Mark::Diamond),
    (FOREST, "forest", Mark::Cross),
];

/// The caption of both pictures.
const PAPER_RATIOS: &str = "The paper states ratios with caches (§V.E): VPP's TupleMerge is 12.63 \
                            times as fast as Open vSwitch with real traffic and 2.86 times with \
                            synthetic traffic, and 31.20 and 45.86 times as fast as VPP's tuple \
                            space search.";

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
        study.caption(&file, PAPER_RATIOS);
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

/// The paper has Open vSwitch and both switches' caches in these figures.
const OPEN_VSWITCH: Gap = Gap::NotRun("Open vSwitch with its cache");
const CACHES: Gap = Gap::NotRun("with caches, as in the paper");

/// The paper's number of rules.
const PAPER_RULES: usize = 64_000;

/// The paper's mean speed-ups over VPP's tuple space search, by workload: synthetic
/// traffic and real traffic.
const SPEEDUPS: [f64; 2] = [45.86, 31.2];

fn claims(measured: &Measured) -> Vec<Claim> {
    vec![
        Claim::new(
            "Figs. 14, 15",
            "TupleMerge outperforms OVS's tuple space search on all seeds but ACL5 (real traffic) \
             and FW2 (synthetic), with caches.",
        )
        .unmeasured(
            "packets a second, TupleMerge / Open vSwitch, seed by seed",
            Threshold::Above(1.0),
            OPEN_VSWITCH,
        ),
        Claim::new(
            "Figs. 14, 15",
            "Over OVS's tuple space search the average speed-up is 12.63 for real traffic and \
             2.86 for synthetic traffic, with caches.",
        )
        .unmeasured(
            "packets a second, TupleMerge / Open vSwitch",
            Threshold::Within(2.86, 12.63),
            OPEN_VSWITCH,
        ),
        every_seed(measured),
        average(measured),
    ]
}

fn every_seed(measured: &Measured) -> Claim {
    let coverage = Coverage {
        paper_sizes: &[PAPER_RULES],
        sizes: &measured.sizes,
        names: &measured.names,
    };
    let mut claim = Claim::new(
        "Figs. 14, 15",
        "TupleMerge outperforms VPP's tuple space search on all seeds with both kinds of traffic.",
    );
    for (workload, (what, _)) in WORKLOADS.iter().enumerate() {
        let ratios = |number, place| {
            let sheet = &measured.rates[workload];
            sheet.ratios(TUPLE_MERGE, TUPLE_SPACE, |at| at == (number, place))
        };
        claim = claim.part(
            Part::new(
                format!("packets a second at 64k, TupleMerge / tss, {what} traffic"),
                Threshold::Above(1.0),
            )
            .cases(coverage.by_seed(PAPER_RULES, ratios))
            .case(Case::missing("with caches", CACHES))
            .picture(["pipeline-seeds-synthetic.svg", "pipeline-seeds-default.svg"][workload]),
        );
    }
    claim
}

fn average(measured: &Measured) -> Claim {
    let mut claim = Claim::new(
        "Figs. 14, 15",
        "Over VPP's tuple space search the average speed-up is 31.20 for real traffic and 45.86 \
         for synthetic traffic, with caches.",
    );
    for (workload, (what, _)) in WORKLOADS.iter().enumerate() {
        let paper = SPEEDUPS[workload];
        let case = match measured.place(PAPER_RULES) {
            None => Case::missing("without caches", Gap::NotRun("64k rules")),
            Some(place) => {
                let sheet = &measured.rates[workload];
                let ratios = sheet.ratios(TUPLE_MERGE, TUPLE_SPACE, |at| at.1 == place);
                Case::samples("without caches", ratios)
            }
        };
        claim = claim.part(
            Part::new(
                format!("packets a second at 64k, TupleMerge / tss, {what} traffic"),
                Threshold::Within(paper * 0.5, paper * 2.0),
            )
            .paper(paper)
            .case(case)
            .case(Case::missing("with caches", CACHES))
            .grid(["Fig. 15", "Fig. 14"][workload], "mean"),
        );
    }
    claim
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn speed_ups_are_compared_with_the_papers() {
        let words = |rates: fn(usize, usize) -> [f64; CONTENDERS.len()]| {
            let claims = claims(&Measured::of_rates(&[64_000], rates));
            claims
                .iter()
                .map(|claim| claim.verdict().word())
                .collect::<Vec<_>>()
        };
        let open = "not measured";
        let of_paper = words(|workload, _| match workload {
            DEFAULT_RULE_TRAFFIC => [0.01, 0.1, 3.0, 5.0, 0.25, 8.0, 9.0],
            _ => [0.01, 0.1, 4.5, 5.0, 1.5, 8.0, 9.0],
        });
        // Caches were left out, and eleven of twelve seeds.
        assert_eq!(of_paper, [open, open, open, "holds in part"]);
        let no_faster = words(|_, _| [0.01, 4.0, 4.0, 5.0, 8.0, 8.0, 9.0]);
        assert_eq!(no_faster, [open; 4]);
    }
}
