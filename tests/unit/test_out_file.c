/* Files that a program makes beside what others have made: names, links, what killed
 * runs have left, signals, caches and the log. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "tess_cache.h"
#include "tess_const.h"
#include "tess_hash.h"
#include "tess_input.h"
#include "tess_log.h"
#include "tess_out_file.h"
#include "tess_status.h"
#include "tess_text.h"

#define FOLDER "test_out_file.tmp"

static int set_up(void **state)
{
    if (system("rm -rf " FOLDER) != 0) return -1;
    return mkdir(FOLDER, 0777);
}

static int tear_down(void **state)
{
    tess_error_clear();
    return system("rm -rf " FOLDER);
}

static void put(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

static void assert_text(const char *path, const char *text)
{
    char found[256] = "";
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    found[fread(found, 1, sizeof found - 1, file)] = '\0';
    fclose(file);
    assert_string_equal(found, text);
}

static bool there(const char *path)
{
    struct stat info;
    return lstat(path, &info) == 0;
}

static int count_entries(void)
{
    int count = 0;
    DIR *list = opendir(FOLDER);
    for (const struct dirent *entry; (entry = readdir(list));)
        count += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    closedir(list);
    return count;
}

/* ---- names and links ---- */

static tess_status write_output(const char *path, bool overwrite)
{
    tess_status status = TESS_OK;
    char temp[TESS_OUT_FILE_NAME] = "";
    int fd = -1;
    TESS_TRY(tess_out_file_begin(path, overwrite, temp, &fd));
    TESS_TRY(tess_out_file_write(fd, path, "mine", 4, 0));
    TESS_TRY(tess_out_file_publish(temp, path, overwrite));
    temp[0] = '\0';
cleanup:
    if (fd >= 0) close(fd);
    tess_out_file_discard(temp);
    tess_error_clear();
    return status;
}

static void what_is_there_stays(void **state)
{
    put(FOLDER "/a", "yours");
    assert_int_equal(write_output(FOLDER "/a", false), TESS_ERR_IO);
    assert_text(FOLDER "/a", "yours");
    assert_int_equal(write_output(FOLDER "/a", true), TESS_OK);
    assert_text(FOLDER "/a", "mine");
    assert_int_equal(count_entries(), 1);
}

/* A link is never followed: not that of the final name, nor one of a temporary name. */
static void links_are_not_followed(void **state)
{
    char temp[TESS_OUT_FILE_NAME], first[TESS_OUT_FILE_NAME];
    int fd;
    put(FOLDER "/yours", "yours");
    assert_int_equal(symlink("nowhere", FOLDER "/lost"), 0);
    assert_int_equal(write_output(FOLDER "/lost", false), TESS_ERR_IO);
    assert_false(there(FOLDER "/nowhere"));
    assert_int_equal(symlink("yours", FOLDER "/link"), 0);
    assert_int_equal(write_output(FOLDER "/link", false), TESS_ERR_IO);
    assert_int_equal(write_output(FOLDER "/link", true), TESS_OK);
    assert_text(FOLDER "/yours", "yours");
    assert_int_equal(tess_out_file_create(FOLDER "/b", first, &fd), TESS_OK);
    close(fd);
    tess_out_file_discard(first);
    assert_int_equal(symlink("yours", first), 0);
    assert_int_equal(tess_out_file_create(FOLDER "/b", temp, &fd), TESS_OK);
    close(fd);
    assert_string_not_equal(temp, first);
    tess_out_file_discard(temp);
    assert_text(first, "yours");
}

/* Without the disk, names are exchanged: what had the name before is gone, and a folder
 * stays. */
static void names_are_taken_over_without_the_disk(void **state)
{
    tess_out_file_set_sync(false);
    what_is_there_stays(state);
    links_are_not_followed(state);
    assert_int_equal(mkdir(FOLDER "/folder", 0777), 0);
    put(FOLDER "/folder/file", "yours");
    const int before = count_entries();
    assert_int_equal(write_output(FOLDER "/folder", true), TESS_ERR_IO);
    assert_text(FOLDER "/folder/file", "yours");
    assert_int_equal(count_entries(), before);
    tess_out_file_set_sync(true);
}

static void what_comes_meanwhile_stays(void **state)
{
    char temp[TESS_OUT_FILE_NAME];
    int fd;
    assert_int_equal(tess_out_file_begin(FOLDER "/a", false, temp, &fd), TESS_OK);
    close(fd);
    put(FOLDER "/a", "yours");
    assert_int_equal(tess_out_file_publish(temp, FOLDER "/a", false), TESS_ERR_IO);
    assert_text(FOLDER "/a", "yours");
    tess_out_file_discard(temp);
    assert_int_equal(tess_out_folder_create(FOLDER "/.set", temp, &fd), TESS_OK);
    close(fd);
    assert_int_equal(mkdir(FOLDER "/set", 0777), 0);
    tess_error_clear();
    assert_int_equal(tess_out_folder_publish(temp, FOLDER "/set", false), TESS_ERR_IO);
    assert_true(there(temp));
    put(FOLDER "/set/old", "");
    assert_int_equal(tess_out_folder_publish(temp, FOLDER "/set", true), TESS_OK);
    assert_false(there(FOLDER "/set/old"));
    assert_int_equal(count_entries(), 2);
}

/* ---- what killed runs have left ---- */

/* A process that makes an unfinished file and a folder, and is killed. */
static pid_t kill_a_run(const char *path)
{
    const pid_t child = fork();
    if (child == 0) {
        char temp[TESS_OUT_FILE_NAME];
        int fd;
        if (tess_out_file_create(path, temp, &fd) == TESS_OK &&
            tess_out_folder_create(path, temp, &fd) == TESS_OK) {
            strcat(temp, "/inner");
            fclose(fopen(temp, "w"));
        }
        raise(SIGKILL);
    }
    int code;
    assert_int_equal(waitpid(child, &code, 0), child);
    assert_true(WIFSIGNALED(code));
    return child;
}

static void left_files_go(void **state)
{
    kill_a_run(FOLDER "/a");
    kill_a_run(FOLDER "/a");
    assert_int_equal(count_entries(), 4);
    kill_a_run(FOLDER "/ab"); /* another name's */
    assert_int_equal(write_output(FOLDER "/a", false), TESS_OK);
    assert_int_equal(count_entries(), 3);
    tess_out_file_remove_left(FOLDER "/ab");
    assert_int_equal(count_entries(), 1);
}

/* As many files as columns of some dozen facets have. */
static void many_files_go(void **state)
{
    enum { MANY = 1500 };
    char path[64], temp[TESS_OUT_FILE_NAME];
    for (int k = 0; k < MANY; ++k) {
        int fd;
        snprintf(path, sizeof path, FOLDER "/%d", k);
        assert_int_equal(tess_out_file_create(path, temp, &fd), TESS_OK);
        close(fd);
    }
    assert_int_equal(count_entries(), MANY);
    tess_out_remove_unfinished();
    assert_int_equal(count_entries(), 0);
}

static void other_files_stay(void **state)
{
    char host[256] = "", path[512];
    gethostname(host, sizeof host - 1);
    const uint32_t own = (uint32_t)tess_hash(TESS_HASH_START, host, strlen(host));
    const pid_t gone = kill_a_run(FOLDER "/x");
    tess_out_file_remove_left(FOLDER "/x");
    assert_int_equal(count_entries(), 0);
    /* of another host, of other spellings, a link, a pipe */
    const struct {
        uint32_t host;
        long process;
        const char *format;
    } names[] = {{own + 1, gone, "%s/a.tessera-%08x-%ld-0.tmp"},
                 {own, gone, "%s/a.tessera-%08x-0%ld-0.tmp"},
                 {own, gone, "%s/a.tessera-%08x-%ld-0.tmp~"},
                 {own, gone, "%s/a.tessera-%x-+%ld-0.tmp"},
                 {own, gone, "%s/ab.tessera-%08x-%ld-0.tmp"}};
    enum { NAMES = sizeof names / sizeof *names };
    for (int k = 0; k < NAMES; ++k) {
        snprintf(path, sizeof path, names[k].format, FOLDER, names[k].host,
                 names[k].process);
        put(path, "yours");
    }
    snprintf(path, sizeof path, "%s/a.%ld.0.tmp", FOLDER, (long)gone);
    put(path, "yours");
    snprintf(path, sizeof path, "%s/a.tessera-%08x-%ld-8.tmp", FOLDER, own, (long)gone);
    assert_int_equal(symlink("/", path), 0);
    snprintf(path, sizeof path, "%s/a.tessera-%08x-%ld-9.tmp", FOLDER, own, (long)gone);
    assert_int_equal(mkfifo(path, 0666), 0);
    tess_out_file_remove_left(FOLDER "/a");
    assert_int_equal(count_entries(), NAMES + 3);
    /* locked by a process whose number means nothing here */
    snprintf(path, sizeof path, "%s/a.tessera-%08x-%ld-5.tmp", FOLDER, own, (long)gone);
    put(path, "");
    const int fd = open(path, O_RDWR);
    assert_int_equal(flock(fd, LOCK_EX), 0);
    tess_out_file_remove_left(FOLDER "/a");
    assert_true(there(path));
    close(fd);
    tess_out_file_remove_left(FOLDER "/a");
    assert_false(there(path));
}

/* Its maker has ended, and its number is that of a process that runs: it has been given
 * again, every run in a container has it, or nobody has waited for the process. */
static void numbers_of_living_processes_keep_nothing(void **state)
{
    char host[256] = "", path[512], temp[TESS_OUT_FILE_NAME];
    int fd;
    gethostname(host, sizeof host - 1);
    const uint32_t own = (uint32_t)tess_hash(TESS_HASH_START, host, strlen(host));
    const long numbers[] = {getpid(), getppid()};
    for (int k = 0; k < 2; ++k) {
        snprintf(path, sizeof path, "%s/a.tessera-%08x-%ld-3.tmp", FOLDER, own,
                 numbers[k]);
        put(path, "left");
    }
    /* what this process makes stays, also when it has closed the file */
    assert_int_equal(tess_out_file_create(FOLDER "/a", temp, &fd), TESS_OK);
    close(fd);
    tess_out_file_remove_left(FOLDER "/a");
    assert_int_equal(count_entries(), 1);
    fd = open(temp, O_RDWR);
    assert_int_not_equal(flock(fd, LOCK_EX | LOCK_NB),
                         0); /* for other processes, too */
    close(fd);
    tess_out_file_discard(temp);
    assert_int_equal(count_entries(), 0);
}

/* The number of its maker means nothing here, as that of a process in a container. */
static void folders_in_use_stay(void **state)
{
    char temp[TESS_OUT_FILE_NAME], path[512], inner[600], host[256] = "";
    int fd, other = -1;
    gethostname(host, sizeof host - 1);
    const uint32_t own = (uint32_t)tess_hash(TESS_HASH_START, host, strlen(host));
    const pid_t gone = kill_a_run(FOLDER "/x");
    tess_out_file_remove_left(FOLDER "/x");
    assert_int_equal(tess_out_folder_create(FOLDER "/.set", temp, &fd), TESS_OK);
    snprintf(path, sizeof path, "%s/.set.tessera-%08x-%ld-0.tmp", FOLDER, own,
             (long)gone);
    assert_int_equal(rename(temp, path), 0);
    snprintf(inner, sizeof inner, "%s/table.dat", path);
    put(inner, "yours");
    tess_out_file_remove_left(FOLDER "/.set");
    assert_text(inner, "yours");
    assert_int_equal(tess_out_folder_lock(path, &other), TESS_ERR_IO);
    assert_non_null(strstr(tess_error_message(), "another run is writing it"));
    tess_error_clear();
    close(fd);
    assert_int_equal(tess_out_folder_lock(path, &other), TESS_OK);
    close(other);
    tess_out_file_remove_left(FOLDER "/.set");
    assert_false(there(path));
    tess_out_file_forget(temp);
}

/* ---- signals ---- */

/* How a process ends that a signal meets at each moment of an output. */
static int end_of(int moment)
{
    const pid_t child = fork();
    if (child == 0) {
        char temp[TESS_OUT_FILE_NAME];
        int fd;
        tess_out_catch_signals(false);
        if (tess_out_file_begin(FOLDER "/a", true, temp, &fd) != TESS_OK) _exit(99);
        if (moment == 0) raise(SIGINT);
        tess_out_hold_signals();
        if (moment == 1) {
            raise(SIGINT);
            raise(SIGTERM);
        }
        if (tess_out_file_publish(temp, FOLDER "/a", true) != TESS_OK) _exit(98);
        if (moment == 2) raise(SIGINT);
        if (moment == 3) {
            raise(SIGINT);
            tess_out_release_signals();
        }
        if (moment == 4) {
            tess_out_release_signals();
            raise(SIGINT);
        }
        _exit(0);
    }
    int code;
    assert_int_equal(waitpid(child, &code, 0), child);
    return WIFSIGNALED(code) ? -WTERMSIG(code) : WEXITSTATUS(code);
}

static void late_signals_change_nothing(void **state)
{
    assert_int_equal(end_of(0), -SIGINT);
    assert_int_equal(count_entries(), 0);
    for (int moment = 1; moment < 5; ++moment) {
        assert_int_equal(end_of(moment), moment < 3 ? 0 : -SIGINT);
        assert_int_equal(count_entries(), 1);
    }
}

/* ---- inputs and caches ---- */

static void pipes_are_not_waited_for(void **state)
{
    int fd = -1;
    int64_t bytes;
    char temp[TESS_OUT_FILE_NAME];
    assert_int_equal(mkfifo(FOLDER "/pipe", 0666), 0);
    assert_int_equal(tess_input_open(FOLDER "/pipe", &fd, &bytes), TESS_ERR_IO);
    assert_non_null(strstr(tess_error_message(), "regular file"));
    assert_int_equal(fd, -1);
    assert_null(tess_cache_read(FOLDER "/pipe"));
    assert_null(tess_cache_begin(FOLDER "/pipe", temp));
    assert_int_equal(count_entries(), 1);
}

static void reading_ends_with_the_file(void **state)
{
    char text[8] = "";
    int64_t bytes;
    int fd = -1;
    put(FOLDER "/a", "0123456");
    assert_int_equal(tess_input_open(FOLDER "/a", &fd, &bytes), TESS_OK);
    assert_int_equal(tess_input_read(fd, "a file", text, bytes - 2, 2), TESS_OK);
    assert_string_equal(text, "23456");
    assert_int_equal(tess_input_read(fd, "a file", text, bytes, 2), TESS_ERR_IO);
    assert_non_null(strstr(tess_error_message(), "a file: ended early"));
    tess_error_clear();
    close(fd);
    assert_int_equal(tess_input_read(fd, "a file", text, 1, 0), TESS_ERR_IO);
    assert_non_null(strstr(tess_error_message(), "a file: cannot be read"));
}

static void caches_are_replaced_whole(void **state)
{
    char temp[TESS_OUT_FILE_NAME];
    put(FOLDER "/yours", "yours");
    assert_int_equal(symlink("yours", FOLDER "/link"), 0);
    assert_null(tess_cache_begin(FOLDER "/link", temp));
    for (int replace = 0; replace < 2; ++replace)
        for (int good = 0; good < 2; ++good) {
            put(FOLDER "/c", "old");
            FILE *file = tess_cache_begin(FOLDER "/c", temp);
            assert_non_null(file);
            fputs("new", file);
            assert_int_equal(tess_cache_end(file, good, replace, temp, FOLDER "/c"),
                             good && replace);
            assert_text(FOLDER "/c", good && replace ? "new" : "old");
            assert_int_equal(count_entries(), 3);
        }
    assert_text(FOLDER "/yours", "yours");
    assert_string_equal(tess_error_message(), "");
}

/* A process that may open no more files says so, and blames no file. */
static void too_many_files(void **state)
{
    char temp[TESS_OUT_FILE_NAME];
    int fd = -1;
    int64_t bytes;
    struct rlimit before, none;
    put(FOLDER "/a", "");
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = before;
    none.rlim_cur = 0;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    const tess_status read = tess_input_open(FOLDER "/a", &fd, &bytes);
    const bool blames_limit = strstr(tess_error_message(), "ulimit -n") != NULL;
    tess_error_clear();
    const tess_status written = tess_out_file_create(FOLDER "/b", temp, &fd);
    const tess_status logged = tess_log_open(FOLDER "/a", false);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_int_equal(read, TESS_ERR_RESOURCE);
    assert_true(blames_limit);
    assert_int_equal(written, TESS_ERR_RESOURCE);
    assert_int_equal(logged, TESS_ERR_RESOURCE);
    tess_error_clear();
    assert_int_equal(tess_input_check_limit(FOLDER "/a"), TESS_OK);
}

/* ---- the log ---- */

static const char OWN[] = "[    0.00 s] tessera 0.1 on 1 rank\n";

static void a_log_is_appended_to(void **state)
{
    tess_log_start(0, TESS_LOG_QUIET);
    for (int k = 0; k < 2; ++k) {
        assert_int_equal(tess_log_open(FOLDER "/log", false), TESS_OK);
        assert_int_equal(there(FOLDER "/log"), k > 0);
        tess_log_info("tessera says\x1b[2J");
        assert_int_equal(tess_log_keep(), TESS_OK);
        tess_log_info("more");
        tess_log_close();
    }
    char text[256] = "";
    FILE *file = fopen(FOLDER "/log", "r");
    for (int k = 0; k < 4; ++k) {
        assert_non_null(fgets(text, sizeof text, file));
        assert_non_null(strstr(text, k % 2 ? " s] more\n" : " s] tessera says?[2J\n"));
    }
    assert_null(fgets(text, sizeof text, file));
    fclose(file);
}

static void other_logs_stay(void **state)
{
    static const char *const foreign[] = {"my log\n", "[    1.00 s] other\n", "["};
    for (size_t k = 0; k < sizeof foreign / sizeof *foreign; ++k) {
        put(FOLDER "/log", foreign[k]);
        assert_int_equal(tess_log_open(FOLDER "/log", false), TESS_ERR_IO);
        assert_non_null(strstr(tess_error_message(), "--overwrite"));
        tess_error_clear();
        assert_text(FOLDER "/log", foreign[k]);
    }
    assert_int_equal(tess_log_open(FOLDER "/log", true), TESS_OK);
    tess_log_close();
    put(FOLDER "/own", OWN);
    assert_int_equal(symlink("own", FOLDER "/link"), 0);
    assert_int_equal(symlink("nowhere", FOLDER "/lost"), 0);
    assert_int_equal(mkfifo(FOLDER "/pipe", 0666), 0);
    static const char *const others[] = {FOLDER "/link", FOLDER "/lost",
                                         FOLDER "/pipe"};
    for (size_t k = 0; k < sizeof others / sizeof *others; ++k) {
        assert_int_equal(tess_log_open(others[k], true), TESS_ERR_IO);
        tess_error_clear();
    }
    assert_text(FOLDER "/own", OWN);
    assert_false(there(FOLDER "/nowhere"));
}

/* A run that is refused before it begins says nothing in its log. */
static void a_refused_run_leaves_no_log(void **state)
{
    put(FOLDER "/log", OWN);
    static const char *const paths[] = {FOLDER "/log", FOLDER "/new"};
    for (size_t k = 0; k < sizeof paths / sizeof *paths; ++k) {
        assert_int_equal(tess_log_open(paths[k], false), TESS_OK);
        tess_log_info("tessera says");
        tess_log_close();
    }
    assert_text(FOLDER "/log", OWN);
    assert_false(there(FOLDER "/new"));
    assert_int_equal(tess_log_keep(), TESS_OK); /* there is none */
}

/* ---- text ---- */

static void text_for_a_terminal(void **state)
{
    static const char *const texts[][2] = {
        {"plain, with ~ and \"", "plain, with ~ and \""},
        {"\x1b]0;title\x07", "?]0;title?"},
        {"a\tb\nc\rd\x7f", "a?b?c?d?"},
        {"\xc2\x9b"
         "31m",
         "?31m"}, /* the control character that begins a sequence */
        {"\x9b"
         "31m",
         "?31m"}, /* the same as one byte */
        {"\xc3\x85ngstr\xc3\xb6m \xe2\x82\xac \xf0\x9f\x94\xad", NULL},
        {"\xc0\x9b \xe0\x82\x9b \xed\xa0\x80", "?? ??? ???"}, /* other spellings */
        {"\xf4\x90\x80\x80", "????"},
        {"cut \xe2\x82", "cut ??"},
        {"", ""}};
    for (size_t k = 0; k < sizeof texts / sizeof *texts; ++k) {
        char text[64];
        snprintf(text, sizeof text, "%s", texts[k][0]);
        assert_string_equal(tess_text_clean(text),
                            texts[k][1] ? texts[k][1] : texts[k][0]);
    }
}

static void angles_below(void **state)
{
    (void)state;
    static const struct {
        double asec;
        const char *text;
    } angles[] = {{3.51999, "3.51asec"},  {3.51, "3.5asec"},      {60, "59.9asec"},
                  {61.5, "1.02amin"},     {0.0123456, "12.3mas"}, {7200.1, "2deg"},
                  {3599.999, "59.9amin"}, {1.9e-8, "0.0189uas"}};
    for (size_t k = 0; k < sizeof angles / sizeof *angles; ++k) {
        char text[32];
        tess_text_angle_below(angles[k].asec * TESS_RAD_PER_ASEC, text, sizeof text);
        assert_string_equal(text, angles[k].text);
    }
}

static void the_disk_is_waited_for(void **state)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(tess_out_file_sync(ends[1]), 0); /* has no disk */
    close(ends[0]);
    close(ends[1]);
    assert_int_equal(tess_out_file_sync(ends[1]), -1);
    assert_int_equal(errno, EBADF);
    tess_out_file_set_sync(false);
    assert_int_equal(tess_out_file_sync(ends[1]), 0);
    tess_out_file_set_sync(true);
    assert_int_equal(tess_out_file_sync(ends[1]), -1);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {cmocka_unit_test(angles_below),
                                       TEST(what_is_there_stays),
                                       TEST(names_are_taken_over_without_the_disk),
                                       TEST(links_are_not_followed),
                                       TEST(what_comes_meanwhile_stays),
                                       TEST(left_files_go),
                                       TEST(many_files_go),
                                       TEST(other_files_stay),
                                       TEST(numbers_of_living_processes_keep_nothing),
                                       TEST(folders_in_use_stay),
                                       TEST(late_signals_change_nothing),
                                       TEST(pipes_are_not_waited_for),
                                       TEST(reading_ends_with_the_file),
                                       TEST(caches_are_replaced_whole),
                                       TEST(too_many_files),
                                       TEST(a_log_is_appended_to),
                                       TEST(other_logs_stay),
                                       TEST(a_refused_run_leaves_no_log),
                                       TEST(text_for_a_terminal),
                                       TEST(the_disk_is_waited_for)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
