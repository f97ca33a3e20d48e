//! Calls of classifiers under test: a panic becomes an error.

use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::{Once, OnceLock};

use classyard::{BuildError, Classifier, KeyVec, NoProgress};

/// Calls a classifier. Returns the message of a panic as an error.
pub(crate) fn guarded<T>(call: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(call)).map_err(|payload| panic_message(payload.as_ref()))
}

fn panic_message(payload: &(dyn Any + Send)) -> String {
    let text = payload
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("a panic without a message").to_owned()
}

thread_local! {
    static QUIET: Cell<bool> = const { Cell::new(false) };
}

/// Runs a function that may panic thousands of times on purpose, without printing these
/// panics. Panics of other threads are still printed.
pub(crate) fn quietly<T>(call: impl FnOnce() -> T) -> T {
    static INSTALL: Once = Once::new();
    INSTALL.call_once(|| {
        type Hook = Box<dyn Fn(&std::panic::PanicHookInfo<'_>) + Sync + Send>;
        static PREVIOUS: OnceLock<Hook> = OnceLock::new();
        let previous = PREVIOUS.get_or_init(take_hook);
        set_hook(Box::new(move |info| {
            if !QUIET.get() {
                previous(info);
            }
        }));
    });
    let before = QUIET.replace(true);
    let result = call();
    QUIET.set(before);
    result
}

/// Re-optimises a classifier, and immediately does `steps` steps of installing the plan.
/// Returns `false` for classifiers that cannot be re-optimised.
pub(crate) fn reoptimise(
    classifier: &mut dyn Classifier,
    steps: usize,
) -> Result<bool, BuildError> {
    let dynamic = classifier.as_dynamic();
    let Some(engine) = dynamic.and_then(|dynamic| dynamic.reoptimise_mut()) else {
        return Ok(false);
    };
    let plan = engine.snapshot().compute(&mut NoProgress)?;
    let plan = plan.expect("the snapshot is complete");
    assert!(engine.install(&plan), "the engine refuses its own plan");
    engine.step(steps);
    Ok(true)
}

/// Returns `length` keys, beginning at row `start` and continuing at row 0 after the last.
pub(crate) fn ring(keys: &KeyVec, start: usize, length: usize) -> KeyVec {
    let mut ring = KeyVec::new(keys.schema());
    for row in start..start + length {
        ring.push_key(keys.key(row % keys.len()));
    }
    ring
}
