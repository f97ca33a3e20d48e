//! Header traces.
