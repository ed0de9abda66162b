/* Predicts the visibilities of one source of 1 Jy on made-up baselines, images them, and
 * prints the value at the source: the sum of weights, since the image is not normalised.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <tessera/tessera.h>

enum { ROWS = 2000, CHANS = 4, SIZE = 256, X = 160, Y = 90 };

static double uvw[ROWS][3], freq[CHANS];
static float vis[ROWS][CHANS][2], image[SIZE][SIZE];

/* A number between -1 and 1. */
static double draw(void)
{
    return 2.0 * rand() / RAND_MAX - 1;
}

int main(void)
{
    const double pixel_rad = 1e-5;
    tess_array_opts opts;
    tess_array_vis values = {.num_rows = ROWS,
                             .num_chan = CHANS,
                             .uvw = uvw[0],
                             .uvw_step_row = sizeof uvw[0],
                             .uvw_step_axis = sizeof uvw[0][0],
                             .freq = freq,
                             .freq_step = sizeof freq[0],
                             .vis = vis,
                             .vis_step_row = sizeof vis[0],
                             .vis_step_chan = sizeof vis[0][0]};
    const tess_array_image pixels = {
        .data = image, .step_x = sizeof image[0][0], .step_y = sizeof image[0]};
    for (int row = 0; row < ROWS; ++row) { /* metres */
        uvw[row][0] = 2000 * draw();
        uvw[row][1] = 2000 * draw();
        uvw[row][2] = 200 * draw();
    }
    for (int chan = 0; chan < CHANS; ++chan)
        freq[chan] = 1.4e9 + 4e6 * chan;
    tess_array_opts_default(&opts);
    opts.nx = opts.ny = SIZE;
    opts.step_l = -pixel_rad; /* East is to the left */
    opts.step_m = pixel_rad;
    image[Y][X] = 1;
    if (tess_dirty_to_vis(&opts, &pixels, &values, NULL) != TESS_OK ||
        tess_vis_to_dirty(&opts, &values, &pixels, NULL) != TESS_OK) {
        fprintf(stderr, "%s\n", tess_last_error());
        return 1;
    }
    printf("%.4f of %d at the source\n", image[Y][X], ROWS * CHANS);
    return 0;
}
