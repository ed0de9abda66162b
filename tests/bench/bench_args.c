/* Parses the command line that the benchmarks of the gridder share. */
#include "bench_args.h"

#include <argp.h>
#include <stdlib.h>

static const struct argp_option options[] = {
    {"times", 't', "N", 0, "Integrations of tracks to make up", 0},
    {"accuracy", 'a', "E", 0, "Promised error", 0},
    {"threads", 'j', "N", 0, "Threads", 0},
    {"repeat", 'r', "N", 0, "Repetitions, of which the fastest counts", 0},
    {"psf", 'p', NULL, 0, "Grid the point spread function in the same pass", 0},
    {"only", 'o', "STEP", 0, "One step of the ladder, or none", 0},
    {0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    bench_args *args = state->input;
    switch (key) {
    case 't':
        args->times = atoll(arg);
        break;
    case 'a':
        args->accuracy = atof(arg);
        break;
    case 'j':
        args->threads = atoi(arg);
        break;
    case 'r':
        args->repeat = atoi(arg);
        break;
    case 'p':
        args->psf = true;
        break;
    case 'o':
        args->only = arg;
        break;
    case ARGP_KEY_ARG:
        if (args->file) argp_error(state, "more than one file");
        args->file = arg;
        break;
    default:
        return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

void bench_args_parse(const char *doc, int argc, char **argv, bench_args *args)
{
    const struct argp argp = {options, parse, "[FILE.npz]", doc, NULL, NULL, NULL};
    argp_parse(&argp, argc, argv, 0, NULL, args);
    if (args->times < 1 || args->threads < 1 || args->repeat < 1 ||
        !(args->accuracy > 0)) {
        fprintf(stderr, "%s: numbers must be positive\n", argv[0]);
        exit(2);
    }
}

bool bench_args_open(const bench_args *args, bench_set *set)
{
    return args->file ? bench_set_read(args->file, set)
                      : bench_set_make(args->times, set);
}
