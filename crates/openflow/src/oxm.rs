//! Matches in bytes: a list of fields with values and masks (OXM, OpenFlow 1.3.5 §7.2.3).
//!
//! ```text
//! class 16 │ field 7 │ has a mask 1 │ length 8 │ value │ mask
//! ```

use std::sync::Arc;

use classyard_datapath::{Field, FlowMatch, MatchField};

use crate::fault::{Code, Fault};
use crate::wire::{Reader, Wire, Writer, padding};

/// The type of a match that is a list of OXM fields.
pub(crate) const MATCH_OXM: u16 = 1;

/// The bytes of a match's type and length.
const MATCH_HEADER: usize = 4;

/// The codes of faults in a field: they differ between matches and actions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FieldCodes {
    pub(crate) unknown: Code,
    pub(crate) bad_length: Code,
}

const IN_MATCH: FieldCodes = FieldCodes {
    unknown: Code::BAD_MATCH_FIELD,
    bad_length: Code::BAD_MATCH_LENGTH,
};

/// The header of an OXM field, without a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct OxmHeader {
    /// The class of the field.
    pub class: u16,
    /// The number of the field in its class.
    pub field: u8,
    /// True if a mask follows the value, or may follow.
    pub has_mask: bool,
    /// The number of bytes of the value and the mask.
    pub length: u8,
}

impl OxmHeader {
    /// Returns the header of a field.
    #[must_use]
    pub fn new(field: Field, has_mask: bool) -> OxmHeader {
        let info = field.info();
        let bytes = value_bytes(field) << u8::from(has_mask);
        OxmHeader {
            class: info.oxm_class,
            field: info.oxm_field,
            has_mask,
            length: bytes,
        }
    }

    /// Returns the field, if this crate knows it.
    #[must_use]
    pub fn known(self) -> Option<Field> {
        Field::from_oxm(self.class, self.field)
    }
}

impl Wire for OxmHeader {
    fn read(reader: &mut Reader<'_>) -> Result<Self, Fault> {
        let class = reader.get()?;
        let field: u8 = reader.get()?;
        Ok(OxmHeader {
            class,
            field: field >> 1,
            has_mask: field & 1 != 0,
            length: reader.get()?,
        })
    }

    fn write(&self, writer: &mut Writer<'_>) {
        writer.put(&self.class);
        writer.put(&(self.field << 1 | u8::from(self.has_mask)));
        writer.put(&self.length);
    }
}

/// Returns the number of bytes of a field's value (OpenFlow 1.3.5 §7.2.3.7, table 12). Fields of
/// 20 bits, the IPv6 flow label and the MPLS label, have 4 bytes.
fn value_bytes(field: Field) -> u8 {
    match field.info().width {
        20 => 4,
        width => u8::try_from(width.div_ceil(8)).expect("16 bytes at most"),
    }
}

/// Reads a value of this number of bytes.
fn read_value(reader: &mut Reader<'_>, bytes: u8) -> Result<u128, Fault> {
    let taken = reader.take(usize::from(bytes))?;
    Ok(taken
        .iter()
        .fold(0, |value, &byte| value << 8 | u128::from(byte)))
}

fn write_value(writer: &mut Writer<'_>, value: u128, bytes: u8) {
    let value_bytes = value.to_be_bytes();
    writer.bytes(&value_bytes[value_bytes.len() - usize::from(bytes)..]);
}

/// Reads a field with its value, and its mask if it has one.
pub(crate) fn read_field(reader: &mut Reader<'_>, codes: FieldCodes) -> Result<MatchField, Fault> {
    let mut reader_here = reader.or(codes.bad_length);
    let header: OxmHeader = reader_here.get()?;
    let Some(field) = header.known() else {
        let (class, number) = (header.class, header.field);
        let message = format!("no field has the number {number} of class {class:#06x}");
        return Err(Fault::new(codes.unknown, message));
    };
    let bytes = value_bytes(field);
    if header.length != bytes << u8::from(header.has_mask) {
        let (found, with) = (
            header.length,
            if header.has_mask { " and mask" } else { "" },
        );
        let message = format!("{field}: value{with} have {found} bytes; the field has {bytes}");
        return Err(Fault::new(codes.bad_length, message));
    }
    let value = read_value(&mut reader_here, bytes)?;
    let mask = match header.has_mask {
        true => read_value(&mut reader_here, bytes)?,
        false => field.max_value(),
    };
    let used = reader.len() - reader_here.len();
    reader.skip(used)?;
    Ok(MatchField { field, value, mask })
}

/// Appends a field with its value, and its mask if it has not all bits.
pub(crate) fn write_field(writer: &mut Writer<'_>, value: &MatchField) {
    let has_mask = !value.is_exact();
    writer.put(&OxmHeader::new(value.field, has_mask));
    let bytes = value_bytes(value.field);
    write_value(writer, value.value, bytes);
    if has_mask {
        write_value(writer, value.mask, bytes);
    }
}

/// Reads the fields of a match until no bytes are left.
pub(crate) fn read_fields(fields: &mut Reader<'_>) -> Result<FlowMatch, Fault> {
    let mut values = Vec::new();
    while !fields.is_empty() {
        values.push(read_field(fields, IN_MATCH)?);
    }
    Ok(FlowMatch::new(values)?)
}

/// A match with its type, its length, and padding to a multiple of eight bytes.
impl Wire for Arc<FlowMatch> {
    fn read(reader: &mut Reader<'_>) -> Result<Self, Fault> {
        let mut reader_here = reader.or(Code::BAD_MATCH_LENGTH);
        let (kind, length): (u16, u16) = (reader_here.get()?, reader_here.get()?);
        if kind != MATCH_OXM {
            let message = format!("a match of type {kind}; the type is {MATCH_OXM}");
            return Err(Fault::new(Code::BAD_MATCH_TYPE, message));
        }
        let Some(bytes) = usize::from(length).checked_sub(MATCH_HEADER) else {
            let message = format!("a match of length {length}; its header has {MATCH_HEADER}");
            return Err(Fault::new(Code::BAD_MATCH_LENGTH, message));
        };
        let mut fields = reader_here.part(bytes)?;
        reader_here.skip(padding(usize::from(length)))?;
        let flow = read_fields(&mut fields)?;
        let used = reader.len() - reader_here.len();
        reader.skip(used)?;
        Ok(Arc::new(flow))
    }

    fn write(&self, writer: &mut Writer<'_>) {
        let start = writer.len();
        writer.put(&MATCH_OXM);
        writer.put(&0_u16);
        for value in self.values() {
            write_field(writer, &value);
        }
        writer.set_length(start + 2, writer.len() - start);
        writer.align(start);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8]) -> Result<Arc<FlowMatch>, Fault> {
        let mut reader = Reader::new(bytes, Code::BAD_LENGTH);
        let read = reader.get()?;
        reader.end()?;
        Ok(read)
    }

    #[test]
    fn a_match_has_fields_in_any_order_and_padding() {
        // ipv4_dst 10.0.0.0/8, then eth_type 0x800: 4 + 12 + 6 bytes, and 2 of padding.
        let bytes = [
            0, 1, 0, 22, 0x80, 0, 25, 8, 10, 0, 0, 0, 255, 0, 0, 0, 0x80, 0, 10, 2, 8, 0, 0, 0,
        ];
        let read = read(&bytes).expect("a match");
        assert_eq!(read.to_string(), "eth_type=0x800,ipv4_dst=10.0.0.0/8");
        let mut written = Vec::new();
        Writer::new(&mut written).put(&read);
        assert_eq!(written.len(), bytes.len());
        let again = super::tests::read(&written).expect("the same match");
        assert_eq!(again, read);
    }

    /// The bytes of each field in table 12 of OpenFlow 1.3.5, by number; 0 for PBB, which the
    /// datapath lacks.
    const TABLE_12: [u8; 40] = [
        4, 4, 8, 6, 6, 2, 2, 1, 1, 1, 1, 4, 4, 2, 2, 2, 2, 2, 2, 1, 1, 2, 4, 4, 6, 6, 16, 16, 4, 1,
        1, 16, 6, 6, 4, 1, 1, 0, 8, 2,
    ];

    #[test]
    fn fields_have_the_bytes_of_the_specification() {
        for (number, &bytes) in TABLE_12.iter().enumerate().filter(|(_, bytes)| **bytes > 0) {
            let header = OxmHeader {
                class: 0x8000,
                field: u8::try_from(number).expect("a small number"),
                has_mask: false,
                length: bytes,
            };
            let field = header.known().expect("a field of the datapath");
            assert_eq!(value_bytes(field), bytes, "{field}");
        }
    }

    #[test]
    fn faults_have_the_codes_of_matches() {
        let cases: [(&[u8], Code); 7] = [
            (&[0, 0, 0, 4, 0, 0, 0, 0], Code::BAD_MATCH_TYPE),
            (&[0, 1, 0, 3, 0, 0, 0, 0], Code::BAD_MATCH_LENGTH),
            (&[0, 1, 0, 12, 0, 0, 0, 0], Code::BAD_MATCH_LENGTH),
            // A field of an unknown class, and an incomplete field.
            (
                &[0, 1, 0, 10, 0x90, 0, 0, 2, 1, 2, 0, 0, 0, 0, 0, 0],
                Code::BAD_MATCH_FIELD,
            ),
            (
                &[0, 1, 0, 9, 0x80, 0, 10, 2, 8, 0, 0, 0, 0, 0, 0, 0],
                Code::BAD_MATCH_LENGTH,
            ),
            // An EtherType of three bytes.
            (
                &[0, 1, 0, 11, 0x80, 0, 10, 3, 8, 0, 0, 0, 0, 0, 0, 0],
                Code::BAD_MATCH_LENGTH,
            ),
            // tcp_dst without ip_proto.
            (
                &[0, 1, 0, 10, 0x80, 0, 28, 2, 0, 80, 0, 0, 0, 0, 0, 0],
                Code { kind: 4, code: 9 },
            ),
        ];
        for (bytes, code) in cases {
            assert_eq!(read(bytes).expect_err("a fault").code, code, "{bytes:?}");
        }
    }
}
