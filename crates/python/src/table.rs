//! Live tables: rules that many threads look up headers in, while one changes them.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use arrow_array::RecordBatch;
use classyard::policy::PartId;
use classyard::table::PolicyReplica;
use classyard::{
    ActionId, EngineSpec, KeyVec, PolicyTable, PolicyWriter, Rule as OwnedRule, RuleId,
};
use classyard_arrow::{BatchError, HeaderFields, Headers, Mapping, Winners};
use classyard_workload::formats::SchemaChoice;
use pyo3::exceptions::{PyKeyError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::capsules;
use crate::changes::{Fault, Lists, Transaction, Update, parse};
use crate::error::{batch_error, other, refusal};
use crate::keywords;
use crate::policy::{Policy, PolicyData, Rule, rules_of};
use crate::results::Result as Winning;
use crate::verdict::{Explanation, Verdict};

/// A policy in a form for fast lookups, whose rules may change while other threads use it.
///
/// `engine` is a name that `classyard engines` lists; `forest` is the fastest. A call sees the rules
/// before a transaction or after it, never a part of the transaction. Lookups release the
/// GIL.
///
/// >>> import classyard
/// >>> policy = classyard.Policy.from_rules("dual-5tuple", [
/// ...     "permit proto=tcp dst=10.0.0.0/8 dport=443",
/// ...     "deny",
/// ... ])
/// >>> table = classyard.Table(policy)
/// >>> table.classify_one(src="192.0.2.1", dst="10.1.2.3", dport=443, proto="tcp").action
/// 'permit'
/// >>> result = table.classify(
/// ...     dst=["10.1.2.3", "2001:db8::1", None], dport=[443, 443, 443], proto="tcp")
/// >>> result.actions()
/// ['permit', 'deny', None]
/// >>> update = table.apply(insert=["drop src=10.6.0.0/16 priority=100 name=incident"])
/// >>> table.classify_one(src="10.6.1.1", dst="10.1.2.3", dport=443, proto="tcp").action
/// 'drop'
#[pyclass(frozen, module = "classyard")]
pub(crate) struct Table {
    engine: String,
    policy_name: String,
    schemas: Vec<Arc<classyard::Schema>>,
    /// The schemas for lines of rules; `None` if lines cannot name them.
    schema: Option<SchemaChoice>,
    table: PolicyTable,
    writer: Mutex<WriterState>,
    names: RwLock<Names>,
}

struct WriterState {
    writer: PolicyWriter,
    /// An id above all ids that were in use.
    next_id: u64,
}

/// The names of rules and actions. They have the actions and fields of all rules that a reader
/// may see: they are changed before a transaction becomes visible.
struct Names {
    fields: Arc<HeaderFields>,
    actions: Arc<Vec<String>>,
    lines: HashMap<RuleId, u32>,
    rules: HashMap<RuleId, String>,
}

impl Table {
    fn writer(&self) -> MutexGuard<'_, WriterState> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn with_names<T>(&self, read: impl FnOnce(&Names) -> T) -> T {
        read(&self.names.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Looks up batches in one version of the rules.
    fn look_up(
        &self,
        batches: &[RecordBatch],
        mapping: &Mapping,
        threads: usize,
    ) -> Result<Winning, BatchError> {
        let mut reader = self.table.reader();
        let guard = reader.pin();
        // After the pin, so that it has the fields of all visible rules.
        let fields = self.with_names(|names| Arc::clone(&names.fields));
        let mut chunks: Vec<Winners> = Vec::with_capacity(batches.len());
        let mut rows = 0;
        for batch in batches {
            let headers = Headers::read(batch, mapping, &fields);
            let headers = headers.map_err(|error| error.after_rows(rows))?;
            chunks.push(headers.classify(&*guard, &Winning::OUTPUTS, threads));
            rows += batch.num_rows();
        }
        let actions = self.with_names(|names| Arc::clone(&names.actions));
        let version = guard.version().transactions();
        Ok(Winning::new(chunks, actions, version))
    }

    /// Looks up a single header.
    fn look_up_one(&self, batch: &RecordBatch, mapping: &Mapping) -> Result<Verdict, BatchError> {
        let mut reader = self.table.reader();
        let guard = reader.pin();
        let fields = self.with_names(|names| Arc::clone(&names.fields));
        let header = Headers::read(batch, mapping, &fields)?.header(0);
        let version = guard.version().transactions();
        Ok(self.verdict(&guard, header.as_ref(), version))
    }

    fn verdict(
        &self,
        rules: &PolicyReplica,
        header: Option<&(PartId, Vec<u128>)>,
        version: u64,
    ) -> Verdict {
        let mut verdict = Verdict {
            rule: None,
            action: None,
            line: None,
            has_header: header.is_some(),
            version,
        };
        let Some((part, values)) = header else {
            return verdict;
        };
        let mut keys = KeyVec::new(&self.schemas[part.index()]);
        keys.push(values).expect("values that were checked");
        let winner = rules.part(*part).classify_one(keys.key(0));
        if let (Some(id), Some(action)) = (winner.rule(), rules.action_in(*part, winner)) {
            verdict.rule = Some(id.get());
            self.with_names(|names| {
                verdict.action = Some(action_name(&names.actions, action));
                verdict.line = names.lines.get(&id).copied();
            });
        }
        verdict
    }

    /// Returns some of the rules as a policy, with their names and lines. `ids` has them in
    /// order.
    fn some_rules(&self, rules: &PolicyReplica, ids: &[RuleId]) -> PolicyData {
        let forms = ids.iter().map(|&id| {
            let forms = self
                .part_ids()
                .filter_map(|part| Some((part, rules.rule_in(part, id)?)));
            (id, forms.collect())
        });
        self.policy_of(forms.collect())
    }

    fn part_ids(&self) -> impl Iterator<Item = PartId> + use<> {
        (0..self.schemas.len()).map(PartId::from_index)
    }

    fn policy_of(&self, rules: Vec<(RuleId, Vec<(PartId, OwnedRule)>)>) -> PolicyData {
        let mut policy = classyard::Policy::new(&self.policy_name, &self.schemas);
        let mut lines = Vec::new();
        self.with_names(|names| {
            for name in &*names.actions {
                policy.declare_action(name);
            }
            for (id, forms) in rules {
                if forms.is_empty() {
                    continue;
                }
                let forms = forms.iter().map(|(part, rule)| (*part, rule.view()));
                let added = policy.add_forms(&forms.collect::<Vec<_>>());
                added.expect("the forms of a rule of the table");
                if let Some(name) = names.rules.get(&id) {
                    policy.set_rule_name(id, name);
                }
                lines.push(names.lines.get(&id).copied().unwrap_or(0));
            }
        });
        PolicyData {
            rules: policy,
            lines,
            lists: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// Makes a transaction and publishes it.
    fn change(
        &self,
        insert: &[String],
        remove: Vec<u32>,
        modify: &[String],
    ) -> Result<Update, Fault> {
        let refused = |message: String| Fault::Refused {
            message,
            change: None,
        };
        let schema = self.schema.as_ref().ok_or_else(|| {
            refused("lines of rules cannot name the schemas of this policy".to_owned())
        })?;
        let lists = Lists {
            remove,
            modify: parse(schema, "modify", modify)?,
            insert: parse(schema, "insert", insert)?,
        };
        let mut state = self.writer();
        if state.writer.is_poisoned() {
            return Err(refused(
                "an earlier change failed in the engine; build a new table".to_owned(),
            ));
        }
        let actions = self.with_names(|names| Arc::clone(&names.actions));
        let mut changes = Transaction::new(&self.schemas, &lists, &actions, state.next_id)?;
        let checked = {
            let transaction = changes.buffer.transaction();
            state.writer.check(&transaction)
        };
        checked.map_err(|error| Fault::Refused {
            message: refusal(&error),
            change: changes.origin(error.change()),
        })?;
        self.rename(&lists, &changes);
        let transaction = changes.buffer.transaction();
        let applied = state.writer.apply(&transaction);
        drop(transaction);
        applied.map_err(|error| Fault::Refused {
            message: refusal(&error),
            change: changes.origin(error.change()),
        })?;
        state.next_id = changes.next_id;
        let version = state.writer.publish().transactions();
        let inserted = changes.inserted.iter().map(|(id, _)| id.get());
        Ok(Update::new(version, inserted.collect()))
    }

    /// Updates the names before a transaction becomes visible. Changed rules have no line.
    fn rename(&self, lists: &Lists, changes: &Transaction) {
        let mut names = self.names.write().unwrap_or_else(PoisonError::into_inner);
        let names = &mut *names;
        if names.actions.len() < changes.actions.len() {
            names.actions = Arc::new(changes.actions.clone());
        }
        let fields = Arc::make_mut(&mut names.fields);
        for rule in lists.modify.iter().chain(&lists.insert) {
            for (part, matches) in &rule.forms {
                fields.add_matches(*part, matches);
            }
        }
        for id in &changes.removed {
            names.lines.remove(id);
            names.rules.remove(id);
        }
        for (id, name) in changes.modified.iter().chain(&changes.inserted) {
            names.lines.remove(id);
            match name {
                Some(name) => names.rules.insert(*id, name.clone()),
                None => names.rules.remove(id),
            };
        }
    }
}

fn action_name(names: &[String], action: ActionId) -> String {
    let name = names.get(action.0 as usize);
    name.map_or_else(|| action.0.to_string(), String::clone)
}

#[pymethods]
impl Table {
    #[new]
    #[pyo3(signature = (policy, engine="forest"))]
    fn new(py: Python<'_>, policy: PyRef<'_, Policy>, engine: &str) -> PyResult<Table> {
        let data = Arc::clone(&policy.data);
        let spec = EngineSpec::parse(engine).map_err(other)?;
        let built = py.detach(|| spec.builder().policy_table(&data.rules));
        let (writer, table) = built.map_err(other)?;
        let rules = &data.rules;
        let lines = rules
            .ids()
            .iter()
            .filter_map(|&id| Some((id, data.line(id)?)));
        let named = rules.ids().iter();
        let named = named.filter_map(|&id| Some((id, rules.rule_name(id)?.to_owned())));
        let next_id = rules.ids().iter().map(|id| u64::from(id.get()) + 1).max();
        Ok(Table {
            engine: engine.to_owned(),
            policy_name: rules.name().to_owned(),
            schemas: rules.schemas().cloned().collect(),
            schema: SchemaChoice::of(rules),
            table,
            writer: Mutex::new(WriterState {
                writer,
                next_id: next_id.unwrap_or(0),
            }),
            names: RwLock::new(Names {
                fields: Arc::new(HeaderFields::of(rules)),
                actions: Arc::new(data.actions()),
                lines: lines.collect(),
                rules: named.collect(),
            }),
        })
    }

    /// Looks up the header of each row.
    ///
    /// `batch` is Arrow data: a table or record batch of pyarrow, polars, DuckDB or pandas.
    /// `columns` is the name of a preset (`vpc`, `zeek`, `netflow`, `ipfix`) or a dict from
    /// fields to names of columns; by default, a column has the name of its field. With
    /// `preset`, the dict changes a preset. `constants` is a dict with values for fields
    /// without a column. Instead of `batch`, columns may be keyword arguments: arrays of numpy
    /// or Arrow, lists, or single values.
    ///
    /// A field that no rule depends on needs no column. Rows with a null in a column have a
    /// null in the result. Raises `ColumnError`, which names the column and the row.
    ///
    /// >>> import classyard, pyarrow
    /// >>> table = classyard.Table(classyard.Policy.from_rules("ipv4-5tuple", ["deny dport=23"]))
    /// >>> flows = pyarrow.table({"srcaddr": ["10.0.0.1"], "dstport": [23], "protocol": [6]})
    /// >>> table.classify(flows, columns="vpc").actions()
    /// ['deny']
    #[pyo3(signature = (batch=None, *, columns=None, preset=None, constants=None, threads=1, **fields))]
    #[allow(clippy::too_many_arguments)]
    fn classify(
        &self,
        py: Python<'_>,
        batch: Option<&Bound<'_, PyAny>>,
        columns: Option<&Bound<'_, PyAny>>,
        preset: Option<&str>,
        constants: Option<&Bound<'_, PyDict>>,
        threads: usize,
        fields: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Winning> {
        if threads == 0 {
            return Err(PyValueError::new_err("threads is 0; expected at least 1"));
        }
        let (batches, mapping) = match (batch, fields) {
            (Some(_), Some(fields)) => {
                let names: Vec<String> = fields.keys().extract()?;
                let message = format!("a batch and the columns {}", names.join(", "));
                return Err(PyTypeError::new_err(message));
            }
            (None, None) => return Err(PyTypeError::new_err("no batch and no columns")),
            (None, Some(fields)) => {
                if columns.is_some() || preset.is_some() {
                    return Err(PyTypeError::new_err(
                        "`columns` and `preset` are for a batch",
                    ));
                }
                let (batch, mapping) = keywords::headers(fields)?;
                (vec![batch], mapping)
            }
            (Some(batch), None) => {
                if !capsules::has_arrow(batch)? {
                    let kind = batch.get_type().qualname()?;
                    let message = format!("a {kind} has no Arrow data; pass columns by name");
                    return Err(PyTypeError::new_err(message));
                }
                (capsules::batches(batch)?, mapping(columns, preset)?)
            }
        };
        let mapping = with_constants(mapping, constants)?;
        let found = py.detach(|| self.look_up(&batches, &mapping, threads));
        // Memory of Python is released while the thread is attached.
        drop(batches);
        found.map_err(|error| batch_error(py, &error))
    }

    /// Looks up one header: a value for each field.
    ///
    /// >>> import classyard
    /// >>> table = classyard.Table(classyard.Policy.parse("schema ipv4-5tuple\ndeny dport=23"))
    /// >>> verdict = table.classify_one(dport=23)
    /// >>> verdict.rule, verdict.action, verdict.line
    /// (0, 'deny', 2)
    #[pyo3(signature = (**fields))]
    fn classify_one(
        &self,
        py: Python<'_>,
        fields: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Verdict> {
        let (batch, mapping) = one_header(py, fields)?;
        let verdict = self.look_up_one(&batch, &mapping);
        verdict.map_err(|error| batch_error(py, &error))
    }

    /// Returns all rules that match a header: the winner, and the rules that it beats.
    ///
    /// >>> import classyard
    /// >>> policy = classyard.Policy.from_rules("ipv4-5tuple", ["permit dport=80-89", "deny"])
    /// >>> explanation = classyard.Table(policy).explain(dport=80)
    /// >>> explanation.winner.text, [rule.text for rule in explanation.beaten]
    /// ('permit dport=80-89', ['deny'])
    #[pyo3(signature = (**fields))]
    fn explain(&self, py: Python<'_>, fields: Option<&Bound<'_, PyDict>>) -> PyResult<Explanation> {
        let (batch, mapping) = one_header(py, fields)?;
        let explained = py.detach(|| -> Result<Explanation, BatchError> {
            let mut reader = self.table.reader();
            let guard = reader.pin();
            let fields = self.with_names(|names| Arc::clone(&names.fields));
            let header = Headers::read(&batch, &mapping, &fields)?.header(0);
            let verdict = self.verdict(&guard, header.as_ref(), guard.version().transactions());
            let mut matching = Vec::new();
            if let Some((part, values)) = &header {
                let mut keys = KeyVec::new(&self.schemas[part.index()]);
                keys.push(values).expect("values that were checked");
                let rules = guard.rules_in(*part);
                let rules = rules.filter(|rule| rule.view().matches(keys.key(0)));
                matching.extend(rules.map(|rule| rule.view().id()));
            }
            let mut rules = rules_of(&self.some_rules(&guard, &matching), &matching);
            let beaten = rules.split_off(rules.len().min(1));
            Ok(Explanation {
                verdict,
                winner: rules.pop(),
                beaten,
            })
        });
        explained.map_err(|error| batch_error(py, &error))
    }

    /// Makes changes as one transaction: all of them, or none if one is refused.
    ///
    /// `insert` and `modify` have lines in classyard's own format, with `priority=N`: the
    /// highest priority wins. `remove` has ids. Lines of `modify` have `id=N` and replace the
    /// rule with that id. Inserted rules without `id=N` get free ids, which the result has.
    /// Removals are made first, then modifications, then insertions. Other threads see all
    /// changes when the call returns. Raises `ParseError` and `UpdateError`.
    ///
    /// >>> import classyard
    /// >>> table = classyard.Table(classyard.Policy.from_rules("ipv4-5tuple", ["deny"]))
    /// >>> table.apply(insert=["permit dport=22 priority=9"], remove=[0])
    /// <classyard.Update version 1, inserted [1]>
    /// >>> try:
    /// ...     table.apply(remove=[1, 7])
    /// ... except classyard.UpdateError as error:
    /// ...     print(error)
    /// remove[1]: cannot remove rule 7: no rule has that id
    #[pyo3(signature = (*, insert=Vec::new(), remove=Vec::new(), modify=Vec::new()))]
    fn apply(
        &self,
        py: Python<'_>,
        insert: Vec<String>,
        remove: Vec<u32>,
        modify: Vec<String>,
    ) -> PyResult<Update> {
        let changed = py.detach(|| self.change(&insert, remove, &modify));
        changed.map_err(|fault| fault.into_error(py))
    }

    /// Returns the rules of the present version, best first.
    fn policy(&self, py: Python<'_>) -> Policy {
        py.detach(|| {
            let mut reader = self.table.reader();
            let guard = reader.pin();
            let mut rules: BTreeMap<(u32, RuleId), Vec<(PartId, OwnedRule)>> = BTreeMap::new();
            for part in self.part_ids() {
                for rule in guard.rules_in(part) {
                    let (id, priority) = (rule.view().id(), rule.view().priority());
                    let rank = (u32::MAX - priority.0, id);
                    rules.entry(rank).or_default().push((part, rule));
                }
            }
            let rules = rules.into_iter().map(|((_, id), forms)| (id, forms));
            Policy::new(self.policy_of(rules.collect()))
        })
    }

    /// Returns the rule with an id. Raises `KeyError`.
    fn rule(&self, id: u32) -> PyResult<Rule> {
        let mut reader = self.table.reader();
        let guard = reader.pin();
        let rule_id = RuleId::new(id).ok();
        let rule = rule_id.and_then(|id| rules_of(&self.some_rules(&guard, &[id]), &[id]).pop());
        rule.ok_or_else(|| PyKeyError::new_err(id))
    }

    fn __len__(&self) -> usize {
        self.table.reader().pin().len()
    }

    /// The version of the rules: the number of transactions.
    #[getter]
    fn version(&self) -> u64 {
        self.table.reader().pin().version().transactions()
    }

    /// The name and the options of the engine.
    #[getter]
    fn engine(&self) -> &str {
        &self.engine
    }

    /// The names of all actions, by their number.
    #[getter]
    fn actions(&self) -> Vec<String> {
        self.with_names(|names| names.actions.to_vec())
    }

    fn __repr__(&self) -> String {
        format!(
            "<classyard.Table {} of {} rules, {}>",
            self.policy_name,
            self.__len__(),
            self.engine
        )
    }
}

/// Returns the header of keyword arguments: a batch of one row.
fn one_header(
    py: Python<'_>,
    fields: Option<&Bound<'_, PyDict>>,
) -> PyResult<(RecordBatch, Mapping)> {
    let none = PyDict::new(py);
    let (batch, mapping) = keywords::headers(fields.unwrap_or(&none))?;
    match batch.num_rows() {
        1 => Ok((batch, mapping)),
        rows => Err(PyValueError::new_err(format!(
            "{rows} headers; expected one, use classify"
        ))),
    }
}

fn mapping(columns: Option<&Bound<'_, PyAny>>, preset: Option<&str>) -> PyResult<Mapping> {
    let named = |name: &str| {
        let unknown = || {
            let presets = Mapping::PRESETS.join(", ");
            PyValueError::new_err(format!(
                "unknown preset `{name}`; expected one of {presets}"
            ))
        };
        Mapping::preset(name).ok_or_else(unknown)
    };
    let mut mapping = named(preset.unwrap_or("fields"))?;
    let Some(columns) = columns else {
        return Ok(mapping);
    };
    if let Ok(name) = columns.extract::<String>() {
        return match preset {
            None => named(&name),
            Some(_) => Err(PyTypeError::new_err(
                "two presets; expected a dict of columns",
            )),
        };
    }
    let columns = columns.cast::<PyDict>().map_err(|_| {
        PyTypeError::new_err(
            "`columns` must be the name of a preset, or a dict from fields to columns",
        )
    })?;
    for (field, column) in columns {
        let field: String = field.extract()?;
        match column.extract::<String>() {
            Ok(column) => mapping = mapping.column(&field, &column),
            Err(_) => {
                let names: Vec<String> = column.extract()?;
                if names.is_empty() {
                    return Err(PyValueError::new_err(format!(
                        "no columns for the field `{field}`"
                    )));
                }
                let names: Vec<&str> = names.iter().map(String::as_str).collect();
                mapping = mapping.columns(&field, &names);
            }
        }
    }
    Ok(mapping)
}

fn with_constants(
    mut mapping: Mapping,
    constants: Option<&Bound<'_, PyDict>>,
) -> PyResult<Mapping> {
    let Some(constants) = constants else {
        return Ok(mapping);
    };
    for (field, value) in constants {
        let field: String = field.extract()?;
        let constant = keywords::constant(&field, &value)?;
        let constant = constant.ok_or_else(|| {
            PyTypeError::new_err(format!(
                "the constant for `{field}` must be an integer, a text or an address"
            ))
        })?;
        mapping = mapping.constant(&field, constant);
    }
    Ok(mapping)
}
