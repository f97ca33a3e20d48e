//! The Python package `classyard`: the module `classyard._native`.

// Functions receive their arguments from Python by value.
#![allow(clippy::needless_pass_by_value)]

mod analysis;
mod buffers;
mod capsules;
mod capture;
mod changes;
mod error;
mod keywords;
mod policy;
mod results;
mod table;
mod verdict;

use pyo3::prelude::*;

/// The part of the package `classyard` that is written in Rust.
#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    error::add_to(module)?;
    module.add_class::<policy::Policy>()?;
    module.add_class::<policy::Rule>()?;
    module.add_class::<table::Table>()?;
    module.add_class::<capture::Capture>()?;
    module.add_class::<changes::Update>()?;
    module.add_class::<results::Result>()?;
    module.add_class::<results::Array>()?;
    module.add_class::<verdict::Verdict>()?;
    module.add_class::<verdict::Explanation>()?;
    analysis::add_to(module)?;
    module.add("PRESETS", classyard_arrow::Mapping::PRESETS.to_vec())?;
    module.add("NO_RULE", classyard_arrow::NO_RULE)?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))
}
