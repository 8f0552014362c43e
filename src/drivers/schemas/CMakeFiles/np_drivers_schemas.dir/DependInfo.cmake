
# Consider dependencies only in project.
set(CMAKE_DEPENDS_IN_PROJECT_ONLY OFF)

# The set of languages for which implicit dependencies are needed:
set(CMAKE_DEPENDS_LANGUAGES
  )

# The set of dependency files which are needed:
set(CMAKE_DEPENDS_DEPENDENCY_FILES
  "/tmp/drv/src/drivers/schemas/complete.cc" "src/drivers/schemas/CMakeFiles/np_drivers_schemas.dir/complete.cc.o" "gcc" "src/drivers/schemas/CMakeFiles/np_drivers_schemas.dir/complete.cc.o.d"
  "/tmp/drv/src/base/CMakeFiles/np_base.dir/cmake_pch.hxx" "src/drivers/schemas/CMakeFiles/np_drivers_schemas.dir/complete.cc.o" "gcc" "src/drivers/schemas/CMakeFiles/np_drivers_schemas.dir/complete.cc.o.d"
  "/tmp/drv/src/drivers/schemas/known_drivers.cc" "src/drivers/schemas/CMakeFiles/np_drivers_schemas.dir/known_drivers.cc.o" "gcc" "src/drivers/schemas/CMakeFiles/np_drivers_schemas.dir/known_drivers.cc.o.d"
  "/tmp/drv/src/base/CMakeFiles/np_base.dir/cmake_pch.hxx" "src/drivers/schemas/CMakeFiles/np_drivers_schemas.dir/known_drivers.cc.o" "gcc" "src/drivers/schemas/CMakeFiles/np_drivers_schemas.dir/known_drivers.cc.o.d"
  "/tmp/drv/src/drivers/schemas/partial.cc" "src/drivers/schemas/CMakeFiles/np_drivers_schemas.dir/partial.cc.o" "gcc" "src/drivers/schemas/CMakeFiles/np_drivers_schemas.dir/partial.cc.o.d"
  "/tmp/drv/src/base/CMakeFiles/np_base.dir/cmake_pch.hxx" "src/drivers/schemas/CMakeFiles/np_drivers_schemas.dir/partial.cc.o" "gcc" "src/drivers/schemas/CMakeFiles/np_drivers_schemas.dir/partial.cc.o.d"
  )

# Targets to which this target links.
set(CMAKE_TARGET_LINKED_INFO_FILES
  "/tmp/drv/src/drivers/static/CMakeFiles/np_drivers_static_config.dir/DependInfo.cmake"
  "/tmp/drv/src/drivers/fake/CMakeFiles/np_drivers_fake_config.dir/DependInfo.cmake"
  "/tmp/drv/src/drivers/openstack/CMakeFiles/np_drivers_openstack_config.dir/DependInfo.cmake"
  "/tmp/drv/src/drivers/CMakeFiles/np_drivers_section.dir/DependInfo.cmake"
  "/tmp/drv/src/config/CMakeFiles/np_config.dir/DependInfo.cmake"
  "/tmp/drv/src/base/CMakeFiles/np_base.dir/DependInfo.cmake"
  )

# Fortran module output directory.
set(CMAKE_Fortran_TARGET_MODULE_DIR "")
