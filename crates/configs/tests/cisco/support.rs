//! Reads configurations and looks up packets in them.

use classyard::policy::{Policy, PolicyClassifier};
use classyard::{EngineSpec, Limits, NoProgress, PacketHeader, Schema};
use classyard_configs::{Conditions, Config, ConfigFormat, SourceRule, read};
use classyard_workload::diagnostic::{ReadError, ReadOptions};

pub(crate) use ConfigFormat::{CiscoAsa, CiscoIos, CiscoNxos, CiscoXr};

/// The formats of Cisco's systems.
pub(crate) const FORMATS: [ConfigFormat; 4] = [CiscoIos, CiscoNxos, CiscoXr, CiscoAsa];

/// A configuration with a classifier.
pub(crate) struct Device {
    pub(crate) config: Config,
    pub(crate) conditions: Conditions,
    classifier: PolicyClassifier,
}

/// A header for a schema.
struct Header {
    schema: String,
    values: Vec<u128>,
}

impl PacketHeader for Header {
    fn values(&self, schema: &Schema, values: &mut [u128]) -> bool {
        if schema.name() == self.schema {
            values.copy_from_slice(&self.values);
        }
        schema.name() == self.schema
    }
}

/// Reads a text with options.
pub(crate) fn read_with(
    text: &str,
    format: ConfigFormat,
    options: &ReadOptions,
) -> Result<Config, ReadError> {
    read("f", text, format, options, &mut Conditions::default())
}

impl Device {
    /// Reads a text without faults.
    pub(crate) fn new(text: &str, format: ConfigFormat) -> Device {
        Device::with_options(text, format, &ReadOptions::DEFAULT)
    }

    pub(crate) fn with_options(text: &str, format: ConfigFormat, options: &ReadOptions) -> Device {
        let mut conditions = Conditions::default();
        let config = read("f", text, format, options, &mut conditions);
        let config = config.unwrap_or_else(|error| panic!("{error}"));
        let classifier = build(&config.policy);
        Device {
            config,
            conditions,
            classifier,
        }
    }

    /// Returns the action and the statement for a packet.
    pub(crate) fn decide(&self, header: &str) -> (&str, &SourceRule) {
        let policy = &self.config.policy;
        let (part, values) = policy.parse_header(header).unwrap();
        self.decide_values(policy.part(part).schema().name(), values.values)
            .unwrap_or_else(|| panic!("no rule for {header}"))
    }

    /// Returns the action and the statement for the values of a header.
    pub(crate) fn decide_values(
        &self,
        schema: &str,
        values: Vec<u128>,
    ) -> Option<(&str, &SourceRule)> {
        let header = Header {
            schema: schema.to_owned(),
            values,
        };
        let verdict = self.classifier.classify_header(&header).unwrap();
        let decision = self.config.policy.decision(verdict)?;
        let source = self.config.source(decision.rule.index());
        Some((decision.action_name.unwrap(), source))
    }

    /// Checks the decision and the line for packets: `permit 3 src=... dst=...`. A line that
    /// ends with `*` is an implied rule.
    pub(crate) fn check(&self, table: &str) {
        for row in table.lines().map(str::trim).filter(|row| !row.is_empty()) {
            let mut words = row.splitn(3, ' ');
            let [action, line, header] = [(); 3].map(|()| words.next().unwrap());
            let (decided, source) = self.decide(header);
            let mark = if source.is_implied { "*" } else { "" };
            let decided = format!("{decided} {}{mark}", source.line);
            assert_eq!(decided, format!("{action} {line}"), "{header}");
        }
    }

    /// Returns the statements of the file, without implied ones.
    pub(crate) fn statements(&self) -> Vec<&SourceRule> {
        let sources = self.config.sources.iter();
        sources.filter(|source| !source.is_implied).collect()
    }
}

fn build(policy: &Policy) -> PolicyClassifier {
    let linear = EngineSpec::parse("linear").unwrap();
    policy
        .build(&linear, &Limits::default(), &mut NoProgress)
        .unwrap()
}

/// Returns the problems of a text, one a line.
pub(crate) fn problems(text: &str, format: ConfigFormat) -> String {
    match read_with(text, format, &ReadOptions::DEFAULT) {
        Ok(_) => String::new(),
        Err(error) => error.to_string(),
    }
}

/// A generator of numbers (SplitMix64), so that tests repeat.
pub(crate) struct Numbers(pub(crate) u64);

impl Numbers {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(crate) fn below(&mut self, count: usize) -> usize {
        usize::try_from(self.next() % count as u64).unwrap()
    }

    pub(crate) fn pick<'a, T: ?Sized>(&mut self, values: &[&'a T]) -> &'a T {
        values[self.below(values.len())]
    }

    pub(crate) fn one_in(&mut self, count: usize) -> bool {
        self.below(count) == 0
    }
}
