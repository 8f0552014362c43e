
# Consider dependencies only in project.
set(CMAKE_DEPENDS_IN_PROJECT_ONLY OFF)

# The set of languages for which implicit dependencies are needed:
set(CMAKE_DEPENDS_LANGUAGES
  )

# The set of dependency files which are needed:
set(CMAKE_DEPENDS_DEPENDENCY_FILES
  "/tmp/drv/src/drivers/openstack/openstack_config.cc" "src/drivers/openstack/CMakeFiles/np_drivers_openstack_config.dir/openstack_config.cc.o" "gcc" "src/drivers/openstack/CMakeFiles/np_drivers_openstack_config.dir/openstack_config.cc.o.d"
  "/tmp/drv/src/base/CMakeFiles/np_base.dir/cmake_pch.hxx" "src/drivers/openstack/CMakeFiles/np_drivers_openstack_config.dir/openstack_config.cc.o" "gcc" "src/drivers/openstack/CMakeFiles/np_drivers_openstack_config.dir/openstack_config.cc.o.d"
  )

# Targets to which this target links.
set(CMAKE_TARGET_LINKED_INFO_FILES
  "/tmp/drv/src/drivers/CMakeFiles/np_drivers_section.dir/DependInfo.cmake"
  "/tmp/drv/src/config/CMakeFiles/np_config.dir/DependInfo.cmake"
  "/tmp/drv/src/base/CMakeFiles/np_base.dir/DependInfo.cmake"
  )

# Fortran module output directory.
set(CMAKE_Fortran_TARGET_MODULE_DIR "")
