/* Checks what must be true of a FITS header so that CFITSIO can be given it. */
#define _GNU_SOURCE
#include "fits_guard.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tess_input.h"

enum {
    CARD = 80,
    BLOCK = 2880,
    VALUE_AT = 10, /* first column of a value */
    BLOCKS_AT_ONCE = 16,
    MAX_NUMBER = 20,  /* digits and sign of a 64-bit integer */
    MAX_COUNTED = 999 /* axes, columns: numbers in keywords have three digits */
};

/* A longer header than this is damaged: its END is missing. */
#define MAX_HEADER_BYTES ((int64_t)64 << 20)

/* The header that is being checked. */
typedef struct header {
    const char *path;
    int64_t offset;        /* of its first card */
    int64_t bitpix, count; /* size of its data: largest values of BITPIX, GCOUNT */
    int64_t parameters;    /* PCOUNT */
    int64_t values;        /* product of the NAXISn that are not zero */
    bool is_extension, ended;
} header;

static tess_status damaged(const header *head, const char *card, const char *why)
{
    tess_status status = TESS_OK;
    TESS_FAIL(TESS_ERR_INPUT, "%s: the header at byte %lld is damaged: %.8s %s",
              head->path, (long long)head->offset, card, why);
cleanup:
    return status;
}

/* ---- cards ---- */

static bool is_named(const char *card, const char *name)
{
    const size_t length = strlen(name);
    return strncmp(card, name, length) == 0 &&
           strspn(card + length, " ") >= 8 - length && strchr("= ", card[8]);
}

/* Whether a card is a numbered one of this name: NAXIS1 for "NAXIS", but not NAXIS
 * itself. */
static bool is_numbered(const char *card, const char *name)
{
    const size_t length = strlen(name);
    return strncmp(card, name, length) == 0 && card[length] >= '1' &&
           card[length] <= '9';
}

/* Reads the integer of a card. Returns false if its value is no integer. */
static bool get_integer(const char *card, int64_t *value)
{
    char text[MAX_NUMBER + 1] = "";
    const char *start = card + VALUE_AT + strspn(card + VALUE_AT, " ");
    const size_t length = strcspn(start, " /");
    char *end = NULL;
    if (length == 0 || length > MAX_NUMBER || card[8] != '=') return false;
    memcpy(text, start, length);
    errno = 0;
    *value = strtoll(text, &end, 10);
    return errno == 0 && *end == '\0';
}

/* Whether a quoted value goes on to the card's last column without a closing quote:
 * CFITSIO appends the quote, for which its buffer has no room. */
static bool is_open_string(const char *card)
{
    const char *at = strchr(card, '=');
    if (!at || card[CARD - 1] == ' ') return false;
    at += 1 + strspn(at + 1, " ");
    if (*at != '\'') return false;
    for (++at; *at; ++at)
        if (*at == '\'' && *++at != '\'') return false;
    return true;
}

static tess_status check_size(header *head, const char *card)
{
    tess_status status = TESS_OK;
    int64_t value = 0;
    if (!get_integer(card, &value)) TESS_TRY(damaged(head, card, "is no integer"));
    if (is_named(card, "BITPIX")) {
        if (value != 8 && value != 16 && llabs(value) != 32 && llabs(value) != 64)
            TESS_TRY(damaged(head, card, "is no type of data"));
        head->bitpix = llabs(value);
        return TESS_OK;
    }
    if (value < 0) TESS_TRY(damaged(head, card, "is negative"));
    if (is_named(card, "NAXIS") || is_named(card, "TFIELDS")) {
        if (value > MAX_COUNTED) TESS_TRY(damaged(head, card, "is too large"));
    } else if (is_named(card, "PCOUNT"))
        head->parameters = value;
    else if (is_named(card, "GCOUNT"))
        head->count = value;
    else if (value > 0 && __builtin_mul_overflow(head->values, value, &head->values))
        TESS_TRY(damaged(head, card, "is too large"));
cleanup:
    return status;
}

static tess_status check_card(header *head, const char *card)
{
    tess_status status = TESS_OK;
    if (is_open_string(card))
        TESS_TRY(damaged(head, card, "has a text without an end"));
    if (is_named(card, "BITPIX") || is_named(card, "NAXIS") ||
        is_numbered(card, "NAXIS") || is_named(card, "PCOUNT") ||
        is_named(card, "GCOUNT") || is_named(card, "TFIELDS"))
        TESS_TRY(check_size(head, card));
    /* CFITSIO divides by the tile sizes of a compressed image when it opens it */
    if (head->is_extension && is_named(card, "ZIMAGE") &&
        card[VALUE_AT + strspn(card + VALUE_AT, " ")] != 'F')
        TESS_FAIL(TESS_ERR_INPUT,
                  "%s: an image in it is compressed (at byte %lld); run funpack on it",
                  head->path, (long long)head->offset);
    head->ended = strncmp(card, "END     ", 8) == 0;
cleanup:
    return status;
}

/* Checks that the size of the data is a number, also when CFITSIO rounds it up to whole
 * blocks. */
static tess_status check_extent(const header *head)
{
    tess_status status = TESS_OK;
    int64_t bytes = 0;
    if (__builtin_add_overflow(head->values, head->parameters, &bytes) ||
        __builtin_mul_overflow(bytes, head->count, &bytes) ||
        __builtin_mul_overflow(bytes, head->bitpix / 8, &bytes) ||
        __builtin_add_overflow(bytes, head->offset + MAX_HEADER_BYTES, &bytes))
        TESS_FAIL(TESS_ERR_INPUT,
                  "%s: the header at byte %lld is damaged: it announces absurdly many "
                  "data",
                  head->path, (long long)head->offset);
cleanup:
    return status;
}

/* ---- headers ---- */

static tess_status check_header(int fd, int64_t file_bytes, const char *path,
                                int64_t offset)
{
    tess_status status = TESS_OK;
    char blocks[BLOCKS_AT_ONCE * BLOCK], card[CARD + 1] = "";
    header head = {path, offset, 8, 1, 0, 1, offset > 0, false};
    for (int64_t at = offset; !head.ended;) {
        ssize_t got = pread(fd, blocks, sizeof blocks, at);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0)
            TESS_FAIL(TESS_ERR_IO, "%s: cannot be read: %s", path, strerror(errno));
        got -= got % CARD;
        if (got == 0 || at - offset > MAX_HEADER_BYTES)
            TESS_FAIL(
                TESS_ERR_INPUT,
                "%s: is truncated or damaged: the header at byte %lld of %lld has "
                "no END",
                path, (long long)offset, (long long)file_bytes);
        for (ssize_t k = 0; k < got && !head.ended; k += CARD) {
            memcpy(card, blocks + k, CARD);
            TESS_TRY(check_card(&head, card));
        }
        at += got;
    }
    TESS_TRY(check_extent(&head));
cleanup:
    return status;
}

tess_status fits_guard_open(int fd, int64_t file_bytes, const char *path,
                            fitsfile **fits)
{
    tess_status status = TESS_OK;
    int failed = 0;
    char why[FLEN_STATUS] = "";
    TESS_TRY(check_header(fd, file_bytes, path, 0));
    if (fits_open_diskfile(fits, path, READONLY, &failed)) {
        fits_get_errstatus(failed, why);
        TESS_TRY(tess_input_check_limit(path));
        TESS_FAIL(TESS_ERR_INPUT, "%s: its FITS header is damaged or truncated (%s)",
                  path, why);
    }
cleanup:
    fits_clear_errmsg();
    return status;
}

tess_status fits_guard_next(fitsfile *fits, int fd, int64_t file_bytes,
                            const char *path, int *type, bool *more)
{
    tess_status status = TESS_OK;
    int failed = 0;
    LONGLONG first = 0, data = 0, end = 0;
    char start[8] = "";
    *more = false;
    fits_get_hduaddrll(fits, &first, &data, &end, &failed);
    /* bytes that are no extension are allowed behind the last one */
    if (failed || end <= first || end >= file_bytes ||
        pread(fd, start, sizeof start, end) != (ssize_t)sizeof start ||
        memcmp(start, "XTENSION", sizeof start) != 0)
        goto cleanup;
    TESS_TRY(check_header(fd, file_bytes, path, end));
    if (fits_movrel_hdu(fits, 1, type, &failed))
        TESS_FAIL(
            TESS_ERR_INPUT,
            "%s: is truncated or damaged: the extension at byte %lld cannot be read",
            path, (long long)end);
    *more = true;
cleanup:
    fits_clear_errmsg();
    return status;
}

tess_status fits_guard_blank(fitsfile *fits, const char *path, bool *has_blank,
                             int64_t *blank)
{
    tess_status status = TESS_OK;
    int failed = 0;
    char text[FLEN_VALUE] = "", *end = NULL;
    fits_read_key(fits, TSTRING, "BLANK", text, NULL, &failed);
    fits_clear_errmsg();
    *has_blank = false;
    if (failed) goto cleanup; /* absent, or without a value */
    errno = 0;
    const long long value = strtoll(text, &end, 10);
    const bool is_empty = end == text;
    if (*end == '.') end += 1 + strspn(end + 1, "0"); /* some write -7.0 */
    if (errno != 0 || is_empty || end[strspn(end, " ")] != '\0')
        TESS_FAIL(TESS_ERR_INPUT, "%s: BLANK = '%.20s' is no integer", path, text);
    *has_blank = true;
    *blank = value;
cleanup:
    return status;
}
