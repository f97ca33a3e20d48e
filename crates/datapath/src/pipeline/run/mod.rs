//! Processing of packets in the tables: the data of one version, vectors, instructions,
//! and counters.
//!
//! | module | contents |
//! |---|---|
//! | `side` | the data for processing packets |
//! | `change` | changes of that data |
//! | `vector`, `actions` | processing of vectors and of single packets |
//! | `choice`, `liveness` | the choice of a group's buckets |
//! | `limiter` | token buckets of meters |
//! | `tally`, `path_counts`, `cells` | counters of a worker |
//! | `counts` | counts of packets and bytes |
//! | `ports`, `description` | states of ports, their names and speeds |
//! | `sink` | receivers of the packets that the pipeline sends |
//! | `observer` | observers of packets |

pub(super) mod actions;
pub(super) mod cells;
pub(super) mod change;
pub(super) mod choice;
pub(super) mod counts;
pub(super) mod description;
pub(super) mod limiter;
pub(super) mod liveness;
pub(super) mod observer;
pub(super) mod path_counts;
pub(super) mod ports;
pub(super) mod side;
pub(super) mod sink;
pub(super) mod tally;
pub(super) mod vector;
