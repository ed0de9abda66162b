# Installs the build to a folder of its own and uses it from there: find_package, and
# pkg-config, and what the library exports.
#
# cmake -D BUILD=... -D SOURCE=... -D WORK=... -D TESSERA=program [-D SANITIZE=...]
#       -P consume.cmake
cmake_minimum_required(VERSION 3.20)

function(run)
    execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE out
                    ERROR_VARIABLE out)
    if(NOT status EQUAL 0)
        list(JOIN ARGN " " command)
        message(FATAL_ERROR "${command}\nended with ${status}:\n${out}")
    endif()
    set(run_out "${out}" PARENT_SCOPE)
endfunction()

file(REMOVE_RECURSE ${WORK})
file(MAKE_DIRECTORY ${WORK})
run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${WORK}/prefix)

# Only tess_* may be exported, and the file name carries the version.
file(GLOB_RECURSE library ${WORK}/prefix/libtessera.so)
file(REAL_PATH ${library} real)
if(NOT real MATCHES "libtessera\\.so\\.[0-9]+\\.[0-9]+\\.[0-9]+$")
    message(FATAL_ERROR "${real} carries no version")
endif()
find_program(NM nm)
if(NM AND NOT SANITIZE)
    run(${NM} -D --defined-only ${library})
    string(REGEX MATCHALL "[^\n]+" lines "${run_out}")
    foreach(line ${lines})
        if(NOT line MATCHES " T tess_[a-z0-9_]+$")
            message(FATAL_ERROR "libtessera exports more than its interface: ${line}")
        endif()
    endforeach()
endif()

# An observation to image.
file(WRITE ${WORK}/sky.csv "name,ra,dec,flux_jy\nsource,60deg,-30deg,1\n")
run(${TESSERA} simulate --quiet --layout vla-d --sky ${WORK}/sky.csv --ra 60deg
    --dec=-30deg --start 2026-01-01T20:00:00 --duration 4min --integration 60s
    --freq 1.4GHz --chan-width 4MHz --channels 2 --pol XX,YY -o ${WORK}/obs.uvfits)

set(flags "")
if(SANITIZE)
    set(flags "-fsanitize=${SANITIZE}")
endif()
run(${CMAKE_COMMAND} -S ${SOURCE} -B ${WORK}/build -DCMAKE_PREFIX_PATH=${WORK}/prefix
    -DCONSUME_OBS=${WORK}/obs.uvfits -DCMAKE_BUILD_TYPE=Release
    "-DCMAKE_C_FLAGS=${flags}" "-DCMAKE_CXX_FLAGS=${flags}")
run(${CMAKE_COMMAND} --build ${WORK}/build)
run(${CMAKE_CTEST_COMMAND} --test-dir ${WORK}/build --output-on-failure)
message("${run_out}")

# The same through pkg-config, with nothing but a compiler.
find_program(PKG_CONFIG pkg-config)
find_program(CC NAMES cc gcc)
if(PKG_CONFIG AND CC AND NOT SANITIZE)
    get_filename_component(folder ${library} DIRECTORY)
    set(ENV{PKG_CONFIG_PATH} ${folder}/pkgconfig)
    run(${PKG_CONFIG} --cflags --libs tessera)
    string(STRIP "${run_out}" options)
    separate_arguments(options)
    run(${CC} ${SOURCE}/consume.c -o ${WORK}/by_pkg_config ${options} -lm
        -Wl,-rpath,${folder})
    run(${WORK}/by_pkg_config)
endif()
file(REMOVE_RECURSE ${WORK})
