//! Faults of messages, with the types and codes of OpenFlow 1.3.5 §7.4.4.

use std::fmt;

use classyard_datapath::{ErrorCode, OpenFlowError};

/// The type and the code of an error message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Code {
    /// The type (`ofp_error_type`).
    pub kind: u16,
    /// The code of this type.
    pub code: u16,
}

macro_rules! codes {
    ($($(#[$doc:meta])* $constant:ident $name:literal ($kind:literal, $code:literal),)*) => {
        impl Code {
            $($(#[$doc])* pub const $constant: Code = Code { kind: $kind, code: $code };)*

            /// The codes that this crate finds, with their names without the prefix `OFP`.
            const NAMED: &[(Code, &'static str)] = &[$((Code::$constant, $name),)*];
        }
    };
}

codes! {
    /// No version in common.
    HELLO_INCOMPATIBLE "HFC_INCOMPATIBLE" (0, 0),
    /// A message of another version than agreed.
    BAD_VERSION "BRC_BAD_VERSION" (1, 0),
    /// An unknown type of message, or a message that only a switch sends.
    BAD_TYPE "BRC_BAD_TYPE" (1, 1),
    /// An unknown type of multipart request.
    BAD_MULTIPART "BRC_BAD_MULTIPART" (1, 2),
    /// An unknown experimenter.
    BAD_EXPERIMENTER "BRC_BAD_EXPERIMENTER" (1, 3),
    /// An unknown message of a known experimenter.
    BAD_EXPERIMENTER_TYPE "BRC_BAD_EXP_TYPE" (1, 4),
    /// A message that the controller's role forbids.
    IS_SLAVE "BRC_IS_SLAVE" (1, 10),
    /// A message of the wrong length.
    BAD_LENGTH "BRC_BAD_LEN" (1, 6),
    /// A number of a buffer that does not exist.
    BUFFER_UNKNOWN "BRC_BUFFER_UNKNOWN" (1, 8),
    /// A table that does not exist.
    BAD_TABLE_ID "BRC_BAD_TABLE_ID" (1, 9),
    /// A port that does not exist.
    BAD_PORT "BRC_BAD_PORT" (1, 11),
    /// A packet that is too short, or that has too much data.
    BAD_PACKET "BRC_BAD_PACKET" (1, 12),
    /// A multipart request of too many parts.
    MULTIPART_OVERFLOW "BRC_MULTIPART_BUFFER_OVERFLOW" (1, 13),
    /// An unknown type of action.
    BAD_ACTION_TYPE "BAC_BAD_TYPE" (2, 0),
    /// An action of the wrong length.
    BAD_ACTION_LENGTH "BAC_BAD_LEN" (2, 1),
    /// An action of an unknown experimenter.
    BAD_ACTION_EXPERIMENTER "BAC_BAD_EXPERIMENTER" (2, 2),
    /// A field that actions cannot set, or an unknown one.
    BAD_SET_TYPE "BAC_BAD_SET_TYPE" (2, 13),
    /// A field to set of the wrong length.
    BAD_SET_LENGTH "BAC_BAD_SET_LEN" (2, 14),
    /// A value that a field cannot be set to.
    BAD_SET_ARGUMENT "BAC_BAD_SET_ARGUMENT" (2, 15),
    /// An unknown type of instruction.
    UNKNOWN_INSTRUCTION "BIC_UNKNOWN_INST" (3, 0),
    /// An instruction that is there twice.
    UNSUPPORTED_INSTRUCTION "BIC_UNSUP_INST" (3, 1),
    /// An instruction of an unknown experimenter.
    BAD_INSTRUCTION_EXPERIMENTER "BIC_BAD_EXPERIMENTER" (3, 5),
    /// An instruction of the wrong length.
    BAD_INSTRUCTION_LENGTH "BIC_BAD_LEN" (3, 7),
    /// A match of another type than OXM.
    BAD_MATCH_TYPE "BMC_BAD_TYPE" (4, 0),
    /// A match, or a field of it, of the wrong length.
    BAD_MATCH_LENGTH "BMC_BAD_LEN" (4, 1),
    /// An unknown field.
    BAD_MATCH_FIELD "BMC_BAD_FIELD" (4, 6),
    /// An unknown command of a flow message.
    BAD_FLOW_COMMAND "FMFC_BAD_COMMAND" (5, 6),
    /// Unknown flags of a flow message.
    BAD_FLOW_FLAGS "FMFC_BAD_FLAGS" (5, 7),
    /// An unknown type of group.
    BAD_GROUP_TYPE "GMFC_BAD_TYPE" (6, 10),
    /// An unknown command of a group message.
    BAD_GROUP_COMMAND "GMFC_BAD_COMMAND" (6, 11),
    /// A bucket of the wrong length.
    BAD_BUCKET "GMFC_BAD_BUCKET" (6, 12),
    /// A port to configure that does not exist.
    PORT_MOD_BAD_PORT "PMFC_BAD_PORT" (7, 0),
    /// Another hardware address than the port's.
    BAD_HARDWARE_ADDRESS "PMFC_BAD_HW_ADDR" (7, 1),
    /// Invalid flags of a port.
    BAD_PORT_CONFIG "PMFC_BAD_CONFIG" (7, 2),
    /// Features to advertise that the port cannot have.
    BAD_PORT_ADVERTISE "PMFC_BAD_ADVERTISE" (7, 3),
    /// A port of a queue that does not exist.
    QUEUE_BAD_PORT "QOFC_BAD_PORT" (9, 0),
    /// A queue that does not exist.
    QUEUE_BAD_QUEUE "QOFC_BAD_QUEUE" (9, 1),
    /// Invalid flags of the switch's configuration.
    BAD_SWITCH_FLAGS "SCFC_BAD_FLAGS" (10, 0),
    /// An old generation of roles.
    STALE_ROLE "RRFC_STALE" (11, 0),
    /// An unknown role.
    BAD_ROLE "RRFC_BAD_ROLE" (11, 2),
    /// Invalid flags of a meter.
    BAD_METER_FLAGS "MMFC_BAD_FLAGS" (12, 5),
    /// An unknown command of a meter message.
    BAD_METER_COMMAND "MMFC_BAD_COMMAND" (12, 4),
    /// An unknown type of band.
    BAD_BAND "MMFC_BAD_BAND" (12, 8),
    /// An unknown type of table property.
    BAD_TABLE_FEATURE_TYPE "TFFC_BAD_TYPE" (13, 2),
    /// A table property of the wrong length.
    BAD_TABLE_FEATURE_LENGTH "TFFC_BAD_LEN" (13, 3),
    /// Table features that this switch cannot have.
    BAD_TABLE_FEATURE_ARGUMENT "TFFC_BAD_ARGUMENT" (13, 4),
    /// Table features that the controller may not set.
    TABLE_FEATURE_PERMISSION "TFFC_EPERM" (13, 5),
    /// A monitor to add whose number is in use.
    MONITOR_EXISTS "MOFC_MONITOR_EXISTS" (0xffff, 6),
    /// Flags of a monitor that are unknown, or that select no change.
    BAD_MONITOR_FLAGS "MOFC_BAD_FLAGS" (0xffff, 7),
    /// A monitor that does not exist.
    UNKNOWN_MONITOR "MOFC_UNKNOWN_MONITOR" (0xffff, 8),
    /// A bundle that does not exist.
    BUNDLE_BAD_ID "BFC_BAD_ID" (0xffff, 2302),
    /// A bundle to open whose number is in use.
    BUNDLE_EXISTS "BFC_BUNDLE_EXIST" (0xffff, 2303),
    /// A message for a closed bundle.
    BUNDLE_CLOSED "BFC_BUNDLE_CLOSED" (0xffff, 2304),
    /// More bundles than a connection may have.
    OUT_OF_BUNDLES "BFC_OUT_OF_BUNDLES" (0xffff, 2305),
    /// An unknown type of bundle control.
    BUNDLE_BAD_TYPE "BFC_BAD_TYPE" (0xffff, 2306),
    /// Flags that the switch does not support, or other flags than the open bundle has.
    BUNDLE_BAD_FLAGS "BFC_BAD_FLAGS" (0xffff, 2307),
    /// A message in a bundle whose length is wrong.
    BUNDLE_MESSAGE_BAD_LENGTH "BFC_MSG_BAD_LEN" (0xffff, 2308),
    /// A message in a bundle with another transaction number than the bundle's message.
    BUNDLE_MESSAGE_BAD_XID "BFC_MSG_BAD_XID" (0xffff, 2309),
    /// A message that cannot be in a bundle.
    BUNDLE_MESSAGE_UNSUPPORTED "BFC_MSG_UNSUP" (0xffff, 2310),
    /// More messages than a bundle may have.
    BUNDLE_TOO_MANY_MESSAGES "BFC_MSG_TOO_MANY" (0xffff, 2312),
    /// A message of the bundle that cannot be carried out.
    BUNDLE_MESSAGE_FAILED "BFC_MSG_FAILED" (0xffff, 2313),
}

/// The type of errors with an experimenter's codes: ONF's codes of extension 230 (bundles), and
/// Nicira's codes, which Open vSwitch uses for extension 187 (monitors).
pub const EXPERIMENTER_ERROR: u16 = 0xffff;

/// The number of the Open Networking Foundation as an experimenter.
pub(crate) const ONF: u32 = 0x4f4e_4600;

/// The number of Nicira as an experimenter.
const NICIRA: u32 = 0x2320;

impl Code {
    /// Returns the number of the experimenter that defines the code, if it is not OpenFlow's.
    #[must_use]
    pub fn experimenter(self) -> Option<u32> {
        const NICIRA_CODES: [Code; 3] = [
            Code::MONITOR_EXISTS,
            Code::BAD_MONITOR_FLAGS,
            Code::UNKNOWN_MONITOR,
        ];
        (self.kind == EXPERIMENTER_ERROR).then(|| match NICIRA_CODES.contains(&self) {
            true => NICIRA,
            false => ONF,
        })
    }
}

impl fmt::Display for Code {
    /// Writes the name, or both numbers.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = Code::NAMED.iter().find(|(code, _)| code == self);
        let datapath = || {
            let mut codes = ErrorCode::ALL.iter();
            codes.find(|code| code.numbers() == (self.kind, self.code))
        };
        match (name, datapath()) {
            (Some((_, name)), _) => f.write_str(name),
            (None, Some(code)) => f.write_str(code.name()),
            (None, None) => write!(f, "type {}, code {}", self.kind, self.code),
        }
    }
}

impl From<ErrorCode> for Code {
    fn from(code: ErrorCode) -> Code {
        let (kind, code) = code.numbers();
        Code { kind, code }
    }
}

/// The reason why a message is refused: a code for the controller and a sentence for the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The type and the code.
    pub code: Code,
    message: String,
}

impl Fault {
    /// Returns a fault with a sentence for people.
    #[must_use]
    pub fn new(code: Code, message: impl Into<String>) -> Fault {
        Fault {
            code,
            message: message.into(),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.message, self.code)
    }
}

impl std::error::Error for Fault {}

impl From<OpenFlowError> for Fault {
    fn from(error: OpenFlowError) -> Fault {
        let sentence = error.to_string();
        let name = format!(" ({})", error.code().name());
        let sentence = sentence.strip_suffix(&name).unwrap_or(&sentence);
        Fault::new(error.code().into(), sentence)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_are_distinct() {
        for (number, (code, name)) in Code::NAMED.iter().enumerate() {
            for (other, other_name) in &Code::NAMED[..number] {
                assert_ne!(code, other);
                assert_ne!(name, other_name);
            }
        }
    }

    #[test]
    fn codes_of_both_crates_have_one_name() {
        for code in ErrorCode::ALL {
            assert_eq!(Code::from(*code).to_string(), code.name());
        }
        assert_eq!(Code { kind: 9, code: 7 }.to_string(), "type 9, code 7");
    }
}
