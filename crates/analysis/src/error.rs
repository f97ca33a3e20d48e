//! The reasons why an analysis fails.

use classyard::BuildError;

/// An analysis failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AnalysisError {
    /// The policies are about different headers.
    #[error("the first policy has the schemas {first}, the second {second}")]
    Schemas {
        /// The names of the schemas of the first policy.
        first: String,
        /// The names of the schemas of the second policy.
        second: String,
    },
    /// The rules need more memory than the limit. The cause is a schema with many fields, or
    /// rules that combine ranges with masks that have holes.
    #[error("the analysis of the rules needs at least {needed} bytes; the limit is {limit}")]
    TooManyBytes {
        /// A number of bytes that is needed.
        needed: u64,
        /// The maximum number of bytes.
        limit: u64,
    },
    /// The progress callback cancelled, or the engine that looks up witnesses cannot be built.
    #[error(transparent)]
    Build(#[from] BuildError),
}

/// The maximum number of bytes for the boxes of all rules, and for the ranks of an axis: 4 GiB.
pub(crate) const MAX_BYTES: u64 = 1 << 32;

/// Checks the bytes of a list against a limit.
pub(crate) fn check_bytes<T>(list: &[T], limit: u64) -> Result<(), AnalysisError> {
    let needed = size_of_val(list) as u64;
    if needed > limit {
        return Err(AnalysisError::TooManyBytes { needed, limit });
    }
    Ok(())
}
