/* Names the data columns of facets after these. */
#include "facet_columns.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "tess_mem.h"

/* Regions are often called [Patch_12] or "dir 3". */
static const char *const BRACKETS = "[]{}() ";

static tess_status name_column(const char *prefix, const char *facet, char **name)
{
    tess_status status = TESS_OK;
    const size_t size = strlen(prefix) + strlen(facet) + 2;
    const char *begin = facet + strspn(facet, BRACKETS);
    size_t length = strlen(begin);
    while (length > 0 && strchr(BRACKETS, begin[length - 1]))
        --length;
    char *text = tess_alloc((int64_t)size, 1);
    if (!text) TESS_FAIL(TESS_ERR_ALLOC, "names of columns");
    const int first = snprintf(text, size, "%s_", prefix);
    snprintf(text + first, size - (size_t)first, "%.*s", (int)length, begin);
    for (char *c = text + first; *c; ++c)
        if (!isalnum((unsigned char)*c)) *c = '_';
    *name = text;
cleanup:
    return status;
}

/* The first column of this name, or their number. */
static int find_same(const facet_columns *columns, const char *name)
{
    int k = 0;
    while (k < columns->num && strcmp(columns->name[k], name) != 0)
        ++k;
    return k;
}

tess_status facet_columns_create(const image_facets *facets, const char *prefix,
                                 const char *path, facet_columns *out)
{
    tess_status status = TESS_OK;
    facet_columns columns = {.name =
                                 tess_alloc_zero(facets->patches.num, sizeof(char *))};
    if (!columns.name) TESS_FAIL(TESS_ERR_ALLOC, "names of columns");
    for (int k = 0; k < facets->patches.num; ++k) {
        const tess_facet *facet = &facets->facets.facet[facets->facet[k]];
        TESS_TRY(name_column(prefix, facet->name, &columns.name[k]));
        const int other = find_same(&columns, columns.name[k]);
        columns.num++;
        if (other < k)
            TESS_FAIL(TESS_ERR_INPUT,
                      "%s: the facets of lines %lld and %lld would both have the "
                      "column %s; give each a name of its own (# text={NAME})",
                      path, (long long)facets->facets.facet[facets->facet[other]].line,
                      (long long)facet->line, columns.name[k]);
    }
    *out = columns;
    columns = (facet_columns){0};
cleanup:
    facet_columns_free(&columns);
    return status;
}

void facet_columns_free(facet_columns *columns)
{
    for (int k = 0; k < columns->num; ++k)
        tess_free(columns->name[k]);
    tess_free(columns->name);
    *columns = (facet_columns){0};
}
