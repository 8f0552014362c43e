# CMake generated Testfile for 
# Source directory: /tmp/drv/src/config
# Build directory: /tmp/drv/src/config
# 
# This file includes the relevant testing commands required for 
# testing this directory and lists subdirectories to be tested as well.
add_test([=[config_test]=] "/tmp/drv/bin/config_test" "--gtest_brief=1")
set_tests_properties([=[config_test]=] PROPERTIES  TIMEOUT "300" _BACKTRACE_TRIPLES "/tmp/drv/cmake/NodepoolTargets.cmake;48;add_test;/tmp/drv/src/config/CMakeLists.txt;6;nodepool_test;/tmp/drv/src/config/CMakeLists.txt;0;")
