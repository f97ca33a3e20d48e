//! What building costs as rule sets grow: time and memory.

use std::io::Write as _;

use classyard::{EngineSpec, Limits, NoProgress};
use classyard_workload::diagnostic::ReadOptions;
use classyard_workload::formats::{RuleFormat, read_policy, write_policy};

use super::{Study, coordinate};
use crate::bench::{size_name, timed};
use crate::chart::{Chart, Series};
use crate::failure::Failure;
use crate::output::stdout;
use crate::output::table::{Side, Table};

/// Numbers of rules unless others are asked for.
const SIZES: [usize; 7] = [10_000, 20_000, 50_000, 100_000, 200_000, 500_000, 1_000_000];

const ENGINE: &str = "tuplemerge";

pub(super) fn draw(study: &Study<'_>) -> Result<(), Failure> {
    let spec = EngineSpec::parse(ENGINE).expect("a registered engine");
    let spec = spec.seeded(0);
    let sizes = study.sizes(&SIZES);
    let mut rows = Vec::new();
    let (mut times, mut bytes) = (Vec::new(), Vec::new());
    let mut table = Table::new(&[
        ("profile", Side::Left),
        ("rules", Side::Right),
        ("parse s", Side::Right),
        ("build s", Side::Right),
        ("index bytes/rule", Side::Right),
        ("all bytes/rule", Side::Right),
        ("tables", Side::Right),
    ]);
    for (name, profile) in &study.profiles {
        let (mut time, mut size) = (Vec::new(), Vec::new());
        for &rules in &sizes {
            let generated = study.policy(profile, rules)?;
            let mut text = Vec::new();
            write_policy(&generated, RuleFormat::Classbench, &mut text)
                .map_err(|error| Failure::usage(error.to_string()))?;
            drop(generated);
            let text = String::from_utf8(text).expect("the writer writes text");
            let (loaded, parse_seconds) = timed(|| {
                let format = Some(RuleFormat::Classbench);
                read_policy(name, &text, format, None, &ReadOptions::default())
            });
            let policy = loaded?.value;
            let (built, build_seconds) =
                timed(|| policy.build(&spec, &Limits::default(), &mut NoProgress));
            let built = built.map_err(|error| Failure::usage(error.to_string()))?;
            let stats = built.part(classyard::policy::PartId::FIRST).stats();
            let per_rule = |bytes: usize| coordinate(bytes) / coordinate(policy.len().max(1));
            rows.push(format!(
                "{name},{},{parse_seconds:.4},{build_seconds:.4},{},{},{}",
                policy.len(),
                stats.index_bytes,
                stats.bytes(),
                stats.tables
            ));
            table.row(vec![
                name.clone(),
                size_name(rules),
                format!("{parse_seconds:.3}"),
                format!("{build_seconds:.3}"),
                format!("{:.1}", per_rule(stats.index_bytes)),
                format!("{:.1}", per_rule(stats.bytes())),
                stats.tables.to_string(),
            ]);
            time.push((coordinate(policy.len()), parse_seconds + build_seconds));
            size.push((coordinate(policy.len()), coordinate(stats.bytes()) / 1e6));
        }
        times.push(Series::line(name, time));
        bytes.push(Series::line(name, size));
    }
    let heading = "profile,rules,parse_seconds,build_seconds,index_bytes,bytes,tables";
    study.write_csv("growth.csv", heading, &rows)?;
    let chart = Chart {
        title: "Reading a ClassBench file and building tuplemerge",
        x_label: "rules",
        y_label: "CPU seconds, parsing and building",
        log_x: true,
        log_y: true,
    };
    study.draw("growth.svg", &chart, &times)?;
    let chart = Chart {
        title: "Memory of tuplemerge, rules included",
        x_label: "rules",
        y_label: "megabytes",
        log_x: true,
        log_y: true,
    };
    study.draw("memory.svg", &chart, &bytes)?;
    let mut out = stdout();
    table.write(&mut out)?;
    out.flush()?;
    Ok(())
}
