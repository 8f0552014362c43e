export DISTRO_NAME=debian
export DIB_RELEASE=${DIB_RELEASE:-bookworm}
# Further packages, separated by commas.
export LIGHT_DEBIAN_PACKAGES=${LIGHT_DEBIAN_PACKAGES:-}
