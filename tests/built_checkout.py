"""A tree in which ./run finds everything installed and built, as somebody has it after the first start."""
import os
import pathlib
import shutil

from nodepool_helpers import BIN, ROOT


def make_checkout(folder: pathlib.Path, with_drivers: bool):
    """Makes it in an empty folder. Without drivers no machine is real."""
    shutil.copy(ROOT / "run", folder)
    shutil.copytree(ROOT / "tools", folder / "tools")
    (folder / "examples").symlink_to(ROOT / "examples")
    built = folder / "build/release"
    programs = BIN.resolve()
    built.mkdir(parents=True)
    (built / "bin").symlink_to(programs)
    if with_drivers:
        (built / "drivers").symlink_to(programs.parent / "drivers")
    for name in ("tools/install-packages", "path/cmake"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text("#!/bin/sh\n")
        (folder / name).chmod(0o755)


def words_to_enter(folder: pathlib.Path) -> list:
    """The words before a command that runs in it."""
    return ["env", "-C", folder, f"PATH={folder}/path:{os.environ['PATH']}", f"NODEPOOL_BIN={folder}/build/release/bin"]
