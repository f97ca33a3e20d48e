//! [TM19] Fig. 2: the number of tables against the number of rules.
//!
//! [TM19]: classyard::papers#tm19

use std::io::Write as _;

use classyard::{EngineSpec, Limits, NoProgress};

use super::{Study, coordinate, mean};
use crate::bench::size_name;
use crate::chart::{Chart, Series};
use crate::failure::Failure;
use crate::output::stdout;
use crate::output::table::{Side, Table};

/// The paper's engines beside our variants of them.
const ENGINES: [&str; 6] = [
    "tss",
    "tss:ports=off",
    "tuplemerge",
    "tuplemerge:order=worst-first",
    "tuplemerge-offline",
    "tuplemerge-vpp",
];

/// Numbers of rules unless others are asked for.
pub(super) const SIZES: [usize; 9] = [
    1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 64_000, 128_000, 256_000,
];

pub(super) fn draw(study: &Study<'_>) -> Result<(), Failure> {
    let sizes = study.sizes(&SIZES);
    let mut rows = Vec::new();
    // counts[engine][size] = one number for each profile
    let mut counts = vec![vec![Vec::new(); sizes.len()]; ENGINES.len()];
    let mut columns = vec![("profile", Side::Left), ("rules", Side::Right)];
    columns.extend(ENGINES.map(|engine| (engine, Side::Right)));
    let mut table = Table::new(&columns);
    for (name, profile) in &study.profiles {
        for (size_index, &size) in sizes.iter().enumerate() {
            let policy = study.policy(profile, size)?;
            let mut cells = vec![name.clone(), size_name(size)];
            for (engine_index, engine) in ENGINES.iter().enumerate() {
                // Counts of tables are to be the same in every process.
                let spec = EngineSpec::parse(engine).expect("a registered engine");
                let spec = spec.seeded(0);
                let built = policy
                    .build(&spec, &Limits::default(), &mut NoProgress)
                    .map_err(|error| Failure::usage(error.to_string()))?;
                let tables: usize = built.parts().iter().map(|part| part.stats().tables).sum();
                rows.push(format!("{name},{},{engine},{tables}", policy.len()));
                counts[engine_index][size_index].push(coordinate(tables));
                cells.push(tables.to_string());
            }
            table.row(cells);
        }
    }
    for (size_index, &size) in sizes.iter().enumerate() {
        let mut cells = vec!["mean".to_owned(), size_name(size)];
        cells.extend(
            counts
                .iter()
                .map(|sizes| format!("{:.1}", mean(&sizes[size_index]))),
        );
        table.row(cells);
    }
    study.write_csv("tables.csv", "profile,rules,engine,tables", &rows)?;
    let series: Vec<Series> = ENGINES
        .iter()
        .zip(&counts)
        .map(|(engine, counts)| {
            let counted = sizes.iter().zip(counts);
            let means = counted.map(|(&size, counts)| (coordinate(size), mean(counts)));
            Series::line(engine, means)
        })
        .collect();
    let chart = Chart {
        title: "Tables against rules, mean over profiles ([TM19] Fig. 2)",
        x_label: "rules",
        y_label: "tables",
        log_x: true,
        log_y: true,
    };
    study.draw("tables.svg", &chart, &series)?;
    let mut out = stdout();
    table.write(&mut out)?;
    out.flush()?;
    Ok(())
}
