//! The text of the demonstration.

use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;

use classyard_datapath::Packet;
use classyard_datapath::flow::FlowEntry;
use classyard_datapath::pipeline::Step;
use classyard_datapath::text::Filled;
use classyard_report::output::style::{BOLD, GOOD, NOTABLE, counted, paint};
use classyard_switch::control::SwitchStatus;

use super::FLOWS;
use super::hosts::Hosts;
use super::namespaces::ip_text;

/// A frame that a port of the switch received or sent.
pub(super) struct PortFrame {
    /// The number of the port.
    pub(super) port: u32,
    pub(super) bytes: Vec<u8>,
}

/// Writes the number and the name of a step.
fn step(out: &mut dyn Write, number: usize, name: &str, text: &str) -> io::Result<()> {
    writeln!(out)?;
    writeln!(out, "{} {text}", paint(BOLD, &format!("{number}. {name}:")))
}

/// Writes the hosts and the switch.
pub(super) fn begin(out: &mut dyn Write, hosts: &Hosts, filled: &Filled) -> io::Result<()> {
    writeln!(out, "A ping from one host to another through a switch.")?;
    let text = match hosts {
        Hosts::Namespaces(_) => "two network namespaces of Linux",
        Hosts::Memory { .. } => "two, in the memory of this process",
    };
    step(out, 1, "Hosts", text)?;
    if let Hosts::Memory { reason, .. } = hosts {
        let note = format!("no network namespaces, which need root, `ip` and `ping`: {reason}");
        writeln!(out, "   {}", paint(NOTABLE, &note))?;
    }
    for host in [1, 2] {
        let name = match hosts {
            Hosts::Namespaces(namespaces) => {
                format!(", namespace {}", namespaces.names()[host - 1])
            }
            Hosts::Memory { .. } => String::new(),
        };
        writeln!(
            out,
            "   host{host}  {} behind port {host}{name}",
            ip_text(host)
        )?;
    }
    let entries = counted(filled.pipeline.flows().iter().count(), "flow entry");
    step(out, 2, "Switch", &format!("`demo`, {entries} in 3 tables"))?;
    writeln!(out, "   table 0  the kind of packet")?;
    writeln!(out, "   table 1  a firewall: pings and web pages pass")?;
    writeln!(out, "   table 2  the port of the destination address")
}

/// Writes the way of a frame through the tables. `sent` is the frame that left the switch.
pub(super) fn way(
    out: &mut dyn Write,
    (number, name): (usize, &str),
    filled: &Filled,
    [received, sent]: [&PortFrame; 2],
) -> io::Result<()> {
    step(
        out,
        number,
        name,
        &format!("host{} sends a frame", received.port),
    )?;
    let bytes = |frame: &PortFrame| counted(frame.bytes.len(), "byte");
    let text = format!("port {}, {}", received.port, bytes(received));
    writeln!(out, "   {}       {text}", paint(GOOD, "in"))?;
    let packet = Packet::new(&received.bytes, received.port);
    for step in filled.pipeline.trace_winners(&packet, Duration::ZERO).steps {
        let Step::Lookup(lookup) = step else { continue };
        let entry = match &lookup.winner {
            None => "no flow entry matches: dropped".to_owned(),
            Some(entry) => line(filled, entry),
        };
        writeln!(out, "   table {}  {entry}", lookup.table.0)?;
    }
    let text = format!("port {}, {} for host{}", sent.port, bytes(sent), sent.port);
    writeln!(out, "   {}      {text}", paint(GOOD, "out"))
}

/// Returns the line of `demo.flows` that has a flow entry, without its table.
fn line(filled: &Filled, entry: &FlowEntry) -> String {
    let number = filled.lines.flow(entry.id);
    let line = number.and_then(|number| FLOWS.lines().nth(number - 1));
    let line = line.unwrap_or("a flow entry that is not in demo.flows");
    match line.split_once(',') {
        Some((_, rest)) => rest.to_owned(),
        None => line.to_owned(),
    }
}

/// Writes the counts of the switch.
pub(super) fn counts(out: &mut dyn Write, status: &SwitchStatus) -> io::Result<()> {
    step(
        out,
        5,
        "Counts",
        "the ping was answered, and the switch has counted it",
    )?;
    for port in &status.ports {
        let (received, sent) = (port.received_packets, port.sent_packets);
        writeln!(out, "   port {}   {received} in, {sent} out", port.number)?;
    }
    for table in &status.tables {
        let packets = counted(table.lookups, "packet");
        let matches = table.matches;
        writeln!(
            out,
            "   table {}  {packets} looked up, {matches} matched",
            table.table
        )?;
    }
    Ok(())
}

/// Writes commands to try next. `kept` has the folder of sockets of a switch that goes on.
pub(super) fn next(out: &mut dyn Write, hosts: &Hosts, kept: Option<&Path>) -> io::Result<()> {
    writeln!(out)?;
    let Some(run_dir) = kept.map(Path::display) else {
        writeln!(out, "{}", paint(BOLD, "Next:"))?;
        writeln!(out, "   classyard switch run --demo --keep")?;
        let text = "the same, and then the switch stays for `ovs-ofctl` and `switch show`";
        writeln!(out, "       {text}")?;
        writeln!(out, "   classyard switch run --port veth1 --port veth2")?;
        return writeln!(
            out,
            "       a switch of your own; docs/switch.md describes it"
        );
    };
    writeln!(out, "{}", paint(BOLD, "Next, in another terminal:"))?;
    writeln!(out, "   classyard switch show --run-dir {run_dir}")?;
    writeln!(out, "   export OVS_RUNDIR={run_dir}")?;
    writeln!(out, "   ovs-ofctl -O OpenFlow13 dump-flows demo")?;
    if let Hosts::Namespaces(namespaces) = hosts {
        let ping = format!(
            "ip netns exec {} ping {}",
            namespaces.names()[0],
            ip_text(2)
        );
        writeln!(out, "   {ping}")?;
        let drop = "ovs-ofctl -O OpenFlow13 add-flow demo table=1,priority=99,icmp,actions=drop";
        writeln!(out, "   {drop}")?;
        writeln!(out, "       now the ping has no answer")?;
    }
    Ok(())
}
