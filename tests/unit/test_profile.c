/* The profile's JSON, read back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>
#include <math.h>

#include "tess_comm.h"
#include "tess_log.h"
#include "tess_profile_report.h"
#include "tess_status.h"

static const char path[] = "test_profile.json";

static int start(void **state)
{
    tess_comm *comm = NULL;
    if (tess_comm_self(&comm) != TESS_OK) return -1;
    tess_error_clear();
    remove(path);
    *state = comm;
    return 0;
}

static int finish(void **state)
{
    tess_comm_free(*state);
    remove(path);
    return 0;
}

static double number(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    assert_true(json_is_number(value));
    return json_number_value(value);
}

static void json_says_what_was_measured(void **state)
{
    tess_profile profile;
    tess_profile_start(&profile);
    profile.visibilities = 123456789012;
    profile.ignored[TESS_IGNORED_FLAGGED] = 7;
    profile.ignored[TESS_IGNORED_BEYOND_UV] = 2;
    profile.stage_seconds[TESS_STAGE_GRID] = 1.5;
    profile.stage_bytes[TESS_STAGE_READ] = 1000;
    profile.stage_mpi_s[TESS_STAGE_GRID] = .25;
    profile.stage_visibilities[TESS_STAGE_GRID] = 99;
    profile.energy.total.gpu_j = 12.5;
    profile.energy.stage_gpu_j[TESS_STAGE_GRID] = 7.5;
    profile.grid.utilisation = 0.75;
    profile.grid.own_s = 1.25;
    profile.join_s = 0.125;
    profile.grid.predicted_largest_s = 3;
    profile.grid.predicted_mean_s = 2;
    profile.grid.merged_visibilities = 98765432109;
    profile.stream = (tess_streaming){
        .bytes = 500, .seconds = 2, .readers_s = 0.5, .link_s = 1.25, .device_s = 1};
    snprintf(profile.plan, sizeof profile.plan, "9 planes");
    assert_int_equal(tess_profile_write(*state, &profile, path, true), TESS_OK);

    json_t *root = json_load_file(path, 0, NULL);
    assert_non_null(root);
    assert_true(json_is_string(json_object_get(root, "version")));
    const json_t *totals = json_object_get(root, "totals");
    assert_true(number(totals, "visibilities") == 123456789012.0);
    assert_true(number(totals, "seconds") >= 0);
    assert_true(number(totals, "communication_fraction") >= 0);
    assert_true(number(totals, "peak_memory_bytes") > 0);
    assert_true(number(totals, "grid_utilisation") == 0.75);
    assert_true(number(totals, "merged_visibilities") == 98765432109.0);
    const json_t *balance = json_object_get(totals, "grid_imbalance");
    assert_true(number(balance, "predicted") == 0.5);
    assert_true(number(balance, "measured") == 0); /* of one rank */
    const json_t *ignored = json_object_get(totals, "ignored");
    assert_int_equal(json_object_size(ignored), TESS_NUM_IGNORED);
    assert_true(number(ignored, "flagged") == 7);
    assert_true(number(ignored, "beyond_uv") == 2);
    assert_true(number(ignored, "autocorrelation") == 0);
    const json_t *ranks = json_object_get(root, "ranks");
    assert_int_equal(json_array_size(ranks), 1);
    const json_t *rank = json_array_get(ranks, 0);
    assert_true(number(rank, "rank") == 0);
    assert_true(number(rank, "grid_own_seconds") == 1.25);
    assert_true(number(rank, "join_seconds") == 0.125);
    assert_true(json_is_string(json_object_get(rank, "host")));
    const json_t *stages = json_object_get(rank, "stages");
    assert_int_equal(json_object_size(stages), TESS_NUM_STAGES);
    const json_t *grid = json_object_get(stages, "grid");
    assert_true(number(grid, "seconds") == 1.5);
    assert_true(number(grid, "visibilities") == 99);
    assert_true(number(grid, "mpi_seconds") == .25);
    const json_t *all = json_object_get(json_object_get(totals, "stages"), "grid");
    assert_true(number(all, "mpi_mean_seconds") == .25);
    const json_t *energy = json_object_get(rank, "energy");
    assert_true(number(energy, "gpu_joules") == 12.5);
    assert_true(json_is_null(json_object_get(energy, "cpu_joules")));
    const json_t *gridding = json_object_get(json_object_get(energy, "stages"), "grid");
    assert_true(number(gridding, "gpu_joules") == 7.5);
    assert_true(json_is_null(json_object_get(gridding, "cpu_joules")));
    const json_t *streaming = json_object_get(rank, "streaming");
    assert_true(number(streaming, "bytes") == 500);
    assert_true(number(json_object_get(streaming, "busy"), "link") == 1.25);
    const json_t *busiest = json_object_get(streaming, "busiest");
    assert_string_equal(json_string_value(json_object_get(busiest, "name")), "link");
    assert_true(number(busiest, "share") == 0.625);
    assert_true(number(json_object_get(stages, "read"), "bytes") == 1000);
    json_decref(root);
}

/* The share of communication is that of the profile's own time. */
static void earlier_communication_does_not_count(void **state)
{
    tess_profile profile;
    tess_spent_add(&(tess_spent){.bytes_sent = 7000, .seconds = 1e6});
    tess_profile_start(&profile);
    tess_spent_add(&(tess_spent){.bytes_sent = 70});
    assert_int_equal(tess_profile_write(*state, &profile, path, true), TESS_OK);
    json_t *root = json_load_file(path, 0, NULL);
    assert_non_null(root);
    const json_t *totals = json_object_get(root, "totals");
    assert_true(number(totals, "communication_fraction") <= 1);
    assert_true(number(totals, "sent_bytes") == 70);
    json_decref(root);
}

/* What is written of a stream that kept these busy. */
static json_t *busiest_of(tess_comm *comm, tess_streaming stream)
{
    tess_profile profile;
    tess_profile_start(&profile);
    profile.stream = stream;
    assert_int_equal(tess_profile_write(comm, &profile, path, true), TESS_OK);
    json_t *root = json_load_file(path, 0, NULL);
    json_t *streaming = json_object_get(json_object_get(root, "totals"), "streaming");
    json_t *busiest = json_incref(json_object_get(streaming, "busiest"));
    json_decref(root);
    return busiest;
}

static void the_busiest_is_named(void **state)
{
    const tess_streaming stream[] = {
        {.bytes = 1, .seconds = 4, .readers_s = 1, .writers_s = 2.5, .link_s = 3},
        {.bytes = 1, .seconds = 4, .readers_s = 1, .link_s = 2, .device_s = 3},
        {.bytes = 0}};
    const char *const name[] = {"readers", "device"};
    const double share[] = {0.875, 0.75};
    for (int k = 0; k < 3; ++k) {
        json_t *busiest = busiest_of(*state, stream[k]);
        if (k == 2)
            assert_true(json_is_null(busiest));
        else {
            const char *found = json_string_value(json_object_get(busiest, "name"));
            assert_string_equal(found, name[k]);
            assert_true(number(busiest, "share") == share[k]);
        }
        json_decref(busiest);
    }
}

static void nan_does_not_spoil_the_file(void **state)
{
    tess_profile profile;
    tess_profile_start(&profile);
    profile.stage_seconds[TESS_STAGE_FFT] = (double)NAN;
    profile.grid.utilisation = (double)INFINITY;
    snprintf(profile.plan, sizeof profile.plan, "\xff");
    assert_int_equal(tess_profile_write(*state, &profile, path, true), TESS_OK);
    json_t *root = json_load_file(path, 0, NULL);
    assert_non_null(root);
    json_decref(root);
}

static void unwritable_path_is_an_error(void **state)
{
    tess_profile profile;
    tess_profile_start(&profile);
    assert_int_equal(
        tess_profile_write(*state, &profile, "no/such/folder/x.json", false),
        TESS_ERR_IO);
    assert_non_null(strstr(tess_error_message(), "no/such/folder/x.json"));
}

static void laps_add_up(void **state)
{
    tess_profile profile;
    tess_profile_start(&profile);
    const double begin = tess_time_now();
    double mark = begin - 2;
    tess_profile_lap(&profile, TESS_STAGE_SORT, &mark);
    tess_profile_lap(&profile, TESS_STAGE_SORT, &mark);
    assert_true(profile.stage_seconds[TESS_STAGE_SORT] >= 2);
    assert_true(profile.stage_seconds[TESS_STAGE_SORT] <=
                tess_time_now() - begin + 2 + 1e-6);
    assert_int_equal(tess_profile_summary(*state, &profile), TESS_OK);
}

/* ---- energy ---- */

static void put_counter(const char *name, double value)
{
    FILE *file = fopen(name, "w");
    assert_non_null(file);
    fprintf(file, "%.0f\n", value);
    assert_int_equal(fclose(file), 0);
}

/* Two packages' counters, one of which wraps around. */
static void meter_reads_packages(void **state)
{
    (void)state;
    tess_readings now;
    assert_int_equal(system("mkdir -p rapl/intel-rapl:0 rapl/intel-rapl:1"), 0);
    put_counter("rapl/intel-rapl:0/max_energy_range_uj", 100e6);
    put_counter("rapl/intel-rapl:1/max_energy_range_uj", 100e6);
    put_counter("rapl/intel-rapl:0/energy_uj", 5e6);
    put_counter("rapl/intel-rapl:1/energy_uj", 98e6);
    tess_meter *meter = tess_meter_create("", "rapl");
    assert_non_null(meter);
    put_counter("rapl/intel-rapl:0/energy_uj", 6e6);
    put_counter("rapl/intel-rapl:1/energy_uj", 3e6);
    tess_meter_read(meter, &now);
    assert_true(fabs(now.cpu_j - 6) < 1e-9);
    tess_meter_read(meter, &now);
    assert_true(fabs(now.cpu_j - 6) < 1e-9 && isnan(now.gpu_j) && isnan(now.gpu_mhz));
    tess_meter_destroy(meter);
    meter = tess_meter_create("no such bus", "no such folder");
    tess_meter_read(meter, &now);
    assert_true(isnan(now.cpu_j) && isnan(now.gpu_j));
    tess_meter_destroy(meter);
    assert_int_equal(system("rm -r rapl"), 0);
}

int main(void)
{
    tess_log_start(0, TESS_LOG_QUIET);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(json_says_what_was_measured, start, finish),
        cmocka_unit_test_setup_teardown(earlier_communication_does_not_count, start,
                                        finish),
        cmocka_unit_test_setup_teardown(the_busiest_is_named, start, finish),
        cmocka_unit_test_setup_teardown(nan_does_not_spoil_the_file, start, finish),
        cmocka_unit_test_setup_teardown(unwritable_path_is_an_error, start, finish),
        cmocka_unit_test_setup_teardown(laps_add_up, start, finish),
        cmocka_unit_test(meter_reads_packages),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
