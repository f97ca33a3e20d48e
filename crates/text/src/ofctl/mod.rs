//! The syntax of `ovs-ofctl`: flows, groups and meters, one per line, as `ovs-ofctl`
//! prints and reads them. Ports, which `ovs-ofctl` only prints, have lines of our own.
//!
//! ```text
//! OFPST_FLOW reply (OF1.3) (xid=0x2):
//!  cookie=0x0, duration=3.1s, table=0, n_packets=7, priority=100,icmp6,icmp_type=135 actions=NORMAL
//! priority=200,tcp,in_port=eth0,nw_src=10.0.0.0/8,tp_dst=443 actions=output:2
//! group_id=1,type=select,bucket=weight:1,actions=output:1
//! meter=1 pktps burst stats bands=
//! type=drop rate=100 burst_size=10
//! port=1,name=eth0,link=down,speed=10G
//! ```
//!
//! [`statements`] splits a text into statements. [`FlowLine`] parses a flow, but keeps its
//! actions as text. Names and meanings follow ovs-fields(7): old names (`nw_src`,
//! `dl_vlan`), new names (`ipv4_src`, `vlan_vid`), words for kinds of packets (`tcp6`,
//! `rarp`), `vlan_tci`, values with masks. A field requires its protocol on the line, such
//! as `tcp` for `tcp_dst`, before or after the field. Counters and ages are ignored.
//! Ports may have names. A [`PortLine`] gives a port its name; [`PortNames`] assigns numbers
//! to other names. [`CommandLine`] parses a line of a script, which may also modify and
//! delete.

mod command;
mod fields;
mod flow;
mod port;
mod ports;
mod scan;
mod statement;
mod value;

pub use command::{Command, CommandLine, Due};
pub use fields::{FIELDS, FieldSpec, Kind, Needs, SHORTHANDS, field};
pub use flow::{Demand, FlowFlags, FlowLine};
pub use port::{MAX_PORT_NAME_BYTES, PortLine, RESERVED_PORTS, is_bare_name, port_number};
pub use ports::PortNames;
pub use scan::{Bits, first_word, number, parts, too_large};
pub use statement::{Statement, StatementKind, is_heading, statements};
pub use value::{FieldText, value};
