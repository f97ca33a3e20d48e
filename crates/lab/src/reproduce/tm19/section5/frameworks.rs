//! [TM19] Fig. 13: throughput with the rules of VPP and of Open vSwitch.
//!
//! [TM19]: classyard::papers#tm19

use classyard_report::chart::{Chart, Mark, Series};
use classyard_report::failure::Failure;

use super::sheets::{Measured, measured, short, sizes};
use super::{
    CONTENDERS, DEFAULT_RULE_TRAFFIC, FOREST, OVS_TUPLE_MERGE, OVS_TUPLE_SPACE, SYNTHETIC_TRAFFIC,
    TUPLE_MERGE, TUPLE_SPACE, WORKLOADS,
};
use crate::bench::size_name;
use crate::reproduce::Study;
use crate::reproduce::claims::{Claim, Grid, Section, Verdict};
use crate::reproduce::statistics::coordinate;

/// The contenders in the picture, with marks for synthetic and default-rule traffic.
const SHOWN: [(usize, &str, [Mark; 2]); 5] = [
    (TUPLE_MERGE, "tuplemerge", [Mark::Circle, Mark::Triangle]),
    (TUPLE_SPACE, "tss", [Mark::Circle, Mark::Triangle]),
    (
        OVS_TUPLE_SPACE,
        "tss, single ports",
        [Mark::Circle, Mark::Triangle],
    ),
    (
        OVS_TUPLE_MERGE,
        "tuplemerge, single ports",
        [Mark::Circle, Mark::Triangle],
    ),
    (FOREST, "forest", [Mark::Circle, Mark::Triangle]),
];

/// The number of rules from which TupleMerge is significantly ahead with synthetic
/// traffic in the paper.
const AHEAD_FROM: usize = 16_000;

/// The smallest gain that counts as significant.
const SIGNIFICANT_GAIN: f64 = 1.25;

/// The paper's entries for each rule when ranges become prefixes, by kind of profile.
const EXPANSION: [(&str, f64); 3] = [("acl", 2.33), ("fw", 3.48), ("ipc", 1.18)];

/// Draws the figure.
pub(in crate::reproduce) fn draw(study: &mut Study<'_>) -> Result<Section, Failure> {
    let sizes = sizes(study);
    let measured = measured(study, sizes)?;
    let mut rows = Vec::new();
    for (workload, (what, _)) in WORKLOADS.iter().enumerate() {
        for (contender, ..) in SHOWN {
            for (place, &size) in measured.sizes.iter().enumerate() {
                rows.push(format!(
                    "{size},{what},{},{:.4}",
                    CONTENDERS[contender].label.replace(',', ""),
                    measured.rate(workload, contender, place)
                ));
            }
        }
    }
    let heading = "rules,workload,engine,mpps";
    study.write_csv("pipeline-frameworks.csv", heading, &rows)?;
    let mut series = Vec::new();
    for (workload, (what, _)) in WORKLOADS.iter().enumerate() {
        for (contender, colour_key, marks) in SHOWN {
            let sizes = measured.sizes.iter().enumerate();
            let points = sizes.map(|(place, &size)| {
                (coordinate(size), measured.rate(workload, contender, place))
            });
            let name = format!("{}, {what}", CONTENDERS[contender].label);
            series.push(Series::marked(&name, colour_key, marks[workload], points));
        }
    }
    let chart = Chart {
        title: "Throughput with rules of VPP and of OVS, without caches ([TM19] Fig. 13)",
        x_label: "rules",
        y_label: "million packets a second",
        log_x: true,
        log_y: true,
    };
    study.draw("pipeline-frameworks.svg", &chart, &series)?;
    let mut columns = vec!["rules".to_owned()];
    for (what, _) in WORKLOADS {
        columns.extend(SHOWN.map(|(_, name, _)| format!("{name}; {what}")));
    }
    let grid_rows = measured.sizes.iter().enumerate().map(|(place, &size)| {
        let mut row = vec![size_name(size)];
        for workload in [SYNTHETIC_TRAFFIC, DEFAULT_RULE_TRAFFIC] {
            row.extend(
                SHOWN.map(|(contender, ..)| short(measured.rate(workload, contender, place))),
            );
        }
        row
    });
    Ok(Section {
        title: "Frameworks (Fig. 13, §V.E)".to_owned(),
        method: "The paper sets VPP beside Open vSwitch, both with their caches. Open vSwitch is \
                 not here. So this is the difference of the rules alone, in one pipeline without \
                 caches (Table V has what caches bring): the paper gives Open vSwitch's tuple \
                 space search rules with a single port in place of every range of ports but that \
                 of all, which favours it; `tss, single ports` has these rules, and traffic drawn \
                 from them. With a cache the order may be another one."
            .to_owned(),
        claims: claims(&measured),
        grids: vec![Grid {
            title: "Million packets a second, mean over rule sets".to_owned(),
            columns,
            words: 0,
            rows: grid_rows.collect(),
        }],
        pictures: vec!["pipeline-frameworks.svg".to_owned()],
    })
}

fn claims(measured: &Measured) -> Vec<Claim> {
    let last = measured.sizes.len() - 1;
    let size = |place: usize| size_name(measured.sizes[place]);
    let gain = |workload: usize, place: usize| {
        measured.gain(workload, TUPLE_MERGE, OVS_TUPLE_SPACE, place)
    };
    let mut behind = Vec::new();
    let mut cases = 0;
    for place in 0..=last {
        for (workload, (what, _)) in WORKLOADS.iter().enumerate() {
            if workload == DEFAULT_RULE_TRAFFIC || measured.sizes[place] >= AHEAD_FROM {
                cases += 1;
                let gain = gain(workload, place);
                if gain < SIGNIFICANT_GAIN {
                    behind.push(format!("{gain:.2} times at {}, {what}", size(place)));
                }
            }
        }
    }
    let rate =
        |workload: usize, contender: usize, place: usize| measured.rate(workload, contender, place);
    let slower = SHOWN[..3]
        .iter()
        .flat_map(|&(contender, ..)| (0..=last).map(move |place| (contender, place)));
    let pairs: Vec<(usize, usize)> = slower.collect();
    let faster = pairs
        .iter()
        .filter(|&&(contender, place)| {
            rate(SYNTHETIC_TRAFFIC, contender, place) > rate(DEFAULT_RULE_TRAFFIC, contender, place)
        })
        .count();
    let ovs_ahead =
        (0..=last).flat_map(|place| [(SYNTHETIC_TRAFFIC, place), (DEFAULT_RULE_TRAFFIC, place)]);
    let ovs_ahead = ovs_ahead.filter(|&(workload, place)| {
        measured.gain(workload, OVS_TUPLE_SPACE, TUPLE_SPACE, place) > 1.0
    });
    let ovs_ahead = ovs_ahead.count();
    // The paper's figure begins at 1,000 rules.
    let first = measured.sizes.iter().position(|&size| size >= 1_000);
    let first = first.unwrap_or(0);
    let lost = [SYNTHETIC_TRAFFIC, DEFAULT_RULE_TRAFFIC]
        .map(|workload| rate(workload, TUPLE_MERGE, last) / rate(workload, TUPLE_MERGE, first));
    let lost_by_tss = [SYNTHETIC_TRAFFIC, DEFAULT_RULE_TRAFFIC]
        .map(|workload| rate(workload, TUPLE_SPACE, last) / rate(workload, TUPLE_SPACE, first));
    let mut claims = vec![
        Claim {
            place: "Fig. 13",
            paper: "VPP's TupleMerge significantly outperforms OVS's tuple space search: with real \
                    traffic at all sizes, with synthetic traffic from 16k rules on (both with \
                    caches).",
            measured: format!(
                "without caches {} times at {} and {} at {} (default rule's traffic); {} at {} and \
                 {} at {} (synthetic)",
                short(gain(DEFAULT_RULE_TRAFFIC, 0)),
                size(0),
                short(gain(DEFAULT_RULE_TRAFFIC, last)),
                size(last),
                short(gain(SYNTHETIC_TRAFFIC, 0)),
                size(0),
                short(gain(SYNTHETIC_TRAFFIC, last)),
                size(last)
            ),
            verdict: Verdict::for_most(cases - behind.len(), cases, &behind.join("; ")),
        },
        Claim {
            place: "Fig. 13",
            paper: "TupleMerge loses relatively little throughput as rule sets grow.",
            measured: format!(
                "from {} to {} rules it keeps {:.0} % (synthetic) and {:.0} % (default rule's); \
                 tss keeps {:.0} % and {:.0} %",
                size(first),
                size(last),
                lost[0] * 100.0,
                lost[1] * 100.0,
                lost_by_tss[0] * 100.0,
                lost_by_tss[1] * 100.0
            ),
            verdict: match lost
                .iter()
                .zip(lost_by_tss)
                .filter(|(own, tss)| *own >= tss)
                .count()
            {
                _ if first == last => Verdict::NotMeasured("one size only".to_owned()),
                2 => Verdict::Holds,
                1 => Verdict::InPart("less than tss with one workload only".to_owned()),
                _ => Verdict::Fails("tss loses less".to_owned()),
            },
        },
        Claim {
            place: "Fig. 13",
            paper: "All do better with synthetic traffic than with real traffic (with caches).",
            measured: format!(
                "without caches synthetic traffic is faster in {faster} of {} cases: tuplemerge, \
                 tss and tss with single ports, at each size",
                pairs.len()
            ),
            verdict: Verdict::for_most(
                faster,
                pairs.len(),
                "without caches the default rule's traffic, of fewer flows and entries, is faster \
                 in the others",
            ),
        },
        Claim {
            place: "Fig. 13",
            paper: "OVS's tuple space search outperforms VPP's, which has more partitions and the \
                    weaker cache.",
            measured: format!(
                "with single ports tss is {} and {} times as fast at {} rules (synthetic, default \
                 rule's)",
                short(measured.gain(SYNTHETIC_TRAFFIC, OVS_TUPLE_SPACE, TUPLE_SPACE, last)),
                short(measured.gain(DEFAULT_RULE_TRAFFIC, OVS_TUPLE_SPACE, TUPLE_SPACE, last)),
                size(last)
            ),
            verdict: Verdict::for_most(
                ovs_ahead,
                2 * measured.sizes.len(),
                "single ports are no faster in the other cases",
            ),
        },
    ];
    claims.extend(expansion(measured));
    claims
}

/// The number of entries that ranges become.
fn expansion(measured: &Measured) -> Option<Claim> {
    let (mut increases, mut alike, mut kinds) = (Vec::new(), 0, 0);
    for (kind, paper) in EXPANSION {
        let is_kind = |at: (usize, usize)| measured.names[at.0].starts_with(kind);
        if let Some(entries) = measured.entries.mean(0, is_kind) {
            kinds += 1;
            let times = (entries - 1.0) / (paper - 1.0);
            alike += usize::from((0.5..=2.0).contains(&times));
            increases.push(format!("{:+.0} % for {kind}", (entries - 1.0) * 100.0));
        }
    }
    (kinds > 0).then(|| Claim {
        place: "§V.E",
        paper: "Ranges as prefixes would make rule sets larger by 133 % (ACL seeds), 248 % (FW) \
                and 18 % (IPC), on average.",
        measured: format!(
            "entries of the pipeline beyond rules, protocols that ports need filled in as well: {}",
            increases.join(", ")
        ),
        verdict: Verdict::for_most(alike, kinds, "not within a factor of 2 for the others"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claims_hold_over_the_papers_figures() {
        let measured = Measured::of_rates(&[1_000, 64_000], |workload, place| {
            let real = [0.8, 1.0][usize::from(workload == SYNTHETIC_TRAFFIC)];
            let rates = match place {
                0 => [0.5, 0.4, 3.0, 5.0, 0.9, 8.0, 9.0],
                _ => [0.01, 0.02, 1.4, 5.0, 0.1, 8.0, 9.0],
            };
            rates.map(|rate: f64| rate * real)
        });
        let claims = claims(&measured);
        assert_eq!(claims.len(), 5);
        // The entries are twice the rules here, and 2.33 times the rules in the paper.
        assert!(claims[4].measured.contains("+100 % for acl"));
        for claim in &claims {
            assert_eq!(claim.verdict, Verdict::Holds, "{claim:?}");
        }
    }
}
