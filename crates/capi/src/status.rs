//! The codes that functions return, and messages of errors.

use std::any::Any;
use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The result of a call. Every call that can fail returns a status; `cy_last_error` has the
/// message for people.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// The call succeeded.
    Ok = 0,
    /// A pointer that must not be null is null.
    NullPointer = 1,
    /// A pointer is not an object of this type, or the object was freed.
    InvalidHandle = 2,
    /// An argument is out of range or unknown: a name, a part, an id, a text that is not UTF-8, a
    /// file that cannot be read.
    InvalidArgument = 3,
    /// A file or text of rules has problems. Nothing was loaded.
    ParseFailed = 4,
    /// An engine cannot be built over the rules.
    BuildFailed = 5,
    /// A change to rules was refused. Nothing was changed.
    UpdateRefused = 6,
    /// Columns do not fit the schema. Nothing was looked up.
    InvalidColumns = 7,
    /// Another thread is using the reader. A reader is for one thread at a time.
    Busy = 8,
    /// A defect of the library. The message says where.
    InternalError = 9,
}

/// A reason why a call fails.
pub(crate) struct Fault {
    status: Status,
    message: String,
}

// Errors are passed by value, as `map_err` does.
#[allow(clippy::needless_pass_by_value)]
impl Fault {
    pub(crate) fn new(status: Status, message: impl ToString) -> Fault {
        Fault {
            status,
            message: message.to_string(),
        }
    }

    pub(crate) fn argument(message: impl ToString) -> Fault {
        Fault::new(Status::InvalidArgument, message)
    }

    /// Keeps the message for [`cy_last_error`].
    fn keep(self) -> Status {
        // A message may quote a text of the user that has a null byte.
        let message = CString::new(self.message.replace('\0', "\\0")).unwrap_or_default();
        // Fails only while the thread ends.
        let _ = LAST_ERROR.try_with(|last| last.replace(message));
        self.status
    }
}

thread_local! {
    static LAST_ERROR: RefCell<CString> = RefCell::default();
}

/// Runs the body of a call. A panic becomes a code.
pub(crate) fn call(body: impl FnOnce() -> Result<(), Fault>) -> Status {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => Status::Ok,
        Ok(Err(fault)) => fault.keep(),
        Err(panic) => Fault::new(Status::InternalError, panic_message(&*panic)).keep(),
    }
}

fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("a defect of classyard: {}", text.unwrap_or("a panic"))
}

/// Returns the message of the last call of this thread that failed; an empty text if none
/// failed. The text ends with a null byte. It is valid until another call of this thread
/// fails, or the thread ends.
#[unsafe(no_mangle)]
pub extern "C" fn cy_last_error() -> *const c_char {
    let message = LAST_ERROR.try_with(|last| last.borrow().as_ptr());
    message.unwrap_or(c"".as_ptr())
}

/// Returns the version of the library, such as "0.1.0". The text is valid for ever.
#[unsafe(no_mangle)]
pub extern "C" fn cy_version() -> *const c_char {
    const VERSION: &CStr = {
        let bytes = concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes();
        match CStr::from_bytes_with_nul(bytes) {
            Ok(version) => version,
            Err(_) => panic!("a version without a null byte"),
        }
    };
    VERSION.as_ptr()
}
