//! The options of a rule, sorted by the match or target that they belong to.

use classyard_text::Fault;
use classyard_text::line::quoted;

use super::modules::{
    is_modelled, module_of_protocol, option_values, parse_protocol, takes_any_text,
};
use super::words::{Word, span};

/// The maximum number of matches of a rule.
const MAX_MODULES: usize = 64;

/// The options that every rule may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Common {
    Source,
    Destination,
    InInterface,
    OutInterface,
    Protocol,
    Fragment,
    Ipv4,
    Ipv6,
    Match,
    Jump,
    Goto,
    Counters,
}

impl Common {
    fn of(option: &str) -> Option<Common> {
        Some(match option {
            "-s" | "--source" | "--src" => Common::Source,
            "-d" | "--destination" | "--dst" => Common::Destination,
            "-i" | "--in-interface" => Common::InInterface,
            "-o" | "--out-interface" => Common::OutInterface,
            "-p" | "--protocol" | "--proto" => Common::Protocol,
            "-f" | "--fragment" => Common::Fragment,
            "-4" | "--ipv4" => Common::Ipv4,
            "-6" | "--ipv6" => Common::Ipv6,
            "-m" | "--match" => Common::Match,
            "-j" | "--jump" => Common::Jump,
            "-g" | "--goto" => Common::Goto,
            "-c" | "--set-counters" => Common::Counters,
            _ => return None,
        })
    }

    fn values(self) -> usize {
        match self {
            Common::Fragment | Common::Ipv4 | Common::Ipv6 => 0,
            Common::Counters => 2,
            _ => 1,
        }
    }

    fn can_be_negated(self) -> bool {
        matches!(
            self,
            Common::Source
                | Common::Destination
                | Common::InInterface
                | Common::OutInterface
                | Common::Protocol
                | Common::Fragment
        )
    }
}

/// An option with its values.
#[derive(Clone, Debug)]
pub(super) struct OptionUse<'w, 't> {
    pub(super) name: &'t str,
    pub(super) is_negated: bool,
    pub(super) values: &'w [Word<'t>],
    /// The option with its values, and `!` if it is negated.
    pub(super) text: &'t str,
}

impl<'t> OptionUse<'_, 't> {
    /// Returns the first value.
    pub(super) fn value(&self) -> &'t str {
        self.values.first().map_or("", Word::slice)
    }
}

/// A match of a rule.
#[derive(Clone, Debug)]
pub(super) struct Module<'w, 't> {
    pub(super) name: &'t str,
    /// The text of the match with its options.
    pub(super) text: &'t str,
    /// The options, if the match is modelled.
    pub(super) options: Vec<OptionUse<'w, 't>>,
}

/// The target of a rule.
#[derive(Clone, Debug)]
pub(super) struct TargetUse<'w, 't> {
    pub(super) name: &'t str,
    pub(super) is_goto: bool,
    /// The options with their values.
    pub(super) options: &'w [Word<'t>],
}

/// The options of a rule.
#[derive(Clone, Debug, Default)]
pub(super) struct RuleOptions<'w, 't> {
    pub(super) common: Vec<(Common, OptionUse<'w, 't>)>,
    pub(super) modules: Vec<Module<'w, 't>>,
    pub(super) target: Option<TargetUse<'w, 't>>,
}

impl<'w, 't> RuleOptions<'w, 't> {
    /// Returns an option that every rule may have, if the rule has it.
    pub(super) fn common(&self, common: Common) -> Option<&OptionUse<'w, 't>> {
        let mut options = self.common.iter();
        let option = options.find(|(other, _)| *other == common);
        option.map(|(_, option)| option)
    }
}

/// The match or target that the next option belongs to if nothing else has such an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Owner {
    Nothing,
    /// A match that is not modelled, or only in part; the index of its first word.
    Module(usize),
    /// The target; the index of its first option.
    Target(usize),
}

/// Sorts the words of a rule that follow the name of its chain.
pub(super) fn sort<'w, 't>(
    line: &'t str,
    words: &'w [Word<'t>],
) -> Result<RuleOptions<'w, 't>, Fault<'t>> {
    let mut sorter = Sorter {
        line,
        words,
        next: 0,
        owner: Owner::Nothing,
        options: RuleOptions::default(),
    };
    while sorter.next < words.len() {
        sorter.sort_option()?;
    }
    Ok(sorter.options)
}

struct Sorter<'w, 't> {
    line: &'t str,
    words: &'w [Word<'t>],
    next: usize,
    owner: Owner,
    options: RuleOptions<'w, 't>,
}

impl<'w, 't> Sorter<'w, 't> {
    fn sort_option(&mut self) -> Result<(), Fault<'t>> {
        let start = self.next;
        let is_negated = self.words[start].is("!");
        let index = start + usize::from(is_negated);
        let Some(word) = self.words.get(index) else {
            return Err(Fault::missing(self.line, "an option after `!`"));
        };
        if word.is_option() {
            if let Some(common) = Common::of(word.text) {
                if is_negated && !common.can_be_negated() {
                    return Err(not_negatable(word));
                }
                let option = self.take(start, index, common.values())?;
                return self.add_common(common, option, index);
            }
            if let Some((module, values)) = self.modelled_owner(word.text) {
                let option = self.take(start, index, values)?;
                let options = &mut self.options.modules[module].options;
                if options.iter().any(|other| other.name == option.name) {
                    return Err(second(option.name));
                }
                options.push(option);
                return Ok(());
            }
        }
        self.add_to_owner(start, index)
    }

    /// Takes an option whose name has this index, with its values.
    fn take(
        &mut self,
        start: usize,
        index: usize,
        values: usize,
    ) -> Result<OptionUse<'w, 't>, Fault<'t>> {
        let words = self.words;
        let name = words[index].text;
        let end = index + 1 + values;
        let Some(values) = words.get(index + 1..end) else {
            let expected = match values {
                1 => format!("the value of `{name}`"),
                count => format!("the {count} values of `{name}`"),
            };
            return Err(Fault::missing(self.line, expected));
        };
        if let Some(value) = values.iter().find(|value| value.is("!")) {
            return Err(Fault::new(
                value.text,
                format!("`!` after `{name}`"),
                format!("`!` before `{name}`"),
            ));
        }
        self.next = end;
        Ok(OptionUse {
            name,
            is_negated: index > start,
            values,
            text: span(self.line, &words[start], &words[end - 1]),
        })
    }

    fn add_common(
        &mut self,
        common: Common,
        option: OptionUse<'w, 't>,
        index: usize,
    ) -> Result<(), Fault<'t>> {
        match common {
            Common::Match => return self.add_module(&option, index),
            Common::Jump | Common::Goto => {
                if self.options.target.is_some() {
                    return Err(second(option.name));
                }
                self.owner = Owner::Target(self.next);
                self.options.target = Some(TargetUse {
                    name: option.value(),
                    is_goto: common == Common::Goto,
                    options: &[],
                });
                return Ok(());
            }
            _ => {}
        }
        if self.options.common(common).is_some() {
            return Err(second(option.name));
        }
        self.options.common.push((common, option));
        Ok(())
    }

    fn add_module(&mut self, option: &OptionUse<'w, 't>, index: usize) -> Result<(), Fault<'t>> {
        if self.options.modules.len() == MAX_MODULES {
            return Err(Fault::new(
                option.text,
                format!("more than {MAX_MODULES} matches in a rule"),
                "several rules",
            ));
        }
        let name = option.value();
        self.owner = match is_modelled(name) {
            true => Owner::Nothing,
            false => Owner::Module(index),
        };
        self.options.modules.push(Module {
            name,
            text: option.text,
            options: Vec::new(),
        });
        Ok(())
    }

    /// Returns the modelled match that has an option with this name, and the number of the
    /// option's values. A protocol loads its match.
    fn modelled_owner(&mut self, option: &str) -> Option<(usize, usize)> {
        let modules = self.options.modules.iter().enumerate().rev();
        for (index, module) in modules {
            if let Some(values) = option_values(module.name, option) {
                return Some((index, values));
            }
        }
        let protocol = self.options.common(Common::Protocol)?;
        let name = module_of_protocol(parse_protocol(protocol.value())?)?;
        let values = option_values(name, option)?;
        let module = Module {
            name,
            text: protocol.text,
            options: Vec::new(),
        };
        self.options.modules.push(module);
        Some((self.options.modules.len() - 1, values))
    }

    /// Adds a word, and `!` before it, to the match or target that was named last.
    fn add_to_owner(&mut self, start: usize, index: usize) -> Result<(), Fault<'t>> {
        let words = self.words;
        let word = &words[index];
        let has_free_value = takes_any_text(word.text) && index + 1 < words.len();
        let end = index + 1 + usize::from(has_free_value);
        match self.owner {
            Owner::Nothing if word.is_option() => Err(Fault::unsupported(
                word.text,
                format!("the option {}", quoted(word.text)),
                "an option of iptables, after the -p or -m that it belongs to",
            )),
            Owner::Nothing => Err(Fault::new(
                word.text,
                quoted(word.text),
                "an option such as -s, -m or -j",
            )),
            Owner::Module(first) => {
                let module = self.options.modules.iter_mut().rev();
                let module = module.into_iter().find(|module| !is_modelled(module.name));
                let module = module.expect("the match that was named last");
                module.text = span(self.line, &words[first], &words[end - 1]);
                self.next = end;
                Ok(())
            }
            Owner::Target(first) => {
                let target = self.options.target.as_mut().expect("a target");
                if first + target.options.len() != start {
                    return Err(Fault::unsupported(
                        word.text,
                        "options of a target with other options between them",
                        "the options of the target immediately after its name",
                    ));
                }
                target.options = &words[first..end];
                self.next = end;
                Ok(())
            }
        }
    }
}

fn second<'t>(option: &'t str) -> Fault<'t> {
    Fault::new(
        option,
        format!("a second {}", quoted(option)),
        "one target, and each option at most once",
    )
}

fn not_negatable<'t>(word: &Word<'t>) -> Fault<'t> {
    Fault::new(
        word.text,
        format!("`!` before {}", quoted(word.text)),
        "`!` before an option that selects packets",
    )
}
