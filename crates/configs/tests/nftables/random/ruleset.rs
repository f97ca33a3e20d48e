//! Random rulesets, and an interpreter for them.

use std::fmt::Write as _;

use super::comparison::Test;
use super::field::{Field, Range, has, random_ranges, range_json, range_text};
use super::packet::Packet;
use crate::support::Random;

/// The end of a rule. Chains are known by their numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Accept,
    Drop,
    Reject,
    Return,
    Continue,
    Jump(usize),
    Goto(usize),
}

impl Verdict {
    /// A chain can jump to chains with lower numbers.
    pub(super) fn random(chain: usize, random: &mut Random) -> Verdict {
        match random.below(9) {
            0 | 1 => Verdict::Accept,
            2 | 3 => Verdict::Drop,
            4 => Verdict::Return,
            5 | 6 if chain > 0 => Verdict::Jump(random.below(chain)),
            7 if chain > 0 => Verdict::Goto(random.below(chain)),
            8 => Verdict::Reject,
            _ => Verdict::Continue,
        }
    }

    pub(super) fn text(self) -> String {
        match self {
            Verdict::Accept => "accept".to_owned(),
            Verdict::Drop => "drop".to_owned(),
            Verdict::Reject => "reject".to_owned(),
            Verdict::Return => "return".to_owned(),
            Verdict::Continue => "continue".to_owned(),
            Verdict::Jump(chain) => format!("jump c{chain}"),
            Verdict::Goto(chain) => format!("goto c{chain}"),
        }
    }

    pub(super) fn json(self) -> String {
        match self {
            Verdict::Jump(chain) => format!("{{\"jump\": {{\"target\": \"c{chain}\"}}}}"),
            Verdict::Goto(chain) => format!("{{\"goto\": {{\"target\": \"c{chain}\"}}}}"),
            other => format!("{{\"{}\": null}}", other.text()),
        }
    }
}

/// The field of a map, its elements, and the verdict of other values.
pub(super) type VerdictMap = (Field, Vec<(Range, Verdict)>, Option<Verdict>);

/// A rule: comparisons, and a verdict or a map of verdicts.
#[derive(Clone, Debug)]
pub(super) struct Rule {
    pub(super) tests: Vec<Test>,
    pub(super) verdict: Verdict,
    pub(super) map: Option<VerdictMap>,
}

impl Rule {
    pub(super) fn random(chain: usize, random: &mut Random) -> Rule {
        let tests = (0..random.below(3)).map(|_| Test::random(random)).collect();
        // Maps have no `reject`.
        let map_verdict = |random: &mut Random| loop {
            let verdict = Verdict::random(chain, random);
            if verdict != Verdict::Reject {
                break verdict;
            }
        };
        let map = (random.below(5) == 0).then(|| {
            let field = Field::random(random);
            let elements = random_ranges(field, random).into_iter();
            let elements: Vec<_> = elements.map(|range| (range, map_verdict(random))).collect();
            (field, elements, random.coin().then(|| map_verdict(random)))
        });
        Rule {
            tests,
            verdict: Verdict::random(chain, random),
            map,
        }
    }

    /// Returns the verdict about a packet, if the rule matches.
    pub(super) fn verdict(&self, packet: &Packet) -> Option<Verdict> {
        if !self.tests.iter().all(|test| test.holds(packet)) {
            return None;
        }
        let Some((field, elements, default)) = &self.map else {
            return Some(self.verdict);
        };
        let value = field.value(packet)?;
        let element = elements.iter().find(|(range, _)| has(&[*range], value));
        element.map(|(_, verdict)| *verdict).or(*default)
    }

    pub(super) fn text(&self, sets: &mut Vec<String>) -> String {
        let mut words: Vec<String> = self.tests.iter().map(|test| test.text(sets)).collect();
        words.push(match &self.map {
            None => self.verdict.text(),
            Some((field, elements, default)) => {
                let elements = elements.iter().map(|(range, verdict)| {
                    format!("{} : {}", range_text(*field, *range), verdict.text())
                });
                let default = default
                    .iter()
                    .map(|verdict| format!("* : {}", verdict.text()));
                let elements: Vec<String> = elements.chain(default).collect();
                format!("{} vmap {{ {} }}", field.text(), elements.join(", "))
            }
        });
        words.join(" ")
    }

    pub(super) fn json(&self) -> String {
        let mut statements: Vec<String> = self.tests.iter().map(Test::json).collect();
        statements.push(match &self.map {
            None => self.verdict.json(),
            Some((field, elements, default)) => {
                let elements = elements.iter().map(|(range, verdict)| {
                    format!("[{}, {}]", range_json(*field, *range), verdict.json())
                });
                let default = default
                    .iter()
                    .map(|verdict| format!("[\"*\", {}]", verdict.json()));
                let elements: Vec<String> = elements.chain(default).collect();
                let data = format!("{{\"set\": [{}]}}", elements.join(", "));
                format!(
                    "{{\"vmap\": {{\"key\": {}, \"data\": {data}}}}}",
                    field.json()
                )
            }
        });
        statements.join(", ")
    }
}

/// A table of the family `inet`. The last chain has a hook.
#[derive(Debug)]
pub(super) struct Ruleset {
    pub(super) chains: Vec<Vec<Rule>>,
    pub(super) has_drop_policy: bool,
}

/// The result of a chain.
pub(super) enum Flow {
    Decided(Verdict),
    Returned,
}

impl Ruleset {
    pub(super) fn random(random: &mut Random) -> Ruleset {
        let chain = |(number, random): (usize, &mut Random)| -> Vec<Rule> {
            (0..=random.below(4))
                .map(|_| Rule::random(number, random))
                .collect()
        };
        let chains = (0..4).map(|number| chain((number, random))).collect();
        Ruleset {
            chains,
            has_drop_policy: random.coin(),
        }
    }

    pub(super) fn run(&self, chain: usize, packet: &Packet) -> Flow {
        for rule in &self.chains[chain] {
            match rule.verdict(packet) {
                None | Some(Verdict::Continue) => {}
                Some(Verdict::Return) => return Flow::Returned,
                Some(Verdict::Goto(target)) => return self.run(target, packet),
                Some(Verdict::Jump(target)) => {
                    if let Flow::Decided(verdict) = self.run(target, packet) {
                        return Flow::Decided(verdict);
                    }
                }
                Some(verdict) => return Flow::Decided(verdict),
            }
        }
        Flow::Returned
    }

    pub(super) fn action(&self, packet: &Packet) -> &'static str {
        match self.run(self.chains.len() - 1, packet) {
            Flow::Decided(Verdict::Accept) => "permit",
            Flow::Decided(Verdict::Reject) => "reject",
            Flow::Returned if !self.has_drop_policy => "permit",
            _ => "deny",
        }
    }

    pub(super) fn policy(&self) -> &'static str {
        if self.has_drop_policy {
            "drop"
        } else {
            "accept"
        }
    }

    pub(super) fn text(&self) -> String {
        let mut sets = Vec::new();
        let mut chains = String::new();
        for (number, rules) in self.chains.iter().enumerate() {
            writeln!(chains, "    chain c{number} {{").unwrap();
            if number + 1 == self.chains.len() {
                let policy = self.policy();
                writeln!(
                    chains,
                    "        type filter hook input priority 0; policy {policy};"
                )
                .unwrap();
            }
            for rule in rules {
                writeln!(chains, "        {}", rule.text(&mut sets)).unwrap();
            }
            chains.push_str("    }\n");
        }
        format!("table inet t {{\n    {}\n{chains}}}\n", sets.join("\n    "))
    }

    pub(super) fn json(&self) -> String {
        let table_keys = "\"family\": \"inet\", \"table\": \"t\"";
        let mut items = vec!["{\"table\": {\"family\": \"inet\", \"name\": \"t\"}}".to_owned()];
        for number in 0..self.chains.len() {
            let base = match number + 1 == self.chains.len() {
                true => format!(
                    ", \"type\": \"filter\", \"hook\": \"input\", \"prio\": 0, \"policy\": \"{}\"",
                    self.policy()
                ),
                false => String::new(),
            };
            items.push(format!(
                "{{\"chain\": {{{table_keys}, \"name\": \"c{number}\"{base}}}}}"
            ));
        }
        for (number, rules) in self.chains.iter().enumerate() {
            for rule in rules {
                let statements = rule.json();
                items.push(format!(
                    "{{\"rule\": {{{table_keys}, \"chain\": \"c{number}\", \"expr\": [{statements}]}}}}"
                ));
            }
        }
        format!("{{\"nftables\": [{}]}}", items.join(", "))
    }
}
