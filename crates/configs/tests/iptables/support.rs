//! Reads a text and decides packets.

use classyard::policy::{PartId, PolicyClassifier, PolicyTrace};
use classyard::rule::Winner;
use classyard::{EngineSpec, Limits, NoProgress, Scratch};
use classyard_configs::{Conditions, Config, ConfigFormat, SourceRule, read};
use classyard_workload::diagnostic::{ReadError, ReadOptions};

pub(crate) use crate::random_numbers::Random;

/// Reads a text that may have problems.
pub(crate) fn try_read(text: &str, options: &ReadOptions) -> Result<Firewall, ReadError> {
    let mut conditions = Conditions::default();
    let config = read("fw", text, ConfigFormat::Iptables, options, &mut conditions)?;
    let spec = EngineSpec::parse("linear").unwrap();
    let classifier = config
        .policy
        .build(&spec, &Limits::default(), &mut NoProgress)
        .unwrap();
    Ok(Firewall {
        config,
        classifier,
        conditions,
    })
}

/// Reads a text without problems.
pub(crate) fn firewall(text: &str) -> Firewall {
    match try_read(text, &ReadOptions::DEFAULT) {
        Ok(firewall) => firewall,
        Err(error) => panic!("{error}\n{text}"),
    }
}

/// Returns the text of a `filter` table whose list INPUT has these rules, with the user
/// chains A, B and C.
pub(crate) fn input(rules: &str) -> String {
    let chains = ":INPUT DROP [0:0]\n:A - [0:0]\n:B - [0:0]\n:C - [0:0]\n";
    format!("*filter\n{chains}{rules}\nCOMMIT\n")
}

/// A configuration with a classifier.
pub(crate) struct Firewall {
    pub(crate) config: Config,
    pub(crate) classifier: PolicyClassifier,
    pub(crate) conditions: Conditions,
}

impl Firewall {
    /// Returns the action and the statement of a header.
    pub(crate) fn decision(&self, header: &str) -> Option<(&str, &SourceRule)> {
        let (part, header) = self.config.policy.parse_header(header).unwrap();
        self.decisions(&[(part, header.values)]).pop().unwrap()
    }

    /// Returns the action of a header, or `none`.
    pub(crate) fn action(&self, header: &str) -> &str {
        self.decision(header).map_or("none", |(action, _)| action)
    }

    /// Returns the action and the statement of each header.
    pub(crate) fn decisions(
        &self,
        headers: &[(PartId, Vec<u128>)],
    ) -> Vec<Option<(&str, &SourceRule)>> {
        let policy = &self.config.policy;
        let mut trace = PolicyTrace::new(policy.schemas());
        for (part, values) in headers {
            trace.push(*part, values).unwrap();
        }
        let mut winners = vec![Winner::MISS; headers.len()];
        self.classifier
            .classify(&trace, &mut winners, &mut Scratch::default());
        let decide = |winner: &Winner| {
            let id = winner.rule()?;
            let rule = policy.rule(id).next().unwrap().1;
            let action = policy.action_name(rule.action()).unwrap();
            Some((action, self.config.source(policy.position(id).unwrap())))
        };
        winners.iter().map(decide).collect()
    }

    /// Returns the bit of a condition as a number for headers.
    pub(crate) fn condition(&self, text: &str) -> u128 {
        let texts = self.conditions.texts();
        let bit = texts.iter().position(|other| other == text);
        1 << bit.unwrap_or_else(|| panic!("{text} is not in {texts:?}"))
    }

    /// Returns the statement of a line.
    pub(crate) fn source_at(&self, line: u32) -> &SourceRule {
        let mut sources = self.config.sources.iter();
        sources.find(|source| source.line == line).unwrap()
    }
}
