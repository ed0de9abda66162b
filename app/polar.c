#include "polar.h"

#include <stdio.h>
#include <string.h>

enum {
    STOKES_I = 1,
    STOKES_Q,
    STOKES_U,
    STOKES_V,
    RR = -1,
    LL = -2,
    RL = -3,
    LR = -4,
    XX = -5,
    YY = -6,
    XY = -7,
    YX = -8
};

static bool is_cross(tess_corr code)
{
    return code == RL || code == LR || code == XY || code == YX;
}

int tess_pol_expand(const tess_corr *code, int num_codes, tess_pol *pol)
{
    int count = 0;
    for (int k = 0; k < num_codes; ++k) {
        pol[count++] = (tess_pol){code[k], false};
        if (is_cross(code[k])) pol[count++] = (tess_pol){code[k], true};
    }
    return count;
}

void tess_pol_name(const tess_pol *pol, char name[8])
{
    snprintf(name, 8, "%s%s", tess_corr_name(pol->code), pol->imaginary ? "i" : "");
}

static int find(const tess_corr *corr, int num_corr, tess_corr code)
{
    for (int k = 0; k < num_corr; ++k)
        if (corr[k] == code) return k;
    return -1;
}

/* Stokes parameters of linear and circular feeds (DESIGN of the conventions: I is the
 * mean of the parallel hands). */
static const struct {
    tess_corr stokes, first, second;
    double complex a, b;
} combination[] = {
    {STOKES_I, XX, YY, 0.5, 0.5},
    {STOKES_Q, XX, YY, 0.5, -0.5},
    {STOKES_U, XY, YX, 0.5, 0.5},
    {STOKES_V, XY, YX, CMPLX(0, -0.5), CMPLX(0, 0.5)},
    {STOKES_I, RR, LL, 0.5, 0.5},
    {STOKES_Q, RL, LR, 0.5, 0.5},
    {STOKES_U, RL, LR, CMPLX(0, -0.5), CMPLX(0, 0.5)},
    {STOKES_V, RR, LL, 0.5, -0.5},
};

tess_pol_mix tess_pol_mix_of(const tess_pol *pol, const tess_corr *corr, int num_corr)
{
    const double complex unit = pol->imaginary ? CMPLX(0, -1) : 1;
    const int same = find(corr, num_corr, pol->code);
    if (same >= 0)
        return (tess_pol_mix){.num = 1, .index = {same, 0}, .coefficient = {unit, 0}};
    for (size_t k = 0; k < sizeof combination / sizeof *combination; ++k) {
        if (combination[k].stokes != pol->code) continue;
        const int a = find(corr, num_corr, combination[k].first);
        const int b = find(corr, num_corr, combination[k].second);
        if (a >= 0 && b >= 0)
            return (tess_pol_mix){.num = 2,
                                  .index = {a, b},
                                  .coefficient = {combination[k].a, combination[k].b}};
    }
    return (tess_pol_mix){0};
}

void tess_pol_from_stokes(tess_corr corr, double complex coefficient[4])
{
    static const struct {
        tess_corr corr;
        double complex i, q, u, v;
    } table[] = {
        {STOKES_I, 1, 0, 0, 0},     {STOKES_Q, 0, 1, 0, 0},
        {STOKES_U, 0, 0, 1, 0},     {STOKES_V, 0, 0, 0, 1},
        {XX, 1, 1, 0, 0},           {YY, 1, -1, 0, 0},
        {XY, 0, 0, 1, CMPLX(0, 1)}, {YX, 0, 0, 1, CMPLX(0, -1)},
        {RR, 1, 0, 0, 1},           {LL, 1, 0, 0, -1},
        {RL, 0, 1, CMPLX(0, 1), 0}, {LR, 0, 1, CMPLX(0, -1), 0},
    };
    memset(coefficient, 0, 4 * sizeof *coefficient);
    for (size_t k = 0; k < sizeof table / sizeof *table; ++k)
        if (table[k].corr == corr) {
            coefficient[0] = table[k].i;
            coefficient[1] = table[k].q;
            coefficient[2] = table[k].u;
            coefficient[3] = table[k].v;
        }
}
