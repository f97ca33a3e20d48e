//! Access lists of Cisco's systems, read by the public API.

mod asa;
mod detection;
mod faults;
mod groups;
mod ios;
mod limits;
mod model;
mod mutation;
mod nxos;
mod port_lists;
mod support;
mod xr;
