/* Saves the state of a CLEAN for checkpoints, and goes on from it. A state that was
 * taken inside a minor loop also has the components found so far. */
#include <string.h>

#include "clean_object.h"
#include "tess_mem.h"

/* The head of a state's bytes, which are in this machine's byte order. */
typedef struct state_head {
    char name[8]; /* the name and version of the format */
    int64_t nx, ny, num_images, num_scales;
    double scale_px[TESS_CLEAN_MOST_SCALES];
    clean_major_state major;
    clean_minor_state minor;
    int64_t num_loops, count;
    int64_t kept[TESS_CLEAN_MOST_SCALES]; /* number of kept components of each scale */
} state_head;

static const char NAME[8] = "clean 3";

static void fill_head(const tess_clean *clean, state_head *head)
{
    const clean_setup *setup = &clean->setup;
    memset(head, 0,
           sizeof *head); /* also the padding, so that equal states have equal bytes */
    memcpy(head->name, NAME, sizeof NAME);
    head->nx = setup->images.nx;
    head->ny = setup->images.ny;
    head->num_images = setup->images.num_images;
    head->num_scales = setup->num_scales;
    memcpy(head->scale_px, setup->scale_px, sizeof head->scale_px);
    head->major = clean->major;
    for (int s = 0; clean->kept && s < setup->num_scales; ++s)
        head->kept[s] = clean->kept[s].count;
    if (clean->log.num_loops == 0) return;
    head->minor = clean->minor;
    head->num_loops = clean->log.num_loops;
    head->count = clean->log.found.count;
}

static int64_t bytes_of(const state_head *head)
{
    int64_t components = head->count;
    for (int s = 0; s < TESS_CLEAN_MOST_SCALES; ++s)
        components += head->kept[s];
    return (int64_t)sizeof *head +
           head->num_loops * (int64_t)sizeof(clean_logged_loop) +
           components * (1 + head->num_images) * 8;
}

static char *put(char *to, const void *from, int64_t count, size_t bytes)
{
    if (count > 0) memcpy(to, from, (size_t)count * bytes);
    return to + (size_t)count * bytes;
}

static char *put_components(char *to, const clean_components *from, int64_t count)
{
    to = put(to, from->index, count, sizeof *from->index);
    return put(to, from->flux, count * from->num_images, sizeof *from->flux);
}

tess_status tess_clean_state_get(const tess_clean *clean, tess_clean_state *state)
{
    tess_status status = TESS_OK;
    const clean_log *log = &clean->log;
    const int64_t pixels = clean->setup.images.num_rows * clean->setup.images.nx;
    state_head head;
    tess_clean_state made = {0};
    fill_head(clean, &head);
    made.num_bytes = bytes_of(&head);
    made.bytes = tess_alloc(made.num_bytes, 1);
    if (!made.bytes) TESS_FAIL(TESS_ERR_ALLOC, "state of CLEAN");
    if (clean->found) {
        made.found = tess_alloc(pixels, sizeof *made.found);
        if (!made.found) TESS_FAIL(TESS_ERR_ALLOC, "state of CLEAN");
        put((char *)made.found, clean->found, pixels, sizeof *made.found);
    }
    char *to = put(made.bytes, &head, 1, sizeof head);
    to = put(to, log->loop, head.num_loops, sizeof *log->loop);
    to = put_components(to, &log->found, head.count);
    for (int s = 0; clean->kept && s < clean->setup.num_scales; ++s)
        to = put_components(to, &clean->kept[s], head.kept[s]);
    *state = made;
    made = (tess_clean_state){0};
cleanup:
    tess_clean_state_free(&made);
    return status;
}

/* Whether the bytes can be a state of this object. */
static bool is_of(const tess_clean *clean, const tess_clean_state *state,
                  state_head *head)
{
    state_head own;
    if (state->num_bytes < (int64_t)sizeof *head) return false;
    memcpy(head, state->bytes, sizeof *head);
    fill_head(clean, &own);
    if (memcmp(head->name, own.name, sizeof own.name) != 0 || head->nx != own.nx ||
        head->ny != own.ny || head->num_images != own.num_images ||
        head->num_scales != own.num_scales ||
        memcmp(head->scale_px, own.scale_px, sizeof own.scale_px) != 0)
        return false;
    if (head->major.phase < 1 || head->major.phase > 2 || head->major.iterations < 0 ||
        head->num_loops < 0 || head->count < 0 || head->count > INT64_MAX / 1024 ||
        head->num_loops > INT64_MAX / 1024 || !state->found != !clean->found)
        return false;
    for (int s = 0; s < TESS_CLEAN_MOST_SCALES; ++s)
        if (head->kept[s] < 0 || head->kept[s] > head->nx * head->ny ||
            (head->kept[s] > 0 && !clean->kept))
            return false;
    return state->num_bytes == bytes_of(head);
}

/* Reads the loops and components that follow the head. */
static tess_status take_log(const state_head *head, const char *from, clean_log *log)
{
    tess_status status = TESS_OK;
    int64_t loops = 0, all = 0;
    const char *index = from + head->num_loops * (int64_t)sizeof(clean_logged_loop);
    const char *flux = index + head->count * 8;
    double *values = tess_alloc(head->num_images, sizeof *values);
    if (!values) TESS_FAIL(TESS_ERR_ALLOC, "components of a state");
    for (; loops < head->num_loops; ++loops) {
        clean_logged_loop logged;
        memcpy(&logged, from + loops * (int64_t)sizeof logged, sizeof logged);
        if (logged.scale < 0 || logged.scale >= head->num_scales || logged.count < 0 ||
            logged.count > head->count - all)
            TESS_FAIL(TESS_ERR_INPUT, "the state of CLEAN is damaged");
        for (int64_t c = all; c < all + logged.count; ++c) {
            int64_t pixel;
            memcpy(&pixel, index + c * 8, sizeof pixel);
            memcpy(values, flux + c * head->num_images * 8,
                   (size_t)head->num_images * sizeof *values);
            if (pixel < 0 || pixel >= head->nx * head->ny)
                TESS_FAIL(TESS_ERR_INPUT, "the state of CLEAN is damaged");
            TESS_TRY(clean_components_add(&log->found, pixel, values));
        }
        TESS_TRY(clean_log_close(log, (int)logged.scale));
        all += logged.count;
    }
    if (all != head->count) TESS_FAIL(TESS_ERR_INPUT, "the state of CLEAN is damaged");
cleanup:
    tess_free(values);
    return status;
}

/* Reads the components of earlier minor loops. */
static tess_status take_kept(const state_head *head, const char *from,
                             tess_clean *clean)
{
    tess_status status = TESS_OK;
    const int64_t images = head->num_images;
    double *values = tess_alloc(images, sizeof *values);
    if (!values) TESS_FAIL(TESS_ERR_ALLOC, "components of a state");
    for (int s = 0; clean->kept && s < clean->setup.num_scales; ++s) {
        const char *flux = from + head->kept[s] * 8;
        clean_components_clear(&clean->kept[s]);
        for (int64_t c = 0; c < head->kept[s]; ++c) {
            int64_t pixel;
            memcpy(&pixel, from + c * 8, sizeof pixel);
            memcpy(values, flux + c * images * 8, (size_t)images * sizeof *values);
            if (pixel < 0 || pixel >= head->nx * head->ny)
                TESS_FAIL(TESS_ERR_INPUT, "the state of CLEAN is damaged");
            TESS_TRY(clean_components_add(&clean->kept[s], pixel, values));
        }
        from = flux + head->kept[s] * images * 8;
    }
cleanup:
    tess_free(values);
    return status;
}

static tess_status put_state(tess_clean *clean, const tess_clean_state *state)
{
    tess_status status = TESS_OK;
    const int64_t pixels = clean->setup.images.num_rows * clean->setup.images.nx;
    state_head head;
    clean_log_clear(&clean->log);
    if (!is_of(clean, state, &head))
        TESS_FAIL(TESS_ERR_INPUT, "the state of CLEAN is damaged or of other options");
    TESS_TRY(take_log(&head, (const char *)state->bytes + sizeof head, &clean->log));
    TESS_TRY(take_kept(&head,
                       (const char *)state->bytes + sizeof head +
                           head.num_loops * (int64_t)sizeof(clean_logged_loop) +
                           head.count * (1 + head.num_images) * 8,
                       clean));
    clean->major = head.major;
    clean->minor = head.minor;
    if (clean->found)
        put((char *)clean->found, state->found, pixels, sizeof *clean->found);
cleanup:
    if (status != TESS_OK) clean_log_clear(&clean->log);
    return status;
}

tess_status tess_clean_state_put(tess_clean *clean, const tess_clean_state *state)
{
    return tess_comm_agree(clean->setup.comm, put_state(clean, state));
}

void tess_clean_state_free(tess_clean_state *state)
{
    tess_free(state->bytes);
    tess_free(state->found);
    *state = (tess_clean_state){0};
}
