//! The functions, structs and constants of vit/c.h under its own names; tests/header.rs compares them with the header.
#![allow(missing_docs)]

use std::ffi::c_void;
use std::os::raw::c_char;

pub type Status = i32;

pub const VIT_OK: i32 = 0;
pub const VIT_ERROR_ARGUMENT: i32 = 1;
pub const VIT_ERROR_IO: i32 = 2;
pub const VIT_ERROR_FORMAT: i32 = 3;
pub const VIT_ERROR_UNSUPPORTED: i32 = 4;
pub const VIT_ERROR_MISMATCH: i32 = 5;
pub const VIT_ERROR_INTERNAL: i32 = 6;
pub const VIT_FLOAT32: i32 = 0;
pub const VIT_FLOAT64: i32 = 1;
pub const VIT_UINT8: i32 = 2;
pub const VIT_INT32: i32 = 3;
pub const VIT_POOLED: u32 = 1;
pub const VIT_PROJECTED: u32 = 2;
pub const VIT_CLS: u32 = 4;
pub const VIT_PATCHES: u32 = 8;
pub const VIT_TOKENS: u32 = 16;
pub const VIT_EMBEDDED: u32 = 32;
pub const VIT_LOGITS: u32 = 64;
pub const VIT_BLOCK: u32 = 128;
pub const VIT_ATTENTION: u32 = 256;
pub const VIT_PIXELS: u32 = 512;
pub const VIT_CROPPED: u32 = 1024;
pub const VIT_TEXT: u32 = 2048;
pub const VIT_IDS: u32 = 4096;
pub const VIT_ROLLOUT: u32 = 1 << 14;
pub const VIT_MERGED: u32 = 1 << 15;
pub const VIT_ANOMALY_SCORE: u32 = 1 << 24;
pub const VIT_ANOMALY_DISTANCES: u32 = 1 << 25;
pub const VIT_DEPTH: u32 = 1 << 26;
pub const VIT_NORMALS: u32 = 1 << 27;
pub const VIT_SEGMENTATION: u32 = 1 << 28;
pub const VIT_BOXES: u32 = 1 << 29;
pub const VIT_SCORES: u32 = (1 << 29) + 1;
pub const VIT_CLASSES: u32 = (1 << 29) + 2;
pub const VIT_KEYPOINTS: u32 = (1 << 29) + 3;
pub const VIT_SEGMENT_IDS: u32 = (1 << 29) + 4;
pub const VIT_AREAS: u32 = (1 << 29) + 5;
pub const VIT_PROBABILITIES: u32 = (1 << 29) + 6;
pub const VIT_PRECISION_FLOAT32: i32 = 0;
pub const VIT_PRECISION_BFLOAT16: i32 = 1;
pub const VIT_PRECISION_INT8: i32 = 2;
pub const VIT_RESAMPLER_AUTO: i32 = 0;
pub const VIT_RESAMPLER_PILLOW: i32 = 1;
pub const VIT_RESAMPLER_TORCHVISION: i32 = 2;
pub const VIT_PILLOW_13_0: i32 = 0;
pub const VIT_PILLOW_12_2: i32 = 1;
pub const VIT_PILLOW_12_1: i32 = 2;
pub const VIT_EXIF_AUTO: i32 = 0;
pub const VIT_EXIF_APPLY: i32 = 1;
pub const VIT_EXIF_IGNORE: i32 = 2;
pub const VIT_CHANNELS_AUTO: i32 = 0;
pub const VIT_CHANNELS_RGB: i32 = 1;
pub const VIT_CHANNELS_BGR: i32 = 2;
pub const VIT_RESIZE_RULE_AUTO: i32 = 0;
pub const VIT_RESIZE_RULE_LIBRARY: i32 = 1;
pub const VIT_RESIZE_RULE_REPOSITORY: i32 = 2;
pub const VIT_INPUT_PATH: i32 = 0;
pub const VIT_INPUT_ENCODED: i32 = 1;
pub const VIT_INPUT_PIXELS: i32 = 2;
pub const VIT_INPUT_PREPROCESSED: i32 = 3;
pub const VIT_INPUT_CLIP: i32 = 4;
pub const VIT_RGB: i32 = 0;
pub const VIT_BGR: i32 = 1;
pub const VIT_RGBA: i32 = 2;
pub const VIT_BGRA: i32 = 3;
pub const VIT_GRAY: i32 = 4;
pub const VIT_GREY: i32 = VIT_GRAY;
pub const VIT_SIZE_MODEL: i32 = 0;
pub const VIT_SIZE_NATIVE: i32 = 1;
pub const VIT_SIZE_FIXED: i32 = 2;
pub const VIT_TEXT_LIBRARY_AUTO: i32 = 0;
pub const VIT_TEXT_LIBRARY_TRANSFORMERS: i32 = 1;
pub const VIT_TEXT_LIBRARY_OPEN_CLIP: i32 = 2;
pub const VIT_TEXT_LIBRARY_OPENAI: i32 = 3;
pub const VIT_SCORE_TOP_PERCENT: i32 = 0;
pub const VIT_SCORE_MAXIMUM: i32 = 1;
pub const VIT_SCORE_REWEIGHTED: i32 = 2;
pub const VIT_FIT_LOGISTIC: i32 = 0;
pub const VIT_FIT_KNN: i32 = 1;
pub const VIT_FIT_CENTROID: i32 = 2;
pub const VIT_UPSAMPLE_BILINEAR: i32 = 0;
pub const VIT_UPSAMPLE_SHIFT: i32 = 1;
pub const VIT_UPSAMPLE_GUIDED: i32 = 2;
pub const VIT_UPSAMPLE_LEARNED: i32 = 3;
pub const VIT_DEPTH_METRE: i32 = 0;
pub const VIT_DEPTH_INVERSE: i32 = 1;
pub const VIT_DEPTH_RELATIVE: i32 = 2;
pub const VIT_SEGMENT_AUTO: i32 = 0;
pub const VIT_SEGMENT_SEMANTIC: i32 = 1;
pub const VIT_SEGMENT_INSTANCE: i32 = 2;
pub const VIT_SEGMENT_PANOPTIC: i32 = 3;
pub const VIT_COORDINATES_INDEX: i32 = 0;
pub const VIT_COORDINATES_SCALED: i32 = 1;
pub const VIT_COORDINATES_CENTERED: i32 = 2;
pub const VIT_CENTERED_BY_EACH_AXIS: i32 = 0;
pub const VIT_CENTERED_BY_SHORTER_SIDE: i32 = 1;
pub const VIT_CENTERED_BY_LONGER_SIDE: i32 = 2;
pub const VIT_X_THEN_Y: i32 = 0;
pub const VIT_Y_THEN_X: i32 = 1;
pub const VIT_PAIR_NEIGHBORS: i32 = 0;
pub const VIT_PAIR_HALVES: i32 = 1;
pub const VIT_FREQUENCIES_THETA: i32 = 0;
pub const VIT_FREQUENCIES_EXP_PI: i32 = 1;
pub const VIT_FREQUENCIES_PERIODS: i32 = 2;
pub const VIT_FREQUENCIES_PIXELS: i32 = 3;
pub const VIT_ROPE_COORDINATES: i32 = 0;
pub const VIT_ROPE_ANGLES: i32 = 1;
pub const VIT_ROPE_COS: i32 = 2;
pub const VIT_ROPE_SIN: i32 = 3;
pub const VIT_ROPE_FREQUENCIES: i32 = 4;
pub const VIT_ROPE_PHASES: i32 = 5;
pub const VIT_ROPE_PAIRS: i32 = 6;
pub const VIT_ROPE_BASIS: i32 = 7;
pub const VIT_SINUSOIDAL_LINE: i32 = 0;
pub const VIT_SINUSOIDAL_GRID: i32 = 1;
pub const VIT_SINUSOIDAL_QUARTERS: i32 = 2;

#[repr(C)]
pub struct Results {
    _opaque: [u8; 0],
}

#[repr(C)]
pub struct Model {
    _opaque: [u8; 0],
}

#[repr(C)]
pub struct Preprocessor {
    _opaque: [u8; 0],
}

#[repr(C)]
pub struct TextTower {
    _opaque: [u8; 0],
}

#[repr(C)]
pub struct TextEncoder {
    _opaque: [u8; 0],
}

#[repr(C)]
pub struct Tokenizer {
    _opaque: [u8; 0],
}

#[repr(C)]
pub struct Session {
    _opaque: [u8; 0],
}

#[repr(C)]
pub struct Classifier {
    _opaque: [u8; 0],
}

#[repr(C)]
pub struct Anomaly {
    _opaque: [u8; 0],
}

#[repr(C)]
pub struct Pixels {
    _opaque: [u8; 0],
}

#[repr(C)]
pub struct Detector {
    _opaque: [u8; 0],
}

#[repr(C)]
pub struct RopeTable {
    _opaque: [u8; 0],
}

#[repr(C)]
pub struct RopeForm {
    _opaque: [u8; 0],
}

#[repr(C)]
pub struct RopeIdentity {
    _opaque: [u8; 0],
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Array {
    pub data: *const c_void,
    pub dtype: i32,
    pub ndim: u32,
    pub shape: [usize; 5],
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ModelOptions {
    pub struct_size: usize,
    pub architecture: *const c_char,
    pub overrides: *const *const c_char,
    pub num_overrides: usize,
    pub layout: *const c_char,
    pub kernels: *const c_char,
    pub precision: i32,
    pub resampler: i32,
    pub pillow: i32,
    pub exif: i32,
    pub channels: i32,
    pub pads_to_square: i32,
    pub pad_color: [u8; 4],
    pub rope_scaling: *const c_char,
    pub max_pixels: usize,
    pub adapter: *const c_char,
    pub prefix: *const c_char,
    pub min_area: usize,
    pub max_area: usize,
    pub mean: *const f64,
    pub num_means: usize,
    pub std: *const f64,
    pub num_stds: usize,
    pub dense_head: *const c_char,
    pub dense_taps: *const usize,
    pub num_dense_taps: usize,
    pub dense_depth_range: [f32; 2],
    pub dense_max_depth: f32,
    pub dense_resize_rule: i32,
    pub dense_expert: usize,
    pub clip_frames: usize,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ModelInfo {
    pub struct_size: usize,
    pub image_height: usize,
    pub image_width: usize,
    pub patch_size: usize,
    pub embed_dim: usize,
    pub depth: usize,
    pub num_heads: usize,
    pub num_prefix_tokens: usize,
    pub projection_dim: usize,
    pub num_classes: usize,
    pub has_class_token: i32,
    pub has_pooled: i32,
    pub has_preprocessing: i32,
    pub precision: i32,
    pub kernels: *const c_char,
    pub path: *const c_char,
    pub fingerprint: *const c_char,
    pub config: *const c_char,
    pub preprocess: *const c_char,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Input {
    pub struct_size: usize,
    pub kind: i32,
    pub format: i32,
    pub path: *const c_char,
    pub data: *const c_void,
    pub size: usize,
    pub height: usize,
    pub width: usize,
    pub row_stride: usize,
    pub frames: *const Input,
    pub num_frames: usize,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct SizeOptions {
    pub struct_size: usize,
    pub kind: i32,
    pub threads: i32,
    pub height: usize,
    pub width: usize,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct TextOptions {
    pub struct_size: usize,
    pub architecture: *const c_char,
    pub tokenizer: *const c_char,
    pub kernels: *const c_char,
    pub library: i32,
    pub precision: i32,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct SessionOptions {
    pub struct_size: usize,
    pub threads: i32,
    pub size_kind: i32,
    pub height: usize,
    pub width: usize,
    pub batch: usize,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Request {
    pub struct_size: usize,
    pub features: u32,
    pub normalize: i32,
    pub blocks: *const i64,
    pub num_blocks: usize,
    pub attention: *const i64,
    pub num_attention: usize,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Prediction {
    pub index: usize,
    pub label: *const c_char,
    pub probability: f32,
    pub logit: f32,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct AnomalyOptions {
    pub struct_size: usize,
    pub layers: *const i64,
    pub num_layers: usize,
    pub neighborhood: usize,
    pub coreset_fraction: f64,
    pub coreset_count: usize,
    pub quantile: f64,
    pub score: i32,
    pub foreground: i32,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PixelOptions {
    pub struct_size: usize,
    pub layers: *const i64,
    pub num_layers: usize,
    pub scales: *const f64,
    pub num_scales: usize,
    pub size_kind: i32,
    pub upsampling: i32,
    pub height: usize,
    pub width: usize,
    pub shifts: usize,
    pub color: i32,
    pub method: i32,
    pub neighbors: usize,
    pub strength: f64,
    pub threads: i32,
    pub upsampler: *const c_char,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct SegmentOptions {
    pub struct_size: usize,
    pub threshold: f64,
    pub mask_threshold: f64,
    pub overlap: f64,
    pub stuff: *const usize,
    pub num_stuff: usize,
    pub task: i32,
    pub reserved: i32,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Box {
    pub x0: f64,
    pub y0: f64,
    pub x1: f64,
    pub y1: f64,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct RopeOptions {
    pub struct_size: usize,
    pub coordinates: i32,
    pub centered_by: i32,
    pub axis_order: i32,
    pub pairing: i32,
    pub offset: f64,
    pub reference_rows: usize,
    pub reference_columns: usize,
    pub dtype: i32,
    pub reserved: i32,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct RopeFormOptions {
    pub struct_size: usize,
    pub rows: usize,
    pub columns: usize,
    pub head_dim: usize,
    pub num_frames: usize,
    pub num_heads: usize,
    pub reference_rows: usize,
    pub reference_columns: usize,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct RopeIdentifyOptions {
    pub struct_size: usize,
    pub rows: usize,
    pub columns: usize,
    pub has_prefix: i32,
    pub reserved: i32,
    pub num_prefix_tokens: usize,
    pub against: *const c_char,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct AttentionOptions {
    pub struct_size: usize,
    pub num_heads: usize,
    pub num_key_heads: usize,
    pub num_prefix_tokens: usize,
    pub scale: f64,
    pub causal: i32,
    pub threads: i32,
}

extern "C" {
    pub fn vit_status_name(status: Status) -> *const c_char;
    pub fn vit_last_error() -> *const c_char;
    pub fn vit_version() -> *const c_char;
    pub fn vit_c_revision() -> i32;
    pub fn vit_results_create(results: *mut *mut Results) -> Status;
    pub fn vit_results_free(results: *mut Results);
    pub fn vit_results_size(results: *const Results) -> usize;
    pub fn vit_results_status(results: *const Results, index: usize, message: *mut *const c_char) -> Status;
    pub fn vit_results_image_size(results: *const Results, index: usize, height: *mut usize, width: *mut usize) -> Status;
    pub fn vit_results_all(results: *const Results, name: u32, block: i64, array: *mut Array) -> Status;
    pub fn vit_results_one(results: *const Results, index: usize, name: u32, block: i64, array: *mut Array) -> Status;
    pub fn vit_model_load(path: *const c_char, options: *const ModelOptions, model: *mut *mut Model) -> Status;
    pub fn vit_model_random(architecture: *const c_char, options: *const ModelOptions, model: *mut *mut Model) -> Status;
    pub fn vit_model_free(model: *mut Model);
    pub fn vit_model_describe(model: *const Model, info: *mut ModelInfo) -> Status;
    pub fn vit_model_label(model: *const Model, index: usize, label: *mut *const c_char) -> Status;
    pub fn vit_preprocessor_load(
        path: *const c_char,
        options: *const ModelOptions,
        size: *const SizeOptions,
        preprocessor: *mut *mut Preprocessor,
    ) -> Status;
    pub fn vit_preprocessor_create(model: *const Model, size: *const SizeOptions, preprocessor: *mut *mut Preprocessor)
        -> Status;
    pub fn vit_preprocessor_free(preprocessor: *mut Preprocessor);
    pub fn vit_preprocessor_describe(preprocessor: *const Preprocessor) -> *const c_char;
    pub fn vit_preprocessor_run(
        preprocessor: *const Preprocessor,
        inputs: *const Input,
        num_inputs: usize,
        stage: u32,
        results: *mut Results,
    ) -> Status;
    pub fn vit_text_tower_load(path: *const c_char, options: *const TextOptions, tower: *mut *mut TextTower) -> Status;
    pub fn vit_model_and_text_load(
        path: *const c_char,
        options: *const ModelOptions,
        text_options: *const TextOptions,
        model: *mut *mut Model,
        tower: *mut *mut TextTower,
    ) -> Status;
    pub fn vit_text_tower_free(tower: *mut TextTower);
    pub fn vit_text_encoder_create(tower: *const TextTower, threads: i32, encoder: *mut *mut TextEncoder) -> Status;
    pub fn vit_text_encoder_free(encoder: *mut TextEncoder);
    pub fn vit_text_encoder_run(
        encoder: *mut TextEncoder,
        texts: *const *const c_char,
        sizes: *const usize,
        num_texts: usize,
        normalize: i32,
        results: *mut Results,
        num_cut: *mut usize,
    ) -> Status;
    pub fn vit_tokenizer_load(path: *const c_char, library: i32, tokenizer: *mut *mut Tokenizer) -> Status;
    pub fn vit_tokenizer_load_for_model(
        model: *const c_char,
        path: *const c_char,
        library: i32,
        tokenizer: *mut *mut Tokenizer,
    ) -> Status;
    pub fn vit_tokenizer_create(tower: *const TextTower, tokenizer: *mut *mut Tokenizer) -> Status;
    pub fn vit_tokenizer_free(tokenizer: *mut Tokenizer);
    pub fn vit_tokenizer_context_length(tokenizer: *const Tokenizer) -> usize;
    pub fn vit_tokenizer_run(
        tokenizer: *const Tokenizer,
        texts: *const *const c_char,
        sizes: *const usize,
        num_texts: usize,
        context_length: usize,
        results: *mut Results,
    ) -> Status;
    pub fn vit_tokenizer_token(tokenizer: *const Tokenizer, id: i32, token: *mut *const c_char, size: *mut usize) -> Status;
    pub fn vit_session_create(model: *const Model, options: *const SessionOptions, session: *mut *mut Session) -> Status;
    pub fn vit_session_free(session: *mut Session);
    pub fn vit_session_run(
        session: *mut Session,
        inputs: *const Input,
        num_inputs: usize,
        request: *const Request,
        results: *mut Results,
    ) -> Status;
    pub fn vit_classifier_create(model: *const Model, classifier: *mut *mut Classifier) -> Status;
    pub fn vit_classifier_load_head(model: *const Model, path: *const c_char, classifier: *mut *mut Classifier) -> Status;
    pub fn vit_classifier_create_zero_shot(
        model: *const Model,
        encoder: *mut TextEncoder,
        names: *const *const c_char,
        num_names: usize,
        templates: *const *const c_char,
        num_templates: usize,
        classifier: *mut *mut Classifier,
    ) -> Status;
    pub fn vit_classifier_load_vectors(model: *const Model, path: *const c_char, classifier: *mut *mut Classifier) -> Status;
    pub fn vit_classifier_save_vectors(classifier: *const Classifier, path: *const c_char) -> Status;
    pub fn vit_classifier_free(classifier: *mut Classifier);
    pub fn vit_classifier_size(classifier: *const Classifier) -> usize;
    pub fn vit_classifier_label(classifier: *const Classifier, index: usize, label: *mut *const c_char) -> Status;
    pub fn vit_classifier_run(
        classifier: *const Classifier,
        session: *mut Session,
        inputs: *const Input,
        num_inputs: usize,
        results: *mut Results,
    ) -> Status;
    pub fn vit_classifier_top(
        classifier: *const Classifier,
        results: *const Results,
        index: usize,
        top: usize,
        predictions: *mut Prediction,
        count: *mut usize,
    ) -> Status;
    pub fn vit_anomaly_fit(
        session: *mut Session,
        good: *const Input,
        num_good: usize,
        options: *const AnomalyOptions,
        anomaly: *mut *mut Anomaly,
    ) -> Status;
    pub fn vit_anomaly_load(model: *const Model, path: *const c_char, anomaly: *mut *mut Anomaly) -> Status;
    pub fn vit_anomaly_save(anomaly: *const Anomaly, path: *const c_char) -> Status;
    pub fn vit_anomaly_free(anomaly: *mut Anomaly);
    pub fn vit_anomaly_threshold(anomaly: *const Anomaly, threshold: *mut f32, confidence: *mut f64) -> Status;
    pub fn vit_anomaly_run(
        anomaly: *const Anomaly,
        session: *mut Session,
        inputs: *const Input,
        num_inputs: usize,
        results: *mut Results,
    ) -> Status;
    pub fn vit_pixels_fit(
        model: *const Model,
        images: *const Input,
        labels: *const Array,
        num_images: usize,
        names: *const *const c_char,
        num_names: usize,
        options: *const PixelOptions,
        pixels: *mut *mut Pixels,
    ) -> Status;
    pub fn vit_pixels_load(model: *const Model, path: *const c_char, threads: i32, pixels: *mut *mut Pixels) -> Status;
    pub fn vit_pixels_load_upsampled(
        model: *const Model,
        path: *const c_char,
        upsampler: *const c_char,
        threads: i32,
        pixels: *mut *mut Pixels,
    ) -> Status;
    pub fn vit_pixels_save(pixels: *const Pixels, path: *const c_char) -> Status;
    pub fn vit_pixels_free(pixels: *mut Pixels);
    pub fn vit_pixels_size(pixels: *const Pixels) -> usize;
    pub fn vit_pixels_label(pixels: *const Pixels, index: usize, label: *mut *const c_char) -> Status;
    pub fn vit_pixels_iou(pixels: *const Pixels, iou: *mut f64, held_out: *mut i32) -> Status;
    pub fn vit_pixels_run(
        pixels: *mut Pixels,
        inputs: *const Input,
        num_inputs: usize,
        probabilities: i32,
        results: *mut Results,
    ) -> Status;
    pub fn vit_model_depth_unit(model: *const Model, unit: *mut i32) -> Status;
    pub fn vit_model_num_head_labels(model: *const Model) -> usize;
    pub fn vit_model_head_label(model: *const Model, index: usize, label: *mut *const c_char) -> Status;
    pub fn vit_session_depth(session: *mut Session, inputs: *const Input, num_inputs: usize, results: *mut Results) -> Status;
    pub fn vit_session_segment(
        session: *mut Session,
        inputs: *const Input,
        num_inputs: usize,
        options: *const SegmentOptions,
        results: *mut Results,
    ) -> Status;
    pub fn vit_session_pose(
        session: *mut Session,
        inputs: *const Input,
        num_inputs: usize,
        boxes: *const Box,
        counts: *const usize,
        results: *mut Results,
    ) -> Status;
    pub fn vit_detector_create(model: *const Model, detector: *mut *mut Detector) -> Status;
    pub fn vit_detector_create_zero_shot(
        model: *const Model,
        encoder: *mut TextEncoder,
        names: *const *const c_char,
        num_names: usize,
        templates: *const *const c_char,
        num_templates: usize,
        detector: *mut *mut Detector,
    ) -> Status;
    pub fn vit_detector_free(detector: *mut Detector);
    pub fn vit_detector_size(detector: *const Detector) -> usize;
    pub fn vit_detector_label(detector: *const Detector, index: usize, label: *mut *const c_char) -> Status;
    pub fn vit_detector_run(
        detector: *const Detector,
        session: *mut Session,
        inputs: *const Input,
        num_inputs: usize,
        threshold: f32,
        results: *mut Results,
    ) -> Status;
    pub fn vit_grid_coordinates(rows: usize, columns: usize, options: *const RopeOptions, t_x: *mut f64, t_y: *mut f64)
        -> Status;
    pub fn vit_rope_frequencies(rule: i32, count: usize, a: f64, b: f64, frequencies: *mut f64) -> Status;
    pub fn vit_rope_axial(
        rows: usize,
        columns: usize,
        frequencies: *const f64,
        count: usize,
        options: *const RopeOptions,
        table: *mut *mut RopeTable,
    ) -> Status;
    pub fn vit_rope_mixed(
        rows: usize,
        columns: usize,
        frequencies: *const f64,
        depth: usize,
        num_heads: usize,
        num_pairs: usize,
        layer: usize,
        options: *const RopeOptions,
        table: *mut *mut RopeTable,
    ) -> Status;
    pub fn vit_rope_line(
        positions: *const f64,
        num_positions: usize,
        frequencies: *const f64,
        count: usize,
        options: *const RopeOptions,
        table: *mut *mut RopeTable,
    ) -> Status;
    pub fn vit_rope_table_free(table: *mut RopeTable);
    pub fn vit_rope_table_get(table: *const RopeTable, cos: *mut Array, sin: *mut Array) -> Status;
    pub fn vit_rope_rotate(
        table: *const RopeTable,
        x: *mut c_void,
        shape: *const usize,
        ndim: u32,
        num_prefix_tokens: usize,
    ) -> Status;
    pub fn vit_rope_conventions(json: *mut *const c_char) -> Status;
    pub fn vit_rope_form_create(convention: *const c_char, options: *const RopeFormOptions, form: *mut *mut RopeForm) -> Status;
    pub fn vit_rope_form_free(form: *mut RopeForm);
    pub fn vit_rope_form_get(form: *const RopeForm, name: i32, array: *mut Array) -> Status;
    pub fn vit_rope_form_rotate(
        form: *const RopeForm,
        x: *mut f64,
        shape: *const usize,
        ndim: u32,
        num_prefix_tokens: usize,
    ) -> Status;
    pub fn vit_rope_identify(
        path: *const c_char,
        options: *const RopeIdentifyOptions,
        identity: *mut *mut RopeIdentity,
    ) -> Status;
    pub fn vit_rope_identify_arrays(
        names: *const *const c_char,
        arrays: *const Array,
        count: usize,
        options: *const RopeIdentifyOptions,
        identity: *mut *mut RopeIdentity,
    ) -> Status;
    pub fn vit_rope_identity_json(identity: *const RopeIdentity, json: *mut *const c_char) -> Status;
    pub fn vit_rope_identity_free(identity: *mut RopeIdentity);
    pub fn vit_patchify(pixels: *const f32, shape: *const usize, patch_size: usize, threads: i32, patches: *mut f32) -> Status;
    pub fn vit_attention(
        q: *const f32,
        k: *const f32,
        v: *const f32,
        shape: *const usize,
        table: *const RopeTable,
        options: *const AttentionOptions,
        out: *mut f32,
    ) -> Status;
    pub fn vit_sinusoidal(
        layout: i32,
        rows: usize,
        columns: usize,
        dim: usize,
        base: f64,
        dtype: i32,
        out: *mut c_void,
    ) -> Status;
}
