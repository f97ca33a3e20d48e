//! The columns of a record batch that have the values of a policy's fields.

use std::collections::{BTreeMap, BTreeSet};

use crate::error::MappingError;
use crate::fields::HeaderFields;

/// A value that all rows have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Constant {
    /// A number. For a field of addresses it is an IPv4 address.
    Number(u128),
    /// A text in the field's format, such as `tcp` or `2001:db8::1`.
    Text(String),
}

impl From<u128> for Constant {
    fn from(number: u128) -> Constant {
        Constant::Number(number)
    }
}

impl From<&str> for Constant {
    fn from(text: &str) -> Constant {
        Constant::Text(text.to_owned())
    }
}

/// The source of a field's values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// Names of columns. At least one of them must exist. A row has the first value that is
    /// not null.
    Columns(Vec<String>),
    Constant(Constant),
}

/// The columns of a record batch that have the values of a policy's fields, and constants
/// for fields without a column.
///
/// | preset | `src` | `dst` | `sport` | `dport` | `proto` |
/// |---|---|---|---|---|---|
/// | `fields` | `src` | `dst` | `sport` | `dport` | `proto`, and every other field by its name |
/// | `vpc` (AWS flow logs) | `srcaddr` | `dstaddr` | `srcport` | `dstport` | `protocol` |
/// | `zeek` (`conn.log`) | `id.orig_h` | `id.resp_h` | `id.orig_p` | `id.resp_p` | `proto` |
/// | `netflow` (nfdump) | `sa`, `srcAddr`, `src4_addr`, `src6_addr` | `da`, `dstAddr`, `dst4_addr`, `dst6_addr` | `sp`, `srcPort`, `src_port` | `dp`, `dstPort`, `dst_port` | `pr`, `proto` |
/// | `ipfix` | `sourceIPv4Address`, `sourceIPv6Address` | `destinationIPv4Address`, `destinationIPv6Address` | `sourceTransportPort` | `destinationTransportPort` | `protocolIdentifier` |
///
/// If a field has several names, at least one of the columns must exist, and a row has the
/// first value that is not null.
///
/// The presets of flow logs give ports the meaning that they have in rules. Flow logs keep
/// the type and code of ICMP in the columns of ports, so these presets set the ports to 0
/// unless the protocol is TCP, UDP or SCTP. With `vpc` and `zeek`, the text `-` is null.
/// Zeek calls ICMPv6 `icmp`, so with `zeek` protocol 1 of an IPv6 header is read as 58.
///
/// ```
/// use classyard_arrow::Mapping;
///
/// let mapping = Mapping::preset("vpc").unwrap().constant("state", "new");
/// let own = Mapping::by_name().column("src", "client").column("dst", "server");
/// # let _ = (mapping, own);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mapping {
    sources: BTreeMap<String, Source>,
    /// True if a field without a source is read from the column with its name.
    by_name: bool,
    /// The fields of the preset: policies may lack them.
    preset_fields: &'static [&'static str],
    log: LogRules,
    verdict_column: Option<&'static str>,
}

/// The meaning of values in flow logs, where it differs from the meaning in rules.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LogRules {
    /// Ports are 0 unless the protocol has ports.
    pub(crate) ports_need_transport: bool,
    /// Protocol 1 of IPv6 headers is 58.
    pub(crate) icmp_of_both_families: bool,
    /// The text `-` is null.
    pub(crate) dash_is_null: bool,
}

/// The fields of presets, in the order of their columns.
const FIVE_TUPLE: [&str; 5] = ["src", "dst", "sport", "dport", "proto"];

/// The columns of a preset, for each field of [`FIVE_TUPLE`].
type PresetColumns = [&'static [&'static str]; 5];

const VPC_COLUMNS: PresetColumns = [
    &["srcaddr"],
    &["dstaddr"],
    &["srcport"],
    &["dstport"],
    &["protocol"],
];

const ZEEK_COLUMNS: PresetColumns = [
    &["id.orig_h"],
    &["id.resp_h"],
    &["id.orig_p"],
    &["id.resp_p"],
    &["proto"],
];

const NETFLOW_COLUMNS: PresetColumns = [
    &["sa", "srcAddr", "src4_addr", "src6_addr"],
    &["da", "dstAddr", "dst4_addr", "dst6_addr"],
    &["sp", "srcPort", "src_port"],
    &["dp", "dstPort", "dst_port"],
    &["pr", "proto"],
];

const IPFIX_COLUMNS: PresetColumns = [
    &["sourceIPv4Address", "sourceIPv6Address"],
    &["destinationIPv4Address", "destinationIPv6Address"],
    &["sourceTransportPort"],
    &["destinationTransportPort"],
    &["protocolIdentifier"],
];

impl Mapping {
    /// The names of the presets.
    pub const PRESETS: [&'static str; 5] = ["fields", "vpc", "zeek", "netflow", "ipfix"];

    /// Returns the mapping of each field to the column with its name.
    #[must_use]
    pub fn by_name() -> Mapping {
        Mapping {
            by_name: true,
            ..Mapping::default()
        }
    }

    /// Returns the preset with this name, if there is one.
    #[must_use]
    pub fn preset(name: &str) -> Option<Mapping> {
        let (columns, dash_is_null, icmp_of_both_families) = match name {
            "fields" => return Some(Mapping::by_name()),
            "vpc" => (VPC_COLUMNS, true, false),
            "zeek" => (ZEEK_COLUMNS, true, true),
            "netflow" => (NETFLOW_COLUMNS, false, false),
            "ipfix" => (IPFIX_COLUMNS, false, false),
            _ => return None,
        };
        let mut mapping = Mapping::default();
        for (field, columns) in FIVE_TUPLE.into_iter().zip(columns) {
            mapping = mapping.columns(field, columns);
        }
        mapping.preset_fields = &FIVE_TUPLE;
        mapping.verdict_column = (name == "vpc").then_some("action");
        mapping.log = LogRules {
            ports_need_transport: true,
            icmp_of_both_families,
            dash_is_null,
        };
        Some(mapping)
    }

    /// Parses a mapping: a preset, or parts for single fields, or a preset and changes to it.
    /// Parts are separated by commas.
    ///
    /// | part | meaning |
    /// |---|---|
    /// | `vpc` | the preset; only as the first part |
    /// | `src=source_ip` | the column of a field |
    /// | `src=src4\|src6` | the first of these columns that is not null |
    /// | `proto:=6`, `src:=2001:db8::1` | the same value in all rows |
    ///
    /// Names that have a comma or `|` have no notation.
    ///
    /// # Errors
    /// [`MappingError`] with the part at fault.
    ///
    /// ```
    /// use classyard_arrow::Mapping;
    ///
    /// let mapping = Mapping::parse("vpc,proto:=6,state:=new").unwrap();
    /// let same = Mapping::preset("vpc").unwrap().constant("proto", 6);
    /// assert_eq!(mapping, same.constant("state", "new"));
    /// let error = Mapping::parse("vpd").unwrap_err().to_string();
    /// assert!(error.contains("did you mean `vpc`?"));
    /// ```
    pub fn parse(text: &str) -> Result<Mapping, MappingError> {
        let mut mapping = Mapping::default();
        let mut mapped = BTreeSet::new();
        for (index, part) in text.split(',').map(str::trim).enumerate() {
            let Some((field, source)) = part.split_once('=') else {
                match (index, Mapping::preset(part)) {
                    (0, Some(preset)) => mapping = preset,
                    (0, None) if !part.is_empty() => return Err(unknown_preset(part)),
                    (_, Some(_)) => {
                        return Err(MappingError::LatePreset { found: part.into() });
                    }
                    (_, None) => return Err(MappingError::BadItem { found: part.into() }),
                }
                continue;
            };
            let constant = field.strip_suffix(':');
            let field = constant.unwrap_or(field);
            let columns: Vec<&str> = source.split('|').collect();
            let is_missing = source.is_empty() || constant.is_none() && columns.contains(&"");
            if field.is_empty() || is_missing {
                return Err(MappingError::BadItem { found: part.into() });
            }
            if !mapped.insert(field) {
                let field = field.to_owned();
                return Err(MappingError::RepeatedField { field });
            }
            mapping = match (constant, source.parse::<u128>()) {
                (Some(_), Ok(number)) => mapping.constant(field, number),
                (Some(_), Err(_)) => mapping.constant(field, source),
                (None, _) => mapping.columns(field, &columns),
            };
        }
        Ok(mapping)
    }

    /// Returns the preset's column with the verdict of a firewall: `action`
    /// for `vpc`.
    #[must_use]
    pub fn verdict_column(&self) -> Option<&'static str> {
        self.verdict_column
    }

    /// Returns the names of all columns that [`Headers::read`](crate::Headers::read) reads for
    /// some fields, if they exist.
    #[must_use]
    pub fn column_names(&self, fields: &HeaderFields) -> BTreeSet<String> {
        let names = fields.names();
        names.flat_map(|field| self.columns_of(field)).collect()
    }

    /// Reads a field from a column.
    #[must_use]
    pub fn column(self, field: &str, column: &str) -> Mapping {
        self.columns(field, &[column])
    }

    /// Reads a field from several columns: a row has the first value that is not null. At
    /// least one of the columns must exist.
    ///
    /// # Panics
    /// If `columns` is empty.
    #[must_use]
    pub fn columns(mut self, field: &str, columns: &[&str]) -> Mapping {
        assert!(!columns.is_empty(), "at least one column");
        let columns = columns.iter().map(|&name| name.to_owned()).collect();
        let source = Source::Columns(columns);
        self.sources.insert(field.to_owned(), source);
        self
    }

    /// Gives a field the same value in all rows.
    #[must_use]
    pub fn constant(mut self, field: &str, value: impl Into<Constant>) -> Mapping {
        let source = Source::Constant(value.into());
        self.sources.insert(field.to_owned(), source);
        self
    }

    pub(crate) fn log_rules(&self) -> LogRules {
        self.log
    }

    /// Returns the source of a field. The flag is true if the caller named it, so that its
    /// column must exist even if no rule depends on the field.
    pub(crate) fn source(&self, field: &str) -> Option<(Source, bool)> {
        match self.sources.get(field) {
            Some(source) => Some((source.clone(), !self.preset_fields.contains(&field))),
            None if self.by_name => Some((Source::Columns(vec![field.to_owned()]), false)),
            None => None,
        }
    }

    /// Returns the columns of a field. Without columns, the field is constant or has no source.
    pub(crate) fn columns_of(&self, field: &str) -> Vec<String> {
        match self.source(field) {
            Some((Source::Columns(columns), _)) => columns,
            Some((Source::Constant(_), _)) | None => Vec::new(),
        }
    }

    /// Returns a field that the caller named and that `fields` lacks.
    pub(crate) fn unknown_field(&self, fields: &[&str]) -> Option<&str> {
        let mut named = self.sources.keys().map(String::as_str);
        named.find(|name| !fields.contains(name) && !self.preset_fields.contains(name))
    }
}

/// The similarity of two words, from 0 to 1, above which one may be meant by the other.
const MIN_SIMILARITY: f64 = 0.7;

fn unknown_preset(found: &str) -> MappingError {
    let scored = Mapping::PRESETS.map(|preset| (strsim::jaro_winkler(found, preset), preset));
    let best = scored.into_iter().max_by(|a, b| a.0.total_cmp(&b.0));
    MappingError::UnknownPreset {
        found: found.to_owned(),
        near: best
            .filter(|(similarity, _)| *similarity > MIN_SIMILARITY)
            .map(|(_, preset)| preset),
        presets: &Mapping::PRESETS,
    }
}
