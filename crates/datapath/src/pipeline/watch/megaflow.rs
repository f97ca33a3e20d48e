//! The megaflow that a worker would add for a packet.

use std::time::Duration;

use crate::packet::Packet;
use crate::pipeline::cached::learn::Learner;
use crate::pipeline::cached::status::Megaflow;
use crate::pipeline::control::live::Pipeline;
use crate::pipeline::run::observer::Observer;
use crate::pipeline::run::sink::Discard;

/// Lets meters pass the packet without taking tokens.
struct Rehearsal;

impl Observer for Rehearsal {
    fn is_rehearsal(&self) -> bool {
        true
    }
}

impl Pipeline {
    /// Returns the megaflow that a worker with a free mask would add for a packet that arrives
    /// at `now`. `None` if a worker would add none: the ingress port does not receive, the packet
    /// is dropped before the end of its path is known, or the first table sends it to a meter.
    /// Nothing is counted or cached.
    #[must_use]
    pub fn new_megaflow(&self, packet: &Packet, now: Duration) -> Option<Megaflow> {
        let mut learner = Learner::default();
        learner.begin(1);
        learner.record(0, 0, None, packet.key());
        self.rehearse(
            (packet.clone(), now),
            &mut Discard,
            &mut Rehearsal,
            Some(&mut learner),
        );
        let recorded = &learner.recorded()[0];
        if recorded.is_unfinished || recorded.path.steps.is_empty() {
            return None;
        }
        let mask = recorded.wide_mask();
        let steps = recorded.path.steps.iter();
        Some(Megaflow {
            key: std::array::from_fn(|word| recorded.key[word] & mask[word]),
            mask,
            steps: steps.map(|step| (step.table, step.winner.rule())).collect(),
            rest: recorded.path.rest,
        })
    }
}

#[cfg(test)]
mod tests {
    use classyard::EngineSpec;
    use classyard_conformance::random::{Dice, SeededDice};

    use super::*;
    use crate::TableSettings;
    use crate::flow::TableId;
    use crate::pipeline::CacheSettings;
    use crate::text::load;

    const FLOWS: &str = "\
port=1
port=2
port=3,no-receive
meter=1,pktps,bands=type=drop,rate=1
table=0,priority=30,in_port=2 actions=meter:1,output:1
table=0,priority=20,tcp,nw_dst=10.1.0.0/16,tp_dst=80 actions=set_field:10.2.0.1->ip_dst,goto_table:1
table=0,priority=10,ip,nw_dst=10.0.0.0/8 actions=goto_table:2
table=1,priority=5,ip,nw_dst=10.2.0.1 actions=output:2
table=2,priority=7,udp actions=meter:1,output:2
table=2,priority=6,ip,nw_src=192.168.0.0/16 actions=output:1
";

    fn pipeline() -> Pipeline {
        let engine = EngineSpec::parse("forest").unwrap();
        let mut pipeline = Pipeline::new(TableSettings::new(engine).unwrap());
        load(FLOWS, &mut pipeline, Duration::ZERO).unwrap();
        pipeline
    }

    /// A frame of TCP or UDP.
    fn packet(dice: &mut SeededDice) -> Packet {
        let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0];
        let protocol = [6, 17][dice.below(2)];
        frame.extend([0x45, 0, 0, 40, 0, 0, 0, 0, 64, protocol, 0, 0]);
        frame.extend([[192, 168, 0, 1], [1, 2, 3, 4]][dice.below(2)]);
        frame.extend([[10, 1, 2, 3], [10, 3, 0, 0], [11, 0, 0, 1]][dice.below(3)]);
        frame.extend([0, 7, 0, [80, 81][dice.below(2)], 0, 20, 0, 0]);
        frame.resize(54, 0);
        Packet::new(&frame, 1 + u32::try_from(dice.below(3)).unwrap())
    }

    /// A worker adds exactly the returned megaflow. Nothing is counted.
    #[test]
    fn a_worker_adds_the_megaflow_that_is_foretold() {
        let (mut agreeing, mut without) = (0, 0);
        for seed in 0..200 {
            let mut pipeline = pipeline();
            let packet = packet(&mut SeededDice::new(seed));
            let foretold = pipeline.new_megaflow(&packet, Duration::ZERO);
            assert_eq!(pipeline.table_count(TableId(0)).lookups, 0);
            let mut worker = pipeline.cached_worker(CacheSettings::new());
            worker.process(&mut [packet.clone()], Duration::ZERO, &mut Discard);
            let added = worker.ask_caches(&packet, Duration::ZERO).unwrap().megaflow;
            match (&foretold, &added) {
                (Some(_), _) => agreeing += 1,
                (None, _) => without += 1,
            }
            assert_eq!(foretold, added, "seed {seed}");
        }
        assert!(agreeing > 50 && without > 50, "{agreeing} and {without}");
    }
}
