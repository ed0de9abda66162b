/** @file commands.h  (private to app/)
 *  The subcommands. Each parses its own arguments (argv[0] is the subcommand's name)
 *  and returns a status; main.c turns that into one error line and the exit status.
 *  Collective: every rank calls with the same arguments.
 */
#ifndef TESS_COMMANDS_H
#define TESS_COMMANDS_H

#include "tess_comm.h"
#include "tess_status.h"

tess_status tess_cmd_image(tess_comm *comm, int argc, char **argv);
tess_status tess_cmd_predict(tess_comm *comm, int argc, char **argv);
tess_status tess_cmd_simulate(tess_comm *comm, int argc, char **argv);
tess_status tess_cmd_info(tess_comm *comm, int argc, char **argv);
tess_status tess_cmd_plan(tess_comm *comm, int argc, char **argv);
tess_status tess_cmd_compare(tess_comm *comm, int argc, char **argv);
tess_status tess_cmd_bench(tess_comm *comm, int argc, char **argv);

/** `bench gcf`, argv[0] being "gcf". */
tess_status tess_cmd_bench_gcf(tess_comm *comm, int argc, char **argv);

#endif
