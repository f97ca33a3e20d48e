//! The fuzz target `openflow_sessions`.
#![cfg_attr(fuzzing, no_main)]

classyard_fuzz::target!(classyard_fuzz::openflow_sessions);
