"""Faults put into a copy of the source, one at a time, each of which a test has to notice.

    python3 tests/mutants.py --list
    python3 tests/mutants.py --check             # every old text is there, once
    python3 tests/mutants.py --all               # an hour on two cores
    python3 tests/mutants.py --random 10 --seed 7
    python3 tests/mutants.py --only geom-l-sign --only beam-angle

Each mutant is a change of one line that a person could make. The tree is copied into the
working folder and built there; then for each mutant the line is changed, what its test
needs is rebuilt, the test has to fail, and the line is restored. The table is out of date
when an old text is not found exactly once: that is a failure too.
"""
import argparse
import collections
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]

Mutant = collections.namedtuple("Mutant", "name file old new test")

TABLE = [Mutant(*entry) for entry in [
    ("lines-are-fitted", "app/imager/samples/continuum.c",
     "const bool counts = is_used && !window->is_line[c];", "const bool counts = is_used;",
     "e2e.lines"),
    ("continuum-without-weights", "app/imager/samples/continuum.c",
     "space->weight[k] = counts ? (double)window->weight[k] : 0;",
     "space->weight[k] = counts ? 1 : 0;", "e2e.lines"),
    ("widened-per-own-beam", "clean/common_beam_widen.c",
     "sqrt(clean_widths_determinant(&c) / clean_widths_determinant(&a));", "1;", "e2e.lines"),
    ("ellipse-on-its-side", "clean/common_beam.c",
     "return (clean_widths){q_yy / det, q_xx / det,",
     "return (clean_widths){q_xx / det, q_yy / det,", "unit.common_beam"),
    ("regions-end-at-ranks", "clean/mask_regions.c",
     "if (x->begin < y->end && y->begin < x->end) join_edges(edges, a, b);",
     "if (x->begin < y->begin && y->begin < x->end) join_edges(edges, a, b);", "mpi.multithresh.np3"),
    ("growth-beyond-its-mask", "clean/mask_regions.c",
     "if (g->mask->pixel[pixel] || !g->within[pixel]) return TESS_OK;",
     "if (g->mask->pixel[pixel]) return TESS_OK;", "mpi.multithresh.np1"),
    ("absorption-that-grows", "clean/multithresh.c", "threshold_of(r, mask->opts.low_noise);",
     "threshold_of(r, mask->opts.noise);", "mpi.multithresh.np1"),
    ("baselines-with-one-antenna", "io/vis/vis_pick.c", "memcpy(other, one, (size_t)num);",
     "memset(other, 1, (size_t)num);", "unit.pick"),
    ("ellipse-to-the-east", "io/regions/crtf_mask.c", "region->half[1] = along;",
     "region->half[0] = along;", "unit.mask_regions"),
    ("every-row-chosen", "io/vis/vis_ms_open.cc", "if (!chosen.has(first + k)) continue;", "",
     "e2e.selections"),
    ("mask-from-high-to-low", "app/imager/run/model/clean_inputs.c",
     "mask->plane[c] = (int)c;", "mask->plane[c] = 0;", "e2e.lines"),
    ("plane-of-another-place", "io/fits/fits_cube.c",
     "(int64_t)plane->stokes * cube->axes.num_freq + plane->freq;",
     "(int64_t)plane->freq * cube->axes.num_stokes + plane->stokes;", "e2e.cubes"),
    ("planes-of-later-channels", "io/fits/fits_cube.c", ">= num_done)",
     ">= cube->axes.num_freq)", "e2e.cubes"),
    ("weights-of-the-other-channel", "app/imager/samples/source_regrid.c",
     "? 1 / ((1 - part_of) / one + part_of / other) : 0;",
     "? 1 / ((1 - part_of) / other + part_of / one) : 0;", "e2e.spectral_axes"),
    ("uvw-of-the-frame", "app/imager/samples/regrid.c",
     "begin_stretch(lists, low, 1 / doppler, end - low)",
     "begin_stretch(lists, low, 1, end - low)", "e2e.spectral_axes"),
    ("sun-that-comes-closer", "io/fits/doppler.c",
     "product *= leg(part_of_light(SUN_IN_LSRK, direction));",
     "product /= leg(part_of_light(SUN_IN_LSRK, direction));", "unit.doppler"),
    ("farthest-plane-of-a-model", "app/imager/engine/predict/model_cube.c",
     "? high : low;", "? low : high;", "e2e.cubes"),
    ("continued-by-number", "app/imager/run/model/continued_models.c",
     "*is = !(freq_hz > 0) || channel_model_is(&of, freq_hz);", "*is = true;", "e2e.cubes"),
    ("continued-without-fit", "app/imager/run/model/channel_model.c",
     "if (plane < 0 && channel->spectrum != TESS_CLEAN_EACH_CHANNEL)",
     "if (plane < -1 && channel->spectrum != TESS_CLEAN_EACH_CHANNEL)", "e2e.cubes"),
    ("set-up-to-a-gap", "app/imager/engine/predict/model_cube.c",
     "            if (access(path, F_OK) != 0)\n                TESS_FAIL(",
     "            if (access(path, F_OK) != 0) return TESS_OK;\n"
     "            if (!*path)\n                TESS_FAIL(", "e2e.cubes"),
    ("cubes-never-saved", "app/imager/run/output/image_cubes.c",
     "if (cubes->set[t].is_unsaved) TESS_TRY(save_set(output, t));",
     "if (cubes->set[t].is_unsaved && t < 0) TESS_TRY(save_set(output, t));", "e2e.cubes"),
    ("session-file-of-other-stokes", "app/imager/run/session/session_files.c",
     "    imager_model_mix(&predictor.model, run->pol, run->num_pol, &predictor.mix);",
     "    predictor.mix = run->job.model;", "mpi.session.np1"),
    ("terms-of-planes-without-data", "app/imager/engine/predict/model_cube.c",
     "i < n && cube->has_data[k]; ++i", "i < n; ++i", "e2e.cubes"),
    ("image-sum-of-one-thread", "io/fits/fits_output.c",
     "    file->sum = (uint64_t)tess_fits_fold(file->sum) + tess_fits_fold(part->sum);",
     "    file->sum = part->sum;", "unit.fits_writing"),
    ("stretch-of-a-block", "app/imager/engine/images/sample_parts.c",
     "from->vis_first[row] + rows * begin;", "from->vis_first[row] + begin;",
     "unit.sample_parts"),
    ("samples-of-other-outputs", "app/imager/run/cycles/thread_teams.c",
     "        own->all = teams->run->all;\n        own->parts = teams->run->parts;\n", "",
     "e2e.teams"),
    ("first-round-of-rows-again", "clean/cuda/cuda_rows.c",
     "copy(buffer + at, from + all->done, bytes)", "copy(buffer + at, from, bytes)",
     "gpu.mpi.clean.np2"),
    ("last-file-of-a-backlog", "app/imager/run/output/image_backlog.c",
     "    for (int k = 0; k < num; ++k)\n        tess_fits_put(",
     "    for (int k = 1; k < num; ++k)\n        tess_fits_put(",
     "e2e.fields_and_cubes"),
    ("frame-mirrored", "app/bench/convolve/frame_fft.c",
     "= conjf(other[y]);", "= other[y];", "unit.frames"),
    ("frame-right-edge", "app/bench/convolve/frame_direct.c",
     "return shape->nx - (shape->kx - 1 - shape->kx / 2);",
     "return shape->nx - (shape->kx - 2 - shape->kx / 2);", "unit.frames"),
    ("frame-short-rows", "app/bench/convolve/frame_loops_isa.c",
     "t < shape->ky + FRAME_ROWS - 1; ++t)", "t < shape->ky + FRAME_ROWS - 2; ++t)",
     "unit.frames"),
    ("frame-any-difference", "app/bench/convolve/frame_check.c",
     "if (!(by <= *largest)) *largest = by;", "if (by < *largest) *largest = by;",
     "unit.frames"),
    ("batch-of-one-place", "app/imager/engine/steps/steps_residual.c",
     "        run->first = to;",
     "        run->first = r == begin ? to : run->first;",
     "mpi.visset.np1"),
    ("batch-of-any-size", "app/imager/engine/predict/residual.c",
     "return wanted < allowed ? wanted : allowed;",
     "return wanted;",
     "mpi.visset.np1"),
    ("session-other-shares", "app/imager/run/session/session_predict.c",
     "    made.layout.forced.fft_ranks = run->job.ranks.fft_ranks;",
     "    made.layout.forced.fft_ranks = opts->layout.forced.fft_ranks;",
     "mpi.session.np4"),
    # ---- lists of sources ----
    ("list-horner", "io/files/source_spectrum.c",
     "added = x * polynomial(spectrum->term, spectrum->num_terms, x);",
     "added = polynomial(spectrum->term, spectrum->num_terms, x);",
     "unit.source_list"),
    ("list-log", "io/files/source_spectrum.c",
     "polynomial(spectrum->term, spectrum->num_terms, log10(ratio))",
     "polynomial(spectrum->term, spectrum->num_terms, log(ratio))",
     "unit.source_list"),
    ("list-taylor", "io/files/source_spectrum.c",
     "e.at[n] += k * a->at[k] * e.at[n - k];",
     "e.at[n] += a->at[k] * e.at[n - k];",
     "e2e.restore"),
    ("log-flux", "app/imager/run/output/image_found.c",
     "found->sum_jy = stats.sum;",
     "found->sum_jy = stats.count;",
     "e2e.restore"),
    ("log-deviation-of-mean", "app/imager/run/output/image_found.c",
     "(is_first_mean && image_joins_channels(output->opts));",
     "(is_first_mean && !image_joins_channels(output->opts));",
     "e2e.joined"),
    ("drawn-widths", "clean/draw_sources.c",
     "widths.xy += more.xy;",
     "widths.xy -= more.xy;",
     "e2e.restore"),
    ("drawn-between-pixels", "clean/draw_sources.c",
     "if (fabs(at - round(at)) <= CENTRED) at = round(at);",
     "at = round(at);",
     "e2e.restore"),
    ("facet-edges", "app/facets/facet_outline.c",
     "if (low[1] > y || high[1] <= y) continue;",
     "if (low[1] >= y || high[1] <= y) continue;",
     "unit.facets"),
    ("facet-weights", "app/facets/facet_weights.c",
     "slope[k] = slope[k] > 0 ? 0.5 + half : 0.5 - half;",
     "slope[k] = slope[k] > 0 ? 0.5 + half : 0;",
     "unit.facets"),
    ("solution-weights", "io/solutions/h5parm.c",
     "else if (!(value[at] > 0))",
     "else if (value[at] < 0)",
     "unit.solutions"),
    ("solution-turns", "io/solutions/solutions_jones.c",
     "(is_angle ? remainder(each - near, TESS_TWO_PI) : each - near);",
     "(is_angle ? remainder(each - near, 9) : each - near);",
     "unit.solutions"),
    ("beams-last", "io/solutions/solutions_gather.c",
     "    place_beams(into);\n",
     "",
     "unit.gains"),
    ("gain-intervals", "app/gains/gain_intervals.c",
     "TESS_TRY(add_end(to, 0.5 * (time[k] + time[k + 1])));",
     "TESS_TRY(add_end(to, time[k + 1]));",
     "unit.gains"),
    ("gain-baselines", "app/gains/gain_changes.c",
     "    return square_of(sum) - own;",
     "    return square_of(sum);",
     "unit.gains"),
    ("beam-feeds", "app/primary_beam/beam_voltages.c",
     "    set(jones, 3, field[1]);",
     "    set(jones, 3, field[0]);",
     "unit.gains"),
    ("aterm-pixels", "io/aterms/aterm_image.c",
     "    if (up > 0) value += (1 - right) * up * low[nx];\n",
     "",
     "unit.gains"),
    ("turned-phase", "grid/kernel/tess_geom.c",
     ".l = geom->l0 - l,",
     ".l = geom->l0,",
     "e2e.shifted"),
    ("turned-model", "app/imager/samples/prepare.c",
     "path_m += recipe->turn[k] * moved_m[k];",
     "path_m += recipe->turn[k] * uvw_m[k];",
     "e2e.shifted"),
    ("subtracted-column", "io/vis/vis_ms.cc",
     "vis[k] -= view.other[static_cast<size_t>(k)];",
     "vis[k] += view.other[static_cast<size_t>(k)];",
     "e2e.shifted"),
    ("list-digits", "io/files/source_list_text.c",
     "enum { RA_DIGITS = 9, DEC_DIGITS = 8 };",
     "enum { RA_DIGITS = 3, DEC_DIGITS = 8 };",
     "unit.source_list"),
    ("list-sign", "io/files/source_list.c",
     "const double sign = *text == '-' ? -1 : 1;",
     "const double sign = 1;",
     "unit.source_list"),
    ("list-default", "io/files/source_list.c",
     "return *reader->cell[column] ? reader->cell[column] : reader->fallback[column];",
     "return reader->cell[column];",
     "unit.source_list"),
    ("list-width", "app/imager/run/cycles/component_list.c",
     "static const double SIGMA_OF_SCALE = 3.0 / 16;",
     "static const double SIGMA_OF_SCALE = 1.0 / 4;",
     "e2e.source_lists"),
    ("list-channel-terms", "app/imager/run/cycles/component_list.c",
     ".num_terms = num_terms - 1,",
     ".num_terms = 0,",
     "e2e.source_lists"),
    ("list-each-output", "app/imager/run/output/image_files.c",
     "const int64_t number = interval * output->outputs->num_channels + channel;",
     "const int64_t number = channel;",
     "e2e.source_lists"),
    ("gaussian-slope", "app/simulate/sim_predict.c",
     "const double v = (uvw_m[r][1] - uvw_m[r][2] * m_per_n) * per_m;",
     "const double v = uvw_m[r][1] * per_m;",
     "e2e.source_lists"),
    ("list-bad-rows", "app/simulate/list_predict.c",
     "if (!has_finite_uvw(block->uvw_m + 3 * r))",
     "if (isnan(vis[0]))",
     "e2e.source_lists"),
    ("list-quoted-commas", "io/files/source_list.c",
     "if (ends || (*c == ',' && depth == 0 && !quote)) {",
     "if (ends || (*c == ',' && depth == 0)) {",
     "unit.source_list"),
    ("list-round", "io/files/source_list.c",
     "TESS_TRY(read_not_negative(reader, MINOR, major, &minor));",
     "TESS_TRY(read_not_negative(reader, MINOR, 0, &minor));",
     "unit.source_list"),
    ("list-zero-terms", "io/files/source_list.c",
     "while (count > 0 && fpclassify(term[count - 1]) == FP_ZERO)",
     "while (count > 1 && fpclassify(term[count - 1]) == FP_ZERO)",
     "unit.source_list"),
    ("list-first-term", "io/files/source_list.c",
     "list->source[list->num_sources++].first_term = list->num_terms;",
     "list->source[list->num_sources++].first_term = 0;",
     "unit.source_list"),
    ("list-midnight", "io/files/source_list_text.c",
     "llround(turns * TESS_SECONDS_PER_DAY * RA_UNITS_PER_S) % day;",
     "llround(turns * TESS_SECONDS_PER_DAY * RA_UNITS_PER_S);",
     "unit.source_list"),
    ("list-just-south", "io/files/source_list_text.c",
     'append(out, ",%s", source->dec_rad < 0 ? "-" : "");',
     'append(out, ",%s", source->dec_rad <= -TESS_RAD_PER_DEG ? "-" : "");',
     "unit.source_list"),
    ("list-rows", "app/imager/run/cycles/component_list.c",
     "const double m = middle[1] + (double)(index / nx - ny / 2) * scale_rad;",
     "const double m = middle[1] + (double)(index / nx - nx / 2) * scale_rad;",
     "e2e.source_lists"),
    ("list-mean-frequency", "app/imager/run/cycles/component_list.c",
     "        sum += weight * channel->freq_hz;",
     "        sum = (weights + weight) * channel->freq_hz;",
     "e2e.source_lists"),
    ("list-stokes", "app/imager/run/cycles/component_list.c",
     "while (maker.pol < run->num_pol - 1 && run->pol[maker.pol].code != STOKES_I)",
     "while (maker.pol < 0 && run->pol[maker.pol].code != STOKES_I)",
     "e2e.source_lists"),
    ("list-joined-stokes", "app/imager/run/cycles/component_list.c",
     "maker->pol - maker->group->first_pol, &own)",
     "0, &own)",
     "e2e.source_lists"),
    ("list-log-terms", "app/imager/run/cycles/component_list.c",
     ".is_log = num_terms > 1 && join->spectrum == TESS_CLEAN_LOG_POLYNOMIAL,",
     ".is_log = num_terms > 1 && join->spectrum != TESS_CLEAN_EACH_CHANNEL,",
     "e2e.source_lists"),
    ("list-without-data", "app/imager/run/model/predict_models.c",
     "    selection.positions_only = true;\n",
     "",
     "e2e.source_lists"),
    ("clean-bytes-of-squares", "clean/clean_join.c",
     "*join = (clean_join){.search = search_of(images),",
     "*join = (clean_join){.search = CLEAN_MEAN,",
     "mpi.clean.np1"),
    ("clean-pairs-of-terms", "clean/clean_layers.h",
     ": b * (b + 1) / 2 + a;",
     ": b * (b + 1) / 2;",
     "e2e.clean_joined"),
    ("clean-terms-at-the-end", "clean/cpu/cpu_layers.c",
     "cpu_column_add(work, line, 1, cpu_column(work, layers->sum[layer], column));",
     "",
     "e2e.clean_joined"),
    # ---- conventions: directions, signs, Stokes parameters ----
    ("geom-l-sign", "grid/kernel/tess_geom.c",
     "return geom->l0 - (double)(i - geom->nx / 2) * geom->scale_rad;",
     "return geom->l0 + (double)(i - geom->nx / 2) * geom->scale_rad;",
     "unit.geom"),
    ("geom-odd-middle", "grid/kernel/tess_geom.c",
     "(double)(j - geom->ny / 2) * tess_geom_scale_m(geom)",
     "(double)(j - (geom->ny + 1) / 2) * tess_geom_scale_m(geom)",
     "unit.geom"),
    ("geom-horizon", "grid/kernel/tess_geom.c",
     "return r2 < 1.0 ? -r2 / (sqrt(1.0 - r2) + 1.0) : -1.0;",
     "return r2 < 1.0 ? -r2 / (sqrt(1.0 - r2) + 1.0) : 0.0;",
     "unit.geom"),
    ("geom-odd-transform", "grid/kernel/tess_geom.c",
     "for (int64_t size = n + n % 2;; size += 2)",
     "for (int64_t size = n;; size += 1)",
     "unit.geom"),
    ("stokes-v-sign", "app/imager/samples/polar.c",
     "{STOKES_V, XY, YX, CMPLX(0, -0.5), CMPLX(0, 0.5)},",
     "{STOKES_V, XY, YX, CMPLX(0, 0.5), CMPLX(0, -0.5)},",
     "unit.polar"),
    ("stokes-sum-for-mean", "app/imager/samples/polar.c",
     "{STOKES_I, RR, LL, 0.5, 0.5},",
     "{STOKES_I, RR, LL, 1.0, 1.0},",
     "unit.polar"),
    ("stokes-yx", "app/imager/samples/polar.c",
     "{YX, 0, 0, 1, CMPLX(0, -1)},",
     "{YX, 0, 0, 1, CMPLX(0, 1)},",
     "unit.polar"),
    ("rotation-phase-sign", "app/imager/samples/prepare.c",
     "store(samples, first + c, p, &value, phase_re, -phase_im);",
     "store(samples, first + c, p, &value, phase_re, phase_im);",
     "unit.prepare"),
    ("screen-sign", "fft/screen_isa.c",
     "image[half + k] += line[2 * k] * c[k] + line[2 * k + 1] * s[k];",
     "image[half + k] += line[2 * k] * c[k] - line[2 * k + 1] * s[k];",
     "property.properties"),
    ("screen-centre", "fft/screen_isa.c",
     "const double turns = w * (nm1 - center);",
     "const double turns = w * (nm1 + center);",
     "oracle.accuracy"),
    ("w-dropped-early", "grid/grid_plan.c",
     "return w_phase(tess_geom_nm1_min(geom), w_max_lambda) < accuracy / 3;",
     "return w_phase(tess_geom_nm1_min(geom), w_max_lambda) < accuracy * 3;",
     "unit.api"),
    ("target-with-another-correction", "grid/grid_plan.c",
     ".correct_v = plan->correction.v + below};",
     ".correct_v = plan->correction.v + left + 0 * below};",
     "mpi.targets.np1"),
    ("models-of-one-target", "app/imager/engine/predict/residual.c",
     "subtract_target(job, from, k > 0 ? to : NULL, vis_scale,",
     "subtract_target(job, from, NULL, vis_scale,",
     "mpi.targets.np1"),
    ("targets-of-one-window", "app/imager/engine/visset/visset_view.c",
     "if (target > 0) tess_steps_restart(job->steps);", "", "mpi.targets.np1"),

    # ---- which samples count: flags, weights, ranges ----
    ("weight-of-the-better", "app/imager/samples/prepare.c",
     "out.weight = fmin(out.weight, w);",
     "out.weight = mix->num > 1 ? fmax(k ? out.weight : 0, w) : w;",
     "unit.prepare"),
    ("weight-of-the-better-plain", "app/imager/samples/prepare.c",
     "float least = u < v ? u : v;",
     "float least = u > v ? u : v;",
     "unit.prepare"),
    ("weight-zero-is-good", "app/imager/samples/prepare.c",
     "bad |= !(weight[k] > 0) | (weight[k] > FLT_MAX);",
     "bad |= !(weight[k] >= 0) | (weight[k] > FLT_MAX);",
     "unit.prepare"),
    ("autocorrelations-imaged", "app/imager/samples/prepare.c",
     "return plain->possible && block->antenna1[row] != block->antenna2[row] &&",
     "return plain->possible &&",
     "unit.prepare"),
    ("uv-limit-along-u", "app/imager/samples/uv_range.h",
     "(u >= range->limit || v >= range->limit)",
     "(u >= range->limit && v >= range->limit)",
     "unit.prepare"),
    ("sample-ignored-by-one-weight", "grid/bricks/brick_sort.c",
     "if (tess_samples_weight(samples, at) != 0) return false;",
     "return tess_samples_weight(samples, at) == 0;",
     "unit.sort"),

    # ---- imaging weights ----
    ("briggs-robust-sign", "grid/density/density.c",
     "pow(5 * pow(10, -density->opts.robust), 2)",
     "pow(5 * pow(10, density->opts.robust), 2)",
     "unit.weight"),
    ("briggs-mean", "grid/density/density.c",
     "return sum > 0 ? sum_square / sum : 1;",
     "return sum > 0 ? sum / (double)parts : 1;",
     "unit.weight"),
    ("weight-grid-even", "grid/density/density.c",
     "padded = ((int64_t)ceil((double)pixels * padding) + 3) / 4 * 4;",
     "padded = ((int64_t)ceil((double)pixels * padding) + 1) / 2 * 2;",
     "unit.weight"),
    ("super-weight-even", "grid/density/density.c",
     "return size > 2 ? (size + 1) / 2 * 2 : 2;",
     "return size > 2 ? size : 2;",
     "unit.weight"),
    ("small-numbers", "app/imager/run/setup/image_output.c",
     "data->vis_scale = tess_scale_for(extent->largest_vis_jy, is_double);",
     "data->vis_scale = 1 + 0 * extent->largest_vis_jy;",
     "e2e.extreme_numbers"),
    ("small-arrays", "app/api/api_arrays.c",
     "if (run->forward) TESS_TRY(scale_samples(run));",
     "run->vis_scale = run->weight_scale = run->forward ? 1 : 0; (void)scale_samples;",
     "unit.api"),
    ("rows-of-a-rank", "grid/bricks/tess_samples.c",
     "if (num_rows > INT32_MAX)",
     "if (num_rows > UINT32_MAX)",
     "unit.samples"),
    ("rank-filter-pages", "grid/density/density.c",
     "if (filter) status = touch_neighbours(density);",
     "(void)touch_neighbours;",
     "mpi.core_ranks.np2"),

    # ---- kernels, corrections, sorting, tiles ----
    ("kernel-start", "grid/bricks/locate.h",
     "const double start = ceil(g - 0.5 * support), period = (double)n;",
     "const double start = ceil(g - 0.5 * (support - 1)), period = (double)n;",
     "unit.kernel"),
    ("kernel-fraction", "grid/kernel/tess_kernel.c",
     "const double y = 2.0 * fraction - 1.0;",
     "const double y = 1.0 - 2.0 * fraction;",
     "unit.kernel"),
    ("correction-fit", "grid/correct_isa.c",
     "y[k] = 2 * x * x - 1;",
     "y[k] = x * x - 1;",
     "oracle.geometry"),
    ("correction-horizon", "grid/correct_isa.c",
     "out[first + k] = r2[k] < 1.0 ? h[k] : (double)NAN;",
     "out[first + k] = r2[k] < 1.0 ? h[k] : 0;",
     "oracle.geometry"),
    ("sort-top-bit", "grid/bricks/brick_sort.c",
     "while ((largest - smallest) >> range.bits > 0)",
     "while ((largest - smallest) >> range.bits > 1)",
     "unit.sort"),
    ("sort-channel-base", "grid/bricks/brick_sort.c",
     ".chan = samples->chan_base[row] + begin,",
     ".chan = begin,",
     "unit.sort"),
    ("cut-channel", "grid/bricks/brick_cut.c",
     "rest.chan += run->count;",
     "rest.chan += 1;",
     "unit.sort"),
    ("keys-ceiling", "grid/bricks/keys_isa.c",
     "return near < x ? near + 1.0 : near;",
     "return near;",
     "unit.sort"),

    # ---- ranks: partition, exchange, failures ----
    ("cut-chunk", "mpi/tess_partition.c",
     "(cuts[middle].key == key && cuts[middle].chunk <= chunk);",
     "(cuts[middle].key == key && cuts[middle].chunk < chunk);",
     "mpi.partition.np3"),
    ("split-first", "mpi/tess_partition.c",
     "partition->split_first[k] = num_vis[at];",
     "partition->split_first[k] = num_vis[at] / 2;",
     "mpi.partition.np3"),
    ("piece-of-65536", "app/imager/engine/exchange/exchange_message.h",
     "enum { MOST_OF_PIECE = UINT16_MAX };",
     "enum { MOST_OF_PIECE = 1 << 20 };",
     "mpi.exchange.np2"),
    ("piece-channel", "app/imager/engine/exchange/exchange_parcels.c",
     ".chan = run->chan + done,",
     ".chan = run->chan,",
     "mpi.exchange.np2"),
    ("lost-rank-unseen", "mpi/watch.c", "if (age_s(k) > limit) return true;",
     "if (age_s(k) > 1e9) return true;", "e2e.nodes"),
    ("suspended-time-counts", "mpi/watch_beats.c",
     "fmin(clock_s - beats->clock_s, LONGEST_TICK_S);",
     "fmin(clock_s - beats->clock_s, 1e9 * LONGEST_TICK_S);", "e2e.nodes"),
    ("heard-once-for-all", "mpi/watch_beats.c", "heard_s <= known->heard_s) return;",
     "known->heard_s >= 0) return;", "mpi.watch.np3"),
    ("told-to-stop-in-vain", "base/files/tess_stop.c", "    if (at_sigterm) at_sigterm();", "    ;",
     "e2e.nodes"),
    ("peer-unheard", "mpi/comm_failure.c",
     "if (mine == TESS_OK && failed) status = TESS_ERR_PEER;",
     "if (mine == TESS_OK && failed > 1) status = TESS_ERR_PEER;",
     "mpi.comm.np2"),
    ("blame-the-highest", "mpi/comm_collect.c",
     "if (tess_comm_allreduce_i64(comm, &first, 1, TESS_MIN) != TESS_OK)",
     "if (tess_comm_allreduce_i64(comm, &first, 1, TESS_MAX) != TESS_OK)",
     "mpi.comm.np3"),

    # ---- primary beams ----
    ("beam-squint", "app/primary_beam/primary_beam.c",
     "(place[k] - squint) / width", "(place[k] + squint) / width", "unit.primary_beam"),
    ("beam-turns-back", "app/primary_beam/beam_mean.c",
     "m * by->sine - l * by->cosine", "m * by->sine + l * by->cosine", "unit.primary_beam"),
    ("beam-no-end", "app/primary_beam/beam_polynomial.c",
     "if (x > of->end_x) return 0;", "", "unit.primary_beam"),
    ("beam-east-of-west", "app/primary_beam/beam_mean.c",
     "atan2(east, north)", "atan2(-east, north)", "unit.primary_beam"),
    ("beam-weights", "app/primary_beam/beam_mean.c",
     "in->weight[k] / sum *", "in->weight[0] / sum *", "unit.primary_beam"),

    # ---- reading ----
    ("uvfits-blank", "io/vis/vis_uvfits.c",
     "if (layout->has_blank && raw == (double)layout->blank) return NAN;",
     "",
     "unit.uvfits"),
    ("uvfits-iat", "io/vis/vis_uvfits_tables.c",
     "if (subarray == 0) state->utc_offset_s = time_offset_s(fits);",
     "if (subarray == 0) (void)time_offset_s(fits);",
     "unit.uvfits"),
    ("uvfits-subarray", "io/vis/vis_uvfits_group.c",
     "whole((value - (double)number) * 100.0 + 0.5);",
     "whole((value - (double)number) * 100.0);",
     "unit.uvfits"),
    ("uvfits-second-date", "io/vis/vis_uvfits_group.c",
     "uvfits_value(group, param->index[k], layout->bitpix) * param->scale[k];",
     "uvfits_value(group, param->index[k], layout->bitpix) * param->scale[0];",
     "unit.uvfits"),
    ("uvfits-channel", "io/vis/vis_uvfits_scan.c",
     "((double)(chan + 1) - layout->freq.crpix) * step_hz +",
     "((double)chan - layout->freq.crpix) * step_hz +",
     "unit.uvfits"),
    ("uvfits-weight-zero", "io/vis/decode_isa.c",
     "weights[k] = value <= 0 ? TESS_WEIGHT_FLAGGED : value;",
     "weights[k] = value < 0 ? TESS_WEIGHT_FLAGGED : value;",
     "unit.uvfits"),
    ("ms-flag-row", "io/vis/vis_ms.cc",
     "if (flag_row[row])",
     "if (row > 0 && flag_row[row])",
     "unit.ms"),
    ("fits-blank", "io/fits/fits_array.c",
     "array->has_blank && value == array->blank ? (double)NAN : (double)value;",
     "(double)value;",
     "unit.fits_models"),
    ("fits-zero-scaled", "io/fits/fits_array.c",
     "out[k] = array->bzero + array->bscale * out[k];",
     "out[k] = array->bscale * (array->bzero + out[k]);",
     "unit.fits_models"),

    # ---- writing ----
    ("fits-odd-crpix", "io/fits/fits_header.c",
     "{\"RA---SIN\", \"deg\", (double)(meta->nx / 2 + 1)",
     "{\"RA---SIN\", \"deg\", (double)((meta->nx + 1) / 2 + 1)",
     "unit.fits"),
    ("fits-negative-ra", "io/fits/fits_axis.c",
     "if (degrees < 0) degrees += turn;",
     "",
     "unit.fits"),
    ("fits-date-march", "io/fits/fits_header.c",
     "(int)(yoe + era * 400 + (month <= 2))",
     "(int)(yoe + era * 400 + (month < 2))",
     "unit.fits"),
    ("fits-sum-carry", "io/fits/fits_header.c",
     "sum = (sum & UINT32_MAX) + (sum >> 32);",
     "sum = sum & UINT32_MAX;",
     "unit.fits"),
    ("beam-angle", "grid/tess_beam.c",
     "double angle = atan2(-x, y);",
     "double angle = atan2(x, y);",
     "unit.beam"),
    ("beam-cross-term", "grid/tess_beam.c",
     "const double b = -param[BETA] / (param[SIGMA_X] * param[SIGMA_Y]);",
     "const double b = -2 * param[BETA] / (param[SIGMA_X] * param[SIGMA_Y]);",
     "unit.beam"),

    # ---- checkpoints, spools, sums, options ----
    ("checkpoint-sum", "io/checkpoint/checkpoint.c",
     "if (sum != file->checksum)",
     "if (sum == 0)",
     "unit.checkpoint"),
    ("checkpoint-image", "io/checkpoint/checkpoint.c",
     "rows->offset + k * each + (j - rows->row_first) * bytes));",
     "rows->offset + (j - rows->row_first) * bytes));",
     "unit.checkpoint"),
    ("spool-place", "app/imager/samples/spool.c",
     "int64_t at = spool->bytes;",
     "int64_t at = 0;",
     "unit.spool"),
    ("origins-not-kept", "grid/bricks/tess_samples.c",
     "{samples->origin, rows * origin_bytes(samples)},",
     "{samples->origin, 0},",
     "unit.spool"),
    ("origin-of-a-lost-row", "app/imager/samples/prepare.c",
     "            if (samples->origins) samples->origin[out] = samples->origin[row];\n",
     "",
     "mpi.origins.np1"),
    ("origin-of-the-first-file", "app/imager/samples/source_origins.c",
     ".antenna = origins->antenna[obs],",
     ".antenna = origins->antenna[0],",
     "mpi.origins.np1"),
    ("origin-of-the-sent-row", "app/imager/engine/exchange/exchange_message.h",
     "if (samples->origins) samples->origin[at->parcels] = header->origin;",
     "if (samples->origins) samples->origin[at->parcels] = header->chan;",
     "mpi.origins.np1"),
    ("origin-of-a-dealt-row", "app/imager/engine/teams/imager_teams_deal.c",
     "send_array(teams, from->origin, own->row,",
     "send_array(teams, from->chan_base, own->row,",
     "mpi.origins.np1"),
    ("view-of-the-first-target", "app/imager/engine/plan/imager_view.c",
     "work->factors(work->job->view.context, work->job->targets.aim,",
     "work->factors(work->job->view.context, 0,",
     "mpi.targets.np1"),
    ("view-without-gains-of-models", "app/imager/engine/predict/residual.c",
     "    if (job->view.from_model)\n",
     "    if (job->view.from_model && !job->view.context)\n",
     "mpi.targets.np1"),
    ("view-of-a-pass", "app/imager/engine/visset/visset_passes.c",
     "    TESS_TRY(visset_view_take(set->job, &view));\n",
     "",
     "mpi.targets.np1"),
    ("exact-high-word", "base/numbers/tess_exact.h",
     "total += ldexp((double)sum->word[2 * exponent + 1], scale + 26);",
     "total += ldexp((double)sum->word[2 * exponent + 1], scale + 25);",
     "unit.exact"),
    ("rows-of-other-columns", "base/images/tess_rows.c",
     "return (row - rows->row_first) * rows->num_cols + column - rows->col_first;",
     "return (row - rows->row_first) * rows->num_cols + column;",
     "unit.rows"),
    ("rows-not-put-back", "base/images/tess_rows.c",
     "TESS_TRY(rows->place->upload(rows->value, view->value, bytes));",
     "TESS_TRY(rows->place->upload(rows->value, view->value, 0));",
     "gpu.rows"),
    ("unit-mas", "base/text/tess_parse.c",
     "{\"mas\", 1e-3 * TESS_RAD_PER_ASEC},",
     "{\"mas\", 1e-6 * TESS_RAD_PER_ASEC},",
     "unit.options"),
    ("unit-mebibyte", "base/text/tess_parse.c",
     "{\"MiB\", 1048576.0},",
     "{\"MiB\", 1e6},",
     "unit.options"),
    ("sim-gaussian", "app/simulate/sim_predict.c",
     "exp(-(source->uu * u * u + source->uv * u * v + source->vv * v * v));",
     "exp(-(source->uu * u * u - source->uv * u * v + source->vv * v * v));",
     "unit.simulate"),
    # ---- cleaning ----
    ("clean-residual-kept", "app/imager/run/cycles/majors.c",
     "        if (all->changed) TESS_TRY(majors_make_residuals(all));",
     "        if (all->changed && all->num == 1) TESS_TRY(majors_make_residuals(all));",
     "e2e.cleaned"),
    ("clean-mask-ignored", "app/imager/run/cycles/majors.c",
     "TESS_TRY(tess_clean_set_mask(group->clean, &mask));",
     "TESS_TRY(tess_clean_set_mask(group->clean, NULL));",
     "e2e.cleaned"),
    ("clean-scale-beam", "app/imager/run/cycles/majors_minor.c",
     "minor.scale_beam_px = beam->beam_expected;",
     "minor.scale_beam_px = 0;",
     "e2e.cleaned"),
    ("clean-beam-angle", "clean/clean_gaussian.c",
     ".xy = s * c * (minor - major)",
     ".xy = s * c * (major - minor)",
     "e2e.cleaned"),
    ("clean-sigma", "clean/row_deviation.h",
     "ROW_SIGMA_PER_DEVIATION 1.482602218505602",
     "ROW_SIGMA_PER_DEVIATION 1",
     "e2e.cleaned"),
    ("clean-mgain", "clean/clean_minor.c",
     "state->peak_start * (1 - share)",
     "state->peak_start * share",
     "e2e.clean_numpy"),
    ("clean-final-end", "clean/clean_minor.c",
     "if (at_final || (best_peak(run)",
     "if ((at_final && !is_above) || (best_peak(run)",
     "e2e.clean_numpy"),
    ("clean-bias", "clean/clean_scales.c",
     "-log2(scale[s] / (2 * clean_beam_px(opts)))",
     "-log2(scale[s] / (4 * clean_beam_px(opts)))",
     "e2e.clean_numpy"),
    ("clean-window-share", "clean/cpu/cpu_local_rms.c",
     "share > 0 ? sigma / sqrt(share) : 0);",
     "share > 0 ? sigma : 0);",
     "e2e.clean_numpy"),
    ("clean-local-strength", "clean/cpu/cpu_local_rms.c",
     "return strength == 1 ? share : pow(share, strength);",
     "return share;",
     "e2e.clean_numpy"),
    ("clean-mask-rounds", "clean/clean_minor.c",
     "clean->minor.iterations > 0)\n            return true;",
     "clean->minor.iterations < 0)\n            return true;",
     "e2e.cleaned"),
    ("join-roots", "clean/clean_join.c",
     "return count_linked(images) > 1 ? CLEAN_ROOTS : CLEAN_MEAN;",
     "return CLEAN_MEAN;",
     "e2e.clean_joined"),
    ("join-squares", "clean/cpu/cpu_join.c",
     "        roots(1, lines->count, joined);",
     "        roots(2, lines->count, joined);",
     "e2e.clean_joined"),
    ("join-linked", "clean/clean_join.c",
     "return !images->join.linked || images->join.linked[pol];",
     "return !images->join.linked || images->join.linked[0] || pol >= 0;",
     "e2e.clean_joined"),
    ("join-mean-psf", "clean/clean_layers.c",
     "setup->join.share[k] / setup->join.all * own[k * setup->num_scales + s];",
     "setup->join.share[k] * own[k * setup->num_scales + s];",
     "e2e.clean_joined"),
    ("join-fit-weights", "clean/clean_spectrum.c",
     "normal[i][j] += s->weight[c * s->num_pol + pol] * power[i] * power[j];",
     "normal[i][j] += (s->weight[c * s->num_pol + pol] > 0) * power[i] * power[j];",
     "e2e.clean_joined"),
    ("join-logs-not-refined", "clean/clean_log_spectrum.c",
     "    iterate(fit);\n    const double seen",
     "    if (s->num_terms > MOST) iterate(fit);\n    const double seen",
     "e2e.clean_joined"),
    ("join-logs-no-prior", "clean/clean_log_spectrum.c",
     "static const double PRIOR = 2;",
     "static const double PRIOR = 200;",
     "e2e.clean_joined"),
    ("join-logs-never-constant", "clean/clean_log_spectrum.c",
     "    return 2 * (fit->n - 1) * fit->noise;",
     "    return -1e9 * (fit->n - 1) * fit->noise;",
     "e2e.clean_joined"),
    ("join-logs-noise", "clean/cpu/cpu_noise.c",
     "        noise[p] = quartile(sample) / (degrees * quartile_of_chi2(degrees));",
     "        noise[p] = 0 * quartile(sample) / (degrees * quartile_of_chi2(degrees));",
     "e2e.clean_joined"),
    ("join-average-weights", "clean/clean_join.c",
     "weight_of(images, c * pols + p) / sum;",
     "sum / sum / 2;",
     "e2e.clean_joined"),
    ("join-blank-image", "clean/cpu/cpu_backend.c",
     "if (!isfinite(value)) value = 0, is_nan = true;",
     "if (!isfinite(value)) value = 0;",
     "e2e.clean_numpy"),
    ("join-median", "clean/cpu/cpu_backend.c",
     "    noise->median = 0;",
     "    noise->median *= 2;",
     "e2e.clean_joined"),
    ("joined-mean-frequency", "app/imager/run/cycles/group_images.c",
     "    channel->freq_hz = visset_freq_hz(&channel->set);",
     "    channel->freq_hz = 0;",
     "e2e.joined"),
    ("joined-density", "app/imager/run/setup/image_output.c",
     "if (!run->opts->weights.shared_density || channels == 1 ||",
     "if (!run->opts->weights.shared_density || channels >= 1 ||",
     "e2e.joined"),
    ("joined-mean-image", "app/imager/run/cycles/channel_mean.c",
     "if (found[0].majors > 0) TESS_TRY(restore(run, interval, found, mean));",
     "if (found[0].majors < 0) TESS_TRY(restore(run, interval, found, mean));",
     "e2e.joined"),
    ("joined-residuals", "app/imager/run/cycles/majors_residual.c",
     "first < channels->num_with_data;",
     "first < channels->at_once;",
     "e2e.joined"),
    ("teams-channel", "app/imager/engine/teams/imager_teams_rows.c",
     "memcpy(row_at(rows[k / teams->members], sent.first), from,",
     "memcpy(row_at(rows[0], sent.first), from,",
     "e2e.joined_teams"),
    ("teams-model", "app/imager/engine/teams/imager_teams_rows.c",
     "TESS_TRY(tess_rows_view(rows[g], &view));",
     "TESS_TRY(tess_rows_view(rows[0], &view));",
     "e2e.joined_teams"),
    ("teams-frequency", "app/imager/run/cycles/group_images.c",
     "const channel_facts *of_team = &facts[g * run->teams.members];",
     "const channel_facts *of_team = &facts[g];",
     "e2e.joined_teams"),
    ("teams-samples", "app/imager/engine/teams/imager_teams_deal.c",
     "const int member = tess_comm_rank(teams->all) / teams->num;",
     "const int member = tess_comm_rank(teams->all) % teams->members;",
     "e2e.joined_teams"),
    ("joined-errors", "clean/spectrum_maps.c",
     "slope[i] * slope[j] * job->sigma[c] * job->sigma[c];",
     "slope[i] * slope[j] * job->sigma[c] * job->sigma[c] / 4;",
     "e2e.joined"),
    ("joined-errors-without-misfit", "clean/spectrum_maps.c",
     "    const double times = fit->chi2 > 1 ? fit->chi2 : 1;",
     "    const double times = 1;",
     "e2e.joined"),
    ("joined-terms-not-tried", "app/imager/run/cycles/spectral_maps.c",
     "        ++enough;",
     "        enough += 2;",
     "e2e.joined"),
    ("model-pixels-blank", "app/imager/engine/predict/model_cube.c",
     "        if (!isnan(out[k]) || !is_beyond(model, i, j))",
     "        if (!isnan(out[k]))",
     "e2e.predictions"),
    ("joined-significant", "clean/tess_spectrum.h",
     "#define TESS_SPECTRUM_SIGNIFICANT 5.0",
     "#define TESS_SPECTRUM_SIGNIFICANT 3.0",
     "e2e.joined"),
    ("joined-fit-alone", "app/cli/options/clean_args.c",
     "if (!join->channels && (fits || join->num_cleaned > 0))",
     "if (!join->channels && join->num_cleaned > 0)",
     "e2e.joined"),
    ("joined-components-lost", "clean/clean_state.c",
     "head->kept[s] = clean->kept[s].count;",
     "head->kept[s] = 0;",
     "mpi.clean.np1"),
    ("joined-components-terms", "clean/clean_spectrum.c",
     "    for (int k = 0; k < s->num_terms; ++k, scale /= s->unit)\n        term[k] *= scale;",
     "    for (int k = 0; k < s->num_terms; ++k, scale *= s->unit)\n        term[k] *= scale;",
     "mpi.clean.np1"),
    ("joined-state", "app/imager/run/cycles/majors_state.c",
     "    if (status == TESS_OK) status = take_models(all);",
     "    if (status != TESS_OK) status = take_models(all);",
     "e2e.clean_checkpoints"),
    ("clean-border", "clean/clean_scales.c",
     "return (int64_t)ceil(scale_px / 2);",
     "return (int64_t)ceil(scale_px / 4);",
     "e2e.clean_numpy"),
    # ---- WSClean's command line ----
    ("taper-corner", "grid/density/density.c",
     "const double u = (double)(i0 + c % DENSITY_PAGE) / layout->scale_x;",
     "const double u = (0.5 + (double)(i0 + c % DENSITY_PAGE)) / layout->scale_x;",
     "unit.weight"),
    ("taper-zero", "grid/density/density.h",
     "return value > 0 ? value : value < 0 ? 0 : layout->empty_factor;",
     "return value > 0 ? value : layout->empty_factor;",
     "unit.weight"),
    ("taper-fwhm", "grid/density/taper.c",
     "return exp(-x * x / (4 * log(2.0)));",
     "return exp(-x * x / (2 * log(2.0)));",
     "unit.weight"),
    ("wsclean-rank-filter", "app/cli/wsclean/wsclean_words.c",
     '"weighting-rank-filter", "3")',
     '"weighting-rank-filter", "0")',
     "e2e.wsclean_words"),
    ("wsclean-mgain", "app/cli/wsclean/wsclean_words.c",
     'wsclean_line_value(line, "mgain", "1")',
     'wsclean_line_value(line, "mgain", "0.8")',
     "e2e.wsclean_words"),
    ("wsclean-update-model", "app/cli/wsclean/wsclean_words.c",
     "return !(off && (!on || off > on))",
     "return !(off && (!on || off < on))",
     "e2e.wsclean_words"),
    ("wsclean-joined-density", "app/cli/wsclean/wsclean_words.c",
     "(joins && !cleans(line))",
     "(joins && cleans(line))",
     "e2e.wsclean_words"),
    ("wsclean-briggs-word", "app/cli/wsclean/wsclean_line.c",
     "return wsclean_num_arguments(option) + briggs;",
     "return wsclean_num_arguments(option);",
     "e2e.wsclean_words"),
    ("wsclean-refused", "app/cli/wsclean/wsclean_line.c",
     "if (option->way == WSCLEAN_REFUSED)",
     "if (option->way == WSCLEAN_IGNORED)",
     "e2e.wsclean_words"),
    ("wsclean-none", "app/cli/wsclean/wsclean_words.c",
     "return end != text && !(value > 0) && !(value < 0);",
     "return end != text && value < 0;",
     "e2e.wsclean_words"),
    ("model-of-one-field", "app/imager/run/model/update_model.c",
     "    if (tess_source_num_readers(run->source) > run->opts->num_obs) {",
     "    if (tess_source_num_readers(run->source) < run->opts->num_obs) {",
     "e2e.wsclean_lines"),
    ("fields-of-list", "app/imager/samples/source.c",
     "for (; item && k > 0; --k) {",
     "for (; item && k > 1; --k) {",
     "e2e.fields_and_cubes"),
    ("restored-plane", "app/imager/run/model/restore.c",
     "to->meta = to->plane[k];",
     "to->meta = to->plane[0];",
     "e2e.restore"),
    ("uneven-channels", "app/imager/engine/images/output_table.c",
     "((k + 1) * part->num_out - 1) / part->num_freq",
     "k * part->num_out / part->num_freq",
     "e2e.wsclean_lines"),
    ("equal-gaps", "app/imager/engine/images/output_table.c",
     "return one->at < other->at ? 1 : -1;",
     "return one->at < other->at ? -1 : 1;",
     "e2e.selections"),
    ("stored-cells-of-others", "app/imager/run/setup/imaging_weights.c",
     "TESS_TRY(reach_row(w, recipe, block, row));",
     "if (row < 0) TESS_TRY(reach_row(w, recipe, block, row));",
     "e2e.imaging_weights"),
    ("stored-weights-kept", "io/vis/vis_ms_write.cc",
     "if (!unknown(block.weight[k])) writer.kept[k] = block.weight[k];",
     "writer.kept[k] = unknown(block.weight[k]) ? 0 : block.weight[k];",
     "e2e.imaging_weights"),
    ("wsclean-one-psf", "app/imager/run/output/image_names.c",
     "return kind != IMAGE_PSF || k == 0 ||",
     "return kind != IMAGE_PSF || k >= 0 ||",
     "e2e.wsclean_words"),
]]


class Tree:
    """A copy of the source and a build of it."""

    def __init__(self, work, options):
        self.source = work / "source"
        self.build = self.source / "build"  # where ccache finds what other trees built
        self.jobs = options.jobs
        files = subprocess.run(["git", "-C", ROOT, "ls-files", "-z", "-co",
                                "--exclude-standard"], check=True,
                               stdout=subprocess.PIPE).stdout.decode().split("\0")
        for name in filter(None, files):
            self.copy(name)
        self.forget(set(files))
        generator = ["-G", "Ninja"] if shutil.which("ninja") else []
        # in the place of tests/../../shared, which some tests read
        link = work / "shared"
        if not link.exists() and (ROOT.parent / "shared").exists():
            link.symlink_to(ROOT.parent / "shared")
        subprocess.run(["cmake", "-S", self.source, "-B", self.build, *generator,
                        "-DCMAKE_BUILD_TYPE=Release", "-DTESS_CUDA=OFF",
                        f"-DTESS_TEST_PYTHON={sys.executable}", *options.cmake],
                       check=True, stdout=subprocess.DEVNULL)

    def copy(self, name):
        """Without touching a file that is the same: it need not be built again."""
        of, to = ROOT / name, self.source / name
        if not of.is_file():
            return
        if to.is_file() and to.read_bytes() == of.read_bytes():
            return
        to.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(of, to)

    def forget(self, files):
        """Removes what an earlier copy has and the source does not: a header that has moved
        would be found in its old folder."""
        for folder, folders, names in os.walk(self.source):
            if pathlib.Path(folder) == self.source:
                folders[:] = [name for name in folders if name != self.build.name]
            for name in names:
                path = pathlib.Path(folder, name)
                if str(path.relative_to(self.source)) not in files:
                    path.unlink()

    def make(self, target):
        return subprocess.run(["cmake", "--build", self.build, "-j", str(self.jobs),
                               "--target", target], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, errors="replace")

    def test(self, name):
        """"passed", "failed", or "not run"."""
        result = subprocess.run(["ctest", "--test-dir", self.build, "-R",
                                 f"^{re.escape(name)}$", "--no-tests=error"],
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                text=True, errors="replace")
        if re.search(r"\*\*\*(Failed|Timeout|Exception)", result.stdout):
            return "failed"
        if result.returncode == 0 and " Passed " in result.stdout:
            return "passed"
        return "not run"


def target_of(test):
    """unit.geom is of unit_test_geom, mpi.comm.np2 of mpi_test_comm."""
    folder, name = test.split(".")[:2]
    if test in ("e2e.clean_numpy", "e2e.clean_joined", "e2e.radler"):
        return "clean_arrays"
    return "tessera" if folder == "e2e" else f"{folder}_test_{name}"


def changed(text, mutant):
    """The text with the fault, None when the old text is not there exactly once."""
    return text.replace(mutant.old, mutant.new) if text.count(mutant.old) == 1 else None


def check_table():
    """Names of mutants whose old text is not found once."""
    names = [mutant.name for mutant in TABLE]
    assert len(set(names)) == len(names), "two mutants have one name"
    bad = [mutant.name for mutant in TABLE if not (ROOT / mutant.file).is_file()
           or changed((ROOT / mutant.file).read_text(), mutant) is None]
    for name in bad:
        print(f"{name}: its old text is not in its file exactly once")
    return bad


def try_mutant(tree, mutant):
    """What became of it."""
    path = tree.source / mutant.file
    original = path.read_text()
    text = changed(original, mutant)
    if text is None:
        return "old text not found"
    try:
        path.write_text(text)
        built = tree.make(target_of(mutant.test))
        if built.returncode:
            print("\n".join(built.stdout.splitlines()[-15:]))
            return "does not build"
        outcome = tree.test(mutant.test)
        return {"failed": "caught", "passed": "NOT CAUGHT"}.get(outcome, "test not run")
    finally:
        path.write_text(original)


def choose(options):
    if options.only:
        known = {mutant.name: mutant for mutant in TABLE}
        return [known[name] for name in options.only]
    if options.all:
        return list(TABLE)
    seed = options.seed if options.seed is not None else int(time.time())
    print(f"seed {seed}")
    return random.Random(seed).sample(TABLE, min(options.random, len(TABLE)))


def unchanged_tests_pass(tree, mutants):
    """A test that fails without a fault catches nothing."""
    bad = []
    for test in sorted({mutant.test for mutant in mutants}):
        built = tree.make(target_of(test))
        outcome = "not built" if built.returncode else tree.test(test)
        if outcome != "passed":
            print(f"{test}: {outcome} without a fault", flush=True)
            print("\n".join(built.stdout.splitlines()[-15:]) if built.returncode else "")
            bad.append(test)
    return bad


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--only", action="append", metavar="NAME")
    parser.add_argument("--random", type=int, default=10, metavar="N")
    parser.add_argument("--seed", type=int)
    parser.add_argument("--work", type=pathlib.Path, default=ROOT / "build-mutants")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("cmake", nargs="*", metavar="-DNAME=VALUE",
                        help="more options of cmake, after --")
    options = parser.parse_args()
    if options.list:
        for mutant in TABLE:
            print(f"{mutant.name:28} {mutant.file:26} {mutant.test}")
        return 0
    bad = check_table()
    if bad or options.check:
        print(f"{len(TABLE)} mutants, {len(bad)} out of date")
        return 1 if bad else 0
    mutants = sorted(choose(options), key=lambda mutant: (mutant.file, mutant.test))
    options.work.mkdir(parents=True, exist_ok=True)
    tree = Tree(options.work.resolve(), options)
    failed = unchanged_tests_pass(tree, mutants)
    for mutant in mutants:
        outcome = try_mutant(tree, mutant)
        print(f"{mutant.name:28} {mutant.test:24} {outcome}", flush=True)
        if outcome != "caught":
            failed.append(mutant.name)
    print(f"{len(mutants)} mutants tried, {len(failed)} failures")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
