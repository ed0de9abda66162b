/* Joins the pixels of several images into the numbers by which pixels are chosen. The
 * outer loop runs over images, so that inner loops run over neighbouring pixels. The
 * images of a pixel are always summed in the same order. */
#include "cpu_join.h"

#include <math.h>
#include <string.h>

#define ADD(REAL, SUFFIX)                                                              \
    static void add_##SUFFIX(const void *line, double share, int64_t count,            \
                             double *restrict sum)                                     \
    {                                                                                  \
        const REAL *from = line;                                                       \
        for (int64_t k = 0; k < count; ++k)                                            \
            sum[k] += share * (double)from[k];                                         \
    }                                                                                  \
    static void add_square_##SUFFIX(const void *line, double share, int64_t count,     \
                                    double *restrict sum)                              \
    {                                                                                  \
        const REAL *from = line;                                                       \
        for (int64_t k = 0; k < count; ++k)                                            \
            sum[k] += share * (double)from[k] * (double)from[k];                       \
    }
ADD(float, single)
ADD(double, double)

static const void *line_of(const cpu_lines *lines, int image)
{
    if (lines->image) return (const char *)lines->image[image] + lines->offset_bytes;
    return (const char *)lines->first + (size_t)image * lines->stride_bytes;
}

/* sum[] := Σ share · value, or Σ share · value², over the images [first, end). */
static void add_images(const clean_join *join, const cpu_lines *lines, bool squares,
                       int first, int end, double *sum)
{
    memset(sum, 0, (size_t)lines->count * sizeof *sum);
    for (int k = first; k < end; ++k) {
        const void *line = line_of(lines, k);
        if (squares)
            (lines->is_double ? add_square_double : add_square_single)(
                line, join->share[k], lines->count, sum);
        else
            (lines->is_double ? add_double : add_single)(line, join->share[k],
                                                         lines->count, sum);
    }
}

static void roots(double times, int64_t count, double *value)
{
    for (int64_t k = 0; k < count; ++k)
        value[k] = sqrt(times * value[k]);
}

/* Gives roots the sign of Σ share · value. */
static void give_signs(const clean_join *join, const cpu_lines *lines, double *joined,
                       double *room)
{
    add_images(join, lines, false, 0, join->num_channels * join->num_pol, room);
    for (int64_t k = 0; k < lines->count; ++k)
        joined[k] = copysign(joined[k], room[k]);
}

void cpu_join_lines(const clean_join *join, const cpu_lines *lines, bool linear,
                    double *joined, double *room)
{
    const int pols = join->num_pol, images = join->num_channels * pols;
    if (linear || join->search == CLEAN_MEAN) {
        add_images(join, lines, false, 0, images, joined);
        return;
    }
    if (join->search == CLEAN_SQUARES) {
        add_images(join, lines, true, 0, images, joined);
        roots(1, lines->count, joined);
        return;
    }
    memset(joined, 0, (size_t)lines->count * sizeof *joined);
    for (int c = 0; c < join->num_channels; ++c) {
        add_images(join, lines, true, c * pols, (c + 1) * pols, room);
        roots(clean_join_largest_weight(join, c), lines->count, room);
        for (int64_t k = 0; k < lines->count; ++k)
            joined[k] += room[k];
    }
    if (join->is_signed) give_signs(join, lines, joined, room);
}
