# Build settings that hold for every target of the project.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_C_STANDARD 11)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin")
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/lib")
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()

option(VATLAS_TESTS "Build the tests" ON)
option(VATLAS_BENCH "Build the benchmarks (Google Benchmark)" ON)
set(VATLAS_SANITIZE "" CACHE STRING "Sanitizers, as for -fsanitize= (address,undefined or thread)")
# Where the device memories live in the address space: base and distance between two cards. The sanitizers leave
# less room; docs/design.md has the ranges that work.
if(VATLAS_SANITIZE MATCHES "thread")
  set(VATLAS_DEVICE_BASE "0x7e8000000000" CACHE STRING "")
  set(VATLAS_DEVICE_SPAN "0x7c0000000" CACHE STRING "")
else()
  set(VATLAS_DEVICE_BASE "0x200000000000" CACHE STRING "")
  set(VATLAS_DEVICE_SPAN "0x4000000000" CACHE STRING "")
endif()

find_program(VATLAS_CCACHE ccache)
if(VATLAS_CCACHE)
  set(CMAKE_C_COMPILER_LAUNCHER ${VATLAS_CCACHE})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${VATLAS_CCACHE})
endif()
find_program(VATLAS_MOLD mold)
if(VATLAS_MOLD AND NOT VATLAS_SANITIZE)
  add_link_options(-fuse-ld=mold)
endif()

# One meaning for floating point everywhere: no contraction, no fast-math.
add_compile_options(-ffp-contract=off)
if(VATLAS_SANITIZE)
  add_compile_options(-fsanitize=${VATLAS_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${VATLAS_SANITIZE})
endif()

# Functions of the library call each other directly: nobody replaces them by symbols of their own.
add_compile_options(-fno-semantic-interposition)
add_link_options(-Wl,-Bsymbolic-functions)

# Flags of our own code.
add_library(vatlas_flags INTERFACE)
target_compile_options(vatlas_flags INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Werror
  $<$<COMPILE_LANGUAGE:CXX>:-Wconversion>
  -Wno-restrict  # GCC 12 sees overlaps in std::string that are not there (its bug 105651)
  -fdiagnostics-color=auto)
if(VATLAS_SANITIZE)
  # GCC cannot follow the sanitizers' own code.
  target_compile_options(vatlas_flags INTERFACE -Wno-maybe-uninitialized)
endif()
if(VATLAS_SANITIZE MATCHES "thread")
  target_compile_options(vatlas_flags INTERFACE -Wno-tsan)  # Asio's fences, which the sanitizer does not follow
endif()
