//! Position encodings, and steps of a model on slices. N patches of a grid of rows x columns, row by row, L tokens, H heads, d
//! channels of a head, F frequencies: d / 4 per axis in 2D, d / 2 in 1D.
use std::marker::PhantomData;
use std::ptr::{self, NonNull};

use crate::error::{check, defaults, defaults_of_array, make};
use crate::{sys, Array, Error, Result};

/// Rules of coordinates of patch index i of G along an axis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Coordinates {
    /// i + offset: rope-vit, SAM 2.
    Index,
    /// (i + offset) / G * reference: EVA-02. Rows and columns of the reference grid.
    Scaled(usize, usize),
    /// 2 (i + 0.5 + offset) / G - 1: DINOv3.
    Centered,
}

/// The axis of the first half of the pairs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AxisOrder {
    /// Columns first.
    XThenY,
    /// Rows first.
    YThenX,
}

/// Channels of pair i.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pairing {
    /// (2i, 2i + 1).
    Neighbors,
    /// (i, i + d / 2).
    Halves,
}

/// Options of a rotary encoding of a grid.
#[derive(Clone, Copy, Debug)]
pub struct RopeOptions {
    /// Rule of the coordinates.
    pub coordinates: Coordinates,
    /// Added to the index of a patch.
    pub offset: f64,
    /// The axis of the first half of the pairs.
    pub axis_order: AxisOrder,
    /// Channels of a pair.
    pub pairing: Pairing,
}

impl Default for RopeOptions {
    fn default() -> RopeOptions {
        RopeOptions { coordinates: Coordinates::Index, offset: 0.0, axis_order: AxisOrder::XThenY, pairing: Pairing::Neighbors }
    }
}

impl RopeOptions {
    fn given(&self, dtype: i32) -> sys::RopeOptions {
        let mut out = defaults!(sys::RopeOptions);
        match self.coordinates {
            Coordinates::Index => out.coordinates = sys::VIT_COORDINATES_INDEX,
            Coordinates::Scaled(rows, columns) => {
                out.coordinates = sys::VIT_COORDINATES_SCALED;
                out.reference_rows = rows;
                out.reference_columns = columns;
            }
            Coordinates::Centered => out.coordinates = sys::VIT_COORDINATES_CENTERED,
        }
        out.offset = self.offset;
        out.axis_order = self.axis_order as i32;
        out.pairing = self.pairing as i32;
        out.dtype = dtype;
        out
    }
}

/// Formulas of frequencies.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Frequencies {
    /// theta^(-k / F).
    Theta(f64),
    /// exp(-pi k / F).
    ExpPi,
    /// 1 / period, spaced geometrically from the first to the last.
    Periods(f64, f64),
    /// pi linspace(1, size / 2, F).
    Pixels(f64),
}

/// `count` = F frequencies in radians per unit of coordinate.
pub fn frequencies(formula: Frequencies, count: usize) -> Result<Vec<f64>> {
    let (rule, a, b) = match formula {
        Frequencies::Theta(theta) => (sys::VIT_FREQUENCIES_THETA, theta, 0.0),
        Frequencies::ExpPi => (sys::VIT_FREQUENCIES_EXP_PI, 0.0, 0.0),
        Frequencies::Periods(first, last) => (sys::VIT_FREQUENCIES_PERIODS, first, last),
        Frequencies::Pixels(size) => (sys::VIT_FREQUENCIES_PIXELS, size, 0.0),
    };
    let mut out = zeros::<f64>(count)?;
    check(unsafe { sys::vit_rope_frequencies(rule, count, a, b, out.as_mut_ptr()) })?;
    Ok(out)
}

/// Coordinates (t_x, t_y), N each.
pub fn grid_coordinates(rows: usize, columns: usize, options: &RopeOptions) -> Result<(Vec<f64>, Vec<f64>)> {
    let count = product(&[rows, columns])?;
    let (mut x, mut y) = (zeros(count)?, zeros(count)?);
    let given = options.given(sys::VIT_FLOAT64);
    check(unsafe { sys::vit_grid_coordinates(rows, columns, &given, x.as_mut_ptr(), y.as_mut_ptr()) })?;
    Ok((x, y))
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for f32 {}
    impl Sealed for f64 {}
}

/// f32 or f64.
pub trait Float: sealed::Sealed + Copy + Default {
    #[doc(hidden)]
    const DTYPE: i32;
}
impl Float for f32 {
    const DTYPE: i32 = sys::VIT_FLOAT32;
}
impl Float for f64 {
    const DTYPE: i32 = sys::VIT_FLOAT64;
}

/// Rotary factors cos + i sin. Immutable: threads may share it.
#[derive(Debug)]
pub struct RopeTable<T: Float> {
    pointer: NonNull<sys::RopeTable>,
    numbers: PhantomData<T>,
}
unsafe impl<T: Float> Send for RopeTable<T> {}
unsafe impl<T: Float> Sync for RopeTable<T> {}

impl<T: Float> Drop for RopeTable<T> {
    fn drop(&mut self) {
        unsafe { sys::vit_rope_table_free(self.pointer.as_ptr()) }
    }
}

impl<T: Float> RopeTable<T> {
    /// Axial: (N, 2F) factors, with the same F frequencies for both axes.
    pub fn axial(rows: usize, columns: usize, frequencies: &[f64], options: &RopeOptions) -> Result<RopeTable<T>> {
        let (given, count) = (options.given(T::DTYPE), frequencies.len());
        let pointer = make(|out| unsafe { sys::vit_rope_axial(rows, columns, frequencies.as_ptr(), count, &given, out) })?;
        Ok(RopeTable { pointer, numbers: PhantomData })
    }

    /// One-dimensional: (L, F) factors.
    pub fn line(positions: &[f64], frequencies: &[f64], pairing: Pairing) -> Result<RopeTable<T>> {
        let given = RopeOptions { pairing, ..RopeOptions::default() }.given(T::DTYPE);
        let (places, count) = (positions.len(), frequencies.len());
        let (positions, frequencies) = (positions.as_ptr(), frequencies.as_ptr());
        let pointer = make(|out| unsafe { sys::vit_rope_line(positions, places, frequencies, count, &given, out) })?;
        Ok(RopeTable { pointer, numbers: PhantomData })
    }

    /// Cosines and sines.
    pub fn factors(&self) -> Result<(Array<'_>, Array<'_>)> {
        let (mut cos, mut sin) = (defaults_of_array(), defaults_of_array());
        check(unsafe { sys::vit_rope_table_get(self.pointer.as_ptr(), &mut cos, &mut sin) })?;
        Ok(unsafe { (Array::new(cos), Array::new(sin)) })
    }

    /// Rotates x in place: `shape` (B, L, d) or (B, L, H, d). The first `num_prefix_tokens` of the L tokens are not rotated, the
    /// others must be the patches of the table.
    pub fn rotate(&self, x: &mut [T], shape: &[usize], num_prefix_tokens: usize) -> Result<()> {
        require(x.len(), shape, "x")?;
        let (ndim, x) = (shape.len() as u32, x.as_mut_ptr().cast());
        check(unsafe { sys::vit_rope_rotate(self.pointer.as_ptr(), x, shape.as_ptr(), ndim, num_prefix_tokens) })
    }
}

/// Pixels (B, K, H, W) to patches (B, N, K P P), row by row of the grid; N = (H / P) (W / P), a remainder is dropped.
pub fn patchify(pixels: &[f32], shape: [usize; 4], patch_size: usize, threads: i32) -> Result<Vec<f32>> {
    require(pixels.len(), &shape, "pixels")?;
    if patch_size == 0 {
        return Err(Error::argument("patches of 0 pixels"));
    }
    let [batch, channels, height, width] = shape;
    let mut out = zeros(product(&[batch, height / patch_size, width / patch_size, channels, patch_size, patch_size])?)?;
    check(unsafe { sys::vit_patchify(pixels.as_ptr(), shape.as_ptr(), patch_size, threads, out.as_mut_ptr()) })?;
    Ok(out)
}

/// Settings of `attention()`.
#[derive(Clone, Copy, Debug, Default)]
pub struct AttentionOptions<'a> {
    /// Factors of the tokens after the prefix; none: nothing is rotated.
    pub table: Option<&'a RopeTable<f32>>,
    /// Of the L tokens, which are not rotated.
    pub num_prefix_tokens: usize,
    /// Of keys and values, each for several of queries; 0: as many as queries.
    pub num_key_heads: usize,
    /// Of the logits; 0: 1 / sqrt(d).
    pub scale: f64,
    /// A token attends to itself and earlier tokens.
    pub causal: bool,
    /// 0: all cores; the result does not depend on it.
    pub threads: i32,
}

/// softmax(q k^T / sqrt(d)) v of each head, after q and k were rotated: q and the result (B, L, H, d), k and v (B, L, K, d).
pub fn attention(q: &[f32], k: &[f32], v: &[f32], shape: [usize; 4], options: &AttentionOptions<'_>) -> Result<Vec<f32>> {
    let [batch, tokens, heads, width] = shape;
    let key_heads = if options.num_key_heads == 0 { heads } else { options.num_key_heads };
    require(q.len(), &shape, "q")?;
    require(k.len(), &[batch, tokens, key_heads, width], "k")?;
    require(v.len(), &[batch, tokens, key_heads, width], "v")?;
    let mut given = defaults!(sys::AttentionOptions);
    given.num_heads = heads;
    given.num_key_heads = key_heads;
    given.num_prefix_tokens = options.num_prefix_tokens;
    given.scale = options.scale;
    given.causal = options.causal.into();
    given.threads = options.threads;
    let table = options.table.map_or(ptr::null_mut(), |table| table.pointer.as_ptr());
    let mut out = zeros(q.len())?;
    check(unsafe { sys::vit_attention(q.as_ptr(), k.as_ptr(), v.as_ptr(), shape.as_ptr(), table, &given, out.as_mut_ptr()) })?;
    Ok(out)
}

fn product(sizes: &[usize]) -> Result<usize> {
    let whole = sizes.iter().try_fold(1usize, |product, &size| product.checked_mul(size));
    whole.ok_or_else(|| Error::argument(format!("sizes of {sizes:?}, which no memory holds")))
}

fn require(len: usize, shape: &[usize], name: &str) -> Result<()> {
    if product(shape)? == len {
        return Ok(());
    }
    Err(Error::argument(format!("{name} has {len} numbers, expected those of {shape:?}")))
}

/// Numbers to be filled; an error if there is no memory for them.
fn zeros<T: Float>(count: usize) -> Result<Vec<T>> {
    let mut out = Vec::new();
    out.try_reserve_exact(count).map_err(|_| Error::argument(format!("{count} numbers, which no memory holds")))?;
    out.resize(count, T::default());
    Ok(out)
}
