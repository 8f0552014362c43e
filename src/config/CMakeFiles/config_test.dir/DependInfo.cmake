
# Consider dependencies only in project.
set(CMAKE_DEPENDS_IN_PROJECT_ONLY OFF)

# The set of languages for which implicit dependencies are needed:
set(CMAKE_DEPENDS_LANGUAGES
  )

# The set of dependency files which are needed:
set(CMAKE_DEPENDS_DEPENDENCY_FILES
  "/tmp/drv/src/config/config_loader_test.cc" "src/config/CMakeFiles/config_test.dir/config_loader_test.cc.o" "gcc" "src/config/CMakeFiles/config_test.dir/config_loader_test.cc.o.d"
  "/tmp/drv/src/base/CMakeFiles/np_base.dir/cmake_pch.hxx" "src/config/CMakeFiles/config_test.dir/config_loader_test.cc.o" "gcc" "src/config/CMakeFiles/config_test.dir/config_loader_test.cc.o.d"
  "/tmp/drv/src/config/disk_images_test.cc" "src/config/CMakeFiles/config_test.dir/disk_images_test.cc.o" "gcc" "src/config/CMakeFiles/config_test.dir/disk_images_test.cc.o.d"
  "/tmp/drv/src/base/CMakeFiles/np_base.dir/cmake_pch.hxx" "src/config/CMakeFiles/config_test.dir/disk_images_test.cc.o" "gcc" "src/config/CMakeFiles/config_test.dir/disk_images_test.cc.o.d"
  "/tmp/drv/src/config/scalar_test.cc" "src/config/CMakeFiles/config_test.dir/scalar_test.cc.o" "gcc" "src/config/CMakeFiles/config_test.dir/scalar_test.cc.o.d"
  "/tmp/drv/src/base/CMakeFiles/np_base.dir/cmake_pch.hxx" "src/config/CMakeFiles/config_test.dir/scalar_test.cc.o" "gcc" "src/config/CMakeFiles/config_test.dir/scalar_test.cc.o.d"
  "/tmp/drv/src/config/schema_test.cc" "src/config/CMakeFiles/config_test.dir/schema_test.cc.o" "gcc" "src/config/CMakeFiles/config_test.dir/schema_test.cc.o.d"
  "/tmp/drv/src/base/CMakeFiles/np_base.dir/cmake_pch.hxx" "src/config/CMakeFiles/config_test.dir/schema_test.cc.o" "gcc" "src/config/CMakeFiles/config_test.dir/schema_test.cc.o.d"
  "/tmp/drv/src/config/validator_test.cc" "src/config/CMakeFiles/config_test.dir/validator_test.cc.o" "gcc" "src/config/CMakeFiles/config_test.dir/validator_test.cc.o.d"
  "/tmp/drv/src/base/CMakeFiles/np_base.dir/cmake_pch.hxx" "src/config/CMakeFiles/config_test.dir/validator_test.cc.o" "gcc" "src/config/CMakeFiles/config_test.dir/validator_test.cc.o.d"
  "/tmp/drv/src/config/yaml_reader_test.cc" "src/config/CMakeFiles/config_test.dir/yaml_reader_test.cc.o" "gcc" "src/config/CMakeFiles/config_test.dir/yaml_reader_test.cc.o.d"
  "/tmp/drv/src/base/CMakeFiles/np_base.dir/cmake_pch.hxx" "src/config/CMakeFiles/config_test.dir/yaml_reader_test.cc.o" "gcc" "src/config/CMakeFiles/config_test.dir/yaml_reader_test.cc.o.d"
  )

# Targets to which this target links.
set(CMAKE_TARGET_LINKED_INFO_FILES
  "/tmp/drv/src/config/CMakeFiles/np_config.dir/DependInfo.cmake"
  "/tmp/drv/src/base/CMakeFiles/np_base.dir/DependInfo.cmake"
  )

# Fortran module output directory.
set(CMAKE_Fortran_TARGET_MODULE_DIR "")
