# CMake generated Testfile for 
# Source directory: /tmp/drv/src/drivers/openstack
# Build directory: /tmp/drv/src/drivers/openstack
# 
# This file includes the relevant testing commands required for 
# testing this directory and lists subdirectories to be tested as well.
