//! The generator of flows over time.
//!
//! # Idea
//! Flows begin at random times, at a given rate. Each flow has one header, a point
//! inside a random rule, and sends a random number of packets: most flows are short,
//! most packets are in long flows. The packets of a flow come in *trains*, close
//! together, with pauses between trains (on and off). A queue ordered by time merges
//! all active flows.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::{Maker, TrafficError, check};
use crate::generate::Steps;
use crate::generate::draw::{Draw, whole, whole_u64};

/// The distributions of flows over time. Times are in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FlowModel {
    /// The mean number of flows that begin in a second.
    pub flows_per_second: f64,
    /// The number of packets of a flow.
    pub size: Size,
    /// The time between packets of a train.
    pub gap: Gap,
    /// The distribution of packets into trains; `None` for one train per flow.
    pub trains: Option<Train>,
}

impl Default for FlowModel {
    /// 10,000 flows a second with at least 1 packet and a heavy tail; packets 50 µs
    /// apart in trains of 8 on average, with pauses of 20 ms.
    fn default() -> FlowModel {
        FlowModel {
            flows_per_second: 10_000.0,
            size: Size::Pareto {
                shape: 1.2,
                least: 1.0,
            },
            gap: Gap::Exponential { mean: 50_000.0 },
            trains: Some(Train {
                packets: 8.0,
                pause: Gap::Exponential { mean: 20e6 },
            }),
        }
    }
}

/// The number of packets of a flow.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Size {
    /// Heavy-tailed: the smaller the shape, the heavier the tail.
    Pareto {
        /// The tail index.
        shape: f64,
        /// The smallest number.
        least: f64,
    },
    /// The logarithm is normally distributed.
    LogNormal {
        /// The median.
        median: f64,
        /// The standard deviation of the natural logarithm.
        sigma: f64,
    },
}

/// A random time.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Gap {
    /// Exponentially distributed: packets arrive independently of each other.
    Exponential {
        /// The mean, in nanoseconds.
        mean: f64,
    },
    /// The logarithm is normally distributed.
    LogNormal {
        /// The median, in nanoseconds.
        median: f64,
        /// The standard deviation of the natural logarithm.
        sigma: f64,
    },
}

/// Trains of packets with pauses between them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Train {
    /// The mean number of packets of a train, at least 1; geometrically
    /// distributed.
    pub packets: f64,
    /// The time between two trains.
    pub pause: Gap,
}

/// The maximum number of packets of a flow; no trace is longer.
const MAX_FLOW_PACKETS: usize = u32::MAX as usize;

/// The longest time in nanoseconds, about three years.
const MAX_TIME_NS: u64 = 100_000_000_000_000_000;

impl Size {
    fn check(&self) -> Result<(), TrafficError> {
        match *self {
            Size::Pareto { shape, least } => {
                check("the shape of flow sizes", shape, f64::MIN_POSITIVE)?;
                check("the least flow size", least, 0.0)
            }
            Size::LogNormal { median, sigma } => {
                check("the median flow size", median, 0.0)?;
                check("the spread of flow sizes", sigma, 0.0)
            }
        }
    }

    fn draw(&self, draw: &mut Draw) -> usize {
        let size = match *self {
            Size::Pareto { shape, least } => draw.pareto(shape, least),
            Size::LogNormal { median, sigma } => median * libm::exp(sigma * draw.normal()),
        };
        whole(size, MAX_FLOW_PACKETS).max(1)
    }
}

impl Gap {
    fn check(&self) -> Result<(), TrafficError> {
        match *self {
            Gap::Exponential { mean } => check("a mean time", mean, 0.0),
            Gap::LogNormal { median, sigma } => {
                check("a median time", median, 0.0)?;
                check("the spread of times", sigma, 0.0)
            }
        }
    }

    fn draw(&self, draw: &mut Draw) -> u64 {
        let time = match *self {
            Gap::Exponential { mean } => mean * draw.exponential(),
            Gap::LogNormal { median, sigma } => median * libm::exp(sigma * draw.normal()),
        };
        whole_u64(time, MAX_TIME_NS)
    }
}

impl FlowModel {
    fn check(&self) -> Result<(), TrafficError> {
        let rate = self.flows_per_second;
        check("the rate of flows", rate, f64::MIN_POSITIVE)?;
        self.size.check()?;
        self.gap.check()?;
        if let Some(train) = &self.trains {
            check("the length of trains", train.packets - 1.0, 0.0)?;
            train.pause.check()?;
        }
        Ok(())
    }

    /// Returns the time to a flow's next packet.
    fn wait(&self, draw: &mut Draw) -> u64 {
        match &self.trains {
            Some(train) if draw.chance(1.0 / train.packets) => train.pause.draw(draw),
            _ => self.gap.draw(draw),
        }
    }
}

/// Adds headers with times and flows.
pub(super) fn make(
    maker: &mut Maker<'_>,
    model: &FlowModel,
    headers: usize,
    steps: &mut Steps<'_>,
) -> Result<(), TrafficError> {
    model.check()?;
    let between = Gap::Exponential {
        mean: 1e9 / model.flows_per_second,
    };
    let mut flows = Vec::new();
    // Each entry has the time of the flow's next packet, the flow, and its remaining
    // packets.
    let mut under_way: BinaryHeap<Reverse<(u64, usize, usize)>> = BinaryHeap::new();
    let mut next_flow = between.draw(&mut maker.draw);
    while maker.made.trace.len() < headers {
        let due = under_way.peek().map(|Reverse((time, _, _))| *time);
        if due.is_none_or(|due| next_flow <= due) {
            let size = model.size.draw(&mut maker.draw);
            under_way.push(Reverse((next_flow, flows.len(), size)));
            flows.push(maker.flow_header());
            next_flow = next_flow.saturating_add(between.draw(&mut maker.draw));
            continue;
        }
        let Some(Reverse((time, flow, packets_left))) = under_way.pop() else {
            continue;
        };
        maker.push_flow(&flows, flow);
        maker.made.timestamps.push(time);
        steps.advance(1)?;
        if packets_left > 1 {
            let next = time.saturating_add(model.wait(&mut maker.draw));
            under_way.push(Reverse((next, flow, packets_left - 1)));
        }
    }
    Ok(())
}
