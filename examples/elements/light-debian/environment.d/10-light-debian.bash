export DISTRO_NAME=debian
export DIB_RELEASE=${DIB_RELEASE:-bookworm}
# Further packages, separated by commas.
export DIB_LIGHT_DEBIAN_PACKAGES=${DIB_LIGHT_DEBIAN_PACKAGES:-}
