//! Messages about the switch and the connection: versions, features, configuration, roles
//! (OpenFlow 1.3.5 §7.3.1, §7.3.2, §7.3.9, §7.3.10, §7.5.1).

use crate::fault::{Code, Fault};
use crate::wire::{Reader, Wire, Writer, layout, padding};

/// The version number of OpenFlow 1.3.
pub const VERSION_1_3: u8 = 0x04;

/// The type of the hello element with versions.
const VERSION_BITMAP: u16 = 1;

/// The bytes of an element's type and length.
const ELEMENT_HEADER: usize = 4;

/// The versions that one end of a connection supports (`ofp_hello`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hello {
    /// For each version, a bit: version v is bit v % 32 of word v / 32. `None` if the message
    /// has no bitmap; then the version of its header and all earlier versions are meant.
    pub versions: Option<Vec<u32>>,
}

impl Hello {
    /// Returns the message of a switch that supports only OpenFlow 1.3.
    #[must_use]
    pub fn only_1_3() -> Hello {
        Hello {
            versions: Some(vec![1 << VERSION_1_3]),
        }
    }

    /// Returns true if the sender supports OpenFlow 1.3. `version` is the version in the header
    /// of the message.
    #[must_use]
    pub fn has_1_3(&self, version: u8) -> bool {
        match &self.versions {
            Some(words) => words
                .first()
                .is_some_and(|word| word >> VERSION_1_3 & 1 != 0),
            None => version >= VERSION_1_3,
        }
    }
}

impl Wire for Hello {
    /// Reads the elements. Unknown elements are ignored, as the protocol asks for.
    fn read(reader: &mut Reader<'_>) -> Result<Self, Fault> {
        let mut hello = Hello::default();
        while reader.len() >= ELEMENT_HEADER {
            let (kind, length): (u16, u16) = (reader.get()?, reader.get()?);
            let length = usize::from(length);
            let Some(bytes) = length.checked_sub(ELEMENT_HEADER) else {
                let message = format!("a hello element of length {length}; 4 is the least");
                return Err(Fault::new(Code::HELLO_INCOMPATIBLE, message));
            };
            let mut element = reader.part(bytes)?;
            reader.skip(padding(length).min(reader.len()))?;
            if kind == VERSION_BITMAP && hello.versions.is_none() {
                hello.versions = Some(element.list()?);
            }
        }
        reader.rest();
        Ok(hello)
    }

    fn write(&self, writer: &mut Writer<'_>) {
        if let Some(words) = &self.versions {
            let start = writer.len();
            writer.put(&VERSION_BITMAP);
            writer.put(&0_u16);
            writer.list(words);
            writer.set_length(start + 2, writer.len() - start);
            writer.align(start);
        }
    }
}

layout! {
    /// An error of the other end's message (`ofp_error_msg`).
    pub struct ErrorMessage {
        /// The type.
        kind: u16,
        /// The code; for an experimenter's error the experimenter's own number.
        code: u16,
        /// The first bytes of the message, at least 64 of a longer message. For an
        /// experimenter's error the experimenter's number comes first.
        data: Vec<u8>,
    }
}

layout! {
    /// The features of a switch (`ofp_switch_features`).
    pub struct SwitchFeatures {
        /// The number of the switch.
        datapath_id: u64,
        /// Packets that it can buffer.
        buffers: u32,
        /// The number of flow tables.
        tables: u8,
        /// The number of an auxiliary connection; 0 for the main connection.
        auxiliary_id: u8,
        /// Its capabilities (`ofp_capabilities`).
        [2] capabilities: u32,
        /// Zero.
        reserved: u32,
    }
}

layout! {
    /// The configuration of a switch (`ofp_switch_config`).
    pub struct SwitchConfig {
        /// The processing of IP fragments (`ofp_config_flags`); 0: as any packet.
        flags: u16,
        /// The bytes of a packet that the controller gets if an action of the table-miss entry
        /// does not say how many.
        miss_send_len: u16,
    }
}

/// The role of a controller (`ofp_controller_role`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// No change; a question for the present role.
    NoChange,
    /// Full access, as all controllers with this role.
    Equal,
    /// Full access, for one controller at a time.
    Primary,
    /// Only reading.
    Secondary,
}

impl Wire for Role {
    fn read(reader: &mut Reader<'_>) -> Result<Self, Fault> {
        match reader.get::<u32>()? {
            0 => Ok(Role::NoChange),
            1 => Ok(Role::Equal),
            2 => Ok(Role::Primary),
            3 => Ok(Role::Secondary),
            unknown => {
                let message = format!("role {unknown}; the roles are 0 to 3");
                Err(Fault::new(Code::BAD_ROLE, message))
            }
        }
    }

    fn write(&self, writer: &mut Writer<'_>) {
        writer.put::<u32>(&match self {
            Role::NoChange => 0,
            Role::Equal => 1,
            Role::Primary => 2,
            Role::Secondary => 3,
        });
    }
}

layout! {
    /// A change of a controller's role, or the answer (`ofp_role_request`).
    pub struct RoleMessage {
        /// The role.
        role: Role,
        /// The generation of the election that chose the role.
        [4] generation: u64,
    }
}

layout! {
    /// Two masks: for the roles equal and primary, and for the role secondary.
    pub struct RoleMasks {
        /// Bits of reasons, for a controller with the role equal or primary.
        primary: u32,
        /// Bits of reasons, for a controller with the role secondary.
        secondary: u32,
    }
}

layout! {
    /// The asynchronous messages that a controller gets (`ofp_async_config`).
    pub struct AsyncConfig {
        /// Reasons of packet-in messages.
        packet_in: RoleMasks,
        /// Reasons of port-status messages.
        port_status: RoleMasks,
        /// Reasons of flow-removed messages.
        flow_removed: RoleMasks,
    }
}

layout! {
    /// A message of an experimenter, which this crate does not know.
    pub struct Experimenter {
        /// The experimenter.
        experimenter: u32,
        /// The type of the message, of the experimenter's own numbering.
        kind: u32,
        /// The rest.
        data: Vec<u8>,
    }
}
