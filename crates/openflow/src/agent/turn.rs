//! The turn of one session: all that its messages can read and change.

use std::collections::BTreeMap;

use super::session::Session;
use super::shared::{SessionId, Shared, Surroundings};

/// The turn of one session.
pub(super) struct Turn<'t, 'a> {
    pub(super) session: &'t mut Session,
    pub(super) others: &'t mut BTreeMap<SessionId, Session>,
    pub(super) shared: &'t mut Shared,
    pub(super) around: &'t mut Surroundings<'a>,
}
