//! The link of a device.

/// The link of a device at one time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// True if frames can be sent: the device is switched on, and its other end is there.
    pub is_up: bool,
    /// The Ethernet address.
    pub address: [u8; 6],
    /// The speed in kbit/s, if the device has one.
    pub speed_kbit: Option<u32>,
    /// The longest content of a frame, in bytes, without the Ethernet header.
    pub mtu: u32,
}
