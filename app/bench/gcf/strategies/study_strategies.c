/* The list of strategies. */
#include "study_plan.h"

const tess_study_probes study_no_probes;

#define ON_GPU(name, strategy)                                                         \
    static const struct gcf_device_method *name(bool degrid)                           \
    {                                                                                  \
        return study_device_method(strategy, degrid);                                  \
    }
ON_GPU(device_scatter, TESS_STUDY_SCATTER)
ON_GPU(device_gather, TESS_STUDY_GATHER)
ON_GPU(device_window, TESS_STUDY_WINDOW)
ON_GPU(device_coarse, TESS_STUDY_COARSE)
ON_GPU(device_warp, TESS_STUDY_WARP)
ON_GPU(device_computed, TESS_STUDY_COMPUTED)

const tess_gcf_strategy *tess_study_strategy_of(tess_study_strategy strategy)
{
    static const tess_gcf_strategy serial = {.name = "serial", .run = study_run_serial},
                                   atomic = {.name = "atomic",
                                             .run = study_run_atomic,
                                             .wants_threads = true},
                                   scatter = {.name = "scatter",
                                              .device = device_scatter},
                                   gather = {.name = "gather", .device = device_gather},
                                   window = {.name = "window", .device = device_window},
                                   coarse = {.name = "coarse", .device = device_coarse},
                                   warp = {.name = "warp", .device = device_warp},
                                   computed = {.name = "computed",
                                               .run = study_run_computed,
                                               .device = device_computed},
                                   own = {.name = "private", .run = study_run_private};
    static const tess_gcf_strategy *const all[TESS_STUDY_NUM_STRATEGIES] = {
        &serial, &atomic, &tess_gcf_tiled, &tess_gcf_factored, &scatter, &gather,
        &window, &coarse, &warp,           &computed,          &own};
    return all[strategy];
}

const char *tess_study_name(tess_study_strategy strategy)
{
    return strategy < TESS_STUDY_NUM_STRATEGIES ? tess_study_strategy_of(strategy)->name
                                                : NULL;
}

bool tess_study_there(tess_gcf_backend backend, tess_study_strategy strategy,
                      bool degrid)
{
    return tess_gcf_strategy_there(backend, tess_study_strategy_of(strategy), degrid);
}
