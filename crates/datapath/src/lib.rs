//! The switch around classyard's engines, without input and output.
//!
//! Packets, time and configuration are arguments; nothing here opens a socket,
//! starts a thread or reads a clock.
//!
//! | module | what it has |
//! |---|---|
//! | [`field`] | the fields of OpenFlow 1.3.5, their widths, names and prerequisites |
//! | [`packet`] | frames: parsing, and rewriting with checksums kept right |
//! | `flow_match` | what a flow entry matches, checked as OpenFlow does |
//! | [`flow`] | flow entries, and the messages that change them |
//! | [`group`] | groups of actions, and the messages that change them |
//! | [`meter`] | meters, and the messages that change them |
//! | `flow_table` | which flow entry of a table wins a packet |
//! | [`limits`] | the limits of one packet's work |
//! | [`pipeline`] | tables, groups and ports together: what becomes of packets |
//! | [`text`] | a pipeline as text, as `ovs-ofctl` takes it |
//! | [`action`] | actions, the order of action sets, and what a match must say for them |
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
pub use flow_match::{Family, FieldValue, FlowMatch};
pub use flow_table::{FlowTable, TableBuffers, TableError, TableSettings};
pub use key::{KEY_WORDS, PacketKey, Presence};
pub use meter::MeterId;
pub use packet::{Flaw, Flaws, Frame, InvalidTtl, Layers, Packet, Parsed};
pub use projection::{FieldSet, Projection, TooWide};

/// The examples of `README.md` are tested.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
