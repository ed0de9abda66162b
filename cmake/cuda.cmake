# The cuda backend. TESS_CUDA: AUTO builds it when nvcc is found, ON insists, OFF leaves it
# out; EMULATED builds its host side with device memory and kernels emulated on the CPU
# (tests/emulated/), for tests without a GPU.
# Sets TESS_DEVICE to "cuda", "emulated" or nothing.
set(TESS_CUDA "AUTO" CACHE STRING "GPU backend: AUTO, ON, OFF or EMULATED (for tests)")
set_property(CACHE TESS_CUDA PROPERTY STRINGS AUTO ON OFF EMULATED)
set(TESS_DEVICE "")
if(TESS_CUDA STREQUAL "EMULATED")
    set(TESS_DEVICE "emulated")
    enable_language(CXX) # for kernels that run on the CPU
    set(CMAKE_CXX_STANDARD 17)
    set(CMAKE_CXX_STANDARD_REQUIRED ON)
elseif(TESS_CUDA STREQUAL "AUTO" OR TESS_CUDA)
    # The compute capabilities of A100 and H100; those not named run the nearest one's PTX.
    if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
        set(CMAKE_CUDA_ARCHITECTURES 80 90)
    endif()
    include(CheckLanguage)
    check_language(CUDA)
    if(CMAKE_CUDA_COMPILER)
        set(TESS_DEVICE "cuda")
    elseif(TESS_CUDA STREQUAL "AUTO")
        message(STATUS "nvcc not found: built without the cuda backend")
    else()
        message(FATAL_ERROR "TESS_CUDA=${TESS_CUDA}, but there is no nvcc")
    endif()
endif()
if(TESS_DEVICE STREQUAL "cuda")
    enable_language(CUDA)
    find_package(CUDAToolkit REQUIRED)
    set(CMAKE_CUDA_STANDARD 17)
    set(CMAKE_CUDA_STANDARD_REQUIRED ON)
    set(CMAKE_CUDA_RUNTIME_LIBRARY Static)
endif()
