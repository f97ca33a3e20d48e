//! [FTS25] Fig. 9: wildcarding flows over time.
//!
//! [FTS25]: classyard::papers#fts25

use classyard_report::chart::{Chart, Series};
use classyard_report::failure::Failure;

use super::traffic::Traffic;
use super::{TRACES, Trace, many};
use crate::reproduce::Study;
use crate::reproduce::claims::{Case, Claim, Gap, Grid, Part, Section, Threshold};
use crate::reproduce::comparison::csv_line;
use crate::reproduce::paper_values::PaperValues;
use crate::reproduce::statistics::coordinate;

/// Seconds after which the paper's numbers are steady: the idle timeout.
const STEADY_SECONDS: usize = 10;

/// The greatest deviation of a number from the paper's, as a share.
const MAX_DEVIATION: f64 = 0.1;

/// Draws the figure.
pub(in crate::reproduce) fn draw(study: &mut Study<'_>) -> Result<Section, Failure> {
    let traffic = Traffic::measure(study)?;
    let (mut rows, mut lines, mut table) = (Vec::new(), Vec::new(), Vec::new());
    for (index, (trace, outcome)) in traffic.pairs().enumerate() {
        let points = (1..).zip(&outcome.wildcarding);
        let cell = csv_line([trace]);
        rows.extend(
            points
                .clone()
                .map(|(second, flows)| format!("{cell},{second},{flows}")),
        );
        let points = points.map(|(second, &flows)| (f64::from(second), coordinate(flows)));
        lines.push(Series::line(trace, points));
        let steady = outcome
            .wildcarding
            .get(STEADY_SECONDS..)
            .unwrap_or_default();
        let rate = many(outcome.packets) / outcome.seconds.max(1e-9);
        let paper = traffic.of_paper(index);
        let of_paper = |value: fn(&Trace) -> f64| {
            paper.map_or("–".to_owned(), |trace| format!("{:.0}", value(trace)))
        };
        let mut row = vec![
            trace.clone(),
            format!("{rate:.0}"),
            of_paper(|trace| 15_420_235.0 / trace.seconds),
            format!("{:.1}", outcome.seconds),
        ];
        if let (Some(least), Some(most)) = (steady.iter().min(), steady.iter().max()) {
            row.extend([least.to_string(), most.to_string()]);
        } else {
            row.extend(["–".to_owned(), "–".to_owned()]);
        }
        row.push(of_paper(|trace| trace.wildcarding));
        table.push(row);
    }
    let data = traffic.file("wildcarding-flows.csv");
    study.write_csv(&data, "trace,second,flows", &rows)?;
    let chart = Chart {
        title: "Wildcarding flows within 10 s ([FTS25] Fig. 9)",
        x_label: "seconds",
        y_label: "wildcarding flows",
        log_x: false,
        log_y: false,
    };
    let picture = traffic.file("wildcarding-flows.svg");
    study.add_paper(&picture, &paper_values(), &mut lines);
    study.draw(&picture, &chart, &lines)?;
    let columns = [
        "trace",
        "packets/s",
        "in the paper",
        "seconds",
        "flows after 10 s: least",
        "most",
        "in the paper",
    ];
    Ok(Section {
        title: traffic.title("Wildcarding flows over time (Fig. 9, §6.1)"),
        method: format!(
            "{} Addresses are masked by their class, ports by 0x8000: 16 masks. A \
             wildcarding flow is removed when it is idle for 10 s.",
            traffic.description
        ),
        claims: vec![claim()],
        grids: vec![Grid {
            title: "The traffic, and the paper's".to_owned(),
            columns: columns.map(str::to_owned).to_vec(),
            words: 1,
            rows: table,
        }],
        pictures: vec![picture],
    })
}

/// Returns the steady numbers of flows of Fig. 9.
pub(super) fn paper_values() -> PaperValues {
    let values = PaperValues::new(
        "stated in §6.1 for the time after the first 10 s; our traffic is fitted to them",
    );
    TRACES.iter().fold(values, |values, trace| {
        values.level(trace.name, trace.name, trace.wildcarding)
    })
}

/// The claim about the numbers of flows to which the traffic is fitted.
fn claim() -> Claim {
    let claim = Claim::new(
        "Fig. 9",
        "After 10 s there is a steady number of wildcarding flows, about 35k and 24.5k.",
    );
    TRACES.iter().fold(claim, |claim, trace| {
        let part = Part::new(
            format!("wildcarding flows after 10 s, {}", trace.name),
            Threshold::near(trace.wildcarding, MAX_DEVIATION),
        );
        let case = Case::missing("", Gap::Fitted);
        claim.part(
            part.paper(trace.wildcarding)
                .case(case)
                .picture("wildcarding-flows.svg"),
        )
    })
}
