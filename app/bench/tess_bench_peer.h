/** @file tess_bench_peer.h
 *  Another program on a bench's visibilities, by way of Python: bench_peer.py, which is
 *  part of the executable, reads them from a temporary folder.
 */
#ifndef TESS_BENCH_PEER_H
#define TESS_BENCH_PEER_H

#include <stdbool.h>
#include <stdint.h>

#include "tess_status.h"

/** What is timed, and the plan that it was given here. */
typedef struct tess_bench_peer_case {
    bool degrid, is_double;
    int64_t size, nu, nv;
    int num_planes, support;
    double accuracy, scale_rad;
    int threads, repeat;
    int64_t num_rows, num_chan;
    const double *uvw_m;      /**< [num_rows][3] */
    const double *inv_lambda; /**< [num_chan] */
    const void *vis;          /**< [num_rows][num_chan] complex of the precision */
} tess_bench_peer_case;

/** Medians over the repetitions. */
typedef struct tess_bench_peer_result {
    int support; /**< 0: it does not say */
    double sort_s, seconds;
    char version[32];
} tess_bench_peer_result;

/** The script's text. */
extern const char tess_bench_peer_script[];

/** Is this a peer: "ducc0" or "cufinufft"? TESS_ERR_USAGE if not. Local. */
tess_status tess_bench_peer_check(const char *peer);

/** Time it. The interpreter is TESS_PYTHON, else python3. TESS_ERR_RESOURCE when it or
 *  the peer is not installed, or fails; files go to TMPDIR and are removed. Local. */
tess_status tess_bench_peer_run(const char *peer, const tess_bench_peer_case *what,
                                tess_bench_peer_result *result);

#endif
