// The headers are C++ as well, and their functions link.
#include <tessera/tessera.h>

#include <cstring>

int main()
{
    tess_array_opts opts;
    tess_array_opts_default(&opts);
    opts.nx = opts.ny = 0;
    tess_array_vis vis = {};
    tess_array_image image = {};
    const tess_status status = tess_vis_to_dirty(&opts, &vis, &image, nullptr);
    const bool refused = status == TESS_ERR_USAGE && std::strlen(tess_last_error()) > 0;
    tess_image *imager = nullptr;
    const bool made = tess_image_create(&imager) == TESS_OK && tess_image_count(imager) == 0;
    tess_image_destroy(imager);
    return refused && made ? 0 : 1;
}
