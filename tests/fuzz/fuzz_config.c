/* Files of options, as `tessera image --config FILE` reads them: all that is parsed
 * before data are opened. */
#include <stdio.h>
#include <stdlib.h>

#include "fuzz_file.h"
#include "tess_comm.h"
#include "tess_image_args.h"

static void parse(const char *path)
{
    char image[] = "image", option[128], size[] = "--size=64",
         scale[] = "--scale=9asec", output[] = "--output=fuzz", obs[] = "obs.uvfits";
    char *whole[] = {image, option, size, scale, output, obs, NULL};
    char *alone[] = {image, option, NULL};
    tess_image_args args = {0};
    snprintf(option, sizeof option, "--config=%s", path);
    fuzz_check(tess_image_args_parse(fuzz_comm(), "", 6, whole, &args));
    tess_image_args_free(&args);
    args.is_plan = true;
    fuzz_check(tess_image_args_parse(fuzz_comm(), "", 2, alone, &args));
    tess_image_args_free(&args);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    parse(fuzz_file(data, size));
    return 0;
}
