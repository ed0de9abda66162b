/* Which antenna has which primary beam: one for all, those of ALMA by their diameters,
 * or as a file of patterns of names says. */
#define _GNU_SOURCE
#include <fnmatch.h>
#include <string.h>
#include <strings.h>

#include "tess_beam_models.h"
#include "tess_mem.h"
#include "tess_primary_beam.h"
#include "tess_text.h"
#include "tess_text_file.h"

static const char *const by_antenna = "antennas:";

/* ALMA's antennas of 7 m are narrower than this, where diameters are known, and their
 * names begin with these letters (ALMA Technical Handbook, section 2.2). */
static const double BETWEEN_ALMA_M = 9.5;
static const char *const compact_names = "CM";

static const char *file_of(const char *model)
{
    const size_t length = strlen(by_antenna);
    return strncasecmp(model, by_antenna, length) == 0 ? model + length : NULL;
}

tess_status tess_beam_models_check(const char *model)
{
    tess_status status = TESS_OK;
    const char *path = file_of(model);
    if (path && *path) return TESS_OK;
    if (path) TESS_FAIL(TESS_ERR_USAGE, "'%s' names no file", model);
    TESS_TRY(tess_primary_beam_check_model(model));
cleanup:
    return status;
}

const char *tess_beam_models_file(const char *model)
{
    const char *path = model ? file_of(model) : NULL;
    return path ? path : tess_primary_beam_file(model);
}

/* The number of a model, which is added if it is new; −1: no memory. */
static int number_of(tess_beam_models *models, const char *model)
{
    for (int k = 0; k < models->num; ++k)
        if (strcasecmp(models->model[k], model) == 0) return k;
    char *own = tess_strdup(model);
    if (!own) return -1;
    models->model[models->num] = own;
    return models->num++;
}

static bool is_alma(const char *model, const tess_vis_meta *meta)
{
    return strcasecmp(model, "alma") == 0 ||
           (strcasecmp(model, "auto") == 0 && strcasecmp(meta->telescope, "ALMA") == 0);
}

static const char *model_of_alma(const tess_vis_antenna *antenna)
{
    const bool is_compact =
        antenna->diameter_m > 0
            ? antenna->diameter_m < BETWEEN_ALMA_M
            : strncasecmp(antenna->name, compact_names, strlen(compact_names)) == 0;
    return is_compact ? "aca" : "alma";
}

/* ---- files ---- */

/* A line of a file: names and the model of these antennas. */
typedef struct antenna_line {
    const char *pattern, *model;
} antenna_line;

/* Cuts a text into lines of two words. The lines point into it. */
static tess_status parse_lines(const char *path, char *text, antenna_line *line,
                               int64_t *num)
{
    tess_status status = TESS_OK;
    char *next = text;
    *num = 0;
    for (int64_t number = 1; next; ++number) {
        char *row = strsep(&next, "\n");
        row[strcspn(row, "#")] = '\0';
        row = tess_text_trim(row);
        if (!*row) continue;
        const size_t length = strcspn(row, " \t");
        char *model = tess_text_trim(row + length);
        const bool has_model = row[length] != '\0';
        row[length] = '\0';
        if (!has_model || strpbrk(model, " \t") || file_of(model) ||
            tess_primary_beam_check_model(model) != TESS_OK) {
            tess_error_clear();
            TESS_FAIL(
                TESS_ERR_INPUT,
                "%s: line %lld is not a pattern of names and a primary beam, like "
                "m0* meerkat",
                path, (long long)number);
        }
        line[(*num)++] = (antenna_line){row, model};
    }
cleanup:
    return status;
}

static tess_status match_lines(const char *path, const tess_vis_meta *meta,
                               const antenna_line *line, int64_t num,
                               const char **model)
{
    tess_status status = TESS_OK;
    for (int a = 0; a < meta->num_antennas; ++a) {
        int64_t k = 0;
        while (k < num && fnmatch(line[k].pattern, meta->antenna[a].name, 0) != 0)
            ++k;
        if (k == num)
            TESS_FAIL(TESS_ERR_INPUT, "%s: no line is of antenna '%s'", path,
                      meta->antenna[a].name);
        model[a] = line[k].model;
    }
cleanup:
    return status;
}

/* ---- models ---- */

/* The model of each antenna; `*text` holds those of a file. Collective. */
static tess_status model_antennas(tess_comm *comm, const char *model,
                                  const tess_vis_meta *meta, const char **of_antenna,
                                  char **text)
{
    tess_status status = TESS_OK;
    const char *path = file_of(model);
    antenna_line *line = NULL;
    int64_t num = 1;
    if (path) {
        TESS_TRY(tess_text_file_read(comm, path, "a text file of antennas", text));
        for (const char *at = *text; *at; ++at)
            num += *at == '\n';
        line = tess_alloc(num, sizeof *line);
        if (!line) TESS_FAIL(TESS_ERR_ALLOC, "%s: no memory", path);
        TESS_TRY(parse_lines(path, *text, line, &num));
        TESS_TRY(match_lines(path, meta, line, num, of_antenna));
        goto cleanup;
    }
    for (int a = 0; a < meta->num_antennas; ++a)
        of_antenna[a] = is_alma(model, meta) ? model_of_alma(&meta->antenna[a]) : model;
cleanup:
    tess_free(line);
    return status;
}

tess_status tess_beam_models_find(tess_comm *comm, const char *model,
                                  const tess_vis_meta *meta, tess_beam_models *models)
{
    tess_status status = TESS_OK;
    const int num = meta->num_antennas;
    char *text = NULL;
    const char **of_antenna = tess_alloc_zero(num + 1, sizeof *of_antenna);
    models->model = tess_alloc_zero(num + 1, sizeof *models->model);
    models->of_antenna = tess_alloc_zero(num + 1, sizeof *models->of_antenna);
    if (!of_antenna || !models->model || !models->of_antenna)
        status = tess_error_record(TESS_ERR_ALLOC, __FILE__, __LINE__, __func__,
                                   "no memory for beams of antennas");
    TESS_TRY(tess_comm_agree(comm, status));
    status = model_antennas(comm, model, meta, of_antenna, &text);
    for (int a = 0; a < num && status == TESS_OK; ++a) {
        models->of_antenna[a] = number_of(models, of_antenna[a]);
        if (models->of_antenna[a] < 0) status = TESS_ERR_ALLOC;
    }
    TESS_TRY(tess_comm_agree(comm, status));
cleanup:
    tess_free(text);
    tess_free((void *)of_antenna);
    return status;
}

void tess_beam_models_free(tess_beam_models *models)
{
    for (int k = 0; k < models->num; ++k)
        tess_free(models->model[k]);
    tess_free((void *)models->model);
    tess_free(models->of_antenna);
    *models = (tess_beam_models){0};
}
