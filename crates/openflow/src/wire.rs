//! Bytes of messages: numbers in network order, padding, and lists.
//!
//! [`Reader`] takes values off the front of a slice. [`Writer`] appends values to a buffer,
//! and fills in lengths that are known later. [`layout!`] declares a structure of the
//! protocol once, for both.

use crate::fault::{Code, Fault};

/// Reads values from the front of a slice.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reader<'a> {
    bytes: &'a [u8],
    /// The code of the fault if there are too few bytes.
    too_short: Code,
}

impl<'a> Reader<'a> {
    /// Returns a reader of all `bytes`. `too_short` is the code of the fault if a read needs
    /// more bytes.
    pub(crate) fn new(bytes: &'a [u8], too_short: Code) -> Reader<'a> {
        Reader { bytes, too_short }
    }

    /// Returns the number of bytes that are left.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Takes the next `count` bytes.
    pub(crate) fn take(&mut self, count: usize) -> Result<&'a [u8], Fault> {
        let Some((taken, rest)) = self.bytes.split_at_checked(count) else {
            let message = format!("{} bytes where {count} are needed", self.bytes.len());
            return Err(Fault::new(self.too_short, message));
        };
        self.bytes = rest;
        Ok(taken)
    }

    /// Takes all bytes that are left.
    pub(crate) fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.bytes)
    }

    /// Takes `count` bytes of padding, whatever their values.
    pub(crate) fn skip(&mut self, count: usize) -> Result<(), Fault> {
        self.take(count).map(drop)
    }

    /// Takes the next `count` bytes as a reader of its own, with the same code.
    pub(crate) fn part(&mut self, count: usize) -> Result<Reader<'a>, Fault> {
        Ok(Reader::new(self.take(count)?, self.too_short))
    }

    /// Returns the same bytes, to be read with another code for too few bytes.
    pub(crate) fn or(self, too_short: Code) -> Reader<'a> {
        Reader { too_short, ..self }
    }

    /// Reads a value.
    pub(crate) fn get<T: Wire>(&mut self) -> Result<T, Fault> {
        T::read(self)
    }

    /// Reads values until no bytes are left.
    pub(crate) fn list<T: Wire>(&mut self) -> Result<Vec<T>, Fault> {
        let mut values = Vec::new();
        while !self.is_empty() {
            values.push(self.get()?);
        }
        Ok(values)
    }

    /// Returns a fault if bytes are left.
    pub(crate) fn end(&self) -> Result<(), Fault> {
        match self.bytes.len() {
            0 => Ok(()),
            left => {
                let message = format!("{left} bytes after the end");
                Err(Fault::new(self.too_short, message))
            }
        }
    }
}

/// Appends values to a buffer.
#[derive(Debug)]
pub(crate) struct Writer<'b> {
    bytes: &'b mut Vec<u8>,
}

impl<'b> Writer<'b> {
    pub(crate) fn new(bytes: &'b mut Vec<u8>) -> Writer<'b> {
        Writer { bytes }
    }

    /// Returns the number of bytes in the buffer.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    pub(crate) fn put<T: Wire>(&mut self, value: &T) {
        value.write(self);
    }

    pub(crate) fn list<T: Wire>(&mut self, values: &[T]) {
        values.iter().for_each(|value| value.write(self));
    }

    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Appends `count` zero bytes.
    pub(crate) fn skip(&mut self, count: usize) {
        self.bytes.resize(self.bytes.len() + count, 0);
    }

    /// Appends zero bytes until the bytes since `start` are a multiple of eight.
    pub(crate) fn align(&mut self, start: usize) {
        self.skip(padding(self.len() - start));
    }

    /// Returns the number in two bytes that were written at `place`.
    pub(crate) fn number_at(&self, place: usize) -> u16 {
        u16::from_be_bytes([self.bytes[place], self.bytes[place + 1]])
    }

    /// Stores a length in two bytes that were written at `place`. A longer length is stored
    /// as 65,535; the caller splits such messages before.
    pub(crate) fn set_length(&mut self, place: usize, length: usize) {
        let length = u16::try_from(length).unwrap_or(u16::MAX);
        self.bytes[place..place + 2].copy_from_slice(&length.to_be_bytes());
    }
}

/// Returns the number of bytes from `length` to the next multiple of eight.
pub(crate) fn padding(length: usize) -> usize {
    length.next_multiple_of(8) - length
}

/// A value with a form in bytes.
pub(crate) trait Wire: Sized {
    /// Reads the value.
    fn read(reader: &mut Reader<'_>) -> Result<Self, Fault>;

    /// Appends the value.
    fn write(&self, writer: &mut Writer<'_>);
}

macro_rules! numbers {
    ($($number:ty)*) => {
        $(impl Wire for $number {
            fn read(reader: &mut Reader<'_>) -> Result<Self, Fault> {
                let bytes = reader.take(size_of::<$number>())?;
                Ok(<$number>::from_be_bytes(bytes.try_into().expect("as many bytes as needed")))
            }

            fn write(&self, writer: &mut Writer<'_>) {
                writer.bytes(&self.to_be_bytes());
            }
        })*
    };
}

numbers!(u8 u16 u32 u64);

impl<const N: usize> Wire for [u8; N] {
    fn read(reader: &mut Reader<'_>) -> Result<Self, Fault> {
        Ok(reader.take(N)?.try_into().expect("as many bytes as needed"))
    }

    fn write(&self, writer: &mut Writer<'_>) {
        writer.bytes(self);
    }
}

/// The rest of a message.
impl Wire for Vec<u8> {
    fn read(reader: &mut Reader<'_>) -> Result<Self, Fault> {
        Ok(reader.rest().to_vec())
    }

    fn write(&self, writer: &mut Writer<'_>) {
        writer.bytes(self);
    }
}

/// Numbers of the datapath, by their number.
macro_rules! wrapped {
    ($($name:ty: $number:ty,)*) => {
        $(impl Wire for $name {
            fn read(reader: &mut Reader<'_>) -> Result<Self, Fault> {
                Ok(Self(reader.get()?))
            }

            fn write(&self, writer: &mut Writer<'_>) {
                writer.put::<$number>(&self.0);
            }
        })*
    };
}

wrapped! {
    classyard_datapath::PortNo: u32,
    classyard_datapath::GroupId: u32,
    classyard_datapath::MeterId: u32,
    classyard_datapath::flow::TableId: u8,
}

/// Declares a structure of the protocol, with its form in bytes: its fields in order. A
/// number in brackets before a field, or after the last one, is a number of bytes of padding.
///
/// ```text
/// layout! {
///     /// The structure.
///     pub struct Name {
///         /// A field.
///         first: u16,
///         /// A field after two bytes of padding.
///         [2] second: u32,
///     } [4]
/// }
/// ```
macro_rules! layout {
    (
        $(#[$meta:meta])*
        pub struct $name:ident {
            $($(#[$doc:meta])* $([$before:literal])? $field:ident: $type:ty,)*
        } $([$after:literal])?
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct $name {
            $($(#[$doc])* pub $field: $type,)*
        }

        impl $crate::wire::Wire for $name {
            fn read(
                reader: &mut $crate::wire::Reader<'_>,
            ) -> Result<Self, $crate::fault::Fault> {
                let read = $name {
                    $($field: {
                        $(reader.skip($before)?;)?
                        reader.get()?
                    },)*
                };
                $(reader.skip($after)?;)?
                Ok(read)
            }

            fn write(&self, writer: &mut $crate::wire::Writer<'_>) {
                $(
                    $(writer.skip($before);)?
                    writer.put(&self.$field);
                )*
                $(writer.skip($after);)?
            }
        }
    };
}

pub(crate) use layout;
