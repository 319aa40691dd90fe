// Everything a user of the library includes. The adapters for cv::Mat and Eigen stand apart: vit/opencv.h,
// vit/eigen.h; so do the position encodings, vit/position/. What is stable: vit/version.h.
#pragma once

#include "vit/analysis/detection.h"
#include "vit/analysis/features.h"
#include "vit/anomaly.h"
#include "vit/base/error.h"
#include "vit/base/tensor.h"
#include "vit/classifier.h"
#include "vit/config.h"
#include "vit/dense.h"
#include "vit/fit.h"
#include "vit/image/image.h"
#include "vit/image/preprocess.h"
#include "vit/machine.h"
#include "vit/model.h"
#include "vit/outputs.h"
#include "vit/session.h"
#include "vit/text/tokenizer.h"
#include "vit/text_encoder.h"
#include "vit/version.h"
#include "vit/zero_shot.h"
