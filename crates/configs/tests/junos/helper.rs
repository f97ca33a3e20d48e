//! Reading configurations, and decisions on headers.

use classyard::Policy;
use classyard::policy::PolicyTrace;
use classyard_configs::{Conditions, Config, ConfigFormat, SourceRule, read};
use classyard_workload::diagnostic::{ReadError, ReadOptions};

/// A configuration, with its conditions.
pub(crate) struct Loaded {
    pub(crate) config: Config,
    pub(crate) conditions: Conditions,
}

pub(crate) fn try_load(text: &str, options: &ReadOptions) -> Result<Loaded, ReadError> {
    let mut conditions = Conditions::default();
    let config = read("file", text, ConfigFormat::Junos, options, &mut conditions)?;
    Ok(Loaded { config, conditions })
}

/// Reads a text that is detected as Junos and has no problems.
pub(crate) fn load(text: &str) -> Loaded {
    assert_eq!(
        ConfigFormat::detect(text),
        Some(ConfigFormat::Junos),
        "{text}"
    );
    try_load(text, &ReadOptions::DEFAULT).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// Returns the problems of a text: `line:column: messages; expected …`.
pub(crate) fn problems(text: &str) -> Vec<String> {
    match try_load(text, &ReadOptions::DEFAULT) {
        Ok(_) => Vec::new(),
        Err(ReadError::Bad(problems)) => problems.shown().iter().map(ToString::to_string).collect(),
        Err(error) => vec![error.to_string()],
    }
}

impl Loaded {
    /// Returns the action for a header, and the statement that decides it.
    pub(crate) fn decide(&self, header: &str) -> (&str, &SourceRule) {
        let policy: &Policy = &self.config.policy;
        let (part, parsed) = policy.parse_header(header).unwrap();
        let mut trace = PolicyTrace::new(policy.schemas());
        trace.push(part, &parsed.values).unwrap();
        let (part, key) = trace.iter().next().unwrap();
        let winner = policy.part(part).scan(key).rule();
        let id = winner.unwrap_or_else(|| panic!("no rule matches {header}"));
        let rule = policy.rule(id).next().unwrap().1;
        let action = policy.action_name(rule.action()).unwrap();
        (action, self.config.source(policy.position(id).unwrap()))
    }

    /// Checks the decisions for headers, one a line: `ACTION LINE header`, with 0 as the line
    /// of implied statements. `common` is a part of all headers.
    pub(crate) fn check(&self, common: &str, decisions: &str) {
        let lines = decisions.lines().map(str::trim);
        for line in lines.filter(|line| !line.is_empty()) {
            let mut words = line.splitn(3, ' ');
            let (action, number) = (words.next().unwrap(), words.next().unwrap());
            let (decision, source) = self.decide(&format!("{common} {}", words.next().unwrap()));
            let source_line = if source.is_implied { 0 } else { source.line };
            let expected = (action.replace('_', " "), number.to_owned());
            assert_eq!(
                (decision.to_owned(), source_line.to_string()),
                expected,
                "{line}"
            );
        }
    }

    /// Checks decisions on packets of one filter: `term T { BODY }`.
    pub(crate) fn statement(&self, line: u32) -> &SourceRule {
        let mut sources = self.config.sources.iter();
        sources
            .find(|source| source.line == line && !source.is_implied)
            .expect("a statement")
    }
}

/// Reads a filter `f` of IPv4 with one term, which accepts.
pub(crate) fn load_conditions(conditions: &str) -> Loaded {
    load(&filter_with(conditions))
}

/// Returns a filter `f` of IPv4 with one term, which accepts.
pub(crate) fn filter_with(conditions: &str) -> String {
    format!(
        "policy-options {{\n prefix-list mixed {{ 10.1.0.0/16; 2001:db8::/32; }}\n}}\n\
         firewall {{\n family inet {{ filter f {{ term t {{\n\
         from {{ {conditions} }}\nthen accept;\n}} }} }}\n}}\n"
    )
}

/// Checks which packets of the filter `f` the conditions select: `yes HEADER` or `no HEADER`.
pub(crate) fn check_conditions(conditions: &str, selected: &str) {
    let loaded = load_conditions(conditions);
    for line in selected
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
    {
        let (word, header) = line.split_once(' ').unwrap();
        let (action, _) = loaded.decide(&format!("list=f {header}"));
        let expected = if word == "yes" { "permit" } else { "deny" };
        assert_eq!(action, expected, "{conditions}: {line}");
    }
}

/// A generator of random numbers (xorshift64*).
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 16
    }

    /// A number below `limit`.
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.next() % limit as u64).unwrap()
    }

    pub(crate) fn pick<T: Copy>(&mut self, items: &[T]) -> T {
        items[self.below(items.len())]
    }

    /// True once in `times`.
    pub(crate) fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }
}
