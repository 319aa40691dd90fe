//! Classes of images.
use std::path::Path;
use std::ptr;

use crate::error::{c_path, check, handle, make, owned_text, text, Texts};
use crate::session::Inputs;
use crate::{sys, Input, Model, Result, Results, Session, TextEncoder};

/// A class and its probability.
#[derive(Clone, Debug, PartialEq)]
pub struct Prediction {
    /// Of the class.
    pub index: usize,
    /// Name, or the index if there is none.
    pub label: String,
    /// Softmax over all classes; the sigmoid or the value itself for models trained so.
    pub probability: f32,
    /// Output of the model.
    pub logit: f32,
}

handle! {
    /// Classes for the images of one model: its own, a fitted head's, or texts. Immutable: threads may share it.
    Classifier, sys::Classifier, sys::vit_classifier_free
}
unsafe impl Sync for Classifier {}

impl Classifier {
    /// The classes of the checkpoint: `Mismatch` if it has no classifier.
    pub fn of_model(model: &Model) -> Result<Classifier> {
        let model = model.pointer.as_ptr();
        Ok(Classifier { pointer: make(|out| unsafe { sys::vit_classifier_create(model, out) })? })
    }

    /// A head from `vit fit`: `Mismatch` if it was fitted on features of another model.
    pub fn of_head(model: &Model, path: impl AsRef<Path>) -> Result<Classifier> {
        let (model, path) = (model.pointer.as_ptr(), c_path(path.as_ref())?);
        Ok(Classifier { pointer: make(|out| unsafe { sys::vit_classifier_load_head(model, path.as_ptr(), out) })? })
    }

    /// Texts as classes. `templates` contain {} for the name of a class; none: "This is a photo of {}.".
    pub fn of_texts<T: AsRef<str>>(model: &Model, encoder: &mut TextEncoder, names: &[T], templates: &[T]) -> Result<Classifier> {
        let (names, templates) = (Texts::new(names)?, Texts::new(templates)?);
        let pointer = make(|out| unsafe {
            sys::vit_classifier_create_zero_shot(
                model.pointer.as_ptr(),
                encoder.pointer.as_ptr(),
                names.pointer(),
                names.len(),
                templates.pointer(),
                templates.len(),
                out,
            )
        })?;
        Ok(Classifier { pointer })
    }

    /// Number of classes.
    pub fn len(&self) -> usize {
        unsafe { sys::vit_classifier_size(self.pointer.as_ptr()) }
    }
    /// Whether there is no class, which no call makes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Name of a class.
    pub fn label(&self, index: usize) -> Result<&str> {
        let mut label = ptr::null();
        check(unsafe { sys::vit_classifier_label(self.pointer.as_ptr(), index, &mut label) })?;
        Ok(unsafe { text(label) }) // lives as long as the classifier
    }

    /// A value for each class as `Output::LOGITS` (n, K), by a session over the same model.
    ///
    /// # Errors
    /// As `Session::run()`.
    pub fn run(&self, session: &mut Session, inputs: &[Input<'_>], results: &mut Results) -> Result<()> {
        let inputs = Inputs::new(inputs)?;
        let (session, results) = (session.pointer.as_ptr(), results.pointer.as_ptr());
        check(unsafe { sys::vit_classifier_run(self.pointer.as_ptr(), session, inputs.pointer(), inputs.len(), results) })
    }

    /// The most probable classes of input `index` of a run of this classifier, best first, at most `top`.
    pub fn top(&self, results: &Results, index: usize, top: usize) -> Result<Vec<Prediction>> {
        let nothing = sys::Prediction { index: 0, label: ptr::null(), probability: 0.0, logit: 0.0 };
        let mut best = vec![nothing; top.min(self.len())];
        let mut count = 0;
        let (classifier, results) = (self.pointer.as_ptr(), results.pointer.as_ptr());
        check(unsafe { sys::vit_classifier_top(classifier, results, index, best.len(), best.as_mut_ptr(), &mut count) })?;
        let owned = |each: &sys::Prediction| Prediction {
            index: each.index,
            label: owned_text(each.label),
            probability: each.probability,
            logit: each.logit,
        };
        Ok(best[..count].iter().map(owned).collect())
    }
}
