//! The fuzz target `pipelines`.
#![cfg_attr(fuzzing, no_main)]

classyard_fuzz::target!(classyard_fuzz::pipelines);
