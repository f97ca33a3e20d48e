//! Dictionaries that are converted once, compared with dictionaries of each batch.

use std::net::IpAddr;
use std::sync::Arc;

use arrow_array::types::Int32Type;
use arrow_array::{Array, ArrayRef, DictionaryArray, Int32Array, RecordBatch, StringArray};
use arrow_schema::DataType;
use classyard::prelude::*;
use classyard_arrow::{Dictionaries, HeaderFields, Headers, Mapping, MappingError};
use rand::RngExt;

use crate::rows::{random_policy, rng};

/// Returns random rows of a dictionary.
fn column(rng: &mut impl rand::Rng, dictionary: &ArrayRef, values: i32, rows: usize) -> ArrayRef {
    let key = |_| rng.random_bool(0.9).then(|| rng.random_range(0..values));
    let keys: Int32Array = (0..rows).map(key).collect();
    Arc::new(DictionaryArray::new(keys, Arc::clone(dictionary)))
}

fn texts(values: &[&str]) -> ArrayRef {
    Arc::new(StringArray::from(values.to_vec()))
}

#[test]
fn decoded_dictionaries_give_the_same_headers() {
    let mut rng = rng(31);
    let policy = random_policy(&mut rng, Policy::dual_stack(), &[false, true]);
    let fields = HeaderFields::of(&policy);
    let mapping = Mapping::preset("vpc").unwrap();
    let v4 = ["10.0.0.1", "10.0.0.2", "-", "167772163"];
    let v6 = ["2001:db8::1", "-", "2001:db8::2", "2001:db8::3"];
    let mixed = ["10.0.0.1", "2001:db8::1", "10.0.0.9", "2001:db8::2"];
    let unused = ["10.0.0.1", "-", "10.0.0.3", "10.0.0.4", "not an address"];
    let protocols = texts(&["tcp", "17", "6", "-", "icmp"]);
    for (addresses, decoded_type) in [
        (&v4[..], DataType::UInt32),
        (&v6[..], DataType::FixedSizeBinary(16)),
        (&mixed[..], DataType::Binary),
        (
            &unused[..],
            DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8)),
        ),
    ] {
        let dictionary = texts(addresses);
        let mut dictionaries = Dictionaries::default();
        for _ in 0..3 {
            let src = column(&mut rng, &dictionary, 4, 200);
            // Both addresses of a row are of one family.
            let dst = Arc::clone(&src);
            let ports: ArrayRef = Arc::new(Int32Array::from_iter_values(0..200));
            let batch = RecordBatch::try_from_iter([
                ("srcaddr", src),
                ("dstaddr", dst),
                ("srcport", Arc::clone(&ports)),
                ("dstport", ports),
                ("protocol", column(&mut rng, &protocols, 5, 200)),
            ])
            .unwrap();
            let decoded = dictionaries.decode(&batch, &mapping, &fields);
            assert_eq!(decoded.column(0).data_type(), &decoded_type);
            assert_eq!(decoded.column(4).data_type(), &DataType::UInt8);
            let expected = Headers::read(&batch, &mapping, &fields).unwrap();
            let found = Headers::read(&decoded, &mapping, &fields).unwrap();
            assert!((0..200).all(|row| found.header(row) == expected.header(row)));
            assert!((0..200).any(|row| found.header(row).is_some()));
        }
    }
}

#[test]
fn another_dictionary_is_converted_again_and_bad_values_stay_errors() {
    let mut policy = Policy::dual_stack();
    let rule = PolicyRule::new(1).field("src", "10.0.0.7".parse::<IpAddr>().unwrap());
    policy.add_rule(&rule).unwrap();
    let fields = HeaderFields::of(&policy);
    let mapping = Mapping::by_name();
    let mut dictionaries = Dictionaries::default();
    let mut read = |values: &[&str], keys: Vec<i32>| {
        let column = DictionaryArray::<Int32Type>::new(Int32Array::from(keys), texts(values));
        let batch = RecordBatch::try_from_iter([("src", Arc::new(column) as ArrayRef)]).unwrap();
        let decoded = dictionaries.decode(&batch, &mapping, &fields);
        let headers = Headers::read(&decoded, &mapping, &fields).map_err(|e| e.to_string())?;
        Ok::<_, String>(
            (0..batch.num_rows())
                .map(|row| headers.header(row).unwrap().1[0])
                .collect::<Vec<_>>(),
        )
    };
    assert_eq!(read(&["0.0.0.1", "0.0.0.2"], vec![1, 0]), Ok(vec![2, 1]));
    assert_eq!(read(&["0.0.0.3", "0.0.0.4"], vec![1, 0]), Ok(vec![4, 3]));
    assert_eq!(read(&["0.0.0.5", "bad"], vec![0, 0]), Ok(vec![5, 5]));
    let error = read(&["0.0.0.5", "bad"], vec![0, 0, 1]).unwrap_err();
    assert!(
        error.starts_with("column `src`, row 2: `bad`; expected"),
        "{error}"
    );
}

#[test]
fn mappings_are_parsed() {
    let parse = |text| Mapping::parse(text).map_err(|error| error.to_string());
    let vpc = || Mapping::preset("vpc").unwrap();
    assert_eq!(parse("vpc"), Ok(vpc()));
    assert_eq!(parse("fields"), Ok(Mapping::by_name()));
    assert_eq!(parse("vpc, proto=p"), Ok(vpc().column("proto", "p")));
    let own = Mapping::default()
        .columns("src", &["a", "b"])
        .column("dst", "c d");
    assert_eq!(parse("src=a|b,dst=c d"), Ok(own));
    let constants = Mapping::default()
        .constant("src", "2001:db8::1")
        .constant("proto", 6);
    assert_eq!(parse("src:=2001:db8::1,proto:=6"), Ok(constants));
    assert_eq!(
        (vpc().verdict_column(), Mapping::by_name().verdict_column()),
        (Some("action"), None)
    );
    for (text, message) in [
        (
            "zeke",
            "there is no preset `zeke`; did you mean `zeek`?; the presets are fields, vpc,",
        ),
        (
            "xyzzy",
            "there is no preset `xyzzy`; the presets are fields,",
        ),
        ("src=a,vpc", "the preset `vpc` must come first"),
        ("vpc,src", "`src`: expected FIELD=COLUMN"),
        ("src=", "`src=`: expected FIELD=COLUMN"),
        ("src=a|", "`src=a|`: expected FIELD=COLUMN"),
        ("=a", "`=a`: expected FIELD=COLUMN"),
        ("", "``: expected FIELD=COLUMN"),
        ("src=a,src:=1", "the field `src` is mapped twice"),
    ] {
        let error = parse(text).unwrap_err();
        assert!(error.starts_with(message), "{text}: {error}");
    }
    let repeated = MappingError::RepeatedField {
        field: "src".into(),
    };
    assert_eq!(Mapping::parse("src=a,src=b"), Err(repeated));
}
