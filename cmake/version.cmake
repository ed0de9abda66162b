# Words for app/tess_version.c.in: git revision, build options, versions of libraries.
set(TESS_GIT_REVISION "")
find_package(Git QUIET)
if(GIT_FOUND AND EXISTS ${PROJECT_SOURCE_DIR}/.git)
    execute_process(COMMAND ${GIT_EXECUTABLE} describe --always --dirty --abbrev=10
                    WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}
                    OUTPUT_VARIABLE TESS_GIT_REVISION
                    OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    # configure again after a commit, so that the revision stays true
    if(EXISTS ${PROJECT_SOURCE_DIR}/.git/logs/HEAD)
        set_property(DIRECTORY ${PROJECT_SOURCE_DIR} APPEND PROPERTY
                     CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/.git/logs/HEAD)
    endif()
endif()

set(TESS_BUILD_WORDS "${CMAKE_BUILD_TYPE}")
if(TESS_OPENMP)
    string(APPEND TESS_BUILD_WORDS ", OpenMP ${OpenMP_C_VERSION}")
else()
    string(APPEND TESS_BUILD_WORDS ", no OpenMP")
endif()
if(TESS_SANITIZE)
    string(APPEND TESS_BUILD_WORDS ", sanitizers ${TESS_SANITIZE}")
endif()

set(TESS_LIBRARY_WORDS "no MPI")
if(TESS_MPI)
    set(TESS_LIBRARY_WORDS "MPI ${MPI_C_VERSION}")
endif()
if(TESS_DEVICE STREQUAL "cuda")
    string(APPEND TESS_LIBRARY_WORDS ", CUDA ${CUDAToolkit_VERSION}")
elseif(TESS_DEVICE)
    string(APPEND TESS_LIBRARY_WORDS ", CUDA emulated")
endif()
string(APPEND TESS_LIBRARY_WORDS ", FFTW ${FFTW_VERSION}, CFITSIO ${CFITSIO_VERSION}")
if(TESS_HAVE_MS)
    set(casacore_version "")
    if(EXISTS ${CASACORE_INCLUDE_DIR}/casacore/casa/version.h)
        file(STRINGS ${CASACORE_INCLUDE_DIR}/casacore/casa/version.h casacore_version
             REGEX "#define CASACORE_VERSION ")
        string(REGEX MATCH "[0-9][0-9.]*" casacore_version "${casacore_version}")
    endif()
    string(APPEND TESS_LIBRARY_WORDS ", casacore ${casacore_version}")
else()
    string(APPEND TESS_LIBRARY_WORDS ", no casacore")
endif()
string(APPEND TESS_LIBRARY_WORDS ", CMinpack ${CMINPACK_VERSION}")
string(APPEND TESS_LIBRARY_WORDS ", jansson ${JANSSON_VERSION}, libpng ${PNG_VERSION_STRING}")
