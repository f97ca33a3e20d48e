//! OpenFlow 1.3.5 for switches: messages in bytes and back, connections, and the agent of a
//! switch.
//!
//! Nothing in this crate opens a socket, starts a thread or reads a clock. Changes of flow
//! entries, groups and meters are the datapath's own types, such as
//! [`FlowMod`](classyard_datapath::flow::FlowMod), so a pipeline takes the change of a message
//! directly.
//!
//! | module | contents | section |
//! |---|---|---|
//! | [`message`] | all messages, and their header | §7.1 |
//! | [`fault`] | types and codes of errors | §7.4.4 |
//! | [`switch`] | versions, features, configuration, roles | §7.3.1, §7.3.2, §7.3.9, §7.3.10, §7.5.1 |
//! | [`flow`] | flow entries | §7.3.4.1, §7.3.5.2, §7.3.5.3, §7.4.2 |
//! | [`group`] | groups | §7.3.4.2, §7.3.5.8 to §7.3.5.10 |
//! | [`meter`] | meters | §7.3.4.3, §7.3.5.11 to §7.3.5.13 |
//! | [`port`] | ports and queues | §7.2.1, §7.3.4.4, §7.3.5.6, §7.3.5.7, §7.4.3 |
//! | [`table`] | flow tables | §7.3.3, §7.3.5.4, §7.3.5.5 |
//! | [`packet`] | packets from and to the controller | §7.3.7, §7.4.1 |
//! | [`multipart`] | requests whose answers may take several messages | §7.3.5 |
//! | [`bundle`] | messages that are carried out together (ONF extension 230) | |
//! | [`monitor`] | reports of changes of entries (ONF extension 187) | |
//! | [`oxm`] | fields of matches | §7.2.3 |
//! | `action`, `instruction` | actions and instructions of entries | §7.2.4, §7.2.5 |
//! | `wire` | numbers, padding, structures | |
//! | [`connection`] | bytes that arrive in any pieces become messages | §6.3 |
//! | [`agent`] | the agent of a switch: controllers, roles, barriers, statistics | §6 |

#![forbid(unsafe_code)]

mod action;
pub mod agent;
pub mod bundle;
pub mod connection;
pub mod fault;
pub mod flow;
pub mod group;
mod instruction;
pub mod message;
pub mod meter;
pub mod monitor;
pub mod multipart;
pub mod oxm;
pub mod packet;
pub mod port;
pub mod switch;
pub mod table;
mod wire;

pub use fault::{Code, Fault};
pub use message::{Header, Message};

/// Tests the example of `README.md`.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
