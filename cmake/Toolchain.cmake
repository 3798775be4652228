# Language level, warnings, sanitizers, linker and compiler cache: one place for all targets.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS ON)  # TRY is a GNU statement expression
set(CMAKE_C_STANDARD 17)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()
# Dev: quick to compile, quick enough to run, checks the standard library's preconditions.
set(CMAKE_CXX_FLAGS_DEV "-O1 -g1 -D_GLIBCXX_ASSERTIONS")
set(CMAKE_C_FLAGS_DEV "-O1 -g1")
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -g1 -DNDEBUG")
set(CMAKE_C_FLAGS_RELEASE "-O2 -g1 -DNDEBUG")

# The baseline every x86-64 machine of the last decade has; kernels dispatch above it at run time.
if(CMAKE_SYSTEM_PROCESSOR STREQUAL "x86_64")
  add_compile_options(-march=x86-64-v2)
endif()

add_library(fleet_warnings INTERFACE)
target_compile_options(fleet_warnings INTERFACE -Wall -Wextra -Werror
  -Wno-missing-field-initializers  # designated initializers leave the defaults alone on purpose
  $<$<COMPILE_LANGUAGE:CXX>:-Wnon-virtual-dtor -Woverloaded-virtual>
  # Statement expressions are how TRY is written; false positives of g++ 12's flow analysis.
  $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict -Wno-maybe-uninitialized -Wno-stringop-overflow
                           -Wno-array-bounds -Wno-dangling-pointer -Wno-stringop-overread>
  $<$<CXX_COMPILER_ID:Clang>:-Wno-gnu-statement-expression
                             -Wno-missing-designated-field-initializers>)

if(FLEET_SANITIZE)
  add_compile_options(-fsanitize=${FLEET_SANITIZE} -fno-omit-frame-pointer
                      -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${FLEET_SANITIZE})
endif()
if(FLEET_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()
if(FLEET_COVERAGE)
  add_compile_options(--coverage -O0)
  add_link_options(--coverage)
endif()

find_program(FLEET_MOLD mold)
if(FLEET_MOLD)
  add_link_options(-fuse-ld=mold)
endif()
find_program(FLEET_CCACHE ccache)
if(FLEET_CCACHE)
  set(CMAKE_C_COMPILER_LAUNCHER ${FLEET_CCACHE})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${FLEET_CCACHE})
endif()

find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)
find_package(OpenSSL REQUIRED)
if(FLEET_TESTS)
  find_package(GTest REQUIRED)
endif()
