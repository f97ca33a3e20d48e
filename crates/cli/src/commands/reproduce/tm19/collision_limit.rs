//! [TM19] Figs. 7 and 8: search time against the collision limit.
//!
//! [TM19]: classyard::papers#tm19

use std::sync::Arc;

use classyard::{EngineSpec, Limits, NoProgress, Scratch};
use classyard_workload::generate::Profile;
use serde::{Deserialize, Serialize};

use super::tables;
use crate::bench::{Spread, batch_rate, single_rate, size_name};
use crate::chart::{Chart, Mark, Series};
use crate::commands::reproduce::Study;
use crate::commands::reproduce::claims::{Claim, Grid, Section, Verdict};
use crate::commands::reproduce::statistics::{coordinate, mean};
use crate::failure::Failure;

/// The limits of both figures.
const LIMITS: [usize; 14] = [1, 2, 4, 6, 8, 10, 15, 20, 25, 30, 40, 60, 80, 120];

/// The limits that are best in the paper, for each form.
const BEST: [usize; 2] = [40, 8];

/// The most rules to measure with, where the sizes leave a choice.
const MOST_RULES: usize = 64_000;

/// Repeats of each measurement, in turns over the limits.
const REPEATS: usize = 3;

/// The forms, and the option that limits collisions.
const FORMS: [(&str, &str); 2] = [("tuplemerge", "c"), ("tuplemerge-offline", "offline-c")];

/// Nanoseconds a header with one profile, a form and each limit.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Times {
    rules: usize,
    single: Vec<f64>,
    batch: Vec<f64>,
}

/// Draws the figures.
pub(in crate::commands::reproduce) fn draw(study: &mut Study<'_>) -> Result<Section, Failure> {
    let sizes = tables::sizes(study);
    let fitting = sizes.iter().filter(|&&size| size <= MOST_RULES).max();
    let least = sizes.iter().min().expect("at least one size");
    let size = *fitting.unwrap_or(least);
    let mut rows = Vec::new();
    // times[form][limit] = nanoseconds for each profile, single and batch
    let mut single = vec![vec![Vec::new(); LIMITS.len()]; FORMS.len()];
    let mut batch = single.clone();
    let profiles = study.profiles.clone();
    study.expect_points(profiles.len() * FORMS.len());
    for (name, profile) in &profiles {
        for (form_index, (form, option)) in FORMS.iter().enumerate() {
            let point = format!("collision limit {name} {size} {form}");
            let times = study.point(&point, |study| measure(study, profile, size, form, option))?;
            let both = times.single.iter().zip(&times.batch);
            for (limit_index, (&one, &many)) in both.enumerate().take(LIMITS.len()) {
                let limit = LIMITS[limit_index];
                rows.push(format!(
                    "{name},{},{form},{limit},{one:.1},{many:.1}",
                    times.rules
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
    let mut grid = Grid {
        title: "Best collision limits".to_owned(),
        columns: ["engine", "lookups", "best c", "ns"]
            .map(str::to_owned)
            .to_vec(),
        words: 2,
        rows: Vec::new(),
    };
    // (best limit, how much slower the paper's best limit is) for each form
    let mut found = Vec::new();
    for (form_index, (form, _)) in FORMS.iter().enumerate() {
        for (kind, times, mark) in [
            ("single", &single, Mark::Square),
            ("batch", &batch, Mark::Circle),
        ] {
            let points = means(&times[form_index]);
            let best = points.iter().min_by(|a, b| a.1.total_cmp(&b.1));
            let &(limit, time) = best.expect("at least one limit");
            grid.rows.push(vec![
                (*form).to_owned(),
                kind.to_owned(),
                format!("{limit}"),
                format!("{time:.1}"),
            ]);
            if kind == "single" {
                let place = LIMITS.iter().position(|&limit| limit == BEST[form_index]);
                let fixed = points[place.expect("one of the limits")].1;
                found.push((limit, fixed / time - 1.0));
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
    let [(online, online_cost), (offline, offline_cost)] = [found[0], found[1]];
    Ok(Section {
        title: "Search time against the collision limit (Figs. 7 and 8)".to_owned(),
        method: format!(
            "Engines with each limit c look the same headers up in turns, {REPEATS} times; \
             medians, then the mean over profiles."
        ),
        claims: vec![
            Claim {
                place: "Figs. 7, 8",
                paper: "Online TupleMerge needs a larger collision limit than offline \
                        TupleMerge: the best ones are 40 and 8.",
                measured: format!("with single lookups the best ones are {online} and {offline}"),
                verdict: Verdict::of(online > offline, "the online limit is not the larger one"),
            },
            Claim {
                place: "Figs. 7, 8",
                paper: "A fixed limit of 40 (online) or 8 (offline) costs little beside the best \
                        one: at most 7.8 % and 4.4 % on average.",
                measured: format!(
                    "{:.1} % and {:.1} % with single lookups, mean over profiles",
                    online_cost * 100.0,
                    offline_cost * 100.0
                ),
                verdict: match (online_cost <= 0.078, offline_cost <= 0.044) {
                    (true, true) => Verdict::Holds,
                    (false, false) => Verdict::Fails("both cost more".to_owned()),
                    (true, false) => Verdict::InPart("not offline".to_owned()),
                    (false, true) => Verdict::InPart("not online".to_owned()),
                },
            },
        ],
        grids: vec![grid],
        pictures: vec!["collision-limit.svg".to_owned()],
    })
}

/// Times all limits of a form, in turns.
fn measure(
    study: &Study<'_>,
    profile: &Arc<Profile>,
    size: usize,
    form: &str,
    option: &str,
) -> Result<Times, Failure> {
    let policy = study.policy(profile, size)?;
    let trace = study.trace(&policy)?;
    let mut built = Vec::new();
    for limit in LIMITS {
        let spec = EngineSpec::parse(&format!("{form}:{option}={limit}"));
        let spec = spec.expect("a registered engine with that option");
        let spec = spec.seeded(0);
        let classifier = policy.build(&spec, &Limits::default(), &mut NoProgress)?;
        built.push((classifier, Vec::new(), Vec::new()));
    }
    let mut scratch = Scratch::new();
    for _ in 0..REPEATS {
        for (classifier, singles, batches) in &mut built {
            singles.push(1e9 / single_rate(classifier, &trace, &mut scratch));
            batches.push(1e9 / batch_rate(classifier, &trace, &mut scratch));
        }
    }
    let median = |samples: &[f64]| Spread::of(samples).expect("measured").median;
    Ok(Times {
        rules: policy.len(),
        single: built.iter().map(|(_, one, _)| median(one)).collect(),
        batch: built.iter().map(|(_, _, many)| median(many)).collect(),
    })
}
