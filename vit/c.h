/* The C interface of the library, for programs in other languages: C99 and C++. It is kept compatible: newer
 * releases of one soname add functions, constants, and members at the end of option structs, and change
 * nothing else. Start with vit/c/base.h, which tells how calls fail, how long things live, and what threads
 * may share.
 *
 *   vit_model* model = NULL;
 *   vit_session* session = NULL;
 *   vit_results* results = NULL;
 *   vit_input input = {0};
 *   vit_array array;
 *   input.struct_size = sizeof input;
 *   input.path = "photo.jpg";
 *   if (vit_model_load("model", NULL, &model) || vit_session_create(model, NULL, &session) ||
 *       vit_results_create(&results) || vit_session_run(session, &input, 1, NULL, results) ||
 *       vit_results_all(results, VIT_POOLED, 0, &array))
 *     fprintf(stderr, "%s\n", vit_last_error());
 *
 * apps/examples/embed.c is a whole program.
 */
#ifndef VIT_C_H
#define VIT_C_H

#include "vit/c/base.h"
#include "vit/c/model.h"
#include "vit/c/position.h"
#include "vit/c/session.h"
#include "vit/c/text.h"

#endif
