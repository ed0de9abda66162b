# Warnings and sanitizers of every target of the project.
function(tess_warnings target)
    target_compile_options(${target} PRIVATE
        $<$<COMPILE_LANGUAGE:C>:-Wall -Wextra -Wpedantic -Wshadow -Wconversion
        -Wdouble-promotion -Wstrict-prototypes -Wmissing-prototypes -Wvla -Wformat=2
        -Wcast-qual -Wundef>
        $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wshadow>
        $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall,-Wextra,-Wshadow>)
    if(NOT TESS_OPENMP) # its pragmas, and numbers of threads that only they look at
        target_compile_options(${target} PRIVATE
            $<$<COMPILE_LANGUAGE:C,CXX>:-Wno-unknown-pragmas -Wno-unused-parameter>)
    endif()
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
endfunction()
