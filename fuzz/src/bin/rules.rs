//! The fuzz target `rules`.
#![cfg_attr(fuzzing, no_main)]

classyard_fuzz::target!(classyard_fuzz::rules);
