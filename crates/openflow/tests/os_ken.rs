//! The captured messages of os-ken's tests (PyPI: os-ken), which Open vSwitch and other
//! programs made. Each is read, and writing it gives the same bytes. None of them is in this
//! project. The test is skipped unless `python3` has the package os-ken, or `OS_KEN_PACKETS` names the folder
//! with the messages.

#![allow(clippy::print_stdout)] // says that it is skipped

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use classyard_openflow::{Code, Message};

/// Returns the folder with messages of OpenFlow 1.3.
fn folder() -> Option<PathBuf> {
    if let Some(folder) = std::env::var_os("OS_KEN_PACKETS") {
        return Some(PathBuf::from(folder));
    }
    let script = "import os, os_ken; print(os.path.dirname(os_ken.__file__))";
    let output = Command::new("python3").args(["-c", script]).output().ok()?;
    let package = String::from_utf8(output.stdout).ok()?;
    let folder = PathBuf::from(package.trim()).join("tests/packet_data/of13");
    folder.is_dir().then_some(folder)
}

/// The codes of messages that this switch refuses: actions and fields of Nicira, PBB, numbers of
/// buffers, and bands and table properties of experimenters.
const REFUSED: [Code; 6] = [
    Code::BAD_ACTION_EXPERIMENTER,
    Code::BAD_MATCH_FIELD,
    Code::BUFFER_UNKNOWN,
    Code::BAD_ACTION_TYPE,
    Code::BAD_BAND,
    Code::BAD_TABLE_FEATURE_TYPE,
];

/// Messages whose fields of a match are not in the order of their numbers, and deletions with
/// the number of a buffer.
const REORDERED: [&str; 3] = ["4-4-ofp_packet_in", "4-3-ofp_flow_mod", "4-60-ofp_flow_mod"];

/// The fewest messages that are written with the same bytes.
const LEAST_SAME: usize = 60;

#[test]
fn messages_of_other_programs_are_written_as_they_were() {
    let Some(folder) = folder() else {
        println!("skipped: python3 has no package os-ken (pip install os-ken)");
        return;
    };
    let files = fs::read_dir(&folder).expect("a folder");
    let files = files.map(|file| file.expect("a file").path());
    let mut same = 0;
    for file in files.filter(|file| file.extension().is_some_and(|kind| kind == "packet")) {
        let name = file.file_stem().unwrap_or_default().to_string_lossy();
        let bytes = fs::read(&file).expect("a message");
        match Message::read(&bytes) {
            Ok((header, message)) if message.to_bytes(header.xid) == bytes => same += 1,
            Ok((_, message)) => assert!(REORDERED.contains(&&*name), "{name}: {message:?}"),
            Err(fault) => assert!(REFUSED.contains(&fault.code), "{name}: {fault}"),
        }
    }
    assert!(
        same >= LEAST_SAME,
        "{same} messages are written as they were"
    );
}
