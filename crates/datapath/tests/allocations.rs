//! Processing packets allocates nothing after a worker has processed its longest vector
//! and frame, whatever groups, meters, action sets and engines it uses.

#[path = "../../core/tests/allocations/mod.rs"]
mod allocations;

use std::time::Duration;

use classyard::EngineSpec;
use classyard_datapath::pipeline::{CacheSettings, Discard, Message, Pipeline, PortState, Worker};
use classyard_datapath::{Packet, PortNo, TableSettings, text};

/// Every kind of group, a meter, action sets, tags and labels, tables that lead to each
/// other, and packets to the controller.
const PIPELINE: &str = "\
    meter=1,pktps,burst,bands=type=drop,rate=1000,burst_size=500,type=dscp_remark,rate=500,prec_level=1
    group_id=1,type=indirect,bucket=actions=dec_ttl,set_field:7->reg1,output:3
    group_id=2,type=all,bucket=actions=push_vlan:0x8100,set_field:0x1005->vlan_vid,output:2,bucket=actions=group:1
    group_id=3,type=select,bucket=weight:1,actions=output:2,bucket=weight:2,actions=group:2
    group_id=4,type=ff,bucket=watch_port:9,actions=output:9,bucket=watch_port:3,actions=push_mpls:0x8847,output:3
    table=0,priority=9,ip actions=meter:1,set_field:1->reg0,write_actions(group:3,set_field:10.0.0.9->ipv4_dst),goto_table:1
    table=0,priority=8,ipv6 actions=write_actions(push_vlan:0x8100,output:2),write_metadata:5/7,goto_table:1
    table=0,priority=7,arp actions=flood,controller:64
    table=0,priority=0 actions=all
    table=1,priority=9,tcp,tp_dst=80 actions=group:4,goto_table:200
    table=1,priority=8,udp actions=dec_ttl,clear_actions,write_actions(group:2)
    table=1,priority=7,udp6,udp_dst=53 actions=group:2,goto_table:200
    table=1,priority=0 actions=goto_table:200
    table=200,priority=1,metadata=5 actions=meter:1,output:3
    table=200,priority=0 actions=controller
";

/// Returns frames of all families, whole and truncated, some with a time to live of 1.
fn frames() -> Vec<Vec<u8>> {
    let ethernet = |kind: u16| {
        let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];
        frame.extend(kind.to_be_bytes());
        frame
    };
    let ipv4 = |protocol: u8, ttl: u8, port: u16| {
        let mut frame = ethernet(0x800);
        frame.extend([
            0x45, 40, 0, 46, 0, 0, 0, 0, ttl, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2,
        ]);
        frame.extend([4, 210]);
        frame.extend(port.to_be_bytes());
        frame.resize(60, 0);
        frame
    };
    let mut ipv6 = ethernet(0x86dd);
    ipv6.extend([0x60, 0, 0, 0, 0, 24, 17, 64]);
    ipv6.extend([0x20; 32]);
    ipv6.extend([4, 210, 0, 53, 0, 24, 0, 0]);
    ipv6.resize(78, 0);
    let mut arp = ethernet(0x806);
    arp.extend([0, 1, 8, 0, 6, 4, 0, 1]);
    arp.resize(60, 0);
    let mut frames = vec![
        ipv4(6, 64, 80),
        ipv4(6, 64, 443),
        ipv4(17, 64, 53),
        ipv4(17, 1, 53),
        ipv6,
        arp,
        ethernet(0x1234),
        vec![1],
    ];
    let cut: Vec<Vec<u8>> = frames
        .iter()
        .map(|frame| frame[..frame.len() / 2].to_vec())
        .collect();
    frames.extend(cut);
    frames
}

/// A way to make a worker.
type MakeWorker = fn(&mut Pipeline) -> Worker;

/// Returns the number of allocation requests for 200 vectors, after 20 vectors.
fn requests(engine: &str, make_worker: MakeWorker) -> usize {
    let spec = EngineSpec::parse(engine).unwrap();
    let mut pipeline = Pipeline::new(TableSettings::new(spec).unwrap().rebuild_below(4));
    text::load(PIPELINE, &mut pipeline, Duration::ZERO).unwrap();
    let ports = (1..5).map(|port| Message::Port(PortNo(port), Some(PortState::default())));
    let ports: Vec<Message> = ports.collect();
    pipeline.apply(&ports, Duration::ZERO).unwrap();
    let mut worker = make_worker(&mut pipeline);
    let frames = frames();
    let mut vector = vec![Packet::default(); 256];
    let mut pass = |now: u64| {
        for (number, packet) in vector.iter_mut().enumerate() {
            packet.receive(&frames[number % frames.len()], 1);
        }
        worker.process(&mut vector, Duration::from_millis(now), &mut Discard);
    };
    // Lists reach their maximum lengths in different vectors.
    (0..20).for_each(&mut pass);
    let requests = allocations::requests(|| (20..220).for_each(&mut pass));
    let looked_up = pipeline
        .table_count(classyard_datapath::flow::TableId(200))
        .lookups;
    assert!(looked_up > 5_000, "{looked_up}");
    requests
}

#[test]
fn no_packet_allocates() {
    for engine in ["forest", "tuplemerge", "tss", "linear"] {
        assert_eq!(requests(engine, Pipeline::worker), 0, "{engine}");
    }
}

/// The paths of these packets are known after the first vectors. Some paths end early, at a
/// meter or a tag, and continue in the pipeline with the action set so far.
#[test]
fn no_packet_with_a_cached_path_allocates() {
    let always = |pipeline: &mut Pipeline| pipeline.cached_worker(CacheSettings::new().clock(None));
    assert_eq!(requests("forest", always), 0);
}
