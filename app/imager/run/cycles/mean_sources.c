/* Adds the lists of sources of channels up to that of their mean. */
#include "mean_sources.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "image_names.h"
#include "tess_mem.h"
#include "tess_text_file.h"

/* What a list says behind its sources. */
static const char NOTE[] = "# weight = %.17g, frequency = %.17g\n";
static const char NOTED[] = "\n# weight = %lf, frequency = %lf";
static const char START[] = "\n# weight = ";

tess_status mean_sources_note(double weight, double freq_hz, char **text)
{
    tess_status status = TESS_OK;
    const size_t size = strlen(*text) + 128;
    char *longer = tess_alloc((int64_t)size, 1);
    if (!longer) TESS_FAIL(TESS_ERR_ALLOC, "list of sources");
    const int used = snprintf(longer, size, "%s", *text);
    snprintf(longer + used, size - (size_t)used, NOTE, weight, freq_hz);
    tess_free(*text);
    *text = longer;
cleanup:
    return status;
}

/* Adds the sources of a list. A list without a note is of a channel without data. */
static tess_status add_text(const char *path, const char *text, mean_sources *mean)
{
    tess_status status = TESS_OK;
    const char *note = strstr(text, START);
    double weight = 0, freq_hz = 0;
    tess_source_list own = {0};
    if (!note || sscanf(note, NOTED, &weight, &freq_hz) != 2 || !(weight > 0))
        return TESS_OK;
    TESS_TRY(tess_source_list_parse(path, text, &own, NULL, 0));
    for (int64_t k = 0; k < own.num_sources; ++k) {
        tess_listed_source source = own.source[k];
        source.flux_jy[0] *= weight;
        source.num_terms = 0;
        source.scale = source.is_gaussian;
        TESS_TRY(tess_source_list_add(&mean->list, &source, NULL));
    }
    mean->weights += weight;
    mean->weighted_hz += weight * freq_hz;
cleanup:
    tess_source_list_free(&own);
    return status;
}

tess_status mean_sources_continue(image_run *run, int64_t interval, int64_t first,
                                  int64_t end, mean_sources *mean)
{
    tess_status status = TESS_OK;
    char *text = NULL, *path = NULL;
    for (int64_t c = first; c < end; ++c) {
        path = image_sources_name(&run->output, interval, c);
        TESS_TRY(tess_comm_agree(run->teams.all, path ? TESS_OK : TESS_ERR_ALLOC));
        TESS_TRY(tess_text_file_read(run->teams.all, path, "a list of sources", &text));
        if (tess_comm_rank(run->teams.all) == 0) status = add_text(path, text, mean);
        TESS_TRY(tess_comm_agree(run->teams.all, status));
        tess_free(text);
        free(path); /* from asprintf */
        text = path = NULL;
    }
cleanup:
    tess_free(text);
    free(path); /* from asprintf */
    return status;
}

tess_status mean_sources_add(image_run *run, const image_source_list *own,
                             int64_t output, mean_sources *mean)
{
    tess_status status = TESS_OK;
    tess_comm *all = run->teams.all;
    const bool sends =
        tess_comm_rank(run->comm) == 0 && own->text && own->output == output;
    void *text = NULL;
    int64_t *bytes = tess_alloc_zero(tess_comm_size(all), sizeof *bytes);
    TESS_TRY(tess_comm_agree(all, bytes ? TESS_OK : TESS_ERR_ALLOC));
    TESS_TRY(tess_comm_gatherv(
        all, own->text, sends ? (int64_t)strlen(own->text) + 1 : 0, 0, &text, bytes));
    if (tess_comm_rank(all) == 0 && text)
        for (int r = 0; r < tess_comm_size(all); ++r)
            if (bytes[r] > 0) status = add_text("list of sources", text, mean);
    TESS_TRY(tess_comm_agree(all, status));
cleanup:
    tess_free(text);
    tess_free(bytes);
    return status;
}

/* By declination, right ascension and width. */
static int by_place(const void *a, const void *b)
{
    const tess_listed_source *one = a, *other = b;
    const double pairs[][2] = {{one->dec_rad, other->dec_rad},
                               {one->ra_rad, other->ra_rad},
                               {one->major_rad, other->major_rad}};
    for (int k = 0; k < 3; ++k)
        if (pairs[k][0] < pairs[k][1] || pairs[k][0] > pairs[k][1])
            return pairs[k][0] < pairs[k][1] ? -1 : 1;
    return 0;
}

/* Makes one source of those of several channels that have the same place and width, and
 * divides sums by the weights. */
static void merge(mean_sources *mean)
{
    tess_source_list *list = &mean->list;
    int64_t count = 0;
    if (list->num_sources > 1)
        qsort(list->source, (size_t)list->num_sources, sizeof *list->source, by_place);
    for (int64_t k = 0; k < list->num_sources; ++k) {
        const tess_listed_source *source = &list->source[k];
        if (count > 0 && by_place(&list->source[count - 1], source) == 0)
            list->source[count - 1].flux_jy[0] += source->flux_jy[0];
        else
            list->source[count++] = *source;
    }
    list->num_sources = count;
    for (int64_t k = 0; k < count; ++k) {
        list->source[k].flux_jy[0] /= mean->weights;
        list->source[k].ref_hz = mean->weighted_hz / mean->weights;
    }
}

tess_status mean_sources_finish(image_run *run, int64_t interval, mean_sources *mean)
{
    tess_status status = TESS_OK;
    image_source_list *to = &run->means.sources;
    char *text = NULL;
    if (tess_comm_rank(run->teams.all) == 0 && mean->weights > 0) {
        merge(mean);
        status = tess_source_list_text(&mean->list, mean->weighted_hz / mean->weights,
                                       &text);
    }
    TESS_TRY(tess_comm_agree(run->teams.all, status));
    tess_free(to->text);
    *to = (image_source_list){text, interval * run->outputs.num_channels - 1};
    mean_sources_free(mean);
cleanup:
    return status;
}

void mean_sources_free(mean_sources *mean)
{
    tess_source_list_free(&mean->list);
    *mean = (mean_sources){0};
}
