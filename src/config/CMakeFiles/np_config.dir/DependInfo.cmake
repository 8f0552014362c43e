
# Consider dependencies only in project.
set(CMAKE_DEPENDS_IN_PROJECT_ONLY OFF)

# The set of languages for which implicit dependencies are needed:
set(CMAKE_DEPENDS_LANGUAGES
  )

# The set of dependency files which are needed:
set(CMAKE_DEPENDS_DEPENDENCY_FILES
  "/tmp/drv/src/config/config_loader.cc" "src/config/CMakeFiles/np_config.dir/config_loader.cc.o" "gcc" "src/config/CMakeFiles/np_config.dir/config_loader.cc.o.d"
  "/tmp/drv/src/base/CMakeFiles/np_base.dir/cmake_pch.hxx" "src/config/CMakeFiles/np_config.dir/config_loader.cc.o" "gcc" "src/config/CMakeFiles/np_config.dir/config_loader.cc.o.d"
  "/tmp/drv/src/config/disk_images.cc" "src/config/CMakeFiles/np_config.dir/disk_images.cc.o" "gcc" "src/config/CMakeFiles/np_config.dir/disk_images.cc.o.d"
  "/tmp/drv/src/base/CMakeFiles/np_base.dir/cmake_pch.hxx" "src/config/CMakeFiles/np_config.dir/disk_images.cc.o" "gcc" "src/config/CMakeFiles/np_config.dir/disk_images.cc.o.d"
  "/tmp/drv/src/config/main_schema.cc" "src/config/CMakeFiles/np_config.dir/main_schema.cc.o" "gcc" "src/config/CMakeFiles/np_config.dir/main_schema.cc.o.d"
  "/tmp/drv/src/base/CMakeFiles/np_base.dir/cmake_pch.hxx" "src/config/CMakeFiles/np_config.dir/main_schema.cc.o" "gcc" "src/config/CMakeFiles/np_config.dir/main_schema.cc.o.d"
  "/tmp/drv/src/config/scalar.cc" "src/config/CMakeFiles/np_config.dir/scalar.cc.o" "gcc" "src/config/CMakeFiles/np_config.dir/scalar.cc.o.d"
  "/tmp/drv/src/base/CMakeFiles/np_base.dir/cmake_pch.hxx" "src/config/CMakeFiles/np_config.dir/scalar.cc.o" "gcc" "src/config/CMakeFiles/np_config.dir/scalar.cc.o.d"
  "/tmp/drv/src/config/schema.cc" "src/config/CMakeFiles/np_config.dir/schema.cc.o" "gcc" "src/config/CMakeFiles/np_config.dir/schema.cc.o.d"
  "/tmp/drv/src/base/CMakeFiles/np_base.dir/cmake_pch.hxx" "src/config/CMakeFiles/np_config.dir/schema.cc.o" "gcc" "src/config/CMakeFiles/np_config.dir/schema.cc.o.d"
  "/tmp/drv/src/config/schema_docs.cc" "src/config/CMakeFiles/np_config.dir/schema_docs.cc.o" "gcc" "src/config/CMakeFiles/np_config.dir/schema_docs.cc.o.d"
  "/tmp/drv/src/base/CMakeFiles/np_base.dir/cmake_pch.hxx" "src/config/CMakeFiles/np_config.dir/schema_docs.cc.o" "gcc" "src/config/CMakeFiles/np_config.dir/schema_docs.cc.o.d"
  "/tmp/drv/src/config/section.cc" "src/config/CMakeFiles/np_config.dir/section.cc.o" "gcc" "src/config/CMakeFiles/np_config.dir/section.cc.o.d"
  "/tmp/drv/src/base/CMakeFiles/np_base.dir/cmake_pch.hxx" "src/config/CMakeFiles/np_config.dir/section.cc.o" "gcc" "src/config/CMakeFiles/np_config.dir/section.cc.o.d"
  "/tmp/drv/src/config/validate.cc" "src/config/CMakeFiles/np_config.dir/validate.cc.o" "gcc" "src/config/CMakeFiles/np_config.dir/validate.cc.o.d"
  "/tmp/drv/src/base/CMakeFiles/np_base.dir/cmake_pch.hxx" "src/config/CMakeFiles/np_config.dir/validate.cc.o" "gcc" "src/config/CMakeFiles/np_config.dir/validate.cc.o.d"
  "/tmp/drv/src/config/validator.cc" "src/config/CMakeFiles/np_config.dir/validator.cc.o" "gcc" "src/config/CMakeFiles/np_config.dir/validator.cc.o.d"
  "/tmp/drv/src/base/CMakeFiles/np_base.dir/cmake_pch.hxx" "src/config/CMakeFiles/np_config.dir/validator.cc.o" "gcc" "src/config/CMakeFiles/np_config.dir/validator.cc.o.d"
  "/tmp/drv/src/config/value.cc" "src/config/CMakeFiles/np_config.dir/value.cc.o" "gcc" "src/config/CMakeFiles/np_config.dir/value.cc.o.d"
  "/tmp/drv/src/base/CMakeFiles/np_base.dir/cmake_pch.hxx" "src/config/CMakeFiles/np_config.dir/value.cc.o" "gcc" "src/config/CMakeFiles/np_config.dir/value.cc.o.d"
  "/tmp/drv/src/config/yaml_reader.cc" "src/config/CMakeFiles/np_config.dir/yaml_reader.cc.o" "gcc" "src/config/CMakeFiles/np_config.dir/yaml_reader.cc.o.d"
  "/tmp/drv/src/base/CMakeFiles/np_base.dir/cmake_pch.hxx" "src/config/CMakeFiles/np_config.dir/yaml_reader.cc.o" "gcc" "src/config/CMakeFiles/np_config.dir/yaml_reader.cc.o.d"
  )

# Targets to which this target links.
set(CMAKE_TARGET_LINKED_INFO_FILES
  "/tmp/drv/src/base/CMakeFiles/np_base.dir/DependInfo.cmake"
  )

# Fortran module output directory.
set(CMAKE_Fortran_TARGET_MODULE_DIR "")
