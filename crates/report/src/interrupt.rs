//! Ctrl-C and requests to terminate.
//!
//! Most commands end at the first signal, after removing their unfinished files. A
//! command that reads packets holds a [`SoftStop`] while it does: then the first
//! signal ends the input as if the capture ended there, and the command completes
//! its files and reports its results so far. A second signal ends the command
//! immediately.

use std::sync::Arc;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicUsize, Ordering};

use signal_hook::consts::{SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::iterator::Signals;

use crate::failure::Failure;
use crate::output::file;

/// Exit codes of commands that a signal ended are above this number.
const SIGNAL_EXIT_BASE: i32 = 128;

/// The first signal that arrived; 0 for none.
static FIRST_SIGNAL: AtomicI32 = AtomicI32::new(0);

/// The number of [`SoftStop`]s that are held.
static SOFT_STOPS: AtomicUsize = AtomicUsize::new(0);

/// Receives signals from now on. Calls after the first do nothing.
pub fn install() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // Without a handler, a file-size limit kills the program in the middle
        // of a write; with one, the write fails and is reported.
        let _ = signal_hook::flag::register(SIGXFSZ, Arc::new(AtomicBool::new(false)));
        // If signals cannot be received, they end the program as usual.
        if let Ok(signals) = Signals::new([SIGINT, SIGTERM]) {
            std::thread::spawn(move || receive(signals));
        }
    });
}

fn receive(mut signals: Signals) {
    for signal in signals.forever() {
        let first = FIRST_SIGNAL.compare_exchange(0, signal, Ordering::SeqCst, Ordering::SeqCst);
        if first.is_ok() && SOFT_STOPS.load(Ordering::SeqCst) > 0 {
            continue;
        }
        let _no_new_files = file::remove_unfinished();
        let _ = signal_hook::low_level::emulate_default_handler(signal);
    }
}

/// True if the command should end as soon as its output is complete.
pub fn is_requested() -> bool {
    FIRST_SIGNAL.load(Ordering::Relaxed) != 0
}

/// Ends a command that has reported everything it read.
///
/// # Errors
/// [`Failure::Interrupted`] if a signal ended the input early.
pub fn outcome() -> Result<(), Failure> {
    match FIRST_SIGNAL.load(Ordering::Relaxed) {
        0 => Ok(()),
        signal => Err(Failure::Interrupted {
            code: u8::try_from(SIGNAL_EXIT_BASE + signal).unwrap_or(u8::MAX),
        }),
    }
}

/// While this exists, the first signal only makes [`is_requested`] true.
pub struct SoftStop(());

impl SoftStop {
    /// Defers the reaction to the first signal until this is dropped.
    pub fn hold() -> SoftStop {
        SOFT_STOPS.fetch_add(1, Ordering::SeqCst);
        SoftStop(())
    }
}

impl Drop for SoftStop {
    fn drop(&mut self) {
        SOFT_STOPS.fetch_sub(1, Ordering::SeqCst);
    }
}
