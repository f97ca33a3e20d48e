//! Meters: how fast packets may come, and the messages that change them (OpenFlow
//! 1.3.5 §5.7, §7.3.4.3).

mod store;

pub use store::{MeterChange, MeterCommand, MeterMod, MeterStore};

use std::fmt;

use crate::error::{ErrorCode, OpenFlowError};

/// A meter, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MeterId(pub u32);

impl MeterId {
    /// The largest number of a meter.
    pub const MAX: MeterId = MeterId(0xffff_0000);
    /// All meters, in deletions alone.
    pub const ALL: MeterId = MeterId(0xffff_ffff);
}

impl fmt::Display for MeterId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What the rates and bursts of a meter's bands count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MeterUnit {
    /// Kilobits, of 1,000 bits.
    Kilobits,
    /// Packets.
    Packets,
}

/// What happens to packets that come too fast.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BandKind {
    /// They are dropped.
    Drop,
    /// The drop precedence of the assured forwarding class in their DSCP is raised by
    /// so much, up to 3. Packets of other classes stay as they are.
    DscpRemark(u8),
}

/// A rate above which something happens to packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Band {
    /// What happens.
    pub kind: BandKind,
    /// Units each second.
    pub rate: u32,
    /// Units that may come at once. 0 stands for those of one second.
    pub burst: u32,
}

/// A meter.
///
/// ```
/// use classyard_datapath::MeterId;
/// use classyard_datapath::meter::{Band, BandKind, Meter, MeterUnit};
///
/// // Drops packets above 100 a second, after a burst of 10.
/// let meter = Meter {
///     id: MeterId(1),
///     unit: MeterUnit::Packets,
///     bands: vec![Band { kind: BandKind::Drop, rate: 100, burst: 10 }],
/// };
/// assert!(meter.to_string().contains("rate=100"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Meter {
    /// Its number.
    pub id: MeterId,
    /// What rates and bursts count.
    pub unit: MeterUnit,
    /// Of those whose rate is exceeded, the one with the highest rate is applied, and
    /// the first of several with that rate.
    pub bands: Vec<Band>,
}

impl Band {
    /// Units that may come at once.
    #[must_use]
    pub fn size(&self) -> u32 {
        match self.burst {
            0 => self.rate,
            burst => burst,
        }
    }
}

impl Meter {
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
                let why = format!("band {number} has the rate 0; use a flow entry that drops");
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
    /// As `ovs-ofctl` takes it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unit = match self.unit {
            MeterUnit::Kilobits => "kbps",
            MeterUnit::Packets => "pktps",
        };
        write!(f, "meter={},{unit}", self.id)?;
        if self.bands.iter().any(|band| band.burst != 0) {
            f.write_str(",burst")?;
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
