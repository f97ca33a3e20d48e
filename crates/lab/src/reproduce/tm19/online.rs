//! [TM19] Figs. 1, 3 and 4: engines whose rules come one by one, with their times of
//! updates and of single lookups, and their memory.
//!
//! The protocols are from §IV.A. For lookups, rules are inserted one by one into an empty
//! engine, in the same random order for all engines; then the trace is looked up. For
//! updates, half of the rules are inserted, and a shuffled list of insertions and
//! deletions is timed; the list is the same for all engines.
//!
//! [TM19]: classyard::papers#tm19

use std::sync::Arc;

use classyard::{EngineSpec, Policy, PolicyTrace, RuleId, Winner};
use classyard_report::chart::{Chart, Series};
use classyard_report::failure::Failure;
use classyard_workload::generate::Profile;
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_xoshiro::Xoshiro256PlusPlus;
use serde::{Deserialize, Serialize};

use super::coverage::Coverage;
use super::online_engines::{ENGINES, Measured, PARTITION_SORT, TUPLE_MERGE, TUPLE_SPACE};
use super::{online_claims, tables};
use crate::bench::{
    Protocol, SCANNED_RULES, Spread, answers, carry_out, inserted, single_rate, size_name, subset,
    wrong_answers,
};
use crate::reproduce::Study;
use crate::reproduce::claims::{Grid, Section};
use crate::reproduce::paper_values::PaperValues;
use crate::reproduce::statistics::coordinate;

/// Passes over the trace, interleaved over the engines; the median counts.
const TIMED_PASSES: usize = 3;

/// Costs of lookups after rules were inserted one by one.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Looked {
    pub(super) tables: usize,
    /// Bytes held for lookups, without the rules.
    pub(super) index_bytes: usize,
    pub(super) bytes: usize,
    pub(super) lookup_ns: f64,
    pub(super) wrong: usize,
}

/// Costs of updates.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Updated {
    pub(super) update_ns: f64,
    pub(super) wrong: usize,
}

/// Draws the figures.
pub(in crate::reproduce) fn draw(study: &mut Study<'_>) -> Result<Section, Failure> {
    let sizes = tables::sizes(study);
    let profiles = study.profiles.clone();
    let names: Vec<String> = profiles.iter().map(|(name, _)| name.clone()).collect();
    study.expect_points(2 * profiles.len() * sizes.len() * study.lists());
    let mut measured = Measured::default();
    let (mut rows, mut wrong) = (Vec::new(), 0);
    for (place, &size) in sizes.iter().enumerate() {
        for (number, (name, profile)) in profiles.iter().enumerate() {
            for list in 0..study.lists() {
                let point = format!(
                    "online lookups {name} {size} {list}, {}, {} engines",
                    study.headers(),
                    ENGINES.len()
                );
                let looked: Vec<Looked> = study.point(&point, |study| {
                    let policy = study.policy_of(profile, size, list)?;
                    let trace = study.trace_of(&policy, list)?;
                    let few = study.few_headers(&policy, list)?;
                    let seed = study.list_seed(list);
                    all_built(look(&specs(), &policy, &trace, &few, seed))
                })?;
                let updated = updates(study, name, profile, size, list)?;
                let cell = (number, place);
                let column = |value: fn(&Looked) -> f64| looked.iter().map(value).collect();
                measured.lookups.add(cell, column(|one| one.lookup_ns));
                let bytes = column(|one| coordinate(one.index_bytes));
                measured.index_bytes.add(cell, bytes);
                measured
                    .bytes
                    .add(cell, column(|one| coordinate(one.bytes)));
                let times = updated.iter().map(|one| one.update_ns).collect();
                measured.updates.add(cell, times);
                for (index, (engine, ..)) in ENGINES.iter().enumerate() {
                    let (look, update) = (looked[index], updated[index]);
                    wrong += look.wrong + update.wrong;
                    rows.push(format!(
                        "{name},{size},{list},{engine},{:.2},{:.2},{},{},{},{}",
                        update.update_ns,
                        look.lookup_ns,
                        look.tables,
                        look.index_bytes,
                        look.bytes,
                        look.wrong + update.wrong
                    ));
                }
            }
        }
    }
    let heading = "profile,rules,list,engine,update_ns,lookup_ns,tables,index_bytes,bytes,wrong";
    study.write_csv("online.csv", heading, &rows)?;
    let coverage = Coverage {
        paper_sizes: &tables::SIZES,
        sizes: &sizes,
        names: &names,
    };
    let mut section = Section {
        title: "Online: updates, lookups and memory (Figs. 1, 3 and 4; §IV.B, §IV.C)".to_owned(),
        method: method(study, wrong),
        claims: online_claims::claims(&measured, coverage),
        grids: grids(&measured, &sizes, &names),
        pictures: Vec::new(),
    };
    pictures(study, &measured, &sizes, &names, &mut section)?;
    Ok(section)
}

fn method(study: &Study<'_>, wrong: usize) -> String {
    let mut method = format!(
        "{} rule set(s) for each profile and size. Lookups: rules come one by one in a random \
         order, the same for all engines; {} headers are looked up one at a time, all engines in \
         turns, and the median of {TIMED_PASSES} passes counts. Updates: half of the rules come one by \
         one, then {} insertions and as many deletions, shuffled, are timed together. Times are \
         CPU times of one thread. The paper classifies 1,000,000 headers, makes 500,000 + 500,000 \
         changes, and has 5 rule sets for each seed. A relative time in the tables is the mean of \
         ratios over rule sets, as in the paper; claims are judged by the median of the ratios. \
         PS is partition-sort:leaf=1, which sorts all rules as in the paper. TSS is \
         tss:mask=addresses, which hashes only the addresses, as the simulator that the paper's \
         authors published. That simulator computes memory by a formula (19 bytes a rule, 4 a \
         pointer); here it is what the engines hold.",
        study.lists(),
        study.headers(),
        study.changes()
    );
    method.push_str(match wrong {
        0 => " All engines gave the same answers, a sample of which was compared with a scan.",
        _ => " WRONG: some answers differ from a scan of the rules; see online.csv.",
    });
    method
}

/// The result of each engine, or the reason why there is none.
type Results<T> = Vec<Result<T, String>>;

/// Returns the results of the paper's engines, which take all generated rules.
fn all_built<T>(results: Results<T>) -> Result<Vec<T>, Failure> {
    results
        .into_iter()
        .map(|one| one.map_err(Failure::usage))
        .collect()
}

/// Inserts the rules one by one in a random order, the same for all engines, and times
/// lookups. `few` refills CPU caches.
pub(super) fn look(
    engines: &[EngineSpec],
    policy: &Policy,
    trace: &PolicyTrace,
    few: &PolicyTrace,
    seed: u64,
) -> Results<Looked> {
    let order = shuffled(policy.ids(), seed);
    let built = engines.iter().map(|engine| {
        let classifier = inserted(engine, policy, &order);
        classifier.map(|classifier| (classifier, Vec::new()))
    });
    let mut built: Vec<_> = built
        .map(|one| one.map_err(|error| error.to_string()))
        .collect();
    for _ in 0..TIMED_PASSES {
        for (classifier, times) in built.iter_mut().flatten() {
            // Refills the CPU caches after the previous engine's pass.
            single_rate(classifier, few);
            times.push(1e9 / single_rate(classifier, trace));
        }
    }
    let winners: Vec<_> = built
        .iter()
        .flatten()
        .map(|one| answers(&one.0, trace))
        .collect();
    let winners: Vec<_> = winners.iter().map(Vec::as_slice).collect();
    let wrong = wrong_answers(policy, trace, &winners, None, SCANNED_RULES / 10);
    let mut wrong = wrong.into_iter();
    let looked = built.into_iter().map(|one| {
        let (classifier, times) = one?;
        let stats = classifier.parts().iter().map(|part| part.stats());
        let stats: Vec<_> = stats.collect();
        Ok(Looked {
            tables: stats.iter().map(|stats| stats.tables).sum(),
            index_bytes: stats.iter().map(|stats| stats.index_bytes).sum(),
            bytes: stats.iter().map(classyard::Stats::bytes).sum(),
            lookup_ns: Spread::of(&times).expect("measured").median,
            wrong: wrong.next().expect("one for each that is built"),
        })
    });
    looked.collect()
}

/// Times updates with all engines, or returns the stored times.
fn updates(
    study: &mut Study<'_>,
    name: &str,
    profile: &Arc<Profile>,
    size: usize,
    list: usize,
) -> Result<Vec<Updated>, Failure> {
    let point = format!(
        "online updates {name} {size} {list}, {}, {} engines",
        study.changes(),
        ENGINES.len()
    );
    study.point(&point, |study| {
        let policy = study.policy_of(profile, size, list)?;
        let protocol = Protocol::new(policy.ids(), study.changes(), study.list_seed(list));
        let last = subset(&policy, &protocol.last);
        let trace = study.few_headers(&last, list)?;
        all_built(update(&specs(), &policy, &protocol, &trace))
    })
}

/// Times the list of updates, and compares answers for a trace afterwards.
pub(super) fn update(
    engines: &[EngineSpec],
    policy: &Policy,
    protocol: &Protocol,
    trace: &PolicyTrace,
) -> Results<Updated> {
    let last = subset(policy, &protocol.last);
    let steps = coordinate(protocol.steps.len().max(1));
    let timed = engines.iter().map(|engine| {
        let classifier = inserted(engine, policy, &protocol.initial);
        let mut classifier = classifier.map_err(|error| error.to_string())?;
        let seconds = carry_out(&mut classifier, policy, &protocol.steps);
        let seconds = seconds.map_err(|error| error.to_string())?;
        Ok((seconds * 1e9 / steps, answers(&classifier, trace)))
    });
    let timed: Results<(f64, Vec<Winner>)> = timed.collect();
    let winners: Vec<&[Winner]> = timed.iter().flatten().map(|one| &one.1[..]).collect();
    let wrong = wrong_answers(&last, trace, &winners, None, SCANNED_RULES / 10);
    let mut wrong = wrong.into_iter();
    let updated = timed.into_iter().map(|one| {
        let (update_ns, _) = one?;
        let wrong = wrong.next().expect("one for each that is built");
        Ok(Updated { update_ns, wrong })
    });
    updated.collect()
}

/// Returns the figure's engines.
fn specs() -> Vec<EngineSpec> {
    let specs = ENGINES.map(|(engine, ..)| {
        let spec = EngineSpec::parse(engine).expect("a registered engine with these options");
        spec.seeded(0)
    });
    specs.to_vec()
}

fn shuffled(ids: &[RuleId], seed: u64) -> Vec<RuleId> {
    let mut order = ids.to_vec();
    order.shuffle(&mut Xoshiro256PlusPlus::seed_from_u64(seed));
    order
}

/// The paper's mean nanoseconds with 256k rules, of updates and of lookups.
const PAPER_UPDATES_NS: [(usize, f64); 3] = [
    (TUPLE_MERGE, 1_780.0),
    (PARTITION_SORT, 2_270.0),
    (TUPLE_SPACE, 1_280.0),
];
const PAPER_LOOKUPS_NS: [(usize, f64); 3] = [
    (TUPLE_MERGE, 640.0),
    (PARTITION_SORT, 650.0),
    (TUPLE_SPACE, 2_930.0),
];

/// The caption of Fig. 1.
const NO_NUMBERS: &str = "The paper draws the same quantities in Fig. 1 and states no number.";

/// Returns the mean ratios of Fig. 3a or Fig. 4a. `file` is `update` or `lookup`.
pub(super) fn paper_ratios(file: &str) -> PaperValues {
    let (sorted, space) = match file {
        "update" => (online_claims::UPDATE_PS, 1.0 / online_claims::UPDATE_TSS),
        _ => (online_claims::LOOKUP_PS, online_claims::LOOKUP_TSS),
    };
    let values = PaperValues::new(
        "means over all seeds and sizes stated in §IV.B and §IV.C; updates of TupleMerge take 1.39 \
         times as long as those of tuple space search",
    );
    let ratios = [(PARTITION_SORT, sorted), (TUPLE_SPACE, space)];
    ratios.iter().fold(
        values.on(super::SIMULATOR_MACHINE),
        |values, &(engine, ratio)| {
            let (colour_key, label, _) = ENGINES[engine];
            values.level(&format!("{label}, mean"), colour_key, ratio)
        },
    )
}

/// Returns the means over seeds with 256k rules. `file` is `update` or `lookup`.
pub(super) fn paper_means(file: &str) -> PaperValues {
    let means = match file {
        "update" => PAPER_UPDATES_NS,
        _ => PAPER_LOOKUPS_NS,
    };
    let values = PaperValues::new("stated in §IV.B and §IV.C as means over all seeds");
    means.iter().fold(
        values.on(super::SIMULATOR_MACHINE),
        |values, &(engine, ns)| {
            let (colour_key, label, _) = ENGINES[engine];
            values.level(&format!("{label}, mean"), colour_key, ns)
        },
    )
}

fn pictures(
    study: &mut Study<'_>,
    measured: &Measured,
    sizes: &[usize],
    names: &[String],
    section: &mut Section,
) -> Result<(), Failure> {
    let largest = sizes.len() - 1;
    let largest_size = size_name(sizes[largest]);
    for (file, what, figure, sheet) in [
        ("update", "an update", "3", &measured.updates),
        ("lookup", "a lookup", "4", &measured.lookups),
    ] {
        let relative = ENGINES
            .iter()
            .enumerate()
            .filter(|(engine, _)| *engine != TUPLE_MERGE);
        let lines = relative.map(|(engine, (colour_key, label, mark))| {
            let points = (0..sizes.len()).filter_map(|place| {
                let ratio = sheet.ratio(engine, TUPLE_MERGE, |at| at.1 == place)?;
                Some((coordinate(sizes[place]), ratio))
            });
            Series::marked(label, colour_key, *mark, points)
        });
        let mut lines: Vec<Series> = lines.collect();
        let chart = Chart {
            title: &format!("Time of {what}, relative to tuplemerge ([TM19] Fig. {figure}a)"),
            x_label: "rules",
            y_label: "times that of tuplemerge (above 1: slower)",
            log_x: true,
            log_y: true,
        };
        let name = format!("online-{file}-relative.svg");
        study.add_paper(&name, &paper_ratios(file), &mut lines);
        study.draw(&name, &chart, &lines)?;
        section.pictures.push(name);

        let dots = ENGINES
            .iter()
            .enumerate()
            .map(|(engine, (colour_key, label, mark))| {
                let points = (0..names.len()).filter_map(|number| {
                    let ns = sheet.mean(engine, |at| at == (number, largest))?;
                    Some((coordinate(number), ns))
                });
                Series::marked(label, colour_key, *mark, points)
            });
        let mut dots: Vec<Series> = dots.collect();
        let chart = Chart {
            title: &format!("Time of {what}, {largest_size} rules ([TM19] Fig. {figure}b)"),
            x_label: "profile",
            y_label: &format!("nanoseconds for {what}"),
            log_x: false,
            log_y: true,
        };
        let name = format!("online-{file}-profiles.svg");
        match sizes[largest] == online_claims::LARGEST {
            true => study.add_paper(&name, &paper_means(file), &mut dots),
            false => study.caption(&name, "The paper's values are for 256k rules."),
        }
        study.draw_groups(&name, &chart, names, &dots)?;
        section.pictures.push(name);
    }
    // The trade-off of Fig. 1, over access control lists if any profile is one.
    let acl = |number: usize| names[number].starts_with("acl");
    let has_acl = (0..names.len()).any(acl);
    let within =
        |at: (usize, usize)| (!has_acl || acl(at.0)) && sizes[at.1] <= 32_000.max(sizes[0]);
    let dots = ENGINES
        .iter()
        .enumerate()
        .map(|(engine, (colour_key, label, mark))| {
            let point = (measured.lookups.mean(engine, within))
                .zip(measured.updates.mean(engine, within))
                .map(|(lookup, update)| (lookup / 1e3, update / 1e3));
            Series::marked(label, colour_key, *mark, point)
        });
    let dots: Vec<Series> = dots.collect();
    let which = if has_acl {
        "access control lists"
    } else {
        "profiles"
    };
    let chart = Chart {
        title: &format!("Lookups against updates, {which} up to 32k ([TM19] Fig. 1)"),
        x_label: "microseconds a lookup",
        y_label: "microseconds an update",
        log_x: true,
        log_y: true,
    };
    study.caption("online-tradeoff.svg", NO_NUMBERS);
    study.draw("online-tradeoff.svg", &chart, &dots)?;
    section.pictures.push("online-tradeoff.svg".to_owned());
    Ok(())
}

fn grids(measured: &Measured, sizes: &[usize], names: &[String]) -> Vec<Grid> {
    let mut columns = vec!["rules".to_owned()];
    columns.extend(ENGINES.map(|(engine, ..)| engine.to_owned()));
    columns.extend(["PS / TM".to_owned(), "TSS / TM".to_owned()]);
    let mut grids = Vec::new();
    for (title, sheet, scale) in [
        (
            "Time of an update, µs, mean over rule sets",
            &measured.updates,
            1e-3,
        ),
        (
            "Time of a lookup, µs, mean over rule sets",
            &measured.lookups,
            1e-3,
        ),
        (
            "Memory of the search structure, MiB, rules and their actions not counted",
            &measured.index_bytes,
            1.0 / 1_048_576.0,
        ),
        (
            "Memory with rules and their actions, MiB",
            &measured.bytes,
            1.0 / 1_048_576.0,
        ),
    ] {
        let rows = sizes.iter().enumerate().map(|(place, &size)| {
            let mut row = vec![size_name(size)];
            row.extend((0..ENGINES.len()).map(|engine| {
                let value = sheet.mean(engine, |at| at.1 == place);
                value.map_or("–".to_owned(), |value| format!("{:.3}", value * scale))
            }));
            row.extend([PARTITION_SORT, TUPLE_SPACE].map(|engine| {
                let ratio = sheet.ratio(engine, TUPLE_MERGE, |at| at.1 == place);
                ratio.map_or("–".to_owned(), |ratio| format!("{ratio:.2}"))
            }));
            row
        });
        grids.push(Grid {
            title: title.to_owned(),
            columns: columns.clone(),
            words: 0,
            rows: rows.collect(),
        });
    }
    let largest = sizes.len() - 1;
    let mut columns = vec!["profile".to_owned()];
    columns.extend(ENGINES.map(|(engine, ..)| format!("{engine}: update")));
    columns.extend(ENGINES.map(|(engine, ..)| format!("{engine}: lookup")));
    let rows = names.iter().enumerate().map(|(number, name)| {
        let mut row = vec![name.clone()];
        for sheet in [&measured.updates, &measured.lookups] {
            row.extend((0..ENGINES.len()).map(|engine| {
                let value = sheet.mean(engine, |at| at == (number, largest));
                value.map_or("–".to_owned(), |ns| format!("{:.3}", ns / 1e3))
            }));
        }
        row
    });
    grids.push(Grid {
        title: format!("Each profile at {} rules, µs", size_name(sizes[largest])),
        columns,
        words: 1,
        rows: rows.collect(),
    });
    grids
}
