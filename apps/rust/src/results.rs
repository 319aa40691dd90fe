//! Results of runs, input by input.
use std::marker::PhantomData;
use std::ptr;

use crate::error::{check, defaults_of_array, handle, make, owned_text};
use crate::{sys, Error, Result};

/// A name of results. n inputs, h, w patches per column and row, T = prefix + h w tokens, C = embed_dim, E = dimension of the
/// joint image-text space, H, W pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Output(pub u32);

impl Output {
    /// (n, C), the embedding as defined by the model's own library.
    pub const POOLED: Output = Output(sys::VIT_POOLED);
    /// (n, E), in the joint space of images and texts.
    pub const PROJECTED: Output = Output(sys::VIT_PROJECTED);
    /// (n, C), class token after the final norm.
    pub const CLS: Output = Output(sys::VIT_CLS);
    /// (n, h, w, C), patch tokens after the final norm.
    pub const PATCHES: Output = Output(sys::VIT_PATCHES);
    /// (n, T, C), all tokens after the final norm, prefix first.
    pub const TOKENS: Output = Output(sys::VIT_TOKENS);
    /// (n, T, C), tokens entering block 0.
    pub const EMBEDDED: Output = Output(sys::VIT_EMBEDDED);
    /// (n, classes).
    pub const LOGITS: Output = Output(sys::VIT_LOGITS);
    /// (n, T, C), all tokens after a block, before the final norm.
    pub const BLOCK: Output = Output(sys::VIT_BLOCK);
    /// (n, heads, T, T), softmax probabilities of a block, rows are queries.
    pub const ATTENTION: Output = Output(sys::VIT_ATTENTION);
    /// (n, T), attention rollout from the first token at the last block.
    pub const ROLLOUT: Output = Output(sys::VIT_ROLLOUT);
    /// (n, E), vectors of texts.
    pub const TEXT: Output = Output(sys::VIT_TEXT);
    /// (n, T) i32, token ids.
    pub const IDS: Output = Output(sys::VIT_IDS);
}

/// Numbers of the library, row-major without gaps.
#[derive(Clone, Copy, Debug)]
pub struct Array<'a> {
    array: sys::Array,
    owner: PhantomData<&'a Results>,
}

impl<'a> Array<'a> {
    /// The caller vouches that the numbers live for 'a.
    pub(crate) unsafe fn new(array: sys::Array) -> Array<'a> {
        Array { array, owner: PhantomData }
    }

    /// Sizes, outermost first.
    pub fn shape(&self) -> &[usize] {
        &self.array.shape[..self.array.ndim as usize]
    }

    /// The numbers of a float32 array; an error for another type.
    pub fn f32(&self) -> Result<&'a [f32]> {
        self.numbers(sys::VIT_FLOAT32)
    }
    /// The numbers of a float64 array; an error for another type.
    pub fn f64(&self) -> Result<&'a [f64]> {
        self.numbers(sys::VIT_FLOAT64)
    }
    /// The numbers of an array of bytes; an error for another type.
    pub fn u8(&self) -> Result<&'a [u8]> {
        self.numbers(sys::VIT_UINT8)
    }
    /// The numbers of an int32 array; an error for another type.
    pub fn i32(&self) -> Result<&'a [i32]> {
        self.numbers(sys::VIT_INT32)
    }

    fn numbers<T>(&self, dtype: i32) -> Result<&'a [T]> {
        if self.array.dtype != dtype {
            return Err(Error::argument(format!("an array of type {}, expected {dtype}", self.array.dtype)));
        }
        let count = self.shape().iter().product();
        if count == 0 {
            return Ok(&[]);
        }
        Ok(unsafe { std::slice::from_raw_parts(self.array.data.cast::<T>(), count) })
    }
}

handle! {
    /// The results of a run. Used for another run, it keeps its memory.
    Results, sys::Results, sys::vit_results_free
}

impl Results {
    /// Results without inputs, to be filled by a run.
    pub fn new() -> Result<Results> {
        Ok(Results { pointer: make(|out| unsafe { sys::vit_results_create(out) })? })
    }

    /// Number of inputs of the last run.
    pub fn len(&self) -> usize {
        unsafe { sys::vit_results_size(self.pointer.as_ptr()) }
    }
    /// Whether there was no input.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether an input failed, and why.
    pub fn status(&self, index: usize) -> Result<()> {
        let mut message = ptr::null();
        let status = unsafe { sys::vit_results_status(self.pointer.as_ptr(), index, &mut message) };
        if status == sys::VIT_OK {
            return Ok(());
        }
        if message.is_null() {
            return check(status); // there is no such input
        }
        Err(Error::of_status(status, owned_text(message)))
    }

    /// Height and width in pixels of an input as decoded; 0 x 0 if it failed, and for texts.
    pub fn image_size(&self, index: usize) -> Result<(usize, usize)> {
        let (mut height, mut width) = (0, 0);
        check(unsafe { sys::vit_results_image_size(self.pointer.as_ptr(), index, &mut height, &mut width) })?;
        Ok((height, width))
    }

    /// All inputs as one array; `block` counts for `Output::BLOCK` and `Output::ATTENTION`. A failed input is a row of NaN.
    pub fn all(&self, name: Output, block: i64) -> Result<Array<'_>> {
        let mut array = defaults_of_array();
        check(unsafe { sys::vit_results_all(self.pointer.as_ptr(), name.0, block, &mut array) })?;
        Ok(unsafe { Array::new(array) })
    }

    /// The array of one input, without the first dimension.
    pub fn one(&self, index: usize, name: Output, block: i64) -> Result<Array<'_>> {
        let mut array = defaults_of_array();
        check(unsafe { sys::vit_results_one(self.pointer.as_ptr(), index, name.0, block, &mut array) })?;
        Ok(unsafe { Array::new(array) })
    }
}
