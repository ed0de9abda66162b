/** @file tessera.h
 *  The tessera library: radio-interferometric imaging from C and C++.
 *
 *  Link with `tessera::tessera` (find_package) or `pkg-config --libs tessera`.
 */
#ifndef TESSERA_H
#define TESSERA_H

#include "tess_api.h"
#include "tess_arrays.h"
#include "tess_command.h"
#include "tess_data.h"
#include "tess_images.h"
#include "tess_model.h"
#include "tess_session.h"

#endif
