//! Errors with the types and codes of OpenFlow 1.3.5 §7.4.4.

use std::fmt;

use crate::field::Field;

macro_rules! codes {
    ($($(#[$doc:meta])* $variant:ident $name:literal ($kind:literal, $code:literal),)*) => {
        /// An error of OpenFlow.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum ErrorCode {
            $($(#[$doc])* $variant,)*
        }

        impl ErrorCode {
            /// All error codes.
            pub const ALL: &[ErrorCode] = &[$(ErrorCode::$variant,)*];

            /// Returns the type and the code of an error message.
            #[must_use]
            pub fn numbers(self) -> (u16, u16) {
                match self {
                    $(ErrorCode::$variant => ($kind, $code),)*
                }
            }

            /// Returns the name without the prefix `OFP`.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self {
                    $(ErrorCode::$variant => $name,)*
                }
            }
        }
    };
}

codes! {
    /// An instruction that this switch does not support.
    UnsupportedInstruction "BIC_UNSUP_INST" (3, 1),
    /// A `goto_table` to a table that is not a later one.
    BadTable "BIC_BAD_TABLE_ID" (3, 2),
    /// Metadata with bits outside of their mask.
    UnsupportedMetadata "BIC_UNSUP_METADATA" (3, 3),
    /// An entry for a full table.
    FlowModTableFull "FMFC_TABLE_FULL" (5, 1),
    /// A table that does not exist.
    FlowModBadTable "FMFC_BAD_TABLE_ID" (5, 2),
    /// An entry that overlaps an entry of the same priority.
    FlowModOverlap "FMFC_OVERLAP" (5, 3),
    /// A table to configure that does not exist.
    TableModBadTable "TMFC_BAD_TABLE" (8, 0),
    /// A configuration that a table cannot have.
    TableModBadConfig "TMFC_BAD_CONFIG" (8, 1),
    /// An invalid port number.
    BadPort "PMFC_BAD_PORT" (7, 0),
    /// A port that packets cannot be sent to.
    BadOutPort "BAC_BAD_OUT_PORT" (2, 4),
    /// A group that does not exist.
    BadOutGroup "BAC_BAD_OUT_GROUP" (2, 9),
    /// A list of actions above the limit.
    TooManyActions "BAC_TOO_MANY" (2, 7),
    /// An action that requires a field which packets of the match may lack.
    InconsistentAction "BAC_MATCH_INCONSISTENT" (2, 10),
    /// An invalid type of a tag or label.
    BadTag "BAC_BAD_TAG" (2, 12),
    /// A field that actions cannot set.
    BadSetType "BAC_BAD_SET_TYPE" (2, 13),
    /// A value that a field cannot be set to.
    BadSetArgument "BAC_BAD_SET_ARGUMENT" (2, 15),
    /// A group to add whose number is in use.
    GroupExists "GMFC_GROUP_EXISTS" (6, 0),
    /// A group with a property that its type does not have.
    InvalidGroup "GMFC_INVALID_GROUP" (6, 1),
    /// A group that may take too many actions, including the actions of the
    /// groups that follow.
    OutOfBuckets "GMFC_OUT_OF_BUCKETS" (6, 4),
    /// A group that makes a chain of groups too long.
    ChainingUnsupported "GMFC_CHAINING_UNSUPPORTED" (6, 5),
    /// A group that leads back to itself.
    GroupLoop "GMFC_LOOP" (6, 7),
    /// A group to modify that does not exist.
    UnknownGroup "GMFC_UNKNOWN_GROUP" (6, 8),
    /// A group to delete that another group uses.
    ChainedGroup "GMFC_CHAINED_GROUP" (6, 9),
    /// A bucket that watches nothing, or a port or group that does not exist.
    BadWatch "GMFC_BAD_WATCH" (6, 13),
    /// A meter to add whose number is in use.
    MeterExists "MMFC_METER_EXISTS" (12, 1),
    /// An invalid meter number, or a meter that does not exist.
    InvalidMeter "MMFC_INVALID_METER" (12, 2),
    /// A meter to modify that does not exist.
    UnknownMeter "MMFC_UNKNOWN_METER" (12, 3),
    /// A band with an invalid rate.
    BadRate "MMFC_BAD_RATE" (12, 6),
    /// A band with another invalid value.
    BadBandValue "MMFC_BAD_BAND_VALUE" (12, 9),
    /// A value has bits outside of its mask.
    BadMatchWildcards "BMC_BAD_WILDCARDS" (4, 5),
    /// A field that this switch does not support.
    BadMatchField "BMC_BAD_FIELD" (4, 6),
    /// A value that is invalid for the field.
    BadMatchValue "BMC_BAD_VALUE" (4, 7),
    /// An invalid mask for the field.
    BadMatchMask "BMC_BAD_MASK" (4, 8),
    /// A field whose prerequisite the match lacks.
    BadMatchPrerequisite "BMC_BAD_PREREQ" (4, 9),
    /// A field that the match has twice.
    DuplicateMatchField "BMC_DUP_FIELD" (4, 10),
}

/// The reason for a refusal: a code for programs and a sentence for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenFlowError {
    code: ErrorCode,
    message: String,
    field: Option<Field>,
}

impl OpenFlowError {
    pub(crate) fn new(code: ErrorCode, message: String) -> OpenFlowError {
        OpenFlowError {
            code,
            message,
            field: None,
        }
    }

    /// Returns the error with the field of a match that it is about.
    pub(crate) fn about(self, field: Field) -> OpenFlowError {
        OpenFlowError {
            field: Some(field),
            ..self
        }
    }

    /// Returns the field of a match that the error is about, if any.
    #[must_use]
    pub fn field(&self) -> Option<Field> {
        self.field
    }

    /// Returns the error code of OpenFlow.
    #[must_use]
    pub fn code(&self) -> ErrorCode {
        self.code
    }
}

impl fmt::Display for OpenFlowError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.message, self.code.name())
    }
}

impl std::error::Error for OpenFlowError {}

/// The first message of a bundle that cannot be carried out, and the reason. The bundle
/// changes nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("message {index}: {error}")]
pub struct ApplyError {
    index: usize,
    #[source]
    error: OpenFlowError,
}

impl ApplyError {
    pub(crate) fn new(index: usize, error: OpenFlowError) -> ApplyError {
        ApplyError { index, error }
    }

    /// Returns the position of the message in its bundle, from 0.
    #[must_use]
    pub fn index(&self) -> usize {
        self.index
    }

    /// Returns why the message cannot be carried out.
    #[must_use]
    pub fn error(&self) -> &OpenFlowError {
        &self.error
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_and_names_are_distinct() {
        for (number, code) in ErrorCode::ALL.iter().enumerate() {
            for other in &ErrorCode::ALL[..number] {
                assert_ne!(code.numbers(), other.numbers());
                assert_ne!(code.name(), other.name());
            }
        }
    }
}
