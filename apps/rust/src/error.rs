//! Statuses of the C interface as errors.
use std::ffi::{CStr, CString};
use std::fmt;
use std::os::raw::c_char;
use std::path::Path;

use crate::sys;

/// The kind of a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// The call is wrong: a value out of range, a shape mismatch.
    Argument,
    /// The system refused: a file is missing or unreadable, no more memory.
    Io,
    /// A file is damaged, truncated, or of another format than its name.
    Format,
    /// A well-formed file needs something that is not implemented.
    Unsupported,
    /// Files, or a file and an option, contradict each other.
    Mismatch,
    /// A defect of the library.
    Internal,
}

/// Why a call failed: one line with the operation, the file or value, what was expected and what was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    kind: ErrorKind,
    message: String,
}

/// What calls return.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// The kind of failure.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    pub(crate) fn argument(message: impl Into<String>) -> Error {
        Error { kind: ErrorKind::Argument, message: message.into() }
    }

    pub(crate) fn of_status(status: sys::Status, message: String) -> Error {
        let kind = match status {
            sys::VIT_ERROR_ARGUMENT => ErrorKind::Argument,
            sys::VIT_ERROR_IO => ErrorKind::Io,
            sys::VIT_ERROR_FORMAT => ErrorKind::Format,
            sys::VIT_ERROR_UNSUPPORTED => ErrorKind::Unsupported,
            sys::VIT_ERROR_MISMATCH => ErrorKind::Mismatch,
            _ => ErrorKind::Internal,
        };
        Error { kind, message }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

/// The result of a call whose status is that of this thread's last failure.
pub(crate) fn check(status: sys::Status) -> Result<()> {
    if status == sys::VIT_OK {
        return Ok(());
    }
    Err(Error::of_status(status, owned_text(unsafe { sys::vit_last_error() })))
}

/// A text of the library, which is UTF-8 and ends with a zero. The caller vouches for its life.
pub(crate) unsafe fn text<'a>(pointer: *const c_char) -> &'a str {
    if pointer.is_null() {
        return "";
    }
    CStr::from_ptr(pointer).to_str().unwrap_or("")
}

pub(crate) fn owned_text(pointer: *const c_char) -> String {
    unsafe { text(pointer) }.to_owned()
}

pub(crate) fn static_text(pointer: *const c_char) -> &'static str {
    unsafe { text(pointer) }
}

pub(crate) fn c_text(value: &str) -> Result<CString> {
    CString::new(value).map_err(|_| Error::argument(format!("{value:?} contains a zero character")))
}

pub(crate) fn c_path(path: &Path) -> Result<CString> {
    match path.to_str() {
        Some(text) => c_text(text),
        None => Err(Error::argument(format!("{path:?} is not UTF-8"))),
    }
}

/// Texts as an array of pointers, which this keeps alive.
pub(crate) struct Texts {
    _owned: Vec<CString>,
    pointers: Vec<*const c_char>,
}

impl Texts {
    pub(crate) fn new<T: AsRef<str>>(texts: &[T]) -> Result<Texts> {
        let owned = texts.iter().map(|each| c_text(each.as_ref())).collect::<Result<Vec<_>>>()?;
        let pointers = owned.iter().map(|each| each.as_ptr()).collect();
        Ok(Texts { _owned: owned, pointers })
    }
    pub(crate) fn pointer(&self) -> *const *const c_char {
        self.pointers.as_ptr()
    }
    pub(crate) fn len(&self) -> usize {
        self.pointers.len()
    }
}

/// The object that a constructor of the library makes.
pub(crate) fn make<T>(call: impl FnOnce(*mut *mut T) -> sys::Status) -> Result<std::ptr::NonNull<T>> {
    let mut out = std::ptr::null_mut();
    check(call(&mut out))?;
    Ok(std::ptr::NonNull::new(out).expect("a call that succeeds makes an object"))
}

/// A struct of the interface with its defaults: zeros, and its size in the first member.
macro_rules! defaults {
    ($type:ty) => {{
        // Numbers, and pointers that may be null.
        let mut options: $type = unsafe { std::mem::zeroed() };
        options.struct_size = std::mem::size_of::<$type>();
        options
    }};
}
pub(crate) use defaults;

/// A handle that is freed when it is dropped.
macro_rules! handle {
    ($(#[$doc:meta])* $name:ident, $c:ty, $free:path) => {
        $(#[$doc])*
        pub struct $name {
            pub(crate) pointer: std::ptr::NonNull<$c>,
        }
        impl Drop for $name {
            fn drop(&mut self) {
                unsafe { $free(self.pointer.as_ptr()) }
            }
        }
        impl std::fmt::Debug for $name {
            fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                out.debug_struct(stringify!($name)).finish_non_exhaustive()
            }
        }
        // Any thread may use it, one at a time; what never changes is Sync as well.
        unsafe impl Send for $name {}
    };
}
pub(crate) use handle;

/// An array to be filled.
pub(crate) fn defaults_of_array() -> sys::Array {
    sys::Array { data: std::ptr::null(), dtype: sys::VIT_FLOAT32, ndim: 0, shape: [0; 5] }
}
