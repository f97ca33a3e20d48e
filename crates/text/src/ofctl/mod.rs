//! The syntax of `ovs-ofctl`: flows, groups and meters, one a line, as it prints and
//! takes them.
//!
//! ```text
//! OFPST_FLOW reply (OF1.3) (xid=0x2):
//!  cookie=0x0, duration=3.1s, table=0, n_packets=7, priority=100,icmp6,icmp_type=135 actions=NORMAL
//! priority=200,tcp,in_port=eth0,nw_src=10.0.0.0/8,tp_dst=443 actions=output:2
//! group_id=1,type=select,bucket=weight:1,actions=output:1
//! meter=1 pktps burst stats bands=
//! type=drop rate=100 burst_size=10
//! ```
//!
//! [`statements`] takes a text apart, [`FlowLine`] a flow, up to its actions, which are
//! text here. Names and meanings are those of ovs-fields(7): old names (`nw_src`,
//! `dl_vlan`) and new ones (`ipv4_src`, `vlan_vid`), words for kinds of packets (`tcp6`,
//! `rarp`), `vlan_tci`, values under masks. A field must have what it needs on its line,
//! such as `tcp` for `tcp_dst`; the order on the line does not matter. Counters and ages
//! are passed over. Ports may have names, which [`PortNames`] gives numbers to.

mod fields;
mod flow;
mod ports;
mod scan;
mod statement;
mod value;

pub use fields::{FIELDS, FieldSpec, Kind, Needs, SHORTHANDS, field};
pub use flow::{Demand, FlowFlags, FlowLine};
pub use ports::{PortNames, RESERVED_PORTS};
pub use scan::{Bits, first_word, number, parts, too_large};
pub use statement::{Statement, StatementKind, is_heading, statements};
pub use value::{FieldText, value};
