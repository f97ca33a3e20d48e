//! The command line of classyard.

fn main() {}
