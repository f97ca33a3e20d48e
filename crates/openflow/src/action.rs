//! Actions in bytes (OpenFlow 1.3.5 §7.2.4). Each is a multiple of eight bytes long.

use classyard_datapath::{Action, GroupId, PortNo};

use crate::fault::{Code, Fault};
use crate::oxm::{FieldCodes, read_field, write_field};
use crate::wire::{Reader, Wire, Writer};

/// Types of actions (`ofp_action_type`).
mod kind {
    pub(super) const OUTPUT: u16 = 0;
    pub(super) const COPY_TTL_OUT: u16 = 11;
    pub(super) const COPY_TTL_IN: u16 = 12;
    pub(super) const SET_MPLS_TTL: u16 = 15;
    pub(super) const DECREMENT_MPLS_TTL: u16 = 16;
    pub(super) const PUSH_VLAN: u16 = 17;
    pub(super) const POP_VLAN: u16 = 18;
    pub(super) const PUSH_MPLS: u16 = 19;
    pub(super) const POP_MPLS: u16 = 20;
    pub(super) const SET_QUEUE: u16 = 21;
    pub(super) const GROUP: u16 = 22;
    pub(super) const SET_TTL: u16 = 23;
    pub(super) const DECREMENT_TTL: u16 = 24;
    pub(super) const SET_FIELD: u16 = 25;
    pub(super) const EXPERIMENTER: u16 = 0xffff;
}

/// The bytes of an action's type and length.
const HEADER_BYTES: usize = 4;

const IN_ACTION: FieldCodes = FieldCodes {
    unknown: Code::BAD_SET_TYPE,
    bad_length: Code::BAD_SET_LENGTH,
};

impl Wire for Action {
    fn read(reader: &mut Reader<'_>) -> Result<Self, Fault> {
        let mut header = reader.or(Code::BAD_ACTION_LENGTH);
        let (kind, length): (u16, u16) = (header.get()?, header.get()?);
        let length = usize::from(length);
        if length < HEADER_BYTES || !length.is_multiple_of(8) {
            let message = format!("an action of length {length}; lengths are multiples of 8");
            return Err(Fault::new(Code::BAD_ACTION_LENGTH, message));
        }
        let mut body = header.part(length - HEADER_BYTES)?;
        let action = read_body(kind, &mut body)?;
        reader.skip(length)?;
        Ok(action)
    }

    fn write(&self, writer: &mut Writer<'_>) {
        let start = writer.len();
        writer.put(&number(self));
        writer.put(&0_u16);
        match self {
            Action::Output { port, max_len } => {
                writer.put(port);
                writer.put(max_len);
                writer.skip(6);
            }
            Action::Group(group) => writer.put(group),
            Action::SetQueue(queue) => writer.put(queue),
            Action::SetField(value) => write_field(writer, value),
            Action::PushVlan(tag) | Action::PushMpls(tag) | Action::PopMpls(tag) => {
                writer.put(tag);
            }
            Action::SetMplsTtl(ttl) | Action::SetTtl(ttl) => writer.put(ttl),
            Action::PopVlan
            | Action::DecrementMplsTtl
            | Action::DecrementTtl
            | Action::CopyTtlOut
            | Action::CopyTtlIn => {}
        }
        writer.align(start);
        writer.set_length(start + 2, writer.len() - start);
    }
}

fn number(action: &Action) -> u16 {
    match action {
        Action::Output { .. } => kind::OUTPUT,
        Action::Group(_) => kind::GROUP,
        Action::SetQueue(_) => kind::SET_QUEUE,
        Action::SetField(_) => kind::SET_FIELD,
        Action::PushVlan(_) => kind::PUSH_VLAN,
        Action::PopVlan => kind::POP_VLAN,
        Action::PushMpls(_) => kind::PUSH_MPLS,
        Action::PopMpls(_) => kind::POP_MPLS,
        Action::SetMplsTtl(_) => kind::SET_MPLS_TTL,
        Action::DecrementMplsTtl => kind::DECREMENT_MPLS_TTL,
        Action::SetTtl(_) => kind::SET_TTL,
        Action::DecrementTtl => kind::DECREMENT_TTL,
        Action::CopyTtlOut => kind::COPY_TTL_OUT,
        Action::CopyTtlIn => kind::COPY_TTL_IN,
    }
}

/// Reads the part of an action behind its header. The body must have exactly the length of
/// the action's type.
fn read_body(kind: u16, body: &mut Reader<'_>) -> Result<Action, Fault> {
    let (action, padding) = match kind {
        kind::OUTPUT => {
            let (port, max_len): (PortNo, u16) = (body.get()?, body.get()?);
            (Action::Output { port, max_len }, 6)
        }
        kind::GROUP => (Action::Group(body.get::<GroupId>()?), 0),
        kind::SET_QUEUE => (Action::SetQueue(body.get()?), 0),
        kind::SET_FIELD => (Action::SetField(field_to_set(body)?), body.len().min(7)),
        kind::PUSH_VLAN => (Action::PushVlan(body.get()?), 2),
        kind::PUSH_MPLS => (Action::PushMpls(body.get()?), 2),
        kind::POP_MPLS => (Action::PopMpls(body.get()?), 2),
        kind::POP_VLAN => (Action::PopVlan, 4),
        kind::SET_MPLS_TTL => (Action::SetMplsTtl(body.get()?), 3),
        kind::SET_TTL => (Action::SetTtl(body.get()?), 3),
        kind::DECREMENT_MPLS_TTL => (Action::DecrementMplsTtl, 4),
        kind::DECREMENT_TTL => (Action::DecrementTtl, 4),
        kind::COPY_TTL_OUT => (Action::CopyTtlOut, 4),
        kind::COPY_TTL_IN => (Action::CopyTtlIn, 4),
        kind::EXPERIMENTER => {
            let experimenter: u32 = body.get()?;
            let message = format!("an action of the unknown experimenter {experimenter:#010x}");
            return Err(Fault::new(Code::BAD_ACTION_EXPERIMENTER, message));
        }
        unknown => {
            let message = format!("an action of type {unknown}, which this switch has not");
            return Err(Fault::new(Code::BAD_ACTION_TYPE, message));
        }
    };
    body.skip(padding)?;
    body.end()?;
    Ok(action)
}

/// Reads the field of a set-field action: a field without a mask, with a value that fits.
fn field_to_set(body: &mut Reader<'_>) -> Result<classyard_datapath::MatchField, Fault> {
    let value = read_field(body, IN_ACTION)?;
    if !value.is_exact() {
        let message = format!(
            "set_field of {} with a mask; OpenFlow 1.3 has none",
            value.field
        );
        return Err(Fault::new(Code::BAD_SET_TYPE, message));
    }
    Ok(value)
}

/// Reads a list of actions that takes `length` bytes.
pub(crate) fn read_actions(reader: &mut Reader<'_>, length: usize) -> Result<Vec<Action>, Fault> {
    reader
        .or(Code::BAD_ACTION_LENGTH)
        .part(length)?
        .list()
        .and_then(|actions| {
            reader.skip(length)?;
            Ok(actions)
        })
}

#[cfg(test)]
mod tests {
    use classyard_datapath::{Field, MatchField};

    use super::*;

    /// One action of each type.
    pub(crate) fn one_of_each() -> Vec<Action> {
        let set = |field, value| Action::SetField(MatchField::exact(field, value));
        vec![
            Action::Output {
                port: PortNo::CONTROLLER,
                max_len: 0xffff,
            },
            Action::Group(GroupId(7)),
            Action::SetQueue(3),
            set(Field::Ipv6Dst, u128::MAX / 3),
            set(Field::VlanPcp, 5),
            set(Field::Reg15, 0x0102_0304),
            Action::PushVlan(0x88a8),
            Action::PopVlan,
            Action::PushMpls(0x8847),
            Action::PopMpls(0x0800),
            Action::SetMplsTtl(64),
            Action::DecrementMplsTtl,
            Action::SetTtl(9),
            Action::DecrementTtl,
            Action::CopyTtlOut,
            Action::CopyTtlIn,
        ]
    }

    #[test]
    fn actions_are_multiples_of_eight_bytes_and_read_back() {
        let actions = one_of_each();
        let mut bytes = Vec::new();
        for action in &actions {
            let start = bytes.len();
            Writer::new(&mut bytes).put(action);
            assert!((bytes.len() - start).is_multiple_of(8), "{action}");
        }
        let mut reader = Reader::new(&bytes, Code::BAD_LENGTH);
        assert_eq!(read_actions(&mut reader, bytes.len()), Ok(actions));
    }

    #[test]
    fn faults_have_the_codes_of_actions() {
        let cases: [(&[u8], Code); 9] = [
            (&[0, 0, 0, 0], Code::BAD_ACTION_LENGTH),
            (&[0, 0, 0, 8, 0, 0, 0, 1], Code::BAD_ACTION_LENGTH),
            (
                &[0, 18, 0, 12, 0, 0, 0, 0, 0, 0, 0, 0],
                Code::BAD_ACTION_LENGTH,
            ),
            (&[0, 18, 0, 16, 0, 0, 0, 0], Code::BAD_ACTION_LENGTH),
            (&[0, 26, 0, 8, 0, 0, 0, 0], Code::BAD_ACTION_TYPE),
            (&[255, 255, 0, 8, 0, 0, 1, 1], Code::BAD_ACTION_EXPERIMENTER),
            // An unknown field, a field of the wrong length, and a field with a mask.
            (
                &[0, 25, 0, 16, 0x90, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0],
                Code::BAD_SET_TYPE,
            ),
            (
                &[0, 25, 0, 16, 0x80, 0, 10, 3, 0, 0, 0, 0, 0, 0, 0, 0],
                Code::BAD_SET_LENGTH,
            ),
            (
                &[0, 25, 0, 16, 0x80, 0, 25, 8, 10, 0, 0, 0, 255, 0, 0, 0],
                Code::BAD_SET_TYPE,
            ),
        ];
        for (bytes, code) in cases {
            let mut reader = Reader::new(bytes, Code::BAD_LENGTH);
            let fault = reader.get::<Action>().expect_err("a fault");
            assert_eq!(fault.code, code, "{bytes:?}");
        }
    }
}
