# Empty compiler generated dependencies file for np_drivers_schemas.
# This may be replaced when dependencies are built.
