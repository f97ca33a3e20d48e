//! The fuzz target `schema_files`.
#![cfg_attr(fuzzing, no_main)]

classyard_fuzz::target!(classyard_fuzz::schema_files);
