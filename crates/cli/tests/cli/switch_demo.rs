//! `switch run --demo`, with hosts in memory and in network namespaces.

use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::support::program;

/// Runs the demonstration to its end.
fn demo(arguments: &[&str], change: impl FnOnce(&mut Command)) -> (u32, Output) {
    let mut command = program();
    command.args(["switch", "run", "--demo"]).args(arguments);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    change(&mut command);
    let child = command.spawn().expect("the program starts");
    let number = child.id();
    (number, child.wait_with_output().expect("the program ends"))
}

/// Returns the standard output of a run that ended well and without messages.
#[track_caller]
fn text(output: Output) -> String {
    let text = String::from_utf8(output.stdout).expect("text");
    let messages = String::from_utf8(output.stderr).expect("text");
    assert!(output.status.success(), "{text}\n{messages}");
    assert_eq!(messages, "");
    text
}

/// The way of the ping, whatever the hosts are.
const WAY: &str = "
3. Ping: host1 sends a frame
   in       port 1, 98 bytes
   table 0  priority=20,ip actions=goto_table:1
   table 1  priority=20,icmp actions=goto_table:2
   table 2  priority=20,dl_dst=02:00:00:00:00:02 actions=output:host2
   out      port 2, 98 bytes for host2

4. Answer: host2 sends a frame
   in       port 2, 98 bytes
   table 0  priority=20,ip actions=goto_table:1
   table 1  priority=20,icmp actions=goto_table:2
   table 2  priority=20,dl_dst=02:00:00:00:00:01 actions=output:host1
   out      port 1, 98 bytes for host1

5. Counts: the ping was answered, and the switch has counted it
";

/// The folder of a run.
fn demo_folder(process: u32) -> PathBuf {
    std::env::temp_dir().join(format!("classyard-demo-{process}"))
}

/// Fails the test unless the folder of a run is removed.
#[track_caller]
fn assert_no_folder(process: u32) {
    let folder = demo_folder(process);
    assert!(!folder.exists(), "{}", folder.display());
}

#[test]
fn a_ping_passes_between_hosts_in_memory() {
    let (process, output) = demo(&[], |command| {
        // Namespaces need `ip` and `ping`.
        command.env("PATH", "/nonexistent");
    });
    let text = text(output);
    let reason = "no network namespaces, which need root, `ip` and `ping`: the program `ping` is \
                  not installed\n   host1  10.9.0.1 behind port 1\n   host2  10.9.0.2 behind port 2\n";
    assert!(text.contains(reason), "{text}");
    let counts = "   port 1   1 in, 1 out\n   port 2   1 in, 1 out\n   \
                  table 0  2 packets looked up, 2 matched\n   \
                  table 1  2 packets looked up, 2 matched\n   \
                  table 2  2 packets looked up, 2 matched\n";
    assert!(text.contains(&format!("{WAY}{counts}")), "{text}");
    assert!(
        text.contains("\nNext:\n   classyard switch run --demo --keep\n"),
        "{text}"
    );
    assert_no_folder(process);
}

#[test]
fn the_demonstration_takes_no_other_options() {
    for arguments in ["--port eth0", "br0.toml", "-p br0.flows"] {
        let arguments: Vec<&str> = arguments.split(' ').collect();
        let (_, output) = demo(&arguments, |_| {});
        let messages = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{messages}");
        assert!(messages.contains("cannot be used with"), "{messages}");
    }
}

/// Returns the namespaces and interfaces that a run has made and not removed.
fn left(process: u32) -> Vec<String> {
    let list = |arguments: &[&str]| {
        let output = Command::new("ip")
            .args(arguments)
            .output()
            .expect("`ip` runs");
        String::from_utf8(output.stdout).expect("text")
    };
    let texts = [list(&["netns", "list"]), list(&["-o", "link"])].concat();
    let parts = [format!("classyard-{process}-"), format!("cy{process}-")];
    let lines = texts.lines();
    let lines = lines.filter(|line| parts.iter().any(|part| line.contains(part)));
    lines.map(str::to_owned).collect()
}

/// True if network namespaces can be made. Says so otherwise.
#[allow(clippy::print_stderr)]
fn can_run(test: &str) -> bool {
    let name = format!("classyard-test-{}-{test}", std::process::id());
    let ip = |command: &str| {
        let output = Command::new("ip").args(["netns", command, &name]).output();
        output.is_ok_and(|output| output.status.success())
    };
    let has_ping = Command::new("ping").arg("-V").output().is_ok();
    let can_run = has_ping && ip("add") && ip("del");
    if !can_run {
        eprintln!("SKIPPED {test}: no network namespaces; run as root, with `ip` and `ping`");
    }
    can_run
}

#[test]
fn a_ping_passes_between_namespaces() {
    if !can_run("a_ping_passes_between_namespaces") {
        return;
    }
    let (process, output) = demo(&[], |_| {});
    let text = text(output);
    let hosts = format!(
        "   host1  10.9.0.1 behind port 1, namespace classyard-{process}-host1\n   \
         host2  10.9.0.2 behind port 2, namespace classyard-{process}-host2\n"
    );
    assert!(text.contains(&hosts), "{text}");
    assert!(text.contains(WAY), "{text}");
    assert_eq!(left(process), [""; 0]);
    assert_no_folder(process);
}

/// A demonstration that stays until a signal. It gets one when this is dropped.
struct Kept(Child);

impl Drop for Kept {
    fn drop(&mut self) {
        // It may have ended. Otherwise it removes its namespaces.
        let _ = kill_process(Pid::from_child(&self.0), Signal::TERM);
        let _ = self.0.wait();
    }
}

impl Kept {
    /// Starts a demonstration, and waits until its hosts are there.
    fn start() -> Kept {
        let mut command = program();
        command.args(["switch", "run", "--demo", "--keep"]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut kept = Kept(command.spawn().expect("the program starts"));
        let messages = BufReader::new(kept.0.stderr.take().expect("it was asked for"));
        let first = messages.lines().next().expect("a message").expect("text");
        assert_eq!(
            first,
            "note: the switch is running; Ctrl-C ends it and removes the hosts"
        );
        assert_eq!(left(kept.0.id()).len(), 4, "{:?}", left(kept.0.id()));
        kept
    }
}

#[test]
fn the_next_demonstration_removes_the_hosts_of_a_killed_one() {
    if !can_run("the_next_demonstration_removes_the_hosts_of_a_killed_one") {
        return;
    }
    let mut running = Kept::start();
    let mut killed = Kept::start();
    let process = killed.0.id();
    killed.0.kill().expect("a running child");
    killed.0.wait().expect("a child");
    let _ = std::fs::remove_dir_all(demo_folder(process));
    let (_, output) = demo(&[], |_| {});
    text(output);
    assert_eq!(left(process), [""; 0]);
    assert_eq!(left(running.0.id()).len(), 4, "it is running");
    assert!(running.0.try_wait().expect("a child").is_none());
}

#[test]
fn a_signal_ends_a_kept_demonstration() {
    if !can_run("a_signal_ends_a_kept_demonstration") {
        return;
    }
    for signal in [Signal::INT, Signal::TERM] {
        let mut kept = Kept::start();
        let process = kept.0.id();
        let ping = format!("netns exec classyard-{process}-host1 ping -c 1 -W 2 10.9.0.2");
        let ping = Command::new("ip").args(ping.split(' ')).output();
        assert!(ping.expect("`ip` runs").status.success());
        let child = Pid::from_child(&kept.0);
        kill_process(child, signal).expect("a running child");
        let status = kept.0.wait().expect("a child");
        assert_eq!(status.code(), Some(0));
        assert_eq!(left(process), [""; 0]);
        assert_no_folder(process);
    }
}
