//! How long reading a million rules takes.
//!
//! `cargo run --release -p classyard-workload --example parse_speed [RULES]`

use std::io::Write as _;
use std::time::Instant;

use classyard_workload::diagnostic::ReadOptions;
use classyard_workload::formats::{RuleFormat, read_policy, read_trace, write_policy, write_trace};

fn main() {
    let rules: u32 = std::env::args()
        .nth(1)
        .and_then(|n| n.parse().ok())
        .unwrap_or(1_000_000);
    let mut text = String::new();
    let mut v6 = String::new();
    let mut flows = String::new();
    let mut trace = String::new();
    for i in 0..rules {
        let bits = i.wrapping_mul(0x9e37_79b9);
        let [a, b, c, d] = bits.to_be_bytes();
        let length = 8 + i % 25;
        let port = bits >> 17;
        text.push_str(&format!(
            "@{a}.{b}.{c}.{d}/{length}\t{d}.{c}.{b}.{a}/32\t0 : 65535\t{port} : {}\t0x06/0xFF\t0x0000/0x0200\t\n",
            port + 9
        ));
        v6.push_str(&format!(
            "@2001:db8:{c:x}{d:02x}:{b:x}::{a:x}/{}\t2001:db8::{d:x}/128\t0 : 65535\t{port} : {port}\t0x11/0xFF\n",
            32 + i % 97
        ));
        flows.push_str(&format!(
            "priority={},tcp,in_port={d},nw_src={a}.{b}.{c}.{d}/{length},tp_dst={port} actions=output:{c}\n",
            i & 0xffff
        ));
        trace.push_str(&format!("{bits}\t{}\t{port}\t443\t6\t{i}\n", !bits));
    }
    let mut out = std::io::stdout().lock();
    let mut say = |what: &str, bytes: usize, start: Instant| {
        let seconds = start.elapsed().as_secs_f64();
        let speed = f64::from(rules) / seconds / 1e6;
        writeln!(
            out,
            "{what:<28} {seconds:>7.3} s  {speed:>6.2} M/s  {bytes:>11} bytes"
        )
        .unwrap();
    };
    let options = ReadOptions::default();
    for _ in 0..3 {
        let start = Instant::now();
        let loaded = read_policy("classbench", &text, None, None, &options).unwrap();
        say("read classbench", text.len(), start);
        let policy = loaded.value;
        for (what, text) in [("read classbench, IPv6", &v6), ("read ovs", &flows)] {
            let start = Instant::now();
            read_policy("other", text, None, None, &options).unwrap();
            say(what, text.len(), start);
        }
        for format in [RuleFormat::Classbench, RuleFormat::Rules] {
            let mut written = Vec::new();
            let start = Instant::now();
            write_policy(&policy, format, &mut written).unwrap();
            say(&format!("write {format}"), written.len(), start);
            let written = String::from_utf8(written).unwrap();
            let start = Instant::now();
            read_policy("again", &written, None, None, &options).unwrap();
            say(&format!("read {format} again"), written.len(), start);
        }
        let start = Instant::now();
        let loaded = read_trace("trace", &trace, None, true, &options).unwrap();
        say("read trace", trace.len(), start);
        let mut written = Vec::new();
        let start = Instant::now();
        let expected = loaded.value.expected.as_deref();
        write_trace(&loaded.value.headers, expected, &mut written).unwrap();
        say("write trace", written.len(), start);
    }
}
