//! One rule set: tables and rates of everyone.

use classyard::{EngineSpec, Limits, NoProgress, Policy};
use classyard_datapath::flow::TableId;
use serde::{Deserialize, Serialize};

use super::acl::{Acl, single_ports};
use super::check::check;
use super::frames::Traffic;
use super::runner::Runner;
use super::{BARE, CONTENDERS, ENGINES, FOREST, LINEAR, OVS, SINGLE_TM, TM, TSS};
use crate::bench::Spread;
use crate::commands::reproduce::Study;
use crate::failure::Failure;

/// Turns, and seconds of one: of each contender with each workload.
pub(super) const TURNS: usize = 5;
pub(super) const TURN: f64 = 0.025;

/// The same of a quick reproduction.
pub(super) const FEW_TURNS: usize = 3;
pub(super) const SHORT_TURN: f64 = 0.006;

/// The share of a turn that is processed before it, since the contender before has had
/// the caches.
pub(super) const WARM_UP: f64 = 0.25;

/// Seconds for which `linear` looks up, of each workload, what others are held against.
const CHECK: f64 = 0.3;
const SHORT_CHECK: f64 = 0.05;

/// Forms over the rules as they are, outside of a pipeline: what the paper's simulation
/// has, and tuple space search with ports in its masks.
pub(super) const SIMULATED: [&str; 4] = ["tss:ports=off", "tuplemerge", "tss", "tuplemerge-vpp"];

/// What is known of one rule set.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Point {
    pub(super) rules: usize,
    /// Flow entries of the rules, and of those with single ports.
    pub(super) flows: [usize; 2],
    /// The share of the default rule's traffic that it alone matches.
    pub(super) default_share: f64,
    /// Packets over which all engines over the rules were compared.
    pub(super) compared: usize,
    /// Tables of [`SIMULATED`].
    pub(super) simulated: [usize; 4],
    /// Tables of each contender's access list.
    pub(super) tables: [usize; CONTENDERS.len()],
    /// Packets a second of each contender, by workload.
    pub(super) rates: [[f64; CONTENDERS.len()]; 2],
}

/// Measures a rule set.
pub(super) fn measure(study: &Study<'_>, policy: &Policy, list: usize) -> Result<Point, Failure> {
    let quick = study.args.quick;
    let seed = study.list_seed(list);
    let simulated = simulated(policy)?;
    let traffic = Traffic::of(policy, study.headers(), seed)?;
    let single = single_ports(policy);
    let single_traffic = Traffic::of(&single, study.headers(), seed)?;

    let acl = Acl::of(policy)?;
    let single_acl = Acl::of(&single)?;
    let mut runners = Vec::new();
    for (number, contender) in CONTENDERS.iter().enumerate() {
        let pipeline = match number {
            OVS | SINGLE_TM => single_acl.pipeline(contender.engine)?,
            BARE => Acl::without_rules()?.pipeline(contender.engine)?,
            _ => acl.pipeline(contender.engine)?,
        };
        runners.push(Runner::new(pipeline));
    }
    let seconds = if quick { SHORT_CHECK } else { CHECK };
    let [linear, tss, tm, forest, ovs, single_tm, _] = &mut runners[..] else {
        unreachable!("a runner for each contender");
    };
    let mut others = [TSS, TM, FOREST].map(|place| CONTENDERS[place].engine);
    let mut others = others
        .iter_mut()
        .zip([tss, tm, forest])
        .map(|(engine, runner)| (&**engine, runner))
        .collect::<Vec<_>>();
    let compared = check(policy, &traffic.frames, linear, &mut others, seconds)?;
    let mut single_linear = Runner::new(single_acl.pipeline(CONTENDERS[LINEAR].engine)?);
    let mut others = [
        (CONTENDERS[OVS].label, ovs),
        (CONTENDERS[SINGLE_TM].label, single_tm),
    ];
    let frames = &single_traffic.frames;
    check(&single, frames, &mut single_linear, &mut others, seconds)?;
    drop(single_linear);

    let (turns, turn) = match quick {
        true => (FEW_TURNS, SHORT_TURN),
        false => (TURNS, TURN),
    };
    let mut rates = vec![vec![Vec::new(); CONTENDERS.len()]; 2];
    for _ in 0..turns {
        for (workload, rates) in rates.iter_mut().enumerate() {
            for (number, runner) in runners.iter_mut().enumerate() {
                let frames = match number {
                    OVS | SINGLE_TM => &single_traffic.frames[workload],
                    _ => &traffic.frames[workload],
                };
                runner.vectors.run(frames, turn * WARM_UP);
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
        tables: [0; CONTENDERS.len()],
        rates: [[0.0; CONTENDERS.len()]; 2],
    };
    for (number, runner) in runners.iter().enumerate() {
        point.tables[number] = runner.pipeline.engine_tables(TableId(0));
        for (medians, rates) in point.rates.iter_mut().zip(&rates) {
            medians[number] = median(&rates[number]);
        }
    }
    Ok(point)
}

/// Tables of engines over the rules themselves.
fn simulated(policy: &Policy) -> Result<[usize; 4], Failure> {
    let mut counts = [0; 4];
    for (count, engine) in counts.iter_mut().zip(SIMULATED) {
        let spec = EngineSpec::parse(engine).expect("a registered engine");
        let built = policy.build(&spec.seeded(0), &Limits::default(), &mut NoProgress)?;
        *count = built.parts().iter().map(|part| part.stats().tables).sum();
    }
    Ok(counts)
}

/// Runners of [`ENGINES`] over a rule set, whose answers were compared.
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
    let seconds = if study.args.quick { SHORT_CHECK } else { CHECK };
    let (linear, others) = runners.split_first_mut().expect("all engines");
    let names = ENGINES[1..].iter().map(|&place| CONTENDERS[place].engine);
    let mut others: Vec<(&str, &mut Runner)> = names.zip(others).collect();
    check(policy, &traffic.frames, linear, &mut others, seconds)?;
    Ok(runners)
}
