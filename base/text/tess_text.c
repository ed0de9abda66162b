/* Makes text of files and users safe for a terminal, and writes angles as text. */
#include "tess_text.h"

#include <ctype.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "tess_const.h"

static bool is_tail(unsigned char byte)
{
    return (byte & 0xC0) == 0x80;
}

/* Number of bytes of the UTF-8 character at the start of the text; 0 if these bytes are
 * none. In UTF-8 each character has only one valid spelling, and surrogates have none
 * (RFC 3629). */
static int length_of(const unsigned char *at)
{
    const unsigned char first = at[0];
    if (first < 0x80) return 1;
    if (!is_tail(at[1])) return 0; /* also where the text ends */
    if (first >= 0xC2 && first <= 0xDF) return 2;
    if (!is_tail(at[2])) return 0;
    if ((first & 0xF0) == 0xE0)
        return (first == 0xE0 && at[1] < 0xA0) || (first == 0xED && at[1] > 0x9F) ? 0
                                                                                  : 3;
    if (first < 0xF0 || first > 0xF4 || !is_tail(at[3])) return 0;
    return (first == 0xF0 && at[1] < 0x90) || (first == 0xF4 && at[1] > 0x8F) ? 0 : 4;
}

/* Whether a character is a control character: U+0000 to U+001F, and U+007F to U+009F.
 */
static bool is_control(const unsigned char *at, int length)
{
    return length == 1 ? at[0] < 0x20 || at[0] == 0x7F
                       : length == 2 && at[0] == 0xC2 && at[1] < 0xA0;
}

char *tess_text_clean(char *text)
{
    unsigned char *to = (unsigned char *)text;
    for (const unsigned char *from = to; *from;) {
        const int length = length_of(from);
        if (length == 0 || is_control(from, length)) {
            *to++ = '?';
            from += length ? length : 1;
            continue;
        }
        for (int k = 0; k < length; ++k)
            *to++ = *from++;
    }
    *to = '\0';
    return text;
}

char *tess_text_trim(char *text)
{
    while (isspace((unsigned char)*text))
        ++text;
    size_t length = strlen(text);
    while (length > 0 && isspace((unsigned char)text[length - 1]))
        --length;
    text[length] = '\0';
    return text;
}

/* ---- angles ---- */

typedef struct angle_unit {
    const char *name;
    double rad;
} angle_unit;

static angle_unit unit_of(double rad)
{
    static const angle_unit units[] = {{"deg", TESS_RAD_PER_DEG},
                                       {"amin", 60 * TESS_RAD_PER_ASEC},
                                       {"asec", TESS_RAD_PER_ASEC},
                                       {"mas", 1e-3 * TESS_RAD_PER_ASEC},
                                       {"uas", 1e-6 * TESS_RAD_PER_ASEC}};
    const size_t last = sizeof units / sizeof *units - 1;
    size_t k = 0;
    while (k < last && fabs(rad) < units[k].rad * (1 - 1e-12))
        ++k;
    return units[k];
}

void tess_text_angle(double rad, char *text, size_t size)
{
    const angle_unit unit = unit_of(rad);
    snprintf(text, size, "%.4g%s", rad / unit.rad, unit.name);
}

void tess_text_angle_below(double rad, char *text, size_t size)
{
    /* Three digits may hold `rad` exactly. The text must then be below it, too. */
    const angle_unit unit = unit_of(rad * (1 - 1e-9));
    const double value = rad * (1 - 1e-9) / unit.rad;
    const double step = pow(10, floor(log10(value)) - 2);
    snprintf(text, size, "%.3g%s", floor(value / step) * step, unit.name);
}
