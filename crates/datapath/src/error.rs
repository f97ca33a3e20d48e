//! Errors with the types and codes of OpenFlow 1.3.5 §7.4.4.

use std::fmt;

use crate::field::Field;

macro_rules! codes {
    ($($(#[$doc:meta])* $variant:ident $name:literal ($kind:literal, $code:literal),)*) => {
        /// What is wrong, as OpenFlow names it.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum ErrorCode {
            $($(#[$doc])* $variant,)*
        }

        impl ErrorCode {
            /// All of them.
            pub const ALL: &[ErrorCode] = &[$(ErrorCode::$variant,)*];

            /// Type and code in an error message.
            #[must_use]
            pub fn numbers(self) -> (u16, u16) {
                match self {
                    $(ErrorCode::$variant => ($kind, $code),)*
                }
            }

            /// Its name without the prefix `OFP`.
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
    /// An instruction that this switch does not know.
    UnsupportedInstruction "BIC_UNSUP_INST" (3, 1),
    /// A table to go to that is no later one.
    BadTable "BIC_BAD_TABLE_ID" (3, 2),
    /// Metadata with bits outside of their mask.
    UnsupportedMetadata "BIC_UNSUP_METADATA" (3, 3),
    /// An entry for which there is no room.
    FlowModTableFull "FMFC_TABLE_FULL" (5, 1),
    /// A table that there is not.
    FlowModBadTable "FMFC_BAD_TABLE_ID" (5, 2),
    /// An entry that overlaps one of the same priority.
    FlowModOverlap "FMFC_OVERLAP" (5, 3),
    /// A table to configure that there is not.
    TableModBadTable "TMFC_BAD_TABLE" (8, 0),
    /// A configuration that a table cannot have.
    TableModBadConfig "TMFC_BAD_CONFIG" (8, 1),
    /// A number that is not that of a port.
    BadPort "PMFC_BAD_PORT" (7, 0),
    /// A port that packets cannot be sent to.
    BadOutPort "BAC_BAD_OUT_PORT" (2, 4),
    /// A group that there is not.
    BadOutGroup "BAC_BAD_OUT_GROUP" (2, 9),
    /// More actions than can be carried out.
    TooManyActions "BAC_TOO_MANY" (2, 7),
    /// An action that packets of this match have no field for.
    InconsistentAction "BAC_MATCH_INCONSISTENT" (2, 10),
    /// A type of tag or label that there is not.
    BadTag "BAC_BAD_TAG" (2, 12),
    /// A field that actions cannot set.
    BadSetType "BAC_BAD_SET_TYPE" (2, 13),
    /// A value that a field cannot be set to.
    BadSetArgument "BAC_BAD_SET_ARGUMENT" (2, 15),
    /// A group to add that is there.
    GroupExists "GMFC_GROUP_EXISTS" (6, 0),
    /// A group with what its type does not have.
    InvalidGroup "GMFC_INVALID_GROUP" (6, 1),
    /// A group whose buckets, with those of the groups that follow, are too many.
    OutOfBuckets "GMFC_OUT_OF_BUCKETS" (6, 4),
    /// A group that makes a chain of groups too long.
    ChainingUnsupported "GMFC_CHAINING_UNSUPPORTED" (6, 5),
    /// A group to which its own packets would come back.
    GroupLoop "GMFC_LOOP" (6, 7),
    /// A group to modify that there is not.
    UnknownGroup "GMFC_UNKNOWN_GROUP" (6, 8),
    /// A group to delete that another one uses.
    ChainedGroup "GMFC_CHAINED_GROUP" (6, 9),
    /// A bucket that watches nothing, or what there is not.
    BadWatch "GMFC_BAD_WATCH" (6, 13),
    /// A meter to add that is there.
    MeterExists "MMFC_METER_EXISTS" (12, 1),
    /// A meter with a number that meters do not have, or one that there is not.
    InvalidMeter "MMFC_INVALID_METER" (12, 2),
    /// A meter to modify that there is not.
    UnknownMeter "MMFC_UNKNOWN_METER" (12, 3),
    /// A band with a rate that it cannot have.
    BadRate "MMFC_BAD_RATE" (12, 6),
    /// A band with another value that it cannot have.
    BadBandValue "MMFC_BAD_BAND_VALUE" (12, 9),
    /// A value has bits outside of its mask.
    BadMatchWildcards "BMC_BAD_WILDCARDS" (4, 5),
    /// A field that this switch does not know.
    BadMatchField "BMC_BAD_FIELD" (4, 6),
    /// A value that the field cannot have.
    BadMatchValue "BMC_BAD_VALUE" (4, 7),
    /// A mask that the field does not take.
    BadMatchMask "BMC_BAD_MASK" (4, 8),
    /// A field whose prerequisite the match lacks.
    BadMatchPrerequisite "BMC_BAD_PREREQ" (4, 9),
    /// A field that stands in the match twice.
    DuplicateMatchField "BMC_DUP_FIELD" (4, 10),
}

/// Why something cannot be done: the code for programs and a sentence for people.
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

    /// The same, about a field.
    pub(crate) fn about(self, field: Field) -> OpenFlowError {
        OpenFlowError {
            field: Some(field),
            ..self
        }
    }

    /// The field of a match that is wrong, if it is one.
    #[must_use]
    pub fn field(&self) -> Option<Field> {
        self.field
    }

    /// What is wrong, as OpenFlow names it.
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

/// The first message of a bundle that cannot be carried out, and why. Nothing is changed
/// then.
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

    /// The position of the message in its bundle, from 0.
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
