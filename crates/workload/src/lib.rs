//! Rule sets and traffic for classyard: file formats, generators and captures.

pub mod capture;
pub mod diagnostic;
pub mod formats;
pub mod generate;
pub mod limits;
pub mod packet;
pub mod traffic;

/// The examples of `README.md` are tested.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
