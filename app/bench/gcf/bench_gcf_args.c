/* From the values of options to a case of `tessera bench gcf`. */
#include "tess_bench_gcf_args.h"

void tess_bench_gcf_case_of(const tess_bench_gcf_args *args, const double *value,
                            const tess_study_strategy *strategy,
                            tess_bench_gcf_case *what)
{
    *what = (tess_bench_gcf_case){.degrid = value[0] > 0,
                                  .order = (tess_bench_gcf_order)value[1],
                                  .num_points = (int64_t)value[2],
                                  .size = (int64_t)value[3],
                                  .num_pol = (int)value[4],
                                  .is_double = value[5] > 0,
                                  .support = (int)value[6],
                                  .num_planes = args->planes,
                                  .oversampling = args->oversampling,
                                  .field_rad = args->field_rad,
                                  .is_formula = args->formula,
                                  .extra = args->extra,
                                  .normalise = args->normalise,
                                  .energy_s = args->energy_s,
                                  .intensity = args->intensity,
                                  .overwrite = args->overwrite,
                                  .opts = args->opts,
                                  .strategy = strategy,
                                  .shrink = args->shrink};
}
