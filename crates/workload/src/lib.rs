//! Rule sets and traffic for classyard: file formats, generators, captures and
//! the test kit.

pub mod diagnostic;
pub mod generate;
pub mod traffic;
