//! [TM19] Fig. 11: throughput against rules, for linear search, tuple space search and
//! TupleMerge.
//!
//! [TM19]: classyard::papers#tm19

use classyard_report::chart::{Chart, Mark, Series};
use classyard_report::failure::Failure;

use super::super::coverage::Coverage;
use super::sheets::{Measured, matched, measured, short, sizes};
use super::{
    CONTENDERS, Contender, DEFAULT_RULE_TRAFFIC, ENGINES, LINEAR_SEARCH, NO_RULES, SETUP, SIZES,
    SYNTHETIC_TRAFFIC, TRAFFIC, TUPLE_MERGE, TUPLE_SPACE, WORKLOADS,
};
use crate::bench::size_name;
use crate::reproduce::Study;
use crate::reproduce::claims::{Case, Claim, Grid, Part, Section, Threshold};
use crate::reproduce::paper_values::PaperValues;
use crate::reproduce::statistics::coordinate;
use crate::reproduce::tm19::sheet::Sheet;

/// The number of rules from which TupleMerge is clearly ahead in the paper, and the ratio
/// that counts as clearly ahead.
const AHEAD_FROM: usize = 500;
const CLEAR_GAIN: f64 = 1.25;

/// The paper's gaps, an order of magnitude and nearly two, each with the number of rules
/// and the smallest ratio that confirms the gap.
const GAPS: [(usize, f64); 2] = [(4_000, 7.0), (64_000, 50.0)];

/// Two workloads count as alike if their rates differ by less than this factor.
const ALIKE_RATIO: f64 = 1.5;

/// Millions of packets a second that TupleMerge still reaches in the paper.
const KEPT_MPPS: f64 = 1.0;

/// Linear search is at least as fast as tuple space search below this number of rules in
/// the paper.
const LINEAR_UP_TO: usize = 8_000;

/// Draws the figure.
pub(in crate::reproduce) fn draw(study: &mut Study<'_>) -> Result<Section, Failure> {
    let sizes = sizes(study);
    let traffic = matched(study, &sizes)?;
    let measured = measured(study, sizes)?;
    let mut rows = Vec::new();
    for (at, point) in &measured.points {
        for ((workload, _), rates) in WORKLOADS.iter().zip(&point.rates) {
            for (contender, rate) in CONTENDERS.iter().zip(rates) {
                rows.push(format!(
                    "{},{},{workload},{},{rate:.0},{:.4}",
                    measured.names[at.0],
                    point.rules,
                    contender.label.replace(',', ""),
                    point.default_share
                ));
            }
        }
    }
    let heading = "profile,rules,workload,engine,packets_per_second,default_share";
    study.write_csv("pipeline-throughput.csv", heading, &rows)?;
    let mut series = Vec::new();
    for (workload, (what, mark)) in WORKLOADS.iter().enumerate() {
        for contender in ENGINES {
            let Contender { engine, label } = of(contender);
            let sizes = measured.sizes.iter().enumerate();
            let points = sizes.map(|(place, &size)| {
                (coordinate(size), measured.rate(workload, contender, place))
            });
            let name = format!("{label}, {what}");
            series.push(Series::marked(&name, engine, *mark, points));
        }
    }
    let sizes = measured.sizes.iter().enumerate();
    let bare = sizes.map(|(place, &size)| {
        (
            coordinate(size),
            measured.rate(SYNTHETIC_TRAFFIC, NO_RULES, place),
        )
    });
    series.push(Series::marked(
        "no rules, synthetic",
        "no rules",
        Mark::Plus,
        bare,
    ));
    let chart = Chart {
        title: "Throughput against rules, mean over profiles ([TM19] Fig. 11)",
        x_label: "rules",
        y_label: "million packets a second",
        log_x: true,
        log_y: true,
    };
    study.add_paper("pipeline-throughput.svg", &paper_values(), &mut series);
    study.draw("pipeline-throughput.svg", &chart, &series)?;
    let mut method = format!("{SETUP} {TRAFFIC}");
    method.push_str(&measured.remarks());
    method.push_str(
        " Engines take turns; the median of their turns counts. No rules: the same pipeline \
         with the default rule alone, that is, what everything but the access list costs.",
    );
    let mut columns = vec!["rules".to_owned()];
    for (workload, _) in WORKLOADS {
        let engines = ENGINES.iter().chain([&NO_RULES]);
        columns.extend(engines.map(|&place| {
            let name = if place == NO_RULES {
                "no rules"
            } else {
                CONTENDERS[place].engine
            };
            format!("{name}, {workload}")
        }));
    }
    let grid_rows = measured.sizes.iter().enumerate().map(|(place, &size)| {
        let mut row = vec![size_name(size)];
        for workload in [SYNTHETIC_TRAFFIC, DEFAULT_RULE_TRAFFIC] {
            let engines = ENGINES.iter().chain([&NO_RULES]);
            row.extend(engines.map(|&engine| short(measured.rate(workload, engine, place))));
        }
        row
    });
    Ok(Section {
        title: "Throughput against rules (Fig. 11, §V.C)".to_owned(),
        method,
        claims: claims(&measured),
        grids: vec![
            Grid {
                title: "Million packets a second, mean over rule sets".to_owned(),
                columns,
                words: 0,
                rows: grid_rows.collect(),
            },
            traffic_grid(&measured.sizes, &traffic),
        ],
        pictures: vec!["pipeline-throughput.svg".to_owned()],
    })
}

/// Returns the bound of Fig. 11 that the text has.
pub(super) fn paper_values() -> PaperValues {
    PaperValues::new(
        "a bound stated in §V.C: TupleMerge has at least 1 million packets a second with all rule \
         sets and both kinds of traffic",
    )
    .on(super::MACHINE)
    .level("tuplemerge, at least", "tuplemerge", KEPT_MPPS)
}

fn of(place: usize) -> &'static Contender {
    &CONTENDERS[place]
}

/// Returns shares of packets by the rules that they match.
fn traffic_grid(sizes: &[usize], traffic: &Sheet) -> Grid {
    let columns = [
        "rules",
        "default rule's: it alone matches",
        "default rule's: the ten rules that win most",
        "synthetic: the ten rules that win most",
    ];
    let rows = sizes.iter().enumerate().map(|(place, &size)| {
        let mut row = vec![size_name(size)];
        row.extend((0..3).map(|share| {
            let share = traffic.mean(share, |at| at.1 == place);
            format!("{:.0} %", share.unwrap_or(0.0) * 100.0)
        }));
        row
    });
    Grid {
        title: "Shares of packets by what they match, mean over rule sets".to_owned(),
        columns: columns.map(str::to_owned).to_vec(),
        words: 0,
        rows: rows.collect(),
    }
}

/// The title of the table of rates.
const RATES: &str = "Million packets a second";

/// The claims' view of the measured values.
#[derive(Clone, Copy)]
struct View<'a> {
    measured: &'a Measured,
    coverage: Coverage<'a>,
}

impl View<'_> {
    /// Returns cases for both workloads and each size that `is_wanted` accepts, with the
    /// ratios of engine `a`'s rates to engine `b`'s.
    fn ratios(self, (a, b): (usize, usize), is_wanted: fn(usize) -> bool) -> Vec<Case> {
        let names = format!("{} / {}", CONTENDERS[a].engine, CONTENDERS[b].engine);
        self.each(is_wanted, &names, |workload, place| {
            self.measured.rates[workload].ratios(a, b, |at| at.1 == place)
        })
    }

    /// Returns cases for both workloads and each size that `is_wanted` accepts. `samples`
    /// receives the indices of the workload and of the size.
    fn each(
        self,
        is_wanted: fn(usize) -> bool,
        names: &str,
        samples: impl Fn(usize, usize) -> Vec<f64>,
    ) -> Vec<Case> {
        let mut cases = Vec::new();
        for (workload, (what, _)) in WORKLOADS.iter().enumerate() {
            for &size in SIZES.iter().filter(|&&size| is_wanted(size)) {
                let name = format!("{names} at {}, {what}", size_name(size));
                let samples = |place| samples(workload, place);
                cases.push(self.coverage.at_size(size, name, samples));
            }
        }
        cases
    }
}

/// Returns the claims; without rule sets, none is measured.
pub(super) fn claims(measured: &Measured) -> Vec<Claim> {
    let coverage = Coverage {
        paper_sizes: &SIZES,
        sizes: &measured.sizes,
        names: &measured.names,
    };
    let view = View { measured, coverage };
    vec![
        ahead(view),
        gap(view),
        workloads(view),
        degrades(view),
        linear(view),
    ]
}

fn ahead(view: View<'_>) -> Claim {
    let mut part = Part::new(
        "packets a second, TupleMerge / the other engine",
        Threshold::AtLeast(CLEAR_GAIN),
    );
    for other in [TUPLE_SPACE, LINEAR_SEARCH] {
        part = part.cases(view.ratios((TUPLE_MERGE, other), |size| size >= AHEAD_FROM));
    }
    Claim::new(
        "Fig. 11",
        "From 500 rules on, TupleMerge clearly outperforms tuple space search and linear search.",
    )
    .part(part.grid(RATES, ""))
}

fn gap(view: View<'_>) -> Claim {
    let mut claim = Claim::new(
        "Fig. 11",
        "The gap grows with the rule set: one order of magnitude at 4k rules, nearly two at 64k.",
    );
    let sizes: [fn(usize) -> bool; 2] = [|size| size == GAPS[0].0, |size| size == GAPS[1].0];
    for ((size, min_gain), is_size) in GAPS.into_iter().zip(sizes) {
        let mut part = Part::new(
            format!(
                "packets a second at {}, TupleMerge / the other engine",
                size_name(size)
            ),
            Threshold::AtLeast(min_gain),
        );
        for other in [LINEAR_SEARCH, TUPLE_SPACE] {
            part = part.cases(view.ratios((TUPLE_MERGE, other), is_size));
        }
        claim = claim.part(part.grid(RATES, size_name(size)));
    }
    claim
}

fn workloads(view: View<'_>) -> Claim {
    let mut part = Part::new(
        "packets a second, synthetic / default rule's traffic",
        Threshold::Within(1.0 / ALIKE_RATIO, ALIKE_RATIO),
    )
    .paper(1.0);
    for engine in [LINEAR_SEARCH, TUPLE_SPACE, TUPLE_MERGE] {
        let values = |workload: usize, place: usize| {
            view.measured.rates[workload].values(engine, |at| at.1 == place)
        };
        part = part.cases(SIZES.iter().map(|&size| {
            let name = format!("{} at {}", CONTENDERS[engine].engine, size_name(size));
            view.coverage.at_size(size, name, |place| {
                let default_rule = values(DEFAULT_RULE_TRAFFIC, place);
                let pairs = values(SYNTHETIC_TRAFFIC, place)
                    .into_iter()
                    .zip(default_rule);
                pairs
                    .map(|(synthetic, default_rule)| synthetic / default_rule)
                    .collect()
            })
        }));
    }
    Claim::new(
        "Fig. 11",
        "There is little difference between synthetic and real traffic, particularly for \
         TupleMerge.",
    )
    .part(part.grid(RATES, ""))
}

fn degrades(view: View<'_>) -> Claim {
    let rates = |workload: usize, place: usize| {
        view.measured.rates[workload].values(TUPLE_MERGE, |at| at.1 == place)
    };
    Claim::new(
        "Fig. 11",
        "TupleMerge degrades slowly: it keeps at least 1 million packets a second at all sizes, \
         with both workloads.",
    )
    .part(
        Part::new(
            "million packets a second of TupleMerge",
            Threshold::AtLeast(KEPT_MPPS),
        )
        .cases(view.each(|_| true, "tuplemerge", rates))
        .grid(RATES, ""),
    )
}

fn linear(view: View<'_>) -> Claim {
    let cases = view.ratios((LINEAR_SEARCH, TUPLE_SPACE), |size| size < LINEAR_UP_TO);
    Claim::new(
        "Fig. 11",
        "Linear search matches or outperforms tuple space search until rule sets have at least 8k \
         rules.",
    )
    .part(
        Part::new("packets a second, linear / tss", Threshold::AtLeast(1.0))
            .cases(cases)
            .grid(RATES, ""),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(measured: &Measured) -> Vec<&'static str> {
        let claims = claims(measured);
        claims.iter().map(|claim| claim.verdict().word()).collect()
    }

    #[test]
    fn claims_hold_over_the_papers_figures() {
        // Roughly the values of Fig. 11.
        let measured = Measured::of_rates(&SIZES, |_, place| match SIZES[place] {
            4_000..16_000 => [0.2, 0.2, 2.0, 5.0, 0.3, 8.0, 9.0],
            16_000.. => [0.01, 0.02, 1.4, 5.0, 0.1, 8.0, 9.0],
            _ => [0.5, 0.4, 3.0, 5.0, 0.5, 8.0, 9.0],
        });
        assert_eq!(words(&measured), ["holds"; 5]);
    }

    #[test]
    fn other_figures_do_not_bear_them_out() {
        let measured = Measured::of_rates(&SIZES, |workload, _| match workload {
            SYNTHETIC_TRAFFIC => [0.1, 2.0, 4.0, 5.0, 0.5, 8.0, 9.0],
            _ => [0.1, 3.9, 4.0, 5.0, 0.5, 8.0, 9.0],
        });
        assert_eq!(
            words(&measured),
            [
                // TSS is too near with one workload.
                "holds in part",
                // Linear search is 40 times slower at both sizes: enough at 4k only.
                "does not hold here",
                "holds in part",
                "holds",
                "does not hold here"
            ]
        );
        let few = Measured::of_rates(&SIZES[..2], |_, _| [1.0; CONTENDERS.len()]);
        assert!(words(&few).iter().all(|word| *word == "not measured"));
    }
}
