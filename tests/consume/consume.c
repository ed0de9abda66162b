/* A user's program in C99: visibilities of one source to an image and back, errors with
 * their messages, and an observation from a file. Exit status 0 when all is as
 * expected.
 *
 * usage: consume_c [OBSERVATION] */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tessera/tessera.h>

enum { ROWS = 60, CHANS = 3, NX = 48, NY = 32 };

static const double PI = 3.14159265358979323846, SPEED_OF_LIGHT_M_S = 299792458.0;

static int failures = 0;

static void expect(int condition, const char *what)
{
    if (!condition) ++failures;
    printf("%s %s\n", condition ? "ok     " : "FAILED ", what);
}

static double uvw[ROWS][3], freq[CHANS];
static float vis[ROWS][CHANS][2], predicted[ROWS][CHANS][2], weight[ROWS][CHANS];
static float dirty[NY][NX];

static tess_array_vis describe(void *values)
{
    tess_array_vis out;
    memset(&out, 0, sizeof out);
    out.num_rows = ROWS;
    out.num_chan = CHANS;
    out.uvw = uvw[0];
    out.uvw_step_row = sizeof uvw[0];
    out.uvw_step_axis = sizeof uvw[0][0];
    out.freq = freq;
    out.freq_step = sizeof freq[0];
    out.vis = values;
    out.vis_step_row = sizeof vis[0];
    out.vis_step_chan = sizeof vis[0][0];
    out.weight = weight;
    out.weight_step_row = sizeof weight[0];
    out.weight_step_chan = sizeof weight[0][0];
    return out;
}

static tess_array_image describe_image(void)
{
    tess_array_image out;
    memset(&out, 0, sizeof out);
    out.data = dirty;
    out.step_x = sizeof dirty[0][0];
    out.step_y = sizeof dirty[0];
    return out;
}

/* A source of 2 Jy at pixel (30, 20). */
static void observe(const tess_array_opts *opts)
{
    const double l = (30 - NX / 2) * opts->step_l, m = (20 - NY / 2) * opts->step_m;
    const double nm1 = sqrt(1 - l * l - m * m) - 1;
    unsigned seed = 1;
    int row, chan, k;
    for (chan = 0; chan < CHANS; ++chan)
        freq[chan] = 1.4e9 + 1e7 * chan;
    for (row = 0; row < ROWS; ++row) {
        for (k = 0; k < 3; ++k) {
            seed = seed * 1103515245u + 12345u;
            uvw[row][k] = 800.0 * ((double)(seed >> 8 & 0xFFFF) / 65536.0 - 0.5);
        }
        for (chan = 0; chan < CHANS; ++chan) {
            const double phase =
                2 * PI * freq[chan] / SPEED_OF_LIGHT_M_S *
                (uvw[row][0] * l + uvw[row][1] * m + uvw[row][2] * nm1);
            vis[row][chan][0] = (float)(2 * cos(phase));
            vis[row][chan][1] = (float)(2 * sin(phase));
            weight[row][chan] = 1.0f / (ROWS * CHANS);
        }
    }
}

static void use_arrays(void)
{
    tess_array_opts opts;
    tess_array_vis data = describe(vis), back = describe(predicted);
    const tess_array_image image = describe_image();
    tess_array_report report;
    double difference = 0;
    int row, chan, k;
    tess_array_opts_default(&opts);
    opts.nx = NX;
    opts.ny = NY;
    opts.step_l = -1e-4; /* East to the left */
    opts.step_m = 1e-4;
    opts.accuracy = 1e-5;
    opts.threads = 2;
    observe(&opts);
    expect(tess_vis_to_dirty(&opts, &data, &image, &report) == TESS_OK, "vis to dirty");
    expect(fabs(dirty[20][30] - 2) < 2e-5, "the source has its flux");
    expect(report.num_vis == ROWS * CHANS && report.total_s > 0, "report");
    memset(dirty, 0, sizeof dirty);
    dirty[20][30] = 2;
    back.weight = NULL;
    expect(tess_dirty_to_vis(&opts, &image, &back, NULL) == TESS_OK, "dirty to vis");
    for (row = 0; row < ROWS; ++row)
        for (chan = 0; chan < CHANS; ++chan)
            for (k = 0; k < 2; ++k)
                difference = fmax(difference, fabs((double)predicted[row][chan][k] -
                                                   (double)vis[row][chan][k]));
    expect(difference < 2e-4, "visibilities come back");
    opts.accuracy = 1e-7;
    expect(tess_vis_to_dirty(&opts, &data, &image, NULL) == TESS_ERR_USAGE &&
               strstr(tess_last_error(), "single precision") != NULL,
           "accuracy out of reach is refused");
    opts.accuracy = 1e-5;
    uvw[7][1] = NAN;
    expect(tess_vis_to_dirty(&opts, &data, &image, NULL) == TESS_ERR_INPUT &&
               strstr(tess_last_error(), "row 7") != NULL,
           "a position that is not a number is named");
}

static void use_files(const char *obs)
{
    tess_image *imager = NULL;
    expect(tess_image_create(&imager) == TESS_OK, "imager");
    tess_image_set(imager, "size", "64,40");
    tess_image_set(imager, "scale", "10 apples");
    tess_image_set(imager, "obs", obs);
    expect(tess_image_run(imager) == TESS_ERR_USAGE &&
               strstr(tess_last_error(), "apples") != NULL,
           "a wrong option is quoted");
    tess_image_set(imager, "scale", "10asec");
    expect(tess_image_run(imager) == TESS_OK, "an observation is imaged");
    expect(tess_image_count(imager) == 2, "dirty image and PSF");
    if (tess_image_count(imager) == 2) {
        const tess_image_info *psf = tess_image_get(imager, 1);
        const float *pixel = (const float *)psf->pixel;
        expect(psf->nx == 64 && psf->ny == 40 && !psf->is_double, "its size");
        expect(strcmp(psf->kind, "psf") == 0 && fabs(pixel[20 * 64 + 32] - 1) < 1e-3,
               "the PSF is 1 in the middle");
        expect(strncmp(psf->header, "SIMPLE  =", 9) == 0 && psf->header_bytes % 80 == 0,
               "its header");
    } else
        printf("%s\n", tess_last_error());
    tess_image_destroy(imager);
}

static float sky[NY][NX];

/* A model in memory: predicted, and subtracted from what was observed. */
static void use_model(const char *obs)
{
    tess_command *predict = NULL;
    tess_model model;
    memset(&model, 0, sizeof model);
    memset(sky, 0, sizeof sky);
    model.nx = NX;
    model.ny = NY;
    model.num_stokes = 1;
    model.pixel = sky;
    model.scale = "10asec";
    sky[NY / 2][NX / 2] = 3;
    expect(tess_command_create("predict", &predict) == TESS_OK, "a command");
    tess_command_set(predict, "obs", obs);
    expect(tess_command_run(predict) == TESS_ERR_USAGE, "predict needs a model");
    tess_command_model(predict, &model);
    expect(tess_command_run(predict) == TESS_OK && tess_command_count(predict) == 1,
           "a model in memory is predicted");
    if (tess_command_count(predict) == 1) {
        const tess_predicted *found = tess_command_predicted(predict, 0);
        expect(found->num_rows > 0 && found->num_chan == 2 && found->num_corr == 2 &&
                   strcmp(found->corr[1], "YY") == 0,
               "its rows, channels and correlations");
        expect(fabs((double)found->vis[0] - 3) < 3e-3 && fabsf(found->vis[1]) < 3e-3f,
               "a source in the middle has visibilities of its flux");
    } else
        printf("%s\n", tess_last_error());
    expect(tess_command_predicted(predict, 1) == NULL, "there is no second segment");
    model.num_stokes = 7;
    expect(tess_command_run(predict) == TESS_ERR_USAGE &&
               strstr(tess_last_error(), "7 planes") != NULL,
           "a model of seven planes is refused");
    expect(tess_command_count(predict) == 0, "a failed run leaves nothing");
    tess_command_destroy(predict);
}

static double brightest(const tess_model *subtracted, const char *obs)
{
    tess_image *imager = NULL;
    double most = -1;
    int k;
    tess_image_create(&imager);
    tess_image_set(imager, "size", "48,32");
    tess_image_set(imager, "scale", "10asec");
    tess_image_set(imager, "obs", obs);
    tess_image_subtract(imager, subtracted);
    if (tess_image_run(imager) == TESS_OK) {
        const float *pixel = (const float *)tess_image_get(imager, 0)->pixel;
        for (k = 0; k < NX * NY; ++k)
            most = fmax(most, fabs((double)pixel[k]));
    } else
        printf("%s\n", tess_last_error());
    tess_image_destroy(imager);
    return most;
}

static void use_commands(const char *obs)
{
    tess_command *info = NULL;
    tess_model model;
    expect(tess_command_create("explain", &info) == TESS_ERR_USAGE && !info,
           "an unknown command");
    expect(tess_command_create("info", &info) == TESS_OK, "info");
    expect(*tess_command_text(info) == '\0', "no text before a run");
    tess_command_set(info, "obs", obs);
    expect(tess_command_run(info) == TESS_OK &&
               strstr(tess_command_text(info), "\"telescope\": \"VLA\"") != NULL,
           "an observation is described");
    tess_command_destroy(info);
    tess_command_destroy(NULL);
    use_model(obs);
    memset(&model, 0, sizeof model);
    memset(sky, 0, sizeof sky);
    sky[NY / 2][NX / 2] = 1; /* the source that was simulated */
    model.nx = NX;
    model.ny = NY;
    model.num_stokes = 1;
    model.pixel = sky;
    expect(fabs(brightest(NULL, obs) - 1) < 1e-3, "the source is seen");
    expect(brightest(&model, obs) < 1e-3 && brightest(&model, obs) >= 0,
           "and gone when it is subtracted");
}

int main(int argc, char **argv)
{
    printf("tessera %s\n", tess_version_full());
    use_arrays();
    if (argc > 1) use_files(argv[1]);
    if (argc > 1) use_commands(argv[1]);
    return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
