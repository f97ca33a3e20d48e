//! Random rules, and random headers as arrays of every type.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use arrow_array::builder::{FixedSizeBinaryBuilder, StringDictionaryBuilder};
use arrow_array::types::{Int8Type, UInt16Type};
use arrow_array::{
    ArrayRef, BinaryArray, BinaryViewArray, DictionaryArray, Float64Array, Int8Array, Int16Array,
    Int32Array, Int64Array, LargeBinaryArray, LargeStringArray, RecordBatch, StringArray,
    StringViewArray, UInt8Array, UInt16Array, UInt32Array, UInt64Array,
};
use classyard::prelude::*;
use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use rand::{Rng, RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// A header, with nulls.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    pub(crate) src: Option<IpAddr>,
    pub(crate) dst: Option<IpAddr>,
    pub(crate) sport: Option<u16>,
    pub(crate) dport: Option<u16>,
    pub(crate) proto: Option<u8>,
}

pub(crate) fn rng(seed: u64) -> Xoshiro256PlusPlus {
    Xoshiro256PlusPlus::seed_from_u64(seed)
}

/// Returns an address of a small pool, so that rules match.
fn address(rng: &mut impl Rng, is_v6: bool) -> IpAddr {
    let host = rng.random_range(0..64u32);
    match is_v6 {
        false => Ipv4Addr::from_bits(0x0a00_0000 | host).into(),
        true => Ipv6Addr::from_bits((0x2001_0db8 << 96) | u128::from(host)).into(),
    }
}

pub(crate) fn rows(rng: &mut impl Rng, count: usize, v6_share: f64, null_share: f64) -> Vec<Row> {
    let row = |_| {
        let is_v6 = rng.random_bool(v6_share);
        let mut null = || rng.random_bool(null_share);
        let nulls = [null(), null(), null(), null(), null()];
        Row {
            src: (!nulls[0]).then(|| address(rng, is_v6)),
            dst: (!nulls[1]).then(|| address(rng, is_v6)),
            sport: (!nulls[2]).then(|| rng.random_range(0..100)),
            dport: (!nulls[3]).then(|| rng.random_range(0..100)),
            proto: (!nulls[4]).then(|| [6, 17, 1][rng.random_range(0..3)]),
        }
    };
    (0..count).map(row).collect()
}

fn net(address: IpAddr, host_bits: u8) -> IpNet {
    match address {
        IpAddr::V4(address) => Ipv4Net::new(address, 32 - host_bits)
            .unwrap()
            .trunc()
            .into(),
        IpAddr::V6(address) => Ipv6Net::new(address, 128 - host_bits)
            .unwrap()
            .trunc()
            .into(),
    }
}

/// Fills a policy with random rules, whose actions are `a0` to `a4`.
pub(crate) fn random_policy(rng: &mut impl Rng, mut policy: Policy, families: &[bool]) -> Policy {
    for index in 0..5 {
        policy.declare_action(&format!("a{index}"));
    }
    for id in 0..120 {
        let mut rule = PolicyRule::new(id * 3)
            .priority(rng.random_range(0..40))
            .action(ActionId(rng.random_range(0..5)))
            .cookie(u64::from(id) << 33);
        let is_v6 = families[rng.random_range(0..families.len())];
        if rng.random_bool(0.7) {
            rule = rule.field("src", net(address(rng, is_v6), rng.random_range(0..6)));
        }
        if rng.random_bool(0.7) {
            rule = rule.field("dst", net(address(rng, is_v6), rng.random_range(0..6)));
        }
        if rng.random_bool(0.5) {
            let low: u16 = rng.random_range(0..100);
            rule = rule.field("dport", low..=low + rng.random_range(0..20));
        }
        if rng.random_bool(0.2) {
            rule = rule.field("sport", rng.random_range(0..50u16)..=60);
        }
        if rng.random_bool(0.5) {
            rule = rule.field("proto", [6u8, 17, 1][rng.random_range(0..3)]);
        }
        policy.add_rule(&rule).unwrap();
    }
    policy
}

fn v4(address: Option<IpAddr>) -> Option<u32> {
    address.map(|address| match address {
        IpAddr::V4(address) => address.to_bits(),
        IpAddr::V6(address) => panic!("{address}"),
    })
}

fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    }
}

pub(crate) fn fixed(values: &[Option<IpAddr>], size: usize) -> ArrayRef {
    let mut builder = FixedSizeBinaryBuilder::new(i32::try_from(size).unwrap());
    for value in values {
        match value {
            Some(address) => builder.append_value(octets(*address)).unwrap(),
            None => builder.append_null(),
        }
    }
    Arc::new(builder.finish())
}

/// The number of types of [`any_address`].
pub(crate) const ANY_ADDRESS_TYPES: usize = 7;

/// Returns addresses as one of the types that have both families.
pub(crate) fn any_address(values: &[Option<IpAddr>], kind: usize) -> ArrayRef {
    let texts: Vec<Option<String>> = values
        .iter()
        .map(|value| value.map(|address| address.to_string()))
        .collect();
    let texts = || texts.iter().map(Option::as_deref);
    let bytes: Vec<Option<Vec<u8>>> = values.iter().map(|value| value.map(octets)).collect();
    let bytes = || bytes.iter().map(Option::as_deref);
    match kind {
        0 => Arc::new(texts().collect::<StringArray>()),
        1 => Arc::new(texts().collect::<LargeStringArray>()),
        2 => Arc::new(texts().collect::<StringViewArray>()),
        3 => Arc::new(bytes().collect::<BinaryArray>()),
        4 => Arc::new(bytes().collect::<LargeBinaryArray>()),
        5 => Arc::new(bytes().collect::<BinaryViewArray>()),
        6 => {
            let mut builder = StringDictionaryBuilder::<UInt16Type>::new();
            builder.append_value("no address");
            texts().for_each(|text| builder.append_option(text));
            let array = builder.finish();
            Arc::new(array.slice(1, values.len()))
        }
        _ => unreachable!("{kind}"),
    }
}

/// Returns IPv4 addresses as each type that has only one family.
pub(crate) fn v4_addresses(values: &[Option<IpAddr>]) -> Vec<ArrayRef> {
    let numbers: Vec<Option<u32>> = values.iter().map(|&value| v4(value)).collect();
    let numbers = || numbers.iter().copied();
    let dictionary = Arc::new(UInt32Array::from_iter_values(
        (0..64).map(|host| 0x0a00_0000 | host),
    ));
    let keys: Int8Array = numbers()
        .map(|number| number.map(|n| i8::try_from(n & 63).unwrap()))
        .collect();
    vec![
        Arc::new(numbers().collect::<UInt32Array>()),
        Arc::new(
            numbers()
                .map(|n| n.map(i32::try_from).map(Result::unwrap))
                .collect::<Int32Array>(),
        ),
        Arc::new(numbers().map(|n| n.map(u64::from)).collect::<UInt64Array>()),
        Arc::new(numbers().map(|n| n.map(i64::from)).collect::<Int64Array>()),
        Arc::new(DictionaryArray::<Int8Type>::new(keys, dictionary)),
        Arc::new(
            numbers()
                .map(|n| n.map(|n| n.to_string()))
                .collect::<StringArray>(),
        ),
        fixed(values, 4),
    ]
}

fn numbers(values: &[Option<u16>], kind: usize) -> ArrayRef {
    let values = values.iter().copied();
    match kind % 7 {
        0 => Arc::new(values.collect::<UInt16Array>()),
        1 => Arc::new(
            values
                .map(|v| v.map(|v| i16::try_from(v).unwrap()))
                .collect::<Int16Array>(),
        ),
        2 => Arc::new(values.map(|v| v.map(i32::from)).collect::<Int32Array>()),
        3 => Arc::new(values.map(|v| v.map(u64::from)).collect::<UInt64Array>()),
        4 => Arc::new(
            values
                .map(|v| v.map(|v| v.to_string()))
                .collect::<StringViewArray>(),
        ),
        5 => Arc::new(
            values
                .map(|v| v.map(|v| u8::try_from(v).unwrap()))
                .collect::<UInt8Array>(),
        ),
        _ => Arc::new(
            values
                .map(|v| v.map(|v| i8::try_from(v).unwrap()))
                .collect::<Int8Array>(),
        ),
    }
}

fn protocols(rows: &[Row], kind: usize) -> ArrayRef {
    let name = |proto: u8| match proto {
        6 => "tcp",
        17 => "UDP",
        _ => "icmp",
    };
    let values = rows.iter().map(|row| row.proto);
    match kind % 3 {
        0 => Arc::new(values.map(|proto| proto.map(name)).collect::<StringArray>()),
        1 => {
            let mut builder = StringDictionaryBuilder::<Int8Type>::new();
            values.for_each(|proto| builder.append_option(proto.map(name)));
            Arc::new(builder.finish())
        }
        _ => Arc::new(values.collect::<UInt8Array>()),
    }
}

pub(crate) fn batch(rows: &[Row], src: ArrayRef, dst: ArrayRef, kind: usize) -> RecordBatch {
    let sport: Vec<_> = rows.iter().map(|row| row.sport).collect();
    let dport: Vec<_> = rows.iter().map(|row| row.dport).collect();
    RecordBatch::try_from_iter([
        ("src", src),
        ("dst", dst),
        ("sport", numbers(&sport, kind)),
        ("dport", numbers(&dport, kind / 2 + 1)),
        ("proto", protocols(rows, kind)),
        (
            "bytes",
            Arc::new(Float64Array::from(vec![0.5; rows.len()])) as ArrayRef,
        ),
    ])
    .unwrap()
}

pub(crate) fn addresses(rows: &[Row]) -> (Vec<Option<IpAddr>>, Vec<Option<IpAddr>>) {
    rows.iter().map(|row| (row.src, row.dst)).unzip()
}
