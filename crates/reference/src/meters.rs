//! Messages about meters (OpenFlow 1.3.5 §5.7, §7.3.4.3).

use std::time::Duration;

use classyard_datapath::flow::RemovalReason;
use classyard_datapath::meter::{BandKind, Meter, MeterCommand, MeterMod};
use classyard_datapath::pipeline::{Count, MeterCount};
use classyard_datapath::{ErrorCode, MeterId};

use crate::metering::Running;
use crate::state::{CountedMeter, State};

pub(crate) fn apply(state: &mut State, message: &MeterMod, now: Duration) -> Result<(), ErrorCode> {
    let id = message.meter.id;
    let is_there = state.meters.contains_key(&id);
    match message.command {
        MeterCommand::Add if is_there => Err(ErrorCode::MeterExists),
        MeterCommand::Modify if !is_there => Err(ErrorCode::UnknownMeter),
        MeterCommand::Add | MeterCommand::Modify => {
            check(&message.meter)?;
            put(state, &message.meter);
            Ok(())
        }
        MeterCommand::Delete => {
            let meant: Vec<MeterId> = match id == MeterId::ALL {
                true => state.meters.keys().copied().collect(),
                false => vec![id],
            };
            for id in meant {
                if state.meters.remove(&id).is_some() {
                    state.remove(RemovalReason::MeterDelete, now, |counted| {
                        counted.entry.instructions.meter == Some(id)
                    });
                }
            }
            Ok(())
        }
    }
}

fn check(meter: &Meter) -> Result<(), ErrorCode> {
    if !(1..=MeterId::MAX.0).contains(&meter.id.0) {
        return Err(ErrorCode::InvalidMeter);
    }
    for band in &meter.bands {
        if band.rate == 0 {
            return Err(ErrorCode::BadRate);
        }
        if band.kind == BandKind::DscpRemark(0) {
            return Err(ErrorCode::BadBandValue);
        }
    }
    Ok(())
}

/// Adds or replaces a meter. A modified meter keeps its own statistics; the statistics of
/// its new bands begin at 0.
fn put(state: &mut State, meter: &Meter) {
    let before = state.meters.get(&meter.id);
    let count = MeterCount {
        all: before.map_or(Count::default(), |before| before.count.all),
        bands: vec![Count::default(); meter.bands.len()],
    };
    let running = Running::new(meter);
    state
        .meters
        .insert(meter.id, CountedMeter { running, count });
}
