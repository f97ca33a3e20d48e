//! The agent of a switch: it carries out the messages of all controllers, and informs them
//! about packets, removed entries and ports.
//!
//! ```text
//! bytes of a controller ─▶ Connection ─▶ Session ─▶ Pipeline: changes, statistics
//!                                          │  └───▶ Job: a packet for a worker
//! bytes for the controller ◀── unsent ◀────┘
//! worker: packet-in ─▶ sessions whose masks choose it
//! pipeline: removed entries, ports ─▶ sessions whose masks choose them
//! ```
//! The agent opens no socket and reads no clock. Its caller passes bytes, the time and the
//! pipeline to it, sends the unsent bytes, and gives the jobs to workers.
//!
//! # Barriers
//! Flow, group and meter messages are submitted to the pipeline. A barrier publishes them, so
//! that every packet that a worker begins after it meets them, and waits for the jobs of the
//! messages before it. Only then the session answers and reads its next message.
//!
//! # Bounds
//! | memory of a session | limit | beyond it |
//! |---|---|---|
//! | unsent bytes | [`MAX_UNSENT_BYTES`], and one answer | packet-in and other messages without request are dropped and counted; no request is read |
//! | statistics of entries | one part of a reply | the next part is made when the unsent bytes are below the limit |
//! | bundles | [`MAX_BUNDLES`], [`MAX_BUNDLE_BYTES`] | `BFC_OUT_OF_BUNDLES`, `BFC_MSG_TOO_MANY` |
//! | monitors | [`MAX_MONITORS`] | `BRC_MULTIPART_BUFFER_OVERFLOW` |
//! | reports of monitors | [`MAX_REPORT_BYTES`] unsent | the monitors pause; then one report for each removed entry, and the number of each changed entry |
//!
//! | module | contents |
//! |---|---|
//! | `bundles` | the open bundles of a session |
//! | `monitor` | the monitors of a session: filters, pausing |
//! | `reports` | reports of monitors about changes of entries |
//! | `session` | the session of a controller: connection, role, unsent bytes |
//! | `parts` | replies, split into messages |
//! | `table_features` | the features of all tables, in bytes |
//! | `shared` | what all sessions share |
//! | `turn` | all that the messages of a session can read and change |
//! | `ports` | descriptions of ports |
//! | `changes` | changes of the pipeline, and packets of controllers |
//! | `stats` | answers to multipart requests |
//! | `requests` | the messages of a controller, one by one |
//! | `sessions` | the agent |
//! | `events` | messages without request |

mod bundles;
mod changes;
mod events;
mod monitor;
mod parts;
mod ports;
mod reports;
mod requests;
mod session;
mod sessions;
mod shared;
mod stats;
mod table_features;
mod turn;

pub use bundles::{MAX_BUNDLE_BYTES, MAX_BUNDLES};
pub use events::PacketForController;
pub use monitor::{MAX_MONITORS, MAX_REPORT_BYTES};
pub use session::{MAX_UNSENT_BYTES, SessionCounts};
pub use sessions::Agent;
pub use shared::{Job, PortCounts, PortDetails, SessionId, Surroundings, SwitchIdentity};
