//! Pipelines like the paper's, for one logical datapath of any complexity.
//!
//! ```text
//!  0 physical to logical   in_port = p            reg0 = p              a flow a port
//!  1 port security         reg0 = p, eth_src                            a flow a port
//!  2 ingress ACL           tcp_dst = a            dropped               a flow an ACL
//!  3 ARP                   arp                    to the controller
//!  4 logical switch        eth_dst = q's          reg1 = q              a flow a port
//!  5 logical router        ipv4_dst = subnet      reg1, eth_dst         a flow a subnet
//!  6 egress ACL            udp_dst = a            dropped               a flow an ACL
//!  7 classes               ip_dscp                reg2
//!  8 no way back           reg1 = reg0's          dropped               a flow a port
//!  9 egress port security  reg1 = q, eth_dst                            a flow a port
//! 10 logical to physical   reg1 = q               reg3                  a flow a port
//! 11 output                reg3                   output                a flow a port
//! ```
//! There are twelve stages. The paper's pipelines have 10 to 15 stages and are not
//! described further.

use std::fmt::Write as _;
use std::time::Duration;

use classyard_datapath::flow::FlowStore;
use classyard_datapath::pipeline::Message;
use classyard_datapath::text;

/// The number of stages.
pub(super) const STAGE_COUNT: usize = 12;

/// Returns the flows of a datapath with `ports` ports, `acls` ACLs in each direction and
/// `subnets` subnets.
pub(super) fn flows(ports: usize, acls: usize, subnets: usize) -> FlowStore {
    let text = text_of(ports, subnets, |text| blocked_ports(text, acls));
    let text = text.expect("strings take any text");
    read(&text).expect("flows of the generator are right")
}

/// Returns the flows of a datapath with an own access list in each direction. `acl` has a
/// match with a priority above 0, and true if its packets are dropped.
///
/// # Errors
/// The first flow that cannot be read, for people.
pub(super) fn flows_with_acl(
    ports: usize,
    subnets: usize,
    acl: &[(String, bool)],
) -> Result<FlowStore, String> {
    let text = text_of(ports, subnets, |text| own_acl(text, acl));
    read(&text.expect("strings take any text"))
}

fn read(text: &str) -> Result<FlowStore, String> {
    let messages = text::read(text).map_err(|problems| {
        let first = problems.shown().first().map(ToString::to_string);
        first.unwrap_or_default()
    })?;
    let mut flows = FlowStore::new();
    for located in messages {
        if let Message::Flow(message) = located.message {
            flows
                .apply(&message, Duration::ZERO)
                .expect("tables have no limits");
        }
    }
    Ok(flows)
}

/// The tables of the access lists with the next table of each.
const ACL_TABLES: [(u8, u8); 2] = [(2, 3), (6, 7)];

fn own_acl(text: &mut String, acl: &[(String, bool)]) -> std::fmt::Result {
    for (matched, is_dropped) in acl {
        for (table, next) in ACL_TABLES {
            match is_dropped {
                true => writeln!(text, "table={table},{matched} actions=drop")?,
                false => writeln!(text, "table={table},{matched} actions=goto_table:{next}")?,
            }
        }
    }
    Ok(())
}

fn blocked_ports(text: &mut String, acls: usize) -> std::fmt::Result {
    for acl in 0..acls {
        let (tcp, udp) = (blocked(acl), blocked(acl + 100));
        writeln!(text, "table=2,priority=10,tcp,tcp_dst={tcp} actions=drop")?;
        writeln!(text, "table=6,priority=10,udp,udp_dst={udp} actions=drop")?;
    }
    Ok(())
}

/// Returns blocked port number `number`: spread out, and equal for every datapath.
fn blocked(number: usize) -> usize {
    1 + number * 7_919 % 60_000
}

fn text_of(
    ports: usize,
    subnets: usize,
    write_acls: impl FnOnce(&mut String) -> std::fmt::Result,
) -> Result<String, std::fmt::Error> {
    let mut text = String::new();
    let mac = |port: usize| format!("02:00:00:00:{:02x}:{:02x}", port / 256, port % 256);
    let router = "02:ff:00:00:00:01";
    for port in 1..=ports {
        let mac = mac(port);
        writeln!(
            text,
            "table=0,in_port={port} actions=set_field:{port}->reg0,goto_table:1"
        )?;
        writeln!(
            text,
            "table=1,reg0={port},eth_src={mac} actions=goto_table:2"
        )?;
        writeln!(
            text,
            "table=4,eth_dst={mac} actions=set_field:{port}->reg1,goto_table:6"
        )?;
        writeln!(
            text,
            "table=8,priority=10,reg0={port},reg1={port} actions=drop"
        )?;
        writeln!(
            text,
            "table=9,reg1={port},eth_dst={mac} actions=goto_table:10"
        )?;
        writeln!(
            text,
            "table=10,reg1={port} actions=set_field:{port}->reg3,goto_table:11"
        )?;
        writeln!(text, "table=11,reg3={port} actions=output:{port}")?;
    }
    write_acls(&mut text)?;
    for subnet in 0..subnets {
        let port = 1 + subnet % ports.max(1);
        let mac = mac(port);
        writeln!(
            text,
            "table=5,ip,ipv4_dst=10.0.{subnet}.0/24 actions=set_field:{port}->reg1,\
             set_field:{mac}->eth_dst,goto_table:6"
        )?;
    }
    text.push_str("table=2,priority=0 actions=goto_table:3\n");
    text.push_str("table=3,priority=10,arp actions=controller\n");
    text.push_str("table=3,priority=0 actions=goto_table:4\n");
    writeln!(text, "table=4,eth_dst={router} actions=goto_table:5")?;
    text.push_str("table=6,priority=0 actions=goto_table:7\n");
    text.push_str(
        "table=7,priority=10,ip,ip_dscp=46 actions=set_field:1->reg2,goto_table:8\n\
         table=7,priority=0 actions=goto_table:8\n\
         table=8,priority=0 actions=goto_table:9\n",
    );
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn datapaths_have_all_stages() {
        let flows = flows(3, 2, 1);
        let mut tables: Vec<_> = flows.iter().map(|entry| entry.table).collect();
        tables.dedup();
        assert_eq!(tables.len(), STAGE_COUNT);
        assert_eq!(flows.len(), 3 * 7 + 2 * 2 + 1 + 8);
    }
}
