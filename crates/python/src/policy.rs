//! Policies: rules with their names, actions and lines.

use std::path::PathBuf;
use std::sync::Arc;

use classyard::{ActionId, RuleId};
use classyard_configs::{AnyOptions, AnyRules, InputFormat, WriteOptions, read_any, read_any_file};
use classyard_workload::diagnostic::{ReadError, ReadOptions};
use classyard_workload::formats::{self, RuleFormat, SchemaChoice};
use pyo3::exceptions::{PyKeyError, PyValueError};
use pyo3::prelude::*;

use crate::error::{other, read_error};

/// Rules in one priority order, with the names of actions and the lines of the file.
///
/// A policy does not change. Build a `Table` to look up headers or to change rules.
///
/// >>> import classyard
/// >>> policy = classyard.Policy.parse('''
/// ... schema dual-5tuple
/// ... permit proto=tcp dst=10.0.0.0/8 dport=443 name=web
/// ... deny
/// ... ''')
/// >>> len(policy), policy.actions[:2]
/// (2, ['permit', 'deny'])
/// >>> policy.rule(0).text
/// 'permit dst=10.0.0.0/8 dport=443 proto=tcp name=web'
#[pyclass(frozen, module = "classyard")]
#[derive(Clone)]
pub(crate) struct Policy {
    pub(crate) data: Arc<PolicyData>,
}

/// The rules, with the lines, lists and notes of their file.
#[derive(Clone)]
pub(crate) struct PolicyData {
    pub(crate) rules: classyard::Policy,
    /// The line of each rule, in the order of the rules; 0 for a rule without a line.
    pub(crate) lines: Vec<u32>,
    pub(crate) lists: Vec<String>,
    pub(crate) notes: Vec<String>,
}

/// The state of a pickled policy: text, TOML of the schema, name, lines, lists, notes.
type State = (String, Option<String>, Vec<u32>, Vec<String>, Vec<String>);

impl PolicyData {
    fn new(read: AnyRules) -> PolicyData {
        PolicyData {
            rules: read.policy,
            lines: read.line_of_rule,
            lists: read.lists,
            notes: read.notes,
        }
    }

    /// Returns the line of a rule, from 1.
    pub(crate) fn line(&self, id: RuleId) -> Option<u32> {
        let line = *self.lines.get(self.rules.position(id)?)?;
        (line > 0).then_some(line)
    }

    /// Returns the names of all actions, by their number.
    pub(crate) fn actions(&self) -> Vec<String> {
        let names = (0..).map_while(|number| self.rules.action_name(ActionId(number)));
        names.map(str::to_owned).collect()
    }
}

/// Returns the schema with a name.
pub(crate) fn named_schema(name: &str) -> PyResult<SchemaChoice> {
    SchemaChoice::named(name).ok_or_else(|| {
        let names = SchemaChoice::names().join(", ");
        PyValueError::new_err(format!("unknown schema `{name}`; expected one of {names}"))
    })
}

fn named_format(name: &str) -> PyResult<InputFormat> {
    InputFormat::from_name(name).ok_or_else(|| {
        let names: Vec<&str> = InputFormat::all().map(InputFormat::name).collect();
        let names = names.join(", ");
        PyValueError::new_err(format!("unknown format `{name}`; expected one of {names}"))
    })
}

fn options(
    format: Option<&str>,
    schema: Option<&str>,
    list: Option<String>,
) -> PyResult<AnyOptions> {
    Ok(AnyOptions {
        format: format.map(named_format).transpose()?,
        schema: schema.map(named_schema).transpose()?,
        list,
        read: ReadOptions::DEFAULT,
    })
}

/// Refuses schema files: a text has no folder.
fn no_schema_file(name: &str) -> Result<Arc<classyard::Schema>, ReadError> {
    Err(ReadError::Format {
        file: name.to_owned(),
        found: "the text names a schema file".to_owned(),
        expected: "Policy.read with the path of the rules".to_owned(),
    })
}

impl Policy {
    pub(crate) fn new(data: PolicyData) -> Policy {
        Policy {
            data: Arc::new(data),
        }
    }

    fn parse_text(
        py: Python<'_>,
        source: &str,
        text: &str,
        options: &AnyOptions,
    ) -> PyResult<Policy> {
        let read = py.detach(|| read_any(source, text, options, &mut no_schema_file));
        let read = read.map_err(|error| read_error(py, &error, 0))?;
        Ok(Policy::new(PolicyData::new(read)))
    }
}

#[pymethods]
impl Policy {
    /// Reads a file with rules of any format; see docs/formats.md. gzip is unpacked.
    ///
    /// `list` selects one list of the configuration of a firewall. `schema` is needed if the
    /// rules do not name theirs. Raises `ParseError`.
    #[staticmethod]
    #[pyo3(signature = (path, format=None, schema=None, list=None))]
    fn read(
        py: Python<'_>,
        path: PathBuf,
        format: Option<&str>,
        schema: Option<&str>,
        list: Option<String>,
    ) -> PyResult<Policy> {
        let options = options(format, schema, list)?;
        let read = py.detach(|| read_any_file(&path, &options));
        let read = read.map_err(|error| read_error(py, &error, 0))?;
        Ok(Policy::new(PolicyData::new(read)))
    }

    /// Reads rules of any format from a text. `source` is the name of the text in messages.
    ///
    /// >>> import classyard
    /// >>> try:
    /// ...     classyard.Policy.parse("schema ipv4-5tuple\npermit dport=http")
    /// ... except classyard.ParseError as error:
    /// ...     print(error.line, error.column, error.expected)
    /// 2 14 a decimal or 0x number
    #[staticmethod]
    #[pyo3(signature = (text, source="<text>", format=None, schema=None, list=None))]
    fn parse(
        py: Python<'_>,
        text: &str,
        source: &str,
        format: Option<&str>,
        schema: Option<&str>,
        list: Option<String>,
    ) -> PyResult<Policy> {
        Policy::parse_text(py, source, text, &options(format, schema, list)?)
    }

    /// Returns a policy of lines in classyard's own format. The first matching line wins.
    ///
    /// >>> import classyard
    /// >>> rules = ["permit dport=80,443 proto=tcp", "deny"]
    /// >>> len(classyard.Policy.from_rules("ipv4-5tuple", rules))
    /// 3
    #[staticmethod]
    fn from_rules(py: Python<'_>, schema: &str, lines: Vec<String>) -> PyResult<Policy> {
        if let Some(line) = lines.iter().find(|line| line.contains(['\n', '\r'])) {
            return Err(PyValueError::new_err(format!(
                "a rule of several lines: {line:?}"
            )));
        }
        let options = options(Some(RuleFormat::Rules.name()), Some(schema), None)?;
        Policy::parse_text(py, "<rules>", &lines.join("\n"), &options)
    }

    fn __len__(&self) -> usize {
        self.data.rules.len()
    }

    fn __repr__(&self) -> String {
        let rules = &self.data.rules;
        format!(
            "<classyard.Policy {} of {} rules>",
            rules.name(),
            rules.len()
        )
    }

    /// The name of the schema, such as `ipv4-5tuple`, `dual-5tuple` or `acl`.
    #[getter]
    fn name(&self) -> &str {
        self.data.rules.name()
    }

    /// The names of the schemas, one for each part.
    #[getter]
    fn schemas(&self) -> Vec<String> {
        let schemas = self.data.rules.schemas();
        schemas.map(|schema| schema.name().to_owned()).collect()
    }

    /// The names of all fields.
    #[getter]
    fn fields(&self) -> Vec<String> {
        let fields = classyard_arrow::HeaderFields::of(&self.data.rules);
        fields.names().map(str::to_owned).collect()
    }

    /// The names of the lists of a configuration.
    #[getter]
    fn lists(&self) -> Vec<String> {
        self.data.lists.clone()
    }

    /// The names of all actions, by their number.
    #[getter]
    fn actions(&self) -> Vec<String> {
        self.data.actions()
    }

    /// One sentence for each kind of content that the reader left out or assumed.
    #[getter]
    fn notes(&self) -> Vec<String> {
        self.data.notes.clone()
    }

    /// The ids of the rules, in the order of the file.
    #[getter]
    fn ids(&self) -> Vec<u32> {
        self.data.rules.ids().iter().map(|id| id.get()).collect()
    }

    /// Returns the rule with an id. Raises `KeyError`.
    fn rule(&self, id: u32) -> PyResult<Rule> {
        let rule_id = RuleId::new(id).ok();
        let rule = rule_id.and_then(|id| rules_of(&self.data, &[id]).pop());
        rule.ok_or_else(|| PyKeyError::new_err(id))
    }

    /// Returns the rules as a text of a format, such as `rules`, `json` or `iptables`.
    /// Raises `Error` if the format cannot express a rule.
    #[pyo3(signature = (format="rules"))]
    fn to_text(&self, py: Python<'_>, format: &str) -> PyResult<String> {
        let format = named_format(format)?;
        let written = py.detach(|| write(&self.data, format));
        written.map_err(other)
    }

    fn __reduce__<'py>(
        slf: &Bound<'py, Self>,
        py: Python<'py>,
    ) -> PyResult<(Bound<'py, PyAny>, State)> {
        let policy = slf.get();
        let data = &policy.data;
        let text = py.detach(|| write(data, InputFormat::Rules(RuleFormat::Rules)));
        let schemas: Vec<_> = data.rules.schemas().collect();
        let mut toml = None;
        if let [schema] = schemas[..]
            && SchemaChoice::named(schema.name()).is_none()
        {
            let mut bytes = Vec::new();
            formats::write_schema(schema, &mut bytes)?;
            toml = Some(String::from_utf8_lossy(&bytes).into_owned());
        }
        let restore = slf.get_type().getattr("_restore")?;
        let lines = data.lines.clone();
        Ok((
            restore,
            (
                text.map_err(other)?,
                toml,
                lines,
                data.lists.clone(),
                data.notes.clone(),
            ),
        ))
    }

    /// Returns a pickled policy.
    #[staticmethod]
    fn _restore(
        py: Python<'_>,
        text: &str,
        schema: Option<&str>,
        lines: Vec<u32>,
        lists: Vec<String>,
        notes: Vec<String>,
    ) -> PyResult<Policy> {
        let mut options = options(Some(RuleFormat::Rules.name()), None, None)?;
        let mut text = text.to_owned();
        if let Some(toml) = schema {
            let schema = formats::read_schema("<schema>", toml);
            let schema = schema.map_err(|error| read_error(py, &error, 0))?;
            options.schema = Some(SchemaChoice::Single(schema));
            let own_schema = |line: &&str| !line.trim_start().starts_with("schema ");
            text = text
                .lines()
                .filter(own_schema)
                .collect::<Vec<_>>()
                .join("\n");
        }
        let read = read_any("<pickle>", &text, &options, &mut no_schema_file);
        let read = read.map_err(|error| read_error(py, &error, 0))?;
        Ok(Policy::new(PolicyData {
            lines,
            lists,
            notes,
            ..PolicyData::new(read)
        }))
    }
}

/// Writes a policy, or says why its format cannot express it.
pub(crate) fn write(data: &PolicyData, format: InputFormat) -> Result<String, String> {
    match format {
        InputFormat::Rules(format) => {
            let mut text = Vec::new();
            let report = formats::write_policy(&data.rules, format, &mut text);
            let report = report.map_err(|error| error.to_string())?;
            if let Some(loss) = report.losses.shown().first() {
                let id = loss.id.get();
                return Err(format!(
                    "rule {id} cannot be written as {format}: {}",
                    loss.why
                ));
            }
            String::from_utf8(text).map_err(|error| error.to_string())
        }
        InputFormat::Config(format) => {
            let options = WriteOptions {
                lists: &data.lists,
                ..WriteOptions::default()
            };
            let written = classyard_configs::write(&data.rules, format, &options);
            written
                .map(|written| written.text)
                .map_err(|error| match error {
                    classyard_configs::WriteError::Rules { shown, .. } if !shown.is_empty() => {
                        let id = shown[0].rule.get();
                        format!("rule {id} cannot be written: {}", shown[0].reason)
                    }
                    error => error.to_string(),
                })
        }
    }
}

/// A rule of a policy or of a table.
#[pyclass(frozen, get_all, module = "classyard")]
#[derive(Clone)]
pub(crate) struct Rule {
    /// The id.
    pub(crate) id: u32,
    /// The priority: the highest wins.
    pub(crate) priority: u32,
    /// The name of the action.
    pub(crate) action: String,
    /// The name of the rule, or None.
    pub(crate) name: Option<String>,
    /// The line in the file, from 1. None if the rule was not read from a file.
    pub(crate) line: Option<u32>,
    /// The rule in classyard's own format, without id and priority.
    pub(crate) text: String,
}

#[pymethods]
impl Rule {
    fn __repr__(&self) -> String {
        format!("<classyard.Rule {}: {}>", self.id, self.text)
    }
}

/// Returns the rules with some ids, in their order, without ids that do not exist.
pub(crate) fn rules_of(data: &PolicyData, ids: &[RuleId]) -> Vec<Rule> {
    ids.iter().filter_map(|&id| rule_of(data, id)).collect()
}

fn rule_of(data: &PolicyData, id: RuleId) -> Option<Rule> {
    let policy = &data.rules;
    let (_, first) = policy.rule(id).next()?;
    let action = policy.action_name(first.action());
    let action = action.map_or_else(|| first.action().0.to_string(), str::to_owned);
    Some(Rule {
        id: id.get(),
        priority: first.priority().0,
        action,
        name: policy.rule_name(id).map(str::to_owned),
        line: data.line(id),
        text: text_of(policy, id),
    })
}

/// Returns a rule in classyard's own format: the only rule of a policy, which has the id 0
/// and the priority 1, so that the line has neither.
fn text_of(policy: &classyard::Policy, id: RuleId) -> String {
    let schemas: Vec<_> = policy.schemas().cloned().collect();
    let mut single = classyard::Policy::new(policy.name(), &schemas);
    let forms: Vec<_> = policy
        .rule(id)
        .map(|(part, rule)| (part, rule.fields()))
        .collect();
    let forms: Vec<_> = forms
        .iter()
        .map(|(part, matches)| (*part, &matches[..]))
        .collect();
    let action = policy
        .rule(id)
        .next()
        .map_or(ActionId(0), |(_, rule)| rule.action());
    let name = policy
        .action_name(action)
        .map_or_else(|| action.0.to_string(), str::to_owned);
    let action = single.declare_action(&name);
    let only = RuleId::from_index(0);
    let added = single.add(only, classyard::Priority(1), action, &forms);
    added.expect("the forms of a rule");
    if let Some(name) = policy.rule_name(id) {
        single.set_rule_name(only, name);
    }
    let mut text = Vec::new();
    if formats::write_policy(&single, RuleFormat::Rules, &mut text).is_err() {
        return String::new();
    }
    let text = String::from_utf8_lossy(&text);
    text.lines().last().unwrap_or_default().to_owned()
}
