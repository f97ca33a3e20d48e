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
use crate::reproduce::claims::{Case, Claim, Gap, Grid, Part, Section, Threshold};
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

/// The least and the greatest number of rules of the paper's figure.
const SMALLEST: usize = 1_000;
const LARGEST: usize = 64_000;

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
    study.caption("pipeline-frameworks.svg", NO_NUMBERS);
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

/// The caption of the picture.
const NO_NUMBERS: &str = "The paper draws throughput with caches and with Open vSwitch in Fig. 13, and \
                          states no number.";

/// The paper has Open vSwitch and both switches' caches in this figure.
const OPEN_VSWITCH: Gap = Gap::NotRun("Open vSwitch with its cache");
const CACHES: Gap = Gap::NotRun("with caches, as in the paper");

fn claims(measured: &Measured) -> Vec<Claim> {
    let mut claims = vec![
        Claim::new(
            "Fig. 13",
            "VPP's TupleMerge significantly outperforms OVS's tuple space search: with real \
             traffic at all sizes, with synthetic traffic from 16k rules on (both with caches).",
        )
        .unmeasured(
            "packets a second, TupleMerge with its cache / Open vSwitch",
            Threshold::AtLeast(SIGNIFICANT_GAIN),
            OPEN_VSWITCH,
        ),
        kept(measured),
        Claim::new(
            "Fig. 13",
            "All do better with synthetic traffic than with real traffic (with caches).",
        )
        .unmeasured(
            "packets a second with caches, synthetic / real traffic",
            Threshold::Above(1.0),
            OPEN_VSWITCH,
        ),
        Claim::new(
            "Fig. 13",
            "OVS's tuple space search outperforms VPP's, which has more partitions and the weaker \
             cache.",
        )
        .unmeasured(
            "packets a second, Open vSwitch / VPP's tuple space search",
            Threshold::Above(1.0),
            OPEN_VSWITCH,
        ),
    ];
    claims.push(expansion(measured));
    claims
}

/// The claim that TupleMerge keeps more of its throughput than tuple space search.
fn kept(measured: &Measured) -> Claim {
    let ends = measured.place(SMALLEST).zip(measured.place(LARGEST));
    let cases = WORKLOADS.iter().enumerate().map(|(workload, (what, _))| {
        let name = format!("{what}, without caches");
        let Some(ends) = ends else {
            return Case::missing(name, Gap::NotRun("1k and 64k rules"));
        };
        let growth_of = |contender| measured.rates[workload].growth(contender, ends);
        let pairs = growth_of(TUPLE_MERGE)
            .into_iter()
            .zip(growth_of(TUPLE_SPACE));
        Case::samples(name, pairs.map(|(own, tss)| own / tss))
    });
    Claim::new(
        "Fig. 13",
        "TupleMerge loses relatively little throughput as rule sets grow.",
    )
    .part(
        Part::new(
            "share of throughput kept from 1k to 64k rules, TupleMerge / tss",
            Threshold::Above(1.0),
        )
        .cases(cases)
        .case(Case::missing("with caches", CACHES))
        .picture("pipeline-frameworks.svg"),
    )
}

/// The number of entries that ranges become.
fn expansion(measured: &Measured) -> Claim {
    let mut claim = Claim::new(
        "§V.E",
        "Ranges as prefixes would make rule sets larger by 133 % (ACL seeds), 248 % (FW) and 18 % \
         (IPC), on average.",
    );
    for (kind, paper) in EXPANSION {
        let is_kind = |at: (usize, usize)| measured.names[at.0].starts_with(kind);
        // Half to twice the paper's additional entries.
        let threshold = Threshold::Within(1.0 + (paper - 1.0) / 2.0, 1.0 + (paper - 1.0) * 2.0);
        let entries = measured.entries.values(0, is_kind);
        claim = claim.part(
            Part::new(format!("entries a rule, {kind} seeds"), threshold)
                .paper(paper)
                .case(Case::samples("", entries)),
        );
    }
    claim
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_said_about_open_vswitch() {
        let measured = Measured::of_rates(&[1_000, 64_000], |_, place| match place {
            0 => [0.5, 0.4, 3.0, 5.0, 0.9, 8.0, 9.0],
            _ => [0.01, 0.02, 1.4, 5.0, 0.1, 8.0, 9.0],
        });
        let claims = claims(&measured);
        let words: Vec<&str> = claims.iter().map(|claim| claim.verdict().word()).collect();
        let open = "not measured";
        // The rule sets here are access control lists only, of two entries a rule.
        assert_eq!(words, [open, "holds in part", open, open, open]);
    }
}
