# fleet_module(NAME base_core
#   SOURCES a.cc b.cc     library sources; a module of headers alone needs none
#   DEPS    base_json     our own modules or imported targets (PUBLIC)
#   PRIVATE_DEPS curl     what only the .cc files need
#   TESTS   a_test.cc     one GoogleTest program per module, `<NAME>_test`, label `unit`
#   TEST_DEPS             what only the tests need
#   TEST_LABEL system     another label than `unit` (system | slow)
#   FUZZ    a_fuzz.cc)    one program per file: libFuzzer in the fuzz preset, else it replays the
#                         inputs beside it (a_fuzz.corpus/) as a test
# Includes are written from the repository root: #include "base/result.h".
function(fleet_module)
  cmake_parse_arguments(M "" "NAME;TEST_LABEL" "SOURCES;DEPS;PRIVATE_DEPS;TESTS;TEST_DEPS;FUZZ" ${ARGN})
  if(M_SOURCES)
    add_library(${M_NAME} STATIC ${M_SOURCES})
    target_include_directories(${M_NAME} PUBLIC ${CMAKE_SOURCE_DIR})
    target_link_libraries(${M_NAME} PUBLIC ${M_DEPS} PRIVATE ${M_PRIVATE_DEPS} fleet_warnings)
  else()
    add_library(${M_NAME} INTERFACE)
    target_include_directories(${M_NAME} INTERFACE ${CMAKE_SOURCE_DIR})
    target_link_libraries(${M_NAME} INTERFACE ${M_DEPS})
  endif()
  if(M_TESTS AND FLEET_TESTS)
    fleet_test(NAME ${M_NAME}_test SOURCES ${M_TESTS} DEPS ${M_NAME} ${M_TEST_DEPS}
               LABEL ${M_TEST_LABEL})
  endif()
  if(M_FUZZ AND FLEET_TESTS)
    foreach(source IN LISTS M_FUZZ)
      fleet_fuzz(${source} ${M_NAME})
    endforeach()
  endif()
endfunction()

# fleet_program(NAME fleet SOURCES main.cc DEPS ...): lands in build/<preset>/bin.
function(fleet_program)
  cmake_parse_arguments(P "" "NAME" "SOURCES;DEPS" ${ARGN})
  add_executable(${P_NAME} ${P_SOURCES})
  target_include_directories(${P_NAME} PRIVATE ${CMAKE_SOURCE_DIR})
  target_link_libraries(${P_NAME} PRIVATE ${P_DEPS} fleet_warnings)
endfunction()

# fleet_test(NAME x_test SOURCES ... DEPS ... [LABEL unit]): a GoogleTest program and its ctest entry.
function(fleet_test)
  if(NOT FLEET_TESTS)
    return()
  endif()
  cmake_parse_arguments(T "" "NAME;LABEL;TIMEOUT" "SOURCES;DEPS" ${ARGN})
  if(NOT T_LABEL)
    set(T_LABEL unit)
  endif()
  if(NOT T_TIMEOUT)
    set(T_TIMEOUT 300)
  endif()
  add_executable(${T_NAME} ${T_SOURCES})
  target_include_directories(${T_NAME} PRIVATE ${CMAKE_SOURCE_DIR})
  target_link_libraries(${T_NAME} PRIVATE ${T_DEPS} GTest::gtest GTest::gtest_main fleet_warnings)
  # g++ reads `if (x) EXPECT_EQ(...)` as an ambiguous else inside GoogleTest's macro.
  target_compile_options(${T_NAME} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-dangling-else>)
  add_test(NAME ${T_NAME} COMMAND ${T_NAME} WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
  set_tests_properties(${T_NAME} PROPERTIES LABELS ${T_LABEL} TIMEOUT ${T_TIMEOUT})
endfunction()

# fleet_script_test(NAME x COMMAND ... [LABEL system]): any command that exits 0 when all is well.
function(fleet_script_test)
  cmake_parse_arguments(S "" "NAME;LABEL;TIMEOUT" "COMMAND" ${ARGN})
  if(NOT FLEET_TESTS)
    return()
  endif()
  if(NOT S_LABEL)
    set(S_LABEL system)
  endif()
  if(NOT S_TIMEOUT)
    set(S_TIMEOUT 600)
  endif()
  add_test(NAME ${S_NAME} COMMAND ${S_COMMAND} WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
  set_tests_properties(${S_NAME} PROPERTIES LABELS ${S_LABEL} TIMEOUT ${S_TIMEOUT}
    ENVIRONMENT "FLEET_BUILD=${CMAKE_BINARY_DIR}")
endfunction()

function(fleet_fuzz source module)
  get_filename_component(name ${source} NAME_WE)
  get_filename_component(dir ${source} DIRECTORY)
  add_executable(${name} ${source})
  target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR})
  target_link_libraries(${name} PRIVATE ${module} fleet_warnings)
  if(FLEET_FUZZ)
    target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  else()
    target_sources(${name} PRIVATE ${CMAKE_SOURCE_DIR}/base/testing/fuzz_replay.cc)
    add_test(NAME ${name} COMMAND ${name} ${CMAKE_CURRENT_SOURCE_DIR}/${dir}/${name}.corpus)
    set_tests_properties(${name} PROPERTIES LABELS unit TIMEOUT 60)
  endif()
endfunction()
