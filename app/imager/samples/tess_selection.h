/** @file tess_selection.h
 *  Which visibilities take part in images, predictions and plans.
 */
#ifndef TESS_SELECTION_H
#define TESS_SELECTION_H

#include <stdbool.h>
#include <stdint.h>

#include "tess_vis.h"

/** The time steps that are selected, counted from 0. */
typedef enum tess_time_steps {
    TESS_ALL_STEPS,
    TESS_EVEN_STEPS,
    TESS_ODD_STEPS
} tess_time_steps;

/** --shift RA,DEC: where pixel (nx/2, ny/2) lies; the phase centre stays the reference
 *  position, and visibilities are turned to this one. */
typedef struct tess_shift {
    bool given;
    double ra_rad, dec_rad;
} tess_shift;

/** The continuum that is subtracted from rows. */
typedef struct tess_continuum_choice {
    bool subtracts;            /**< --uvcontsub ORDER */
    int order;                 /**< of the polynomial */
    const char *line_channels; /**< --line-channels (tess_channels.h), or NULL */
} tess_continuum_choice;

/** What the program that reads needs of rows, other than all that is selected. */
typedef struct tess_rows_wanted {
    bool positions_only; /**< set by predict: the data column need not be there */
    bool lines;    /**< set by image: rest frequencies, and the frame of frequencies of
                        files */
    bool uvw_only; /**< set by predict into a column: nothing else of rows */
    bool whole;    /**< all channels of the windows, whichever of these are selected */
    bool less_model; /**< set by image: rows are less a model (source_continuum.h) */
} tess_rows_wanted;

/** Which visibilities take part; shared by image, predict and plan. */
typedef struct tess_selection {
    const char
        *data_column; /**< --datacolumn, NULL = CORRECTED_DATA if there, else DATA */
    const char *subtract_column; /**< --subtract-column, or NULL */
    const char *field;           /**< --field, or several in a list; NULL */
    tess_vis_expressions by;     /**< --scan, --antenna, --timerange, --select-... */
    int spw[64];                 /**< --spw 0,2,3 */
    int num_spw;
    int64_t chan_first, chan_end; /**< --channels A:B, [A, B); end 0 = all */
    tess_continuum_choice continuum;
    double uv_min_lambda,
        uv_max_lambda;           /**< --uvrange MIN:MAX wavelengths; max 0 = none */
    bool cut_cells;              /**< --cut-cells: uv_min_lambda and uv_max_lambda leave
                                      out cells of the density in place of samples */
    double uvw_min_m, uvw_max_m; /**< --minuvw-m, --maxuvw-m; max 0 = none */
    int64_t interval_first, interval_end; /**< --intervals A:B timesteps; end 0 = all */
    tess_time_steps time_steps;           /**< --even-timesteps, --odd-timesteps */
    bool joins_pointings; /**< --mosaic: all fields, around the mean of their pointings
                               unless --center is given */
    bool has_center;      /**< --center RA,DEC */
    double center_ra_rad, center_dec_rad;
    tess_shift shift;
    bool mean_weight; /**< --hand-weight mean: that of both parallel hands */
    tess_rows_wanted wanted;
} tess_selection;

#endif
