# What `cmake --install` brings for authors of drivers: the CMake package NodepoolDriver
# against which drivers outside of this tree are built. They are shared objects that find what
# they use in the program that loads them, so the package is headers and settings only.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(NODEPOOL_DRIVERS_DIR ${CMAKE_INSTALL_LIBDIR}/nodepool/drivers)
if(NOT CMAKE_INSTALL_LIBDIR STREQUAL "lib")
  set(NODEPOOL_DRIVERS_DIR lib/nodepool/drivers)  # where the programs look (driver/loading/load_drivers.h)
endif()
set(package_dir lib/cmake/NodepoolDriver)

install(TARGETS nodepool-driver-test RUNTIME COMPONENT development)
install(PROGRAMS ${PROJECT_SOURCE_DIR}/tools/nodepool-driver-new TYPE BIN COMPONENT development)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/examples/driver-template ${PROJECT_SOURCE_DIR}/examples/http-driver-template
  USE_SOURCE_PERMISSIONS DESTINATION share/nodepool COMPONENT development)
# The guide and the example lie with the other pages (cmake/Install.cmake), to which they link.
install(CODE "set(folder \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/share/doc/nodepool-dev\")
file(MAKE_DIRECTORY \"\${folder}\")
file(CREATE_LINK ../nodepool/docs/driver-guide \"\${folder}/driver-guide\" SYMBOLIC)
file(CREATE_LINK ../nodepool/examples \"\${folder}/examples\" SYMBOLIC)" COMPONENT development)
install(CODE "execute_process(
  COMMAND ${PROJECT_SOURCE_DIR}/tools/install-headers \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/include/nodepool\"
  COMMAND_ERROR_IS_FATAL ANY)" COMPONENT development)

# The same settings of the headers as in this tree.
add_library(nodepool_driver_headers INTERFACE)
set_target_properties(nodepool_driver_headers PROPERTIES EXPORT_NAME Driver)
target_compile_features(nodepool_driver_headers INTERFACE cxx_std_23)
target_compile_definitions(nodepool_driver_headers INTERFACE
  BOOST_ASIO_SEPARATE_COMPILATION BOOST_ASIO_NO_DEPRECATED)
target_include_directories(nodepool_driver_headers INTERFACE $<INSTALL_INTERFACE:include>)
target_link_libraries(nodepool_driver_headers INTERFACE fmt::fmt Boost::json)
install(TARGETS nodepool_driver_headers EXPORT NodepoolDriverTargets COMPONENT development)
install(EXPORT NodepoolDriverTargets NAMESPACE Nodepool:: DESTINATION ${package_dir}
  COMPONENT development)
configure_package_config_file(cmake/NodepoolDriverConfig.cmake.in
  ${CMAKE_BINARY_DIR}/NodepoolDriverConfig.cmake INSTALL_DESTINATION ${package_dir} PATH_VARS NODEPOOL_DRIVERS_DIR)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/NodepoolDriverConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/NodepoolDriverConfig.cmake ${CMAKE_BINARY_DIR}/NodepoolDriverConfigVersion.cmake
  DESTINATION ${package_dir} COMPONENT development)
