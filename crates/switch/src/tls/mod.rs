//! TLS for connections to controllers: `ssl:` addresses.
//!
//! Both ends show a certificate, and each must be signed by the CA that the other end trusts.
//! Host names are not compared with certificates, as in Open vSwitch. `docs/switch.md` describes
//! this.
//!
//! | module | contents |
//! |---|---|
//! | `settings` | the names of the PEM files, and errors |
//! | `files` | reading of PEM files |
//! | `names` | checks of certificates without host names |
//! | `reason` | reasons of failed handshakes, for people |
//! | `session` | handshakes |
//! | `absent` | the part that replaces these in a build without the feature `tls` |

#[cfg(not(feature = "tls"))]
mod absent;
#[cfg(feature = "tls")]
mod files;
#[cfg(feature = "tls")]
mod names;
#[cfg(feature = "tls")]
mod reason;
#[cfg(feature = "tls")]
mod session;
mod settings;

#[cfg(not(feature = "tls"))]
pub(crate) use absent::{Tls, reason};
#[cfg(feature = "tls")]
pub(crate) use reason::reason;
#[cfg(feature = "tls")]
pub(crate) use session::Tls;
pub use settings::{IS_SUPPORTED, TlsError, TlsSettings};

// `.ci/run` checks tests for 32 bits without the crate that makes certificates.
#[cfg(all(test, feature = "tls", target_pointer_width = "64"))]
#[path = "../../tests/authority/mod.rs"]
mod authority;
#[cfg(all(test, feature = "tls", target_pointer_width = "64"))]
mod tests;
