/* The file of FFTW's wisdom: one for each kind of processor and precision, replaced as
 * a whole, used by later processes, and not needed. */
#define _XOPEN_SOURCE 700
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tess_fft.h"

/* FFTW measures plans for this number of lines of this length. */
enum { LENGTH = 105, MANY = 1000000 };

static char home[] = "/tmp/tess-wisdom-XXXXXX";

/* Path of the only file of the cache; an empty one when there is none. */
static void only_file(char *path, size_t size)
{
    char folder[200];
    int count = 0;
    snprintf(folder, sizeof folder, "%s/tessera", home);
    *path = '\0';
    DIR *files = opendir(folder);
    if (!files) return;
    for (struct dirent *entry = readdir(files); entry; entry = readdir(files)) {
        if (entry->d_name[0] == '.') continue;
        snprintf(path, size, "%s/%s", folder, entry->d_name);
        ++count;
    }
    closedir(files);
    assert_int_equal(count, 1);
}

/* In a process that knows nothing yet. */
static void plan_elsewhere(void)
{
    int status;
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        tess_fft *fft = NULL;
        const tess_status made = tess_fft_create(LENGTH, true, false, MANY, &fft);
        _exit(made == TESS_OK && fft ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static ino_t number_of(const char *path)
{
    struct stat info;
    assert_int_equal(stat(path, &info), 0);
    assert_true(info.st_size > 0);
    return info.st_ino;
}

static void test_file(void **state)
{
    char path[600], again[600];
    assert_non_null(mkdtemp(home));
    assert_int_equal(setenv("XDG_CACHE_HOME", home, 1), 0);
    plan_elsewhere();
    only_file(path, sizeof path);
    assert_non_null(strstr(path, "/fftw-single-"));
    assert_string_equal(path + strlen(path) - strlen(".wisdom"), ".wisdom");
    const ino_t first = number_of(path);
    plan_elsewhere(); /* measured already */
    only_file(again, sizeof again);
    assert_string_equal(again, path);
    assert_true(number_of(path) == first);
    FILE *file = fopen(path, "w"); /* nothing that FFTW understands */
    assert_non_null(file);
    fputs("(half a fi", file);
    fclose(file);
    const ino_t damaged = number_of(path);
    plan_elsewhere();
    only_file(again, sizeof again);
    assert_true(number_of(path) != damaged);
    assert_int_equal(remove(path), 0);
}

/* Homes that are read-only, or none at all: /proc takes no folders, even from root. */
static void test_none(void **state)
{
    assert_int_equal(setenv("XDG_CACHE_HOME", "/proc", 1), 0);
    plan_elsewhere();
    unsetenv("XDG_CACHE_HOME");
    unsetenv("HOME");
    plan_elsewhere();
}

static int remove_home(void **state)
{
    char folder[200];
    snprintf(folder, sizeof folder, "%s/tessera", home);
    rmdir(folder);
    rmdir(home);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_file),
        cmocka_unit_test(test_none),
    };
    return cmocka_run_group_tests(tests, NULL, remove_home);
}
