//! The command line of classyard as a library, for programs that add engines of
//! their own. `examples/own_engine.rs` shows how.

mod app;
mod bench;
mod chart;
mod command_line;
mod commands;
mod embedded;
mod engine_choice;
mod estimates;
mod export;
mod failure;
mod input;
mod interrupt;
mod machine;
mod output;
mod registry;
mod reporter;
mod sax_pac;
mod suggestion;

pub use app::run;
