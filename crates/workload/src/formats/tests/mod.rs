//! Tests of all formats: mistakes and their positions, meanings, and writing and reading back.

use super::*;

mod errors;
mod flow_packets;
mod flow_tables;
mod flows;
mod lists;
mod readings;
mod round_trips;
