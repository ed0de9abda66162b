/* Changes to FITS files that leave most of the structure whole: cards of headers get
 * other values and keywords, are swapped, copied, deleted; values of the data become
 * special ones. Bytes changed at random mostly damage what the first check refuses. */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "fuzz_file.h"

enum { CARD = 80, BLOCK = 2880, MOST_CARDS = 1024, WINDOW = 256 };

static const char *const keywords[] = {
    "SIMPLE",   "XTENSION", "BITPIX",   "NAXIS",    "NAXIS%",  "EXTEND",   "GROUPS",
    "PCOUNT",   "GCOUNT",   "TFIELDS",  "TFORM%",   "TTYPE%",  "TUNIT%",   "TDIM%",
    "TSCAL%",   "TZERO%",   "TNULL%",   "THEAP",    "BSCALE",  "BZERO",    "BLANK",
    "CTYPE%",   "CRVAL%",   "CDELT%",   "CRPIX%",   "CROTA%",  "CUNIT%",   "PC1_2",
    "CD1_1",    "PV2_1",    "LONPOLE",  "PTYPE%",   "PSCAL%",  "PZERO%",   "EXTNAME",
    "EXTVER",   "EXTLEVEL", "BUNIT",    "RESTFRQ",  "SPECSYS", "DATE-OBS", "TIMSYS",
    "FREQ",     "NO_IF",    "ARRAYX",   "ARRNAM",   "FREQID",  "TELESCOP", "OBJECT",
    "EPOCH",    "EQUINOX",  "OBSRA",    "VELREF",   "ZIMAGE",  "ZCMPTYPE", "ZBITPIX",
    "ZNAXIS",   "ZNAXIS%",  "ZTILE%",   "ZNAME%",   "ZVAL%",   "ZQUANTIZ", "ZSIMPLE",
    "ZTENSION", "ZTABLE",   "CONTINUE", "HIERARCH", "COMMENT", "HISTORY",  "END",
    "GCFSUPP",  "GCFOVER",  "GCFWSPAC", "GCFWMAX",  "GCFFLDL", "GCFFLDM",  "PS3_0",
    "PS3_1",    "SUMWT",    ""};

static const char *const values[] = {
    "T",
    "F",
    "0",
    "1",
    "-1",
    "2",
    "3",
    "4",
    "7",
    "8",
    "16",
    "32",
    "64",
    "-32",
    "-64",
    "999",
    "1000",
    "2880",
    "32767",
    "-32768",
    "65536",
    "2147483647",
    "2147483648",
    "-2147483648",
    "4294967296",
    "9223372036854775807",
    "-9223372036854775808",
    "18446744073709551616",
    "0.0",
    "-0.0",
    "0.5",
    "1.5",
    "1E-40",
    "1E38",
    "-1E39",
    "1E308",
    "1E999",
    "1D300",
    "NaN",
    "Inf",
    "",
    "''",
    "'",
    "'        '",
    "'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxx'",
    "'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx&'",
    "'\033[2J\033]0;x\007'",
    "'%s%s%n%d'",
    "(1.0, 2.0)",
    "'1E'",
    "'1D'",
    "'3D'",
    "'1J'",
    "'8A'",
    "'0J'",
    "'1PE(999)'",
    "'1QD(2147483647)'",
    "'2147483647D'",
    "'99999999999E'",
    "'(2,2)'",
    "'(0,-1)'",
    "'16X'",
    "'IMAGE   '",
    "'BINTABLE'",
    "'TABLE   '",
    "'A3DTABLE'",
    "'AIPS AN '",
    "'AIPS FQ '",
    "'AIPS SU '",
    "'AIPS NX '",
    "'COMPLEX '",
    "'STOKES  '",
    "'FREQ    '",
    "'IF      '",
    "'RA      '",
    "'DEC     '",
    "'RA---SIN'",
    "'DEC--SIN'",
    "'RA---TAN'",
    "'UU---SIN'",
    "'VV---SIN'",
    "'WW---SIN'",
    "'UU      '",
    "'BASELINE'",
    "'DATE    '",
    "'SOURCE  '",
    "'FREQSEL '",
    "'INTTIM  '",
    "'ANTENNA1'",
    "'ANTENNA2'",
    "'SUBARRAY'",
    "'STABXYZ '",
    "'NOSTA   '",
    "'ANNAME  '",
    "'IF FREQ '",
    "'CH WIDTH'",
    "'RICE_1  '",
    "'GZIP_1  '",
    "'HCOMPRESS_1'",
    "'PLIO_1  '",
    "'SQRT    '",
    "'LINEAR  '",
    "'2026-01-01T00:00:00'",
    "'31/12/99'",
    "'IAT     '",
    "'HZ      '",
    "'GHz     '",
    "'deg     '",
    "'FREQ-TAB'",
    "'FREQ-LOG'",
    "'PLANES  '",
    "'FREQUENCIES'",
    "'BANDWID '",
    "'AZ      '",
    "'EL      '",
    "'L       '",
    "'M       '",
};

/* Numbers as data have them, most significant byte first. */
static const unsigned char words[][8] = {
    {0x7f, 0xc0, 0, 0, 0, 0, 0, 0},       /* NaN, single */
    {0x7f, 0x80, 0, 0, 0, 0, 0, 0},       /* infinity, single */
    {0xff, 0x80, 0, 0, 0, 0, 0, 0},       /* -infinity, single */
    {0x7f, 0x7f, 0xff, 0xff, 0, 0, 0, 0}, /* largest, single */
    {0x00, 0x00, 0x00, 0x01, 0, 0, 0, 0}, /* smallest, single; one, integer */
    {0x7f, 0xf8, 0, 0, 0, 0, 0, 0},       /* NaN, double */
    {0x7f, 0xf0, 0, 0, 0, 0, 0, 0},       /* infinity, double */
    {0x7f, 0xef, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
    {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
    {0x80, 0, 0, 0, 0, 0, 0, 0},
    {0x4f, 0, 0, 0, 0, 0, 0, 0}, /* 2^31, single */
    {0, 0, 0, 0, 0, 0, 0, 0}};

typedef struct cards {
    size_t at[MOST_CARDS]; /* offsets in the file */
    size_t num;
} cards;

static uint64_t random_state;

static size_t below(size_t limit)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return limit > 0 ? (size_t)(random_state % limit) : 0;
}

/* The cards of all headers. */
static void find_cards(const uint8_t *data, size_t size, cards *found)
{
    bool in_header = false;
    found->num = 0;
    for (size_t block = 0; block + BLOCK <= size; block += BLOCK) {
        if (memcmp(data + block, "SIMPLE  =", 9) == 0 ||
            memcmp(data + block, "XTENSION=", 9) == 0)
            in_header = true;
        for (size_t at = block; in_header && at < block + BLOCK; at += CARD) {
            if (found->num < MOST_CARDS) found->at[found->num++] = at;
            if (memcmp(data + at, "END     ", 8) == 0) in_header = false;
        }
    }
}

static void put_text(uint8_t *to, const char *text, size_t width)
{
    const size_t length = strlen(text);
    memset(to, ' ', width);
    memcpy(to, text, length < width ? length : width);
}

static void put_keyword(uint8_t *card)
{
    char name[16] = "";
    const char *keyword = keywords[below(sizeof keywords / sizeof *keywords)];
    const size_t length = strcspn(keyword, "%");
    if (keyword[length])
        snprintf(name, sizeof name, "%.*s%d", (int)length, keyword, (int)below(12));
    else
        snprintf(name, sizeof name, "%s", keyword);
    put_text(card, name, 8);
}

/* A value of the list, or the one that is there, a little different. */
static void put_value(uint8_t *card)
{
    char text[CARD + 1];
    unsigned long number; /* which wraps round */
    memcpy(text, card + 10, CARD - 10);
    text[CARD - 10] = '\0';
    memcpy(card + 8, "= ", 2);
    if (below(3) == 0 && sscanf(text, "%lu", &number) == 1) {
        const unsigned long changed[] = {number / 2, number * 2, number - 1, number + 1,
                                         0 - number};
        snprintf(text, sizeof text, "%20ld", (long)changed[below(5)]);
        put_text(card + 10, text, CARD - 10);
    } else
        put_text(card + 10, values[below(sizeof values / sizeof *values)], CARD - 10);
}

static void change_cards(uint8_t *data, const cards *found)
{
    uint8_t *card = data + found->at[below(found->num)];
    uint8_t *other = data + found->at[below(found->num)];
    uint8_t copy[CARD];
    switch (below(8)) {
    case 0: /* another keyword */
        put_keyword(card);
        break;
    case 1: /* another card */
        put_keyword(card);
        put_value(card);
        break;
    case 2:
        memcpy(copy, card, CARD);
        memcpy(card, other, CARD);
        memcpy(other, copy, CARD);
        break;
    case 3: /* one twice */
        memmove(card, other, CARD);
        break;
    case 4:
        put_text(card, below(2) ? "COMMENT" : "", CARD);
        break;
    case 5: /* a character */
        card[below(CARD)] = (uint8_t)(below(4) ? ' ' + below(95) : below(256));
        break;
    default:
        put_value(card);
    }
}

/* Blocks twice, or gone, or the file cut short. */
static size_t change_blocks(uint8_t *data, size_t size, size_t max_size)
{
    const size_t num = size / BLOCK, at = below(num) * BLOCK, left = size - at;
    switch (below(3)) {
    case 0:
        if (size + BLOCK > max_size) return size;
        memmove(data + at + BLOCK, data + at, left);
        return size + BLOCK;
    case 1:
        if (num < 2) return size;
        memmove(data + at, data + at + BLOCK, left - BLOCK);
        return size - BLOCK;
    default:
        return at + below(left) + 1;
    }
}

static void change_data(uint8_t *data, size_t size)
{
    const size_t width = below(2) ? 4 : 8, num = size / width;
    if (below(2) && num > 0)
        memcpy(data + below(num) * width, words[below(sizeof words / sizeof *words)],
               width);
    else {
        const size_t window = size < WINDOW ? size : WINDOW;
        LLVMFuzzerMutate(data + below(size - window + 1), window, window);
    }
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size,
                               unsigned int seed)
{
    static cards found;
    random_state = (uint64_t)seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
    find_cards(data, size, &found);
    if (found.num == 0) return LLVMFuzzerMutate(data, size, max_size);
    for (size_t k = below(3) + 1; k > 0; --k) {
        const size_t what = below(16);
        if (what == 0) return LLVMFuzzerMutate(data, size, max_size);
        if (what == 1) return change_blocks(data, size, max_size);
        if (what < 5)
            change_data(data, size);
        else
            change_cards(data, &found);
    }
    return size;
}
