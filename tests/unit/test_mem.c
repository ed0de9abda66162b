/* Allocation: overflow, alignment, growth; limits and texts; stacks. */
#define _XOPEN_SOURCE 700
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dlfcn.h>
#include <errno.h>
#include <ftw.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tess_mem.h"
#include "tess_processors.h"
#include "tess_stack.h"

static void test_overflow(void **state)
{
    assert_null(tess_alloc(-1, 8));
    assert_null(tess_alloc(INT64_MAX, 8));
    assert_null(tess_alloc(INT64_MAX / 8 + 1, 16));
    assert_null(tess_alloc_zero(INT64_MAX, 2));
    assert_null(tess_alloc(INT64_MAX, 1)); /* rounding up must not wrap either */
}

static void test_aligned(void **state)
{
    static const int64_t size[] = {0, 1, 63, 64, 65, 4096, 9 << 20};
    for (int k = 0; k < 7; ++k) {
        char *plain = tess_alloc(size[k], 1), *zeroed = tess_alloc_zero(size[k], 1);
        assert_non_null(plain);
        assert_non_null(zeroed);
        assert_int_equal((uintptr_t)plain % 64, 0);
        assert_int_equal((uintptr_t)zeroed % 64, 0);
        memset(plain, 1, (size_t)size[k]);
        for (int64_t b = 0; b < size[k]; ++b)
            assert_int_equal(zeroed[b], 0);
        tess_free(plain);
        tess_free(zeroed);
    }
    tess_free(NULL);
}

/* With MEMKIND_HBW_NODES=0 memkind takes any memory for the fast one: then these blocks
 * are its own, else they are as tess_alloc()'s. */
static void test_fast(void **state)
{
    enum { BLOCKS = 300, BYTES = 8 << 20 }; /* more than it may have */
    static char *block[BLOCKS];
    assert_null(tess_alloc_fast(-1, 8));
    assert_null(tess_alloc_fast(INT64_MAX, 8));
    for (int k = 0; k < BLOCKS; ++k) {
        block[k] = tess_alloc_fast(k % 3 == 0 ? 100 : BYTES, 1);
        assert_non_null(block[k]);
        assert_int_equal((uintptr_t)block[k] % 64, 0);
        block[k][0] = block[k][99] = (char)k;
    }
    for (int k = 0; k < BLOCKS; ++k)
        assert_true(block[k][0] == (char)k && block[k][99] == (char)k);
    int64_t capacity = BYTES;
    assert_int_equal(tess_grow((void **)&block[1], &capacity, BYTES + 1, 1), 0);
    assert_int_equal(block[1][99], 1);
    for (int k = 0; k < BLOCKS; ++k)
        tess_free(block[(7 * k) % BLOCKS]);
    block[0] = tess_alloc_fast(BYTES, 1); /* a place is free again */
    assert_non_null(block[0]);
    memset(block[0], 1, BYTES);
    tess_free(block[0]);
}

/* Asked for, and there? */
static bool lacks_memkind(void)
{
    if (!getenv("MEMKIND_HBW_NODES")) return false;
    tess_free(tess_alloc_fast(8 << 20, 1));
    return !dlopen("libmemkind.so.0", RTLD_NOW | RTLD_NOLOAD);
}

static void test_grow(void **state)
{
    int64_t *array = NULL, capacity = 0;
    for (int64_t n = 0; n < 1000; ++n) {
        assert_int_equal(tess_grow((void **)&array, &capacity, n + 1, sizeof *array),
                         0);
        assert_true(capacity >= n + 1);
        array[n] = n;
    }
    for (int64_t n = 0; n < 1000; ++n)
        assert_int_equal(array[n], n);
    int64_t *const before = array, held = capacity;
    assert_int_equal(tess_grow((void **)&array, &capacity, INT64_MAX, sizeof *array),
                     -1);
    assert_ptr_equal(array, before);
    assert_int_equal(capacity, held);
    assert_int_equal(tess_grow((void **)&array, &capacity, 5, sizeof *array), 0);
    assert_ptr_equal(array, before); /* never shrinks */
    tess_free(array);
}

static void test_strdup(void **state)
{
    assert_null(tess_strdup(NULL));
    char *copy = tess_strdup("tessera");
    assert_string_equal(copy, "tessera");
    tess_free(copy);
}

static void test_text(void **state)
{
    assert_string_equal(tess_mem_text(0), "0 B");
    assert_string_equal(tess_mem_text(1023), "1023 B");
    assert_string_equal(tess_mem_text(1536), "1.5 KiB");
    assert_string_equal(tess_mem_text(3.0 * (1 << 30)), "3.0 GiB");
    /* several in one message */
    const char *first = tess_mem_text(1), *second = tess_mem_text(2);
    assert_string_equal(first, "1 B");
    assert_string_equal(second, "2 B");
}

static void test_limits(void **state)
{
    static const char *const names[] = {"SLURM_MEM_PER_NODE", "SLURM_MEM_PER_CPU",
                                        "SLURM_MEM_PER_GPU", "SLURM_CPUS_ON_NODE",
                                        "SLURM_GPUS_ON_NODE"};
    for (size_t k = 0; k < sizeof names / sizeof *names; ++k)
        unsetenv(names[k]);
    assert_true(tess_mem_peak_bytes() > 1 << 18);
    const int64_t machine = tess_mem_node_limit_bytes();
    assert_true(machine > 1 << 20);
    setenv("SLURM_MEM_PER_NODE", "7", 1);
    assert_int_equal(tess_mem_node_limit_bytes(), 7 << 20);
    setenv("SLURM_MEM_PER_NODE", "0", 1); /* all of the node */
    assert_int_equal(tess_mem_node_limit_bytes(), machine);
    unsetenv("SLURM_MEM_PER_NODE");
    setenv("SLURM_MEM_PER_CPU", "3", 1); /* for how many? */
    assert_int_equal(tess_mem_node_limit_bytes(), machine);
    setenv("SLURM_CPUS_ON_NODE", "4", 1);
    assert_int_equal(tess_mem_node_limit_bytes(), 12 << 20);
    setenv("SLURM_MEM_PER_GPU", "5", 1);
    setenv("SLURM_GPUS_ON_NODE", "2", 1);
    assert_int_equal(tess_mem_node_limit_bytes(), 10 << 20);
    for (size_t k = 0; k < sizeof names / sizeof *names; ++k)
        unsetenv(names[k]);
}

/* ---- peak of this process ---- */

/* The argument with which this program checks its own peak alone. */
static const char small_program[] = "small-program";
enum { LARGE_BYTES = 300 << 20 };

/* Does a program that touches little memory report little of it? A third of what its
 * parent has used leaves room for the libraries of this program and for those of
 * sanitizers. */
static int check_small_peak(void)
{
    const int64_t peak = tess_mem_peak_bytes();
    if (peak > 0 && peak < LARGE_BYTES / 3) return 0;
    fprintf(stderr, "a small program reports %lld bytes\n", (long long)peak);
    return 1;
}

/* How this program ends with another argument. */
static int outcome_of(const char *program)
{
    int outcome = -1;
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        execl("/proc/self/exe", "test_mem", program, (char *)NULL);
        _exit(127);
    }
    assert_int_equal(waitpid(child, &outcome, 0), child);
    return outcome;
}

/* The system's resource usage keeps the peak of a process through an exec: a program
 * that a large process starts must not report that process's memory. */
static void test_peak_of_a_large_parent(void **state)
{
    char *block = tess_alloc(LARGE_BYTES, 1);
    assert_non_null(block);
    memset(block, 1, LARGE_BYTES);
    assert_true(tess_mem_peak_bytes() >= LARGE_BYTES);
    assert_int_equal(outcome_of(small_program), 0);
    tess_free(block);
    assert_true(tess_mem_peak_bytes() >= LARGE_BYTES); /* a peak never falls */
}

/* ---- small arrays ---- */

static const char outputs_program[] = "one output after the other",
                  little_program[] = "an output in little memory";

/* Takes and frees the arrays of an output, each too small to be kept by itself. */
static void make_output(void)
{
    enum { ARRAYS = 10, BYTES = 3 << 19 };
    char *array[ARRAYS];
    for (int k = 0; k < ARRAYS; ++k) {
        array[k] = tess_alloc(BYTES, 1);
        if (!array[k]) _exit(1);
        memset(array[k], k, BYTES);
    }
    for (int k = 0; k < ARRAYS; ++k)
        tess_free(array[k]);
}

static long page_faults(void)
{
    struct rusage usage;
    return getrusage(RUSAGE_SELF, &usage) == 0 ? usage.ru_minflt : -1;
}

/* Do outputs find the pages of those before? To clear new ones took a tenth of a cube's
 * processor time. An output has 3,840 of them, or 8 if they are huge. */
static void make_outputs(void)
{
    enum { SETTLED = 10, OUTPUTS = 100 };
    long before = 0;
    tess_mem_keep_no_arrays(INT64_MAX);
    for (int k = 0; k < SETTLED + OUTPUTS; ++k) {
        if (k == SETTLED) before = page_faults();
        make_output();
    }
    _exit(page_faults() - before < OUTPUTS ? 0 : 1);
}

static void test_small_arrays_stay(void **state)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(__GLIBC__)
    skip(); /* other allocators */
#endif
    assert_int_equal(outcome_of(outputs_program), 0);
}

/* Does a process that may use 64 MiB hold about a 32nd part of them, when arrays of 15
 * MiB are freed? The arrays have no alignment, whose gaps may divide the end of the
 * heap. */
static void make_output_in_little(void)
{
    enum { ARRAYS = 10, BYTES = 3 << 19, MEBI = 1 << 20 };
    char *array[ARRAYS];
    tess_mem_keep_no_arrays(64 * MEBI);
    const int64_t before = tess_mem_resident_bytes();
    for (int k = 0; k < ARRAYS; ++k) {
        array[k] = malloc(BYTES);
        if (!array[k]) _exit(1);
        memset(array[k], k, BYTES);
    }
    for (int k = 0; k < ARRAYS; ++k)
        free(array[k]);
    _exit(before > 0 && tess_mem_resident_bytes() - before < 4 * MEBI ? 0 : 1);
}

static void test_little_stays_of_little_memory(void **state)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(__GLIBC__)
    skip(); /* other allocators */
#endif
    assert_int_equal(outcome_of(little_program), 0);
}

/* ---- stacks ---- */

static const char deep_program[] = "deep",
                  deep_unprepared_program[] = "deep, unprepared";

/* Uses this much of the stack. */
static int descend(int64_t bytes)
{
    volatile char frame[1024];
    frame[0] = 1;
    return bytes > 1024 ? descend(bytes - 1024) + frame[0] : frame[0];
}

/* Goes down the stack when there is no address space left, and ends. */
static void go_deep(bool prepares)
{
    const struct rlimit none = {1, 1};
    if (prepares && tess_stack_prepare() != TESS_OK) _exit(1);
    if (setrlimit(RLIMIT_AS, &none) != 0) _exit(2);
    _exit(descend(768 << 10) == 768 ? 0 : 3);
}

/* A stack that was prepared needs no more address space; others end the process. */
static void test_stack_without_address_space(void **state)
{
    assert_int_equal(outcome_of(deep_program), 0);
    assert_int_not_equal(outcome_of(deep_unprepared_program), 0);
}

/* ---- control groups, of a tree that looks like /proc and /sys ---- */

static char tree[] = "/tmp/tess-cgroup-XXXXXX";

/* Folders are made as needed. */
static void write_file(const char *path, const char *text)
{
    char name[512];
    snprintf(name, sizeof name, "%s%s", tree, path);
    for (char *at = name + strlen(tree) + 1; *at; ++at)
        if (*at == '/') {
            *at = '\0';
            assert_true(mkdir(name, 0700) == 0 || errno == EEXIST);
            *at = '/';
        }
    FILE *file = fopen(name, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static int remove_entry(const char *path, const struct stat *info, int kind,
                        struct FTW *where)
{
    return remove(path);
}

static void test_cgroups(void **state)
{
    assert_non_null(mkdtemp(tree));
    assert_true(tess_mem_cgroup_limit_bytes(tree) == INT64_MAX); /* none */
    /* version 1 as Slurm has it: the job's limit is above the step's, which has none */
    write_file("/proc/self/cgroup", "5:cpu,cpuacct:/x\n4:memory:/slurm/job_7/step_0\n");
    write_file("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    write_file("/sys/fs/cgroup/memory/slurm/job_7/memory.limit_in_bytes", "5000\n");
    write_file("/sys/fs/cgroup/memory/slurm/job_7/step_0/memory.limit_in_bytes",
               "9223372036854771712\n");
    write_file("/sys/fs/cgroup/memory/slurm/job_8/memory.limit_in_bytes", "10\n");
    assert_int_equal(tess_mem_cgroup_limit_bytes(tree), 5000);
    /* version 2, below a limit of all jobs */
    write_file("/proc/self/cgroup", "0::/system.slice/job_9/step_0\n");
    write_file("/sys/fs/cgroup/system.slice/memory.max", "8000\n");
    write_file("/sys/fs/cgroup/system.slice/job_9/memory.max", "max\n");
    write_file("/sys/fs/cgroup/system.slice/job_9/step_0/memory.max", "9000\n");
    assert_int_equal(tess_mem_cgroup_limit_bytes(tree), 8000);
    /* a container's group is the root that it sees */
    write_file("/proc/self/cgroup", "4:memory:/docker/abc\n0::/\n");
    write_file("/sys/fs/cgroup/memory/memory.limit_in_bytes", "7000\n");
    assert_int_equal(tess_mem_cgroup_limit_bytes(tree), 7000);
    assert_int_equal(nftw(tree, remove_entry, 8, FTW_DEPTH | FTW_PHYS), 0);
}

/* Half a processor, one and a half, ... of nested groups. */
static void test_quotas(void **state)
{
    assert_non_null(mkdtemp(strcpy(tree, "/tmp/tess-cgroup-XXXXXX")));
    assert_true(tess_processors_quota(tree) == 0); /* none */
    write_file("/proc/self/cgroup", "0::/system.slice/job_9/step_0\n");
    write_file("/sys/fs/cgroup/cpu.max", "max 100000\n");
    assert_true(tess_processors_quota(tree) == 0);
    write_file("/sys/fs/cgroup/system.slice/job_9/cpu.max", "150000 100000\n");
    assert_true(tess_processors_quota(tree) == 1.5);
    write_file("/sys/fs/cgroup/system.slice/job_9/step_0/cpu.max", "400000 100000\n");
    assert_true(tess_processors_quota(tree) == 1.5);
    write_file("/sys/fs/cgroup/system.slice/cpu.max", "50000 100000\n");
    assert_true(tess_processors_quota(tree) == .5);
    /* version 1, whose controllers share a hierarchy; another one's name is longer */
    write_file("/proc/self/cgroup", "6:cpuset:/y\n5:cpu,cpuacct:/docker/x\n0::/\n");
    write_file("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
    write_file("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
    assert_true(tess_processors_quota(tree) == 0);
    write_file("/sys/fs/cgroup/cpu/docker/x/cpu.cfs_period_us", "100000\n");
    write_file("/sys/fs/cgroup/cpu/docker/x/cpu.cfs_quota_us", "300000\n");
    assert_true(tess_processors_quota(tree) == 3);
    write_file("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "200000\n");
    assert_true(tess_processors_quota(tree) == 2);
    assert_int_equal(nftw(tree, remove_entry, 8, FTW_DEPTH | FTW_PHYS), 0);
}

/* What this process may use is at most what Slurm gives. */
static void test_processors(void **state)
{
    unsetenv("SLURM_CPUS_ON_NODE");
    const int all = tess_processors();
    assert_true(all >= 1);
    setenv("SLURM_CPUS_ON_NODE", "1", 1);
    assert_int_equal(tess_processors(), 1);
    setenv("SLURM_CPUS_ON_NODE", "65536", 1);
    assert_int_equal(tess_processors(), all);
    setenv("SLURM_CPUS_ON_NODE", "none", 1);
    assert_int_equal(tess_processors(), all);
    unsetenv("SLURM_CPUS_ON_NODE");
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], small_program) == 0) return check_small_peak();
    if (argc == 2 && strcmp(argv[1], outputs_program) == 0) make_outputs();
    if (argc == 2 && strcmp(argv[1], little_program) == 0) make_output_in_little();
    if (argc == 2 && strcmp(argv[1], deep_program) == 0) go_deep(true);
    if (argc == 2 && strcmp(argv[1], deep_unprepared_program) == 0) go_deep(false);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_overflow),
        cmocka_unit_test(test_aligned),
        cmocka_unit_test(test_fast),
        cmocka_unit_test(test_grow),
        cmocka_unit_test(test_strdup),
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_cgroups),
        cmocka_unit_test(test_quotas),
        cmocka_unit_test(test_processors),
        cmocka_unit_test(test_peak_of_a_large_parent),
        cmocka_unit_test(test_small_arrays_stay),
        cmocka_unit_test(test_little_stays_of_little_memory),
        cmocka_unit_test(test_stack_without_address_space),
    };
    if (lacks_memkind()) {
        puts("skipped: there is no memkind library");
        return 77;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
