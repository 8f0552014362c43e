file(REMOVE_RECURSE
  "libnp_drivers_schemas.a"
)
