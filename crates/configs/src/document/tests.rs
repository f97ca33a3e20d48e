//! Documents, compared with `serde_json`, and positions.

use classyard_workload::diagnostic::ReadOptions;
use serde_json::Value;

use super::*;
use crate::config::Conditions;

/// Calls a function with the document of a text, if its syntax is right.
fn with_document<T>(text: &str, use_document: impl FnOnce(&Document<'_>) -> T) -> Option<T> {
    let options = ReadOptions::DEFAULT;
    let mut conditions = Conditions::default();
    let mut builder = Builder::new("file", &options, &mut conditions);
    let document = Document::read(text, &mut builder)?;
    Some(use_document(&document))
}

fn to_value(item: Item<'_>) -> Value {
    match &item.node().content {
        Content::Scalar(ScalarKind::Null, _) => Value::Null,
        Content::Scalar(ScalarKind::Boolean, text) => Value::Bool(text == "true"),
        Content::Scalar(ScalarKind::Number, text) => serde_json::from_str(text).unwrap_or_default(),
        Content::Scalar(ScalarKind::String, text) => Value::String(text.to_string()),
        Content::Sequence(_) => item.elements().unwrap().map(to_value).collect(),
        Content::Mapping(_) => {
            let entries = item.entries().unwrap();
            let entries =
                entries.map(|(key, value)| (key.scalar_text().to_owned(), to_value(value)));
            Value::Object(entries.collect())
        }
    }
}

/// Pieces of JSON that random texts are made of.
const PIECES: [&str; 34] = [
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "{}",
    "[]",
    "[1]",
    "\"a\":",
    "\"b\":",
    "\"a\"",
    "\"b\"",
    "null",
    "true",
    "false",
    "0",
    "-1",
    "1.5",
    "1e3",
    "01",
    "-",
    "1.",
    ".5",
    "\"\\n\"",
    "\"\\u00e9\"",
    "\"\\ud83d\\ude00\"",
    "\"\\ud83d\"",
    "\"\\q\"",
    "\"é\"",
    " ",
    "\n",
    "\"a\": 1,",
    "x",
];

#[test]
fn random_json_has_the_value_that_serde_json_reads() {
    let mut state = 7_u64;
    let mut next = |limit: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state % limit as u64).unwrap()
    };
    let mut valid = 0;
    for _ in 0..200_000 {
        let pieces = (0..next(7)).map(|_| PIECES[next(PIECES.len())]);
        let pieces: String = pieces.collect();
        let text = format!("[{pieces}]");
        let value = with_document(&text, |document| {
            document.roots().map(to_value).collect::<Vec<_>>()
        });
        let values = serde_json::Deserializer::from_str(&text).into_iter::<Value>();
        let expected = values.collect::<Result<Vec<_>, _>>();
        // A second key, and numbers and words outside of lists, are errors here.
        let is_strict = |values: &[Value]| {
            let keys = ["\"a\"", "\"b\""].map(|key| text.matches(key).count());
            keys.iter().any(|count| *count > 1)
                || !values
                    .iter()
                    .all(|value| value.is_object() || value.is_array())
        };
        match (value, expected) {
            (Some(value), Ok(expected)) => {
                assert_eq!(value, expected, "{text}");
                valid += 1;
            }
            (None, Ok(expected)) => assert!(is_strict(&expected), "{text}"),
            (None, Err(_)) => {}
            (Some(_), Err(error)) if error.to_string().contains("out of range") => {}
            (Some(_), Err(error)) => panic!("{text}: {error}"),
        }
    }
    assert!(valid > 5_000, "{valid}");
}

#[test]
fn nodes_have_positions() {
    for (text, expected) in [
        (
            "{\"a\": [1,\r\n  \"é\", {}]}",
            vec![(1, 1), (1, 7), (1, 8), (2, 3), (2, 8)],
        ),
        (
            "a:\r\n- x\r\n- 'é': y\r\n",
            vec![(1, 1), (2, 3), (2, 3), (3, 3), (3, 8)],
        ),
        (
            "# é\n---\né: [b, &x c]\n",
            vec![(3, 1), (3, 4), (3, 5), (3, 8)],
        ),
        ("\u{feff}a: b\n", vec![(1, 1), (1, 4)]),
        ("a: |\n  é\n  c\nb: >-\n  d\n", vec![(1, 1), (2, 3), (5, 3)]),
        ("a: # comment\n  b: c\n", vec![(1, 1), (2, 3), (2, 6)]),
    ] {
        let positions = with_document(text, |document| {
            let mut positions = Vec::new();
            document
                .roots()
                .for_each(|root| collect(root, &mut positions));
            positions
        });
        assert_eq!(positions, Some(expected), "{text:?}");
    }
}

/// Collects the positions of values.
fn collect(item: Item<'_>, positions: &mut Vec<(usize, usize)>) {
    let start = item.node().start;
    positions.push((item.document.line(start).0, item.document.column(start)));
    match &item.node().content {
        Content::Scalar(..) => {}
        Content::Sequence(_) => item
            .elements()
            .unwrap()
            .for_each(|item| collect(item, positions)),
        Content::Mapping(_) => {
            let entries = item.entries().unwrap();
            entries.for_each(|(_, value)| collect(value, positions));
        }
    }
}

#[test]
fn columns_of_long_lines_count_characters() {
    let text = format!("[{}1]", "\"é\", ".repeat(1000));
    let last_position = with_document(&text, |document| {
        let mut positions = Vec::new();
        document
            .roots()
            .for_each(|root| collect(root, &mut positions));
        *positions.last().unwrap()
    });
    assert_eq!(last_position, Some((1, 5002)));
}

#[test]
fn scalars_of_yaml_have_kinds() {
    for (text, kind) in [
        ("~", ScalarKind::Null),
        ("null", ScalarKind::Null),
        ("'null'", ScalarKind::String),
        ("yes", ScalarKind::Boolean),
        ("Off", ScalarKind::Boolean),
        ("80", ScalarKind::Number),
        ("-1", ScalarKind::Number),
        ("\"80\"", ScalarKind::String),
        ("1.5", ScalarKind::Number),
        ("12e03", ScalarKind::Number),
        ("0x1f", ScalarKind::Number),
        (".inf", ScalarKind::Number),
        ("1.2.3", ScalarKind::String),
        ("10.0.0.0/8", ScalarKind::String),
        ("e1", ScalarKind::String),
        ("!!str 80", ScalarKind::String),
        ("!!int 80", ScalarKind::Number),
        ("2024-01-01", ScalarKind::String),
    ] {
        let actual = with_document(&format!("- {text}\n"), |document| {
            let list = document.roots().next().unwrap();
            let scalar = list.elements().unwrap().next().unwrap();
            match scalar.node().content {
                Content::Scalar(kind, _) => kind,
                _ => panic!("{text}"),
            }
        });
        assert_eq!(actual, Some(kind), "{text}");
    }
}

#[test]
fn aliases_have_the_value_of_their_anchor() {
    let value = with_document(
        "a: &x {b: [1, c]}\nd: *x\ne: [*x, &y z, *y]\n",
        |document| to_value(document.roots().next().unwrap()),
    );
    let expected = r#"{"a": {"b": [1, "c"]}, "d": {"b": [1, "c"]},
        "e": [{"b": [1, "c"]}, "z", "z"]}"#;
    assert_eq!(value, Some(serde_json::from_str(expected).unwrap()));
}
