/* Finds the folder that keeps measurements of this machine between runs, and the name
 * of the processor. */
#define _GNU_SOURCE
#include "tess_cache.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The folder of all programs' caches. It is created if it does not exist. Returns false
 * if it cannot be. */
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

FILE *tess_cache_read(const char *path)
{
    struct stat info;
    const int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) return NULL;
    FILE *file =
        fstat(fd, &info) == 0 && S_ISREG(info.st_mode) ? fdopen(fd, "rb") : NULL;
    if (!file) close(fd);
    return file;
}

FILE *tess_cache_begin(const char *path, char temp[TESS_OUT_FILE_NAME])
{
    struct stat info;
    int fd;
    if (lstat(path, &info) == 0 && !S_ISREG(info.st_mode)) return NULL;
    tess_out_file_remove_left(path);
    if (tess_out_file_create(path, temp, &fd) != TESS_OK) {
        tess_error_clear();
        return NULL;
    }
    FILE *file = fdopen(fd, "wb");
    if (file) return file;
    close(fd);
    tess_out_file_discard(temp);
    return NULL;
}

bool tess_cache_end(FILE *file, bool good, bool replace,
                    const char temp[TESS_OUT_FILE_NAME], const char *path)
{
    good = !ferror(file) && good;
    good = fclose(file) == 0 && good;
    good = good && (replace ? rename(temp, path) : link(temp, path)) == 0;
    tess_out_file_discard(temp); /* after the rename there is no such file */
    return good;
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
