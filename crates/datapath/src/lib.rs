//! The datapath of an OpenFlow switch, built on classyard's engines, without packet input
//! and output.
//!
//! Packets, time and configuration are arguments. Nothing in this crate opens a socket or
//! reads a clock. Only [`text::fill()`] starts threads, which end before it returns.
//!
//! | module | contents |
//! |---|---|
//! | [`field`] | the fields of OpenFlow 1.3.5, their widths, names and prerequisites |
//! | [`packet`] | frames: parsing, and rewriting with checksum updates |
//! | `flow_match` | the matches of flow entries, checked as in OpenFlow |
//! | [`flow`] | flow entries, and the messages that change them |
//! | [`group`] | groups of actions, and the messages that change them |
//! | [`meter`] | meters, and the messages that change them |
//! | `flow_table` | the lookup of a table's winning flow entry |
//! | `table_settings` | the engine of a table, and the bits of its megaflows |
//! | [`limits`] | the limits on the work for one packet |
//! | [`pipeline`] | processing of packets with tables, groups, meters and ports |
//! | [`text`] | pipelines as text, in the syntax of `ovs-ofctl` |
//! | [`action`] | actions, the order of action sets, and the checks against a match |
//! | [`lab`] | parts of the flow caches, separately usable in measurements |
//!
//! A [`PacketKey`] has all fields of a packet in 22 64-bit words. A [`Packet`] is a frame
//! with its key; each change is made in both.

#![forbid(unsafe_code)]

pub mod action;
mod bits;
mod cache;
mod error;
pub mod field;
pub mod flow;
mod flow_match;
mod flow_table;
pub mod group;
mod growth;
mod hash;
mod header_space;
mod key;
pub mod lab;
pub mod limits;
mod megaflow;
pub mod meter;
pub mod packet;
pub mod pipeline;
mod projection;
mod table_settings;
pub mod text;

pub use action::{Action, ActionSet, GroupId, PortNo};
pub use error::{ApplyError, ErrorCode, OpenFlowError};
pub use field::{Field, FieldInfo, Prerequisite};
pub use flow_match::{Family, FlowMatch, MatchField};
pub use flow_table::{FlowTable, TableBuffers};
pub use key::{KEY_WORDS, PacketKey, Presence};
pub use megaflow::{MegaflowBits, UnknownMegaflowBits};
pub use meter::MeterId;
pub use packet::{Flaw, Flaws, Frame, InvalidTtl, Layers, Packet, Parsed};
pub use projection::{FieldSet, Projection, TooWide};
pub use table_settings::{TableError, TableSettings};

/// Tests the examples of `README.md`.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
