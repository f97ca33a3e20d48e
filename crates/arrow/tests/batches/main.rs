//! Record batches of every type of column, compared with lookups of single headers by
//! `linear`.

mod dictionaries;
mod errors;
mod rows;

use std::net::IpAddr;
use std::sync::Arc;

use arrow_array::types::Int32Type;
use arrow_array::{Array, ArrayRef, DictionaryArray, RecordBatch, StringArray};
use classyard::prelude::*;
use classyard::{Limits, NoProgress, RuleId};
use classyard_arrow::{
    BatchError, BuiltPolicy, HeaderFields, Headers, Mapping, NO_RULE, Output, Winners,
};

use rows::{
    ANY_ADDRESS_TYPES, Row, addresses, any_address, batch, fixed, random_policy, rng, rows,
    v4_addresses,
};

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
    for (index, row) in rows.iter().enumerate().step_by(17) {
        let has_header = expected(policy, &linear, row).is_some();
        let header = headers.header(index);
        assert_eq!(header.is_some(), has_header, "{what}, row {index}");
        let dport = header.map(|(_, values)| values[3]);
        assert!(dport.is_none_or(|port| Some(port) == row.dport.map(u128::from)));
    }
    assert_eq!(headers.header(rows.len()), None);
    let winners = headers.classify(&rules, &Output::ALL, 1);
    let names: Vec<String> = (0..5).map(|index| format!("a{index}")).collect();
    let results = winners.to_batch(&names, &Output::ALL);
    assert_eq!(results.num_rows(), rows.len(), "{what}");
    let (matched, ids) = (winners.matched(), winners.rules());
    let (actions, cookies) = (winners.action_ids(), winners.cookies());
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
        let name = names.into_iter().nth(index).unwrap();
        assert_eq!(
            name,
            winner.map(|(_, action, _)| format!("a{action}")).as_deref(),
            "{what}"
        );
    }
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
    let winners = classify(policy, batch, &Mapping::by_name()).unwrap();
    assert_eq!(winners.to_batch(&[], &Output::ALL).num_rows(), rows.len());
    let (winning_rules, _) = winners.clone().into_numbers();
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
            winning_rules[index],
            expected.rule().map_or(NO_RULE, RuleId::get),
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
    Ok(headers.classify(&rules, &Output::ALL, 1))
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
    let one = read().classify(&*guard, &Output::ALL, 1);
    for threads in [0, 2, 3, 100] {
        let several = read().classify(&*guard, &Output::ALL, threads);
        assert_eq!(several, one);
    }
    // Only the columns that are requested are computed.
    let (rules, actions) = one.into_numbers();
    let without_actions = read().classify(&*guard, &[Output::Cookie], 2);
    assert_eq!(without_actions.into_numbers(), (rules, Vec::new()));
    assert_eq!(actions.len(), 40_000);
}
