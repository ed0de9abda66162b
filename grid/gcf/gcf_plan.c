/* What strategies are called, and what they ask of a plan. */
#include "gcf_plan.h"

const char *tess_gcf_strategy_name(tess_gcf_strategy strategy)
{
    static const char *const name[TESS_GCF_NUM_STRATEGIES] = {
        "serial", "atomic", "tiled", "factored", "scatter", "gather",
        "window", "coarse", "warp",  "computed", "private"};
    return strategy < TESS_GCF_NUM_STRATEGIES ? name[strategy] : NULL;
}

int tess_gcf_plan_rank(const tess_gcf_plan *plan, int plane)
{
    return plan->factors ? plan->factors[plane].rank : 0;
}

int tess_gcf_plan_support(const tess_gcf_plan *plan, int plane)
{
    return plan->gcf->plane[plane].support - 2 * gcf_skip(plan, plane);
}
