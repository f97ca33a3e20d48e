//! Two hosts in network namespaces, with a veth pair each.

use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use super::ping::{ethernet_address, ip_address};

/// The hosts. Their namespaces are removed when this is dropped.
pub(super) struct Namespaces {
    /// The namespaces that this run has made, first host first.
    names: Vec<String>,
    /// The interfaces of the switch that this run has made.
    interfaces: Vec<String>,
}

impl Namespaces {
    /// Makes the hosts. Removes the hosts of runs that were killed. Names end in the number of this process, and a name that is in use is
    /// an error, so nothing of others is changed.
    ///
    /// # Errors
    /// The reason, for people. Then everything that was made is removed.
    pub(super) fn new() -> Result<Namespaces, String> {
        output(Command::new("ping").arg("-V"), "ping -V")?;
        remove_abandoned();
        let mut made = Namespaces {
            names: Vec::new(),
            interfaces: Vec::new(),
        };
        for host in [1, 2] {
            made.add_host(host)?;
        }
        Ok(made)
    }

    fn add_host(&mut self, host: usize) -> Result<(), String> {
        let process = std::process::id();
        let name = format!("classyard-{process}-host{host}");
        let interface = format!("cy{process}-{host}");
        ip(&format!("netns add {name}"))?;
        self.names.push(name.clone());
        ip(&format!(
            "link add {interface} type veth peer name eth0 netns {name}"
        ))?;
        self.interfaces.push(interface.clone());
        // Hosts send no frames of IPv6 on their own. A system without IPv6 refuses this.
        let _refused = ip(&format!("-n {name} link set eth0 addrgenmode none"));
        let _refused = ip(&format!("link set {interface} addrgenmode none"));
        let other = 3 - host;
        ip(&format!(
            "-n {name} link set eth0 address {} up",
            ethernet_text(host)
        ))?;
        ip(&format!("-n {name} addr add {}/24 dev eth0", ip_text(host)))?;
        ip(&format!(
            "-n {name} neigh add {} lladdr {} dev eth0",
            ip_text(other),
            ethernet_text(other)
        ))?;
        ip(&format!("link set {interface} up"))
    }

    /// Returns the names of the namespaces.
    pub(super) fn names(&self) -> &[String] {
        &self.names
    }

    /// Returns the interfaces of the switch.
    pub(super) fn interfaces(&self) -> &[String] {
        &self.interfaces
    }

    /// Sends a ping from the first host to the second.
    ///
    /// # Errors
    /// The reason, for people, if no answer comes within 2 s.
    pub(super) fn ping(&self) -> Result<(), String> {
        let (name, address) = (&self.names[0], ip_text(2));
        ip(&format!("netns exec {name} ping -c 1 -W 2 {address}"))
    }
}

impl Drop for Namespaces {
    fn drop(&mut self) {
        for interface in &self.interfaces {
            // A command that fails leaves something to the next one.
            let _gone = ip(&format!("link del {interface}"));
        }
        for name in &self.names {
            if let Err(reason) = ip(&format!("netns del {name}")) {
                tracing::error!("a namespace is left: {reason}");
            }
        }
    }
}

/// Removes the namespaces of runs that were killed, with their interfaces.
fn remove_abandoned() {
    let folder = std::fs::read_dir("/run/netns").into_iter().flatten();
    for file in folder.flatten() {
        let name = file.file_name().to_string_lossy().into_owned();
        let is_running = |process: u32| Path::new(&format!("/proc/{process}")).exists();
        if maker(&name).is_some_and(|process| !is_running(process)) {
            match ip(&format!("netns del {name}")) {
                Ok(()) => tracing::debug!("{name}, from a run that was killed, is removed"),
                Err(reason) => tracing::warn!("{name}, from a run that was killed: {reason}"),
            }
        }
    }
}

/// Returns the process that made a namespace, if it was a demonstration.
fn maker(name: &str) -> Option<u32> {
    let (process, host) = name.strip_prefix("classyard-")?.split_once("-host")?;
    ["1", "2"].contains(&host).then(|| process.parse().ok())?
}

/// Returns the IPv4 address of a host as text.
pub(super) fn ip_text(host: usize) -> String {
    ip_address(host).map(|byte| byte.to_string()).join(".")
}

fn ethernet_text(host: usize) -> String {
    let bytes = ethernet_address(host);
    bytes.map(|byte| format!("{byte:02x}")).join(":")
}

/// Runs `ip`.
fn ip(arguments: &str) -> Result<(), String> {
    let mut command = Command::new("ip");
    command.args(arguments.split_ascii_whitespace());
    output(&mut command, &format!("ip {arguments}"))
}

/// Runs a program without input, in a process group of its own.
///
/// # Errors
/// The reason, for people, if it cannot be started or fails.
fn output(command: &mut Command, text: &str) -> Result<(), String> {
    let program = command.get_program().to_string_lossy().into_owned();
    // Ctrl-C must not end `ip` in the middle of its work.
    let output = command.process_group(0).stdin(Stdio::null()).output();
    match output {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(format!("`{text}` failed: {}", last_line(&output))),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            Err(format!("the program `{program}` is not installed"))
        }
        Err(error) => Err(format!("`{text}` cannot be started: {error}")),
    }
}

/// Returns the last line of a program's output: of standard error, if it has any.
fn last_line(output: &Output) -> String {
    let texts = [&output.stderr, &output.stdout].map(|bytes| String::from_utf8_lossy(bytes));
    let mut lines = texts.iter().filter_map(|text| text.trim().lines().last());
    lines.next().unwrap_or("no message").to_owned()
}
