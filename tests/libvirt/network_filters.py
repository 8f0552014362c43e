"""libvirt's own network filters, of the package libvirt-daemon-config-nwfilter."""
import pathlib

FILTERS = pathlib.Path("/usr/share/libvirt/nwfilter")


def define_filters(try_virsh):
    """Defines those that a host lacks. `try_virsh` runs a command of virsh there and says whether it has succeeded. Filters
    name each other, so what fails is tried again after the others."""
    missing = {path.stem: path for path in FILTERS.glob("*.xml") if not try_virsh("nwfilter-dumpxml", path.stem)}
    while missing:
        defined = [name for name, path in missing.items() if try_virsh("nwfilter-define", path)]
        assert defined, f"cannot be defined: {sorted(missing)}"
        for name in defined:
            del missing[name]
