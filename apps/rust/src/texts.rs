//! Texts as token ids and as vectors in the joint space of images and texts.
use std::path::Path;
use std::ptr;

use crate::error::{c_path, check, handle, make, Texts};
use crate::{sys, Output, Result, Results};

handle! {
    /// A checkpoint's text tower with its tokenizer. Immutable: threads may share it.
    TextTower, sys::TextTower, sys::vit_text_tower_free
}
unsafe impl Sync for TextTower {}

impl TextTower {
    /// Loads the text tower of a checkpoint: `Unsupported` if it has none, `Io` if its tokenizer is missing.
    pub fn load(path: impl AsRef<Path>) -> Result<TextTower> {
        let path = c_path(path.as_ref())?;
        Ok(TextTower { pointer: make(|out| unsafe { sys::vit_text_tower_load(path.as_ptr(), ptr::null(), out) })? })
    }
}

handle! {
    /// Working memory and settings of one thread over a text tower that several may share.
    TextEncoder, sys::TextEncoder, sys::vit_text_encoder_free
}

impl TextEncoder {
    /// An encoder over a tower. `threads`: 0 = all cores; vectors do not depend on it.
    pub fn new(tower: &TextTower, threads: i32) -> Result<TextEncoder> {
        let tower = tower.pointer.as_ptr();
        Ok(TextEncoder { pointer: make(|out| unsafe { sys::vit_text_encoder_create(tower, threads, out) })? })
    }

    /// Vectors of texts as `Output::TEXT` (n, E). Returns how many texts were longer than the context, and truncated.
    pub fn run<T: AsRef<str>>(&mut self, texts: &[T], normalize: bool, results: &mut Results) -> Result<usize> {
        let texts = Texts::new(texts)?;
        let mut num_cut = 0;
        check(unsafe {
            sys::vit_text_encoder_run(
                self.pointer.as_ptr(),
                texts.pointer(),
                ptr::null(),
                texts.len(),
                normalize.into(),
                results.pointer.as_ptr(),
                &mut num_cut,
            )
        })?;
        Ok(num_cut)
    }
}

handle! {
    /// Converts texts to token ids. Immutable: threads may share it.
    Tokenizer, sys::Tokenizer, sys::vit_tokenizer_free
}
unsafe impl Sync for Tokenizer {}

impl Tokenizer {
    /// Loads a folder as published, or a file with CLIP's merges.
    pub fn load(path: impl AsRef<Path>) -> Result<Tokenizer> {
        let path = c_path(path.as_ref())?;
        let library = sys::VIT_TEXT_LIBRARY_AUTO;
        Ok(Tokenizer { pointer: make(|out| unsafe { sys::vit_tokenizer_load(path.as_ptr(), library, out) })? })
    }

    /// The ids of a text, padded and truncated to `context_length`; 0: neither.
    pub fn encode(&self, text: &str, context_length: usize) -> Result<Vec<i32>> {
        let texts = Texts::new(&[text])?;
        let results = Results::new()?;
        check(unsafe {
            sys::vit_tokenizer_run(
                self.pointer.as_ptr(),
                texts.pointer(),
                ptr::null(),
                1,
                context_length,
                results.pointer.as_ptr(),
            )
        })?;
        Ok(results.one(0, Output::IDS, 0)?.i32()?.to_vec())
    }
}
