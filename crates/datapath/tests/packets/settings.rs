//! Refused settings, numbers and times at the ends of their ranges, and seeds.

use std::error::Error;
use std::time::Duration;

use classyard::EngineSpec;
use classyard_datapath::flow::{Command, FlowMod, TableId};
use classyard_datapath::group::GroupType;
use classyard_datapath::pipeline::KINDS;
use classyard_datapath::pipeline::{
    CacheSettings, Message, Pipeline, PipelineSettings, PortState, TableCount,
};
use classyard_datapath::{ErrorCode, FlowMatch, GroupId, Packet, PortNo, TableSettings};

use crate::limits::{Sent, bucket, entry, group, output, pipeline, to};

#[test]
fn static_engines_are_refused() {
    let mut refused = 0;
    for name in ["rfc", "linear", "forest", "tuplemerge", "hypercuts"] {
        let Ok(engine) = EngineSpec::parse(name) else {
            continue;
        };
        let is_dynamic = engine.is_dynamic();
        let settings = TableSettings::new(engine);
        assert_eq!(settings.is_ok(), is_dynamic, "{name}");
        if let Err(error) = settings {
            assert!(error.to_string().contains(name), "{error}");
            refused += 1;
        }
    }
    assert!(refused > 0);
}

#[test]
fn counts_of_caches_are_checked() {
    let kind = KINDS[0];
    let settings = CacheSettings::new;
    for count in [0, CacheSettings::MICROFLOWS.end() + 1, usize::MAX] {
        assert!(settings().microflows(kind, count).is_err());
        assert!(
            settings()
                .max_megaflows(count.max(CacheSettings::MEGAFLOWS.end() + 1))
                .is_err()
        );
        let error = settings().max_masks(count).unwrap_err();
        assert_eq!(error.range(), CacheSettings::MASKS);
    }
    assert!(settings().max_megaflows(0).is_err());
    assert!(settings().max_masks(1).is_err());
    let mut pipeline = pipeline();
    for (megaflows, masks) in [(1, 2), (3, 128)] {
        let settings = settings().max_megaflows(megaflows).unwrap();
        let settings = settings.microflows(kind, 1).unwrap();
        let mut worker = pipeline.cached_worker(settings.max_masks(masks).unwrap());
        let mut packets = [Packet::new(&[0; 60], 1)];
        worker.process(&mut packets, Duration::ZERO, &mut Sent::default());
    }
}

#[test]
fn tables_that_there_are_not_count_nothing() {
    let pipeline = pipeline();
    for table in 0..=255 {
        let table = TableId(table);
        assert_eq!(pipeline.table_count(table), TableCount::default());
        assert_eq!(pipeline.engine_tables(table), 0);
        assert_eq!(pipeline.features(table).is_some(), table.is_table());
        assert_eq!(pipeline.flows().table(table).count(), 0);
    }
}

#[test]
fn entries_near_the_end_of_time_stay() {
    for before_end in [0, 1, 2, 65_534, 65_535, 65_536] {
        let mut pipeline = pipeline();
        let now = Duration::MAX - Duration::from_secs(before_end);
        let mut message = FlowMod::new(Command::Add, FlowMatch::default());
        (message.idle_timeout, message.hard_timeout) = (u16::MAX, u16::MAX);
        pipeline.apply(&[Message::Flow(message)], now).unwrap();
        let mut worker = pipeline.worker();
        worker.process(&mut [Packet::new(&[0; 60], 1)], now, &mut Sent::default());
        pipeline.expire(now);
        assert_eq!(pipeline.flows().len(), 1, "{before_end}");
        pipeline.expire(Duration::MAX);
        // The entry expires only if its time can be reached.
        let is_over = before_end >= 65_535;
        assert_eq!(
            pipeline.flows().len(),
            usize::from(!is_over),
            "{before_end}"
        );
        pipeline.collect_removed();
    }
}

#[test]
fn a_refused_bundle_says_which_message_and_why() {
    let mut pipeline = pipeline();
    let good = Message::Port(PortNo(9), Some(PortState::default()));
    let wrong = Message::Port(PortNo(0), None);
    let refused = pipeline.apply(&[good, wrong], Duration::ZERO).unwrap_err();
    assert_eq!(refused.index(), 1);
    assert_eq!(refused.error().code(), ErrorCode::BadPort);
    let source = refused.source().expect("the error of the message");
    assert_eq!(source.to_string(), refused.error().to_string());
    assert!(refused.to_string().starts_with("message 1: "), "{refused}");
}

/// Returns the buckets that 64 flows are sent to, one bit per flow.
fn chosen(settings: PipelineSettings) -> u64 {
    let mut pipeline = Pipeline::new(settings);
    let buckets = [2, 3].map(|port| {
        let mut bucket = bucket(&[output(PortNo(port))]);
        bucket.weight = 1;
        bucket
    });
    let messages = [
        Message::Port(PortNo(2), Some(PortState::default())),
        Message::Port(PortNo(3), Some(PortState::default())),
        group(1, GroupType::Select, buckets.to_vec()),
        entry(classyard_datapath::flow::Instructions {
            apply: vec![to(1)],
            ..Default::default()
        }),
    ];
    pipeline.apply(&messages, Duration::ZERO).unwrap();
    let mut worker = pipeline.worker();
    let mut bits = 0;
    for flow in 0..64_u8 {
        let before = pipeline.group_count(GroupId(1)).buckets[0].packets;
        let mut frame = [0; 60];
        frame[5] = flow;
        worker.process(
            &mut [Packet::new(&frame, 1)],
            Duration::ZERO,
            &mut Sent::default(),
        );
        let after = pipeline.group_count(GroupId(1)).buckets[0].packets;
        bits = bits << 1 | (after - before);
    }
    bits
}

#[test]
fn select_groups_choose_by_a_seed_of_the_pipeline() {
    let tables = || TableSettings::new(EngineSpec::parse("forest").unwrap()).unwrap();
    let seeded = |seed| chosen(PipelineSettings::new(tables()).select_seed(seed));
    assert_eq!(seeded(1), seeded(1), "a seed repeats a run");
    assert_ne!(seeded(1), seeded(2));
    let random = || chosen(PipelineSettings::new(tables()));
    assert_ne!(random(), random(), "alike once in 2^64 times");
    for bits in [seeded(1), seeded(2), random()] {
        assert!((10..=54).contains(&bits.count_ones()), "{bits:b}");
    }
}

/// Every map that a source file mentions is hashed with a random seed.
#[test]
fn no_map_has_a_fixed_hash() {
    let sources = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut folders = vec![sources];
    let mut files = 0;
    while let Some(folder) = folders.pop() {
        for item in std::fs::read_dir(folder).unwrap() {
            let path = item.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            files += 1;
            let text = std::fs::read_to_string(&path).unwrap();
            let fixed = [
                "BuildHasherDefault",
                "DefaultHasher",
                "FixedState",
                "with_hasher(",
                "impl Hasher for",
                "impl BuildHasher for",
            ];
            for name in fixed {
                assert!(!text.contains(name), "{}: {name}", path.display());
            }
        }
    }
    assert!(files > 80, "the sources were read");
}
