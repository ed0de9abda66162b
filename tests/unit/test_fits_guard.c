/* FITS headers that would end the process inside CFITSIO are refused before it reads
 * them, by whatever opens the file; headers that are only unusual are not. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "tess_fits_array.h"
#include "tess_vis.h"

enum { BLOCK = 2880 };

#define PATH "test_fits_guard.fits"

static const char *const empty_primary[] = {"SIMPLE  =                    T",
                                            "BITPIX  =                    8",
                                            "NAXIS   =                    0", NULL};

static const char *const image[] = {
    "SIMPLE  =                    T", "BITPIX  =                   16",
    "NAXIS   =                    2", "NAXIS1  =                    2",
    "NAXIS2  =                    3", NULL};

static const char *const table[] = {
    "XTENSION= 'BINTABLE'",           "BITPIX  =                    8",
    "NAXIS   =                    2", "NAXIS1  =                    8",
    "NAXIS2  =                    4", "PCOUNT  =                    0",
    "GCOUNT  =                    1", "TFIELDS =                    1",
    "TFORM1  = '1D      '",           NULL};

/* Add a header and a block of data; the card `other` replaces that of its keyword, or
 * comes last. */
static void put(FILE *file, const char *const *cards, const char *other)
{
    bool is_there = false;
    for (; *cards; ++cards) {
        const bool same = other && strncmp(*cards, other, 8) == 0;
        fprintf(file, "%-80s", same ? other : *cards);
        is_there = is_there || same;
    }
    if (other && !is_there) fprintf(file, "%-80s", other);
    fprintf(file, "%-80s", "END");
    while (ftell(file) % BLOCK)
        fputc(' ', file);
    for (int k = 0; k < BLOCK; ++k)
        fputc(0, file);
}

/* An empty primary header followed by a table, both with no data in between. */
static void put_table(const char *other)
{
    FILE *file = fopen(PATH, "wb");
    assert_non_null(file);
    put(file, empty_primary, NULL);
    assert_int_equal(fseek(file, BLOCK, SEEK_SET), 0);
    put(file, table, other);
    assert_int_equal(fclose(file), 0);
}

static void put_image(const char *other)
{
    FILE *file = fopen(PATH, "wb");
    assert_non_null(file);
    put(file, image, other);
    assert_int_equal(fclose(file), 0);
}

static void refuse(const char *word)
{
    tess_fits_array array;
    tess_vis_reader *reader = NULL;
    tess_error_clear();
    assert_int_equal(tess_fits_array_open(PATH, &array), TESS_ERR_INPUT);
    if (!strstr(tess_error_message(), word)) fail_msg("%s", tess_error_message());
    assert_non_null(strstr(tess_error_message(), PATH));
    tess_error_clear();
    assert_int_equal(tess_vis_open(PATH, NULL, &reader), TESS_ERR_INPUT);
    assert_null(reader);
    tess_error_clear();
}

static void compressed_images_are_not_opened(void **state)
{
    (void)state;
    put_table("ZIMAGE  =                    T");
    refuse("run funpack");
    put_table("ZIMAGE  =                    F");
    refuse("holds no image");
}

static void damaged_images_are_refused(void **state)
{
    (void)state;
    static const char *const cards[] = {"BITPIX  =                    7",
                                        "BITPIX  = 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx'",
                                        "NAXIS   =                 1000",
                                        "NAXIS1  =                   -2",
                                        "NAXIS1  =                  0.5",
                                        "NAXIS2  =  9223372036854775807",
                                        "NAXIS2  =  9999999999999999999",
                                        "PCOUNT  =                   -1",
                                        "GCOUNT  =  9223372036854775807",
                                        "NAXIS1"};
    for (size_t k = 0; k < sizeof cards / sizeof *cards; ++k) {
        put_image(cards[k]);
        refuse("damaged");
    }
    put_image("BLANK   = 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxx'");
    tess_fits_array array;
    assert_int_equal(tess_fits_array_open(PATH, &array), TESS_ERR_INPUT);
    assert_non_null(strstr(tess_error_message(), "BLANK"));
    tess_error_clear();
}

static void damaged_tables_are_refused(void **state)
{
    (void)state;
    static const char *const cards[] = {
        "TFIELDS =            990006123", "TFIELDS =                   -1",
        "NAXIS2  =  1152921504606846976",
        /* to the last column: CFITSIO's buffer has no room for the closing quote */
        "TTYPE1  = "
        "'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"};
    assert_int_equal(strlen(cards[3]), 80);
    for (size_t k = 0; k < sizeof cards / sizeof *cards; ++k) {
        put_table(cards[k]);
        refuse("damaged");
    }
}

static void headers_end(void **state)
{
    (void)state;
    put_image(NULL);
    assert_int_equal(truncate(PATH, 400), 0);
    refuse("no END");
    put_table(NULL);
    assert_int_equal(truncate(PATH, BLOCK + 400), 0);
    refuse("no END");
}

/* A number may stand anywhere, a value may be missing, a text may hold quotes. */
static void unusual_headers_are_read(void **state)
{
    (void)state;
    static const char *const cards[] = {
        "NAXIS1  = 2 / no column is fixed",
        "BLANK   = -32768.0",
        "BLANK   =",
        "OBJECT  = "
        "'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx'",
        "OBJECT  = 'it''s'",
        "OBJECT  = 'not closed",
        "HISTORY = 'not closed, to the end",
        "COMMENT NAXIS1 = -1"};
    for (size_t k = 0; k < sizeof cards / sizeof *cards; ++k) {
        tess_fits_array array;
        put_image(cards[k]);
        if (tess_fits_array_open(PATH, &array) != TESS_OK)
            fail_msg("%s: %s", cards[k], tess_error_message());
        assert_int_equal(array.num_pixels, 6);
        assert_int_equal(array.has_blank, k == 1);
    }
}

static int tear_down(void **state)
{
    (void)state;
    return unlink(PATH);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(compressed_images_are_not_opened),
        cmocka_unit_test(damaged_images_are_refused),
        cmocka_unit_test(damaged_tables_are_refused),
        cmocka_unit_test(headers_end),
        cmocka_unit_test(unusual_headers_are_read),
    };
    return cmocka_run_group_tests(tests, NULL, tear_down);
}
