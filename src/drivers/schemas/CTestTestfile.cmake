# CMake generated Testfile for 
# Source directory: /tmp/drv/src/drivers/schemas
# Build directory: /tmp/drv/src/drivers/schemas
# 
# This file includes the relevant testing commands required for 
# testing this directory and lists subdirectories to be tested as well.
