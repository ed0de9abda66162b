#define _GNU_SOURCE
#include "bench_list.h"

#include <stdlib.h>
#include <string.h>

#include "tess_mem.h"

tess_status tess_bench_list_parse(const char *text,
                                  tess_status (*parse)(const char *, double *),
                                  tess_bench_list *list)
{
    tess_status status = TESS_OK;
    char *copy = tess_strdup(text), *rest = copy;
    tess_bench_list made = {.count = 0};
    if (!copy) TESS_FAIL(TESS_ERR_ALLOC, "list");
    for (char *word; (word = strsep(&rest, ",")) != NULL;) {
        if (made.count == TESS_BENCH_MOST)
            TESS_FAIL(TESS_ERR_USAGE, "'%s' has more than %d entries", text,
                      TESS_BENCH_MOST);
        TESS_TRY(parse(word, &made.value[made.count]));
        ++made.count;
    }
    *list = made;
cleanup:
    tess_free(copy);
    return status;
}

void tess_bench_combination(const tess_bench_list *const *list, int num_lists, int k,
                            double *value)
{
    for (int i = num_lists - 1; i >= 0; --i) {
        value[i] = list[i]->value[k % list[i]->count];
        k /= list[i]->count;
    }
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double tess_bench_median(double *values, int count)
{
    qsort(values, (size_t)count, sizeof *values, by_value);
    return values[count / 2];
}
