//! [TM19] Fig. 2: the number of tables against the number of rules.
//!
//! [TM19]: classyard::papers#tm19

use classyard::{EngineSpec, Limits, NoProgress};
use classyard_report::chart::{Chart, Series};
use classyard_report::failure::Failure;

use crate::bench::size_name;
use crate::reproduce::Study;
use crate::reproduce::claims::{Claim, Grid, Section, Verdict};
use crate::reproduce::statistics::{coordinate, mean};

/// The paper's engines, and our variants of them.
const ENGINES: [&str; 8] = [
    "tss",
    "tss:ports=off",
    "tuplemerge",
    "partition-sort:leaf=1",
    "partition-sort",
    "tuplemerge:order=worst-first",
    "tuplemerge-offline",
    "tuplemerge-vpp",
];

/// Indices in [`ENGINES`]: tuple space search as in the paper's simulator, without ports;
/// TupleMerge; PartitionSort as in the paper and in our default form.
const TUPLE_SPACE: usize = 1;
const TUPLE_MERGE: usize = 2;
const PARTITION_SORT: usize = 3;
const WITH_LISTS: usize = 4;

/// Seeds for which TupleMerge needs the most tables in the paper.
const WORST: [&str; 2] = ["acl2", "fw1"];

/// The paper's maximum of TupleMerge's tables over the other seeds.
const MOST_TABLES: f64 = 38.0;

/// Default numbers of rules.
pub(super) const SIZES: [usize; 9] = [
    1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 64_000, 128_000, 256_000,
];

/// Numbers of rules of a quick reproduction.
const FEW_SIZES: [usize; 3] = [1_000, 4_000, 16_000];

/// Returns the numbers of rules of a reproduction.
pub(super) fn sizes(study: &Study<'_>) -> Vec<usize> {
    study.sizes(if study.args.quick { &FEW_SIZES } else { &SIZES })
}

/// Draws the figure.
pub(in crate::reproduce) fn draw(study: &mut Study<'_>) -> Result<Section, Failure> {
    let sizes = sizes(study);
    let mut rows = Vec::new();
    // counts[engine][size] = one number for each profile
    let mut counts = vec![vec![Vec::new(); sizes.len()]; ENGINES.len()];
    let mut grid = Grid {
        title: "Tables".to_owned(),
        columns: vec!["profile".to_owned(), "rules".to_owned()],
        words: 1,
        rows: Vec::new(),
    };
    grid.columns.extend(ENGINES.map(str::to_owned));
    let profiles = study.profiles.clone();
    study.expect_points(profiles.len() * sizes.len());
    for (name, profile) in &profiles {
        for (size_index, &size) in sizes.iter().enumerate() {
            let point = format!("tables {name} {size}");
            let (rules, tables) = study.point(&point, |study| {
                let policy = study.policy(profile, size)?;
                let tables = ENGINES.map(|engine| -> Result<usize, Failure> {
                    // A fixed seed gives the same numbers of tables in every process.
                    let spec = EngineSpec::parse(engine).expect("a registered engine");
                    let spec = spec.seeded(0);
                    let built = policy.build(&spec, &Limits::default(), &mut NoProgress)?;
                    Ok(built.parts().iter().map(|part| part.stats().tables).sum())
                });
                let tables: Result<Vec<usize>, Failure> = tables.into_iter().collect();
                Ok((policy.len(), tables?))
            })?;
            let mut cells = vec![name.clone(), size_name(size)];
            for (engine_index, (engine, &tables)) in ENGINES.iter().zip(&tables).enumerate() {
                rows.push(format!("{name},{rules},{engine},{tables}"));
                counts[engine_index][size_index].push(coordinate(tables));
                cells.push(tables.to_string());
            }
            grid.rows.push(cells);
        }
    }
    for (size_index, &size) in sizes.iter().enumerate() {
        let mut cells = vec!["mean".to_owned(), size_name(size)];
        cells.extend(
            counts
                .iter()
                .map(|sizes| format!("{:.1}", mean(&sizes[size_index]))),
        );
        grid.rows.push(cells);
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
    let names: Vec<&str> = profiles.iter().map(|(name, _)| name.as_str()).collect();
    Ok(Section {
        title: "Tables against rules (Fig. 2)".to_owned(),
        method: "Rules are generated from each profile as ClassBench does, and every engine is \
                 built over them; the picture has the mean over profiles. The simulator that the \
                 paper's authors published leaves ports out of the masks of tuple space search, \
                 so tss:ports=off is the TSS of the claims. The tables of partition-sort are its \
                 partitions; leaf=1 sorts all rules, as in the paper."
            .to_owned(),
        claims: claims(&counts, &sizes, &names),
        grids: vec![grid],
        pictures: vec!["tables.svg".to_owned()],
    })
}

/// `counts[engine][size]` has a number for each profile.
fn claims(counts: &[Vec<Vec<f64>>], sizes: &[usize], names: &[&str]) -> Vec<Claim> {
    let fewer = (0..sizes.len()).filter(|&size| {
        let mean_tables = |engine: usize| mean(&counts[engine][size]);
        2.0 * mean_tables(TUPLE_MERGE) <= mean_tables(TUPLE_SPACE)
    });
    let fewer = fewer.count();
    let last = sizes.len() - 1;
    let largest_size = size_name(sizes[last]);
    let mean_tables = |engine: usize| mean(&counts[engine][last]);
    let tables_by_seed = names.iter().copied().zip(&counts[TUPLE_MERGE][last]);
    let (worst, others): (Vec<_>, Vec<_>) =
        tables_by_seed.partition(|(name, _)| WORST.contains(name));
    let max_tables = others
        .iter()
        .map(|(_, tables)| **tables)
        .fold(0.0, f64::max);
    let worst: Vec<String> = worst
        .iter()
        .map(|(name, tables)| format!("{name} {tables}"))
        .collect();
    vec![
        Claim {
            place: "Fig. 2",
            paper: "TupleMerge needs far fewer tables than tuple space search, at every number \
                    of rules.",
            measured: format!(
                "{:.0} and {:.0} at {largest_size} rules; at most half as many at {fewer} of {} \
                 sizes",
                mean_tables(TUPLE_MERGE),
                mean_tables(TUPLE_SPACE),
                sizes.len()
            ),
            verdict: Verdict::for_most(fewer, sizes.len(), "more than half as many elsewhere"),
        },
        Claim {
            place: "Fig. 2, §IV.B",
            paper: "TupleMerge typically needs a few more partitions than PartitionSort: 30 and \
                    11 on average at 256k rules.",
            measured: format!(
                "{:.1} and {:.1} at {largest_size} rules ({:.1} with lists of up to eight rules, \
                 our default)",
                mean_tables(TUPLE_MERGE),
                mean_tables(PARTITION_SORT),
                mean_tables(WITH_LISTS)
            ),
            verdict: Verdict::of(
                mean_tables(TUPLE_MERGE) > mean_tables(PARTITION_SORT),
                "PartitionSort needs as many or more",
            ),
        },
        Claim {
            place: "§IV.B",
            paper: "At 256k rules the worst seeds are ACL2 with 131 tables of TupleMerge and FW1 \
                    with 53; the other ten have at most 38.",
            measured: match worst.as_slice() {
                [] => format!("at {largest_size} rules at most {max_tables}"),
                some => format!(
                    "at {largest_size} rules {}; the others at most {max_tables}",
                    some.join(", ")
                ),
            },
            verdict: match max_tables <= MOST_TABLES {
                true => Verdict::Holds,
                false => Verdict::InPart(format!("another seed has more than {MOST_TABLES}")),
            },
        },
    ]
}
