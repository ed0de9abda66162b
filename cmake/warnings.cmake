# Warnings and sanitizers of every target of the project.
function(tess_warnings target)
    target_compile_options(${target} PRIVATE
        $<$<COMPILE_LANGUAGE:C>:-Wall -Wextra -Wpedantic -Wshadow -Wconversion
        -Wdouble-promotion -Wstrict-prototypes -Wmissing-prototypes -Wvla -Wformat=2
        -Wcast-qual -Wundef -Werror=implicit-function-declaration
        -Werror=incompatible-pointer-types>
        $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wshadow>
        $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall,-Wextra,-Wshadow>)
    if(CMAKE_C_COMPILER_ID MATCHES Clang)
        # clang warns of INFINITY and NAN, which are floats, in expressions of doubles.
        # Debian 12's C library gives it no CMPLX.
        target_compile_options(${target} PRIVATE
            $<$<COMPILE_LANGUAGE:C>:-Wno-double-promotion>
            "$<$<COMPILE_LANGUAGE:C>:-DCMPLX(x,y)=__builtin_complex((double)(x),(double)(y))>")
    endif()
    if(NOT TESS_OPENMP) # its pragmas, and numbers of threads that only they look at
        target_compile_options(${target} PRIVATE
            $<$<COMPILE_LANGUAGE:C,CXX>:-Wno-unknown-pragmas -Wno-unused-parameter>)
    endif()
    # A device that calls a function of the processor gets garbage, and nvcc only warns.
    target_compile_options(${target} PRIVATE
        $<$<COMPILE_LANGUAGE:CUDA>:--diag-error=20011,20013,20014,20015>)
    if(TESS_WERROR)
        target_compile_options(${target} PRIVATE
            $<$<COMPILE_LANGUAGE:C,CXX>:-Werror>
            $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Werror>)
    endif()
    if(TESS_SANITIZE)
        target_compile_options(${target} PUBLIC
            $<$<COMPILE_LANGUAGE:C,CXX>:-fsanitize=${TESS_SANITIZE}
            -fno-omit-frame-pointer>)
        target_link_options(${target} PUBLIC -fsanitize=${TESS_SANITIZE})
    endif()
    if(TESS_FUZZ) # what libFuzzer sees of the code's paths
        target_compile_options(${target} PRIVATE
            $<$<COMPILE_LANGUAGE:C,CXX>:-fsanitize=fuzzer-no-link>)
    endif()
endfunction()
