//! Instructions in bytes (OpenFlow 1.3.5 §7.2.5).

use classyard_datapath::flow::{Instructions, TableId};
use classyard_datapath::{Action, MeterId};

use crate::action::read_actions;
use crate::fault::{Code, Fault};
use crate::wire::{Reader, Wire, Writer};

/// Types of instructions (`ofp_instruction_type`).
mod kind {
    pub(super) const GOTO_TABLE: u16 = 1;
    pub(super) const WRITE_METADATA: u16 = 2;
    pub(super) const WRITE_ACTIONS: u16 = 3;
    pub(super) const APPLY_ACTIONS: u16 = 4;
    pub(super) const CLEAR_ACTIONS: u16 = 5;
    pub(super) const METER: u16 = 6;
    pub(super) const EXPERIMENTER: u16 = 0xffff;
}

/// The bytes of an instruction's type and length.
const HEADER_BYTES: usize = 4;

/// Instructions fill the rest of their message. Each type may be there once.
impl Wire for Instructions {
    fn read(reader: &mut Reader<'_>) -> Result<Self, Fault> {
        let mut list = Reader::new(reader.rest(), Code::BAD_INSTRUCTION_LENGTH);
        let mut instructions = Instructions::default();
        let mut seen = Vec::new();
        while !list.is_empty() {
            let (kind, length): (u16, u16) = (list.get()?, list.get()?);
            let length = usize::from(length);
            if length < HEADER_BYTES || !length.is_multiple_of(8) {
                let message =
                    format!("an instruction of length {length}; lengths are multiples of 8");
                return Err(Fault::new(Code::BAD_INSTRUCTION_LENGTH, message));
            }
            if seen.contains(&kind) {
                let message = format!("two instructions of type {kind}; one is allowed");
                return Err(Fault::new(Code::UNSUPPORTED_INSTRUCTION, message));
            }
            let mut body = list.part(length - HEADER_BYTES)?;
            read_body(kind, &mut body, &mut instructions)?;
            seen.push(kind);
        }
        Ok(instructions)
    }

    /// Appends the instructions in the order of execution.
    fn write(&self, writer: &mut Writer<'_>) {
        if let Some(meter) = self.meter {
            header(writer, kind::METER, 8);
            writer.put(&meter);
        }
        if !self.apply.is_empty() {
            actions(writer, kind::APPLY_ACTIONS, &self.apply);
        }
        if self.clear {
            header(writer, kind::CLEAR_ACTIONS, 8);
            writer.skip(4);
        }
        if !self.write.is_empty() {
            actions(writer, kind::WRITE_ACTIONS, &self.write);
        }
        if let Some((value, mask)) = self.metadata {
            header(writer, kind::WRITE_METADATA, 24);
            writer.skip(4);
            writer.put(&value);
            writer.put(&mask);
        }
        if let Some(table) = self.goto_table {
            header(writer, kind::GOTO_TABLE, 8);
            writer.put(&table);
            writer.skip(3);
        }
    }
}

fn header(writer: &mut Writer<'_>, kind: u16, length: u16) {
    writer.put(&kind);
    writer.put(&length);
}

fn actions(writer: &mut Writer<'_>, kind: u16, actions: &[Action]) {
    let start = writer.len();
    header(writer, kind, 0);
    writer.skip(4);
    writer.list(actions);
    writer.set_length(start + 2, writer.len() - start);
}

/// Reads the part of an instruction behind its header.
fn read_body(
    kind: u16,
    body: &mut Reader<'_>,
    instructions: &mut Instructions,
) -> Result<(), Fault> {
    let list = |body: &mut Reader<'_>| {
        body.skip(4)?;
        read_actions(body, body.len())
    };
    match kind {
        kind::GOTO_TABLE => {
            instructions.goto_table = Some(body.get::<TableId>()?);
            body.skip(3)?;
        }
        kind::WRITE_METADATA => {
            body.skip(4)?;
            instructions.metadata = Some((body.get()?, body.get()?));
        }
        kind::WRITE_ACTIONS => instructions.write = list(body)?,
        kind::APPLY_ACTIONS => instructions.apply = list(body)?,
        kind::CLEAR_ACTIONS => {
            body.skip(4)?;
            instructions.clear = true;
        }
        kind::METER => instructions.meter = Some(body.get::<MeterId>()?),
        kind::EXPERIMENTER => {
            let experimenter: u32 = body.get()?;
            let message =
                format!("an instruction of the unknown experimenter {experimenter:#010x}");
            return Err(Fault::new(Code::BAD_INSTRUCTION_EXPERIMENTER, message));
        }
        unknown => {
            let message = format!("an instruction of type {unknown}, which OpenFlow 1.3 has not");
            return Err(Fault::new(Code::UNKNOWN_INSTRUCTION, message));
        }
    }
    body.end()
}

#[cfg(test)]
mod tests {
    use classyard_datapath::PortNo;

    use super::*;

    #[test]
    fn instructions_read_back() {
        let instructions = Instructions {
            meter: Some(MeterId(4)),
            apply: vec![Action::PopVlan, Action::SetQueue(1)],
            clear: true,
            write: vec![Action::Output {
                port: PortNo(2),
                max_len: 0,
            }],
            metadata: Some((0x12, 0xff)),
            goto_table: Some(TableId(9)),
        };
        let mut bytes = Vec::new();
        Writer::new(&mut bytes).put(&instructions);
        assert_eq!(bytes.len(), 8 + 24 + 8 + 24 + 24 + 8);
        let mut reader = Reader::new(&bytes, Code::BAD_LENGTH);
        assert_eq!(reader.get(), Ok(instructions));
    }

    #[test]
    fn faults_have_the_codes_of_instructions() {
        let cases: [(&[u8], Code); 7] = [
            (&[0, 1, 0], Code::BAD_INSTRUCTION_LENGTH),
            (&[0, 1, 0, 4, 0, 0, 0, 0], Code::BAD_INSTRUCTION_LENGTH),
            (&[0, 1, 0, 16, 1, 0, 0, 0], Code::BAD_INSTRUCTION_LENGTH),
            (&[0, 7, 0, 8, 0, 0, 0, 0], Code::UNKNOWN_INSTRUCTION),
            (
                &[255, 255, 0, 8, 0, 0, 0, 1],
                Code::BAD_INSTRUCTION_EXPERIMENTER,
            ),
            (
                &[0, 1, 0, 8, 1, 0, 0, 0, 0, 1, 0, 8, 2, 0, 0, 0],
                Code::UNSUPPORTED_INSTRUCTION,
            ),
            (
                &[0, 4, 0, 16, 0, 0, 0, 0, 0, 18, 0, 4, 0, 0, 0, 0],
                Code::BAD_ACTION_LENGTH,
            ),
        ];
        for (bytes, code) in cases {
            let mut reader = Reader::new(bytes, Code::BAD_LENGTH);
            let fault = reader.get::<Instructions>().expect_err("a fault");
            assert_eq!(fault.code, code, "{bytes:?}");
        }
    }
}
