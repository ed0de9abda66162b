/* Tells those who watch cleaning of each minor loop. */
#include "majors_private.h"

/* One word for the end of an image. */
static const char *end_word(image_end end)
{
    static const char *const word[NUM_IMAGE_ENDS] = {
        [IMAGE_END_THRESHOLD] = "threshold",     [IMAGE_END_NMITER] = "nmiter",
        [IMAGE_END_MASK_NMITER] = "mask-nmiter", [IMAGE_END_NITER] = "niter",
        [IMAGE_END_NEGATIVE] = "negative",       [IMAGE_END_STALLED] = "stalled",
        [IMAGE_END_DIVERGED] = "diverged",       [IMAGE_END_NOTHING] = "nothing",
        [IMAGE_END_UNMASKED] = "nothing",        [IMAGE_END_STOPPED] = "stopped"};
    return word[end];
}

/* Why the cleaning of a group ends with this minor loop; "": it goes on. */
static const char *end_of_group(const majors *all, const cleaned *group)
{
    const int64_t nmiter = all->run->opts->clean.nmiter;
    if (!group->goes_on) return end_word(group->end);
    return nmiter > 0 && all->num + 1 >= nmiter ? end_word(IMAGE_END_NMITER) : "";
}

tess_status majors_tell_watcher(const majors *all, cleaned *group)
{
    tess_status status = TESS_OK;
    const image_run *run = all->run;
    const tess_clean_watch *watch = &run->opts->clean.watch;
    const tess_clean_report *report = &group->report;
    const int64_t output = all->channel[0].output, channels = run->outputs.num_channels;
    bool goes_on = true;
    char pol[8];
    if (!watch->tell) return TESS_OK;
    tess_pol_name(&run->pol[group->first_pol], pol);
    const tess_clean_told told = {
        .interval = output / channels,
        .channel = image_joins_channels(run->opts) ? -1 : output % channels,
        .polarisation = pol,
        .major = group->num_majors,
        .minor_iterations = report->iterations,
        .iterations = group->iterations,
        .peak_start = report->peak_start,
        .peak_end = report->peak_end,
        .threshold = report->threshold,
        .rms_jy = report->rms,
        .flux_jy = report->flux_jy,
        .end = end_of_group(all, group)};
    if (tess_comm_rank(run->comm) == 0) goes_on = watch->tell(watch->context, &told);
    TESS_TRY(tess_comm_bcast(run->comm, &goes_on, sizeof goes_on, 0));
    if (!goes_on && group->goes_on) {
        group->goes_on = false;
        group->end = IMAGE_END_STOPPED;
    }
cleanup:
    return status;
}
