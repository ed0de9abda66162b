/* What readers of regions for masks share: messages, the list, directions and angles.
 */
#include "mask_reader.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include <erfa.h>

#include "tess_const.h"
#include "tess_mem.h"
#include "tess_parse.h"
#include "tess_text.h"

/* Pixels that a coordinate may have: those of larger ones are in no image. */
static const double FARTHEST = 1e9;

tess_status mask_refuse(const mask_reader *reader, const char *what, const char *quoted,
                        const char *more)
{
    tess_status status = TESS_OK;
    char shown[80];
    snprintf(shown, sizeof shown, "%.72s", quoted);
    TESS_FAIL(TESS_ERR_INPUT, "%s: line %lld %s '%s'%s", reader->path,
              (long long)reader->line, what, tess_text_clean(shown), more);
cleanup:
    return status;
}

static bool is_place(const double place[2])
{
    return fabs(place[0]) <= FARTHEST && fabs(place[1]) <= FARTHEST;
}

static bool is_length(double length)
{
    return length >= 0 && length <= FARTHEST;
}

tess_status mask_add_region(mask_reader *reader, const tess_mask_region *region)
{
    tess_status status = TESS_OK;
    tess_mask_regions *all = &reader->regions;
    void *array = all->region;
    if (!is_place(region->centre) || !is_length(region->half[0]) ||
        !is_length(region->half[1]) || !isfinite(region->turn_rad))
        TESS_TRY(mask_refuse(reader, "has", "a number", " that no image has"));
    if (tess_grow(&array, &all->capacity, all->num + 1, sizeof *all->region))
        TESS_FAIL(TESS_ERR_ALLOC, "%s: no memory for its regions", reader->path);
    all->region = array;
    all->region[all->num] = *region;
    all->region[all->num].first_vertex = all->num_vertices;
    all->region[all->num++].num_vertices = 0;
cleanup:
    return status;
}

tess_status mask_add_vertex(mask_reader *reader, const double place[2])
{
    tess_status status = TESS_OK;
    tess_mask_regions *all = &reader->regions;
    void *array = all->vertex;
    if (!is_place(place))
        TESS_TRY(mask_refuse(reader, "has", "a number", " that no image has"));
    if (tess_grow(&array, &all->vertex_capacity, all->num_vertices + 1,
                  sizeof *all->vertex))
        TESS_FAIL(TESS_ERR_ALLOC, "%s: no memory for its regions", reader->path);
    all->vertex = array;
    memcpy(all->vertex[all->num_vertices++], place, 2 * sizeof *place);
    ++all->region[all->num - 1].num_vertices;
cleanup:
    return status;
}

void mask_to_j2000(mask_system system, double place[2])
{
    static const sky_frame frames[] = {[MASK_J2000] = {SKY_FK5, 2000},
                                       [MASK_B1950] = {SKY_FK4, 1950},
                                       [MASK_ICRS] = {SKY_ICRS, 2000},
                                       [MASK_GALACTIC] = {SKY_ICRS, 2000}};
    if (system >= MASK_PIXELS) return;
    if (system == MASK_GALACTIC) eraG2icrs(place[0], place[1], &place[0], &place[1]);
    sky_frame_to_j2000(&frames[system], 0, place);
}

bool mask_angle(const char *text, double *rad)
{
    double degrees;
    bool is_angle = tess_parse_angle(text, rad) == TESS_OK;
    if (!is_angle &&
        tess_parse_number(text, -FARTHEST, FARTHEST, &degrees) == TESS_OK) {
        *rad = degrees * TESS_RAD_PER_DEG;
        is_angle = true;
    }
    tess_error_clear();
    return is_angle;
}
