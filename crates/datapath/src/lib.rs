//! The switch around classyard's engines, without input and output.
//!
//! Packets, time and configuration are arguments; nothing here opens a socket,
//! starts a thread or reads a clock.
//!
//! | module | what it has |
//! |---|---|
//! | [`field`] | the fields of OpenFlow 1.3.5, their widths, names and prerequisites |
//! | [`packet`] | frames: parsing, and rewriting with checksums kept right |
//!
//! A [`PacketKey`] has all fields of a packet in 23 words. A [`Packet`] is a frame
//! with its key; both change together.

#![forbid(unsafe_code)]

pub mod field;
mod key;
pub mod packet;

pub use field::{Field, FieldInfo, Prerequisite};
pub use key::{KEY_WORDS, PacketKey, Presence};
pub use packet::{Flaw, Flaws, Frame, InvalidTtl, Layers, Packet, Parsed};
