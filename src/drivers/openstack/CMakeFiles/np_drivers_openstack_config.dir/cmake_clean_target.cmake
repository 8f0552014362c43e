file(REMOVE_RECURSE
  "libnp_drivers_openstack_config.a"
)
