/* Puts places into the order of keys, by a radix sort of keys and indices. It begins
 * with the least significant digits, and skips digits that all keys share. */
#include <string.h>

#include "gcf_order.h"

enum {
    DIGIT_BITS = 8,
    DIGITS = 1 << DIGIT_BITS,
    FEW = 32 /* as many are inserted one by one */
};

typedef struct entry {
    uint64_t key;
    int64_t from;
} entry;

_Static_assert(2 * sizeof(entry) == GCF_ORDER_BYTES, "two lists");

static void insert(entry *list, int64_t count)
{
    for (int64_t k = 1; k < count; ++k) {
        const entry one = list[k];
        int64_t at = k;
        for (; at > 0 && list[at - 1].key > one.key; --at)
            list[at] = list[at - 1];
        list[at] = one;
    }
}

static void by_digit(const entry *in, entry *out, int64_t count, int shift)
{
    int64_t first[DIGITS + 1] = {0};
    for (int64_t k = 0; k < count; ++k)
        ++first[(in[k].key >> shift & (DIGITS - 1)) + 1];
    for (int d = 0; d < DIGITS; ++d)
        first[d + 1] += first[d];
    for (int64_t k = 0; k < count; ++k)
        out[first[in[k].key >> shift & (DIGITS - 1)]++] = in[k];
}

/* Sets place[k] to the former place[list[k].from], along the cycles of this
 * permutation. */
static void permute(gcf_place *place, entry *list, int64_t count)
{
    for (int64_t k = 0; k < count; ++k) {
        if (list[k].from == k) continue;
        const gcf_place first = place[k];
        int64_t to = k;
        while (list[to].from != k) {
            const int64_t from = list[to].from;
            place[to] = place[from];
            list[to].from = to;
            to = from;
        }
        place[to] = first;
        list[to].from = to;
    }
}

void gcf_order(gcf_place *place, int64_t count, gcf_key *key, const void *context,
               void *scratch)
{
    entry *list = scratch, *other = list + count;
    uint64_t differ = 0;
    for (int64_t k = 0; k < count; ++k) {
        list[k] = (entry){key(context, &place[k]), k};
        differ |= list[k].key ^ list[0].key;
    }
    if (count <= FEW)
        insert(list, count);
    else
        for (int shift = 0; shift < 64; shift += DIGIT_BITS)
            if (differ >> shift & (DIGITS - 1)) {
                by_digit(list, other, count, shift);
                entry *const sorted = other;
                other = list;
                list = sorted;
            }
    permute(place, list, count);
}
