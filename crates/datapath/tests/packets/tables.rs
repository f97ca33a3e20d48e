//! Flow tables: after any additions and removals of entries, the winner of a packet is
//! its best matching entry, whatever the projections are.

use std::collections::BTreeMap;
use std::sync::Arc;

use classyard::{EngineSpec, Priority, RuleId, Winner};
use classyard_datapath::{
    FlowMatch, FlowTable, Packet, PacketKey, TableBuffers, TableError, TableSettings,
};

use crate::frames::{Dice, damaged, whole};
use crate::matching::random_match;

fn settings(engine: &str, rebuild_below: usize) -> TableSettings {
    let engine = EngineSpec::parse(engine).unwrap();
    TableSettings::new(engine)
        .unwrap()
        .rebuild_below(rebuild_below)
}

/// A table with a list of its entries.
struct World {
    dice: Dice,
    table: FlowTable,
    list: BTreeMap<RuleId, (Priority, Arc<FlowMatch>)>,
    buffers: TableBuffers,
    next: usize,
}

impl World {
    fn new(engine: &str, rebuild_below: usize, seed: u64) -> World {
        World {
            dice: Dice(seed),
            table: FlowTable::new(settings(engine, rebuild_below)),
            list: BTreeMap::new(),
            buffers: TableBuffers::default(),
            next: 0,
        }
    }

    fn packet(&mut self) -> Packet {
        let bytes = match self.dice.one_in(4) {
            true => damaged(&mut self.dice),
            false => whole(&mut self.dice),
        };
        let mut packet = Packet::new(&bytes, self.dice.below(3) as u32);
        packet.write_metadata(self.dice.below(3), u64::MAX);
        packet
    }

    /// Adds an entry that the packet matches or nearly matches. The table may refuse it
    /// for having too many fields.
    fn add(&mut self, packet: &Packet) -> bool {
        let Some(flow) = random_match(&mut self.dice, packet) else {
            return false;
        };
        let (id, flow) = (RuleId::from_index(self.next), Arc::new(flow));
        self.next += 1;
        let priority = Priority(self.dice.below(5) as u32);
        match self.table.add(id, priority, Arc::clone(&flow)) {
            Ok(()) => {
                self.list.insert(id, (priority, flow));
                true
            }
            Err(TableError::Wide(_)) => false,
            Err(error) => panic!("{error}"),
        }
    }

    fn remove(&mut self) {
        let ids: Vec<RuleId> = self.list.keys().copied().collect();
        if ids.is_empty() {
            return;
        }
        let id = *self.dice.pick(&ids);
        assert!(self.table.remove(id));
        self.list.remove(&id);
        assert!(!self.table.remove(id));
    }

    fn right(&self, key: &PacketKey) -> Winner {
        let matching = self.list.iter().filter(|(_, (_, flow))| flow.matches(key));
        let winners = matching.map(|(&id, &(priority, _))| Winner::new(priority, id));
        winners.fold(Winner::MISS, Winner::or)
    }

    fn check(&mut self, packets: &[Packet]) -> usize {
        assert_eq!(self.table.len(), self.list.len());
        let mut winners = vec![Winner::MISS; packets.len()];
        let key = |place: usize| packets[place].key();
        self.table.classify(key, &mut winners, &mut self.buffers);
        for (packet, winner) in packets.iter().zip(&winners) {
            assert_eq!(*winner, self.right(packet.key()), "{packet:?}");
        }
        winners.iter().filter(|winner| !winner.is_miss()).count()
    }
}

#[test]
fn winners_are_the_best_entries_that_match() {
    for (engine, rebuild_below, seed) in [
        ("forest", 0, 1),
        ("forest", 20, 2),
        ("tuplemerge", 1_000, 3),
        ("linear", 10, 4),
        ("tss", 0, 5),
    ] {
        let mut world = World::new(engine, rebuild_below, seed);
        let (mut hits, mut split, mut wide) = (0, 0, 0);
        for round in 0..60 {
            let packets: Vec<Packet> = (0..24).map(|_| world.packet()).collect();
            for packet in &packets {
                match world.dice.below(3) {
                    0 if world.list.len() > 40 => world.remove(),
                    _ => wide += usize::from(!world.add(packet)),
                }
            }
            split += usize::from(world.table.is_split());
            hits += world.check(&packets);
            // Some entries move to the engine that replaces theirs.
            if world.dice.one_in(3) {
                let steps = 1 + world.dice.below(20) as usize;
                assert!(world.table.maintain(steps) <= steps);
                world.check(&packets);
            }
            if round % 7 == 0 && world.table.rebuild().is_ok() {
                assert!(!world.table.is_split());
                world.check(&packets);
            }
        }
        assert!(hits > 300, "{engine}: {hits}");
        assert_eq!(split > 5, rebuild_below < 1_000, "{engine}: {split}");
        assert!(wide > 0, "{engine}");
        while !world.list.is_empty() {
            world.remove();
        }
        let packets: Vec<Packet> = (0..24).map(|_| world.packet()).collect();
        assert_eq!(world.check(&packets), 0);
        assert_eq!(world.table.bytes(), 0, "{engine}: no engine is left");
    }
}

#[test]
fn maintaining_ends_with_one_engine_that_has_all_entries() {
    for engine in ["forest", "tuplemerge"] {
        let mut world = World::new(engine, 0, 6);
        let packets: Vec<Packet> = (0..200).map(|_| world.packet()).collect();
        for packet in &packets {
            world.add(packet);
        }
        assert!(world.table.is_split() && world.table.is_unfinished());
        world.check(&packets);
        let mut moved = 0;
        while world.table.is_split() {
            moved += world.table.maintain(3);
            world.check(&packets[..10]);
            // Entries change during the move.
            world.remove();
        }
        assert!(moved > 5, "{engine}: {moved}");
        world.check(&packets);
    }
}

#[test]
fn an_entry_that_is_known_or_too_wide_changes_nothing() {
    use classyard_datapath::{Field, MatchField};
    let exact = |name: String| MatchField::exact(Field::from_name(&name).unwrap(), 1);
    let registers = |from: usize, to: usize| {
        let values = (from..to).map(|number| exact(format!("reg{number}")));
        let more = ["eth_src", "eth_dst", "tun_id", "metadata"].map(|name| exact(name.to_owned()));
        Arc::new(FlowMatch::new(values.chain(more)).unwrap())
    };
    let of_ipv6 = [
        MatchField::exact(Field::EthType, 0x86dd),
        exact("ipv6_src".to_owned()),
        exact("ipv6_dst".to_owned()),
    ];
    let of_ipv6 = Arc::new(FlowMatch::new(of_ipv6).unwrap());
    let mut table = FlowTable::new(settings("forest", 1_000));
    let ids = [0, 1, 2].map(RuleId::from_index);
    table.add(ids[0], Priority(1), of_ipv6).unwrap();
    table.add(ids[1], Priority(1), registers(0, 16)).unwrap();
    assert!(matches!(
        table.add(ids[1], Priority(2), registers(0, 1)),
        Err(TableError::Known(id)) if id == ids[1]
    ));
    let more = [
        MatchField::exact(Field::EthType, 0x86dd),
        MatchField::exact(Field::IpProto, 58),
        MatchField::exact(Field::Icmpv6Type, 135),
        exact("nd_target".to_owned()),
    ];
    let refused = table.add(ids[2], Priority(1), Arc::new(FlowMatch::new(more).unwrap()));
    assert!(matches!(refused, Err(TableError::Wide(_))), "{refused:?}");
    assert_eq!((table.len(), table.get(ids[2]).is_none()), (2, true));
    let mut winners = [Winner::MISS];
    let packet = Packet::new(&[0; 60], 1);
    table.classify(|_| packet.key(), &mut winners, &mut TableBuffers::default());
    assert_eq!(winners, [Winner::MISS]);
}
