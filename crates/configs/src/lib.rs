//! Reads and writes the rules of firewalls: what devices and clouds save and print.
//!
//! | module | reads |
//! |---|---|
//! | `aws` | security groups and network ACLs, as the command line of AWS prints them |
//! | `cisco` | access lists of IOS, NX-OS, IOS XR and ASA |
//! | `iptables` | `iptables-save`, `ip6tables-save`, `ipset save` |
//! | `junos` | firewall filters and security policies of Juniper devices |
//! | `kubernetes` | network policies, with the pods and namespaces that they select |
//! | `nftables` | `nft list ruleset`, as text and as JSON |
//!
//! A statement of a configuration selects packets by a union of boxes over the fields of
//! [`Policy::acl`](classyard::Policy::acl), so it becomes one or more rules. [`Config`] has
//! the rules, and the statement of each. Jumps between chains are followed, and a list that
//! ends with a default action has a rule for it.
//!
//! A condition that no field can express is a bit of the field `condition`: the rule matches
//! only headers with this bit. So the rule hides no other rule.
//!
//! [`read_any`] also reads the formats of `classyard-workload`, with a line for each rule.
//! [`write()`] turns a policy into a configuration of iptables, nftables or Cisco.

#![forbid(unsafe_code)]

mod any;
mod aws;
mod builder;
mod chains;
mod cisco;
mod comparable;
mod config;
mod copied;
mod document;
mod export;
mod format;
mod host_bits;
mod iptables;
mod junos;
mod kubernetes;
mod linux_protocols;
mod networks;
mod nftables;
mod notes;
mod packets;
mod services;
mod stateful;
mod unsupported;

pub use any::{AnyOptions, AnyRules, InputFormat, read_any, read_any_file};
pub use comparable::{as_acl, for_any_list, with_impossible_headers_denied};
pub use config::{Conditions, Config, SourceRule};
pub use export::{Refusal, WriteError, WriteOptions, Written, as_five_tuples, write};
pub use format::{ConfigFormat, read, unsupported_format};
pub use host_bits::{HostBits, MemberWithHostBits, host_bits};

#[doc = include_str!("../README.md")]
#[cfg(doctest)]
struct Readme;
