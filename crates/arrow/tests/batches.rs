//! Record batches of every type of column, compared with lookups of single headers by
//! `linear`.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use arrow_array::builder::{FixedSizeBinaryBuilder, StringDictionaryBuilder};
use arrow_array::types::{Int8Type, Int32Type, UInt16Type};
use arrow_array::{
    Array, ArrayRef, BinaryArray, BinaryViewArray, BooleanArray, DictionaryArray, Float64Array,
    Int8Array, Int16Array, Int32Array, Int64Array, LargeBinaryArray, LargeStringArray, NullArray,
    RecordBatch, StringArray, StringViewArray, UInt8Array, UInt16Array, UInt32Array, UInt64Array,
};
use classyard::prelude::*;
use classyard::{Limits, NoProgress};
use classyard_arrow::{
    BatchError, BuiltPolicy, Constant, Family, HeaderFields, Headers, Mapping, Output, Winners,
};
use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use rand::{Rng, RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// A header, with nulls.
#[derive(Clone, Copy, Debug)]
struct Row {
    src: Option<IpAddr>,
    dst: Option<IpAddr>,
    sport: Option<u16>,
    dport: Option<u16>,
    proto: Option<u8>,
}

fn rng(seed: u64) -> Xoshiro256PlusPlus {
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

fn rows(rng: &mut impl Rng, count: usize, v6_share: f64, null_share: f64) -> Vec<Row> {
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
fn random_policy(rng: &mut impl Rng, mut policy: Policy, families: &[bool]) -> Policy {
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

fn build(policy: &Policy, engine: &str) -> PolicyClassifier {
    let spec = EngineSpec::parse(engine).unwrap();
    policy
        .build(&spec, &Limits::default(), &mut NoProgress)
        .unwrap()
}

/// The results of a row: `None` if it has no header.
type Expected = Option<Option<(u32, u32, u64)>>;

fn expected(policy: &Policy, linear: &PolicyClassifier, row: &Row) -> Expected {
    let header = FiveTuple::new(row.src?, row.dst?, row.sport?, row.dport?, row.proto?);
    let verdict = linear.classify_header(&header.expect("one family"))?;
    Some(policy.decision(verdict).map(|decision| {
        let rule = policy.part(verdict.part).get(decision.rule).unwrap();
        (decision.rule.get(), decision.action.0, rule.cookie())
    }))
}

fn check(policy: &Policy, batch: &RecordBatch, rows: &[Row], mapping: &Mapping, what: &str) {
    let linear = build(policy, "linear");
    let forest = build(policy, "forest");
    let rules = BuiltPolicy {
        policy,
        classifier: &forest,
    };
    let headers = Headers::read(batch, mapping, &HeaderFields::of(policy));
    let headers = headers.unwrap_or_else(|error| panic!("{what}: {error}"));
    let winners = headers.classify(&rules, 1);
    let names: Vec<String> = (0..5).map(|index| format!("a{index}")).collect();
    let results = winners.to_batch(&rules, &names, &Output::ALL);
    assert_eq!(results.num_rows(), rows.len(), "{what}");
    let (matched, ids) = (winners.matched(), winners.rules());
    let (actions, cookies) = (winners.action_ids(&rules), winners.cookies(&rules));
    let names = results.column_by_name("action").unwrap();
    let names = names
        .as_any()
        .downcast_ref::<DictionaryArray<Int32Type>>()
        .unwrap();
    let names = names.downcast_dict::<StringArray>().unwrap();
    for (index, row) in rows.iter().enumerate() {
        let expected = expected(policy, &linear, row);
        let what = format!("{what}, row {index}: {row:?}");
        let is_match = matched.is_valid(index).then(|| matched.value(index));
        assert_eq!(is_match, expected.map(|winner| winner.is_some()), "{what}");
        let winner = ids
            .is_valid(index)
            .then(|| (ids.value(index), actions.value(index), cookies.value(index)));
        assert_eq!(winner, expected.flatten(), "{what}");
        assert_eq!(actions.is_valid(index), winner.is_some(), "{what}");
        let name = (&names).into_iter().nth(index).unwrap();
        assert_eq!(
            name,
            winner.map(|(_, action, _)| format!("a{action}")).as_deref(),
            "{what}"
        );
    }
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

fn fixed(values: &[Option<IpAddr>], size: usize) -> ArrayRef {
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
const ANY_ADDRESS_TYPES: usize = 7;

/// Returns addresses as one of the types that have both families.
fn any_address(values: &[Option<IpAddr>], kind: usize) -> ArrayRef {
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
fn v4_addresses(values: &[Option<IpAddr>]) -> Vec<ArrayRef> {
    let numbers: Vec<Option<u32>> = values.iter().map(|&value| v4(value)).collect();
    let numbers = || numbers.iter().copied();
    let dictionary = Arc::new(UInt32Array::from_iter_values(
        (0..64).map(|host| 0x0a00_0000 | host),
    ));
    let keys: Int8Array = numbers()
        .map(|number| number.map(|n| (n & 63) as i8))
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
        1 => Arc::new(values.map(|v| v.map(|v| v as i16)).collect::<Int16Array>()),
        2 => Arc::new(values.map(|v| v.map(i32::from)).collect::<Int32Array>()),
        3 => Arc::new(values.map(|v| v.map(u64::from)).collect::<UInt64Array>()),
        4 => Arc::new(
            values
                .map(|v| v.map(|v| v.to_string()))
                .collect::<StringViewArray>(),
        ),
        5 => Arc::new(values.map(|v| v.map(|v| v as u8)).collect::<UInt8Array>()),
        _ => Arc::new(values.map(|v| v.map(|v| v as i8)).collect::<Int8Array>()),
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

fn batch(rows: &[Row], src: ArrayRef, dst: ArrayRef, kind: usize) -> RecordBatch {
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

fn addresses(rows: &[Row]) -> (Vec<Option<IpAddr>>, Vec<Option<IpAddr>>) {
    rows.iter().map(|row| (row.src, row.dst)).unzip()
}

#[test]
fn every_type_of_ipv4_addresses_with_and_without_nulls() {
    let mut rng = rng(1);
    let policy = random_policy(&mut rng, Policy::single(&Schema::ipv4_5tuple()), &[false]);
    for null_share in [0.0, 0.1] {
        let rows = rows(&mut rng, 700, 0.0, null_share);
        let (src, dst) = addresses(&rows);
        let any = |values: &[Option<IpAddr>]| -> Vec<ArrayRef> {
            let any = (0..ANY_ADDRESS_TYPES).map(|kind| any_address(values, kind));
            v4_addresses(values).into_iter().chain(any).collect()
        };
        let (src, dst) = (any(&src), any(&dst));
        let others = dst.iter().cycle().skip(3);
        for (kind, (src, dst)) in src.iter().zip(others).enumerate() {
            let what = format!(
                "{} and {}, nulls {null_share}",
                src.data_type(),
                dst.data_type()
            );
            let batch = batch(&rows, Arc::clone(src), Arc::clone(dst), kind);
            check(&policy, &batch, &rows, &Mapping::by_name(), &what);
            // A slice, and an empty slice.
            let slice = batch.slice(133, 400);
            check(&policy, &slice, &rows[133..533], &Mapping::by_name(), &what);
            check(&policy, &batch.slice(5, 0), &[], &Mapping::by_name(), &what);
        }
    }
}

#[test]
fn rows_of_two_families_belong_to_their_parts() {
    let mut rng = rng(2);
    for policy in [Policy::dual_stack(), Policy::acl()] {
        let policy = random_policy(&mut rng, policy, &[false, true]);
        let has_acl_fields = policy.name() == Policy::ACL;
        for (kind, null_share) in (0..ANY_ADDRESS_TYPES).flat_map(|kind| [(kind, 0.0), (kind, 0.1)])
        {
            for v6_share in [0.0, 0.4, 1.0] {
                let rows = rows(&mut rng, 400, v6_share, null_share);
                let (src, dst) = addresses(&rows);
                let src = any_address(&src, kind);
                let dst = any_address(&dst, (kind + 2) % ANY_ADDRESS_TYPES);
                let batch = batch(&rows, src, dst, kind);
                let what = format!("kind {kind}, IPv6 {v6_share}, nulls {null_share}");
                if has_acl_fields {
                    check_acl(&policy, &batch, &rows, &what);
                } else {
                    check(&policy, &batch, &rows, &Mapping::by_name(), &what);
                }
            }
        }
    }
}

/// Like [`check`], for a policy over the fields of firewall rules: a five-tuple has no header
/// of these, so the rules are looked up as five-tuples.
fn check_acl(policy: &Policy, batch: &RecordBatch, rows: &[Row], what: &str) {
    let linear = build(policy, "linear");
    let rules = BuiltPolicy {
        policy,
        classifier: &linear,
    };
    let winners = classify(policy, batch, &Mapping::by_name()).unwrap();
    assert_eq!(
        winners.to_batch(&rules, &[], &Output::ALL).num_rows(),
        rows.len()
    );
    for (index, row) in rows.iter().enumerate() {
        let text = match row {
            Row {
                src: Some(src),
                dst: Some(dst),
                sport: Some(sport),
                dport: Some(dport),
                proto: Some(proto),
            } => {
                format!("src={src} dst={dst} sport={sport} dport={dport} proto={proto}")
            }
            _ => {
                assert!(
                    winners.headers().unwrap().is_null(index),
                    "{what}, row {index}"
                );
                continue;
            }
        };
        let (part, header) = policy.parse_header(&text).unwrap();
        let mut keys = KeyVec::new(policy.part(part).schema());
        keys.push(&header.values).unwrap();
        let expected = linear.part(part).classify_one(keys.key(0));
        assert_eq!(
            winners.winners()[index],
            expected,
            "{what}, row {index}: {text}"
        );
    }
}

fn classify(
    policy: &Policy,
    batch: &RecordBatch,
    mapping: &Mapping,
) -> Result<Winners, BatchError> {
    let classifier = build(policy, "forest");
    let rules = BuiltPolicy {
        policy,
        classifier: &classifier,
    };
    let headers = Headers::read(batch, mapping, &HeaderFields::of(policy))?;
    Ok(headers.classify(&rules, 1))
}

#[test]
fn integers_of_one_part_are_not_copied() {
    let mut rng = rng(3);
    let policy = random_policy(&mut rng, Policy::dual_stack(), &[false, true]);
    let fields = HeaderFields::of(&policy);
    let rows = rows(&mut rng, 50, 0.0, 0.0);
    let (src, dst) = addresses(&rows);
    for src in v4_addresses(&src) {
        let is_shared = matches!(
            src.data_type().to_string().as_str(),
            "UInt32" | "Int32" | "UInt64" | "Int64" | "FixedSizeBinary(4)"
        );
        let batch = batch(&rows, src, fixed(&dst, 4), 0);
        let headers = Headers::read(&batch, &Mapping::by_name(), &fields).unwrap();
        assert!(headers.is_without_copies() || !is_shared);
    }
    let mut with_null = src.clone();
    with_null[7] = None;
    let batch = batch(&rows, fixed(&with_null, 4), fixed(&dst, 4), 0);
    let headers = Headers::read(&batch, &Mapping::by_name(), &fields).unwrap();
    assert!(!headers.is_without_copies());
}

#[test]
fn several_threads_find_the_same_winners() {
    let mut rng = rng(4);
    let policy = random_policy(&mut rng, Policy::dual_stack(), &[false, true]);
    let rows = rows(&mut rng, 40_000, 0.3, 0.01);
    let (src, dst) = addresses(&rows);
    let batch = batch(&rows, any_address(&src, 3), any_address(&dst, 3), 0);
    let (_writer, table) = EngineSpec::parse("forest")
        .unwrap()
        .builder()
        .policy_table(&policy)
        .unwrap();
    let mut reader = table.reader();
    let guard = reader.pin();
    let read = || Headers::read(&batch, &Mapping::by_name(), &HeaderFields::of(&policy)).unwrap();
    let one = read().classify(&*guard, 1);
    for threads in [0, 2, 3, 100] {
        let several = read().classify(&*guard, threads);
        assert_eq!(several.winners(), one.winners());
        assert_eq!(several.action_ids(&*guard), one.action_ids(&*guard));
    }
}

/// A policy with one rule for each field, so that all are needed.
fn strict(mut policy: Policy) -> Policy {
    let deny = policy.declare_action("deny");
    let rule = PolicyRule::new(1)
        .field("sport", 1u16..=65535)
        .field("dport", 80u16)
        .action(deny);
    policy.add_rule(&rule.field("proto", 6u8)).unwrap();
    let net: IpNet = "10.0.0.0/8".parse().unwrap();
    policy
        .add_rule(&PolicyRule::new(2).field("src", net).field("dst", net))
        .unwrap();
    policy
}

fn columns(changes: Vec<(&str, ArrayRef)>) -> RecordBatch {
    let address: ArrayRef = Arc::new(UInt32Array::from(vec![0x0a00_0001, 0x0a00_0002]));
    let port: ArrayRef = Arc::new(Int32Array::from(vec![80, 81]));
    let proto: ArrayRef = Arc::new(UInt8Array::from(vec![6, 6]));
    let mut columns = vec![
        ("src", Arc::clone(&address)),
        ("dst", address),
        ("sport", Arc::clone(&port)),
        ("dport", port),
        ("proto", proto),
    ];
    for (name, array) in changes {
        match columns.iter_mut().find(|(column, _)| *column == name) {
            Some(column) => column.1 = array,
            None => columns.push((name, array)),
        }
    }
    RecordBatch::try_from_iter(columns).unwrap()
}

fn error(changes: Vec<(&str, ArrayRef)>) -> BatchError {
    let policy = strict(Policy::dual_stack());
    classify(&policy, &columns(changes), &Mapping::by_name()).unwrap_err()
}

#[test]
fn bad_columns_are_errors_with_column_and_row() {
    let found = error(vec![("dport", Arc::new(Int32Array::from(vec![80, -81])))]);
    assert!(matches!(&found, BatchError::BadValue { column, row: 1, .. } if column == "dport"));
    assert!(found.to_string().contains("negative number -81"), "{found}");
    assert_eq!((found.column(), found.row()), (Some("dport"), Some(1)));
    assert_eq!(found.after_rows(10).row(), Some(11));

    let found = error(vec![(
        "dport",
        Arc::new(Int32Array::from(vec![70_000, 81])),
    )]);
    assert!(
        matches!(
            &found,
            BatchError::TooLarge {
                row: 0,
                value: 70_000,
                width: 16,
                ..
            }
        ),
        "{found}"
    );
    let found = error(vec![("src", Arc::new(UInt64Array::from(vec![1, 1 << 32])))]);
    assert!(
        matches!(
            &found,
            BatchError::TooLarge {
                row: 1,
                width: 32,
                ..
            }
        ),
        "{found}"
    );
    // The row of the batch, not of the rows without nulls.
    let ports = Int64Array::from(vec![None, Some(65_536)]);
    let found = error(vec![("dport", Arc::new(ports))]);
    assert_eq!(found.row(), Some(1), "{found}");

    for wrong in [
        Arc::new(Float64Array::from(vec![1.0, 2.0])) as ArrayRef,
        Arc::new(BooleanArray::from(vec![true, false])),
        Arc::new(BinaryArray::from(vec![&b"\x00\x50"[..], b"\x00\x51"])),
    ] {
        let found = error(vec![("dport", Arc::clone(&wrong))]);
        let BatchError::WrongType {
            column,
            found: kind,
            ..
        } = &found
        else {
            panic!("{found}");
        };
        assert_eq!((column.as_str(), &**kind), ("dport", wrong.data_type()));
    }
    let found = error(vec![("src", fixed_of_size_6())]);
    assert!(
        found.to_string().contains("binary values of 4 or 16 bytes"),
        "{found}"
    );
    let texts = StringArray::from(vec!["10.0.0.1", "10.0.0.256"]);
    let found = error(vec![("src", Arc::new(texts))]);
    assert!(
        found
            .to_string()
            .contains("column `src`, row 1: `10.0.0.256`"),
        "{found}"
    );
    let bytes = BinaryArray::from(vec![&[10, 0, 0, 1][..], &[1, 2]]);
    let found = error(vec![("src", Arc::new(bytes))]);
    assert!(found.to_string().contains("row 1: `2 bytes`"), "{found}");
    let names = StringArray::from(vec!["tcp", "tpc"]);
    let found = error(vec![("proto", Arc::new(names))]);
    assert!(
        found
            .to_string()
            .contains("row 1: `tpc`; expected a protocol name"),
        "{found}"
    );
}

fn fixed_of_size_6() -> ArrayRef {
    let mut builder = FixedSizeBinaryBuilder::new(6);
    builder.append_value([0; 6]).unwrap();
    builder.append_value([0; 6]).unwrap();
    Arc::new(builder.finish())
}

#[test]
fn negative_numbers_under_nulls_are_no_errors() {
    let values = vec![80, -5].into();
    let nulls = vec![true, false].into();
    let ports = Int32Array::new(values, Some(nulls));
    let policy = strict(Policy::dual_stack());
    let batch = columns(vec![("dport", Arc::new(ports))]);
    let winners = classify(&policy, &batch, &Mapping::by_name()).unwrap();
    assert_eq!(winners.rules().iter().collect::<Vec<_>>(), [Some(1), None]);
    assert_eq!(
        winners.matched().iter().collect::<Vec<_>>(),
        [Some(true), None]
    );
}

#[test]
fn a_column_of_nulls_and_a_dictionary_without_values() {
    let policy = strict(Policy::dual_stack());
    let empty = DictionaryArray::<Int8Type>::new(
        Int8Array::from(vec![None, None]),
        Arc::new(StringArray::from(Vec::<&str>::new())),
    );
    for nulls in [Arc::new(NullArray::new(2)) as ArrayRef, Arc::new(empty)] {
        for field in ["src", "proto"] {
            let batch = columns(vec![(field, Arc::clone(&nulls))]);
            let winners = classify(&policy, &batch, &Mapping::by_name()).unwrap();
            assert_eq!(winners.matched().null_count(), 2, "{field}");
            assert_eq!(winners.other_family_rows(), 0);
        }
    }
    // Nulls among the values of the dictionary.
    let values = StringArray::from(vec![Some("tcp"), None]);
    let keys = Int8Array::from(vec![1, 0]);
    let proto = DictionaryArray::<Int8Type>::new(keys, Arc::new(values));
    let batch = columns(vec![("proto", Arc::new(proto))]);
    let winners = classify(&policy, &batch, &Mapping::by_name()).unwrap();
    assert_eq!(
        winners.matched().iter().collect::<Vec<_>>(),
        [None, Some(true)]
    );
}

#[test]
fn addresses_of_two_families_in_a_row_are_an_error() {
    let mixed: ArrayRef = Arc::new(StringArray::from(vec!["10.0.0.1", "2001:db8::1"]));
    for policy in [Policy::dual_stack(), Policy::single(&Schema::ipv4_5tuple())] {
        let policy = strict(policy);
        let batch = columns(vec![("src", Arc::clone(&mixed))]);
        let found = classify(&policy, &batch, &Mapping::by_name()).unwrap_err();
        let BatchError::MixedFamilies {
            row: 1,
            first,
            first_family: Family::V6,
            second,
            ..
        } = &found
        else {
            panic!("{found}");
        };
        assert_eq!((first.as_str(), second.as_str()), ("src", "dst"));
        let v6 = [Some(IpAddr::from(Ipv6Addr::LOCALHOST)); 2];
        let batch = columns(vec![("src", fixed(&v6, 16))]);
        let found = classify(&policy, &batch, &Mapping::by_name()).unwrap_err();
        assert_eq!(found.row(), Some(0), "{found}");
    }
}

#[test]
fn rows_of_another_family_have_no_header_and_are_counted() {
    let policy = strict(Policy::single(&Schema::ipv4_5tuple()));
    let mixed: ArrayRef = Arc::new(StringArray::from(vec!["10.0.0.1", "2001:db8::1"]));
    let v6: ArrayRef = Arc::new(StringArray::from(vec!["2001:db8::1"; 2]));
    for (addresses, matched, count) in [(mixed, [Some(true), None], 1), (v6, [None, None], 2)] {
        let batch = columns(vec![("src", Arc::clone(&addresses)), ("dst", addresses)]);
        let winners = classify(&policy, &batch, &Mapping::by_name()).unwrap();
        assert_eq!(winners.matched().iter().collect::<Vec<_>>(), matched);
        assert_eq!(winners.other_family_rows(), count);
    }
}

#[test]
fn missing_columns_are_errors_unless_no_rule_depends_on_them() {
    let policy = strict(Policy::dual_stack());
    let batch = columns(vec![]).project(&[0, 1, 2, 4]).unwrap();
    let found = classify(&policy, &batch, &Mapping::by_name()).unwrap_err();
    let message = found.to_string();
    assert!(
        message.contains("field `dport`: no column `dport`"),
        "{message}"
    );
    assert!(
        message.contains("`src`, `dst`, `sport`, `proto`"),
        "{message}"
    );
    let mapping = Mapping::by_name().constant("dport", 80);
    let winners = classify(&policy, &batch, &mapping).unwrap();
    assert_eq!(
        winners.rules().iter().collect::<Vec<_>>(),
        [Some(1), Some(1)]
    );

    let mut ports_only = Policy::dual_stack();
    ports_only
        .add_rule(&PolicyRule::new(5).field("dport", 81u16))
        .unwrap();
    let batch = columns(vec![]);
    let winners = classify(
        &ports_only,
        &batch.project(&[0, 3]).unwrap(),
        &Mapping::by_name(),
    );
    assert_eq!(
        winners.unwrap().rules().iter().collect::<Vec<_>>(),
        [None, Some(5)]
    );
    // The part of the rows is unknown without addresses.
    let found = classify(
        &ports_only,
        &batch.project(&[3]).unwrap(),
        &Mapping::by_name(),
    );
    assert!(matches!(found, Err(BatchError::NoAddress { .. })));
    // A column that the caller named must exist.
    let mapping = Mapping::by_name().column("sport", "port");
    let found = classify(&ports_only, &batch, &mapping).unwrap_err();
    assert!(matches!(&found, BatchError::MissingColumn { field, .. } if field == "sport"));
    let found = classify(&ports_only, &batch, &Mapping::by_name().constant("prot", 6)).unwrap_err();
    assert!(matches!(&found, BatchError::UnknownField { field, .. } if field == "prot"));
    // A rule that is added later may need a field.
    let mut fields = HeaderFields::of(&ports_only);
    let forms: Vec<_> = policy.rule(RuleId::new(1).unwrap()).collect();
    forms
        .iter()
        .for_each(|(part, rule)| fields.add_rule(*part, *rule));
    let batch = batch.project(&[0, 1, 3]).unwrap();
    assert!(Headers::read(&batch, &Mapping::by_name(), &fields).is_err());
}

#[test]
fn constants_are_checked() {
    let policy = strict(Policy::dual_stack());
    let winners = |field, constant: Constant| {
        classify(
            &policy,
            &columns(vec![]),
            &Mapping::by_name().constant(field, constant),
        )
    };
    let tcp = winners("proto", "tcp".into()).unwrap();
    assert_eq!(tcp.rules().iter().collect::<Vec<_>>(), [Some(1), Some(2)]);
    for (field, constant) in [
        ("proto", Constant::from("tpc")),
        ("proto", Constant::from(256)),
        ("src", Constant::from(1 << 32)),
        ("src", Constant::from("10.0.0.0/8")),
    ] {
        let found = winners(field, constant).unwrap_err();
        assert!(matches!(found, BatchError::BadConstant { .. }), "{found}");
    }
    // An IPv6 constant with IPv4 columns.
    let found = winners("src", "::1".into()).unwrap_err();
    assert!(
        matches!(found, BatchError::MixedFamilies { row: 0, .. }),
        "{found}"
    );
}

#[test]
fn presets_of_flow_logs() {
    let policy = strict(Policy::dual_stack());
    let text = |values: [&str; 2]| Arc::new(StringArray::from(values.to_vec())) as ArrayRef;
    let vpc = RecordBatch::try_from_iter([
        ("srcaddr", text(["10.0.0.1", "-"])),
        ("dstaddr", text(["11.0.0.1", "-"])),
        ("srcport", text(["1000", "-"])),
        ("dstport", text(["80", "-"])),
        ("protocol", text(["6", "-"])),
    ]);
    let winners = classify(&policy, &vpc.unwrap(), &Mapping::preset("vpc").unwrap()).unwrap();
    assert_eq!(winners.rules().iter().collect::<Vec<_>>(), [Some(1), None]);
    assert_eq!(winners.headers().unwrap().null_count(), 1);

    let addresses: ArrayRef = Arc::new(UInt32Array::from(vec![Some(0x0a00_0001), None]));
    let v6 = [None, Some(IpAddr::from(Ipv6Addr::LOCALHOST))];
    let ipfix = RecordBatch::try_from_iter([
        ("sourceIPv4Address", Arc::clone(&addresses)),
        ("destinationIPv4Address", addresses),
        ("sourceIPv6Address", fixed(&v6, 16)),
        ("destinationIPv6Address", fixed(&v6, 16)),
        ("sourceTransportPort", text(["5", "5"])),
        ("destinationTransportPort", text(["80", "80"])),
        ("protocolIdentifier", text(["17", "6"])),
    ]);
    let winners = classify(&policy, &ipfix.unwrap(), &Mapping::preset("ipfix").unwrap()).unwrap();
    assert_eq!(
        winners.rules().iter().collect::<Vec<_>>(),
        [Some(2), Some(1)]
    );
    for name in Mapping::PRESETS {
        assert!(Mapping::preset(name).is_some(), "{name}");
    }
    assert_eq!(Mapping::preset("pcap"), None);
}

#[test]
fn icmp_of_flow_logs_has_no_ports() {
    let mut policy = Policy::dual_stack();
    policy
        .add_rule(&PolicyRule::new(1).priority(2).field("dport", 1u16..=65535))
        .unwrap();
    policy
        .add_rule(&PolicyRule::new(2).field("proto", 58u8))
        .unwrap();
    policy
        .add_rule(&PolicyRule::new(3).field("proto", 1u8))
        .unwrap();
    let text = |values: [&str; 3]| Arc::new(StringArray::from(values.to_vec())) as ArrayRef;
    let ports = || Arc::new(UInt16Array::from(vec![3, 136, 80])) as ArrayRef;
    let zeek = RecordBatch::try_from_iter([
        (
            "id.orig_h",
            text(["10.0.0.1", "2001:db8::1", "2001:db8::1"]),
        ),
        ("id.orig_p", ports()),
        (
            "id.resp_h",
            text(["10.0.0.2", "2001:db8::2", "2001:db8::2"]),
        ),
        ("id.resp_p", ports()),
        ("proto", text(["icmp", "icmp", "tcp"])),
    ])
    .unwrap();
    let winners = classify(&policy, &zeek, &Mapping::preset("zeek").unwrap()).unwrap();
    assert_eq!(
        winners.rules().iter().collect::<Vec<_>>(),
        [Some(3), Some(2), Some(1)]
    );
    // Without the protocol, the meaning of the ports is unknown.
    let mut ports_only = Policy::dual_stack();
    ports_only
        .add_rule(&PolicyRule::new(1).field("dport", 80u16))
        .unwrap();
    let without = zeek.project(&[0, 1, 2, 3]).unwrap();
    let found = classify(&ports_only, &without, &Mapping::preset("zeek").unwrap()).unwrap_err();
    assert!(
        matches!(&found, BatchError::MissingColumn { field, .. } if field == "proto"),
        "{found}"
    );
}
