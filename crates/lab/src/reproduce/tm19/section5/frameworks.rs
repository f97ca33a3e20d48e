//! [TM19] Fig. 13: throughput of VPP and of Open vSwitch, with their caches.
//!
//! [TM19]: classyard::papers#tm19

use classyard_report::chart::{Chart, Mark, Series};
use classyard_report::failure::Failure;

use super::cached_sheets::{self, Cached, VPP_TUPLE_MERGE, VPP_TUPLE_SPACE};
use super::columns::{Column, csv_rows};
use super::sheets::{self, Measured, short};
use super::switch_tables;
use super::{
    CONTENDERS, DEFAULT_RULE_TRAFFIC, FOREST, OVS_TUPLE_MERGE, OVS_TUPLE_SPACE, SYNTHETIC_TRAFFIC,
    TUPLE_MERGE, TUPLE_SPACE, WORKLOADS,
};
use crate::bench::size_name;
use crate::reproduce::Study;
use crate::reproduce::claims::{Case, Claim, Gap, Grid, Part, Section, Threshold};
use crate::reproduce::statistics::coordinate;

/// The contenders without caches.
const SHOWN: [usize; 5] = [
    TUPLE_MERGE,
    TUPLE_SPACE,
    OVS_TUPLE_SPACE,
    OVS_TUPLE_MERGE,
    FOREST,
];

/// The least and the greatest number of rules of the paper's figure.
const SMALLEST: usize = 1_000;
const LARGEST: usize = 64_000;

/// With synthetic traffic, TupleMerge is significantly faster than Open vSwitch from this
/// number of rules on.
const MIN_CLEAR_RULES: usize = 16_000;

/// The smallest gain that counts as significant.
const SIGNIFICANT_GAIN: f64 = 1.25;

/// The paper's entries for each rule when ranges become prefixes, by kind of profile.
const EXPANSION: [(&str, f64); 3] = [("acl", 2.33), ("fw", 3.48), ("ipc", 1.18)];

const CACHED_PICTURE: &str = "pipeline-frameworks.svg";
const PLAIN_PICTURE: &str = "pipeline-frameworks-no-cache.svg";

/// The titles of the tables with caches and without.
const CACHED_GRID: &str = "Million packets a second with caches, mean over rule sets";
const PLAIN_GRID: &str = "Million packets a second without caches, mean over rule sets";

/// Draws the figure.
pub(in crate::reproduce) fn draw(study: &mut Study<'_>) -> Result<Section, Failure> {
    let sizes = sheets::sizes(study);
    let plain = sheets::measured(study, sizes)?;
    let sizes = cached_sheets::sizes(study);
    let cached = cached_sheets::measured(study, sizes)?;
    let plain_columns = SHOWN.map(|contender| {
        let name = CONTENDERS[contender].label;
        Column::of(name, "none", plain.sizes.len(), |workload, place| {
            plain.rate(workload, contender, place)
        })
    });
    let cached_columns = cached.shown().into_iter().map(|contender| {
        let count = cached.sizes.len();
        Column::of(
            contender.label(),
            contender.cache(),
            count,
            |workload, place| cached.rate(place, workload, contender),
        )
    });
    let cached_columns: Vec<Column> = cached_columns.collect();
    let labels = |sizes: &[usize]| sizes.iter().map(usize::to_string).collect::<Vec<_>>();
    let mut rows = csv_rows(&labels(&plain.sizes), &plain_columns);
    rows.extend(csv_rows(&labels(&cached.sizes), &cached_columns));
    let heading = "rules,workload,engine,cache,mpps";
    study.write_csv("pipeline-frameworks.csv", heading, &rows)?;
    for (file, title, sizes, columns) in [
        (
            CACHED_PICTURE,
            "Throughput of VPP's algorithms and of Open vSwitch with caches ([TM19] Fig. 13)",
            &cached.sizes,
            &cached_columns[..],
        ),
        (
            PLAIN_PICTURE,
            "Throughput with rules of VPP and of Open vSwitch, without caches",
            &plain.sizes,
            &plain_columns[..],
        ),
    ] {
        picture(study, file, title, sizes, columns)?;
    }
    let mut grids = vec![
        grid(CACHED_GRID, &cached.sizes, &cached_columns),
        grid(PLAIN_GRID, &plain.sizes, &plain_columns),
    ];
    grids.extend(switch_tables::write(study, &cached)?);
    Ok(Section {
        title: "Frameworks (Fig. 13, §V.E)".to_owned(),
        method: method(&cached),
        claims: claims(&plain, &cached),
        grids,
        pictures: vec![CACHED_PICTURE.to_owned(), PLAIN_PICTURE.to_owned()],
    })
}

fn method(cached: &cached_sheets::Measured) -> String {
    let switch = match &cached.open_vswitch {
        None => "Open vSwitch was not measured; --open-vswitch PROGRAM measures it. ".to_owned(),
        Some(version) => format!(
            "{version} is measured in the same turns: while it runs, our workers wait, and its \
             threads are stopped while they run. {}",
            switch_tables::DIFFERENCES
        ),
    };
    format!(
        "VPP's algorithms have the paper's cache, heavy-hitter, as in Table V, from the same \
         measurements. {switch}The paper gives Open vSwitch rules with a single port in place of \
         every range of ports but that of all, which favours it, and so does this reproduction, \
         with traffic drawn from these rules. Without caches, `single ports` are these rules in \
         our pipeline. The claims are judged with caches, as in the paper."
    )
}

/// The caption of the picture with caches.
const NO_NUMBERS: &str = "The paper draws the same quantity in Fig. 13 and states no number.";

fn picture(
    study: &mut Study<'_>,
    file: &str,
    title: &str,
    sizes: &[usize],
    columns: &[Column],
) -> Result<(), Failure> {
    let mut series = Vec::new();
    for (workload, (what, _)) in WORKLOADS.iter().enumerate() {
        let mark = [Mark::Circle, Mark::Triangle][workload];
        for column in columns {
            let rates = column.rates[workload].iter();
            let points = sizes.iter().zip(rates);
            let points = points.map(|(&size, &rate)| (coordinate(size), rate));
            let name = format!("{}, {what}", column.name);
            series.push(Series::marked(&name, &column.name, mark, points));
        }
    }
    let chart = Chart {
        title,
        x_label: "rules",
        y_label: "million packets a second",
        log_x: true,
        log_y: true,
    };
    if file == CACHED_PICTURE {
        study.caption(file, NO_NUMBERS);
    }
    study.draw(file, &chart, &series)
}

fn grid(title: &str, sizes: &[usize], columns: &[Column]) -> Grid {
    let mut heading = vec!["rules".to_owned()];
    for (what, _) in WORKLOADS {
        heading.extend(
            columns
                .iter()
                .map(|column| format!("{}; {what}", column.name)),
        );
    }
    let rows = sizes.iter().enumerate().map(|(place, &size)| {
        let mut row = vec![size_name(size)];
        for workload in [SYNTHETIC_TRAFFIC, DEFAULT_RULE_TRAFFIC] {
            let rates = columns.iter().map(|column| column.rates[workload][place]);
            row.extend(rates.map(short));
        }
        row
    });
    Grid {
        title: title.to_owned(),
        columns: heading,
        words: 0,
        rows: rows.collect(),
    }
}

fn claims(plain: &Measured, cached: &cached_sheets::Measured) -> Vec<Claim> {
    vec![
        faster_than_switch(cached),
        small_gap(cached),
        kept(cached),
        by_traffic(cached),
        switch_over_vpp(cached),
        expansion(plain),
    ]
}

/// The rates of TupleMerge with its cache and of Open vSwitch.
const OVER_SWITCH: (Cached, Cached) = (VPP_TUPLE_MERGE, Cached::OpenVswitch);

/// Returns a case for each of the paper's sizes that `is_wanted` accepts.
fn over_switch(
    cached: &cached_sheets::Measured,
    workload: usize,
    is_wanted: impl Fn(usize) -> bool,
) -> Vec<Case> {
    let sizes = cached_sheets::SIZES.into_iter();
    let wanted = sizes.filter(|&size| is_wanted(size));
    wanted
        .map(|size| cached.at_size(size_name(size), workload, OVER_SWITCH, size))
        .collect()
}

fn faster_than_switch(cached: &cached_sheets::Measured) -> Claim {
    let part = |workload: usize, cases: Vec<Case>| {
        let compared = format!(
            "packets a second, TupleMerge with its cache / Open vSwitch, {} traffic",
            WORKLOADS[workload].0
        );
        Part::new(compared, Threshold::AtLeast(SIGNIFICANT_GAIN))
            .cases(cases)
            .grid(CACHED_GRID, "")
    };
    Claim::new(
        "Fig. 13",
        "VPP's TupleMerge significantly outperforms OVS's tuple space search: with real traffic \
         at all sizes, with synthetic traffic from 16k rules on (both with caches).",
    )
    .part(part(
        DEFAULT_RULE_TRAFFIC,
        over_switch(cached, DEFAULT_RULE_TRAFFIC, |_| true),
    ))
    .part(part(
        SYNTHETIC_TRAFFIC,
        over_switch(cached, SYNTHETIC_TRAFFIC, |size| size >= MIN_CLEAR_RULES),
    ))
}

fn small_gap(cached: &cached_sheets::Measured) -> Claim {
    Claim::new(
        "Fig. 13",
        "With synthetic traffic and fewer than 16k rules, TupleMerge still outperforms OVS's \
         tuple space search, but the gap is small (both with caches).",
    )
    .part(
        Part::new(
            "packets a second, TupleMerge with its cache / Open vSwitch, synthetic traffic",
            Threshold::Within(1.0, SIGNIFICANT_GAIN),
        )
        .cases(over_switch(cached, SYNTHETIC_TRAFFIC, |size| {
            size < MIN_CLEAR_RULES
        }))
        .grid(CACHED_GRID, ""),
    )
}

/// The claim that TupleMerge keeps more of its throughput than tuple space search.
fn kept(cached: &cached_sheets::Measured) -> Claim {
    let ends = cached.place(SMALLEST).zip(cached.place(LARGEST));
    let cases = WORKLOADS.iter().enumerate().map(|(workload, (what, _))| {
        let Some(ends) = ends else {
            return Case::missing(*what, Gap::NotRun("1k and 64k rules"));
        };
        let growth_of =
            |contender| cached.growth(workload, contender, cached_sheets::PAPER_CACHE, ends);
        let pairs = growth_of(TUPLE_MERGE)
            .into_iter()
            .zip(growth_of(TUPLE_SPACE));
        Case::samples(*what, pairs.map(|(own, tss)| own / tss))
    });
    Claim::new(
        "Fig. 13",
        "TupleMerge loses relatively little throughput as rule sets grow (with caches).",
    )
    .part(
        Part::new(
            "share of throughput kept from 1k to 64k rules, TupleMerge / tss, with caches",
            Threshold::Above(1.0),
        )
        .cases(cases)
        .picture(CACHED_PICTURE),
    )
}

fn by_traffic(cached: &cached_sheets::Measured) -> Claim {
    let contenders = [VPP_TUPLE_MERGE, VPP_TUPLE_SPACE, Cached::OpenVswitch];
    let cases = contenders.map(|contender| {
        cached.pooled(contender.label(), |point| {
            let synthetic = contender.rate(point, SYNTHETIC_TRAFFIC)?;
            Some(synthetic / contender.rate(point, DEFAULT_RULE_TRAFFIC)?)
        })
    });
    Claim::new(
        "Fig. 13",
        "All do better with synthetic traffic than with real traffic (with caches).",
    )
    .part(
        Part::new(
            "packets a second with caches, synthetic / default rule's traffic",
            Threshold::Above(1.0),
        )
        .cases(cases)
        .grid(CACHED_GRID, ""),
    )
}

fn switch_over_vpp(cached: &cached_sheets::Measured) -> Claim {
    let cases = WORKLOADS.iter().enumerate().map(|(workload, (what, _))| {
        cached.pooled(*what, |point| {
            cached_sheets::ratio(point, workload, (Cached::OpenVswitch, VPP_TUPLE_SPACE))
        })
    });
    Claim::new(
        "Fig. 13",
        "OVS's tuple space search outperforms VPP's, which has more partitions and the weaker \
         cache.",
    )
    .part(
        Part::new(
            "packets a second, Open vSwitch / VPP's tuple space search with its cache",
            Threshold::Above(1.0),
        )
        .cases(cases)
        .grid(CACHED_GRID, ""),
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

    const OPEN: &str = "not measured";

    /// Returns the verdicts for rates of `tuplemerge`, `tss` and Open vSwitch by workload and
    /// size.
    fn words(
        sizes: &[usize],
        rates: impl Fn(usize, usize) -> ([f64; 2], Option<f64>),
    ) -> Vec<&'static str> {
        let plain = Measured::of_rates(&[1_000], |_, _| [1.0; CONTENDERS.len()]);
        let cached =
            cached_sheets::Measured::of_rates(sizes, |workload, _, place| rates(workload, place));
        let claims = claims(&plain, &cached);
        claims.iter().map(|claim| claim.verdict().word()).collect()
    }

    /// Rates as the paper describes them.
    fn of_paper(workload: usize, place: usize) -> [f64; 3] {
        let size = cached_sheets::SIZES[place];
        match workload {
            DEFAULT_RULE_TRAFFIC => [3.0, 0.5 / coordinate(size), 0.4],
            _ if size < MIN_CLEAR_RULES => [5.0, 100.0 / coordinate(size), 4.5],
            _ => [4.5, 100.0 / coordinate(size), 1.5],
        }
    }

    #[test]
    fn claims_hold_over_figures_like_the_papers() {
        let words = words(&cached_sheets::SIZES, |workload, place| {
            let [tm, tss, switch] = of_paper(workload, place);
            ([tm, tss], Some(switch))
        });
        // The rule sets without caches are access control lists only, of two entries a rule.
        let holds = "holds";
        assert_eq!(words, [holds, holds, holds, holds, holds, OPEN]);
    }

    #[test]
    fn other_figures_do_not_bear_them_out() {
        let words = words(&cached_sheets::SIZES, |workload, place| match workload {
            // Open vSwitch is the fastest, except with synthetic traffic at 16k and more.
            DEFAULT_RULE_TRAFFIC => ([4.0, 4.0], Some(6.0)),
            _ if place < 4 => ([3.0, 3.0], Some(5.0)),
            _ => ([2.0, 3.0], Some(0.5)),
        });
        let fails = "does not hold here";
        // Synthetic traffic: three of ten sizes. Tuple space search keeps more, or as much.
        assert_eq!(words[..4], [fails, fails, fails, fails]);
        // With the default rule's traffic only.
        assert_eq!(words[4], "holds in part");
    }

    #[test]
    fn without_open_vswitch_its_cases_are_open() {
        let measured = |sizes: &[usize]| {
            words(sizes, |workload, place| {
                let [tm, tss, _] = of_paper(workload, place);
                ([tm, tss], None)
            })
        };
        let words = measured(&cached_sheets::SIZES);
        assert_eq!(words[..5], [OPEN, OPEN, "holds", "holds in part", OPEN]);
        assert_eq!(measured(&[1_000, 4_000])[..5], [OPEN; 5]);
    }

    #[test]
    fn a_table_has_a_column_for_each_contender_and_workload() {
        let columns = [Column::of("tss", "none", 2, |workload, place| {
            [[1.0, 2.0], [0.5, 0.25]][workload][place]
        })];
        let sizes = [1_000, 64_000];
        let grid = grid(PLAIN_GRID, &sizes, &columns);
        assert_eq!(grid.columns.len(), 3);
        assert_eq!(grid.rows[1], ["64k", "2.00", "0.25"]);
    }
}
