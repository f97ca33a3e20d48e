//! Mistakes in every format, where they are found and how they are told.

use super::*;

mod errors;
mod flow_packets;
mod flow_tables;
mod flows;
mod readings;
mod round_trips;
