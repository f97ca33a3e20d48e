//! Traces of single packets, for people to read.
//!
//! | module | contents |
//! |---|---|
//! | `megaflow` | the megaflow that a worker would add for a packet |
//! | `trace` | the steps of a packet through the tables |

mod megaflow;
pub(super) mod trace;
