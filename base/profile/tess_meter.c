/* Reads how much energy processors and a GPU have used, and the clock and temperature
 * of the GPU. */
#define _GNU_SOURCE
#include "tess_meter.h"

#include <dlfcn.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "tess_mem.h"

enum { MOST_PACKAGES = 16 };

/* The declarations of NVML that are used here. They stand here, so that nvml.h need not
 * be installed. */
typedef struct nvml_device *nvml_handle;
typedef struct nvml_library {
    void *handle;
    int (*init)(void);
    int (*shutdown)(void);
    int (*by_bus_id)(const char *bus_id, nvml_handle *device);
    int (*energy)(nvml_handle device, unsigned long long *millijoules);
    int (*clock)(nvml_handle device, int type, unsigned *mhz);
    int (*temperature)(nvml_handle device, int sensor, unsigned *celsius);
} nvml_library;
enum { NVML_SUCCESS = 0, NVML_CLOCK_SM = 1, NVML_TEMPERATURE_GPU = 0 };

/* A RAPL domain of one package. */
typedef struct package {
    char path[256];
    double last_uj, range_uj;
} package;

struct tess_meter {
    nvml_library nvml;
    nvml_handle gpu; /* NULL: the meter has no GPU */
    double gpu_first_j;
    int num_packages;
    package package[MOST_PACKAGES];
    double cpu_j;
};

/* ---- processors ---- */

static bool read_number(const char *path, double *value)
{
    FILE *file = fopen(path, "r");
    if (!file) return false;
    const bool good = fscanf(file, "%lf", value) == 1;
    fclose(file);
    return good;
}

static void find_packages(tess_meter *meter, const char *rapl)
{
    char range[256];
    for (int k = 0; k < MOST_PACKAGES; ++k) {
        package *next = &meter->package[meter->num_packages];
        snprintf(next->path, sizeof next->path, "%s/intel-rapl:%d/energy_uj", rapl, k);
        snprintf(range, sizeof range, "%s/intel-rapl:%d/max_energy_range_uj", rapl, k);
        if (read_number(next->path, &next->last_uj) &&
            read_number(range, &next->range_uj))
            ++meter->num_packages;
    }
}

static double read_packages(tess_meter *meter)
{
    for (int k = 0; k < meter->num_packages; ++k) {
        package *from = &meter->package[k];
        double now_uj;
        if (!read_number(from->path, &now_uj)) return NAN;
        const double used_uj = now_uj - from->last_uj;
        meter->cpu_j += 1e-6 * (used_uj < 0 ? used_uj + from->range_uj : used_uj);
        from->last_uj = now_uj;
    }
    return meter->num_packages > 0 ? meter->cpu_j : (double)NAN;
}

/* ---- GPU ---- */

/* A function of the library. memcpy is used, because C has no cast from data to
 * functions. */
static bool find(const nvml_library *nvml, const char *name, void *function)
{
    void *found = dlsym(nvml->handle, name);
    memcpy(function, &found, sizeof found);
    return found != NULL;
}

static bool open_nvml(nvml_library *nvml)
{
    nvml->handle = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!nvml->handle) return false;
    if (find(nvml, "nvmlInit_v2", &nvml->init) &&
        find(nvml, "nvmlShutdown", &nvml->shutdown) &&
        find(nvml, "nvmlDeviceGetHandleByPciBusId_v2", &nvml->by_bus_id) &&
        find(nvml, "nvmlDeviceGetTotalEnergyConsumption", &nvml->energy) &&
        find(nvml, "nvmlDeviceGetClockInfo", &nvml->clock) &&
        find(nvml, "nvmlDeviceGetTemperature", &nvml->temperature) &&
        nvml->init() == NVML_SUCCESS)
        return true;
    dlclose(nvml->handle);
    nvml->handle = NULL;
    return false;
}

static double read_gpu(const tess_meter *meter)
{
    unsigned long long millijoules = 0;
    if (!meter->gpu || meter->nvml.energy(meter->gpu, &millijoules) != NVML_SUCCESS)
        return NAN;
    return 1e-3 * (double)millijoules;
}

/* ---- meter ---- */

tess_meter *tess_meter_create(const char *gpu_bus_id, const char *rapl)
{
    tess_meter *meter = tess_alloc_zero(1, sizeof *meter);
    if (!meter) return NULL;
    if (rapl) find_packages(meter, rapl);
    if (gpu_bus_id && *gpu_bus_id && open_nvml(&meter->nvml) &&
        meter->nvml.by_bus_id(gpu_bus_id, &meter->gpu) != NVML_SUCCESS)
        meter->gpu = NULL;
    meter->gpu_first_j = read_gpu(meter);
    return meter;
}

void tess_meter_read(tess_meter *meter, tess_readings *now)
{
    unsigned mhz, celsius;
    *now = (tess_readings){.cpu_j = read_packages(meter),
                           .gpu_j = read_gpu(meter) - meter->gpu_first_j,
                           .gpu_mhz = NAN,
                           .gpu_c = NAN};
    if (!meter->gpu) return;
    if (meter->nvml.clock(meter->gpu, NVML_CLOCK_SM, &mhz) == NVML_SUCCESS)
        now->gpu_mhz = mhz;
    if (meter->nvml.temperature(meter->gpu, NVML_TEMPERATURE_GPU, &celsius) ==
        NVML_SUCCESS)
        now->gpu_c = celsius;
}

void tess_meter_destroy(tess_meter *meter)
{
    if (!meter) return;
    if (meter->nvml.handle) {
        meter->nvml.shutdown();
        dlclose(meter->nvml.handle);
    }
    tess_free(meter);
}
