//! Rules of any format: files with a line for each rule, and configurations of firewalls.

use std::path::Path;

use classyard::Policy;
use classyard_text::Problems;
use classyard_workload::diagnostic::{ReadError, ReadOptions};
use classyard_workload::formats::{
    RuleFormat, SchemaChoice, SchemaLoader, read_policy_with, read_schema_file, read_text_file,
};
use classyard_workload::limits::FileLimit;

use crate::config::{Conditions, Config};
use crate::format::{ConfigFormat, read, unsupported_format};

/// A format of files with rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InputFormat {
    /// Rules with a line each.
    Rules(RuleFormat),
    /// The configuration of a firewall.
    Config(ConfigFormat),
}

impl InputFormat {
    /// Returns all formats.
    pub fn all() -> impl Iterator<Item = InputFormat> {
        let rules = RuleFormat::ALL.into_iter().map(InputFormat::Rules);
        rules.chain(ConfigFormat::ALL.into_iter().map(InputFormat::Config))
    }

    /// Returns the format's name on command lines.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            InputFormat::Rules(format) => format.name(),
            InputFormat::Config(format) => format.name(),
        }
    }

    /// Returns the format with that name, if there is one.
    #[must_use]
    pub fn from_name(name: &str) -> Option<InputFormat> {
        InputFormat::all().find(|format| format.name() == name)
    }

    /// Detects the format of a text. `None` if it fits no format.
    #[must_use]
    pub fn detect(text: &str) -> Option<InputFormat> {
        let rules = RuleFormat::detect(text);
        // A line with `field=value` alone may be of any format.
        let is_certain = match rules {
            Some(RuleFormat::Classbench | RuleFormat::Json | RuleFormat::Ovs) => true,
            Some(RuleFormat::Rules) => text.lines().any(|line| {
                let first_word = line.split_ascii_whitespace().next();
                matches!(first_word, Some("schema" | "actions"))
            }),
            None => false,
        };
        let config = if is_certain {
            None
        } else {
            ConfigFormat::detect(text)
        };
        let config = config.map(InputFormat::Config);
        config.or(rules.map(InputFormat::Rules))
    }
}

/// Options for reading rules of any format.
#[derive(Clone, Debug, Default)]
pub struct AnyOptions {
    /// The format; detected from the text if `None`.
    pub format: Option<InputFormat>,
    /// The schema of rules with a line each; if `None`, the text gives it. The schema of
    /// configurations is always [`Policy::acl`].
    pub schema: Option<SchemaChoice>,
    /// The list of a configuration to read; all lists if `None`.
    pub list: Option<String>,
    /// Limits, and what happens with bad lines.
    pub read: ReadOptions,
}

/// Rules of any format.
#[derive(Debug)]
pub struct AnyRules {
    /// The rules.
    pub policy: Policy,
    /// The line of each rule in the text, from 1, in the order of the policy.
    pub line_of_rule: Vec<u32>,
    /// The names of the lists of a configuration. If there is one only, its rules match any
    /// value of the field `list`.
    pub lists: Vec<String>,
    /// The bad lines that were skipped.
    pub skipped: Problems,
    /// One sentence for each kind of content that was left out or assumed.
    pub notes: Vec<String>,
}

/// Reads rules of any format from a text.
///
/// `source` is the file's name in messages. `loader` loads the schema files that the text
/// names.
///
/// ```
/// use classyard_configs::{AnyOptions, read_any};
///
/// let text = "ip access-list extended OUT\n permit tcp any any eq 443\n deny ip any any\n";
/// let no_files = &mut |name: &str| unreachable!("{name} is not named");
/// let rules = read_any("router.cfg", text, &AnyOptions::default(), no_files)?;
/// assert_eq!(rules.lists, ["OUT"]);
/// assert_eq!(rules.line_of_rule[0], 2);
/// # Ok::<(), classyard_workload::diagnostic::ReadError>(())
/// ```
///
/// # Errors
/// [`ReadError`]: the problems of the text or of a schema file, or the reason to refuse the
/// text as a whole, such as an unknown format, or a list that does not exist.
pub fn read_any(
    source: &str,
    text: &str,
    options: &AnyOptions,
    loader: &mut SchemaLoader<'_>,
) -> Result<AnyRules, ReadError> {
    let format = options.format.or_else(|| InputFormat::detect(text));
    let Some(format) = format else {
        return Err(unknown_format(source, text));
    };
    match format {
        InputFormat::Rules(format) => read_lines(source, text, format, options, loader),
        InputFormat::Config(format) => read_config(source, text, format, options),
    }
}

/// Does [`read_any`] for a file. A gzip file is unpacked.
///
/// # Errors
/// As for [`read_any`], and if the file cannot be read or is not UTF-8.
pub fn read_any_file(path: &Path, options: &AnyOptions) -> Result<AnyRules, ReadError> {
    let limit = FileLimit::TEXT.with_bytes(options.read.max_bytes);
    let text = read_text_file(path, limit)?;
    let folder = path.parent().unwrap_or(Path::new(""));
    let mut loader = |name: &str| read_schema_file(&folder.join(name));
    read_any(&path.display().to_string(), &text, options, &mut loader)
}

fn read_lines(
    source: &str,
    text: &str,
    format: RuleFormat,
    options: &AnyOptions,
    loader: &mut SchemaLoader<'_>,
) -> Result<AnyRules, ReadError> {
    if let Some(list) = &options.list {
        return Err(refused(
            source,
            format!("rules of the format {format} have no lists"),
            format!("a configuration with the list `{list}`"),
        ));
    }
    let schema = options.schema.as_ref();
    let loaded = read_policy_with(source, text, Some(format), schema, &options.read, loader)?;
    Ok(AnyRules {
        policy: loaded.value,
        line_of_rule: loaded.rule_lines,
        lists: Vec::new(),
        skipped: loaded.skipped,
        notes: loaded.notes,
    })
}

fn read_config(
    source: &str,
    text: &str,
    format: ConfigFormat,
    options: &AnyOptions,
) -> Result<AnyRules, ReadError> {
    if let Some(schema) = &options.schema
        && *schema != SchemaChoice::Acl
    {
        return Err(refused(
            source,
            format!("a configuration of {format}, whose schema is always `acl`"),
            format!("rules over the schema `{}`", schema.name()),
        ));
    }
    if let Some(table) = options.read.table {
        return Err(ReadError::NoTables {
            file: source.to_owned(),
            table,
            format: format.name(),
        });
    }
    let mut config = read(
        source,
        text,
        format,
        &options.read,
        &mut Conditions::default(),
    )?;
    let list = match (&options.list, &config.lists[..]) {
        (Some(list), _) => Some(list.clone()),
        (None, [only]) => Some(only.clone()),
        (None, _) => None,
    };
    if let Some(list) = list {
        config = only_list(source, config, &list)?;
    }
    let lines = |&statement: &u32| config.sources[statement as usize].line;
    Ok(AnyRules {
        line_of_rule: config.source_of_rule.iter().map(lines).collect(),
        policy: config.policy,
        lists: config.lists,
        skipped: config.skipped,
        notes: config.notes,
    })
}

fn only_list(source: &str, config: Config, list: &str) -> Result<Config, ReadError> {
    let names = config.lists.join(", ");
    config.with_only_list(list).ok_or_else(|| {
        let no_list = format!("there is no list `{list}`");
        refused(source, no_list, format!("one of the lists {names}"))
    })
}

fn refused(source: &str, found: String, expected: String) -> ReadError {
    ReadError::Format {
        file: source.to_owned(),
        found,
        expected,
    }
}

fn unknown_format(source: &str, text: &str) -> ReadError {
    let reason = match unsupported_format(text) {
        Some(name) => format!("{name} are not supported"),
        None => "the format of the rules is unknown".to_owned(),
    };
    let names: Vec<&str> = InputFormat::all().map(InputFormat::name).collect();
    let expected = format!("a file of one of the formats {}", names.join(", "));
    refused(source, reason, expected)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packets::Field;
    use classyard::FieldMatch;

    fn read(text: &str, options: &AnyOptions) -> Result<AnyRules, String> {
        let mut loader = |name: &str| panic!("a schema file {name}");
        read_any("rules.txt", text, options, &mut loader).map_err(|error| error.to_string())
    }

    const ASA: &str = "access-list IN extended permit tcp any any eq 80\n\
                       access-list IN extended permit udp any any eq 53\n\
                       access-list OUT extended deny ip any any\n";

    #[test]
    fn every_format_is_found_by_its_name() {
        for format in InputFormat::all() {
            assert_eq!(InputFormat::from_name(format.name()), Some(format));
        }
        assert_eq!(InputFormat::from_name("pf"), None);
    }

    #[test]
    fn lines_and_configurations_have_the_lines_of_their_rules() {
        let own = "schema ipv4-5tuple\n\n# web\npermit dport=80\ndeny any\n";
        let rules = read(own, &AnyOptions::default()).unwrap();
        assert_eq!(rules.line_of_rule, [4, 5]);
        assert!(rules.lists.is_empty());
        let rules = read(ASA, &AnyOptions::default()).unwrap();
        assert_eq!(rules.lists, ["IN", "OUT"]);
        assert_eq!(rules.policy.len(), rules.line_of_rule.len());
        assert!(rules.line_of_rule.starts_with(&[1]));
    }

    #[test]
    fn one_list_of_a_configuration_is_selected() {
        let mut options = AnyOptions {
            list: Some("IN".to_owned()),
            ..AnyOptions::default()
        };
        let rules = read(ASA, &options).unwrap();
        assert_eq!(rules.lists, ["IN"]);
        let list = Field::List as usize;
        let part = &rules.policy.parts()[0];
        let id = part.schema().field_ids().nth(list).unwrap();
        assert!(part.iter().all(|rule| rule.field(id) == FieldMatch::Any));
        options.list = Some("DMZ".to_owned());
        let error = read(ASA, &options).unwrap_err();
        assert!(
            error.contains("no list `DMZ`") && error.contains("IN, OUT"),
            "{error}"
        );
        let error = read("schema ipv4-5tuple\n", &options).unwrap_err();
        assert!(error.contains("have no lists"), "{error}");
    }

    #[test]
    fn a_schema_and_a_table_are_refused_for_configurations() {
        let mut options = AnyOptions {
            schema: SchemaChoice::named("ipv4-5tuple"),
            ..AnyOptions::default()
        };
        let error = read(ASA, &options).unwrap_err();
        assert!(error.contains("always `acl`"), "{error}");
        options.schema = Some(SchemaChoice::Acl);
        options.read = options.read.with_table(Some(1));
        let error = read(ASA, &options).unwrap_err();
        assert!(error.contains("table 1 was requested"), "{error}");
    }

    #[test]
    fn an_unknown_format_is_an_error_with_all_names() {
        let error = read("what is this", &AnyOptions::default()).unwrap_err();
        assert!(
            InputFormat::all().all(|format| error.contains(format.name())),
            "{error}"
        );
    }
}
