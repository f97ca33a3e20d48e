//! classyard for C. `include/classyard.h` is generated from this crate, and has the same
//! documentation.
//!
//! | module | contents |
//! |---|---|
//! | `status` | the codes that functions return, and messages of errors |
//! | `handle` | objects that C holds as pointers |
//! | `types` | structures that C fills in |
//! | `policy` | reading and making rules |
//! | `table` | live tables, and transactions that change their rules |
//! | `reader` | lookups |
//! | `arrow` | lookups in Arrow data |
//! | `arrow_fields` | the fields that rows of Arrow data must have |
//!
//! # Safety
//! Every function takes pointers from C, and its documentation has the conditions for each
//! pointer. Pointers to objects come from a function of this crate and are not freed yet. The
//! length of an array is its count. Texts end with a null byte. All functions return a code
//! for a null pointer where an object or array is needed. All functions except lookups also
//! return a code for a pointer to an object of another type or to a freed object. No panic
//! crosses into C.

#![allow(unsafe_code)] // The boundary to C.
#![deny(unsafe_op_in_unsafe_fn)]
// Every function has a section about pointers in this documentation instead.
#![allow(clippy::missing_safety_doc)]

mod arrow;
mod arrow_fields;
mod handle;
mod policy;
mod reader;
mod status;
mod table;
mod types;

pub use arrow::{ArrowArray, ArrowOutput, ArrowSchema, cy_classify_arrow};
pub use policy::{
    Policy, cy_policy_action, cy_policy_action_name, cy_policy_add, cy_policy_add_text,
    cy_policy_field, cy_policy_free, cy_policy_key_words, cy_policy_line, cy_policy_new,
    cy_policy_pack, cy_policy_parse, cy_policy_parts, cy_policy_read, cy_policy_rules,
};
pub use reader::{
    Reader, cy_classify_columns, cy_classify_keys, cy_classify_masked, cy_classify_packets,
    cy_reader_free, cy_reader_new,
};
pub use status::{Status, cy_last_error, cy_version};
pub use table::{
    Table, Transaction, cy_table_apply, cy_table_free, cy_table_new, cy_table_rules,
    cy_transaction_clear, cy_transaction_free, cy_transaction_insert, cy_transaction_insert_text,
    cy_transaction_modify, cy_transaction_modify_text, cy_transaction_new, cy_transaction_remove,
};
pub use types::{
    Column, ColumnType, Form, Match, MatchType, NO_HEADER, NO_RULE, Output, Packet, Rule, U128,
};
