//! Filling a pipeline from a text needs little memory beyond the pipeline.
//!
//! One test in a process: its allocator counts the bytes of all threads.

#[path = "../../core/tests/allocations/mod.rs"]
mod allocations;

use std::fmt::Write as _;
use std::time::Duration;

use classyard::EngineSpec;
use classyard_datapath::pipeline::Pipeline;
use classyard_datapath::{TableSettings, text};

/// Many pieces of a text, the last of them not full.
const FLOWS: usize = 200_500;

/// The maximum memory in bytes for each flow beyond the pipeline and its lines.
const BYTES_PER_FLOW: usize = 400;

/// Different matches on addresses, a prefix and a port.
fn flows() -> String {
    let mut text = String::new();
    for number in 0..FLOWS {
        let (priority, port) = (1 + number * 7919 % 60_000, 1 + number * 104_729 % 65_000);
        let (high, low) = (number >> 8, number & 0xff);
        writeln!(
            text,
            "table=0,priority={priority},ip,nw_src=10.{}.{}.{low},nw_dst=172.16.{low}.0/24,\
             nw_proto=6,tp_dst={port} actions=output:{}",
            high >> 8,
            high & 0xff,
            1 + number % 40,
        )
        .expect("a string has room");
    }
    text
}

#[test]
fn filling_needs_little_memory_beyond_the_pipeline() {
    let text = flows();
    let (filled, bytes) = allocations::bytes_of_all_threads(|| {
        let tables = TableSettings::new(EngineSpec::parse("forest").unwrap()).unwrap();
        text::fill(Pipeline::new(tables), "flows", &text, false, Duration::ZERO).unwrap()
    });
    assert_eq!(filled.pipeline.flows().len(), FLOWS);
    let held = usize::try_from(bytes.left).expect("the pipeline holds memory");
    let beyond = bytes.peak - held;
    assert!(
        beyond <= BYTES_PER_FLOW * FLOWS,
        "{} bytes a flow beyond the pipeline's {}",
        beyond / FLOWS,
        held / FLOWS
    );
}
