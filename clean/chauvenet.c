/* Leaves out values by Chauvenet's criterion. Sums are exact, and do not depend on the
 * number of ranks. */
#include "chauvenet.h"

#include <math.h>
#include <stdbool.h>

#include "tess_exact.h"
#include "tess_mem.h"

enum { MOST_ROUNDS = 5 };

typedef struct clipped {
    tess_comm *comm;
    const double *value;
    int64_t count;
    double low, high; /* values outside are left out */
    tess_exact *sum;
} clipped;

static bool is_in(const clipped *c, int64_t k)
{
    return c->value[k] >= c->low && c->value[k] <= c->high; /* no NaN is */
}

/* Σ (value − from)^power of the values that are left. Collective. */
static tess_status add_up(clipped *c, double from, int power, double *total)
{
    tess_status status = TESS_OK;
    *c->sum = (tess_exact){{0}};
    for (int64_t k = 0; k < c->count; ++k)
        if (is_in(c, k)) {
            const double d = c->value[k] - from;
            tess_exact_add(c->sum, power == 2 ? d * d : d);
        }
    TESS_TRY(
        tess_comm_allreduce_i64(c->comm, c->sum->word, TESS_EXACT_WORDS, TESS_SUM));
    *total = tess_exact_value(c->sum);
cleanup:
    return status;
}

static tess_status count_in(const clipped *c, int64_t *count)
{
    *count = 0;
    for (int64_t k = 0; k < c->count; ++k)
        *count += is_in(c, k);
    return tess_comm_allreduce_i64(c->comm, count, 1, TESS_SUM);
}

/* The deviation, in σ, beyond which half a value of `count` is expected. */
static double criterion(double count)
{
    double low = 0, high = 40;
    for (int k = 0; k < 100; ++k) {
        const double middle = 0.5 * (low + high);
        if (count * erfc(middle / sqrt(2)) > 0.5)
            low = middle;
        else
            high = middle;
    }
    return high;
}

/* Collective. */
static tess_status clip(clipped *c)
{
    tess_status status = TESS_OK;
    int64_t left = 0, before = -1;
    for (int k = 0; k < MOST_ROUNDS; ++k) {
        double sum, squares;
        TESS_TRY(count_in(c, &left));
        if (left < 2 || left == before) break;
        TESS_TRY(add_up(c, 0, 1, &sum));
        const double mean = sum / (double)left;
        TESS_TRY(add_up(c, mean, 2, &squares));
        const double reach =
            criterion((double)left) * sqrt(squares / (double)(left - 1));
        c->low = mean - reach;
        c->high = mean + reach;
        before = left;
    }
cleanup:
    return status;
}

tess_status chauvenet_blank(tess_comm *comm, const double *value, int64_t count,
                            uint8_t *is_blank)
{
    tess_status status = TESS_OK;
    clipped c = {comm,      value,    count,
                 -INFINITY, INFINITY, tess_alloc(1, sizeof(tess_exact))};
    TESS_TRY(tess_comm_agree(comm, c.sum ? TESS_OK : TESS_ERR_ALLOC));
    TESS_TRY(clip(&c));
    for (int64_t k = 0; k < count; ++k)
        is_blank[k] = !is_in(&c, k);
cleanup:
    tess_free(c.sum);
    return status;
}
