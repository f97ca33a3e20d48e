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
use classyard::columns::Columns;
use classyard::policy::PartId;
use classyard::table::PolicyReplica;
use classyard::{ActionId, Classifier, Policy, PolicyClassifier, RuleId, Scratch, Winner};

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

/// The winners of a batch's headers, one for each row. Rows without a header (see
/// [`Headers`]) have nulls in all outputs.
#[derive(Clone, Debug)]
pub struct Winners {
    /// A winner for each row: a miss in rows without a header.
    winners: Vec<Winner>,
    /// True in rows with a header. `None` if all rows have one.
    headers: Option<NullBuffer>,
    /// The part and the rows of its headers; `None` if these are all rows.
    parts: Vec<(PartId, Option<Vec<u32>>)>,
    other_family_rows: usize,
}

/// The minimum number of rows of a thread. Starting a thread takes some 20 µs, the time of
/// about a thousand lookups.
const MIN_ROWS_PER_THREAD: usize = 8192;

impl Headers {
    /// Looks up all headers, with at most `threads` threads. All threads use the same
    /// version of the rules.
    ///
    /// # Panics
    /// If the rules have other parts than the fields that the headers were read for.
    #[must_use]
    pub fn classify(self, rules: &dyn Rules, threads: usize) -> Winners {
        let rows = self.rows();
        let other_family_rows = self.other_family_rows();
        let mut winners = Winners {
            winners: Vec::new(),
            headers: None,
            parts: Vec::new(),
            other_family_rows,
        };
        let mut has_header = Vec::new();
        for part in self.into_parts() {
            let classifier = rules.classifier().part(part.fields.part);
            let mut part_winners = vec![Winner::MISS; part.count];
            let values = part.values();
            classify(
                classifier,
                &part.columns(&values),
                &mut part_winners,
                threads,
            );
            match &part.rows {
                None => winners.winners = part_winners,
                Some(rows_of_part) => {
                    winners.winners.resize(rows, Winner::MISS);
                    has_header.resize(rows, false);
                    for (&row, winner) in rows_of_part.iter().zip(part_winners) {
                        winners.winners[row as usize] = winner;
                        has_header[row as usize] = true;
                    }
                }
            }
            winners.parts.push((part.fields.part, part.rows));
        }
        if winners.winners.len() < rows {
            winners.winners.resize(rows, Winner::MISS);
            has_header.resize(rows, false);
        }
        let headers = (!has_header.is_empty()).then(|| NullBuffer::from(has_header));
        winners.headers = headers.filter(|headers| headers.null_count() > 0);
        winners
    }
}

fn classify(
    classifier: &dyn Classifier,
    columns: &Columns<'_>,
    winners: &mut [Winner],
    threads: usize,
) {
    let threads = threads.min(winners.len() / MIN_ROWS_PER_THREAD).max(1);
    if threads == 1 {
        classifier.classify_columns(columns, winners, &mut Scratch::new());
        return;
    }
    let rows_per_thread = winners.len().div_ceil(threads);
    std::thread::scope(|scope| {
        for (index, winners) in winners.chunks_mut(rows_per_thread).enumerate() {
            let start = index * rows_per_thread;
            let columns = columns.range(start..start + winners.len());
            scope.spawn(move || {
                classifier.classify_columns(&columns, winners, &mut Scratch::new());
            });
        }
    });
}

impl Winners {
    /// Returns the winner of each row: a miss in rows without a header.
    #[must_use]
    pub fn winners(&self) -> &[Winner] {
        &self.winners
    }

    /// Returns the rows that have a header; `None` if all have.
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
        self.winners
            .iter()
            .map(|winner| !winner.is_miss())
            .collect()
    }

    /// Returns the column `rule`. Rows without a match are null.
    #[must_use]
    pub fn rules(&self) -> UInt32Array {
        let rules = self.winners.iter();
        let rules = rules.map(|winner| winner.rule().map_or(0, RuleId::get));
        UInt32Array::new(rules.collect::<Vec<_>>().into(), self.match_nulls())
    }

    /// Returns the column `action_id`. `rules` must be the rules of the lookup.
    #[must_use]
    pub fn action_ids(&self, rules: &dyn Rules) -> UInt32Array {
        UInt32Array::new(self.action_numbers(rules, 0).into(), self.match_nulls())
    }

    /// Returns the number of each winner's action, and `miss` in rows without a match. `rules`
    /// must be the rules of the lookup.
    #[must_use]
    pub fn action_numbers(&self, rules: &dyn Rules, miss: u32) -> Vec<u32> {
        self.for_each_winner(miss, |part, winner| {
            rules.action(part, winner).map_or(miss, |action| action.0)
        })
    }

    /// Returns the column `cookie`. `rules` must be the rules of the lookup.
    #[must_use]
    pub fn cookies(&self, rules: &dyn Rules) -> UInt64Array {
        let cookie = |part, winner| rules.cookie(part, winner).unwrap_or(0);
        UInt64Array::new(self.for_each_winner(0, cookie).into(), self.match_nulls())
    }

    /// Returns some columns as a record batch. `rules` must be the rules of the lookup.
    /// `names` has the names of actions, by their number; another action has its number as
    /// its name.
    #[must_use]
    pub fn to_batch(&self, rules: &dyn Rules, names: &[String], outputs: &[Output]) -> RecordBatch {
        let columns = outputs.iter().map(|output| -> ArrayRef {
            match output {
                Output::Matched => Arc::new(self.matched()),
                Output::Rule => Arc::new(self.rules()),
                Output::Action => Arc::new(action_names(&self.action_ids(rules), names)),
                Output::ActionId => Arc::new(self.action_ids(rules)),
                Output::Cookie => Arc::new(self.cookies(rules)),
            }
        });
        let columns: Vec<ArrayRef> = columns.collect();
        let rows = arrow_array::RecordBatchOptions::new().with_row_count(Some(self.winners.len()));
        RecordBatch::try_new_with_options(Output::schema(outputs), columns, &rows)
            .expect("columns of one length, of the types of the schema")
    }

    /// Returns the nulls of columns about the winner: rows without a match.
    fn match_nulls(&self) -> Option<NullBuffer> {
        let is_miss = self.winners.iter().any(|winner| winner.is_miss());
        is_miss.then(|| NullBuffer::new(self.matched_rows()))
    }

    /// Returns a number for each row, and `miss` for rows without a match. Computes the number
    /// once for each rule of a part.
    fn for_each_winner<T: Copy>(&self, miss: T, number: impl Fn(PartId, Winner) -> T) -> Vec<T> {
        let mut numbers = vec![miss; self.winners.len()];
        for (part, rows) in &self.parts {
            let mut known = KnownRules::new(self.winners.len());
            let mut set = |row: usize| {
                let winner = self.winners[row];
                if !winner.is_miss() {
                    numbers[row] = known.get(winner, || number(*part, winner));
                }
            };
            match rows {
                None => (0..self.winners.len()).for_each(set),
                Some(rows) => rows.iter().for_each(|&row| set(row as usize)),
            }
        }
        numbers
    }
}

/// Numbers that were computed for rules: in an array for small ids, in a map for others.
struct KnownRules<T> {
    by_small_id: Vec<Option<T>>,
    limit: usize,
    by_id: HashMap<u32, T>,
}

impl<T: Copy> KnownRules<T> {
    /// `rows` is the number of rows: the array gets at most this length, but at least 65,536.
    fn new(rows: usize) -> KnownRules<T> {
        KnownRules {
            by_small_id: Vec::new(),
            limit: rows.max(65_536),
            by_id: HashMap::new(),
        }
    }

    fn get(&mut self, winner: Winner, compute: impl FnOnce() -> T) -> T {
        let id = winner.rule().expect("a match").get();
        let index = id as usize;
        if index >= self.limit {
            return *self.by_id.entry(id).or_insert_with(compute);
        }
        if index >= self.by_small_id.len() {
            self.by_small_id.resize(index + 1, None);
        }
        *self.by_small_id[index].get_or_insert_with(compute)
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
