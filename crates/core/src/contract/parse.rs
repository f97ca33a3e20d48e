//! Reading specifications of engines.
//!
//! ```text
//! spec   = NAME [ "(" spec ")" ] { ":" OPTION "=" VALUE }
//! ```
//! Names, options and values have none of the characters `(`, `)` and `:`. The inner
//! specification is present if and only if the engine wraps another engine.

use super::options::EngineOption;
use super::spec::{Engine, EngineSpec, Wraps};
use crate::model::error::{SpecError, SpecPlace};

/// The maximum number of engines nested in each other. It bounds recursion.
pub const MAX_NESTING: usize = 8;

impl EngineSpec {
    /// Reads a specification with the engines of a registry.
    ///
    /// # Errors
    /// [`SpecError`], as for [`parse`](Self::parse).
    pub fn parse_in(registry: &'static [Engine], text: &str) -> Result<EngineSpec, SpecError> {
        let mut parser = Parser {
            registry,
            text,
            at: 0,
        };
        let spec = parser.spec(1)?;
        if parser.at < text.len() {
            return Err(parser.unexpected(&spec, false));
        }
        Ok(spec)
    }

    /// Returns the specification of an engine of a registry, with default options.
    pub(crate) fn named_in(
        registry: &'static [Engine],
        name: &str,
    ) -> Result<EngineSpec, SpecError> {
        let engine = find(registry, name, name, 0)?;
        if engine.wraps != Wraps::Nothing {
            return Err(SpecError::MissingInner {
                at: SpecPlace::new(name, name.len()),
                engine: engine.name,
                allowed: engine.wraps.allowed(),
            });
        }
        Ok(EngineSpec::new(engine, None))
    }

    /// Sets an option. Replaces an earlier value.
    ///
    /// # Errors
    /// [`SpecError`] if the engine has no such option, or the option does not take
    /// the value.
    pub fn with(mut self, option: &str, value: &str) -> Result<EngineSpec, SpecError> {
        let mut text = self.to_string();
        text.push(':');
        let option_start = text.len();
        text.push_str(option);
        text.push('=');
        text.push_str(value);
        let declared = find_option(self.engine, option, &text, option_start)?;
        let parsed = parse_value(
            self.engine,
            declared,
            value,
            &text,
            option_start + option.len() + 1,
        )?;
        self.options.give(declared.name, value, parsed);
        Ok(self)
    }
}

/// Reads a specification from left to right.
struct Parser<'t> {
    registry: &'static [Engine],
    text: &'t str,
    /// All bytes before this position have been read.
    at: usize,
}

/// The characters that names, options and values do not contain.
const MARKS: [char; 3] = ['(', ')', ':'];

impl<'t> Parser<'t> {
    /// Reads one specification. `depth` is the nesting depth of its engine, from 1.
    fn spec(&mut self, depth: usize) -> Result<EngineSpec, SpecError> {
        let start = self.at;
        let name = self.word();
        if name.is_empty() {
            return Err(self.empty(start, "the name of an engine"));
        }
        let engine = find(self.registry, name, self.text, start)?;
        let inner = self.inner(engine, depth)?;
        let mut spec = EngineSpec::new(engine, inner);
        let mut starts = Vec::new();
        while self.takes(':') {
            self.option(&mut spec, &mut starts)?;
        }
        Ok(spec)
    }

    /// Reads the specification in parentheses, if the engine wraps another engine.
    fn inner(
        &mut self,
        engine: &'static Engine,
        depth: usize,
    ) -> Result<Option<EngineSpec>, SpecError> {
        let opened = self.at;
        match (self.takes('('), engine.wraps) {
            (false, Wraps::Nothing) => return Ok(None),
            (true, Wraps::Nothing) => {
                return Err(SpecError::UnexpectedInner {
                    at: self.place(opened),
                    engine: engine.name,
                });
            }
            (false, wraps) => {
                return Err(SpecError::MissingInner {
                    at: self.place(opened),
                    engine: engine.name,
                    allowed: wraps.allowed(),
                });
            }
            (true, _) => {}
        }
        if depth == MAX_NESTING {
            return Err(SpecError::TooDeep {
                at: self.place(opened),
                limit: MAX_NESTING,
            });
        }
        let start = self.at;
        let inner = self.spec(depth + 1)?;
        if !self.takes(')') {
            return Err(if self.at == self.text.len() {
                SpecError::Unclosed {
                    at: self.place(self.at),
                    opened: opened + 1,
                }
            } else {
                self.unexpected(&inner, true)
            });
        }
        if !engine.wraps.takes(&inner) {
            return Err(SpecError::WrongInner {
                at: self.place(start),
                engine: engine.name,
                found: inner.engine.name,
                allowed: engine.wraps.allowed(),
            });
        }
        Ok(Some(inner))
    }

    /// Reads `OPTION=VALUE`. `starts` has the options that were read before, and
    /// their positions.
    fn option(
        &mut self,
        spec: &mut EngineSpec,
        starts: &mut Vec<(&'static str, usize)>,
    ) -> Result<(), SpecError> {
        let start = self.at;
        let part = self.word();
        if part.is_empty() {
            return Err(self.empty(start, "OPTION=VALUE"));
        }
        let Some((name, value)) = part.split_once('=') else {
            return Err(SpecError::NoValue {
                at: self.place(start + part.len()),
                option: part.to_owned(),
            });
        };
        if name.is_empty() {
            return Err(self.empty(start, "the name of an option"));
        }
        let option = find_option(spec.engine, name, self.text, start)?;
        if let Some(&(_, first)) = starts.iter().find(|(given, _)| *given == option.name) {
            return Err(SpecError::Repeated {
                at: self.place(start),
                option: option.name,
                first: first + 1,
            });
        }
        starts.push((option.name, start));
        let value_start = start + name.len() + 1;
        let parsed = parse_value(spec.engine, option, value, self.text, value_start)?;
        spec.options.give(option.name, value, parsed);
        Ok(())
    }

    /// Reads the text before the next mark.
    fn word(&mut self) -> &'t str {
        let unread = &self.text[self.at..];
        let word = &unread[..unread.find(MARKS).unwrap_or(unread.len())];
        self.at += word.len();
        word
    }

    /// Reads a mark, if it comes next.
    fn takes(&mut self, mark: char) -> bool {
        let comes = self.text[self.at..].starts_with(mark);
        self.at += usize::from(comes);
        comes
    }

    fn place(&self, at: usize) -> SpecPlace {
        SpecPlace::new(self.text, at)
    }

    fn empty(&self, at: usize, expected: &'static str) -> SpecError {
        let unread = &self.text[at..];
        SpecError::Empty {
            at: self.place(at),
            found: unread.chars().next(),
            expected,
        }
    }

    /// Returns the error for text that follows a specification.
    fn unexpected(&self, before: &EngineSpec, inside: bool) -> SpecError {
        let unread = &self.text[self.at..];
        let word = &unread[..unread.find(MARKS).unwrap_or(unread.len())];
        let unexpected = if word.is_empty() {
            unread.chars().take(1).collect()
        } else {
            word.to_owned()
        };
        let expected = match (inside, before.engine.options.is_empty()) {
            (true, true) => "`)`",
            (true, false) => "`:OPTION=VALUE` or `)`",
            (false, true) => "nothing",
            (false, false) => "`:OPTION=VALUE` or nothing",
        };
        SpecError::Unexpected {
            at: self.place(self.at),
            found: unexpected,
            expected,
        }
    }
}

/// Finds the engine with a name. `at` is the position of the name in a text.
pub(crate) fn find(
    registry: &'static [Engine],
    name: &str,
    text: &str,
    at: usize,
) -> Result<&'static Engine, SpecError> {
    let entry = registry.iter().find(|engine| engine.name == name);
    entry.ok_or_else(|| {
        let names = || registry.iter().map(|engine| engine.name);
        SpecError::UnknownEngine {
            at: SpecPlace::new(text, at),
            found: name.to_owned(),
            known: list(names()),
            near: nearest(name, names()),
        }
    })
}

fn find_option(
    engine: &'static Engine,
    name: &str,
    text: &str,
    at: usize,
) -> Result<&'static EngineOption, SpecError> {
    engine.option(name).ok_or_else(|| {
        let names = || engine.options.iter().map(|option| option.name);
        SpecError::UnknownOption {
            at: SpecPlace::new(text, at),
            engine: engine.name,
            found: name.to_owned(),
            known: list(names()),
            near: nearest(name, names()),
        }
    })
}

fn parse_value(
    engine: &'static Engine,
    option: &'static EngineOption,
    value: &str,
    text: &str,
    at: usize,
) -> Result<crate::contract::options::OptionValue, SpecError> {
    option.kind.parse(value).ok_or_else(|| SpecError::BadValue {
        at: SpecPlace::new(text, at),
        engine: engine.name,
        option: option.name,
        found: value.to_owned(),
        expected: option.kind.to_string(),
    })
}

fn list<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<&str> = names.collect();
    if names.is_empty() {
        "none".to_owned()
    } else {
        names.join(", ")
    }
}

/// Returns the name that is most similar to a word, if it begins with the word or at
/// most a third of its characters differ.
fn nearest(word: &str, names: impl Iterator<Item = &'static str>) -> Option<&'static str> {
    // No name is longer than 100 bytes, and the time of the comparison is proportional to
    // the length.
    if word.len() > 100 {
        return None;
    }
    let similar = names.filter_map(|name| {
        let edits = distance(word, name);
        let alike = edits * 3 <= name.chars().count();
        (alike || word.len() >= 3 && name.starts_with(word)).then_some((edits, name))
    });
    Some(similar.min()?.1)
}

/// Returns the Levenshtein distance of two words: the number of characters to insert,
/// remove or replace.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    // The distances between the characters read from `a` and each beginning of `b`.
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, a) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, b) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(a != *b);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}
