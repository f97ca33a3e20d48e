//! A session of `ovs-ofctl` with the example `socket`, against recorded text.
//!
//! `ovs_ofctl.txt` has a line `$ COMMAND` and the lines that the command prints. A line
//! `& COMMAND` starts a command in the background. The line `& end` stops it, and the lines
//! after that are the background command's output. Numbers that differ from run to run are
//! left out: durations and transaction numbers. The text was
//! recorded with `ovs-ofctl` 3.1, of Debian 12's package openvswitch-common; without this
//! version the test is skipped. `CLASSYARD_RECORD=1` records the text again.

#![cfg(unix)]
#![allow(clippy::print_stdout)] // says that it is skipped

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
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

/// Returns a script that runs `ovs-ofctl`; `BRIDGE` in its arguments is the socket, `FOLDER` the
/// folder.
fn script(arguments: &str, folder: &Path) -> String {
    let arguments = arguments
        .replace("BRIDGE", &socket_of(folder))
        .replace("FOLDER", &folder.display().to_string());
    format!("ovs-ofctl -O OpenFlow13 {arguments} 2>&1")
}

fn socket_of(folder: &Path) -> String {
    format!("unix:{}", folder.join("br0").display())
}

/// Returns the text that a command has printed, without what differs from run to run.
fn recordable(printed: &[u8], folder: &Path) -> String {
    let text = String::from_utf8_lossy(printed);
    without_times(&text).replace(&socket_of(folder), "BRIDGE")
}

/// Runs a command. Returns all that it prints.
fn run(arguments: &str, folder: &Path) -> String {
    let script = script(arguments, folder);
    let output = Command::new("timeout")
        .args(["20", "sh", "-c", &script])
        .output()
        .expect("a shell");
    recordable(&output.stdout, folder)
}

/// A command in the background, with its output in a file.
struct Background {
    child: Child,
    file: PathBuf,
}

impl Background {
    /// Starts a command, and waits until it has printed something.
    fn start(arguments: &str, folder: &Path) -> Background {
        let file = folder.join("background");
        let output = File::create(&file).expect("a file");
        // The command takes the place of the shell, so that it can be ended.
        let script = format!("exec {}", script(arguments, folder));
        let child = Command::new("sh")
            .args(["-c", &script])
            .env("OVS_RUNDIR", folder)
            .stdout(output)
            .spawn();
        let background = Background {
            child: child.expect("a shell"),
            file,
        };
        background.wait(folder, |printed| !printed.is_empty());
        background
    }

    /// Waits until the command has printed a text that satisfies a condition, for ten seconds at
    /// most. Returns the text.
    fn wait(&self, folder: &Path, is_enough: impl Fn(&str) -> bool) -> String {
        let printed = || recordable(&fs::read(&self.file).expect("a file"), folder);
        for _ in 0..1000 {
            if is_enough(&printed()) {
                break;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        printed()
    }

    /// Stops the command when it has printed `expected`. Returns all that it has printed.
    fn stop(mut self, expected: &str, folder: &Path) -> String {
        let printed = self.wait(folder, |printed| printed.trim_end() == expected.trim_end());
        self.child.kill().expect("it runs");
        self.child.wait().expect("it has ended");
        format!("{}\n", printed.trim_end())
    }
}

/// Runs the commands of a recorded text. Returns the text that they print now.
fn printed(recorded: &str, folder: &Path) -> String {
    let is_command = |line: &&str| line.starts_with("$ ") || line.starts_with("& ");
    let (mut printed, mut background) = (String::new(), None);
    let mut lines = recorded.lines();
    while let Some(line) = lines.next() {
        let text = match line.split_at_checked(2) {
            Some(("$ ", command)) => run(command, folder),
            Some(("& ", "end")) => {
                let output = lines.clone().take_while(|line| !is_command(line));
                let expected = output.collect::<Vec<_>>().join("\n");
                let background: Option<Background> = background.take();
                background.expect("a command").stop(&expected, folder)
            }
            Some(("& ", command)) => {
                background = Some(Background::start(command, folder));
                String::new()
            }
            _ => continue,
        };
        printed += &format!("{line}\n{text}");
    }
    printed
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
    let printed = printed(recorded, &folder);
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
