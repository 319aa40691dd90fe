//! Vision Transformers with 2D axial RoPE on CPUs: safe types over the C interface, `vit/c.h`.
//!
//! ```
//! # fn main() -> Result<(), vit::Error> {
//! # let (folder, photo) = (vit::test_data("model"), vit::test_data("images/cat_tabby.jpg"));
//! let model = vit::Model::load(&folder, &Default::default())?;
//! let mut session = vit::Session::new(&model, &Default::default())?;
//! let mut results = vit::Results::new()?;
//! session.run(&[vit::Input::Path(&photo)], &vit::Request::of(vit::Output::POOLED), &mut results)?;
//! let vectors = results.all(vit::Output::POOLED, 0)?; // (n, C)
//! assert_eq!(vectors.shape(), [1, model.info()?.embed_dim]);
//! # Ok(())
//! # }
//! ```
//!
//! Models, text towers, tokenizers, classifiers and rope tables never change: they are `Send` and `Sync`. A session, a text
//! encoder or results belong to one thread at a time: they are `Send`, and what uses them takes `&mut`:
//!
//! ```compile_fail
//! fn shared<T: Sync>() {}
//! shared::<vit::Session>();
//! ```
//!
//! Arrays borrow from the results, which cannot be used for another run while they are:
//!
//! ```compile_fail
//! fn twice(session: &mut vit::Session, results: &mut vit::Results) -> Result<(), vit::Error> {
//!     let first = results.one(0, vit::Output::POOLED, 0)?;
//!     session.run(&[], &vit::Request::default(), results)?;
//!     println!("{:?}", first.shape());
//!     Ok(())
//! }
//! ```
//!
//! Objects live as long as what was created from them needs them: a model may be dropped before its sessions.
#![warn(missing_docs)]

mod classes;
mod error;
mod model;
mod position;
mod results;
mod session;
pub mod sys;
mod texts;

pub use classes::{Classifier, Prediction};
pub use error::{Error, ErrorKind, Result};
pub use model::{Model, ModelInfo, ModelOptions, Precision};
pub use position::{
    attention, frequencies, grid_coordinates, patchify, AttentionOptions, Float, Frequencies, RopeOptions, RopeTable,
};
pub use position::{AxisOrder, Coordinates, Pairing};
pub use results::{Array, Output, Results};
pub use session::{Input, PixelFormat, Request, Session, SessionOptions, Size};
pub use texts::{TextEncoder, TextTower, Tokenizer};

/// "major.minor.patch" of the linked library.
pub fn version() -> &'static str {
    error::static_text(unsafe { sys::vit_version() })
}

/// A path below the folder data of a checkout, for the examples of this page.
#[doc(hidden)]
pub fn test_data(path: &str) -> std::path::PathBuf {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data").join(path)
}
