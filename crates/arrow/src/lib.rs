//! Looks up headers in Arrow arrays, and returns the winners as Arrow arrays.
//!
//! A [`Mapping`] names the columns of a record batch that have the values of a policy's
//! fields. [`Headers::read`] checks the columns, and selects for each row the part of the
//! policy that has addresses of the row's family. [`Headers::classify`] looks up all rows.
//! [`Winners`] has columns with the winning rules and their actions.
//!
//! ```
//! use std::sync::Arc;
//!
//! use arrow_array::{ArrayRef, RecordBatch, StringArray, UInt16Array};
//! use classyard::prelude::*;
//! use classyard_arrow::{HeaderFields, Headers, Mapping, Output};
//!
//! let mut policy = Policy::dual_stack();
//! let permit = policy.declare_action("permit");
//! policy.add_rule(&PolicyRule::new(7).field("dport", 443).action(permit))?;
//! let (_writer, table) = EngineSpec::parse("forest")?.builder().policy_table(&policy)?;
//!
//! let addresses = StringArray::from(vec!["10.0.0.1", "2001:db8::1"]);
//! let ports = UInt16Array::from(vec![Some(443), None]);
//! let batch = RecordBatch::try_from_iter([
//!     ("srcaddr", Arc::new(addresses) as ArrayRef),
//!     ("dstport", Arc::new(ports) as ArrayRef),
//! ])?;
//! // No rule depends on the protocol, and all flows of this log are of TCP.
//! let mapping = Mapping::preset("vpc").unwrap().constant("proto", 6);
//! let headers = Headers::read(&batch, &mapping, &HeaderFields::of(&policy))?;
//! let mut reader = table.reader();
//! let guard = reader.pin();
//! let outputs = [Output::Matched, Output::Action];
//! let winners = headers.classify(&*guard, &outputs, 1);
//! assert_eq!(winners.rules().iter().collect::<Vec<_>>(), [Some(7), None]);
//! let names = ["permit".to_owned()];
//! let results = winners.to_batch(&names, &outputs);
//! assert_eq!(results.num_columns(), 2);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Types of columns
//!
//! | field | types |
//! |---|---|
//! | addresses | all integers (IPv4), FixedSizeBinary(4) and (16), Binary, LargeBinary and BinaryView with values of 4 or 16 bytes, strings |
//! | others | all integers, strings |
//!
//! Strings are Utf8, LargeUtf8 or Utf8View: addresses, numbers, and names such as `tcp`. A
//! number in a column of addresses is an IPv4 address. Columns may also be dictionaries of
//! these types, or of type Null. Each value of a dictionary is converted once. A sliced array is
//! read in its slice. Of data in chunks, each chunk is a batch.
//!
//! # Nulls
//!
//! A row with a null in any mapped column has no header, and is null in all outputs. A row
//! whose addresses are of a family without a part in the policy is null too, and
//! [`Winners::other_family_rows`] counts these rows. A row with an IPv4 and an IPv6 address
//! is an error: no packet has such a header.
//!
//! # Missing columns
//!
//! A field that no rule depends on needs no column. For every other field, a missing column
//! is an error, unless the mapping has a constant for the field.

mod convert;
mod dictionaries;
mod error;
mod family;
mod fields;
mod headers;
mod mapping;
mod source;
mod values;
mod winners;

pub use dictionaries::Dictionaries;
pub use error::{BatchError, MappingError};
pub use family::Family;
pub use fields::HeaderFields;
pub use headers::{Headers, MAX_ROWS};
pub use mapping::{Constant, Mapping};
pub use winners::{BuiltPolicy, NO_RULE, Output, Rules, Winners, action_names};
