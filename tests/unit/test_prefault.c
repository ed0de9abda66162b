/* Memory whose pages are there before it is written to. */
#define _DEFAULT_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "tess_mem.h"
#include "tess_prefault.h"

enum { ARRAYS = 3, PAGES = 5000 };

/* The kernel has all pages that lie in [array, array + bytes). */
static void check_pages(char *array, int64_t bytes)
{
    const int64_t page = sysconf(_SC_PAGESIZE);
    static unsigned char there[PAGES];
    char *first = (char *)(((uintptr_t)array + (uintptr_t)page - 1) / (uintptr_t)page *
                           (uintptr_t)page);
    const int64_t pages = (array + bytes - first) / page;
    assert_true(pages > 0 && pages <= PAGES);
    assert_int_equal(mincore(first, (size_t)(pages * page), there), 0);
    for (int64_t k = 0; k < pages; ++k)
        assert_true(there[k] & 1);
}

static void test_pages(void **state)
{
    const int64_t bytes = 17 * 1000 * 1000 + 3;
    tess_prefault *with = tess_prefault_start(ARRAYS, bytes);
    char *taken[ARRAYS];
    assert_non_null(with);
    for (int k = ARRAYS - 1; k >= 0; --k) {
        taken[k] = tess_prefault_take(with, k);
        assert_non_null(taken[k]);
        check_pages(taken[k], bytes);
        assert_null(tess_prefault_take(with, k));
    }
    tess_prefault_destroy(with);
    for (int k = 0; k < ARRAYS; ++k) {
        taken[k][bytes - 1] = 1; /* still the caller's */
        tess_free(taken[k]);
    }
}

/* What nobody has taken is given back, which the address sanitizer sees. */
static void test_untaken(void **state)
{
    tess_prefault *with = tess_prefault_start(ARRAYS, 100);
    assert_non_null(with);
    tess_free(tess_prefault_take(with, 1));
    tess_prefault_destroy(with);
    tess_prefault_destroy(NULL);
    assert_null(tess_prefault_take(NULL, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_pages),
                                       cmocka_unit_test(test_untaken)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
