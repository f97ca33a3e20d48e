//! The steps of one packet, for people.

pub(super) mod trace;
