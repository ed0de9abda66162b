/** @file tess_subcommands.h
 *  The subcommands. Each parses its own arguments (argv[0] is the subcommand's name)
 *  and returns a status; main.c turns that into one error line and the exit status.
 *  Collective: every rank calls with the same arguments.
 */
#ifndef TESS_SUBCOMMANDS_H
#define TESS_SUBCOMMANDS_H

#include <stdio.h>

#include "tess_cli.h"
#include "tess_comm.h"
#include "tess_imager.h"
#include "tess_imager_predict.h"
#include "tess_status.h"

tess_status tess_cmd_image(tess_comm *comm, int argc, char **argv);
tess_status tess_cmd_predict(tess_comm *comm, int argc, char **argv);
tess_status tess_cmd_restore(tess_comm *comm, int argc, char **argv);
tess_status tess_cmd_draw(tess_comm *comm, int argc, char **argv);
tess_status tess_cmd_facets(tess_comm *comm, int argc, char **argv);
tess_status tess_cmd_mosaic(tess_comm *comm, int argc, char **argv);
tess_status tess_cmd_simulate(tess_comm *comm, int argc, char **argv);
tess_status tess_cmd_info(tess_comm *comm, int argc, char **argv);
tess_status tess_cmd_plan(tess_comm *comm, int argc, char **argv);
tess_status tess_cmd_compare(tess_comm *comm, int argc, char **argv);
tess_status tess_cmd_stats(tess_comm *comm, int argc, char **argv);
tess_status tess_cmd_bench(tess_comm *comm, int argc, char **argv);
tess_status tess_cmd_wsclean(tess_comm *comm, int argc, char **argv);

/** Subcommands that were made of another program's command line; NULL: they were not.
 */
tess_status tess_cmd_image_noted(tess_comm *comm, int argc, char **argv,
                                 const tess_cli_origin *origin);
tess_status tess_cmd_predict_noted(tess_comm *comm, int argc, char **argv,
                                   const tess_cli_origin *origin);
tess_status tess_cmd_restore_noted(tess_comm *comm, int argc, char **argv,
                                   const tess_cli_origin *origin);
tess_status tess_cmd_draw_noted(tess_comm *comm, int argc, char **argv,
                                const tess_cli_origin *origin);

/** What the caller of `predict` gives and takes beside arguments. */
typedef struct tess_predict_memory {
    const tess_fits_pixels
        *pixels;              /**< the model, where there is no --model; or NULL */
    tess_predict_taker *take; /**< gets all where no output is named; or NULL */
    void *take_context;
    const char *const *notes; /**< first lines of the log, which NULL ends; or NULL */
} tess_predict_memory;

/** `predict` with `memory`. */
tess_status tess_cmd_predict_memory(tess_comm *comm, int argc, char **argv,
                                    const tess_predict_memory *memory);

/** `info --json`, written to `json`. */
tess_status tess_cmd_info_json(tess_comm *comm, int argc, char **argv, FILE *json);

/** `bench gcf`, argv[0] being "gcf". */
tess_status tess_cmd_bench_gcf(tess_comm *comm, int argc, char **argv);

/** `bench convolve`, argv[0] being "convolve". */
tess_status tess_cmd_bench_convolve(tess_comm *comm, int argc, char **argv);

#endif
