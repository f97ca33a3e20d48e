//! The parts of a switch around classyard's engines, without input and output.
//!
//! Packets, time and configuration are arguments. Nothing in this crate opens a socket,
//! starts a thread or reads a clock.
//!
//! | module | what it has |
//! |---|---|
//! | [`field`] | the fields of OpenFlow 1.3.5, their widths, names and prerequisites |
//! | [`packet`] | frames: parsing, and rewriting that keeps checksums right |
//! | `flow_match` | the matches of flow entries, checked as in OpenFlow |
//! | [`flow`] | flow entries, and the messages that change them |
//! | [`group`] | groups of actions, and the messages that change them |
//! | [`meter`] | meters, and the messages that change them |
//! | `flow_table` | the lookup of a table's winning flow entry |
//! | [`limits`] | the limits of one packet's work |
//! | [`pipeline`] | tables, groups and ports together, which process packets |
//! | [`text`] | pipelines as text, in the syntax of `ovs-ofctl` |
//! | [`action`] | actions, the order of action sets, and the checks against a match |
//! | [`lab`] | parts of flow caches alone, for measurements |
//!
//! A [`PacketKey`] has all fields of a packet in 22 words. A [`Packet`] is a frame
//! with its key; both change together.

#![forbid(unsafe_code)]

pub mod action;
mod cache;
mod error;
pub mod field;
pub mod flow;
mod flow_match;
mod flow_table;
pub mod group;
mod header_space;
mod key;
pub mod lab;
pub mod limits;
mod megaflow;
pub mod meter;
pub mod packet;
pub mod pipeline;
mod projection;
pub mod text;

pub use action::{Action, ActionSet, GroupId, PortNo};
pub use error::{ApplyError, ErrorCode, OpenFlowError};
pub use field::{Field, FieldInfo, Prerequisite};
pub use flow_match::{Family, FlowMatch, MatchField};
pub use flow_table::{FlowTable, TableBuffers, TableError, TableSettings};
pub use key::{KEY_WORDS, PacketKey, Presence};
pub use meter::MeterId;
pub use packet::{Flaw, Flaws, Frame, InvalidTtl, Layers, Packet, Parsed};
pub use projection::{FieldSet, Projection, TooWide};

/// Tests the examples of `README.md`.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
