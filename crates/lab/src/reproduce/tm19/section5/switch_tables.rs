//! The table and the CSV file of Open vSwitch.

use classyard_report::failure::Failure;

use super::cached_sheets::Measured;
use super::open_vswitch::SwitchRun;
use super::sheets::short;
use super::{WORKLOADS, mpps};
use crate::bench::{SwitchRate, size_name};
use crate::reproduce::Study;
use crate::reproduce::claims::Grid;
use crate::reproduce::statistics::{coordinate, mean};

/// The differences of this Open vSwitch from the paper's.
pub(super) const DIFFERENCES: &str = "The paper does not state the version of its Open vSwitch; it says that Open vSwitch uses \
     DPDK, and that its three-tiered cache is at the kernel level. Here the datapath is in user \
     space, with DPDK, and default settings: the exact match cache (EMC) and the megaflows are \
     on. There is no network card: packets come from memory and are discarded. The rate is \
     packets per second of CPU time of the thread that processes them, a copy of each packet \
     included, measured when the caches have filled. ";

/// Writes the CSV file, and returns the table of means; `None` without Open vSwitch.
pub(super) fn write(study: &mut Study<'_>, measured: &Measured) -> Result<Option<Grid>, Failure> {
    if measured.open_vswitch.is_none() {
        return Ok(None);
    }
    let mut rows = Vec::new();
    for (workload, (what, _)) in WORKLOADS.iter().enumerate() {
        for (at, run) in measured.switch_runs(workload) {
            let (name, size) = (&measured.names[at.0], measured.sizes[at.1]);
            let or_empty = |value: Option<String>| value.unwrap_or_default();
            rows.push(format!(
                "{name},{size},{what},{},{:.0},{:.4},{:.4},{:.2},{:.0},{:.0},{:.2},{},{}",
                run.entries,
                run.median(|turn| turn.packets_per_second),
                run.median(|turn| turn.emc_share),
                run.median(|turn| turn.megaflow_share),
                run.median(|turn| turn.lookups_per_hit),
                run.median(|turn| turn.upcalls_per_second),
                run.median(megaflows),
                run.load_seconds,
                or_empty(run.settled_seconds.map(|seconds| format!("{seconds:.1}"))),
                or_empty(run.missing_packets.map(|packets| packets.to_string())),
            ));
        }
    }
    let heading = "profile,rules,workload,entries,packets_per_second,emc_share,megaflow_share,\
                   lookups_per_hit,upcalls_per_second,megaflows,load_seconds,settled_seconds,\
                   missing_packets";
    study.write_csv("pipeline-open-vswitch.csv", heading, &rows)?;
    Ok(Some(grid(measured)))
}

fn megaflows(turn: &SwitchRate) -> f64 {
    coordinate(turn.megaflows)
}

/// Returns the table of means over rule sets.
fn grid(measured: &Measured) -> Grid {
    let mut rows = Vec::new();
    for (workload, (what, _)) in WORKLOADS.iter().enumerate() {
        for (place, &size) in measured.sizes.iter().enumerate() {
            let runs = measured.switch_runs(workload);
            let runs: Vec<&SwitchRun> = runs
                .filter(|(at, _)| at.1 == place)
                .map(|(_, run)| run)
                .collect();
            let of_runs = |value: &dyn Fn(&SwitchRun) -> f64| {
                mean(&runs.iter().map(|run| value(run)).collect::<Vec<_>>())
            };
            let of_turns = |value: fn(&SwitchRate) -> f64| of_runs(&|run| run.median(value));
            let percent = |value: fn(&SwitchRate) -> f64| format!("{:.0}", 100.0 * of_turns(value));
            let settled = runs.iter().filter(|run| run.settled_seconds.is_some());
            let compared = runs.iter().filter_map(|run| run.missing_packets);
            let compared: Vec<u64> = compared.collect();
            rows.push(vec![
                (*what).to_owned(),
                size_name(size),
                format!("{:.0}", of_runs(&|run| coordinate(run.entries))),
                short(mpps(of_turns(|turn| turn.packets_per_second))),
                percent(|turn| turn.emc_share),
                percent(|turn| turn.megaflow_share),
                format!("{:.1}", of_turns(|turn| turn.lookups_per_hit)),
                format!("{:.0}", of_turns(|turn| turn.upcalls_per_second)),
                format!("{:.0}", of_turns(megaflows)),
                format!("{} of {}", settled.count(), runs.len()),
                format!("{} of {}", compared.len(), runs.len()),
                compared
                    .iter()
                    .max()
                    .map_or_else(|| "–".to_owned(), u64::to_string),
            ]);
        }
    }
    let columns = [
        "traffic",
        "rules",
        "entries",
        "M packets/s",
        "EMC, %",
        "megaflows, %",
        "tables probed a megaflow hit",
        "upcalls/s",
        "megaflows",
        "caches filled",
        "counts compared",
        "packets in no count, most",
    ];
    Grid {
        title: "Open vSwitch with its caches, mean over rule sets".to_owned(),
        columns: columns.map(str::to_owned).to_vec(),
        words: 2,
        rows,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_a_row_for_each_workload_and_size() {
        let rates = |workload: usize, _, place: usize| {
            let rate = coordinate(1 + workload) * coordinate(1 + place);
            ([1.0; 2], Some(rate))
        };
        let measured = Measured::of_rates(&[1_000, 64_000], rates);
        let grid = grid(&measured);
        assert_eq!(grid.rows.len(), 4);
        assert_eq!(
            grid.rows[3],
            [
                "default rule",
                "64k",
                "900",
                "4.00",
                "25",
                "75",
                "3.0",
                "0",
                "500",
                "12 of 12",
                "12 of 12",
                "2"
            ]
        );
        assert!(grid.rows.iter().all(|row| row.len() == grid.columns.len()));
    }
}
