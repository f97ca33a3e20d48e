//! Meters, which limit the rate of packets, and the messages that change them (OpenFlow
//! 1.3.5 §5.7, §7.3.4.3).

mod store;

pub use store::{MeterChange, MeterCommand, MeterMod, MeterStore};

use std::fmt;

use crate::error::{ErrorCode, OpenFlowError};

/// The number of a meter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MeterId(pub u32);

impl MeterId {
    /// The largest meter number.
    pub const MAX: MeterId = MeterId(0xffff_0000);
    /// All meters; used only in deletions.
    pub const ALL: MeterId = MeterId(0xffff_ffff);
}

impl fmt::Display for MeterId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The unit of the rates and bursts of a meter's bands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MeterUnit {
    /// Kilobits, of 1,000 bits.
    Kilobits,
    /// Packets.
    Packets,
}

/// The action of a band on packets that exceed its rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BandKind {
    /// Drops the packets.
    Drop,
    /// Raises the drop precedence of the assured forwarding class in their DSCP by this
    /// number, up to 3. Packets of other classes do not change.
    DscpRemark(u8),
}

/// A rate, and the action on packets that exceed it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Band {
    /// The action.
    pub kind: BandKind,
    /// The rate, in units per second.
    pub rate: u32,
    /// The largest burst, in units; 0 for the units of one second at the band's rate.
    pub burst: u32,
}

/// The words `burst` and `stats` of a meter. They are only reported again: a band's burst is in
/// [`Band::burst`], and all meters have statistics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct MeterFlags {
    /// The message says that it gives bursts.
    pub burst: bool,
    /// The message requests statistics.
    pub stats: bool,
}

/// A meter.
///
/// ```
/// use classyard_datapath::MeterId;
/// use classyard_datapath::meter::{Band, BandKind, Meter, MeterFlags, MeterUnit};
///
/// // Drops packets above 100 each second, after a burst of 10.
/// let meter = Meter {
///     id: MeterId(1),
///     unit: MeterUnit::Packets,
///     flags: MeterFlags { burst: true, stats: false },
///     bands: vec![Band { kind: BandKind::Drop, rate: 100, burst: 10 }],
/// };
/// assert!(meter.to_string().contains("rate=100"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Meter {
    /// The number of the meter.
    pub id: MeterId,
    /// The unit of rates and bursts.
    pub unit: MeterUnit,
    /// The words that are only reported.
    pub flags: MeterFlags,
    /// The bands. The exceeded band with the highest rate is applied; among equal rates, the
    /// first band.
    pub bands: Vec<Band>,
}

impl Band {
    /// Returns the largest burst, in units.
    #[must_use]
    pub fn size(&self) -> u32 {
        match self.burst {
            0 => self.rate,
            burst => burst,
        }
    }
}

impl Meter {
    /// True if the meter is described with bursts, which may be 0.
    #[must_use]
    pub fn has_burst(&self) -> bool {
        self.flags.burst || self.bands.iter().any(|band| band.burst != 0)
    }

    fn check(&self) -> Result<(), OpenFlowError> {
        let refuse = |code, why: String| {
            let message = format!("meter {}: {why}", self.id);
            Err(OpenFlowError::new(code, message))
        };
        if self.id.0 == 0 || self.id > MeterId::MAX {
            let why = format!("meters have numbers from 1 to {}", MeterId::MAX);
            return refuse(ErrorCode::InvalidMeter, why);
        }
        for (number, band) in self.bands.iter().enumerate() {
            if band.rate == 0 {
                let why = format!("band {number} has rate 0; use a flow entry that drops");
                return refuse(ErrorCode::BadRate, why);
            }
            if band.kind == BandKind::DscpRemark(0) {
                let why = format!("band {number} raises the drop precedence by 0");
                return refuse(ErrorCode::BadBandValue, why);
            }
        }
        Ok(())
    }
}

impl fmt::Display for Meter {
    /// Writes the meter in the syntax of `ovs-ofctl`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unit = match self.unit {
            MeterUnit::Kilobits => "kbps",
            MeterUnit::Packets => "pktps",
        };
        write!(f, "meter={},{unit}", self.id)?;
        if self.has_burst() {
            f.write_str(",burst")?;
        }
        if self.flags.stats {
            f.write_str(",stats")?;
        }
        f.write_str(",bands=")?;
        for (number, band) in self.bands.iter().enumerate() {
            if number > 0 {
                f.write_str(",")?;
            }
            match band.kind {
                BandKind::Drop => write!(f, "type=drop,rate={}", band.rate)?,
                BandKind::DscpRemark(level) => {
                    write!(f, "type=dscp_remark,rate={},prec_level={level}", band.rate)?;
                }
            }
            if band.burst != 0 {
                write!(f, ",burst_size={}", band.burst)?;
            }
        }
        Ok(())
    }
}
