//! Reading configurations, and decisions on headers.

use std::net::IpAddr;

use classyard::policy::PolicyTrace;
use classyard::{FieldMatch, Policy};
use classyard_configs::{Conditions, Config, ConfigFormat, SourceRule, read};
use classyard_workload::diagnostic::{ReadError, ReadOptions};

/// A configuration, with its conditions.
pub(crate) struct Loaded {
    pub(crate) config: Config,
    pub(crate) conditions: Conditions,
}

pub(crate) fn try_load(text: &str, format: ConfigFormat) -> Result<Loaded, ReadError> {
    let mut conditions = Conditions::default();
    let config = read("file", text, format, &ReadOptions::DEFAULT, &mut conditions)?;
    Ok(Loaded { config, conditions })
}

pub(crate) fn load(text: &str, format: ConfigFormat) -> Loaded {
    assert_eq!(ConfigFormat::detect(text), Some(format), "{text}");
    try_load(text, format).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// Returns the problems of a text: `line:column: found; expected`.
pub(crate) fn problems(text: &str, format: ConfigFormat) -> Vec<String> {
    match try_load(text, format) {
        Ok(_) => Vec::new(),
        Err(ReadError::Bad(problems)) => problems.shown().iter().map(ToString::to_string).collect(),
        Err(error) => vec![error.to_string()],
    }
}

impl Loaded {
    /// Returns the value of a list's name in headers.
    pub(crate) fn list(&self, name: &str) -> u128 {
        let policy = &self.config.policy;
        for (position, &id) in policy.ids().iter().enumerate() {
            if self.config.source(position).list == name {
                let (part, rule) = policy.rule(id).next().expect("a part");
                let field = policy.part(part).schema().field_named("list").unwrap();
                match rule.field(field) {
                    FieldMatch::Exact(value) => return value,
                    other => panic!("{other:?}"),
                }
            }
        }
        panic!("no list {name}: {:?}", self.lists());
    }

    /// Returns the names of all lists, in order.
    pub(crate) fn lists(&self) -> Vec<&str> {
        let mut lists: Vec<&str> = Vec::new();
        for source in &self.config.sources {
            if !lists.contains(&source.list.as_str()) {
                lists.push(&source.list);
            }
        }
        lists
    }

    /// Returns the action for a header, and the statement that decides it.
    pub(crate) fn decide(&self, list: &str, header: &str) -> (&str, &SourceRule) {
        self.decide_in(self.list(list), header)
    }

    /// Like [`decide`](Self::decide), for a list's value in headers.
    pub(crate) fn decide_in(&self, list: u128, header: &str) -> (&str, &SourceRule) {
        let policy: &Policy = &self.config.policy;
        let (part, parsed) = policy.parse_header(header).unwrap();
        let schema = policy.part(part).schema();
        let mut values = parsed.values;
        values[schema.field_named("list").unwrap().index()] = list;
        let mut trace = PolicyTrace::new(policy.schemas());
        trace.push(part, &values).unwrap();
        let (part, key) = trace.iter().next().unwrap();
        let winner = policy.part(part).scan(key).rule();
        let id = winner.unwrap_or_else(|| panic!("no rule matches {header}"));
        let rule = policy.rule(id).next().unwrap().1;
        let action = policy.action_name(rule.action()).unwrap();
        let position = policy.position(id).unwrap();
        (action, self.config.source(position))
    }

    /// Checks the decisions for headers, one a line: `ACTION LINE header`.
    pub(crate) fn check(&self, list: &str, decisions: &str) {
        let lines = decisions.lines().map(str::trim);
        for line in lines.filter(|line| !line.is_empty()) {
            let mut words = line.splitn(3, ' ');
            let (action, number) = (words.next().unwrap(), words.next().unwrap());
            let (decision, source) = self.decide(list, words.next().unwrap());
            let expected = (action, number.to_owned());
            assert_eq!(
                (decision, source.line.to_string()),
                expected,
                "{list}: {line}"
            );
        }
    }
}

/// A packet of the random tests.
#[derive(Clone, Debug)]
pub(crate) struct Packet {
    pub(crate) source: IpAddr,
    pub(crate) destination: IpAddr,
    pub(crate) protocol: u8,
    pub(crate) port: u16,
    pub(crate) icmp: (u8, u8),
    pub(crate) state: u8,
    pub(crate) conditions: u128,
}

impl Packet {
    pub(crate) fn header(&self) -> String {
        format!(
            "src={} dst={} proto={} sport=40000 dport={} icmp_type={} icmp_code={} state={} \
             condition={:#x}",
            self.source,
            self.destination,
            self.protocol,
            self.port,
            self.icmp.0,
            self.icmp.1,
            ["new", "established", "related", "invalid", "untracked"][usize::from(self.state)],
            self.conditions
        )
    }
}

/// True if a network such as `10.0.0.0/8` has the address.
pub(crate) fn has_address(network: &str, address: IpAddr) -> bool {
    let (start, length) = network.split_once('/').unwrap();
    let length: u32 = length.parse().unwrap();
    match (start.parse().unwrap(), address) {
        (IpAddr::V4(start), IpAddr::V4(address)) => {
            let free_bits = 32 - length;
            start.to_bits().checked_shr(free_bits) == address.to_bits().checked_shr(free_bits)
                || length == 0
        }
        (IpAddr::V6(start), IpAddr::V6(address)) => {
            let free_bits = 128 - length;
            start.to_bits().checked_shr(free_bits) == address.to_bits().checked_shr(free_bits)
                || length == 0
        }
        _ => false,
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

    pub(crate) fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.next() % limit as u64).unwrap()
    }

    pub(crate) fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len())]
    }

    /// True once in `times`.
    pub(crate) fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }
}

/// Texts that mutations insert.
const PIECES: &[&str] = &[
    "{",
    "}",
    "[",
    "]",
    ":",
    ",",
    "\"",
    "\n",
    " ",
    "-",
    "- ",
    "null",
    "\\",
    "\\u",
    "&a ",
    "*a",
    "<<: ",
    "|",
    ">",
    "#",
    "é",
    "\u{1}",
    "\t",
    "'",
    "---\n",
    "...\n",
    "!!str ",
    "? ",
    "-1",
    "%",
    "99999999999999999999",
    "::/0",
    "0",
    "\r",
    "\u{feff}",
    "true",
    "1e9",
    "{}",
    "[]",
    "!x ",
];

/// Reads truncations and mutations of a text. None may panic.
pub(crate) fn mutate(text: &str, format: ConfigFormat, mutations: usize, seed: u64) {
    let options = ReadOptions::DEFAULT.with_skip_bad(true);
    let read_any = |text: &str| {
        let mut conditions = Conditions::default();
        drop(read(
            "file",
            text,
            format,
            &ReadOptions::DEFAULT,
            &mut conditions,
        ));
        drop(read("file", text, format, &options, &mut conditions));
    };
    for end in (0..=text.len()).step_by(7) {
        read_any(text.get(..end).unwrap_or(text));
    }
    let mut random = Random::new(seed);
    for _ in 0..mutations {
        let mut mutated = text.to_owned();
        for _ in 0..=random.below(4) {
            let mut start = random.below(mutated.len() + 1);
            while !mutated.is_char_boundary(start) {
                start -= 1;
            }
            let mut end = (start + random.below(12)).min(mutated.len());
            while !mutated.is_char_boundary(end) {
                end += 1;
            }
            let piece = *random.pick(PIECES);
            match random.below(3) {
                0 => mutated.insert_str(start, piece),
                1 => mutated.replace_range(start..end, piece),
                _ => mutated.replace_range(start..end, ""),
            }
        }
        read_any(&mutated);
    }
}
