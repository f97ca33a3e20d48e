//! Captures in the format pcapng (draft-ietf-opsawg-pcapng).

use std::time::Duration;

/// The type of the link of all interfaces: Ethernet.
const ETHERNET: u16 = 1;

/// The types of blocks.
const SECTION: u32 = 0x0a0d_0d0a;
const INTERFACE: u32 = 1;
const PACKET: u32 = 6;

/// The options of blocks.
const NAME: u16 = 2;
const RESOLUTION: u16 = 9;
const FLAGS: u16 = 2;

/// The exponent of the unit of time: 1 ns.
const NANOSECONDS: u8 = 9;

/// Returns the beginning of a capture.
pub(crate) fn header() -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut section = Vec::new();
    section.extend(0x1a2b_3c4d_u32.to_le_bytes());
    section.extend([1, 0, 0, 0]);
    // The length of the section is not known.
    section.extend(u64::MAX.to_le_bytes());
    block(&mut bytes, SECTION, &section);
    bytes
}

/// Appends an Ethernet interface with this name.
pub(crate) fn interface(bytes: &mut Vec<u8>, name: &str) {
    let mut interface = Vec::new();
    interface.extend(ETHERNET.to_le_bytes());
    interface.extend([0; 2]);
    // Packets of any length.
    interface.extend([0; 4]);
    option(&mut interface, NAME, name.as_bytes());
    option(&mut interface, RESOLUTION, &[NANOSECONDS]);
    interface.extend([0; 4]);
    block(bytes, INTERFACE, &interface);
}

/// Appends a packet. `interface` is the number of earlier interfaces before its own, `time` is the
/// time since 1970. Of the frame, up to `max_bytes` are kept.
pub(crate) fn packet(
    bytes: &mut Vec<u8>,
    interface: u32,
    time: Duration,
    is_sent: bool,
    frame: &[u8],
    max_bytes: usize,
) {
    let kept = &frame[..frame.len().min(max_bytes)];
    let nanoseconds = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    let mut packet = Vec::with_capacity(kept.len() + 48);
    packet.extend(interface.to_le_bytes());
    let [l0, l1, l2, l3, high @ ..] = nanoseconds.to_le_bytes();
    packet.extend(high);
    packet.extend([l0, l1, l2, l3]);
    packet.extend(length(kept).to_le_bytes());
    packet.extend(length(frame).to_le_bytes());
    packet.extend(kept);
    pad(&mut packet);
    // Bits 0 and 1: 1 for a received packet, 2 for a sent one.
    let direction = if is_sent { 2_u32 } else { 1 };
    option(&mut packet, FLAGS, &direction.to_le_bytes());
    packet.extend([0; 4]);
    block(bytes, PACKET, &packet);
}

fn length(bytes: &[u8]) -> u32 {
    u32::try_from(bytes.len()).expect("a frame below 4 GiB")
}

/// Appends a block: its type, its length, its contents, and its length again.
fn block(bytes: &mut Vec<u8>, kind: u32, contents: &[u8]) {
    let total = length(contents) + 12;
    bytes.extend(kind.to_le_bytes());
    bytes.extend(total.to_le_bytes());
    bytes.extend(contents);
    bytes.extend(total.to_le_bytes());
}

fn option(bytes: &mut Vec<u8>, code: u16, value: &[u8]) {
    let length = u16::try_from(value.len()).expect("a short option");
    bytes.extend(code.to_le_bytes());
    bytes.extend(length.to_le_bytes());
    bytes.extend(value);
    pad(bytes);
}

/// Fills up to a multiple of 4 bytes.
fn pad(bytes: &mut Vec<u8>) {
    bytes.resize(bytes.len().next_multiple_of(4), 0);
}
