//! Checkpoints ready to run.
use std::path::Path;
use std::ptr;

use crate::error::{c_path, c_text, check, defaults, handle, make, owned_text, text, Texts};
use crate::{sys, Result};

/// Precision of the matrix products of the blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Precision {
    /// As stored, or widened.
    #[default]
    Float32,
    /// Weights rounded to bfloat16 while loading.
    Bfloat16,
    /// Weights quantized to 8 bits while loading.
    Int8,
}

/// How a model is loaded; empty texts are the defaults.
#[derive(Clone, Debug, Default)]
pub struct ModelOptions {
    /// timm's or the publisher's name; needed for bare weight files.
    pub architecture: String,
    /// timm's model_args.
    pub overrides: Vec<(String, String)>,
    /// A name listed by `vit info --kernels`.
    pub kernels: String,
    /// Of the blocks.
    pub precision: Precision,
    /// none, linear, ntk or yarn[,key=value...].
    pub rope_scaling: String,
}

/// Properties of a model.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelInfo {
    /// Native input, pixels: height and width.
    pub image_size: (usize, usize),
    /// Pixels.
    pub patch_size: usize,
    /// C: channels of a token.
    pub embed_dim: usize,
    /// Blocks.
    pub depth: usize,
    /// Heads of each block.
    pub num_heads: usize,
    /// Class, distillation and register tokens.
    pub num_prefix_tokens: usize,
    /// E of projected vectors; 0: there are none.
    pub projection_dim: usize,
    /// 0: there is no classifier.
    pub num_classes: usize,
    /// Name of the kernels.
    pub kernels: String,
    /// 16 hexadecimal digits that identify the model, independent of the precision.
    pub fingerprint: String,
    /// Every value of the configuration as a JSON object.
    pub config: String,
}

handle! {
    /// Weights ready to run. Immutable: sessions of any threads may share it.
    Model, sys::Model, sys::vit_model_free
}
unsafe impl Sync for Model {}

impl Model {
    /// Loads a folder as downloaded or a single weight file.
    ///
    /// # Errors
    /// `Io` if it is missing; `Format`, `Unsupported` or `Mismatch` if a file is invalid, naming file and tensor.
    pub fn load(path: impl AsRef<Path>, options: &ModelOptions) -> Result<Model> {
        let path = c_path(path.as_ref())?;
        Model::with(options, |given, out| unsafe { sys::vit_model_load(path.as_ptr(), given, out) })
    }

    /// A model of a known architecture with seeded random weights, for tests and timings.
    pub fn random(architecture: &str, options: &ModelOptions) -> Result<Model> {
        let name = c_text(architecture)?;
        Model::with(options, |given, out| unsafe { sys::vit_model_random(name.as_ptr(), given, out) })
    }

    fn with(options: &ModelOptions, call: impl FnOnce(&sys::ModelOptions, *mut *mut sys::Model) -> sys::Status) -> Result<Model> {
        let pairs: Vec<&str> = options.overrides.iter().flat_map(|(key, value)| [key.as_str(), value.as_str()]).collect();
        let overrides = Texts::new(&pairs)?;
        let texts = [&options.architecture, &options.kernels, &options.rope_scaling];
        let texts = texts.iter().map(|each| c_text(each)).collect::<Result<Vec<_>>>()?;
        let given = |i: usize| if texts[i].as_bytes().is_empty() { ptr::null() } else { texts[i].as_ptr() };
        let mut out = defaults!(sys::ModelOptions);
        out.architecture = given(0);
        out.kernels = given(1);
        out.rope_scaling = given(2);
        out.overrides = overrides.pointer();
        out.num_overrides = options.overrides.len();
        out.precision = options.precision as i32;
        Ok(Model { pointer: make(|model| call(&out, model))? })
    }

    /// What the model is.
    pub fn info(&self) -> Result<ModelInfo> {
        let mut info = defaults!(sys::ModelInfo);
        check(unsafe { sys::vit_model_describe(self.pointer.as_ptr(), &mut info) })?;
        Ok(ModelInfo {
            image_size: (info.image_height, info.image_width),
            patch_size: info.patch_size,
            embed_dim: info.embed_dim,
            depth: info.depth,
            num_heads: info.num_heads,
            num_prefix_tokens: info.num_prefix_tokens,
            projection_dim: info.projection_dim,
            num_classes: info.num_classes,
            kernels: owned_text(info.kernels),
            fingerprint: owned_text(info.fingerprint),
            config: owned_text(info.config),
        })
    }

    /// Name of a class, its number if the checkpoint has no names.
    pub fn label(&self, index: usize) -> Result<&str> {
        let mut label = ptr::null();
        check(unsafe { sys::vit_model_label(self.pointer.as_ptr(), index, &mut label) })?;
        Ok(unsafe { text(label) }) // lives as long as the model
    }
}
