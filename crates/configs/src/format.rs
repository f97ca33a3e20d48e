//! The formats of configurations, and reading one of them.

use std::fmt;

use classyard_workload::diagnostic::{ReadError, ReadOptions};

use crate::builder::Builder;
use crate::cisco::{self, Dialect};
use crate::config::{Conditions, Config};
use crate::{aws, iptables, junos, kubernetes, nftables, unsupported};

/// A format of configurations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ConfigFormat {
    /// `iptables-save` and `ip6tables-save`, with `ipset save` before them if rules name
    /// sets.
    Iptables,
    /// `nft list ruleset`, as text or as JSON.
    Nftables,
    /// Access lists of Cisco IOS and IOS-XE.
    CiscoIos,
    /// Access lists of Cisco NX-OS.
    CiscoNxos,
    /// Access lists of Cisco IOS XR.
    CiscoXr,
    /// Access lists of Cisco ASA.
    CiscoAsa,
    /// Configurations of Juniper devices, in braces or as `set` commands: firewall filters
    /// and security policies.
    Junos,
    /// Security groups and network ACLs of AWS, in JSON.
    Aws,
    /// Network policies of Kubernetes, in YAML or JSON.
    Kubernetes,
}

impl ConfigFormat {
    /// All formats.
    pub const ALL: [ConfigFormat; 9] = [
        ConfigFormat::Iptables,
        ConfigFormat::Nftables,
        ConfigFormat::CiscoIos,
        ConfigFormat::CiscoNxos,
        ConfigFormat::CiscoXr,
        ConfigFormat::CiscoAsa,
        ConfigFormat::Junos,
        ConfigFormat::Aws,
        ConfigFormat::Kubernetes,
    ];

    /// The format's name on command lines.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            ConfigFormat::Iptables => "iptables",
            ConfigFormat::Nftables => "nftables",
            ConfigFormat::CiscoIos => "cisco-ios",
            ConfigFormat::CiscoNxos => "cisco-nxos",
            ConfigFormat::CiscoXr => "cisco-xr",
            ConfigFormat::CiscoAsa => "cisco-asa",
            ConfigFormat::Junos => "junos",
            ConfigFormat::Aws => "aws",
            ConfigFormat::Kubernetes => "kubernetes",
        }
    }

    /// Returns the format with that name, if there is one.
    #[must_use]
    pub fn from_name(name: &str) -> Option<ConfigFormat> {
        ConfigFormat::ALL
            .into_iter()
            .find(|format| format.name() == name)
    }

    /// Detects the format of a text by its content. `None` if it is none of these.
    #[must_use]
    pub fn detect(text: &str) -> Option<ConfigFormat> {
        let is = |format: &ConfigFormat| match format {
            ConfigFormat::Iptables => iptables::is_format(text),
            ConfigFormat::Nftables => nftables::is_format(text),
            ConfigFormat::CiscoIos => cisco::is_format(text, Dialect::Ios),
            ConfigFormat::CiscoNxos => cisco::is_format(text, Dialect::NxOs),
            ConfigFormat::CiscoXr => cisco::is_format(text, Dialect::Xr),
            ConfigFormat::CiscoAsa => cisco::is_format(text, Dialect::Asa),
            ConfigFormat::Junos => junos::is_format(text),
            ConfigFormat::Aws => aws::is_format(text),
            ConfigFormat::Kubernetes => kubernetes::is_format(text),
        };
        ConfigFormat::ALL.into_iter().find(is)
    }
}

/// Returns the name of a format of firewalls that is recognised by its content and not read,
/// in the plural: `FortiOS configurations`.
#[must_use]
pub fn unsupported_format(text: &str) -> Option<&'static str> {
    unsupported::name(text)
}

impl fmt::Display for ConfigFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Reads a configuration.
///
/// `source` is the file's name in messages. Configurations that are compared must be read
/// with the same `conditions`.
///
/// # Errors
/// [`ReadError`]: the problems of the text, or more rules than `options` allow.
pub fn read(
    source: &str,
    text: &str,
    format: ConfigFormat,
    options: &ReadOptions,
    conditions: &mut Conditions,
) -> Result<Config, ReadError> {
    let mut builder = Builder::new(source, options, conditions);
    match format {
        ConfigFormat::Iptables => iptables::read(text, &mut builder)?,
        ConfigFormat::Nftables => nftables::read(text, &mut builder)?,
        ConfigFormat::CiscoIos => cisco::read(text, Dialect::Ios, &mut builder)?,
        ConfigFormat::CiscoNxos => cisco::read(text, Dialect::NxOs, &mut builder)?,
        ConfigFormat::CiscoXr => cisco::read(text, Dialect::Xr, &mut builder)?,
        ConfigFormat::CiscoAsa => cisco::read(text, Dialect::Asa, &mut builder)?,
        ConfigFormat::Junos => junos::read(text, &mut builder)?,
        ConfigFormat::Aws => aws::read(source, text, &mut builder)?,
        ConfigFormat::Kubernetes => kubernetes::read(source, text, &mut builder)?,
    }
    builder.finish()
}
