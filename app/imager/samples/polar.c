/* Forms Stokes parameters from correlations, and correlations from predicted Stokes
 * parameters. */
#include "tess_polar.h"

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

tess_corr tess_pol_conjugate(tess_corr code)
{
    static const tess_corr pairs[][2] = {{RL, LR}, {LR, RL}, {XY, YX}, {YX, XY}};
    for (size_t k = 0; k < sizeof pairs / sizeof *pairs; ++k)
        if (pairs[k][0] == code) return pairs[k][1];
    return 0;
}

static bool is_cross(tess_corr code)
{
    return tess_pol_conjugate(code) != 0;
}

int tess_pol_expand(const tess_corr *code, int num_codes, tess_pol *pol)
{
    int count = 0;
    for (int k = 0; k < num_codes; ++k) {
        pol[count++] = (tess_pol){.code = code[k]};
        if (is_cross(code[k]))
            pol[count++] = (tess_pol){.code = code[k], .imaginary = true};
    }
    return count;
}

bool tess_pol_has(const tess_pol *pol, int num_pol, tess_corr code)
{
    for (int p = 0; p < num_pol; ++p)
        if (pol[p].code == code) return true;
    return false;
}

int tess_pol_join_hands(tess_pol *pol, int num_pol)
{
    int left = 0;
    if (!tess_pol_has(pol, num_pol, XY) || !tess_pol_has(pol, num_pol, YX))
        return num_pol;
    for (int p = 0; p < num_pol; ++p) {
        if (pol[p].code == YX) continue;
        pol[left] = pol[p];
        pol[left++].both = pol[p].code == XY;
    }
    return left;
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

/* The real or imaginary part of a cross-hand of the sky: the other one is its
 * conjugate. */
static tess_pol_mix mix_of_both(const tess_pol *pol, const tess_corr *corr,
                                int num_corr)
{
    const double complex half = pol->imaginary ? CMPLX(0, -0.5) : 0.5;
    const int a = find(corr, num_corr, pol->code);
    const int b = find(corr, num_corr, tess_pol_conjugate(pol->code));
    if (a < 0 || b < 0) return (tess_pol_mix){0};
    return (tess_pol_mix){.num = 2, .index = {a, b}, .coefficient = {half, conj(half)}};
}

tess_pol_mix tess_pol_mix_of(const tess_pol *pol, const tess_corr *corr, int num_corr)
{
    const double complex unit = pol->imaginary ? CMPLX(0, -1) : 1;
    const int same = find(corr, num_corr, pol->code);
    if (pol->both) return mix_of_both(pol, corr, num_corr);
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

tess_pol_mix tess_pol_hand_of(const tess_pol *pol, const tess_corr *corr, int num_corr)
{
    static const tess_corr hands[][2] = {{XX, YY}, {RR, LL}};
    if (pol->code != STOKES_I) return (tess_pol_mix){0};
    for (size_t k = 0; k < sizeof hands / sizeof *hands; ++k) {
        const int a = find(corr, num_corr, hands[k][0]);
        const int b = find(corr, num_corr, hands[k][1]);
        if ((a < 0) != (b < 0))
            return (tess_pol_mix){
                .num = 1, .index = {a < 0 ? b : a, 0}, .coefficient = {1, 0}};
    }
    return (tess_pol_mix){0};
}

void tess_pol_weigh_by_hands(tess_pol_mix *mix, const tess_corr *corr, int num_corr)
{
    mix->num_hands = 0;
    for (int k = 0; k < num_corr; ++k)
        if ((corr[k] == XX || corr[k] == YY || corr[k] == RR || corr[k] == LL) &&
            mix->num_hands < 2)
            mix->hand[mix->num_hands++] = k;
}

/* ---- what cannot be made ---- */

/* Distinct codes in the order in which they were found. */
typedef struct code_list {
    tess_corr code[16];
    int count;
} code_list;

static void add_code(code_list *list, tess_corr code)
{
    const int room = (int)(sizeof list->code / sizeof *list->code);
    if (find(list->code, list->count, code) < 0 && list->count < room)
        list->code[list->count++] = code;
}

/* "I, Q and V" or, with "," for `between`, "XX,YY". */
static void list_codes(const code_list *list, const char *between, const char *last,
                       char *text, size_t size)
{
    size_t used = 0;
    text[0] = '\0';
    for (int k = 0; k < list->count && used < size; ++k) {
        const char *before = k == 0 ? "" : k == list->count - 1 ? last : between;
        const int n = snprintf(text + used, size - used, "%s%s", before,
                               tess_corr_name(list->code[k]));
        used += n > 0 ? (size_t)n : 0;
    }
}

static bool is_circular(tess_corr code)
{
    return code <= RR && code >= LR;
}

static bool is_linear(tess_corr code)
{
    return code <= XX;
}

/* What a Stokes parameter lacks of a set with feeds of one kind; a correlation, or any
 * image of a set of Stokes parameters, lacks itself. */
static void add_missing(tess_corr wanted, const tess_corr *corr, int num_corr,
                        code_list *missing)
{
    bool known = false;
    for (size_t k = 0; k < sizeof combination / sizeof *combination; ++k) {
        const tess_corr pair[2] = {combination[k].first, combination[k].second};
        if (combination[k].stokes != wanted) continue;
        if (is_circular(pair[0]) ? !is_circular(corr[0]) : !is_linear(corr[0]))
            continue;
        known = true;
        for (int end = 0; end < 2; ++end)
            if (find(corr, num_corr, pair[end]) < 0) add_code(missing, pair[end]);
    }
    if (!known) add_code(missing, wanted);
}

/* What --stokes may ask for: Stokes parameters, else the correlations themselves. */
static void list_possible(const tess_corr *corr, int num_corr, char *text, size_t size)
{
    code_list possible = {.count = 0};
    for (tess_corr stokes = STOKES_I; stokes <= STOKES_V; ++stokes) {
        const tess_pol pol = {.code = stokes};
        if (tess_pol_mix_of(&pol, corr, num_corr).num > 0) add_code(&possible, stokes);
    }
    if (possible.count > 0) {
        list_codes(&possible, "", "", text, size);
        return;
    }
    for (int k = 0; k < num_corr; ++k)
        add_code(&possible, corr[k]);
    list_codes(&possible, ",", ",", text, size);
}

void tess_pol_explain(const tess_pol *pol, int num_pol, const tess_corr *corr,
                      int num_corr, char *text, size_t size)
{
    code_list lost = {.count = 0}, missing = {.count = 0}, there = {.count = 0};
    char lost_text[64], missing_text[64], there_text[64], possible[64];
    text[0] = '\0';
    for (int k = 0; k < num_pol; ++k) {
        if (tess_pol_mix_of(&pol[k], corr, num_corr).num > 0) continue;
        add_code(&lost, pol[k].code);
        add_missing(pol[k].code, corr, num_corr, &missing);
    }
    if (lost.count == 0) return;
    for (int k = 0; k < num_corr; ++k)
        add_code(&there, corr[k]);
    list_codes(&lost, ", ", " and ", lost_text, sizeof lost_text);
    list_codes(&there, ",", ",", there_text, sizeof there_text);
    list_codes(&missing, ",", ",", missing_text, sizeof missing_text);
    list_possible(corr, num_corr, possible, sizeof possible);
    snprintf(text, size, "%s cannot be made from %s: %s %s missing; --stokes %s can be",
             lost_text, there_text, missing_text, missing.count == 1 ? "is" : "are",
             possible);
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
