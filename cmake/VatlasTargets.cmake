# Helpers to declare targets the same way everywhere.

# vatlas_object_library(sim): OBJECT library vatlas_sim with FOLDER/include public; sources are added with target_sources.
function(vatlas_object_library folder)
  add_library(vatlas_${folder} OBJECT)
  target_include_directories(vatlas_${folder} PUBLIC "${PROJECT_SOURCE_DIR}/${folder}/include"
    PRIVATE "${PROJECT_SOURCE_DIR}/${folder}/src")
  target_link_libraries(vatlas_${folder} PRIVATE vatlas_flags)
endfunction()

# libvatlas.so, with the vendor's library names as symbolic links to it.
function(vatlas_shared_library)
  add_library(vatlas SHARED)
  foreach(folder sim runtime hccl kernels)
    target_link_libraries(vatlas PRIVATE vatlas_${folder})
    target_include_directories(vatlas PUBLIC "${PROJECT_SOURCE_DIR}/${folder}/include")
  endforeach()
  target_link_libraries(vatlas PRIVATE Threads::Threads Boost::context fmt::fmt ${CMAKE_DL_LIBS})
  foreach(alias ascendcl acl_rt hccl hcomm nnopbase opapi msprofiler)
    add_custom_command(TARGET vatlas POST_BUILD
      COMMAND ${CMAKE_COMMAND} -E create_symlink libvatlas.so "$<TARGET_FILE_DIR:vatlas>/lib${alias}.so")
  endforeach()
endfunction()

# vatlas_device_image(NAME sources...): a device image lib/vatlas/kernels/NAME.so.
function(vatlas_device_image name)
  add_library(image_${name} MODULE ${ARGN})
  set_target_properties(image_${name} PROPERTIES PREFIX "" OUTPUT_NAME "${name}"
    LIBRARY_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/lib/vatlas/kernels")
  target_link_libraries(image_${name} PRIVATE vatlas vatlas_flags)
  add_dependencies(image_${name} vatlas)
endfunction()

# vatlas_test(NAME [TIMEOUT s] SOURCES ... [LIBS ...] [LABELS ...]): one Catch2 executable, one CTest entry.
function(vatlas_test name)
  cmake_parse_arguments(arg "" "TIMEOUT" "SOURCES;LIBS;LABELS" ${ARGN})
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 60)
  endif()
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE vatlas vatlas_test_main vatlas_flags ${arg_LIBS})
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES TIMEOUT ${arg_TIMEOUT} LABELS "${arg_LABELS}")
endfunction()
