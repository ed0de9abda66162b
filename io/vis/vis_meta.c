/* Translates names of correlations, and frees descriptions of visibility sets. */
#include <math.h>
#include <string.h>
#include <strings.h>

#include "tess_mem.h"
#include "vis_format.h"

static const struct {
    tess_corr corr;
    const char *name;
} corr_names[] = {{1, "I"},   {2, "Q"},   {3, "U"},   {4, "V"},
                  {-1, "RR"}, {-2, "LL"}, {-3, "RL"}, {-4, "LR"},
                  {-5, "XX"}, {-6, "YY"}, {-7, "XY"}, {-8, "YX"}};

enum { NUM_CORR_NAMES = sizeof corr_names / sizeof corr_names[0] };

const char *tess_corr_name(tess_corr corr)
{
    for (int k = 0; k < NUM_CORR_NAMES; ++k)
        if (corr_names[k].corr == corr) return corr_names[k].name;
    return "?";
}

tess_corr tess_corr_parse(const char *name)
{
    for (int k = 0; name && k < NUM_CORR_NAMES; ++k)
        if (strcasecmp(corr_names[k].name, name) == 0) return corr_names[k].corr;
    return 0;
}

void tess_vis_site(const tess_vis_meta *meta, double site_m[3])
{
    int count = 0;
    memset(site_m, 0, 3 * sizeof *site_m);
    for (int k = 0; k < meta->num_antennas; ++k) {
        const double *xyz_m = meta->antenna[k].xyz_m;
        if (!isfinite(xyz_m[0] + xyz_m[1] + xyz_m[2]) ||
            !(fabs(xyz_m[0]) + fabs(xyz_m[1]) + fabs(xyz_m[2]) > 0))
            continue;
        for (int c = 0; c < 3; ++c)
            site_m[c] += xyz_m[c];
        ++count;
    }
    for (int c = 0; c < 3 && count > 0; ++c)
        site_m[c] /= count;
}

int tess_vis_fields_with_rows(const tess_vis_meta *meta)
{
    int count = 0;
    for (int k = 0; k < meta->num_fields; ++k)
        count += meta->field[k].num_rows > 0;
    return count;
}

void tess_vis_meta_free(tess_vis_meta *meta)
{
    if (!meta) return;
    for (int k = 0; meta->segment && k < meta->num_segments; ++k) {
        tess_free(meta->segment[k].freq_hz);
        tess_free(meta->segment[k].chan_width_hz);
        tess_free(meta->segment[k].chan_spw);
    }
    tess_free(meta->segment);
    tess_free(meta->field);
    tess_free(meta->antenna);
    *meta = (tess_vis_meta){0};
}

bool tess_vis_expresses(const tess_vis_expressions *by)
{
    return by->field || by->spw || by->scan || by->time || by->uvrange || by->antenna ||
           by->intent || by->taql;
}
