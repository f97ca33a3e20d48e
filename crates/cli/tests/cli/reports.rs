//! The page on reports names every key.

use std::collections::BTreeSet;
use std::fs;

use serde_json::Value;

use crate::support::{Folder, example, run};

pub(crate) fn collect(value: &Value, keys: &mut BTreeSet<String>) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                keys.insert(key.clone());
                collect(value, keys);
            }
        }
        Value::Array(values) => values.iter().for_each(|value| collect(value, keys)),
        _ => {}
    }
}

#[test]
fn every_key_is_documented() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reports.md");
    let page = fs::read_to_string(page).unwrap();
    let folder = Folder::new();
    let (rules, wrong) = (
        folder.file(
            "rules",
            "schema ipv4-5tuple\nallow dport=80\ndrop dport=80\n",
        ),
        folder.file("wrong", "1 2 3 80 6 1\n"),
    );
    let scripted = format!(
        "-p {} --script {}",
        example("failover.flows"),
        example("failover.script")
    );
    let mut keys = BTreeSet::new();
    for command in [
        "classify --repeat 1".to_owned(),
        "explain".to_owned(),
        "replay --workers 2 --changes 1k --nodes".to_owned(),
        format!("replay {scripted} --seconds 0"),
        "trace --packet 99".to_owned(),
        format!("trace {scripted} --packet 900"),
        format!("check -r {rules} -x {wrong}"),
        "inspect".to_owned(),
        format!("inspect {rules}"),
        format!("inspect {rules} --against {rules}"),
        format!("bench -r {rules} --quick --updates"),
        format!("bench -r {rules} --quick -e tuplemerge --mixed 1k,max"),
        "engines".to_owned(),
        "profiles".to_owned(),
        "formats".to_owned(),
        format!("switch check-config {}", crate::switch::example("br0.toml")),
    ] {
        collect(&run(&format!("{command} --format json")).json(), &mut keys);
    }
    for report in crate::switch::reports() {
        collect(&report, &mut keys);
    }
    // A peer is not always installed.
    let peer = "peer name version algorithm options best peak_rss_bytes huge_page_bytes failed";
    keys.extend(peer.split(' ').map(str::to_owned));
    let missing: Vec<_> = keys
        .iter()
        .filter(|key| !page.contains(&format!("`{key}`")))
        .collect();
    assert!(missing.is_empty(), "docs/reports.md lacks {missing:?}");
}
