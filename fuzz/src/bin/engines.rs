//! The fuzz target `engines`.
#![cfg_attr(fuzzing, no_main)]

classyard_fuzz::target!(classyard_fuzz::engines);
