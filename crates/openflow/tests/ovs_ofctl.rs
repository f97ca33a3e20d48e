//! A session of `ovs-ofctl` with the example `socket`, against recorded text.
//!
//! `ovs_ofctl.txt` has a line `$ COMMAND` and the lines that the command prints. Numbers that
//! differ from run to run are left out: durations and transaction numbers. The text was
//! recorded with `ovs-ofctl` 3.1, of Debian 12's package openvswitch-common; without this
//! version the test is skipped. `CLASSYARD_RECORD=1` records the text again.

#![cfg(unix)]
#![allow(clippy::print_stdout)] // says that it is skipped

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

#[path = "../examples/socket.rs"]
mod socket;

/// The version of `ovs-ofctl` that printed the recorded text.
const VERSION: &str = ") 3.1.";

/// Words before numbers that differ from run to run.
const CHANGING: [&str; 3] = ["duration=", "duration:", "xid=0x"];

/// Replaces these numbers by `_`.
fn without_times(text: &str) -> String {
    let mut text = text.to_owned();
    for word in CHANGING {
        let mut from = 0;
        while let Some(found) = text[from..].find(word) {
            let start = from + found + word.len();
            let is_number = |c: char| c.is_ascii_hexdigit() || c == '.';
            let length = text[start..].find(|c| !is_number(c));
            let end = length.map_or(text.len(), |length| start + length);
            text.replace_range(start..end, "_");
            from = start;
        }
    }
    text
}

/// Returns a folder for this test's socket and files.
fn folder() -> PathBuf {
    let folder = std::env::temp_dir().join(format!("classyard-ofctl-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a temporary folder");
    folder
}

/// Runs a command; `BRIDGE` in it is the socket, `FOLDER` the folder. Returns all that it
/// prints.
fn run(command: &str, folder: &Path) -> String {
    let socket = format!("unix:{}", folder.join("br0").display());
    let command = command
        .replace("BRIDGE", &socket)
        .replace("FOLDER", &folder.display().to_string());
    let script = format!("ovs-ofctl -O OpenFlow13 {command} 2>&1");
    let output = Command::new("timeout")
        .args(["20", "sh", "-c", &script])
        .output()
        .expect("a shell");
    let text = String::from_utf8(output.stdout).expect("text");
    without_times(&text).replace(&socket, "BRIDGE")
}

#[test]
fn ovs_ofctl_prints_what_is_recorded() {
    let version = Command::new("ovs-ofctl").arg("--version").output();
    let version = version.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    if !version.is_ok_and(|text| text.contains(VERSION)) {
        println!("skipped: no ovs-ofctl 3.1 (package openvswitch-common of Debian 12)");
        return;
    }
    let folder = folder();
    let path = folder.join("br0").display().to_string();
    let _ = std::fs::remove_file(&path);
    std::thread::spawn({
        let path = path.clone();
        move || socket::run(&path).map_err(|error| error.to_string())
    });
    for _ in 0..200 {
        if Path::new(&path).exists() {
            break;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    let flows = "priority=1,udp,tp_dst=1 actions=drop\npriority=2,udp,tp_dst=2 actions=drop\n";
    std::fs::write(folder.join("flows"), flows).expect("a file");
    let recorded = include_str!("ovs_ofctl.txt");
    let commands = recorded.lines().filter_map(|line| line.strip_prefix("$ "));
    let mut printed = String::new();
    for command in commands {
        printed += &format!("$ {command}\n{}", run(command, &folder));
    }
    std::fs::remove_dir_all(&folder).expect("the folder is there");
    if std::env::var_os("CLASSYARD_RECORD").is_some() {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/ovs_ofctl.txt");
        std::fs::write(file, &printed).expect("a file of the project");
        return;
    }
    for (recorded, printed) in recorded.lines().zip(printed.lines()) {
        assert_eq!(printed, recorded);
    }
    assert_eq!(printed.lines().count(), recorded.lines().count());
}
