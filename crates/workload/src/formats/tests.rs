//! Mistakes in every format, where they are found and how they are told.

use super::*;

mod errors;
mod flows;
mod round_trips;
