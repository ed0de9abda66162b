/* Finds the control groups of this process, whose limits bound its memory and its
 * processor time. */
#include "tess_cgroup.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { PATH_BYTES = 2048 };

/* The folders from root/path up to root. */
static void visit_along(const char *root, const char *path, int version,
                        tess_cgroup_visit *visit, void *context)
{
    char folder[2 * PATH_BYTES];
    const size_t top = strlen(root);
    snprintf(folder, sizeof folder, "%s%s", root, path);
    for (;;) {
        visit(folder, version, context);
        char *slash = strrchr(folder, '/');
        if (!slash || (size_t)(slash - folder) < top) return;
        *slash = '\0';
    }
}

/* Whether a list like "cpu,cpuacct" has that name. */
static bool lists(const char *names, const char *name)
{
    const size_t length = strlen(name);
    while (*names) {
        const size_t next = strcspn(names, ",");
        if (next == length && strncmp(names, name, length) == 0) return true;
        names += next + (names[next] == ',');
    }
    return false;
}

/* Reads a line NUMBER:CONTROLLERS:PATH of /proc/self/cgroup. Version 2 has the number 0
 * and no controllers. The line is changed. */
static void visit_line(const char *root, const char *controller, char *line,
                       tess_cgroup_visit *visit, void *context)
{
    char folder[PATH_BYTES];
    line[strcspn(line, "\n")] = '\0';
    char *controllers = strchr(line, ':');
    char *path = controllers ? strchr(++controllers, ':') : NULL;
    if (!path) return;
    *path++ = '\0';
    if (!*controllers) {
        snprintf(folder, sizeof folder, "%s/sys/fs/cgroup", root);
        visit_along(folder, path, 2, visit, context);
    } else if (lists(controllers, controller)) {
        snprintf(folder, sizeof folder, "%s/sys/fs/cgroup/%s", root, controller);
        visit_along(folder, path, 1, visit, context);
    }
}

void tess_cgroup_each(const char *root, const char *controller,
                      tess_cgroup_visit *visit, void *context)
{
    char line[PATH_BYTES];
    snprintf(line, sizeof line, "%s/proc/self/cgroup", root);
    FILE *file = fopen(line, "r");
    if (!file) return;
    while (fgets(line, sizeof line, file))
        visit_line(root, controller, line, visit, context);
    fclose(file);
}

int64_t tess_cgroup_number(const char *folder, const char *name, int64_t otherwise)
{
    char path[2 * PATH_BYTES + 64];
    long long value;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "r");
    if (!file) return otherwise;
    if (fscanf(file, "%lld", &value) != 1) value = otherwise;
    fclose(file);
    return value;
}
