//! Verdicts of logs, compared with the actions of rules.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int32Type;
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;
use classyard_arrow::NO_RULE;

use crate::verdict::{Verdict, VerdictNames};

/// The maximum number of different verdicts of logs that are counted by name. Further ones are
/// counted together.
pub const MAX_VERDICTS: usize = 1000;

/// The code of rows whose verdict is null.
const NULL_CODE: u32 = u32::MAX;

/// The code of verdicts beyond [`MAX_VERDICTS`].
const OTHER_CODE: u32 = u32::MAX - 1;

/// The meaning of words and actions.
pub(crate) struct Meanings<'a> {
    pub(crate) names: &'a VerdictNames,
    /// The meaning of each action of the policy, by its number.
    pub(crate) actions: Vec<Option<Verdict>>,
}

impl<'a> Meanings<'a> {
    pub(crate) fn new(names: &'a VerdictNames, actions: &[String]) -> Meanings<'a> {
        let meanings = actions.iter().map(|name| names.verdict(name));
        Meanings {
            names,
            actions: meanings.collect(),
        }
    }
}

/// The verdicts of logs, compared with the actions of rules.
#[derive(Debug, Default)]
pub(crate) struct Comparison {
    /// The verdicts so far; the code of a verdict is its place.
    words: Vec<(String, Option<Verdict>)>,
    codes: HashMap<String, u32>,
    pub(crate) agreeing: u64,
    pub(crate) null_verdicts: u64,
    pub(crate) other_unknown: u64,
    pub(crate) without_rule: u64,
    unknown: HashMap<u32, u64>,
    unclear_actions: BTreeMap<u32, u64>,
    /// Rows by verdict, rule and action.
    disagreeing: HashMap<(u32, u32, u32), u64>,
    last_dictionary: Option<(ArrayRef, Vec<u32>)>,
}

impl Comparison {
    /// Compares the verdicts of a batch with its winners. Calls `disagreement` with each row that
    /// has another verdict than its rule. Rows without a header are left out.
    pub(crate) fn add(
        &mut self,
        verdicts: &ArrayRef,
        batch: &BatchWinners<'_>,
        meanings: &Meanings<'_>,
        mut disagreement: impl FnMut(usize, &str),
    ) {
        let codes = self.codes_of(verdicts, meanings.names);
        for (row, &code) in codes.iter().enumerate() {
            if !(batch.has_header)(row) {
                continue;
            }
            let word = match code {
                NULL_CODE => {
                    self.null_verdicts += 1;
                    continue;
                }
                OTHER_CODE => {
                    self.other_unknown += 1;
                    continue;
                }
                code => &self.words[code as usize],
            };
            let (rule, action) = (batch.rules[row], batch.actions[row]);
            let Some(verdict) = word.1 else {
                *self.unknown.entry(code).or_default() += 1;
                continue;
            };
            if rule == NO_RULE {
                self.without_rule += 1;
                continue;
            }
            match meanings.actions.get(action as usize).copied().flatten() {
                None => *self.unclear_actions.entry(action).or_default() += 1,
                Some(meaning) if meaning == verdict => self.agreeing += 1,
                Some(_) => {
                    let key = (code, rule, action);
                    *self.disagreeing.entry(key).or_default() += 1;
                    disagreement(row, &word.0);
                }
            }
        }
    }

    /// Returns the code of each row's verdict.
    fn codes_of(&mut self, verdicts: &ArrayRef, names: &VerdictNames) -> Vec<u32> {
        let Some(dictionary) = verdicts.as_dictionary_opt::<Int32Type>() else {
            return self.codes_of_texts(verdicts, names);
        };
        let values = dictionary.values();
        let last = self.last_dictionary.take();
        let last = last.filter(|(last, _)| Arc::ptr_eq(last, values));
        let codes = match last {
            Some((_, codes)) => codes,
            None => self.codes_of_texts(values, names),
        };
        let keys = dictionary.keys().iter();
        let of_rows = keys.map(|key| {
            let index = key.and_then(|key| usize::try_from(key).ok());
            index
                .and_then(|index| codes.get(index).copied())
                .unwrap_or(NULL_CODE)
        });
        let of_rows = of_rows.collect();
        self.last_dictionary = Some((Arc::clone(values), codes));
        of_rows
    }

    fn codes_of_texts(&mut self, texts: &ArrayRef, names: &VerdictNames) -> Vec<u32> {
        match texts.data_type() {
            DataType::Utf8 => self.codes_of_each(texts.as_string::<i32>().iter(), names),
            DataType::LargeUtf8 => self.codes_of_each(texts.as_string::<i64>().iter(), names),
            DataType::Utf8View => self.codes_of_each(texts.as_string_view().iter(), names),
            other => unreachable!("the types of verdicts were checked: {other}"),
        }
    }

    fn codes_of_each<'t>(
        &mut self,
        texts: impl Iterator<Item = Option<&'t str>>,
        names: &VerdictNames,
    ) -> Vec<u32> {
        texts
            .map(|text| match text {
                None | Some("-") => NULL_CODE,
                Some(text) => self.code(text, names),
            })
            .collect()
    }

    fn code(&mut self, text: &str, names: &VerdictNames) -> u32 {
        if let Some(code) = self.codes.get(text) {
            return *code;
        }
        if self.words.len() == MAX_VERDICTS {
            return OTHER_CODE;
        }
        let code = u32::try_from(self.words.len()).expect("at most 1000");
        self.words.push((text.to_owned(), names.verdict(text)));
        self.codes.insert(text.to_owned(), code);
        code
    }

    /// Adds the counts to a summary.
    pub(crate) fn add_to(&self, summary: &mut VerdictSummary) {
        summary.agreeing += self.agreeing;
        summary.null_verdicts += self.null_verdicts;
        summary.other_unknown += self.other_unknown;
        summary.without_rule += self.without_rule;
        for (&code, count) in &self.unknown {
            let word = self.words[code as usize].0.clone();
            *summary.unknown.entry(word).or_default() += count;
        }
        for (&action, count) in &self.unclear_actions {
            *summary.unclear_actions.entry(action).or_default() += count;
        }
        for (&(code, rule, action), count) in &self.disagreeing {
            let word = self.words[code as usize].0.clone();
            *summary.disagreeing.entry((word, rule, action)).or_default() += count;
        }
    }
}

/// The winners of a batch's rows.
pub(crate) struct BatchWinners<'a> {
    pub(crate) rules: &'a [u32],
    pub(crate) actions: &'a [u32],
    pub(crate) has_header: &'a dyn Fn(usize) -> bool,
}

/// The rows of logs whose verdict was compared with the action of their rule, and the rows that
/// could not be compared. Rows without a header are in none of the counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VerdictSummary {
    /// Rows whose verdict and action mean the same.
    pub agreeing: u64,
    /// Rows whose verdict means something else than their action: by verdict, id of the rule and
    /// number of the action.
    pub disagreeing: BTreeMap<(String, u32, u32), u64>,
    /// Rows whose verdict is null or `-`.
    pub null_verdicts: u64,
    /// Rows with a verdict that has no meaning, by verdict.
    pub unknown: BTreeMap<String, u64>,
    /// Rows with verdicts that were too many to be counted by name; see [`MAX_VERDICTS`].
    pub other_unknown: u64,
    /// Rows that no rule decides.
    pub without_rule: u64,
    /// Rows whose action has no meaning, by the action's number.
    pub unclear_actions: BTreeMap<u32, u64>,
}

impl VerdictSummary {
    /// Returns the number of rows whose verdict means something else than their action.
    #[must_use]
    pub fn disagreements(&self) -> u64 {
        self.disagreeing.values().sum()
    }
}
