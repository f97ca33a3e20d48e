//! [TM19] Figs. 7 and 8, §IV.F: search time against the collision limit.
//!
//! [TM19]: classyard::papers#tm19

use classyard::policy::PartId;
use classyard::{
    EngineSpec, Limits, NoProgress, Policy, PolicyTrace, Priority, RuleId, RuleSet, Scratch,
};
use classyard_report::chart::{Chart, Mark, Series};
use classyard_report::failure::Failure;
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_xoshiro::Xoshiro256PlusPlus;
use serde::{Deserialize, Serialize};

use super::coverage::Coverage;
use crate::bench::{
    SCANNED_RULES, Spread, answers, batch_rate, single_rate, size_name, wrong_answers,
};
use crate::reproduce::Study;
use crate::reproduce::claims::{Case, Claim, Gap, Grid, Part, Section, Threshold};
use crate::reproduce::paper_values::PaperValues;
use crate::reproduce::statistics::{coordinate, mean};

/// The collision limits of both figures.
const LIMITS: [usize; 14] = [1, 2, 4, 6, 8, 10, 15, 20, 25, 30, 40, 60, 80, 120];

/// The best limit of each form in the paper.
const PAPER_LIMITS: [usize; 2] = [40, 8];

/// The paper's greatest cost of these limits over the best ones, as shares: over single
/// seeds and over mixed rule sets.
const PAPER_COSTS: [f64; 2] = [0.078, 0.044];
const PAPER_MIXED_COSTS: [f64; 2] = [0.024, 0.028];

/// The offline form is slower above this limit in the paper.
const OFFLINE_LOSES: usize = 25;

/// Default numbers of rules, and the maximum.
const SIZES: [usize; 3] = [1_000, 8_000, 64_000];
const MOST_RULES: usize = 64_000;

/// Numbers of rules of a quick reproduction.
const FEW_SIZES: [usize; 2] = [1_000, 16_000];

/// Mixed rule sets of a quick reproduction.
const FEW_MIXES: usize = 2;

/// Timed passes of each measurement, interleaved over the limits: fewer than five have no
/// confidence interval.
const TIMED_PASSES: usize = 5;

/// A limit counts as best if its time is within this share of the least time. Runs differ
/// by that much, and the curves are flat.
const FLAT_SHARE: f64 = 0.03;

/// The forms, each with its option that limits collisions.
pub(super) const FORMS: [(&str, &str); 2] =
    [("tuplemerge", "c"), ("tuplemerge-offline", "offline-c")];

/// Nanoseconds a header of one form over one rule set, for each limit.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Times {
    rules: usize,
    /// Medians of passes.
    single: Vec<f64>,
    batch: Vec<f64>,
    /// Single lookups in each pass, for each limit.
    passes: Vec<Vec<f64>>,
}

/// Times of each form over one rule set.
pub(super) type Both = [Times; 2];

/// Draws the figures.
pub(in crate::reproduce) fn draw(study: &mut Study<'_>) -> Result<Section, Failure> {
    let mut sizes = study.sizes(if study.args.quick { &FEW_SIZES } else { &SIZES });
    sizes.sort_unstable();
    let min_size = sizes[0];
    sizes.retain(|&size| size <= MOST_RULES.max(min_size));
    let profiles = study.profiles.clone();
    let mixes = mixes(
        &profiles
            .iter()
            .map(|(name, _)| name.as_str())
            .collect::<Vec<_>>(),
    );
    let mixes = &mixes[..mixes.len().min(if study.args.quick {
        FEW_MIXES
    } else {
        mixes.len()
    })];
    study.expect_points((profiles.len() * sizes.len() + mixes.len()) * FORMS.len());
    let mut rows = Vec::new();
    // times_by_size[size][profile]
    let mut times_by_size: Vec<Vec<(String, Both)>> = Vec::new();
    for &size in &sizes {
        let mut of_size = Vec::new();
        for (name, profile) in &profiles {
            let times = both(study, name, size, &mut rows, |study| {
                study.policy(profile, size)
            })?;
            of_size.push((name.clone(), times));
        }
        times_by_size.push(of_size);
    }
    let size = sizes[sizes.len() - 1];
    let mut mixed = Vec::new();
    for &(acl, fw) in mixes {
        let name = format!("{}+{}", profiles[acl].0, profiles[fw].0);
        let times = both(study, &name, size, &mut rows, |study| {
            let half = |profile: usize| study.policy(&profiles[profile].1, size.div_ceil(2));
            Ok(merged(&name, &half(acl)?, &half(fw)?, study.args.seed))
        })?;
        mixed.push((name, times));
    }
    let heading = "profile,rules,engine,c,single_ns,batch_ns";
    study.write_csv("collision-limit.csv", heading, &rows)?;
    let largest = times_by_size.last().expect("at least one size");
    let mut series = Vec::new();
    for (form, (engine, _)) in FORMS.iter().enumerate() {
        for (kind, mark) in [("single", Mark::Square), ("batch", Mark::Circle)] {
            let times = means(largest, form, kind == "single");
            let points = LIMITS.iter().zip(times);
            let points = points.map(|(&limit, time)| (coordinate(limit), time));
            series.push(Series::marked(
                &format!("{engine}, {kind}"),
                engine,
                mark,
                points,
            ));
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
    study.add_paper("collision-limit.svg", &paper_values(), &mut series);
    study.draw("collision-limit.svg", &chart, &series)?;
    let names: Vec<String> = profiles.iter().map(|(name, _)| name.clone()).collect();
    let coverage = Coverage {
        paper_sizes: &SIZES,
        sizes: &sizes,
        names: &names,
    };
    Ok(Section {
        title: "Search time against the collision limit (Figs. 7 and 8, §IV.F)".to_owned(),
        method: format!(
            "Engines with each limit c look the same {} headers up in turns, {TIMED_PASSES} times; \
             medians. The best c is the least one whose time is within {:.0} % of the least. A \
             mixed rule set has half of its rules from an access control list and half from a \
             firewall, in random order.",
            study.headers(),
            FLAT_SHARE * 100.0
        ),
        claims: claims(&times_by_size, &mixed, coverage),
        grids: grids(&sizes, &times_by_size, &mixed),
        pictures: vec!["collision-limit.svg".to_owned()],
    })
}

/// Returns the best limits of §IV.F.
pub(super) fn paper_values() -> PaperValues {
    let values =
        PaperValues::new("the best collision limits, stated in §IV.F; no times are stated");
    let forms = FORMS.iter().zip(PAPER_LIMITS);
    forms.fold(values, |values, ((engine, _), limit)| {
        let name = format!("best c of {engine}");
        values.positions(&name, engine, [coordinate(limit)])
    })
}

/// Pairs access control lists with firewalls, by profile index.
fn mixes(names: &[&str]) -> Vec<(usize, usize)> {
    let indices = |kind: &str| {
        let names = names.iter().enumerate();
        let indices = names.filter(|(_, name)| name.starts_with(kind));
        indices.map(|(place, _)| place).collect::<Vec<_>>()
    };
    indices("acl").into_iter().zip(indices("fw")).collect()
}

/// Shuffles the rules of two policies into one. Each policy's rules keep their order, so
/// no rule becomes hidden by another rule of its own policy.
fn merged(name: &str, one: &Policy, other: &Policy, seed: u64) -> Policy {
    let (one, other) = (one.part(PartId::FIRST), other.part(PartId::FIRST));
    let mut firsts = vec![true; one.len()];
    firsts.resize(one.len() + other.len(), false);
    firsts.shuffle(&mut Xoshiro256PlusPlus::seed_from_u64(seed));
    let mut rules = RuleSet::new(one.schema());
    let (mut ones, mut others) = (one.by_rank().into_iter(), other.by_rank().into_iter());
    for (index, &first) in firsts.iter().enumerate() {
        let (set, next) = match first {
            true => (one, ones.next()),
            false => (other, others.next()),
        };
        let next = next.expect("as many as were counted");
        let rule = set.rule(next as usize);
        let priority = u32::try_from(firsts.len() - index).expect("fewer rules than ids");
        let id = RuleId::from_index(index);
        let added = rules.add(id, Priority(priority), rule.action(), &rule.fields());
        added.expect("both have the same schema");
    }
    Policy::from_parts(name, vec![rules])
}

/// Times both forms over a rule set, or returns the stored times.
fn both(
    study: &mut Study<'_>,
    name: &str,
    size: usize,
    rows: &mut Vec<String>,
    policy: impl Fn(&Study<'_>) -> Result<Policy, Failure>,
) -> Result<Both, Failure> {
    let mut of_form = |form: usize| -> Result<Times, Failure> {
        let (engine, option) = FORMS[form];
        let point = format!("collision limit {name} {size} {engine}, {TIMED_PASSES} passes");
        let times: Times = study.point(&point, |study| {
            let policy = policy(study)?;
            let trace = study.trace(&policy)?;
            measure(&policy, &trace, engine, option)
        })?;
        for (limit, (one, many)) in LIMITS.iter().zip(times.single.iter().zip(&times.batch)) {
            let rules = times.rules;
            rows.push(format!(
                "{name},{rules},{engine},{limit},{one:.1},{many:.1}"
            ));
        }
        Ok(times)
    };
    Ok([of_form(0)?, of_form(1)?])
}

/// Returns the mean over rule sets for each limit.
fn means(sets: &[(String, Both)], form: usize, single: bool) -> Vec<f64> {
    let of_limit = |limit: usize| {
        let times = sets.iter().map(|(_, both)| match single {
            true => both[form].single[limit],
            false => both[form].batch[limit],
        });
        mean(&times.collect::<Vec<_>>())
    };
    (0..LIMITS.len()).map(of_limit).collect()
}

impl Times {
    /// Returns the best limit of single lookups, and the times with the best limit and with
    /// the paper's limit, in nanoseconds a header.
    pub(super) fn summary(&self, form: usize) -> [f64; 3] {
        let least_ns = least(&self.single);
        [
            coordinate(best(&self.single)),
            least_ns,
            least_ns * (1.0 + cost(&self.single, form)),
        ]
    }
}

fn least(times: &[f64]) -> f64 {
    times.iter().copied().fold(f64::INFINITY, f64::min)
}

/// Returns the least limit that is as good as the best.
fn best(times: &[f64]) -> usize {
    let max_time = least(times) * (1.0 + FLAT_SHARE);
    let index = times.iter().position(|&time| time <= max_time);
    LIMITS[index.unwrap_or(0)]
}

/// Returns the extra time of the paper's limit over the best time, as a share.
fn cost(times: &[f64], form: usize) -> f64 {
    let index = LIMITS.iter().position(|&limit| limit == PAPER_LIMITS[form]);
    times[index.expect("one of the limits")] / least(times) - 1.0
}

/// Returns for each pass the time with the paper's limit over the time with the best limit.
fn costs(times: &Times, form: usize) -> Vec<f64> {
    let index = LIMITS.iter().position(|&limit| limit == PAPER_LIMITS[form]);
    let best_index = (0..LIMITS.len()).min_by(|&a, &b| times.single[a].total_cmp(&times.single[b]));
    let (Some(index), Some(best_index)) = (index, best_index) else {
        return Vec::new();
    };
    let pairs = times.passes[index].iter().zip(&times.passes[best_index]);
    pairs.map(|(fixed, best)| fixed / best).collect()
}

pub(super) fn claims(
    times_by_size: &[Vec<(String, Both)>],
    mixed: &[(String, Both)],
    coverage: Coverage<'_>,
) -> Vec<Claim> {
    let largest = times_by_size.last().expect("at least one size");
    let absent: Vec<Case> = coverage.absent_seeds().collect();
    vec![
        best_limits(largest),
        beyond_25(largest),
        grows(times_by_size),
        fixed(
            "A fixed limit of 40 (online) or 8 (offline) costs at most 7.8 % (FW1) and 4.4 % (FW5) \
             beside the best limit of a seed.",
            largest,
            PAPER_COSTS,
            &absent,
        ),
        fixed(
            "Over rule sets mixed from ACL and FW seeds, the fixed limits cost at most 2.4 % \
             online and 2.8 % offline.",
            mixed,
            PAPER_MIXED_COSTS,
            &absent,
        ),
    ]
}

/// The best limit of one form over one rule set.
fn best_of(both: &Both, form: usize) -> f64 {
    coordinate(best(&both[form].single))
}

fn best_limits(largest: &[(String, Both)]) -> Claim {
    let ratios = largest.iter();
    let ratios = ratios.map(|(_, both)| best_of(both, 0) / best_of(both, 1));
    Claim::new(
        "Figs. 7, 8",
        "Online TupleMerge needs a larger collision limit than offline TupleMerge: the best ones \
         are 40 and 8.",
    )
    .part(
        Part::new(
            "best limit of a rule set, online / offline",
            Threshold::Above(1.0),
        )
        .paper(coordinate(PAPER_LIMITS[0]) / coordinate(PAPER_LIMITS[1]))
        .case(Case::samples("", ratios))
        .grid("Each rule set", ""),
    )
}

fn beyond_25(largest: &[(String, Both)]) -> Claim {
    let limits = LIMITS.iter().enumerate();
    let limits = limits.filter(|(_, limit)| **limit > OFFLINE_LOSES);
    let cases = limits.map(|(place, limit)| {
        let ratios = largest
            .iter()
            .map(|(_, [online, offline])| offline.single[place] / online.single[place]);
        Case::samples(format!("c = {limit}"), ratios)
    });
    Claim::new(
        "§IV.F",
        "For c > 25, offline TupleMerge is slower than online TupleMerge with the same c, on \
         average.",
    )
    .part(
        Part::new("time of a lookup, offline / online", Threshold::Above(1.0))
            .cases(cases)
            .picture("collision-limit.svg"),
    )
}

fn grows(times_by_size: &[Vec<(String, Both)>]) -> Claim {
    let forms = FORMS.iter().enumerate();
    let cases = forms.map(|(form, (engine, _))| match times_by_size {
        [first, .., last] => {
            let pairs = last.iter().zip(first);
            let growth =
                pairs.map(|((_, last), (_, first))| best_of(last, form) / best_of(first, form));
            Case::samples(*engine, growth)
        }
        _ => Case::missing(*engine, Gap::NotRun("a second size")),
    });
    Claim::new(
        "§IV.F",
        "Smaller rule lists generally need a smaller collision limit.",
    )
    .part(
        Part::new(
            "best limit of a profile: at the largest size / at the smallest",
            Threshold::Above(1.0),
        )
        .cases(cases)
        .grid("Best collision limits", ""),
    )
}

/// The claim about the cost of fixed limits, at most `limits` for any rule set. `absent` has
/// cases of seeds that were left out.
fn fixed(paper: &'static str, sets: &[(String, Both)], limits: [f64; 2], absent: &[Case]) -> Claim {
    let mut claim = Claim::new("§IV.F", paper);
    for (form, limit) in limits.into_iter().enumerate() {
        let (engine, _) = FORMS[form];
        let part = Part::new(
            format!(
                "{engine}, time of a lookup: c = {} / the best c",
                PAPER_LIMITS[form]
            ),
            Threshold::AtMost(1.0 + limit),
        );
        let cases = sets
            .iter()
            .map(|(name, both)| Case::samples(name.as_str(), costs(&both[form], form)));
        claim = claim.part(
            part.paper(1.0 + limit)
                .cases(cases)
                .cases(absent.iter().cloned())
                .grid("Each rule set", ""),
        );
    }
    claim
}

fn grids(
    sizes: &[usize],
    times_by_size: &[Vec<(String, Both)>],
    mixed: &[(String, Both)],
) -> Vec<Grid> {
    let mut summary = Grid {
        title: "Best collision limits, mean over profiles".to_owned(),
        columns: [
            "rules",
            "engine",
            "lookups",
            "best c",
            "ns at best c",
            "ns at the paper's c",
        ]
        .map(str::to_owned)
        .to_vec(),
        words: 3,
        rows: Vec::new(),
    };
    for (&size, sets) in sizes.iter().zip(times_by_size) {
        for (form, (engine, _)) in FORMS.iter().enumerate() {
            for kind in ["single", "batch"] {
                let times = means(sets, form, kind == "single");
                summary.rows.push(vec![
                    size_name(size),
                    (*engine).to_owned(),
                    kind.to_owned(),
                    best(&times).to_string(),
                    format!("{:.1}", least(&times)),
                    format!("{:.1}", least(&times) * (1.0 + cost(&times, form))),
                ]);
            }
        }
    }
    let largest = times_by_size.last().expect("at least one size");
    let rows = largest.iter().chain(mixed).map(|(name, both)| {
        let mut row = vec![name.clone()];
        for (form, times) in both.iter().enumerate() {
            let cost = cost(&times.single, form) * 100.0;
            row.extend([best(&times.single).to_string(), format!("{cost:.1}")]);
        }
        row
    });
    let each = Grid {
        title: format!(
            "Each rule set at {}, single lookups: the best c, and what c = 40 (online) and c = 8 \
             (offline) cost beside it",
            size_name(sizes[sizes.len() - 1])
        ),
        columns: [
            "rules",
            "online: best c",
            "cost %",
            "offline: best c",
            "cost %",
        ]
        .map(str::to_owned)
        .to_vec(),
        words: 1,
        rows: rows.collect(),
    };
    vec![summary, each]
}

/// Times all limits of a form, interleaved.
///
/// # Errors
/// If an engine cannot be built, or gives a wrong answer.
pub(super) fn measure(
    policy: &Policy,
    trace: &PolicyTrace,
    form: &str,
    option: &str,
) -> Result<Times, Failure> {
    let mut built = Vec::new();
    for limit in LIMITS {
        let spec = EngineSpec::parse(&format!("{form}:{option}={limit}"));
        let spec = spec.expect("a registered engine with that option");
        let spec = spec.seeded(0);
        let classifier = policy.build(&spec, &Limits::default(), &mut NoProgress)?;
        built.push((classifier, Vec::new(), Vec::new()));
    }
    let mut scratch = Scratch::new();
    for _ in 0..TIMED_PASSES {
        for (classifier, singles, batches) in &mut built {
            singles.push(1e9 / single_rate(classifier, trace));
            batches.push(1e9 / batch_rate(classifier, trace, &mut scratch));
        }
    }
    let winners: Vec<_> = built.iter().map(|one| answers(&one.0, trace)).collect();
    let winners: Vec<_> = winners.iter().map(Vec::as_slice).collect();
    let wrong = wrong_answers(policy, trace, &winners, None, SCANNED_RULES / 10);
    if let Some((limit, wrong)) = LIMITS.iter().zip(wrong).find(|(_, wrong)| *wrong > 0) {
        return Err(Failure::usage(format!(
            "WRONG: {wrong} answers of {form}:{option}={limit} over {} rules of {} differ from a \
             scan",
            policy.len(),
            policy.name()
        )));
    }
    let median = |samples: &[f64]| Spread::of(samples).expect("measured").median;
    Ok(Times {
        rules: policy.len(),
        single: built.iter().map(|(_, one, _)| median(one)).collect(),
        batch: built.iter().map(|(_, _, many)| median(many)).collect(),
        passes: built.iter().map(|(_, one, _)| one.clone()).collect(),
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use classyard::Schema;
    use classyard_workload::generate::Profile;

    use super::*;
    use crate::bench::generated_policy;
    use classyard_report::input::family::{FamilyName, profile};

    fn policy(name: &str, rules: usize) -> Policy {
        let profile: Arc<Profile> = profile(name).unwrap();
        let family = FamilyName::Ipv4.with(profile, 0.0);
        generated_policy(family, rules, 1, &mut NoProgress).unwrap()
    }

    #[test]
    fn a_mix_has_all_rules_in_their_order() {
        let (one, other) = (policy("acl1", 60), policy("fw1", 40));
        let mix = merged("mix", &one, &other, 7);
        assert_eq!(mix.len(), one.len() + other.len());
        let rules = mix.part(PartId::FIRST);
        assert_eq!(rules.schema(), &Schema::ipv4_5tuple());
        let fields = |set: &RuleSet| -> Vec<_> {
            let ranked = set.by_rank().into_iter();
            ranked.map(|at| set.rule(at as usize).fields()).collect()
        };
        let ranked_rules = fields(rules);
        for policy in [&one, &other] {
            let mut places = ranked_rules.iter();
            for rule in fields(policy.part(PartId::FIRST)) {
                assert!(places.any(|other| *other == rule), "{rule:?}");
            }
        }
    }

    #[test]
    fn lists_are_paired_with_firewalls() {
        assert_eq!(
            mixes(&["acl1", "fw1", "ipc1", "acl2", "fw2"]),
            [(0, 1), (3, 4)]
        );
        assert!(mixes(&["acl1"]).is_empty());
    }

    #[test]
    fn a_flat_curve_has_its_best_limit_where_it_becomes_flat() {
        let mut times = vec![200.0; LIMITS.len()];
        times[4..].fill(101.0);
        times[13] = 100.0;
        assert_eq!(best(&times), 8);
        assert!((cost(&times, 1) - 0.01).abs() < 1e-9);
    }
}
