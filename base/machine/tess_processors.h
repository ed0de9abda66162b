/** @file tess_processors.h
 *  How many processors this process may use. The host often has more of them than a
 *  batch job, a container or a bound rank may use.
 */
#ifndef TESS_PROCESSORS_H
#define TESS_PROCESSORS_H

/** Processors whose time the control groups of this process may use, as the smallest
 * quota over period of the group and of the groups that contain it (versions 1 and 2).
 * A quota may be a part of a processor. 0: there is no limit. `root` is put before
 * /proc and /sys: "", or a folder in tests. */
double tess_processors_quota(const char *root);

/** Processors of this node that the processes of a batch job may use together: the
 * quota of the control groups or SLURM_CPUS_ON_NODE, if that is less. 0: there is no
 * limit. */
double tess_processors_of_job(void);

/** Processors that this process may use: those that it is bound to, or those of the
 * job, if these are fewer. At least 1. */
int tess_processors(void);

#endif
