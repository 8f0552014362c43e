# Empty compiler generated dependencies file for np_drivers_openstack_config.
# This may be replaced when dependencies are built.
