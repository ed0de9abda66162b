/** @file gcf_on_device.h  (private to grid/gcf/)
 *  The strategies on a GPU, as plans see them. Where the build has no GPU,
 *  gcf_device_absent.c refuses to begin.
 */
#ifndef TESS_GCF_ON_DEVICE_H
#define TESS_GCF_ON_DEVICE_H

#include "gcf_plan.h"
#include "tess_gcf_device.h"

#ifdef __cplusplus
extern "C" {
#endif

/** The error to factor kernels to, so that what rounding on tensor cores adds keeps
 *  within the error asked for. */
double gcf_device_factor_error(const tess_gcf *gcf, double error);

/** The strategies of this module on a GPU, in a direction; NULL in a build without. */
const struct gcf_device_method *gcf_device_tiled(bool degrid);
const struct gcf_device_method *gcf_device_factored(bool degrid);

/** Name of the device that was taken, of letters, digits and '-' alone; "" without. */
void gcf_device_name(char *name, int size);

/** Copy a plan's table (and its factors, if it has any) to the device, which is taken
 *  unless it was. TESS_ERR_USAGE for a strategy that is not there, TESS_ERR_ALLOC,
 *  TESS_ERR_RESOURCE without a device. End with gcf_device_destroy(); NULL is fine. */
tess_status gcf_device_create(const tess_gcf_plan *plan, gcf_on_device **made);
void gcf_device_destroy(gcf_on_device *made);

/** (De)grid points and cells on the host: they are copied to the device and back. */
gcf_run gcf_device_run;

#ifdef __cplusplus
}
#endif
#endif
