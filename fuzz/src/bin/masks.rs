//! The fuzz target `masks`.
#![cfg_attr(fuzzing, no_main)]

classyard_fuzz::target!(classyard_fuzz::masks);
