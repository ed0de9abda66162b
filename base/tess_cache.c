#include "tess_cache.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Folder of all programs' caches, made when missing; false when there is none. */
static bool parent_folder(char *path, size_t size)
{
    const char *base = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    if (base && *base)
        snprintf(path, size, "%s", base);
    else if (home && *home)
        snprintf(path, size, "%s/.cache", home);
    else
        return false;
    mkdir(path, 0777);
    return true;
}

bool tess_cache_folder(char *path, size_t size)
{
    const char *own = getenv("TESS_CACHE_DIR");
    char parent[800];
    if (own && *own)
        snprintf(path, size, "%s", own);
    else if (parent_folder(parent, sizeof parent))
        snprintf(path, size, "%s/tessera", parent);
    else
        return false;
    mkdir(path, 0777);
    return access(path, R_OK) == 0;
}

void tess_cache_processor(char *name, size_t size)
{
    char line[256];
    snprintf(name, size, "cpu");
    FILE *file = fopen("/proc/cpuinfo", "r");
    if (!file) return;
    while (fgets(line, sizeof line, file)) {
        const char *colon = strchr(line, ':');
        if (strncmp(line, "model name", 10) != 0 || !colon) continue;
        snprintf(name, size, "%s", colon + 2);
        break;
    }
    fclose(file);
    for (char *c = name; *c; ++c)
        if (!((*c >= '0' && *c <= '9') || (*c >= 'A' && *c <= 'Z') ||
              (*c >= 'a' && *c <= 'z')))
            *c = *c == '\n' ? '\0' : '-';
}
