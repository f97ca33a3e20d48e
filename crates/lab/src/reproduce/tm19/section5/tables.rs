//! [TM19] Fig. 10: partitions of the simulation, and of the implementation in a switch.
//!
//! [TM19]: classyard::papers#tm19

use classyard_report::chart::{Chart, Mark, Series};
use classyard_report::failure::Failure;

use super::super::coverage::Coverage;
use super::fragments;
use super::measure::SIMULATED;
use super::sheets::{Measured, measured, sizes};
use super::{
    CONTENDERS, FOREST, OVS_TUPLE_MERGE, OVS_TUPLE_SPACE, SIZES, TUPLE_MERGE, TUPLE_SPACE,
};
use crate::bench::size_name;
use crate::reproduce::Study;
use crate::reproduce::claims::{Case, Claim, Grid, Part, Section, Threshold};
use crate::reproduce::statistics::{self, coordinate};

/// The paper's ratio of VPP's partitions to the simulation's, for tuple space search.
const PAPER_RATIO: f64 = 2.7;

/// The paper makes its claim about TupleMerge for more rules than this.
const UNCLAIMED_RULES: usize = 1_000;

/// Indices in [`SIMULATED`] of the simulation's engines.
const SIMULATED_TSS: usize = 0;
const SIMULATED_TM: usize = 1;

/// The index of `tss` in [`fragments::ENGINES`].
const FRAGMENTS_TSS: usize = 0;

/// The caption of the picture.
const PAPER_RATIOS: &str = "The paper states ratios in place of numbers of tables (§V.B): VPP's tuple \
                            space search needs 2.7 times the tables of the simulation, and VPP's \
                            TupleMerge needs fewer than the simulation above 1k rules.";

/// Draws the figure.
pub(in crate::reproduce) fn draw(study: &mut Study<'_>) -> Result<Section, Failure> {
    let sizes = sizes(study);
    let measured = measured(study, sizes)?;
    let in_pipeline = [
        TUPLE_SPACE,
        TUPLE_MERGE,
        FOREST,
        OVS_TUPLE_SPACE,
        OVS_TUPLE_MERGE,
    ];
    let mut rows = Vec::new();
    for (at, point) in &measured.points {
        let counts = point.simulated.iter();
        let counts = counts.chain(in_pipeline.iter().map(|&place| &point.tables[place]));
        let counts = counts.chain(&point.fragments);
        let counts: Vec<String> = counts.map(ToString::to_string).collect();
        rows.push(format!(
            "{},{},{},{},{}",
            measured.names[at.0],
            point.rules,
            point.flows[0],
            point.flows[1],
            counts.join(",")
        ));
    }
    let heading = "profile,rules,entries,entries_single_ports,tss_addresses,tuplemerge,tss,\
                   tuplemerge_vpp,pipeline_tss,pipeline_tuplemerge,pipeline_forest,\
                   single_ports_tss,single_ports_tuplemerge,fragments_tss,fragments_tuplemerge";
    study.write_csv("pipeline-tables.csv", heading, &rows)?;
    let mean = |simulated: bool, which: usize, place: usize| {
        let sheet = match simulated {
            true => &measured.simulated,
            false => &measured.tables,
        };
        sheet.mean(which, |at| at.1 == place).unwrap_or(0.0)
    };
    let lines = [
        (
            "tss:mask=addresses, alone",
            "tss:mask=addresses",
            Mark::Circle,
            true,
            SIMULATED_TSS,
        ),
        (
            "tuplemerge, alone",
            "tuplemerge",
            Mark::Circle,
            true,
            SIMULATED_TM,
        ),
        (
            "tss, in the pipeline",
            "tss",
            Mark::Square,
            false,
            TUPLE_SPACE,
        ),
        (
            "tuplemerge, in the pipeline",
            "tuplemerge-offline",
            Mark::Square,
            false,
            TUPLE_MERGE,
        ),
        (
            "forest, in the pipeline",
            "forest",
            Mark::Square,
            false,
            FOREST,
        ),
    ];
    let series = lines.map(|(name, colour_key, mark, simulated, which)| {
        let sizes = measured.sizes.iter().enumerate();
        let points = sizes.map(|(place, &size)| (coordinate(size), mean(simulated, which, place)));
        Series::marked(name, colour_key, mark, points)
    });
    let chart = Chart {
        title: "Tables alone and in a pipeline, mean over profiles ([TM19] Fig. 10)",
        x_label: "rules",
        y_label: "tables",
        log_x: true,
        log_y: true,
    };
    study.caption("pipeline-tables.svg", PAPER_RATIOS);
    study.draw("pipeline-tables.svg", &chart, &series)?;
    let mut columns = vec!["rules".to_owned(), "entries a rule".to_owned()];
    columns.extend(SIMULATED.map(|engine| format!("{engine}, alone")));
    let names = ["tss", "tuplemerge", "forest"].map(|engine| format!("{engine}, pipeline"));
    columns.extend(names);
    columns
        .extend([OVS_TUPLE_SPACE, OVS_TUPLE_MERGE].map(|place| CONTENDERS[place].label.to_owned()));
    columns.extend(fragments::ENGINES.map(|engine| format!("{engine}, forms for fragments")));
    let grid_rows = measured.sizes.iter().enumerate().map(|(place, &size)| {
        let entries = measured.entries.mean(0, |at| at.1 == place).unwrap_or(0.0);
        let mut row = vec![size_name(size), format!("{entries:.2}")];
        let simulated = (0..SIMULATED.len()).map(|which| mean(true, which, place));
        let means = simulated.chain(in_pipeline.map(|which| mean(false, which, place)));
        let of_fragments = (0..fragments::ENGINES.len()).map(|which| {
            let points = measured.points.iter().filter(|(at, _)| at.1 == place);
            let counts = points.map(|(_, point)| coordinate(point.fragments[which]));
            statistics::mean(&counts.collect::<Vec<_>>())
        });
        row.extend(means.chain(of_fragments).map(|count| format!("{count:.1}")));
        row
    });
    Ok(Section {
        title: "Partitions: simulation and switch (Fig. 10, §V.B)".to_owned(),
        method:
            "Engines alone are built over the rules, with ranges as they are; tss:mask=addresses \
                 is the tuple space search of the paper's simulation. In the pipeline engines \
                 have the flow entries, which came one by one: ranges of ports are several \
                 entries, protocols that a port needs are filled in, and a field says which \
                 headers a packet has. So a fragment, which has no ports, needs no mask of its \
                 own in the pipeline. In the paper's VPP it does: the columns with forms for \
                 fragments have engines over rules that each have, if they have ports, a second \
                 form without ports for later fragments. Their answers are compared with a scan; \
                 a quarter of these headers are fragments. Means over rule sets."
                .to_owned(),
        claims: claims(&measured),
        grids: vec![Grid {
            title: "Tables, mean over rule sets".to_owned(),
            columns,
            words: 0,
            rows: grid_rows.collect(),
        }],
        pictures: vec!["pipeline-tables.svg".to_owned()],
    })
}

/// Returns the claims; without rule sets, none is measured.
pub(super) fn claims(measured: &Measured) -> Vec<Claim> {
    let coverage = Coverage {
        paper_sizes: &SIZES,
        sizes: &measured.sizes,
        names: &measured.names,
    };
    let ratios = |simulated: usize, contender: usize, place: usize| -> Vec<f64> {
        let points = measured.points.iter().filter(|(at, _)| at.1 == place);
        let ratio = points.map(|(_, point)| {
            let (own, other) = (point.tables[contender], point.simulated[simulated]);
            coordinate(own) / coordinate(other.max(1))
        });
        ratio.collect()
    };
    let of_tss =
        (0..measured.sizes.len()).flat_map(|place| ratios(SIMULATED_TSS, TUPLE_SPACE, place));
    let of_tss = Case::samples("in the pipeline", of_tss);
    let of_fragments = measured.points.iter().map(|(_, point)| {
        let alone = point.simulated[SIMULATED_TSS].max(1);
        coordinate(point.fragments[FRAGMENTS_TSS]) / coordinate(alone)
    });
    let of_fragments = Case::samples("forms for fragments", of_fragments);
    let of_tm = move |place: usize| ratios(SIMULATED_TM, TUPLE_MERGE, place);
    vec![
        Claim::new(
            "Fig. 10",
            "VPP's tuple space search needs 170 % more partitions than the simulation's, on \
             average, since fragments lack fields.",
        )
        .part(
            Part::new(
                "tables of tss over those of tss:mask=addresses alone",
                Threshold::Within(PAPER_RATIO * 0.5, PAPER_RATIO * 2.0),
            )
            .paper(PAPER_RATIO)
            .case(of_tss)
            .case(of_fragments)
            .grid("Tables, mean over rule sets", ""),
        ),
        Claim::new(
            "Fig. 10",
            "Beyond 1,000 rules, TupleMerge in VPP needs fewer partitions than in the simulation, \
             thanks to bit masks.",
        )
        .part(
            Part::new(
                "tables of tuplemerge: in the pipeline / alone",
                Threshold::Below(1.0),
            )
            .cases(coverage.by_size(|size| size > UNCLAIMED_RULES, of_tm))
            .grid("Tables, mean over rule sets", ""),
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_compared_with_the_simulation() {
        // 27 tables compared with 10, and 6 compared with 8.
        let rates = |_, _| [1.0; CONTENDERS.len()];
        let words = |sizes: &[usize]| {
            let claims = claims(&Measured::of_rates(sizes, rates));
            claims
                .iter()
                .map(|claim| claim.verdict().word())
                .collect::<Vec<_>>()
        };
        assert_eq!(words(&SIZES), ["holds", "holds"]);
        assert_eq!(words(&SIZES[..6]), ["holds", "not measured"]);
    }
}
