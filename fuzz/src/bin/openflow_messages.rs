//! The fuzz target `openflow_messages`.
#![cfg_attr(fuzzing, no_main)]

classyard_fuzz::target!(classyard_fuzz::openflow_messages);
