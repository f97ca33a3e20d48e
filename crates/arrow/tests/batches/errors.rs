//! Nulls, missing columns, constants, presets and wrong columns.

use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;

use arrow_array::builder::FixedSizeBinaryBuilder;
use arrow_array::types::Int8Type;
use arrow_array::{
    Array, ArrayRef, BinaryArray, BooleanArray, DictionaryArray, Float64Array, Int8Array,
    Int32Array, Int64Array, NullArray, RecordBatch, StringArray, UInt8Array, UInt16Array,
    UInt32Array, UInt64Array,
};
use classyard::prelude::*;
use classyard_arrow::{BatchError, Constant, Family, HeaderFields, Headers, Mapping};
use ipnet::IpNet;

use crate::classify;
use crate::rows::fixed;

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
fn numbers_that_do_not_fit_are_errors_with_column_and_row() {
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
}

#[test]
fn wrong_types_and_texts_are_errors() {
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
