//! Reads a ruleset and decides packets.

use classyard::Winner;
use classyard::policy::{PartId, PolicyClassifier, PolicyTrace};
use classyard::{EngineSpec, Limits, NoProgress, Scratch};
use classyard_configs::{Conditions, Config, ConfigFormat, SourceRule, read};
use classyard_workload::diagnostic::{ReadError, ReadOptions};

/// A ruleset with a classifier.
pub(crate) struct Firewall {
    pub(crate) config: Config,
    pub(crate) conditions: Conditions,
    classifier: PolicyClassifier,
}

/// Reads a text that may have problems.
pub(crate) fn try_read(text: &str, options: &ReadOptions) -> Result<Firewall, ReadError> {
    let mut conditions = Conditions::default();
    let config = read("fw", text, ConfigFormat::Nftables, options, &mut conditions)?;
    let spec = EngineSpec::parse("linear").unwrap();
    let policy = &config.policy;
    let classifier = policy.build(&spec, &Limits::default(), &mut NoProgress);
    Ok(Firewall {
        classifier: classifier.unwrap(),
        config,
        conditions,
    })
}

/// Reads a text without problems.
pub(crate) fn firewall(text: &str) -> Firewall {
    try_read(text, &ReadOptions::DEFAULT).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// Returns the messages about the problems of a text.
pub(crate) fn problems(text: &str) -> String {
    match try_read(text, &ReadOptions::DEFAULT) {
        Ok(_) => String::new(),
        Err(error) => error.to_string(),
    }
}

/// Returns a table of the family `inet` with a chain `input`, whose policy is drop, and the
/// empty chains `a` and `b`.
pub(crate) fn input(rules: &str) -> String {
    format!(
        "table inet t {{\nchain a {{ }}\nchain b {{ }}\nchain input {{\n\
         type filter hook input priority 0; policy drop;\n{rules}\n}}\n}}\n"
    )
}

/// The line of the first rule of [`input`].
pub(crate) const FIRST_LINE: u32 = 6;

impl Firewall {
    /// Returns the actions and statements of headers.
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
            let (_, rule) = policy.rule(id).next().unwrap();
            let action = policy.action_name(rule.action()).unwrap();
            Some((action, self.config.source(policy.position(id).unwrap())))
        };
        winners.iter().map(decide).collect()
    }

    fn decision(&self, header: &str) -> Option<(&str, &SourceRule)> {
        let (part, header) = self.config.policy.parse_header(header).unwrap();
        self.decisions(&[(part, header.values)]).pop().unwrap()
    }

    /// Returns the action of a header, or `none`.
    pub(crate) fn action(&self, header: &str) -> &str {
        self.decision(header).map_or("none", |(action, _)| action)
    }

    /// Returns the line that decides a header, or 0.
    pub(crate) fn line(&self, header: &str) -> u32 {
        self.decision(header).map_or(0, |(_, source)| source.line)
    }

    /// Returns the bit of a condition as a number for headers.
    pub(crate) fn condition(&self, text: &str) -> u128 {
        let texts = self.conditions.texts();
        let bit = texts.iter().position(|other| other == text);
        1 << bit.unwrap_or_else(|| panic!("{text} is not in {texts:?}"))
    }
}

/// Random numbers (xorshift).
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from((self.0 >> 8) % limit as u64).unwrap()
    }

    pub(crate) fn coin(&mut self) -> bool {
        self.below(2) == 0
    }

    pub(crate) fn pick<T: Copy>(&mut self, values: &[T]) -> T {
        values[self.below(values.len())]
    }
}
