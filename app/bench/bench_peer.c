/* Times another program on a benchmark's visibilities: writes them to a temporary
 * folder, and runs bench_peer.py there. */
#define _GNU_SOURCE
#include "tess_bench_peer.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tess_log.h"
#include "tess_out_file.h"

enum { NOT_INSTALLED = 3 }; /* of bench_peer.py */

static const char *const peers[] = {"ducc0", "cufinufft"};
static const char *const files[] = {"bench_peer.py", "case.json", "uvw_m",
                                    "inv_lambda",    "vis",       "errors"};

tess_status tess_bench_peer_check(const char *peer)
{
    tess_status status = TESS_OK;
    for (size_t k = 0; k < sizeof peers / sizeof *peers; ++k)
        if (strcmp(peer, peers[k]) == 0) return TESS_OK;
    TESS_FAIL(TESS_ERR_USAGE, "'%s' is neither 'ducc0' nor 'cufinufft'", peer);
cleanup:
    return status;
}

/* ---- the folder ---- */

static tess_status make_folder(char *folder, size_t size)
{
    tess_status status = TESS_OK;
    const char *parent = getenv("TMPDIR");
    if (!parent || !*parent || strchr(parent, '\'')) parent = "/tmp";
    snprintf(folder, size, "%s/tessera-bench-XXXXXX", parent);
    if (!mkdtemp(folder)) {
        folder[0] = '\0';
        TESS_FAIL(TESS_ERR_RESOURCE, "no temporary folder in %s: %s", parent,
                  strerror(errno));
    }
    tess_out_file_note(folder);
cleanup:
    return status;
}

static void remove_folder(const char *folder)
{
    char path[512];
    if (!*folder) return;
    for (size_t k = 0; k < sizeof files / sizeof *files; ++k) {
        snprintf(path, sizeof path, "%s/%s", folder, files[k]);
        unlink(path);
    }
    rmdir(folder);
    tess_out_file_forget(folder);
}

static tess_status write_file(const char *folder, const char *name, const void *data,
                              size_t bytes)
{
    tess_status status = TESS_OK;
    char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "wb");
    if (!file) TESS_FAIL(TESS_ERR_RESOURCE, "%s: %s", path, strerror(errno));
    const bool written = fwrite(data, 1, bytes, file) == bytes;
    if (fclose(file) != 0 || !written)
        TESS_FAIL(TESS_ERR_RESOURCE, "%s: could not be written: %s", path,
                  strerror(errno));
cleanup:
    return status;
}

static tess_status write_case(const char *folder, const tess_bench_peer_case *what)
{
    tess_status status = TESS_OK;
    char *text = NULL;
    const size_t rows = (size_t)what->num_rows, chans = (size_t)what->num_chan;
    json_t *json = json_pack(
        "{s:b, s:b, s:I, s:I, s:I, s:i, s:i, s:f, s:f, s:i, s:i}", "degrid",
        what->degrid, "double", what->is_double, "size", (json_int_t)what->size, "nu",
        (json_int_t)what->nu, "nv", (json_int_t)what->nv, "planes", what->num_planes,
        "support", what->support, "accuracy", what->accuracy, "scale_rad",
        what->scale_rad, "threads", what->threads, "repeat", what->repeat);
    text = json ? json_dumps(json, 0) : NULL;
    if (!text) TESS_FAIL(TESS_ERR_ALLOC, "case");
    TESS_TRY(write_file(folder, "bench_peer.py", tess_bench_peer_script,
                        strlen(tess_bench_peer_script)));
    TESS_TRY(write_file(folder, "case.json", text, strlen(text)));
    TESS_TRY(write_file(folder, "uvw_m", what->uvw_m, 3 * rows * sizeof(double)));
    TESS_TRY(
        write_file(folder, "inv_lambda", what->inv_lambda, chans * sizeof(double)));
    TESS_TRY(write_file(folder, "vis", what->vis,
                        rows * chans * (what->is_double ? 16 : 8)));
cleanup:
    free(text);
    json_decref(json);
    return status;
}

/* ---- its answer ---- */

/* The last line that the script has complained with. */
static void last_error(const char *folder, char *line, size_t size)
{
    char path[512], next[512];
    snprintf(path, sizeof path, "%s/errors", folder);
    FILE *file = fopen(path, "r");
    line[0] = '\0';
    while (file && fgets(next, sizeof next, file))
        if (strcspn(next, "\n") > 0)
            snprintf(line, size, "%.*s", (int)strcspn(next, "\n"), next);
    if (file) fclose(file);
}

static tess_status run_script(const char *peer, const char *folder, char *answer,
                              size_t size)
{
    tess_status status = TESS_OK;
    char command[2048], error[512];
    snprintf(command, sizeof command,
             "exec \"${TESS_PYTHON:-python3}\" '%s/bench_peer.py' %s '%s' "
             "2> '%s/errors'",
             folder, peer, folder, folder);
    FILE *script = popen(command, "r");
    if (!script)
        TESS_FAIL(TESS_ERR_RESOURCE, "no shell to start Python by: %s",
                  strerror(errno));
    answer[fread(answer, 1, size - 1, script)] = '\0';
    const int code = pclose(script);
    if (code == 0) goto cleanup;
    last_error(folder, error, sizeof error);
    if (WIFEXITED(code) && WEXITSTATUS(code) == NOT_INSTALLED)
        TESS_FAIL(TESS_ERR_RESOURCE,
                  "%s is not installed (%s); TESS_PYTHON names the "
                  "Python that has it",
                  peer, error);
    TESS_FAIL(TESS_ERR_RESOURCE, "%s failed: %s", peer, error);
cleanup:
    return status;
}

static tess_status read_answer(const char *peer, const char *answer,
                               tess_bench_peer_result *result)
{
    tess_status status = TESS_OK;
    const char *version;
    json_t *json = json_loads(answer, 0, NULL);
    if (json_unpack(json, "{s:F, s:F, s:i, s:s}", "sort_s", &result->sort_s, "seconds",
                    &result->seconds, "support", &result->support, "version",
                    &version) != 0)
        TESS_FAIL(TESS_ERR_RESOURCE, "%s: its times could not be read", peer);
    snprintf(result->version, sizeof result->version, "%s", version);
cleanup:
    json_decref(json);
    return status;
}

tess_status tess_bench_peer_run(const char *peer, const tess_bench_peer_case *what,
                                tess_bench_peer_result *result)
{
    tess_status status = TESS_OK;
    char folder[256] = "", answer[1024];
    TESS_TRY(tess_bench_peer_check(peer));
    TESS_TRY(make_folder(folder, sizeof folder));
    TESS_TRY(write_case(folder, what));
    TESS_TRY(run_script(peer, folder, answer, sizeof answer));
    TESS_TRY(read_answer(peer, answer, result));
cleanup:
    remove_folder(folder);
    return status;
}
