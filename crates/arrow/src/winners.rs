//! Lookup of headers, and the winners as Arrow arrays.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::types::Int32Type;
use arrow_array::{
    ArrayRef, BooleanArray, DictionaryArray, Int32Array, RecordBatch, StringArray, UInt32Array,
    UInt64Array,
};
use arrow_buffer::{BooleanBuffer, NullBuffer};
use arrow_schema::{DataType, Field, Schema};
use classyard::classifier::BATCH;
use classyard::columns::Columns;
use classyard::policy::PartId;
use classyard::table::PolicyReplica;
use classyard::{ActionId, Policy, PolicyClassifier, RuleId, Scratch, Winner};

use crate::headers::Headers;

/// The rules that headers are looked up in: the guard of a live table, or a classifier with
/// its policy ([`BuiltPolicy`]).
pub trait Rules: Sync {
    /// Returns the engines of the parts.
    fn classifier(&self) -> &PolicyClassifier;
    /// Returns the action of a winner in a part; `None` for a miss.
    fn action(&self, part: PartId, winner: Winner) -> Option<ActionId>;
    /// Returns the cookie of a winner in a part; `None` for a miss.
    fn cookie(&self, part: PartId, winner: Winner) -> Option<u64>;
}

impl Rules for PolicyReplica {
    fn classifier(&self) -> &PolicyClassifier {
        self
    }

    fn action(&self, part: PartId, winner: Winner) -> Option<ActionId> {
        self.action_in(part, winner)
    }

    fn cookie(&self, part: PartId, winner: Winner) -> Option<u64> {
        self.cookie_in(part, winner)
    }
}

/// A classifier and the policy that it was built from.
#[derive(Clone, Copy)]
pub struct BuiltPolicy<'a> {
    /// The policy.
    pub policy: &'a Policy,
    /// The classifier.
    pub classifier: &'a PolicyClassifier,
}

impl Rules for BuiltPolicy<'_> {
    fn classifier(&self) -> &PolicyClassifier {
        self.classifier
    }

    fn action(&self, part: PartId, winner: Winner) -> Option<ActionId> {
        let rule = self.policy.part(part).get(winner.rule()?)?;
        Some(rule.action())
    }

    fn cookie(&self, part: PartId, winner: Winner) -> Option<u64> {
        let rule = self.policy.part(part).get(winner.rule()?)?;
        Some(rule.cookie())
    }
}

/// A column of the results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// `matched`, Boolean: true if a rule matches.
    Matched,
    /// `rule`, UInt32: the id of the winner, null if no rule matches.
    Rule,
    /// `action`, Dictionary(Int32, Utf8): the name of the winner's action, null if no rule
    /// matches.
    Action,
    /// `action_id`, UInt32: the number of the winner's action, null if no rule matches.
    ActionId,
    /// `cookie`, UInt64: the cookie of the winner, null if no rule matches.
    Cookie,
}

impl Output {
    /// All columns, in the order of the documentation.
    pub const ALL: [Output; 5] = [
        Output::Matched,
        Output::Rule,
        Output::Action,
        Output::ActionId,
        Output::Cookie,
    ];

    /// Returns the column's name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Output::Matched => "matched",
            Output::Rule => "rule",
            Output::Action => "action",
            Output::ActionId => "action_id",
            Output::Cookie => "cookie",
        }
    }

    /// Returns the column's type.
    #[must_use]
    pub fn data_type(self) -> DataType {
        match self {
            Output::Matched => DataType::Boolean,
            Output::Rule | Output::ActionId => DataType::UInt32,
            Output::Action => {
                DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8))
            }
            Output::Cookie => DataType::UInt64,
        }
    }

    /// Returns the schema of results with some columns. All columns may have nulls.
    #[must_use]
    pub fn schema(outputs: &[Output]) -> Arc<Schema> {
        let fields = outputs.iter();
        let fields = fields.map(|output| Field::new(output.name(), output.data_type(), true));
        Arc::new(Schema::new(fields.collect::<Vec<_>>()))
    }
}

/// The rule id and the action number of rows without a match. No rule has this id.
pub const NO_RULE: u32 = u32::MAX;

/// The winners of a batch's headers: numbers for each row. Rows without a header (see
/// [`Headers`]) have nulls in all outputs.
#[derive(Clone, Debug, PartialEq)]
pub struct Winners {
    numbers: Numbers,
    /// True in rows with a header. `None` if all rows have one.
    headers: Option<NullBuffer>,
    other_family_rows: usize,
}

/// The numbers of rows. `actions` and `cookies` are empty if they are not requested.
#[derive(Clone, Debug, PartialEq)]
struct Numbers {
    rules: Vec<u32>,
    actions: Vec<u32>,
    cookies: Vec<u64>,
}

impl Numbers {
    /// Returns the numbers of `rows` rows without a match.
    fn without_match(rows: usize, outputs: &[Output]) -> Numbers {
        Numbers {
            rules: vec![NO_RULE; rows],
            actions: vec![NO_RULE; requested(outputs, ACTION_OUTPUTS, rows)],
            ..Numbers::zeroed(rows, outputs)
        }
    }

    /// Returns numbers that are written before they are read. The memory is not filled.
    fn zeroed(rows: usize, outputs: &[Output]) -> Numbers {
        Numbers {
            rules: vec![0; rows],
            actions: vec![0; requested(outputs, ACTION_OUTPUTS, rows)],
            cookies: vec![0; requested(outputs, &[Output::Cookie], rows)],
        }
    }

    fn as_places(&mut self) -> Places<'_> {
        Places {
            rules: &mut self.rules,
            actions: &mut self.actions,
            cookies: &mut self.cookies,
        }
    }

    /// Copies the numbers of some rows to their places.
    fn scatter(&mut self, rows: &[u32], of_rows: &Numbers) {
        fn copy<T: Copy>(places: &mut [T], rows: &[u32], numbers: &[T]) {
            for (&row, &number) in rows.iter().zip(numbers) {
                places[row as usize] = number;
            }
        }
        copy(&mut self.rules, rows, &of_rows.rules);
        copy(&mut self.actions, rows, &of_rows.actions);
        copy(&mut self.cookies, rows, &of_rows.cookies);
    }
}

/// The outputs that need the numbers of actions.
const ACTION_OUTPUTS: &[Output] = &[Output::Action, Output::ActionId];

/// Returns the number of rows if any of `wanted` is requested, otherwise 0.
fn requested(outputs: &[Output], wanted: &[Output], rows: usize) -> usize {
    let is_wanted = outputs.iter().any(|output| wanted.contains(output));
    if is_wanted { rows } else { 0 }
}

/// Places for the numbers of successive rows.
struct Places<'a> {
    rules: &'a mut [u32],
    actions: &'a mut [u32],
    cookies: &'a mut [u64],
}

impl<'a> Places<'a> {
    /// Takes the places of the first rows.
    fn take_rows(&mut self, rows: usize) -> Places<'a> {
        fn take<'a, T>(places: &mut &'a mut [T], rows: usize) -> &'a mut [T] {
            let count = rows.min(places.len());
            places.split_off_mut(..count).expect("at most all places")
        }
        Places {
            rules: take(&mut self.rules, rows),
            actions: take(&mut self.actions, rows),
            cookies: take(&mut self.cookies, rows),
        }
    }
}

/// The minimum number of rows of a thread. Starting a thread takes some 20 µs, the time of
/// about a thousand lookups.
const MIN_ROWS_PER_THREAD: usize = 8192;

impl Headers {
    /// Looks up all headers, with at most `threads` threads. All threads use the same
    /// version of the rules. `outputs` are the columns that the winners must have;
    /// [`Output::Matched`] and [`Output::Rule`] they have always.
    ///
    /// # Panics
    /// If the rules have other parts than the fields that the headers were read for.
    #[must_use]
    pub fn classify(self, rules: &dyn Rules, outputs: &[Output], threads: usize) -> Winners {
        let rows = self.rows();
        let other_family_rows = self.other_family_rows();
        let parts = self.into_parts();
        let all_have_headers = matches!(&parts[..], [part] if part.rows.is_none());
        let mut numbers = match all_have_headers {
            true => Numbers::zeroed(rows, outputs),
            false => Numbers::without_match(rows, outputs),
        };
        let mut has_header = Vec::new();
        for part in parts {
            let values = part.values();
            let lookup = Lookup {
                rules,
                part: part.fields.part,
                columns: part.columns(&values),
            };
            match &part.rows {
                None => lookup.with_threads(numbers.as_places(), threads),
                Some(rows_of_part) => {
                    let mut of_part = Numbers::zeroed(part.count, outputs);
                    lookup.with_threads(of_part.as_places(), threads);
                    numbers.scatter(rows_of_part, &of_part);
                    has_header.resize(rows, false);
                    for &row in rows_of_part {
                        has_header[row as usize] = true;
                    }
                }
            }
        }
        if !all_have_headers {
            has_header.resize(rows, false);
        }
        let headers = (!has_header.is_empty()).then(|| NullBuffer::from(has_header));
        Winners {
            numbers,
            headers: headers.filter(|headers| headers.null_count() > 0),
            other_family_rows,
        }
    }
}

/// Headers of one part, and the rules that they are looked up in.
#[derive(Clone)]
struct Lookup<'a> {
    rules: &'a dyn Rules,
    part: PartId,
    columns: Columns<'a>,
}

impl Lookup<'_> {
    fn with_threads(&self, mut places: Places<'_>, threads: usize) {
        let rows = self.columns.rows();
        let threads = threads.min(rows / MIN_ROWS_PER_THREAD).max(1);
        if threads == 1 {
            return self.on_this_thread(&mut places);
        }
        let rows_per_thread = rows.div_ceil(threads);
        std::thread::scope(|scope| {
            for start in (0..rows).step_by(rows_per_thread) {
                let end = rows.min(start + rows_per_thread);
                let lookup = Lookup {
                    columns: self.columns.range(start..end),
                    ..self.clone()
                };
                let mut places = places.take_rows(end - start);
                scope.spawn(move || lookup.on_this_thread(&mut places));
            }
        });
    }

    /// Looks up a batch at a time, and writes its numbers while its winners are in the cache.
    fn on_this_thread(&self, places: &mut Places<'_>) {
        let rows = self.columns.rows();
        let classifier = self.rules.classifier().part(self.part);
        let (mut scratch, mut winners) = (Scratch::new(), [Winner::MISS; BATCH]);
        for start in (0..rows).step_by(BATCH) {
            let batch = start..rows.min(start + BATCH);
            let winners = &mut winners[..batch.len()];
            let columns = self.columns.range(batch.clone());
            classifier.classify_columns(&columns, winners, &mut scratch);
            for (place, winner) in places.rules[batch.clone()].iter_mut().zip(&*winners) {
                *place = winner.rule().map_or(NO_RULE, RuleId::get);
            }
            if !places.actions.is_empty() {
                for (place, winner) in places.actions[batch.clone()].iter_mut().zip(&*winners) {
                    let action = self.rules.action(self.part, *winner);
                    *place = action.map_or(NO_RULE, |action| action.0);
                }
            }
            if !places.cookies.is_empty() {
                for (place, winner) in places.cookies[batch].iter_mut().zip(&*winners) {
                    *place = self.rules.cookie(self.part, *winner).unwrap_or(0);
                }
            }
        }
    }
}

impl Winners {
    /// Returns the number of rows.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.numbers.rules.len()
    }

    /// Returns for each row the id of the winner, and the number of its action if actions were
    /// requested: [`NO_RULE`] in rows without a match.
    #[must_use]
    pub fn into_numbers(self) -> (Vec<u32>, Vec<u32>) {
        (self.numbers.rules, self.numbers.actions)
    }

    /// Returns the rows with a header; `None` if all rows have one.
    #[must_use]
    pub fn headers(&self) -> Option<&NullBuffer> {
        self.headers.as_ref()
    }

    /// Returns the number of rows whose addresses are of a family without a part in the
    /// policy.
    #[must_use]
    pub fn other_family_rows(&self) -> usize {
        self.other_family_rows
    }

    /// Returns the column `matched`.
    #[must_use]
    pub fn matched(&self) -> BooleanArray {
        BooleanArray::new(self.matched_rows(), self.headers.clone())
    }

    fn matched_rows(&self) -> BooleanBuffer {
        let rules = self.numbers.rules.iter();
        rules.map(|&rule| rule != NO_RULE).collect()
    }

    /// Returns the column `rule`. Rows without a match are null.
    #[must_use]
    pub fn rules(&self) -> UInt32Array {
        UInt32Array::new(self.numbers.rules.clone().into(), self.match_nulls())
    }

    /// Returns the column `action_id`.
    ///
    /// # Panics
    /// If actions were not requested.
    #[must_use]
    pub fn action_ids(&self) -> UInt32Array {
        UInt32Array::new(self.numbers.actions.clone().into(), self.match_nulls())
    }

    /// Returns the column `cookie`.
    ///
    /// # Panics
    /// If cookies were not requested.
    #[must_use]
    pub fn cookies(&self) -> UInt64Array {
        UInt64Array::new(self.numbers.cookies.clone().into(), self.match_nulls())
    }

    /// Returns some columns as a record batch. `names` has the names of actions, by their
    /// number; another action has its number as its name.
    ///
    /// # Panics
    /// If an output was not requested.
    #[must_use]
    pub fn to_batch(&self, names: &[String], outputs: &[Output]) -> RecordBatch {
        let columns = outputs.iter().map(|output| -> ArrayRef {
            match output {
                Output::Matched => Arc::new(self.matched()),
                Output::Rule => Arc::new(self.rules()),
                Output::Action => Arc::new(action_names(&self.action_ids(), names)),
                Output::ActionId => Arc::new(self.action_ids()),
                Output::Cookie => Arc::new(self.cookies()),
            }
        });
        let columns: Vec<ArrayRef> = columns.collect();
        let rows = arrow_array::RecordBatchOptions::new().with_row_count(Some(self.rows()));
        RecordBatch::try_new_with_options(Output::schema(outputs), columns, &rows)
            .expect("columns of one length, of the types of the schema")
    }

    /// Returns the nulls of columns about the winner: rows without a match.
    fn match_nulls(&self) -> Option<NullBuffer> {
        let has_misses = self.numbers.rules.contains(&NO_RULE);
        has_misses.then(|| NullBuffer::new(self.matched_rows()))
    }
}

/// Returns the column `action` of action numbers. The dictionary has all of `names`, so it is
/// the same for all batches, and then the numbers of actions without a name.
#[must_use]
pub fn action_names(ids: &UInt32Array, names: &[String]) -> DictionaryArray<Int32Type> {
    let mut dictionary: Vec<String> = names.to_vec();
    let mut unnamed: HashMap<u32, usize> = HashMap::new();
    let keys = ids.iter().map(|id| {
        let id = id?;
        let key = match id as usize {
            index if index < names.len() => index,
            _ => *unnamed.entry(id).or_insert_with(|| {
                dictionary.push(id.to_string());
                dictionary.len() - 1
            }),
        };
        Some(i32::try_from(key).expect("fewer than 2^31 actions"))
    });
    let keys: Int32Array = keys.collect();
    let values = StringArray::from_iter_values(dictionary);
    DictionaryArray::try_new(keys, Arc::new(values)).expect("keys of the dictionary")
}
