file(REMOVE_RECURSE
  "libnp_config.a"
)
