//! One rule set: tables and rates of all contenders.

use classyard::{EngineSpec, Limits, NoProgress, Policy};
use classyard_report::failure::Failure;
use serde::{Deserialize, Serialize};

use super::acl::{ACL_TABLE, Acl, single_ports};
use super::check::check;
use super::fragments;
use super::frames::Traffic;
use super::runner::Runner;
use super::{
    CONTENDERS, ENGINES, FOREST, LINEAR_SEARCH, NO_RULES, OVS_TUPLE_MERGE, OVS_TUPLE_SPACE,
    TUPLE_MERGE, TUPLE_SPACE,
};
use crate::bench::Spread;
use crate::reproduce::Study;

/// Turns of each contender with each workload, and seconds of a turn.
pub(super) const TURN_COUNT: usize = 5;
pub(super) const TURN_SECONDS: f64 = 0.025;

/// Turns and seconds of a quick reproduction.
pub(super) const FEW_TURNS: usize = 3;
pub(super) const SHORT_TURN_SECONDS: f64 = 0.006;

/// The share of a turn that is processed untimed before it, to refill the CPU caches
/// after the previous contender's turn.
pub(super) const WARM_UP_SHARE: f64 = 0.25;

/// Seconds for which `linear` looks up packets of each workload, for comparison.
pub(super) const CHECK_SECONDS: f64 = 0.3;
pub(super) const SHORT_CHECK_SECONDS: f64 = 0.05;

/// Engines over unchanged rules outside of a pipeline: the engines of the paper's
/// simulation, and tuple space search with all fields in its masks.
pub(super) const SIMULATED: [&str; 4] =
    ["tss:mask=addresses", "tuplemerge", "tss", "tuplemerge-vpp"];

/// Measured values of one rule set.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Point {
    pub(super) rules: usize,
    /// Flow entries of the rules, and of the rules with single ports.
    pub(super) flows: [usize; 2],
    /// The share of the default rule's traffic that only the default rule matches.
    pub(super) default_share: f64,
    /// Packets over which all engines of the unchanged rules were compared.
    pub(super) compared: usize,
    /// Numbers of tables of [`SIMULATED`].
    pub(super) simulated: [usize; 4],
    /// Numbers of tables of [`fragments::ENGINES`] over rules with forms for fragments.
    pub(super) fragments: [usize; 2],
    /// Numbers of tables of each contender's access list.
    pub(super) tables: [usize; CONTENDERS.len()],
    /// Packets a second of each contender, by workload.
    pub(super) rates: [[f64; CONTENDERS.len()]; 2],
}

/// Measures a rule set.
pub(super) fn measure(study: &Study<'_>, policy: &Policy, list: usize) -> Result<Point, Failure> {
    let quick = study.args.quick;
    let seed = study.list_seed(list);
    let simulated = simulated(policy)?;
    let fragments = fragments::tables(policy, &study.few_headers(policy, list)?)?;
    let traffic = Traffic::of(policy, study.headers(), seed)?;
    let single = single_ports(policy);
    let single_traffic = Traffic::of(&single, study.headers(), seed)?;

    let acl = Acl::of(policy)?;
    let single_acl = Acl::of(&single)?;
    let mut runners = Vec::new();
    for (number, contender) in CONTENDERS.iter().enumerate() {
        let pipeline = match number {
            OVS_TUPLE_SPACE | OVS_TUPLE_MERGE => single_acl.pipeline(contender.engine)?,
            NO_RULES => Acl::without_rules()?.pipeline(contender.engine)?,
            _ => acl.pipeline(contender.engine)?,
        };
        runners.push(Runner::new(pipeline));
    }
    let seconds = if quick {
        SHORT_CHECK_SECONDS
    } else {
        CHECK_SECONDS
    };
    let [linear, tss, tm, forest, ovs, single_tm, _] = &mut runners[..] else {
        unreachable!("a runner for each contender");
    };
    let mut names = [TUPLE_SPACE, TUPLE_MERGE, FOREST].map(|place| CONTENDERS[place].engine);
    let mut compared_engines = names
        .iter_mut()
        .zip([tss, tm, forest])
        .map(|(engine, runner)| (&**engine, runner))
        .collect::<Vec<_>>();
    let compared = check(
        policy,
        &traffic.frames,
        linear,
        &mut compared_engines,
        seconds,
    )?;
    let mut single_linear = Runner::new(single_acl.pipeline(CONTENDERS[LINEAR_SEARCH].engine)?);
    let mut single_engines = [
        (CONTENDERS[OVS_TUPLE_SPACE].label, ovs),
        (CONTENDERS[OVS_TUPLE_MERGE].label, single_tm),
    ];
    let frames = &single_traffic.frames;
    check(
        &single,
        frames,
        &mut single_linear,
        &mut single_engines,
        seconds,
    )?;
    drop(single_linear);

    let (turns, turn) = match quick {
        true => (FEW_TURNS, SHORT_TURN_SECONDS),
        false => (TURN_COUNT, TURN_SECONDS),
    };
    let mut rates = vec![vec![Vec::new(); CONTENDERS.len()]; 2];
    for _ in 0..turns {
        for (workload, rates) in rates.iter_mut().enumerate() {
            for (number, runner) in runners.iter_mut().enumerate() {
                let frames = match number {
                    OVS_TUPLE_SPACE | OVS_TUPLE_MERGE => &single_traffic.frames[workload],
                    _ => &traffic.frames[workload],
                };
                runner.vectors.run(frames, turn * WARM_UP_SHARE);
                rates[number].push(runner.vectors.run(frames, turn));
            }
        }
    }
    let median = |rates: &Vec<f64>| Spread::of(rates).expect("measured").median;
    let mut point = Point {
        rules: policy.len(),
        flows: [acl.flows, single_acl.flows],
        default_share: traffic.default_share,
        compared,
        simulated,
        fragments,
        tables: [0; CONTENDERS.len()],
        rates: [[0.0; CONTENDERS.len()]; 2],
    };
    for (number, runner) in runners.iter().enumerate() {
        point.tables[number] = runner.pipeline.engine_tables(ACL_TABLE);
        for (medians, rates) in point.rates.iter_mut().zip(&rates) {
            medians[number] = median(&rates[number]);
        }
    }
    Ok(point)
}

/// Returns the numbers of tables of engines over the rules themselves.
fn simulated(policy: &Policy) -> Result<[usize; 4], Failure> {
    let mut counts = [0; 4];
    for (count, engine) in counts.iter_mut().zip(SIMULATED) {
        let spec = EngineSpec::parse(engine).expect("a registered engine");
        let built = policy.build(&spec.seeded(0), &Limits::default(), &mut NoProgress)?;
        *count = built.parts().iter().map(|part| part.stats().tables).sum();
    }
    Ok(counts)
}

/// Returns runners of [`ENGINES`] over a rule set, after comparing their answers.
pub(super) fn engines(
    study: &Study<'_>,
    policy: &Policy,
    traffic: &Traffic,
) -> Result<Vec<Runner>, Failure> {
    let acl = Acl::of(policy)?;
    let mut runners = Vec::new();
    for place in ENGINES {
        runners.push(Runner::new(acl.pipeline(CONTENDERS[place].engine)?));
    }
    let seconds = if study.args.quick {
        SHORT_CHECK_SECONDS
    } else {
        CHECK_SECONDS
    };
    let (linear, others) = runners.split_first_mut().expect("all engines");
    let names = ENGINES[1..].iter().map(|&place| CONTENDERS[place].engine);
    let mut named_others: Vec<(&str, &mut Runner)> = names.zip(others).collect();
    check(policy, &traffic.frames, linear, &mut named_others, seconds)?;
    Ok(runners)
}
