/** @file tess_cgroup.h
 *  The control groups that this process is in, as Linux shows them in /proc and /sys.
 */
#ifndef TESS_CGROUP_H
#define TESS_CGROUP_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Is called with the folder of a control group, which need not exist, and with the
 * version of its hierarchy, 1 or 2. */
typedef void tess_cgroup_visit(const char *folder, int version, void *context);

/** Calls `visit` for the control groups of this process that a controller like "memory"
 * or "cpu" can limit, and for all groups that contain them. `root` is put before /proc
 * and /sys: "", or a folder in tests. A container may see its own group as the root of
 * the hierarchy: then the path in /proc does not exist below /sys, but the root does.
 */
void tess_cgroup_each(const char *root, const char *controller,
                      tess_cgroup_visit *visit, void *context);

/** The first number in a file of the folder of a control group, or `otherwise`: the
 * file has "max", or does not exist. */
int64_t tess_cgroup_number(const char *folder, const char *name, int64_t otherwise);

#ifdef __cplusplus
}
#endif
#endif
