//! A world: both switches, and comparisons of all their observable state.

use std::cell::Cell;
use std::fmt;
use std::time::Duration;

use classyard::{EngineSpec, NoProgress};
use classyard_conformance::random::Dice;
use classyard_datapath::flow::{FlowChange, FlowEntry, RemovalReason, TableConfig, TableId};
use classyard_datapath::packet::{Offload, PartialChecksum};
use classyard_datapath::pipeline::{
    ActiveFlowSettings, CacheSettings, Change, Clock, Finder, KINDS, Message, PacketInReason,
    Pipeline, PipelineSettings, PortState, RemovedFlow, Sink, TupleSettings, Worker,
};
use classyard_datapath::{Field, Packet, PortNo, TableSettings};

use super::messages::{self, Held, Shape};
use super::{Options, Summary, frames, ladders};
use crate::switch::{Event, Reference};
use crate::{Packet as ReferencePacket, state};

/// The register with a packet's place in its vector.
const TAG: Field = Field::Reg15;

/// One in `STEEP_WORLD_ODDS` worlds has groups and lists near the limits of one packet's work.
const STEEP_WORLD_ODDS: usize = 40;

/// Both switches.
pub(crate) struct World {
    shape: Shape,
    options: Options,
    engine: String,
    /// The maximum number of packets in a vector.
    vector: usize,
    /// True if groups and lists come near the limits of one packet's work. Then one
    /// packet produces thousands of packets, so there are few packets.
    is_steep: bool,
    frames: Vec<Vec<u8>>,
    pipeline: Pipeline,
    workers: Vec<Worker>,
    reference: Reference,
    now: Duration,
    summary: Summary,
    /// Packets of a vector, reused.
    buffer: Vec<Packet>,
}

/// A clock on which every measured interval has the same length.
fn clock() -> Duration {
    thread_local! {
        static NOW: Cell<Duration> = const { Cell::new(Duration::ZERO) };
    }
    NOW.set(NOW.get() + Duration::from_micros(1));
    NOW.get()
}

/// Creates a worker, with caches of any kind or without. The caches are small, so that
/// they become full.
fn worker(pipeline: &mut Pipeline, dice: &mut dyn Dice) -> Worker {
    if dice.one_in(4) {
        return pipeline.worker();
    }
    let kind = dice.below(KINDS.len() + 1).checked_sub(1);
    let microflows = kind.map(|kind| (KINDS[kind], *dice.pick(&[1, 8, 64])));
    let settings = CacheSettings::new()
        .megaflows(kind.is_none() || dice.one_in(2))
        .max_megaflows(*dice.pick(&[1, 3, 20, 1000]))
        .and_then(|settings| settings.max_masks(*dice.pick(&[2, 3, 5, 32])))
        .and_then(|settings| match microflows {
            Some((kind, flows)) => settings.microflows(kind, flows),
            None => Ok(settings),
        })
        .expect("counts in their ranges");
    let active = ActiveFlowSettings::default()
        .threshold(
            dice.pick(&[None, Some(Duration::from_millis(100))])
                .to_owned(),
        )
        .timeout(*dice.pick(&[Duration::from_millis(50), Duration::from_secs(10)]))
        .kicks(dice.below(4))
        .and_then(|active| active.latest(*dice.pick(&[8, 64, 1000])))
        .expect("numbers in their ranges");
    let settings = settings
        .active_flows(active)
        .finder(finder(dice))
        // Caches that are measured by the clock are sometimes bypassed.
        .clock(dice.one_in(8).then_some(clock as Clock))
        .seed(dice.below(1000) as u64);
    pipeline.cached_worker(settings)
}

/// Returns the finder of megaflows: hash tables in either order, or an engine.
fn finder(dice: &mut dyn Dice) -> Finder {
    if dice.one_in(5) {
        let settings = TupleSettings::default().with_lambda(*dice.pick(&[1.5, 4.0, 100.0]));
        let settings = settings.expect("a number in the range of λ");
        return Finder::sorted_tuples(settings.with_normalise_every(*dice.pick(&[1, 5, 1000])));
    }
    let engine = *dice.pick(&[
        None,
        None,
        Some("tuplemerge:c=2"),
        Some("forest"),
        Some("tss"),
    ]);
    let engine = engine.map(|engine| EngineSpec::parse(engine).expect("the engine's name"));
    engine.map_or_else(Finder::default, |engine| {
        Finder::engine(engine).expect("it takes updates, and any fields")
    })
}

/// Outputs of the datapath, by the packets' places.
struct Recorder(Vec<Vec<Event>>);

impl Recorder {
    fn record(&mut self, packet: &Packet, event: Event) {
        let tag = usize::try_from(packet.key().get(TAG)).expect("a place in a vector");
        self.0[tag].push(event);
    }
}

impl Sink for Recorder {
    fn send(&mut self, port: PortNo, queue: Option<u32>, packet: &Packet) {
        let bytes = packet.bytes().to_vec();
        self.record(packet, Event::Sent { port, queue, bytes });
    }

    fn to_controller(
        &mut self,
        reason: PacketInReason,
        max_len: u16,
        (table, cookie): (TableId, u64),
        packet: &Packet,
    ) {
        let event = Event::Controller {
            reason,
            max_len,
            table,
            cookie,
            bytes: packet.bytes().to_vec(),
        };
        self.record(packet, event);
    }
}

/// Returns an error with both values if they differ.
fn same<T: PartialEq + fmt::Debug>(
    datapath: &T,
    reference: &T,
    what: impl FnOnce() -> String,
) -> Result<(), String> {
    match datapath == reference {
        true => Ok(()),
        false => Err(format!(
            "{}\n datapath: {datapath:x?}\nreference: {reference:x?}",
            what()
        )),
    }
}

impl fmt::Display for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "engine {}, vectors of {} at most, {} workers",
            self.engine,
            self.vector,
            self.workers.len()
        )
    }
}

impl World {
    pub(crate) fn new(dice: &mut dyn Dice, options: &Options) -> Result<World, String> {
        let engine = *dice.pick(&["forest", "forest", "tuplemerge", "tss", "linear"]);
        let spec = EngineSpec::parse(engine).map_err(|error| error.to_string())?;
        // A fixed seed makes differences reproducible in another process.
        let tables = TableSettings::new(spec.seeded(0)).map_err(|error| error.to_string())?;
        let tables = tables.rebuild_below(*dice.pick(&[0, 1, 4, 15, 100]));
        let select_seed = dice.below(1000) as u64;
        let settings = PipelineSettings::new(tables).select_seed(select_seed);
        let mut pipeline = Pipeline::new(settings);
        let is_steep = dice.one_in(STEEP_WORLD_ODDS);
        let vector = match is_steep {
            true => *dice.pick(&[1, 2]),
            false => *dice.pick(&[1, 1, 3, 8, 20]),
        };
        let mut tables = vec![TableId(0)];
        for table in [1, 2, 7, 200, 253] {
            if !dice.one_in(5) {
                tables.push(TableId(table));
            }
        }
        let shape = Shape {
            tables,
            most: 1 + options.entries / 4 + dice.below(options.entries),
            meters_everywhere: vector == 1,
            wrong: *dice.pick(&[12, 60, 400]),
            timed: *dice.pick(&[1, 3, 20]),
            tight: *dice.pick(&[1, 5, 50]),
        };
        let mut world = World {
            frames: (0..options.frames).map(|_| frames::frame(dice)).collect(),
            workers: vec![worker(&mut pipeline, dice)],
            pipeline,
            reference: Reference::new(select_seed),
            is_steep,
            shape,
            engine: engine.to_owned(),
            vector,
            now: Duration::ZERO,
            summary: Summary::default(),
            buffer: Vec::new(),
            options: options.clone(),
        };
        for number in 1..=4 {
            let bundle = [Message::Port(PortNo(number), Some(PortState::default()))];
            world.bundle(&bundle, false)?;
        }
        Ok(world)
    }

    pub(crate) fn summary(self) -> Summary {
        self.summary
    }

    /// Advances the clock and sends bundles and packets.
    pub(crate) fn step(&mut self, dice: &mut dyn Dice) -> Result<(), String> {
        self.now += match dice.below(7) {
            0 => Duration::from_secs(dice.below(4) as u64),
            1 => Duration::from_millis(dice.below(3000) as u64),
            2 => Duration::from_nanos(dice.below(3) as u64),
            3 => Duration::from_nanos(dice.below(2_000_000_000) as u64),
            _ => Duration::from_millis(dice.below(40) as u64),
        };
        if dice.one_in(2) {
            self.expire()?;
        }
        if dice.one_in(8) {
            let index = dice.below(self.frames.len());
            self.frames[index] = frames::frame(dice);
        }
        for _ in 0..1 + dice.below(3) {
            let bundle = self.draw_bundle(dice)?;
            self.bundle(&bundle, dice.one_in(3))?;
        }
        if self.is_steep && dice.one_in(4) {
            let later = self.shape.tables.get(1).copied();
            for message in ladders::messages(&self.held(), later, dice) {
                self.bundle(&[message], true)?;
            }
        }
        if dice.one_in(3) {
            self.collect()?;
        }
        self.pipeline.publish();
        self.maintain(dice);
        let vectors = if self.is_steep {
            2
        } else {
            self.options.vectors
        };
        for _ in 0..1 + dice.below(vectors) {
            self.vector(dice)?;
        }
        if dice.one_in(2) {
            self.execute(dice)?;
        }
        self.counters()?;
        if dice.one_in(2) {
            self.collect()?;
        }
        Ok(())
    }

    /// Does maintenance, which must not change results, and adds or removes workers.
    fn maintain(&mut self, dice: &mut dyn Dice) {
        match dice.below(12) {
            0 => drop(self.pipeline.rebuild()),
            1..4 => drop(self.pipeline.maintain(dice.below(20))),
            4 => {
                if let Ok(Some(plan)) = self.pipeline.planner().plan(&mut NoProgress) {
                    self.pipeline.install(plan);
                }
            }
            5 if self.workers.len() < 3 => self.workers.push(worker(&mut self.pipeline, dice)),
            6 if self.workers.len() > 1 => {
                let index = dice.below(self.workers.len());
                self.workers.remove(index);
            }
            7 => {
                self.workers.clear();
                self.workers.push(worker(&mut self.pipeline, dice));
            }
            _ => {}
        }
    }

    fn packet(&mut self, dice: &mut dyn Dice) -> ReferencePacket {
        let frame = &self.frames[dice.below(self.frames.len())];
        let in_port = match dice.below(8) {
            0 => PortNo::LOCAL,
            1 => PortNo::CONTROLLER,
            port => PortNo(u32::try_from(port - 1).expect("a small number")),
        };
        let tunnel = dice.below(4).saturating_sub(2) as u64;
        let packet = ReferencePacket::new(frame, in_port.0, tunnel);
        match packet.transport_checksum() {
            Some((start, offset)) if dice.one_in(4) => packet.with_partial_checksum(start + offset),
            _ => packet,
        }
    }

    fn held(&self) -> Held {
        Held {
            entries: self.reference.entries().len(),
            groups: self
                .reference
                .groups()
                .map(|counted| counted.group.id)
                .collect(),
            meters: self.reference.meters().map(|(id, _)| id).collect(),
        }
    }

    /// Executes the actions of a packet from the controller in both switches.
    fn execute(&mut self, dice: &mut dyn Dice) -> Result<(), String> {
        let packet = self.packet(dice);
        let actions = messages::controller_actions(&self.shape, &self.held(), &packet, dice);
        let in_port = packet.get(Field::InPort).unwrap_or(0);
        let in_port = u32::try_from(in_port).expect("thirty-two bits");
        let mut given = Packet::default();
        given.receive_offloaded(packet.bytes(), in_port, offload_of(&packet));
        let partial = packet.partial_checksum();
        let packet = ReferencePacket::new(packet.bytes(), in_port, 0);
        let packet = match partial {
            Some(place) => packet.with_partial_checksum(place),
            None => packet,
        };
        let mut recorder = Recorder(vec![Vec::new()]);
        let worker = &mut self.workers[0];
        let executed = worker.execute(&actions, &given, self.now, &mut recorder);
        let result = executed
            .map(|()| recorder.0.remove(0))
            .map_err(|error| error.code());
        let expected = self.reference.execute(&actions, &packet, self.now);
        same(&result, &expected, || {
            format!(
                "what {actions:?} of the controller make of {:02x?} by port {in_port}",
                packet.bytes()
            )
        })?;
        self.summary.packets += 1;
        Ok(())
    }

    fn draw_bundle(&mut self, dice: &mut dyn Dice) -> Result<Vec<Message>, String> {
        let held = self.held();
        let count = 1 + dice.below(5);
        let mut bundle = Vec::new();
        for _ in 0..count {
            let packet = self.packet(dice);
            bundle.push(messages::message(&self.shape, &packet, &held, dice)?);
        }
        Ok(bundle)
    }

    /// Applies a bundle to both switches, and compares the results and contents.
    fn bundle(&mut self, bundle: &[Message], submit: bool) -> Result<(), String> {
        let outcome = match submit {
            true => self.pipeline.submit(bundle, self.now),
            false => self.pipeline.apply(bundle, self.now),
        };
        let outcome = outcome.map(drop);
        let outcome = outcome.map_err(|refused| (refused.index(), refused.error().code()));
        let expected = self.reference.apply(bundle, self.now);
        same(&outcome, &expected, || listed(bundle))?;
        self.summary.messages += bundle.len() as u64;
        if let Err((_, code)) = outcome {
            *self.summary.refused.entry(code.name()).or_default() += 1;
        }
        let entries = self.reference.entries().len();
        self.summary.entries = self.summary.entries.max(entries);
        self.stores()
            .map_err(|difference| format!("{difference}\nafter {}", listed(bundle)))
    }

    /// Compares the contents that messages have created.
    fn stores(&self) -> Result<(), String> {
        let (pipeline, reference) = (&self.pipeline, &self.reference);
        let actual: Vec<&FlowEntry> = pipeline.flows().iter().collect();
        let entries = reference.entries().iter();
        let expected = entries.map(|counted| &counted.entry).collect();
        same(&actual, &expected, || "the entries".to_owned())?;
        let actual: Vec<_> = pipeline.groups().iter().collect();
        let expected = reference.groups().map(|counted| &*counted.group).collect();
        same(&actual, &expected, || "the groups".to_owned())?;
        let actual: Vec<_> = pipeline.meters().iter().collect();
        let meters = reference.meters();
        let expected = meters.map(|(_, meter)| &meter.running.meter).collect();
        same(&actual, &expected, || "the meters".to_owned())?;
        let actual: Vec<_> = pipeline.ports().iter().collect();
        let expected = reference.ports().collect();
        same(&actual, &expected, || "the ports".to_owned())?;
        for &table in &self.shape.tables {
            let expected = reference.config(table).unwrap_or(TableConfig {
                max_entries: 1_000_000,
                eviction: false,
            });
            same(&pipeline.flows().config(table), &expected, || {
                format!("how table {table} is configured")
            })?;
        }
        Ok(())
    }

    fn expire(&mut self) -> Result<(), String> {
        let removed = |change| match change {
            Change::Flow(FlowChange::Removed(entry, reason)) => Some((entry, reason)),
            _ => None,
        };
        let changes = self.pipeline.expire(self.now).into_iter();
        let mut actual: Vec<(FlowEntry, RemovalReason)> = changes.filter_map(removed).collect();
        let mut expected = self.reference.expire(self.now);
        // The order of expired entries is not defined.
        actual.sort_by_key(|(entry, _)| entry.id);
        expected.sort_by_key(|(entry, _)| entry.id);
        same(&actual, &expected, || {
            format!("the entries whose time is over at {:?}", self.now)
        })
    }

    fn collect(&mut self) -> Result<(), String> {
        self.pipeline.publish();
        let sorted = |mut removed: Vec<RemovedFlow>| {
            removed.sort_by_key(|removed| removed.entry.id);
            removed
        };
        let actual = sorted(self.pipeline.collect_removed());
        let expected = sorted(self.reference.collect_removed());
        same(&actual, &expected, || {
            "the entries that are gone".to_owned()
        })?;
        for removed in actual {
            let reason = format!("{:?}", removed.reason);
            *self.summary.removed.entry(reason).or_default() += 1;
        }
        Ok(())
    }

    /// Processes some packets in both switches, and compares the outputs.
    fn vector(&mut self, dice: &mut dyn Dice) -> Result<(), String> {
        if dice.one_in(4) {
            // Time also passes between vectors.
            self.now += Duration::from_millis(dice.below(400) as u64);
        }
        let count = 1 + dice.below(self.vector);
        let mut expected = Vec::new();
        self.buffer.resize_with(count, Packet::default);
        let mut before = Vec::new();
        for tag in 0..count {
            let mut packet = self.packet(dice);
            let field = |field| packet.get(field).unwrap_or(0);
            let in_port = u32::try_from(field(Field::InPort)).expect("thirty-two bits");
            let given = &mut self.buffer[tag];
            given.receive_offloaded(packet.bytes(), in_port, offload_of(&packet));
            given.set_field(Field::TunnelId, field(Field::TunnelId));
            given.set_field(TAG, tag as u128);
            compare_fields(given, &packet)?;
            before.push(packet.clone());
            let events = self.reference.process(&mut packet, self.now);
            expected.push((events, packet));
        }
        let mut recorder = Recorder(vec![Vec::new(); count]);
        // The workers process parts of the vector, one after the other.
        let piece = count.div_ceil(self.workers.len());
        for (worker, packets) in self.workers.iter_mut().zip(self.buffer.chunks_mut(piece)) {
            worker.process(packets, self.now, &mut recorder);
        }
        for (tag, (events, packet)) in expected.iter().enumerate() {
            let about = |what: &str| {
                let entries: Vec<String> = self.reference.entries().iter().map(told).collect();
                let groups: Vec<_> = self
                    .reference
                    .groups()
                    .map(|counted| counted.group.to_string())
                    .collect();
                let meters: Vec<_> = self
                    .reference
                    .meters()
                    .map(|(_, meter)| meter.running.meter.to_string())
                    .collect();
                format!(
                    "{what} packet {tag} of a vector at {:?}: {:02x?} by port {:?} and tunnel {:?}, with\n{}\n{}\n{}\n",
                    self.now,
                    before[tag].bytes(),
                    before[tag].get(Field::InPort),
                    before[tag].get(Field::TunnelId),
                    entries.join("\n"),
                    groups.join("\n"),
                    meters.join("\n"),
                )
            };
            same(&recorder.0[tag], events, || about("what comes out for"))?;
            let given = &self.buffer[tag];
            same(&given.bytes(), &packet.bytes(), || about("what is left of"))?;
            compare_fields(given, packet)
                .map_err(|difference| format!("{}: {difference}", about("")))?;
            self.summary.events += events.len() as u64;
        }
        self.summary.packets += count as u64;
        Ok(())
    }

    /// Compares all counters.
    fn counters(&mut self) -> Result<(), String> {
        let (pipeline, reference) = (&self.pipeline, &self.reference);
        for counted in reference.entries() {
            let id = counted.entry.id;
            let actual = (pipeline.flow_count(id), pipeline.last_match(id));
            let expected = (counted.count, counted.last_match);
            same(&actual, &expected, || {
                format!("the counters of {}", told(counted))
            })?;
        }
        for &table in &self.shape.tables {
            let expected = reference.table_count(table);
            same(&pipeline.table_count(table), &expected, || {
                format!("the counters of table {table}")
            })?;
        }
        for counted in reference.groups() {
            let actual = pipeline.group_count(counted.group.id);
            same(&actual, &counted.count, || {
                format!("the counters of {}", counted.group)
            })?;
        }
        let mut banded = 0;
        for (id, meter) in reference.meters() {
            let actual = pipeline.meter_count(id);
            same(&actual, &meter.count, || {
                format!("the counters of {}", meter.running.meter)
            })?;
            banded += actual.bands.iter().map(|band| band.packets).sum::<u64>();
        }
        self.summary.banded = self.summary.banded.max(banded);
        let limits = pipeline.limit_counts();
        same(&limits, &reference.limit_counts(), || {
            "packets that were dropped at a limit".to_owned()
        })?;
        self.summary.limited_actions = limits.actions;
        self.summary.limited_copies = limits.copies;
        Ok(())
    }
}

/// Returns the messages of a bundle, one per line.
fn listed(bundle: &[Message]) -> String {
    let lines = bundle.iter().map(|message| match message {
        Message::Flow(flow) => format!("{:?} {flow}", flow.command),
        Message::Group(group) => format!("{:?} {}", group.command, group.group),
        Message::Meter(meter) => format!("{:?} {}", meter.command, meter.meter),
        Message::Port(..) | Message::Table(_) => format!("{message:?}"),
    });
    let lines: Vec<String> = lines.collect();
    format!("the bundle\n{}", lines.join("\n"))
}

fn told(counted: &state::Counted) -> String {
    let entry = &counted.entry;
    format!(
        "entry {}: table={},priority={},{} actions={}",
        entry.id, entry.table, entry.priority, entry.flow, entry.instructions
    )
}

/// Returns the work that is left on a packet, as the datapath describes it.
fn offload_of(packet: &ReferencePacket) -> Offload {
    let partial = packet.partial_checksum().and_then(|_| {
        let (start, offset) = packet.transport_checksum()?;
        Some(PartialChecksum {
            start: u32::try_from(start).expect("a short frame"),
            offset: u16::try_from(offset).expect("within a header"),
        })
    });
    Offload {
        checksum: partial,
        segmentation: None,
    }
}

/// Compares all fields of a packet.
fn compare_fields(packet: &Packet, expected: &ReferencePacket) -> Result<(), String> {
    for field in Field::all().filter(|&field| field != TAG) {
        let key = packet.key();
        let has = key.has(field).then(|| key.get(field));
        let expected_value = expected.get(field);
        if has != expected_value {
            return Err(format!(
                "{field} of {:02x?}\n datapath: {has:x?}\nreference: {expected_value:x?}",
                expected.bytes()
            ));
        }
    }
    Ok(())
}
