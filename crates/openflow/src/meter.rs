//! Messages about meters: changes, configurations, statistics (OpenFlow 1.3.5 §7.3.4.3,
//! §7.3.5.11 to §7.3.5.13).

use classyard_datapath::MeterId;
use classyard_datapath::meter::{
    Band, BandKind, Meter, MeterCommand, MeterFlags, MeterMod, MeterUnit,
};

use crate::fault::{Code, Fault};
use crate::wire::{Reader, Wire, Writer, layout};

/// Flags of meters (`ofp_meter_flags`).
mod flag {
    pub(super) const KILOBITS: u16 = 1 << 0;
    pub(super) const PACKETS: u16 = 1 << 1;
    pub(super) const BURST: u16 = 1 << 2;
    pub(super) const STATS: u16 = 1 << 3;
    pub(super) const ALL: u16 = (1 << 4) - 1;
}

/// Types of bands (`ofp_meter_band_type`).
mod band {
    pub(super) const DROP: u16 = 1;
    pub(super) const DSCP_REMARK: u16 = 2;
}

/// The bytes of a band.
const BAND_BYTES: u16 = 16;

impl Wire for Band {
    fn read(reader: &mut Reader<'_>) -> Result<Self, Fault> {
        let (kind, length): (u16, u16) = (reader.get()?, reader.get()?);
        if !matches!(kind, band::DROP | band::DSCP_REMARK) {
            let message = format!("a band of type {kind}; the types are 1 (drop) and 2 (remark)");
            return Err(Fault::new(Code::BAD_BAND, message));
        }
        if length != BAND_BYTES {
            let message = format!("a band of length {length}; bands have {BAND_BYTES} bytes");
            return Err(Fault::new(Code::BAD_LENGTH, message));
        }
        let (rate, burst) = (reader.get()?, reader.get()?);
        let level = reader.get()?;
        reader.skip(3)?;
        Ok(Band {
            kind: match kind {
                band::DROP => BandKind::Drop,
                _ => BandKind::DscpRemark(level),
            },
            rate,
            burst,
        })
    }

    fn write(&self, writer: &mut Writer<'_>) {
        let (kind, level) = match self.kind {
            BandKind::Drop => (band::DROP, 0),
            BandKind::DscpRemark(level) => (band::DSCP_REMARK, level),
        };
        writer.put(&kind);
        writer.put(&BAND_BYTES);
        writer.put(&self.rate);
        writer.put(&self.burst);
        writer.put(&level);
        writer.skip(3);
    }
}

/// Returns the flags of a meter, as the message that installed the meter had them.
fn flags_of(meter: &Meter) -> u16 {
    let unit = match meter.unit {
        MeterUnit::Kilobits => flag::KILOBITS,
        MeterUnit::Packets => flag::PACKETS,
    };
    let burst = if meter.has_burst() { flag::BURST } else { 0 };
    let stats = if meter.flags.stats { flag::STATS } else { 0 };
    unit | burst | stats
}

/// Returns the unit of a meter with these flags, and its other flags.
fn read_flags(flags: u16) -> Result<(MeterUnit, MeterFlags), Fault> {
    let refuse = |why: &str| {
        let message = format!("flags {flags:#06x} of a meter: {why}");
        Err(Fault::new(Code::BAD_METER_FLAGS, message))
    };
    if flags & !flag::ALL != 0 {
        return refuse("OpenFlow 1.3 has 0x0001 to 0x0008");
    }
    let unit = match (flags & flag::KILOBITS != 0, flags & flag::PACKETS != 0) {
        (true, true) => return refuse("kilobits and packets; a meter has one unit"),
        (_, true) => MeterUnit::Packets,
        (_, false) => MeterUnit::Kilobits,
    };
    let others = MeterFlags {
        burst: flags & flag::BURST != 0,
        stats: flags & flag::STATS != 0,
    };
    Ok((unit, others))
}

/// A change of a meter (`ofp_meter_mod`). Bursts count only with the flag for bursts.
impl Wire for MeterMod {
    fn read(reader: &mut Reader<'_>) -> Result<Self, Fault> {
        let command = match reader.get::<u16>()? {
            0 => MeterCommand::Add,
            1 => MeterCommand::Modify,
            2 => MeterCommand::Delete,
            unknown => {
                let message = format!("command {unknown}; meter messages have the commands 0 to 2");
                return Err(Fault::new(Code::BAD_METER_COMMAND, message));
            }
        };
        let number: u16 = reader.get()?;
        let (id, mut bands): (MeterId, Vec<Band>) = (reader.get()?, reader.list()?);
        let (unit, flags) = read_flags(number)?;
        if !flags.burst {
            bands.iter_mut().for_each(|band| band.burst = 0);
        }
        Ok(MeterMod {
            command,
            meter: Meter {
                id,
                unit,
                flags,
                bands,
            },
        })
    }

    fn write(&self, writer: &mut Writer<'_>) {
        writer.put::<u16>(&match self.command {
            MeterCommand::Add => 0,
            MeterCommand::Modify => 1,
            MeterCommand::Delete => 2,
        });
        writer.put(&flags_of(&self.meter));
        writer.put(&self.meter.id);
        writer.list(&self.meter.bands);
    }
}

/// The configuration of a meter (`ofp_meter_config`), an item of a reply. It begins with its
/// length.
impl Wire for Meter {
    fn read(reader: &mut Reader<'_>) -> Result<Self, Fault> {
        let length: u16 = reader.get()?;
        let mut item = reader.part(usize::from(length).saturating_sub(2))?;
        let (unit, flags) = read_flags(item.get()?)?;
        Ok(Meter {
            id: item.get()?,
            unit,
            flags,
            bands: item.list()?,
        })
    }

    fn write(&self, writer: &mut Writer<'_>) {
        let start = writer.len();
        writer.put(&0_u16);
        writer.put(&flags_of(self));
        writer.put(&self.id);
        writer.list(&self.bands);
        writer.set_length(start, writer.len() - start);
    }
}

layout! {
    /// A request about one meter or all (`ofp_meter_multipart_request`).
    pub struct MeterRequest {
        /// The meter, or [`MeterId::ALL`].
        meter: MeterId,
    } [4]
}

layout! {
    /// Packets and bytes that a band applied to (`ofp_meter_band_stats`).
    pub struct BandStats {
        /// Packets.
        packets: u64,
        /// Bytes.
        bytes: u64,
    }
}

/// Statistics of a meter (`ofp_meter_stats`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MeterStats {
    /// The meter.
    pub meter: MeterId,
    /// The entries that use the meter.
    pub flows: u32,
    /// Packets that reached the meter.
    pub packets: u64,
    /// The bytes of these packets.
    pub bytes: u64,
    /// The seconds of the meter's life until now.
    pub seconds: u32,
    /// The nanoseconds beyond `seconds`.
    pub nanoseconds: u32,
    /// The counts of each band.
    pub bands: Vec<BandStats>,
}

/// An item of a reply, with its length in bytes 4 and 5.
impl Wire for MeterStats {
    fn read(reader: &mut Reader<'_>) -> Result<Self, Fault> {
        let (meter, length): (MeterId, u16) = (reader.get()?, reader.get()?);
        let mut item = reader.part(usize::from(length).saturating_sub(6))?;
        item.skip(6)?;
        Ok(MeterStats {
            meter,
            flows: item.get()?,
            packets: item.get()?,
            bytes: item.get()?,
            seconds: item.get()?,
            nanoseconds: item.get()?,
            bands: item.list()?,
        })
    }

    fn write(&self, writer: &mut Writer<'_>) {
        let start = writer.len();
        writer.put(&self.meter);
        writer.put(&0_u16);
        writer.skip(6);
        writer.put(&self.flows);
        writer.put(&self.packets);
        writer.put(&self.bytes);
        writer.put(&self.seconds);
        writer.put(&self.nanoseconds);
        writer.list(&self.bands);
        writer.set_length(start + 4, writer.len() - start);
    }
}

layout! {
    /// The meters that a switch supports (`ofp_meter_features`).
    pub struct MeterFeatures {
        /// The maximum number of meters.
        max_meters: u32,
        /// A bit for each supported type of band.
        band_types: u32,
        /// A bit for each supported flag.
        capabilities: u32,
        /// The maximum number of bands of a meter.
        max_bands: u8,
        /// The maximum value of colours.
        max_color: u8,
    } [2]
}
