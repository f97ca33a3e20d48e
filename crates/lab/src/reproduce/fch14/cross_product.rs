//! [FCH14] Fig. 2: flows of a whole pipeline, computed ahead of time.
//!
//! [FCH14]: classyard::papers#fch14

use classyard_datapath::flow::FlowStore;
use classyard_datapath::lab::megaflow::cross_product::{End, cross_product};
use classyard_report::chart::{Chart, Series};
use classyard_report::failure::Failure;
use serde::{Deserialize, Serialize};

use super::pipelines::{self, STAGE_COUNT};
use crate::bench::timed;
use crate::reproduce::Study;
use crate::reproduce::claims::{Case, Claim, Grid, Part, Section, Threshold};
use crate::reproduce::statistics::coordinate;

/// Datapaths: ports, ACLs in each direction, subnets.
const DATAPATHS: [(usize, usize, usize); 8] = [
    (2, 0, 1),
    (2, 1, 1),
    (4, 1, 2),
    (4, 2, 2),
    (6, 3, 3),
    (8, 4, 4),
    (12, 6, 6),
    (16, 8, 8),
];

/// The maximum number of entries of a cross product, and of a quick run. An entry takes
/// 400 bytes.
const MAX_ENTRIES: usize = 1_000_000;
const QUICK_MAX_ENTRIES: usize = 50_000;

/// Returns the maximum number of entries of this reproduction.
pub(super) fn max_entries(study: &Study<'_>) -> usize {
    if study.args.quick {
        QUICK_MAX_ENTRIES
    } else {
        MAX_ENTRIES
    }
}

/// A cross product, or its part up to the limit.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Measured {
    pub(super) flows: usize,
    pub(super) entries: usize,
    pub(super) paths: usize,
    /// Entries that end early because a later table matches a field that the key does not
    /// have.
    unfinished: usize,
    pub(super) is_complete: bool,
    pub(super) seconds: f64,
}

/// Creates the figure.
pub(in crate::reproduce) fn draw(study: &mut Study<'_>) -> Result<Section, Failure> {
    let max_entries = max_entries(study);
    study.expect_points(DATAPATHS.len());
    let mut results = Vec::new();
    for (ports, acls, subnets) in DATAPATHS {
        let point = format!("datapath of {ports} ports, {acls} ACLs, {subnets} subnets");
        results.push(study.point(&point, |_| Ok(measure(ports, acls, subnets, max_entries)))?);
    }
    let mut rows = Vec::new();
    let mut lines = Vec::new();
    for ((ports, acls, subnets), one) in DATAPATHS.into_iter().zip(&results) {
        let at_least = if one.is_complete { "" } else { "more than " };
        rows.push(vec![
            ports.to_string(),
            acls.to_string(),
            subnets.to_string(),
            one.flows.to_string(),
            format!("{at_least}{}", one.entries),
            format!("{at_least}{}", one.paths),
            format!("{:.2}", one.seconds),
        ]);
        lines.push(format!(
            "{ports},{acls},{subnets},{},{},{},{},{:.4}",
            one.flows, one.entries, one.paths, one.is_complete, one.seconds
        ));
    }
    let heading = "ports,acls,subnets,flows,entries,paths,complete,seconds";
    study.write_csv("cross-product.csv", heading, &lines)?;
    let complete: Vec<&Measured> = results.iter().filter(|one| one.is_complete).collect();
    let points = |value: fn(&Measured) -> usize| -> Vec<(f64, f64)> {
        let points = complete.iter();
        let point = |one: &&Measured| (coordinate(one.flows), coordinate(value(one)));
        points.map(point).collect()
    };
    let chart = Chart {
        title: "The cross product of a pipeline ([FCH14] Fig. 2)",
        x_label: "flows of the pipeline",
        y_label: "entries of the cross product",
        log_x: true,
        log_y: true,
    };
    let series = [
        Series::line("entries: values under masks", points(|one| one.entries)),
        Series::line("paths: header spaces", points(|one| one.paths)),
    ];
    study.caption("cross-product.svg", NO_NUMBERS);
    study.draw("cross-product.svg", &chart, &series)?;
    Ok(Section {
        title: "The cross product of a whole pipeline (Fig. 2)".to_owned(),
        method: format!(
            "Flows of one logical datapath are generated, in {STAGE_COUNT} stages: ports, port \
             security, ACLs in both directions, a switch and a router. (The paper's flows are \
             those of a product and not public; it has 10 to 15 stages, too.) A path is what the \
             paper's Table 3 has in a row, a header space with others subtracted; an entry is a \
             value under a mask, as a cache holds it. The limit is {max_entries} entries."
        ),
        claims: claims(&results),
        grids: vec![Grid {
            title: "Cross products of logical datapaths".to_owned(),
            columns: [
                "ports",
                "ACLs in and out",
                "subnets",
                "flows",
                "entries",
                "paths",
                "seconds",
            ]
            .map(str::to_owned)
            .to_vec(),
            words: 0,
            rows,
        }],
        pictures: vec!["cross-product.svg".to_owned()],
    })
}

fn measure(ports: usize, acls: usize, subnets: usize, max_entries: usize) -> Measured {
    measure_flows(&pipelines::flows(ports, acls, subnets), max_entries)
}

/// Computes the cross product of a pipeline.
pub(super) fn measure_flows(flows: &FlowStore, max_entries: usize) -> Measured {
    let (product, seconds) = timed(|| cross_product(flows, max_entries));
    let (entries, paths, unfinished, is_complete) = match product {
        Ok(product) => {
            let entries = product.entries.iter();
            let unfinished = entries.filter(|entry| matches!(entry.end, End::Continue(_)));
            (
                product.entries.len(),
                product.paths,
                unfinished.count(),
                true,
            )
        }
        Err(error) => (error.entries, error.paths, 0, false),
    };
    Measured {
        flows: flows.len(),
        entries,
        paths,
        unfinished,
        is_complete,
        seconds,
    }
}

/// The caption of the picture.
const NO_NUMBERS: &str = "The paper draws the same quantity in Fig. 2 and states no number.";

/// Entries for each flow that make a cross product impractical.
const IMPRACTICAL_RATIO: f64 = 100.0;

pub(super) fn claims(results: &[Measured]) -> Vec<Claim> {
    let complete: Vec<&Measured> = results.iter().filter(|one| one.is_complete).collect();
    let (first, last) = (complete.first(), complete.last());
    // The power of the number of flows with which a number grows; NaN for one datapath.
    let power = |value: fn(&Measured) -> usize| -> f64 {
        let growth = |value: &dyn Fn(&Measured) -> usize| match (first, last) {
            (Some(first), Some(last)) => coordinate(value(last)) / coordinate(value(first)),
            _ => f64::NAN,
        };
        growth(&value).ln() / growth(&|one| one.flows).ln()
    };
    let ratio = last.map_or(f64::NAN, |last| {
        coordinate(last.entries) / coordinate(last.flows)
    });
    let table = "Cross products of logical";
    vec![
        Claim::new(
            "§3.1, Fig. 2",
            "The size of the cross-producted table grows polynomially with the number of flows, \
             so it is impractical.",
        )
        .part(
            Part::new(
                "power of the number of flows with which the product grows",
                Threshold::Above(1.0),
            )
            .case(Case::exact("entries", power(|one| one.entries)))
            .case(Case::exact("paths", power(|one| one.paths)))
            .picture("cross-product.svg"),
        ),
        Claim::new(
            "§1, §3.1",
            "For small tables the cross product is manageable; for many flows it can grow beyond \
             what is practical.",
        )
        .part(
            Part::new("datapaths within the limit", Threshold::AtLeast(1.0))
                .case(Case::exact("", coordinate(complete.len())))
                .grid(table, ""),
        )
        .part(
            Part::new(
                "entries for each flow of the largest datapath within the limit",
                Threshold::AtLeast(IMPRACTICAL_RATIO),
            )
            .case(Case::exact("", ratio))
            .grid(table, ""),
        ),
    ]
}
