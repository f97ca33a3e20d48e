//! Lookups.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use classyard::classifier::BATCH;
use classyard::columns::{self, Columns};
use classyard::policy::{PartId, PolicyTrace};
use classyard::schema::MAX_FIELDS;
use classyard::table::PolicyReplica;
use classyard::{KeySlice, Policy, RuleId, Scratch, Winner};
use classyard_workload::packet::{LinkType, parse};

use crate::arrow_fields::ArrowFields;
use crate::handle::{borrow, give_to, take};
use crate::status::{Fault, Status, call};
use crate::table::Table;
use crate::types::{Column, NO_HEADER, NO_RULE, Output, Packet, part, put, slice, slice_mut};

/// The first word of every live reader, by which lookups recognise readers.
const LIVE_READER: u64 = 0x6379_7265_6164_6572;

/// Looks up headers in a table. A reader is for one thread at a time: make one for each thread.
pub struct Reader {
    live: u64,
    busy: AtomicBool,
    /// The schemas of the table's parts.
    empty: Policy,
    lookup: Lookup,
}

/// The parts of a reader that a lookup uses.
pub(crate) struct Lookup {
    pub(crate) reader: classyard::table::Reader<PolicyReplica>,
    pub(crate) arrow: Arc<ArrowFields>,
    scratch: Scratch,
    packets: PolicyTrace,
    /// For each packet of a batch, the part of its header.
    parts: Vec<Option<PartId>>,
}

/// Makes a reader of a table. The reader stays usable after the table is freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cy_reader_new(table: *const Table, reader: *mut *mut Reader) -> Status {
    call(|| {
        // SAFETY: the pointer is as documented.
        let table = unsafe { borrow(table) }?;
        let lookup = Lookup {
            reader: table.readers.reader(),
            arrow: Arc::clone(&table.arrow),
            scratch: Scratch::new(),
            packets: PolicyTrace::new(table.empty().schemas()),
            parts: Vec::new(),
        };
        let new_reader = Reader {
            live: LIVE_READER,
            busy: AtomicBool::new(false),
            empty: table.empty().clone(),
            lookup,
        };
        // SAFETY: the place is as documented.
        unsafe { give_to(reader, new_reader) }
    })
}

/// Frees a reader. Null is accepted. A reader that another thread is using is
/// `CY_STATUS_BUSY`, and stays.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cy_reader_free(reader: *mut Reader) -> Status {
    call(|| {
        if reader.is_null() {
            return Ok(());
        }
        // SAFETY: as documented, nobody frees the reader during the call.
        if unsafe { borrow(reader) }?
            .busy
            .swap(true, Ordering::Acquire)
        {
            return Err(busy());
        }
        // SAFETY: the flag keeps other lookups out.
        let reader = unsafe { take(reader) }?;
        if let Some(mut reader) = reader {
            reader.live = 0;
        }
        Ok(())
    })
}

fn busy() -> Fault {
    Fault::new(
        Status::Busy,
        "another thread uses the reader: make a reader for each thread",
    )
}

/// Runs a lookup with a reader, unless another thread uses it.
///
/// # Safety
/// `reader` is null or a live reader, which is not freed during the call.
pub(crate) unsafe fn with_reader(
    reader: *mut Reader,
    body: impl FnOnce(&Policy, &mut Lookup) -> Result<(), Fault>,
) -> Status {
    /// Gives the reader back, also after a panic.
    struct InUse<'a>(&'a AtomicBool);
    impl Drop for InUse<'_> {
        fn drop(&mut self) {
            self.0.store(false, Ordering::Release);
        }
    }
    call(|| {
        if reader.is_null() {
            return Err(Fault::new(
                Status::NullPointer,
                "the reader is a null pointer",
            ));
        }
        if !reader.is_aligned()
            // SAFETY: the caller promises that the memory may be read.
            || unsafe { (&raw const (*reader).live).read() } != LIVE_READER
        {
            let message = "the pointer is no reader, or it was freed";
            return Err(Fault::new(Status::InvalidHandle, message));
        }
        // SAFETY: a live reader. The flag is shared, and is the only part that is until it is
        // taken.
        let flag = unsafe { &(*reader).busy };
        if flag.swap(true, Ordering::Acquire) {
            return Err(busy());
        }
        let _in_use = InUse(flag);
        // SAFETY: the flag keeps other threads out of these parts of the reader.
        let (empty, lookup) = unsafe { (&(*reader).empty, &mut (*reader).lookup) };
        body(empty, lookup)
    })
}

/// The arrays of an output.
struct Arrays<'a> {
    rules: Option<&'a mut [u32]>,
    actions: Option<&'a mut [u32]>,
    cookies: Option<&'a mut [u64]>,
}

impl<'a> Arrays<'a> {
    /// # Safety
    /// As for [`slice`] and [`slice_mut`].
    unsafe fn new(output: *const Output, count: usize) -> Result<Arrays<'a>, Fault> {
        // SAFETY: the caller promises it.
        unsafe {
            let output = &slice(output, 1, "output")?[0];
            Ok(Arrays {
                rules: slice_mut(output.rules, count, "rules")?,
                actions: slice_mut(output.actions, count, "actions")?,
                cookies: slice_mut(output.cookies, count, "cookies")?,
            })
        }
    }

    /// Writes what headers of one part found, from a position on.
    fn put(&mut self, table: &PolicyReplica, part: PartId, start: usize, winners: &[Winner]) {
        let id = |winner: &Winner| winner.rule().map_or(NO_RULE, RuleId::get);
        let action = |winner: &Winner| table.action_in(part, *winner).map_or(NO_RULE, |id| id.0);
        let cookie = |winner: &Winner| table.cookie_in(part, *winner).unwrap_or(0);
        if let Some(rules) = &mut self.rules {
            let rules = rules[start..].iter_mut().zip(winners);
            rules.for_each(|(rule, winner)| *rule = id(winner));
        }
        if let Some(actions) = &mut self.actions {
            let actions = actions[start..].iter_mut().zip(winners);
            actions.for_each(|(place, winner)| *place = action(winner));
        }
        if let Some(cookies) = &mut self.cookies {
            let cookies = cookies[start..].iter_mut().zip(winners);
            cookies.for_each(|(place, winner)| *place = cookie(winner));
        }
    }

    /// Writes that the packet at a position has no header.
    fn put_no_header(&mut self, position: usize) {
        for places in [&mut self.rules, &mut self.actions].into_iter().flatten() {
            places[position] = NO_HEADER;
        }
        if let Some(cookies) = &mut self.cookies {
            cookies[position] = 0;
        }
    }
}

/// Looks up packed keys of one part. All keys of a call see the rules of one moment.
///
/// `keys` has `count` keys of `cy_policy_key_words` words each. `output` says where to write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cy_classify_keys(
    reader: *mut Reader,
    part_number: u32,
    keys: *const u64,
    count: usize,
    output: *const Output,
) -> Status {
    let body = |empty: &Policy, lookup: &mut Lookup| {
        let part = part(part_number, empty.parts().len())?;
        let width = empty.part(part).schema().key_words();
        // SAFETY: the arrays are as documented.
        let (words, mut output) = unsafe {
            let words = slice(keys, count.saturating_mul(width), "keys")?;
            (words, Arrays::new(output, count)?)
        };
        let table = lookup.reader.pin();
        for (index, words) in words.chunks(BATCH * width).enumerate() {
            let mut winners = [Winner::MISS; BATCH];
            let winners = &mut winners[..words.len() / width];
            let keys = KeySlice::new(words, width);
            table
                .part(part)
                .classify_batch(keys, winners, &mut lookup.scratch);
            output.put(&table, part, index * BATCH, winners);
        }
        Ok(())
    };
    // SAFETY: the reader is as documented.
    unsafe { with_reader(reader, body) }
}

/// Looks up headers of one part that are stored by column. All headers of a call see the rules
/// of one moment. If a value does not fit its field, nothing is looked up.
///
/// `columns` has one column for each field of the part, in order, each with `rows` values.
/// `output` says where to write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cy_classify_columns(
    reader: *mut Reader,
    part_number: u32,
    columns: *const Column,
    column_count: usize,
    rows: usize,
    output: *const Output,
) -> Status {
    let body = |empty: &Policy, lookup: &mut Lookup| {
        let part = part(part_number, empty.parts().len())?;
        let schema = empty.part(part).schema();
        // SAFETY: the array is as documented.
        let given = unsafe { slice(columns, column_count, "columns") }?;
        let mut converted = [columns::Column::U8(&[]); MAX_FIELDS];
        for (place, column) in converted.iter_mut().zip(given) {
            // SAFETY: each column has `rows` values, as documented.
            *place = unsafe { column.convert(rows) }?;
        }
        let converted = &converted[..given.len().min(MAX_FIELDS)];
        let columns = Columns::new(schema, converted);
        let columns = columns.map_err(|error| Fault::new(Status::InvalidColumns, error))?;
        // SAFETY: the arrays are as documented.
        let mut output = unsafe { Arrays::new(output, rows) }?;
        let table = lookup.reader.pin();
        let mut start = 0;
        while start < rows {
            let next = rows.min(start + BATCH);
            let mut winners = [Winner::MISS; BATCH];
            let winners = &mut winners[..next - start];
            let columns = columns.range(start..next);
            table
                .part(part)
                .classify_columns(&columns, winners, &mut lookup.scratch);
            output.put(&table, part, start, winners);
            start = next;
        }
        Ok(())
    };
    // SAFETY: the reader is as documented.
    unsafe { with_reader(reader, body) }
}

/// Looks up Ethernet frames. All packets of a call see the rules of one moment.
///
/// A packet without a header for the rules has `CY_NO_HEADER` as its rule and action, for
/// example ARP, or a packet that is cut short, among five-tuples. Packets without ports have
/// port 0. `output` says where to write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cy_classify_packets(
    reader: *mut Reader,
    packets: *const Packet,
    count: usize,
    output: *const Output,
) -> Status {
    let body = |_: &Policy, lookup: &mut Lookup| {
        // SAFETY: the arrays are as documented.
        let (packets, mut output) = unsafe {
            (
                slice(packets, count, "packets")?,
                Arrays::new(output, count)?,
            )
        };
        // All packets are checked before the first is looked up.
        for packet in packets {
            // SAFETY: the bytes are as documented.
            unsafe { slice(packet.bytes, packet.length, "packet") }?;
        }
        let table = lookup.reader.pin();
        for (index, packets) in packets.chunks(BATCH).enumerate() {
            lookup.packets.clear();
            lookup.parts.clear();
            for packet in packets {
                // SAFETY: the bytes are as documented.
                let bytes = unsafe { slice(packet.bytes, packet.length, "packet") }?;
                let parsed = parse(bytes, LinkType::Ethernet);
                lookup.parts.push(lookup.packets.push_header(&parsed));
            }
            let mut winners = [Winner::MISS; BATCH];
            let winners = &mut winners[..lookup.packets.len()];
            table.classify(&lookup.packets, winners, &mut lookup.scratch);
            let mut winners = winners.iter();
            for (position, part) in (index * BATCH..).zip(&lookup.parts) {
                match part.and_then(|part| winners.next().map(|winner| (part, winner))) {
                    Some((part, winner)) => output.put(&table, part, position, &[*winner]),
                    None => output.put_no_header(position),
                }
            }
        }
        Ok(())
    };
    // SAFETY: the reader is as documented.
    unsafe { with_reader(reader, body) }
}

/// Looks up one packed key of a part, and sets in `mask` the bits of the key on which the answer
/// depends: every key that agrees on these bits has the same answer. Bits that are set already
/// stay set. So a cache can keep one entry for many headers.
///
/// `key` and `mask` have `cy_policy_key_words` words. `*rule` and `*action` are the winning
/// rule and its action, or `CY_NO_RULE`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cy_classify_masked(
    reader: *mut Reader,
    part_number: u32,
    key: *const u64,
    mask: *mut u64,
    rule: *mut u32,
    action: *mut u32,
) -> Status {
    let body = |empty: &Policy, lookup: &mut Lookup| {
        let part = part(part_number, empty.parts().len())?;
        let width = empty.part(part).schema().key_words();
        // SAFETY: the arrays are as documented.
        let (key, mask) = unsafe { (slice(key, width, "key")?, slice_mut(mask, width, "mask")?) };
        let mask =
            mask.ok_or_else(|| Fault::new(Status::NullPointer, "the mask: a null pointer"))?;
        let table = lookup.reader.pin();
        let winner = table.part(part).classify_masked(key, mask);
        let id = winner.rule().map_or(NO_RULE, RuleId::get);
        let of_rule = table.action_in(part, winner).map_or(NO_RULE, |id| id.0);
        // SAFETY: the places are as documented.
        unsafe {
            put(rule, id, "rule")?;
            put(action, of_rule, "action")
        }
    };
    // SAFETY: the reader is as documented.
    unsafe { with_reader(reader, body) }
}
