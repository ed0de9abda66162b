/* Stands in for h5parm.c in a build without HDF5. */
#include "h5parm.h"

static tess_status refuse(const char *path)
{
    tess_status status = TESS_OK;
    TESS_FAIL(
        TESS_ERR_RESOURCE,
        "%s: this tessera was built without h5parm support; install HDF5 and build "
        "with TESS_HDF5=ON",
        path);
cleanup:
    return status;
}

tess_status h5parm_open(const char *path, h5parm **file)
{
    (void)file;
    return refuse(path);
}

void h5parm_close(h5parm *file)
{
    (void)file;
}

tess_status h5parm_sources(h5parm *file, tess_solution_source **source, int64_t *num)
{
    (void)file;
    (void)source;
    (void)num;
    return refuse("source");
}

bool h5parm_is_beam(h5parm *file)
{
    (void)file;
    return false;
}

bool h5parm_has_table(h5parm *file, const char *name)
{
    (void)file;
    (void)name;
    return false;
}

void h5parm_table_names(h5parm *file, char *names, size_t size)
{
    (void)file;
    if (size > 0) names[0] = '\0';
}

tess_status h5parm_table_open(h5parm *file, const char *name, h5parm_table *table)
{
    (void)file;
    (void)table;
    return refuse(name);
}

void h5parm_table_free(h5parm_table *table)
{
    *table = (h5parm_table){.num_axes = 0};
}

tess_status h5parm_values(h5parm *file, const h5parm_table *table,
                          const h5parm_pick *pick, double *value)
{
    (void)file;
    (void)pick;
    (void)value;
    return refuse(table->name);
}
