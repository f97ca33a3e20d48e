//! The rates of contenders in tables, pictures and CSV files.

use super::WORKLOADS;

/// A contender: its name, its cache, and its millions of packets a second by workload, for
/// each size or each profile.
pub(super) struct Column {
    pub(super) name: String,
    pub(super) cache: &'static str,
    pub(super) rates: [Vec<f64>; 2],
}

impl Column {
    /// Returns a column of `count` rates. `rate` receives the workload and the index.
    pub(super) fn of(
        name: &str,
        cache: &'static str,
        count: usize,
        rate: impl Fn(usize, usize) -> f64,
    ) -> Column {
        Column {
            name: name.to_owned(),
            cache,
            rates: [0, 1].map(|workload| (0..count).map(|index| rate(workload, index)).collect()),
        }
    }
}

/// Returns the rows of a CSV file: a label, the traffic, the engine, its cache and its rate.
pub(super) fn csv_rows(labels: &[String], columns: &[Column]) -> Vec<String> {
    let mut rows = Vec::new();
    for (workload, (what, _)) in WORKLOADS.iter().enumerate() {
        for column in columns {
            for (label, rate) in labels.iter().zip(&column.rates[workload]) {
                let name = column.name.replace(',', "");
                rows.push(format!("{label},{what},{name},{},{rate:.4}", column.cache));
            }
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_has_no_comma_in_a_cell() {
        let column = Column::of("tss, single ports", "none", 2, |workload, index| {
            [[1.0, 2.0], [0.5, 0.25]][workload][index]
        });
        let labels = ["1000", "64000"].map(str::to_owned);
        let rows = csv_rows(&labels, &[column]);
        assert_eq!(rows.len(), 4);
        assert_eq!(rows[1], "64000,synthetic,tss single ports,none,2.0000");
        assert_eq!(rows[2], "1000,default rule,tss single ports,none,0.5000");
    }
}
