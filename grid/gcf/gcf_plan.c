/* Tells what is known of strategies and plans without running them. */
#include "gcf_plan.h"

const char *tess_gcf_strategy_name(const tess_gcf_strategy *strategy)
{
    return strategy->name;
}

bool tess_gcf_strategy_there(tess_gcf_backend backend,
                             const tess_gcf_strategy *strategy, bool degrid)
{
    if (backend == TESS_GCF_CPU) return strategy->run != NULL;
    return strategy->device && strategy->device(degrid);
}

bool tess_gcf_strategy_wants_threads(const tess_gcf_strategy *strategy)
{
    return strategy->wants_threads;
}

const tess_gcf_tiling *gcf_tiling_of(const tess_gcf_plan *plan)
{
    static const tess_gcf_tiling usual;
    return plan->opts.tiling ? plan->opts.tiling : &usual;
}

int tess_gcf_plan_rank(const tess_gcf_plan *plan, int plane)
{
    return plan->factors ? plan->factors[plane].rank : 0;
}

int tess_gcf_plan_support(const tess_gcf_plan *plan, int plane)
{
    return plan->gcf->plane[plane].support - 2 * gcf_skip(plan, plane);
}
