//! System calls of Linux, one file for each kind.
//!
//! | module | contents |
//! |---|---|
//! | `event` | descriptors that become readable on request |
//! | `ioctl` | settings of network interfaces |
//! | `netlink` | notices that interfaces changed |
//! | `options` | options of sockets |
//! | `packet_socket` | sockets that receive and send whole frames (AF_PACKET) |
//! | `ring` | memory that a packet socket shares with the kernel |
//! | `tag` | VLAN tags that the kernel took out of a frame |
//! | `tun` | TAP devices |

pub(crate) mod event;
pub(crate) mod ioctl;
pub(crate) mod netlink;
mod options;
pub(crate) mod packet_socket;
pub(crate) mod ring;
mod tag;
pub(crate) mod tun;
