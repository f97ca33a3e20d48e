//! ClassBench filter sets.
//!
//! One rule per line; the first line wins:
//!
//! ```text
//! @SRC/LEN <tab> DST/LEN <tab> LO : HI <tab> LO : HI <tab> 0xPROTO/0xMASK [<tab> 0xFLAGS/0xMASK [more]]
//! @198.51.100.0/28   192.0.2.16/29   0 : 65535   443 : 443   0x06/0xFF   0x0000/0x0200
//! @2001:db8::/32     ::/0            0 : 65535   53 : 53     0x11/0xFF   0x0000/0x0000
//! ```
//!
//! The reader accepts any run of spaces and tabs between columns. Addresses with a colon
//! are IPv6; both addresses of a line must have the same family. A file of IPv4 rules
//! becomes a policy over `ipv4-5tuple`, a file of IPv6 rules a policy over `ipv6-5tuple`,
//! a file with both families a dual-stack policy. The mask of a protocol is 0x00 (any) or
//! 0xFF. TCP flags are not part of the five fields: the reader ignores them, and a note
//! counts such lines. With the schema `acl`, the upper eight bits of the column are the flags
//! of TCP. Columns after the flags are also ignored and counted. Rules have no
//! action in this format; they get the action [`NO_ACTION`].
//!
//! The writer sorts the rules by rank, the winning rules first. The format has no
//! non-contiguous masks: a rule with such a mask is left out, and counted. IPv6 addresses
//! are written with all eight groups, because some readers of this format do not support
//! `::`.

use classyard::Schema;
use classyard::policy::PartId;

use super::SchemaChoice;

mod read;
mod write;

pub use read::read;
pub use write::write;
pub(super) use write::write_full_ipv6;

/// The action of rules from formats without actions.
pub const NO_ACTION: &str = "match";

/// Returns the parts for IPv4 and for IPv6, or `None` if the choice has other schemas.
fn parts(choice: &SchemaChoice) -> Option<[Option<PartId>; 2]> {
    match choice {
        SchemaChoice::DualStack => Some([Some(PartId::FIRST), Some(PartId::from_index(1))]),
        SchemaChoice::Single(schema) if *schema == Schema::ipv4_5tuple() => {
            Some([Some(PartId::FIRST), None])
        }
        SchemaChoice::Single(schema) if *schema == Schema::ipv6_5tuple() => {
            Some([None, Some(PartId::FIRST)])
        }
        SchemaChoice::Single(_) | SchemaChoice::Acl => None,
    }
}
