//! Images through a model.
use std::ffi::CString;
use std::path::Path;
use std::ptr;

use crate::error::{c_path, check, defaults, handle, make};
use crate::{sys, Error, Model, Output, Result, Results};

/// Order of the bytes of a pixel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PixelFormat {
    /// R, G, B.
    Rgb,
    /// B, G, R.
    Bgr,
    /// R, G, B, alpha.
    Rgba,
    /// B, G, R, alpha.
    Bgra,
    /// One byte.
    Gray,
}

impl PixelFormat {
    fn bytes(self) -> usize {
        match self {
            PixelFormat::Rgb | PixelFormat::Bgr => 3,
            PixelFormat::Rgba | PixelFormat::Bgra => 4,
            PixelFormat::Gray => 1,
        }
    }
}

/// An image to be run; what it borrows must live until the call returns, and is not copied.
#[derive(Clone, Copy, Debug)]
pub enum Input<'a> {
    /// An image file.
    Path(&'a Path),
    /// An image file in memory.
    Encoded(&'a [u8]),
    /// 8-bit pixels, rows from the top.
    Pixels {
        /// The bytes of all rows.
        data: &'a [u8],
        /// Rows.
        height: usize,
        /// Pixels of a row.
        width: usize,
        /// Order of the bytes of a pixel.
        format: PixelFormat,
        /// Bytes from one row to the next; 0: rows without gaps.
        row_stride: usize,
    },
}

/// Inputs in the form of the interface, and the paths that they point to.
pub(crate) struct Inputs {
    _paths: Vec<CString>,
    inputs: Vec<sys::Input>,
}

impl Inputs {
    pub(crate) fn new(given: &[Input<'_>]) -> Result<Inputs> {
        let mut paths = Vec::new();
        let mut inputs = Vec::with_capacity(given.len());
        for each in given {
            let mut input = defaults!(sys::Input);
            match *each {
                Input::Path(path) => {
                    let path = c_path(path)?;
                    input.path = path.as_ptr(); // of the heap: it stays when the string is moved
                    paths.push(path);
                }
                Input::Encoded(bytes) => {
                    input.kind = sys::VIT_INPUT_ENCODED;
                    input.data = bytes.as_ptr().cast();
                    input.size = bytes.len();
                }
                Input::Pixels { data, height, width, format, row_stride } => {
                    require_rows(data.len(), height, width, format, row_stride)?;
                    input.kind = sys::VIT_INPUT_PIXELS;
                    input.format = format as i32;
                    input.data = data.as_ptr().cast();
                    input.height = height;
                    input.width = width;
                    input.row_stride = row_stride;
                }
            }
            inputs.push(input);
        }
        Ok(Inputs { _paths: paths, inputs })
    }
    pub(crate) fn pointer(&self) -> *const sys::Input {
        self.inputs.as_ptr()
    }
    pub(crate) fn len(&self) -> usize {
        self.inputs.len()
    }
}

/// Refuses pixels that reach beyond their memory.
fn require_rows(size: usize, height: usize, width: usize, format: PixelFormat, row_stride: usize) -> Result<()> {
    let needed = || {
        let row = width.checked_mul(format.bytes())?;
        let stride = if row_stride == 0 { row } else { row_stride };
        stride.checked_mul(height.saturating_sub(1))?.checked_add(row)
    };
    match needed() {
        Some(bytes) if bytes <= size => Ok(()),
        _ => Err(Error::argument(format!("{size} bytes for {height} x {width} pixels with rows every {row_stride} bytes"))),
    }
}

/// The size of preprocessed images.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Size {
    /// The checkpoint's own.
    #[default]
    Model,
    /// Each image's own, edges floored to the patch size.
    Native,
    /// The checkpoint's rules for another target: height and width.
    Fixed(usize, usize),
}

/// Settings of a session.
#[derive(Clone, Copy, Debug, Default)]
pub struct SessionOptions {
    /// That decode or compute, at most 1024; 0: all cores. Results do not depend on it.
    pub threads: i32,
    /// Size of preprocessed images.
    pub size: Size,
    /// Images of a forward pass; 0: chosen from their size. Results do not depend on it.
    pub batch: usize,
}

/// The outputs of a run. An empty request means projected vectors if the model has them, else pooled ones.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// Names up to `Output::LOGITS`, and `Output::ROLLOUT`.
    pub outputs: Vec<Output>,
    /// Vectors are divided by their length.
    pub normalize: bool,
    /// Numbers of blocks for `Output::BLOCK`, negative ones from the end.
    pub blocks: Vec<i64>,
    /// Numbers of blocks for `Output::ATTENTION`.
    pub attention: Vec<i64>,
}

impl Request {
    /// One output.
    pub fn of(output: Output) -> Request {
        Request { outputs: vec![output], ..Request::default() }
    }
}

handle! {
    /// Working memory and settings of one thread over a model that several may share.
    Session, sys::Session, sys::vit_session_free
}

impl Session {
    /// A session over a model, which it keeps alive.
    pub fn new(model: &Model, options: &SessionOptions) -> Result<Session> {
        let mut given = defaults!(sys::SessionOptions);
        given.threads = options.threads;
        given.batch = options.batch;
        match options.size {
            Size::Model => given.size_kind = sys::VIT_SIZE_MODEL,
            Size::Native => given.size_kind = sys::VIT_SIZE_NATIVE,
            Size::Fixed(height, width) => {
                given.size_kind = sys::VIT_SIZE_FIXED;
                given.height = height;
                given.width = width;
            }
        }
        Ok(Session { pointer: make(|out| unsafe { sys::vit_session_create(model.pointer.as_ptr(), &given, out) })? })
    }

    /// Runs inputs of any kinds and sizes; results are in input order.
    ///
    /// # Errors
    /// That of the first input that failed; the others are in `results`, and `Results::status()` gives each. Nothing is run for an
    /// output that the model lacks.
    pub fn run(&mut self, inputs: &[Input<'_>], request: &Request, results: &mut Results) -> Result<()> {
        let inputs = Inputs::new(inputs)?;
        let pointer_of = |numbers: &Vec<i64>| if numbers.is_empty() { ptr::null() } else { numbers.as_ptr() };
        let mut given = defaults!(sys::Request);
        given.features = request.outputs.iter().fold(0, |all, output| all | output.0);
        given.normalize = request.normalize.into();
        given.blocks = pointer_of(&request.blocks);
        given.num_blocks = request.blocks.len();
        given.attention = pointer_of(&request.attention);
        given.num_attention = request.attention.len();
        let results = results.pointer.as_ptr();
        check(unsafe { sys::vit_session_run(self.pointer.as_ptr(), inputs.pointer(), inputs.len(), &given, results) })
    }
}
