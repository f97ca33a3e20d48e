//! [TM19] Fig. 11: throughput against rules, for linear search, tuple space search and
//! TupleMerge.
//!
//! [TM19]: classyard::papers#tm19

use classyard_report::chart::{Chart, Mark, Series};
use classyard_report::failure::Failure;

use super::sheets::{Measured, matched, measured, short, sizes};
use super::{
    CONTENDERS, Contender, DEFAULT_RULE_TRAFFIC, ENGINES, LINEAR_SEARCH, NO_RULES, SETUP,
    SYNTHETIC_TRAFFIC, TRAFFIC, TUPLE_MERGE, TUPLE_SPACE, WORKLOADS,
};
use crate::bench::size_name;
use crate::reproduce::Study;
use crate::reproduce::claims::{Claim, Grid, Section, Verdict};
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

fn claims(measured: &Measured) -> Vec<Claim> {
    let indices_from = |from: usize| {
        let sizes = measured.sizes.iter().enumerate();
        let indices = sizes.filter(move |(_, size)| **size >= from);
        indices.map(|(place, _)| place).collect::<Vec<_>>()
    };
    let mut claims = Vec::new();
    claims.extend(ahead(measured, &indices_from(AHEAD_FROM)));
    claims.extend(gap(measured));
    claims.push(workloads(measured));
    claims.push(degrades(measured));
    claims.push(linear(measured));
    claims
}

fn ahead(measured: &Measured, places: &[usize]) -> Option<Claim> {
    let (&first, &last) = (places.first()?, places.last()?);
    let mut behind = Vec::new();
    for &place in places {
        for (workload, (what, _)) in WORKLOADS.iter().enumerate() {
            for (other, name) in [(TUPLE_SPACE, "tss"), (LINEAR_SEARCH, "linear")] {
                let gain = measured.gain(workload, TUPLE_MERGE, other, place);
                if gain < CLEAR_GAIN {
                    let size = size_name(measured.sizes[place]);
                    behind.push(format!("{gain:.2} times {name} at {size}, {what}"));
                }
            }
        }
    }
    let cases = places.len() * 4;
    let gain = |other, place| {
        let gains = [SYNTHETIC_TRAFFIC, DEFAULT_RULE_TRAFFIC]
            .map(|workload| measured.gain(workload, TUPLE_MERGE, other, place));
        format!("{} and {}", short(gains[0]), short(gains[1]))
    };
    let size = |place: usize| size_name(measured.sizes[place]);
    Some(Claim {
        place: "Fig. 11",
        paper: "From 500 rules on, TupleMerge clearly outperforms tuple space search and linear \
                search.",
        measured: format!(
            "synthetic and default rule's traffic: {} times linear at {}, {} at {}; {} times tss \
             at {}, {} at {}",
            gain(LINEAR_SEARCH, first),
            size(first),
            gain(LINEAR_SEARCH, last),
            size(last),
            gain(TUPLE_SPACE, first),
            size(first),
            gain(TUPLE_SPACE, last),
            size(last)
        ),
        verdict: Verdict::for_most(cases - behind.len(), cases, &behind.join("; ")),
    })
}

fn gap(measured: &Measured) -> Option<Claim> {
    let gaps: Vec<(usize, usize, f64)> = GAPS
        .iter()
        .filter_map(|&(size, min_gain)| Some((measured.place(size)?, size, min_gain)))
        .collect();
    if gaps.is_empty() {
        return None;
    }
    let mut texts = Vec::new();
    let mut reached = [true; 2];
    for &(place, size, min_gain) in &gaps {
        for (which, (other, name)) in [(LINEAR_SEARCH, "linear"), (TUPLE_SPACE, "tss")]
            .into_iter()
            .enumerate()
        {
            let gains = [SYNTHETIC_TRAFFIC, DEFAULT_RULE_TRAFFIC]
                .map(|workload| measured.gain(workload, TUPLE_MERGE, other, place));
            reached[which] &= gains.iter().all(|&gain| gain >= min_gain);
            texts.push(format!(
                "{} and {} times {name} at {}",
                short(gains[0]),
                short(gains[1]),
                size_name(size)
            ));
        }
    }
    Some(Claim {
        place: "Fig. 11",
        paper: "The gap grows with the rule set: one order of magnitude at 4k rules, nearly two \
                at 64k.",
        measured: format!("synthetic and default rule's traffic: {}", texts.join("; ")),
        verdict: match reached {
            [true, true] if gaps.len() < GAPS.len() => {
                Verdict::InPart("as far as it was measured".to_owned())
            }
            [true, true] => Verdict::Holds,
            [true, false] => Verdict::InPart("to linear search only".to_owned()),
            [false, true] => Verdict::InPart("to tuple space search only".to_owned()),
            [false, false] => Verdict::Fails("less at one of them, to both".to_owned()),
        },
    })
}

fn workloads(measured: &Measured) -> Claim {
    let factor = |engine: usize| {
        let indices = 0..measured.sizes.len();
        let factors = indices.map(|place| {
            let gain = measured.rate(SYNTHETIC_TRAFFIC, engine, place)
                / measured.rate(DEFAULT_RULE_TRAFFIC, engine, place);
            gain.max(1.0 / gain)
        });
        factors.fold(1.0, f64::max)
    };
    let [linear, tss, tm] = [LINEAR_SEARCH, TUPLE_SPACE, TUPLE_MERGE].map(factor);
    Claim {
        place: "Fig. 11",
        paper: "There is little difference between synthetic and real traffic, particularly for \
                TupleMerge.",
        measured: format!(
            "they differ by a factor of at most {tm:.2} with tuplemerge, {tss:.2} with tss and \
             {linear:.2} with linear, over all sizes"
        ),
        verdict: match (tm <= ALIKE_RATIO, tss.max(linear) <= ALIKE_RATIO) {
            (true, true) => Verdict::Holds,
            (true, false) => Verdict::InPart("not with the other two".to_owned()),
            (false, _) => Verdict::Fails(format!("by more than {ALIKE_RATIO} with tuplemerge")),
        },
    }
}

fn degrades(measured: &Measured) -> Claim {
    let last = measured.sizes.len() - 1;
    let mut slowest = (f64::INFINITY, String::new());
    for (workload, (what, _)) in WORKLOADS.iter().enumerate() {
        for (place, &size) in measured.sizes.iter().enumerate() {
            let rate = measured.rate(workload, TUPLE_MERGE, place);
            if rate < slowest.0 {
                slowest = (rate, format!("{} rules, {what}", size_name(size)));
            }
        }
    }
    let of_set = |workload: usize| {
        let rates = measured.rates[workload].values(TUPLE_MERGE, |_| true);
        rates.into_iter().fold(f64::INFINITY, f64::min)
    };
    let least_set = of_set(SYNTHETIC_TRAFFIC).min(of_set(DEFAULT_RULE_TRAFFIC));
    let from_to = |workload| {
        format!(
            "{} to {}",
            short(measured.rate(workload, TUPLE_MERGE, 0)),
            short(measured.rate(workload, TUPLE_MERGE, last))
        )
    };
    Claim {
        place: "Fig. 11",
        paper: "TupleMerge degrades slowly: it keeps at least 1 million packets a second at all \
                sizes, with both workloads.",
        measured: format!(
            "from {} to {} rules: {} million (synthetic), {} (default rule's); at least {} in the \
             mean over rule sets ({}), {} over a single one",
            size_name(measured.sizes[0]),
            size_name(measured.sizes[last]),
            from_to(SYNTHETIC_TRAFFIC),
            from_to(DEFAULT_RULE_TRAFFIC),
            short(slowest.0),
            slowest.1,
            short(least_set)
        ),
        verdict: match (slowest.0 >= KEPT_MPPS, least_set >= KEPT_MPPS) {
            (true, true) => Verdict::Holds,
            (true, false) => Verdict::InPart("in the mean, not over every rule set".to_owned()),
            (false, _) => Verdict::Fails("less in the mean".to_owned()),
        },
    }
}

fn linear(measured: &Measured) -> Claim {
    let ahead = |workload: usize| {
        let sizes = measured.sizes.iter().enumerate();
        let ahead = sizes.filter(|(place, _)| {
            measured.gain(workload, LINEAR_SEARCH, TUPLE_SPACE, *place) >= 1.0
        });
        ahead.map(|(_, &size)| size).collect::<Vec<_>>()
    };
    let [synthetic, real] = [SYNTHETIC_TRAFFIC, DEFAULT_RULE_TRAFFIC].map(ahead);
    let range_text = |sizes: &[usize]| match sizes.last() {
        None => "at no size".to_owned(),
        Some(&size) => format!("up to {}", size_name(size)),
    };
    let small = measured.sizes.iter().filter(|&&size| size < LINEAR_UP_TO);
    let cases = 2 * small.clone().count();
    let held = small
        .map(|size| usize::from(synthetic.contains(size)) + usize::from(real.contains(size)))
        .sum();
    Claim {
        place: "Fig. 11",
        paper: "Linear search matches or outperforms tuple space search until rule sets have at \
                least 8k rules.",
        measured: format!(
            "linear is at least as fast {} (synthetic) and {} (default rule's)",
            range_text(&synthetic),
            range_text(&real)
        ),
        verdict: match cases {
            0 => Verdict::NotMeasured("no size below 8k".to_owned()),
            _ => Verdict::for_most(held, cases, "beyond, tss is faster"),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claims_hold_over_the_papers_figures() {
        // Roughly the values of Fig. 11.
        let sizes = [1_000, 4_000, 64_000];
        let measured = Measured::of_rates(&sizes, |_, place| match place {
            0 => [0.5, 0.4, 3.0, 5.0, 0.5, 8.0, 9.0],
            1 => [0.2, 0.2, 2.0, 5.0, 0.3, 8.0, 9.0],
            _ => [0.01, 0.02, 1.4, 5.0, 0.1, 8.0, 9.0],
        });
        let claims = claims(&measured);
        assert_eq!(claims.len(), 5);
        for claim in &claims {
            assert_eq!(claim.verdict, Verdict::Holds, "{claim:?}");
        }
    }

    #[test]
    fn what_does_not_hold_is_named() {
        let measured = Measured::of_rates(&[1_000, 4_000], |workload, _| match workload {
            SYNTHETIC_TRAFFIC => [0.1, 2.0, 4.0, 5.0, 0.5, 8.0, 9.0],
            _ => [0.1, 3.9, 4.0, 5.0, 0.5, 8.0, 9.0],
        });
        let claims = claims(&measured);
        let verdict = |place: usize| claims[place].verdict.text();
        assert_eq!(
            verdict(0),
            "holds in part: 1.03 times tss at 1k, default rule; 1.03 times tss at 4k, default rule"
        );
        assert_eq!(verdict(1), "holds in part: to linear search only");
        assert_eq!(verdict(2), "holds in part: not with the other two");
        assert_eq!(verdict(3), "holds");
        assert_eq!(verdict(4), "does not hold here: beyond, tss is faster");
    }
}
