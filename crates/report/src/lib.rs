//! Shared parts of classyard's commands: errors for people, tables, charts, progress,
//! and reading of inputs.
//!
//! Its users are `classyard-lab` and `classyard-cli`; other programs need neither.

pub mod chart;
pub mod command_line;
pub mod embedded;
pub mod engine_choice;
pub mod export;
pub mod failure;
pub mod input;
pub mod interrupt;
pub mod machine;
pub mod output;
pub mod registry;
pub mod reporter;
pub mod rule_view;
pub mod run;
pub mod suggestion;
