//! The engines, one file or folder each, and the [`registry`] that lists them.

pub mod auto;
mod bit_vector;
mod cut_split;
mod decomposition;
mod forest;
mod hyper_cuts;
mod hyper_split;
mod linear;
mod partition_sort;
pub(crate) mod registry;
mod rfc;
mod sfl;
mod smart_split;
#[cfg(test)]
mod tests;
mod tss;
mod tuplemerge;
