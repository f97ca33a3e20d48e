//! The command line of classyard as a library, for programs that add engines of
//! their own. `examples/own_engine.rs` shows how.

mod app;
mod commands;

pub use app::run;
