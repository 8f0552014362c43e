# Empty dependencies file for np_config.
# This may be replaced when dependencies are built.
