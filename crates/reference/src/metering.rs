//! The metering of packets (OpenFlow 1.3.5 §5.7).
//!
//! A band allows a burst and then its rate. It is implemented as a debt: each conforming
//! packet adds to the debt, which is paid back at the band's rate. A packet that would
//! make the debt larger than the burst exceeds the band, and adds nothing.

use std::time::Duration;

use classyard_datapath::meter::{Meter, MeterUnit};

/// The unit of debts is a billionth, so the amount paid back in n nanoseconds is an
/// integer.
const NS_PER_SECOND: u128 = 1_000_000_000;

/// A meter and the debts of its bands.
#[derive(Clone, Debug)]
pub(crate) struct Running {
    pub(crate) meter: Meter,
    /// The debt of each band, in billionths of packets or bits.
    debts: Vec<u128>,
    /// The time at which the debts were updated.
    at: Duration,
}

impl Running {
    /// Returns a meter whose bands have no debt.
    pub(crate) fn new(meter: &Meter) -> Running {
        Running {
            debts: vec![0; meter.bands.len()],
            meter: meter.clone(),
            at: Duration::ZERO,
        }
    }

    /// Meters a packet, and returns the band that is applied to it.
    pub(crate) fn pass(&mut self, bytes: usize, now: Duration) -> Option<usize> {
        let bits = bytes as u128 * 8;
        let (unit, cost) = match self.meter.unit {
            MeterUnit::Packets => (1, 1),
            MeterUnit::Kilobits => (1000, bits),
        };
        let passed = now.saturating_sub(self.at).as_nanos();
        self.at = self.at.max(now);
        let mut exceeded = Vec::new();
        for (number, band) in self.meter.bands.iter().enumerate() {
            let (rate, burst) = (u128::from(band.rate), u128::from(band.burst));
            // Without a burst, the burst of one second is used.
            let burst = if burst == 0 { rate } else { burst };
            let debt = &mut self.debts[number];
            *debt = debt.saturating_sub(passed * rate * unit);
            let owed = *debt + cost * NS_PER_SECOND;
            match owed <= burst * unit * NS_PER_SECOND {
                true => *debt = owed,
                false => exceeded.push(number),
            }
        }
        // §5.7.1: the exceeded band with the highest rate; the first of several.
        let highest = exceeded
            .iter()
            .map(|&number| self.meter.bands[number].rate)
            .max()?;
        exceeded
            .into_iter()
            .find(|&number| self.meter.bands[number].rate == highest)
    }
}

/// Returns the code point with a raised drop precedence. Only code points of assured
/// forwarding have one (RFC 2597 §6): classes 1 to 4, precedences 1 to 3.
pub(crate) fn remarked(dscp: u128, by: u8) -> u128 {
    for class in 1..=4 {
        for precedence in 1..=3 {
            if dscp == class * 8 + precedence * 2 {
                return class * 8 + (precedence + u128::from(by)).min(3) * 2;
            }
        }
    }
    dscp
}
