//! Bundles: messages that are carried out together or not at all (ONF extension 230).

use crate::fault::{Code, Fault};
use crate::wire::{Reader, Wire, Writer, layout};

/// Types of ONF's messages.
pub(crate) const BUNDLE_CONTROL: u32 = 2300;
pub(crate) const BUNDLE_ADD: u32 = 2301;

/// Flags of bundles.
pub mod flag {
    /// All messages are carried out, or none.
    pub const ATOMIC: u16 = 1 << 0;
    /// The messages are carried out in their order.
    pub const ORDERED: u16 = 1 << 1;
}

/// The types of bundle controls, requests and their replies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BundleStep {
    /// Opens a bundle.
    OpenRequest,
    /// The bundle is open.
    OpenReply,
    /// Closes a bundle: no more messages follow.
    CloseRequest,
    /// The bundle is closed.
    CloseReply,
    /// Carries out the messages.
    CommitRequest,
    /// The messages have been carried out.
    CommitReply,
    /// Forgets the messages.
    DiscardRequest,
    /// The messages are forgotten.
    DiscardReply,
}

impl BundleStep {
    const ALL: [BundleStep; 8] = [
        BundleStep::OpenRequest,
        BundleStep::OpenReply,
        BundleStep::CloseRequest,
        BundleStep::CloseReply,
        BundleStep::CommitRequest,
        BundleStep::CommitReply,
        BundleStep::DiscardRequest,
        BundleStep::DiscardReply,
    ];
}

impl Wire for BundleStep {
    fn read(reader: &mut Reader<'_>) -> Result<Self, Fault> {
        let number: u16 = reader.get()?;
        match BundleStep::ALL.get(usize::from(number)) {
            Some(step) => Ok(*step),
            None => {
                let message = format!("bundle control {number}; the types are 0 to 7");
                Err(Fault::new(Code::BUNDLE_BAD_TYPE, message))
            }
        }
    }

    fn write(&self, writer: &mut Writer<'_>) {
        writer.put(&(*self as u16));
    }
}

layout! {
    /// Opens, closes, commits or discards a bundle, or answers (`ofp_bundle_ctrl_msg`).
    pub struct BundleControl {
        /// The number of the bundle.
        bundle: u32,
        /// The step.
        step: BundleStep,
        /// Flags ([`flag`]).
        flags: u16,
        /// Properties of experimenters; this crate knows none.
        properties: Vec<u8>,
    }
}

layout! {
    /// A message for a bundle (`ofp_bundle_add_msg`).
    pub struct BundleAdd {
        /// The number of the bundle.
        bundle: u32,
        /// Flags ([`flag`]).
        [2] flags: u16,
        /// The message, with its header, in bytes.
        message: Vec<u8>,
    }
}
