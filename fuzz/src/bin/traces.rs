//! The fuzz target `traces`.
#![cfg_attr(fuzzing, no_main)]

classyard_fuzz::target!(classyard_fuzz::traces);
