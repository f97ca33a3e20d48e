//! Control of a pipeline: messages, timeouts, statistics.
//!
//! | module | contents |
//! |---|---|
//! | `live` | the pipeline |
//! | `message` | messages to it |
//! | `stores` | entries, groups, meters and ports of all messages |
//! | `expiry` | timeouts of entries |
//! | `features` | features of tables |
//! | `planner` | plans to re-optimise engines |
//! | `settings` | settings of a pipeline |

pub(super) mod expiry;
pub(super) mod features;
pub(super) mod live;
pub(super) mod message;
pub(super) mod planner;
pub(super) mod settings;
pub(super) mod stores;
