//! Structures that C fills in, and their conversion.

use std::ffi::{CStr, c_char, c_void};

use classyard::columns;
use classyard::policy::PartId;
use classyard::{ActionId, FieldMatch, Priority, RuleId};

use crate::status::{Fault, Status};

/// The rule id and the action of a header that no rule matches.
pub const NO_RULE: u32 = u32::MAX;

/// The rule id and the action of a packet that has no header for the rules, such as a packet
/// of ARP among five-tuples.
pub const NO_HEADER: u32 = u32::MAX - 1;

/// A number of 128 bits.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct U128 {
    /// The low 64 bits.
    pub low: u64,
    /// The high 64 bits.
    pub high: u64,
}

impl U128 {
    fn number(self) -> u128 {
        u128::from(self.high) << 64 | u128::from(self.low)
    }
}

/// The values of a field that a rule matches.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MatchType {
    /// All values.
    Any = 0,
    /// The value `first`.
    Exact = 1,
    /// The values that start with the first `prefix_length` bits of `first`.
    Prefix = 2,
    /// The values from `first` to `second`.
    Range = 3,
    /// The values that agree with `first` on the bits of the mask `second`.
    Masked = 4,
}

/// One field of a rule.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Match {
    /// A number of `cy_match_type`.
    pub kind: u32,
    /// The length of a prefix in bits.
    pub prefix_length: u32,
    /// The value, or the first value of a range.
    pub first: U128,
    /// The last value of a range, or the mask.
    pub second: U128,
}

impl Match {
    fn convert(&self, field: usize) -> Result<FieldMatch, Fault> {
        let (first, second) = (self.first.number(), self.second.number());
        Ok(match self.kind {
            0 => FieldMatch::Any,
            1 => FieldMatch::Exact(first),
            2 => FieldMatch::Prefix {
                value: first,
                length: self.prefix_length,
            },
            3 => FieldMatch::Range {
                low: first,
                high: second,
            },
            4 => FieldMatch::Ternary {
                value: first,
                mask: second,
            },
            other => {
                return Err(Fault::argument(format!(
                    "field {field}: {other} is no type of a match; 0 to 4 are"
                )));
            }
        })
    }
}

/// A rule without its matches.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    /// The id: any number but `CY_NO_RULE`, once for each rule.
    pub id: u32,
    /// The priority. The matching rule of highest priority wins; among equal priorities, the
    /// rule of lowest id.
    pub priority: u32,
    /// The number of the action: see `cy_policy_action`.
    pub action: u32,
    /// A number for the program's own use.
    pub cookie: u64,
}

impl Rule {
    pub(crate) fn head(&self) -> Result<(RuleId, Priority, ActionId), Fault> {
        let id = RuleId::new(self.id).map_err(Fault::argument)?;
        Ok((id, Priority(self.priority), ActionId(self.action)))
    }
}

/// The matches of a rule in one part of a policy. A rule for IPv4 and IPv6 has two forms.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Form {
    /// The part: 0 in policies of one schema; 0 (IPv4) or 1 (IPv6) in policies of both.
    pub part: u32,
    /// One match for each field of the part's schema, in order.
    pub matches: *const Match,
    /// The number of matches.
    pub match_count: usize,
}

/// The forms of a rule, converted.
pub(crate) struct Forms {
    forms: Vec<(PartId, Vec<FieldMatch>)>,
}

impl Forms {
    /// # Safety
    /// As for [`slice`], for the forms and for the matches of each.
    pub(crate) unsafe fn new(
        forms: *const Form,
        count: usize,
        parts: usize,
    ) -> Result<Forms, Fault> {
        // SAFETY: the caller promises it.
        let forms = unsafe { slice(forms, count, "forms") }?;
        let convert = |form: &Form| {
            let part = part(form.part, parts)?;
            // SAFETY: the caller promises it.
            let matches = unsafe { slice(form.matches, form.match_count, "matches") }?;
            let matches = matches.iter().enumerate();
            let matches: Result<_, Fault> = matches.map(|(field, m)| m.convert(field)).collect();
            Ok((part, matches?))
        };
        let forms: Result<_, Fault> = forms.iter().map(convert).collect();
        Ok(Forms { forms: forms? })
    }

    pub(crate) fn borrowed(&self) -> Vec<(PartId, &[FieldMatch])> {
        let forms = self.forms.iter();
        forms.map(|(part, matches)| (*part, &matches[..])).collect()
    }
}

/// The type of the values of a column.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnType {
    /// `uint8_t`.
    U8 = 0,
    /// `uint16_t`, in the order of this processor.
    U16 = 1,
    /// `uint32_t`, in the order of this processor.
    U32 = 2,
    /// `uint64_t`, in the order of this processor.
    U64 = 3,
    /// Values of `size` bytes, most significant byte first, as in packets. `size` is 1 to 16.
    BigEndian = 4,
    /// One `cy_u128`, for all rows.
    Constant = 5,
}

/// The values of one field: one for each header.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Column {
    /// A number of `cy_column_type`.
    pub kind: u32,
    /// The number of bytes of a value, for `CY_COLUMN_TYPE_BIG_ENDIAN`.
    pub size: u32,
    /// The values.
    pub values: *const c_void,
}

impl Column {
    /// # Safety
    /// `values` has `rows` values of the type, or is null.
    pub(crate) unsafe fn convert<'a>(&self, rows: usize) -> Result<columns::Column<'a>, Fault> {
        let (values, size) = (self.values, self.size as usize);
        // SAFETY: the caller promises the type and the number of values.
        unsafe {
            Ok(match self.kind {
                0 => columns::Column::U8(slice(values.cast(), rows, "column")?),
                1 => columns::Column::U16(slice(values.cast(), rows, "column")?),
                2 => columns::Column::U32(slice(values.cast(), rows, "column")?),
                3 => columns::Column::U64(slice(values.cast(), rows, "column")?),
                4 => {
                    let bytes = rows.checked_mul(size).filter(|_| (1..=16).contains(&size));
                    let bytes = bytes.ok_or_else(|| {
                        Fault::new(
                            Status::InvalidColumns,
                            format!("values of {size} bytes; 1 to 16 are possible"),
                        )
                    })?;
                    let bytes = slice(values.cast(), bytes, "column")?;
                    columns::Column::BigEndian { bytes, size }
                }
                5 => {
                    let value: &[U128] = slice(values.cast(), 1, "constant")?;
                    let value = value[0].number();
                    columns::Column::Constant { value, rows }
                }
                other => {
                    return Err(Fault::new(
                        Status::InvalidColumns,
                        format!("{other} is no type of a column; 0 to 5 are"),
                    ));
                }
            })
        }
    }
}

/// A packet: an Ethernet frame.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Packet {
    /// The bytes, from the Ethernet header on.
    pub bytes: *const u8,
    /// The number of bytes.
    pub length: usize,
}

/// The results of a lookup: arrays with an element for each header. Lookups do not write to an
/// array that is null.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Output {
    /// The ids of the winning rules; `CY_NO_RULE` where no rule matches.
    pub rules: *mut u32,
    /// The actions of the winning rules; `CY_NO_RULE` where no rule matches.
    pub actions: *mut u32,
    /// The cookies of the winning rules; 0 where no rule matches.
    pub cookies: *mut u64,
}

/// Returns an array from C. A null pointer is an array of no elements if `count` is 0.
///
/// # Safety
/// `pointer` is null, or has `count` elements that nobody changes while the result is used.
pub(crate) unsafe fn slice<'a, T>(
    pointer: *const T,
    count: usize,
    what: &str,
) -> Result<&'a [T], Fault> {
    if count == 0 {
        return Ok(&[]);
    }
    check_array(pointer, count, what)?;
    // SAFETY: not null, aligned, not too long; the caller promises the elements.
    Ok(unsafe { std::slice::from_raw_parts(pointer, count) })
}

/// Returns an array from C to write to, or `None` for a null pointer.
///
/// # Safety
/// `pointer` is null, or has `count` elements that nobody else uses while the result is used.
pub(crate) unsafe fn slice_mut<'a, T>(
    pointer: *mut T,
    count: usize,
    what: &str,
) -> Result<Option<&'a mut [T]>, Fault> {
    if pointer.is_null() {
        return Ok(None);
    }
    if count == 0 {
        return Ok(Some(&mut []));
    }
    check_array(pointer, count, what)?;
    // SAFETY: not null, aligned, not too long; the caller promises the elements.
    Ok(Some(unsafe {
        std::slice::from_raw_parts_mut(pointer, count)
    }))
}

fn check_array<T>(pointer: *const T, count: usize, what: &str) -> Result<(), Fault> {
    if pointer.is_null() {
        let message = format!("the {what}: a null pointer for {count} elements");
        return Err(Fault::new(Status::NullPointer, message));
    }
    if !pointer.is_aligned() {
        let bytes = align_of::<T>();
        let message = format!("the {what}: the address is no multiple of {bytes} bytes");
        return Err(Fault::argument(message));
    }
    match count.checked_mul(size_of::<T>()) {
        Some(bytes) if isize::try_from(bytes).is_ok() => Ok(()),
        _ => Err(Fault::argument(format!(
            "the {what}: {count} elements exceed memory"
        ))),
    }
}

/// Returns a text from C.
///
/// # Safety
/// `pointer` is null, or a text that ends with a null byte and does not change.
pub(crate) unsafe fn text<'a>(pointer: *const c_char, what: &str) -> Result<&'a str, Fault> {
    // SAFETY: the caller promises it.
    let text = unsafe { optional_text(pointer, what) }?;
    text.ok_or_else(|| Fault::new(Status::NullPointer, format!("the {what} is a null pointer")))
}

/// Returns a text from C, or `None` for a null pointer.
///
/// # Safety
/// As for [`text`].
pub(crate) unsafe fn optional_text<'a>(
    pointer: *const c_char,
    what: &str,
) -> Result<Option<&'a str>, Fault> {
    if pointer.is_null() {
        return Ok(None);
    }
    // SAFETY: not null, so the caller promises a text.
    let text = unsafe { CStr::from_ptr(pointer) }.to_str();
    text.map(Some)
        .map_err(|error| Fault::argument(format!("the {what} is not UTF-8: {error}")))
}

/// Writes a number to a place from C.
///
/// # Safety
/// `place` is null or may be written.
pub(crate) unsafe fn put<T>(place: *mut T, value: T, what: &str) -> Result<(), Fault> {
    if place.is_null() {
        let message = format!("the place for the {what} is a null pointer");
        return Err(Fault::new(Status::NullPointer, message));
    }
    // SAFETY: not null, so the caller promises that it may be written.
    unsafe { place.write(value) };
    Ok(())
}

/// Returns the part of a policy with this number.
pub(crate) fn part(number: u32, parts: usize) -> Result<PartId, Fault> {
    let index = number as usize;
    if index < parts {
        return Ok(PartId::from_index(index));
    }
    Err(Fault::argument(format!(
        "part {number}: the policy has {parts}, numbered from 0"
    )))
}
