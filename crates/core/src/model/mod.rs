//! The data of rules and headers.
//!
//! | module | contents |
//! |---|---|
//! | `value`, `match_kind` | values of fields and kinds of matches |
//! | `schema`, `packed` | the fields of headers, and their places in keys and rules |
//! | `key`, `columns` | headers, packed into words or one array for each field |
//! | `rule`, `ruleset` | rules and sets of rules |
//! | `transaction`, `part` | changes to rules, and the part of a policy that they are for |
//! | `limits`, `error` | limits and errors |
//! | `positions`, `seed` | positions of rules in an order, and seeds of hash functions |

pub mod columns;
pub mod error;
pub mod key;
pub mod limits;
pub(crate) mod match_kind;
pub(crate) mod packed;
pub(crate) mod part;
pub(crate) mod positions;
pub mod rule;
pub mod ruleset;
pub mod schema;
pub mod seed;
pub mod transaction;
pub mod value;
