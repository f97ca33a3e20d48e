//! [TM19] Figs. 7 and 8: search time against the collision limit.
//!
//! [TM19]: classyard::papers#tm19

use std::io::Write as _;

use classyard::{EngineSpec, Limits, NoProgress, Scratch};

use super::tables::SIZES;
use super::{Study, coordinate, mean};
use crate::bench::{Spread, batch_rate, single_rate, size_name};
use crate::chart::{Chart, Mark, Series};
use crate::failure::Failure;
use crate::output::stdout;
use crate::output::table::{Side, Table};

/// The limits of both figures.
const LIMITS: [usize; 14] = [1, 2, 4, 6, 8, 10, 15, 20, 25, 30, 40, 60, 80, 120];

/// The most rules to measure with, where the sizes leave a choice.
const MOST_RULES: usize = 64_000;

/// Repeats of each measurement, in turns over the limits.
const REPEATS: usize = 3;

/// The forms, and the option that limits collisions.
const FORMS: [(&str, &str); 2] = [("tuplemerge", "c"), ("tuplemerge-offline", "offline-c")];

pub(super) fn draw(study: &Study<'_>) -> Result<(), Failure> {
    let sizes = study.sizes(&SIZES);
    let fitting = sizes.iter().filter(|&&size| size <= MOST_RULES).max();
    let Some(&size) = fitting.or(sizes.iter().min()) else {
        return Ok(());
    };
    let mut rows = Vec::new();
    // times[form][limit] = nanoseconds for each profile, single and batch
    let mut single = vec![vec![Vec::new(); LIMITS.len()]; FORMS.len()];
    let mut batch = single.clone();
    for (name, profile) in &study.profiles {
        let policy = study.policy(profile, size)?;
        let trace = study.trace(&policy)?;
        for (form_index, (form, option)) in FORMS.iter().enumerate() {
            let mut built = Vec::new();
            for limit in LIMITS {
                let spec = EngineSpec::parse(&format!("{form}:{option}={limit}"));
                let spec = spec.expect("a registered engine with that option");
                let spec = spec.seeded(0);
                let classifier = policy
                    .build(&spec, &Limits::default(), &mut NoProgress)
                    .map_err(|error| Failure::usage(error.to_string()))?;
                built.push((classifier, Vec::new(), Vec::new()));
            }
            let mut scratch = Scratch::new();
            for _ in 0..REPEATS {
                for (classifier, singles, batches) in &mut built {
                    singles.push(1e9 / single_rate(classifier, &trace, &mut scratch));
                    batches.push(1e9 / batch_rate(classifier, &trace, &mut scratch));
                }
            }
            for (limit_index, (_, singles, batches)) in built.iter().enumerate() {
                let median = |samples| Spread::of(samples).expect("measured").median;
                let (one, many) = (median(singles), median(batches));
                let limit = LIMITS[limit_index];
                rows.push(format!(
                    "{name},{},{form},{limit},{one:.1},{many:.1}",
                    policy.len()
                ));
                single[form_index][limit_index].push(one);
                batch[form_index][limit_index].push(many);
            }
        }
    }
    let heading = "profile,rules,engine,c,single_ns,batch_ns";
    study.write_csv("collision-limit.csv", heading, &rows)?;
    let means = |times: &[Vec<f64>]| -> Vec<(f64, f64)> {
        let limits = LIMITS.iter().zip(times);
        let means = limits.map(|(&limit, times)| (coordinate(limit), mean(times)));
        means.collect()
    };
    let mut series = Vec::new();
    let mut table = Table::new(&[
        ("engine", Side::Left),
        ("lookups", Side::Left),
        ("best c", Side::Right),
        ("ns", Side::Right),
    ]);
    for (form_index, (form, _)) in FORMS.iter().enumerate() {
        for (kind, times, mark) in [
            ("single", &single, Mark::Square),
            ("batch", &batch, Mark::Circle),
        ] {
            let points = means(&times[form_index]);
            let best = points.iter().min_by(|a, b| a.1.total_cmp(&b.1));
            if let Some((limit, time)) = best {
                table.row(vec![
                    (*form).to_owned(),
                    kind.to_owned(),
                    format!("{limit}"),
                    format!("{time:.1}"),
                ]);
            }
            let name = format!("{form}, {kind}");
            series.push(Series::marked(&name, form, mark, points));
        }
    }
    let title = format!(
        "Search time against collision limit, {} {}, mean over profiles ([TM19] Figs. 7-8)",
        size_name(size),
        if size == 1 { "rule" } else { "rules" }
    );
    let chart = Chart {
        title: &title,
        x_label: "collision limit c",
        y_label: "nanoseconds a header",
        log_x: true,
        log_y: false,
    };
    study.draw("collision-limit.svg", &chart, &series)?;
    let mut out = stdout();
    table.write(&mut out)?;
    out.flush()?;
    Ok(())
}
