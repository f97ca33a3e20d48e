//! Writes rules, reads the text, and compares the decisions about packets.

use classyard::policy::{PartId, PolicyTrace};
use classyard::rule::Winner;
use classyard::{EngineSpec, Limits, NoProgress, Policy, Scratch};
use classyard_configs::{Conditions, Config, ConfigFormat, WriteOptions, read, write};
use classyard_workload::diagnostic::ReadOptions;
use classyard_workload::formats::{RuleFormat, read_policy};

pub(crate) use crate::random_numbers::Random;

/// Reads rules in the project's own format.
pub(crate) fn rules(text: &str) -> Policy {
    let format = Some(RuleFormat::Rules);
    let loaded = read_policy("test.rules", text, format, None, &ReadOptions::DEFAULT);
    loaded
        .unwrap_or_else(|error| panic!("{error}\n{text}"))
        .value
}

/// Writes rules whose lists end with a rule for every packet.
pub(crate) fn text(policy: &Policy, format: ConfigFormat) -> String {
    let options = WriteOptions::default();
    match write(policy, format, &options) {
        Ok(written) => written.text,
        Err(error) => panic!("{error:?}"),
    }
}

/// Reads a configuration without problems.
pub(crate) fn config(text: &str, format: ConfigFormat) -> Config {
    let conditions = &mut Conditions::default();
    match read("written", text, format, &ReadOptions::DEFAULT, conditions) {
        Ok(config) => config,
        Err(error) => panic!("{error}\n{text}"),
    }
}

/// Returns the action of each header by the engine `linear`, `none` without a rule.
pub(crate) fn actions(policy: &Policy, headers: &[(PartId, Vec<u128>)]) -> Vec<String> {
    let spec = EngineSpec::parse("linear").unwrap();
    let classifier = policy
        .build(&spec, &Limits::default(), &mut NoProgress)
        .unwrap();
    let mut trace = PolicyTrace::new(policy.schemas());
    for (part, values) in headers {
        trace.push(*part, values).unwrap();
    }
    let mut winners = vec![Winner::MISS; headers.len()];
    classifier.classify(&trace, &mut winners, &mut Scratch::default());
    let action = |winner: &Winner| {
        let id = winner.rule()?;
        let rule = policy.rule(id).next().unwrap().1;
        policy.action_name(rule.action()).map(str::to_owned)
    };
    let actions = winners
        .iter()
        .map(|winner| action(winner).unwrap_or_else(|| "none".into()));
    actions.collect()
}
