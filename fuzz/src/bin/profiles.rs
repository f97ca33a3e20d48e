//! The fuzz target `profiles`.
#![cfg_attr(fuzzing, no_main)]

classyard_fuzz::target!(classyard_fuzz::profiles);
