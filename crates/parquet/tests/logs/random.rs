//! Random rules and logs.

use std::fs::File;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::Path;
use std::sync::Arc;

use arrow_array::builder::FixedSizeBinaryBuilder;
use arrow_array::types::Int32Type;
use arrow_array::{
    ArrayRef, DictionaryArray, Int32Array, Int64Array, RecordBatch, StringArray, UInt32Array,
};
use classyard::prelude::*;
use parquet::arrow::ArrowWriter;
use parquet::file::properties::WriterProperties;
use rand::{Rng, RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// A row of a log.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    pub(crate) src: Option<IpAddr>,
    pub(crate) dst: Option<IpAddr>,
    pub(crate) sport: Option<u16>,
    pub(crate) dport: Option<u16>,
    pub(crate) proto: Option<u8>,
    pub(crate) bytes: i64,
    pub(crate) verdict: Option<&'static str>,
}

impl Row {
    pub(crate) fn has_null(&self) -> bool {
        let addresses = self.src.is_none() || self.dst.is_none();
        addresses || self.sport.is_none() || self.dport.is_none() || self.proto.is_none()
    }
}

/// The type of a log's addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Number,
    Text,
    Dictionary,
    /// IPv6 only.
    Bytes,
}

pub(crate) const KINDS: [Kind; 4] = [Kind::Number, Kind::Text, Kind::Dictionary, Kind::Bytes];

pub(crate) fn rng(seed: u64) -> Xoshiro256PlusPlus {
    Xoshiro256PlusPlus::seed_from_u64(seed)
}

pub(crate) fn actions() -> Vec<String> {
    ["permit", "deny", "log"].map(str::to_owned).to_vec()
}

/// Returns random rules over IPv4, and over IPv6 too if `is_dual`.
pub(crate) fn policy(rng: &mut impl Rng, is_dual: bool) -> Policy {
    let mut policy = match is_dual {
        true => Policy::dual_stack(),
        false => Policy::single(&Schema::ipv4_5tuple()),
    };
    for action in actions() {
        policy.declare_action(&action);
    }
    for id in 0..60 {
        let host: u32 = rng.random_range(0..32);
        let mut rule = PolicyRule::new(id * 7)
            .priority(rng.random_range(0..20))
            .action(ActionId(rng.random_range(0..3)))
            .field(
                "dport",
                rng.random_range(0..20u16)..=rng.random_range(20..40),
            );
        if rng.random_bool(0.7) {
            rule = match is_dual && rng.random_bool(0.5) {
                true => rule.field("src", address(host, true)),
                false => rule.field("src", address(host, false)),
            };
        }
        if rng.random_bool(0.5) {
            rule = rule.field("proto", 6u8);
        }
        policy.add_rule(&rule).unwrap();
    }
    policy
}

fn address(host: u32, is_v6: bool) -> IpAddr {
    match is_v6 {
        false => Ipv4Addr::from_bits(0x0a00_0000 | host).into(),
        true => Ipv6Addr::from_bits((0x2001_0db8 << 96) | u128::from(host)).into(),
    }
}

pub(crate) fn rows(rng: &mut impl Rng, count: usize, has_v6: bool, has_nulls: bool) -> Vec<Row> {
    let null_share = if has_nulls { 0.05 } else { 0.0 };
    let row = |_| {
        let is_v6 = has_v6 && rng.random_bool(0.4);
        let is_value = [(); 5].map(|()| !rng.random_bool(null_share));
        let (src, dst) = (rng.random_range(0..32), rng.random_range(0..32));
        Row {
            src: is_value[0].then(|| address(src, is_v6)),
            dst: is_value[1].then(|| address(dst, is_v6)),
            sport: is_value[2].then(|| rng.random_range(0..100)),
            dport: is_value[3].then(|| rng.random_range(0..50)),
            proto: is_value[4].then(|| [6, 17][rng.random_range(0..2)]),
            bytes: rng.random(),
            verdict: [Some("ACCEPT"), Some("REJECT"), None][rng.random_range(0..3)],
        }
    };
    (0..count).map(row).collect()
}

/// Returns rows as a batch. In columns of numbers IPv6 addresses are null, in columns of bytes
/// IPv4 addresses.
pub(crate) fn log(rows: &[Row], kind: Kind) -> RecordBatch {
    let column = |addresses: Vec<Option<IpAddr>>| -> ArrayRef {
        let texts: Vec<Option<String>> =
            addresses.iter().map(|a| a.map(|a| a.to_string())).collect();
        let texts = || texts.iter().map(Option::as_deref);
        match kind {
            Kind::Number => Arc::new(
                (addresses.iter())
                    .map(|address| match address {
                        Some(IpAddr::V4(address)) => Some(address.to_bits()),
                        _ => None,
                    })
                    .collect::<UInt32Array>(),
            ),
            Kind::Text => Arc::new(texts().collect::<StringArray>()),
            Kind::Dictionary => Arc::new(texts().collect::<DictionaryArray<Int32Type>>()),
            Kind::Bytes => fixed(&addresses),
        }
    };
    let number = |of: fn(&Row) -> Option<u16>| -> ArrayRef {
        let numbers = rows.iter().map(|row| of(row).map(i32::from));
        Arc::new(numbers.collect::<Int32Array>())
    };
    let verdicts = rows.iter().map(|row| row.verdict);
    RecordBatch::try_from_iter_with_nullable([
        (
            "src",
            column(rows.iter().map(|row| row.src).collect()),
            true,
        ),
        (
            "dst",
            column(rows.iter().map(|row| row.dst).collect()),
            true,
        ),
        ("sport", number(|row| row.sport), true),
        ("dport", number(|row| row.dport), true),
        ("proto", number(|row| row.proto.map(u16::from)), true),
        (
            "bytes",
            Arc::new(Int64Array::from_iter_values(
                rows.iter().map(|row| row.bytes),
            )) as ArrayRef,
            false,
        ),
        (
            "verdict",
            Arc::new(verdicts.collect::<StringArray>()) as ArrayRef,
            true,
        ),
    ])
    .unwrap()
}

/// Returns IPv6 addresses as 16 bytes. IPv4 addresses are null.
fn fixed(addresses: &[Option<IpAddr>]) -> ArrayRef {
    let mut builder = FixedSizeBinaryBuilder::new(16);
    for address in addresses {
        match address {
            Some(IpAddr::V6(address)) => builder.append_value(address.octets()).unwrap(),
            _ => builder.append_null(),
        }
    }
    Arc::new(builder.finish())
}

/// Writes a log with row groups of a number of rows.
pub(crate) fn write(path: &Path, log: &RecordBatch, group_rows: usize, has_dictionaries: bool) {
    let properties = WriterProperties::builder()
        .set_max_row_group_row_count(Some(group_rows))
        .set_dictionary_enabled(has_dictionaries)
        .build();
    let file = File::create(path).unwrap();
    let mut writer = ArrowWriter::try_new(file, log.schema(), Some(properties)).unwrap();
    writer.write(log).unwrap();
    writer.close().unwrap();
}
