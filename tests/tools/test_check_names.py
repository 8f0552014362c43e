"""tools/check-names: functions that become overloads of each other in a unity build."""
import pathlib
import subprocess

TOOL = pathlib.Path(__file__).resolve().parents[2] / "tools/check-names"
SOURCE = """namespace nodepool {{
namespace {{

{function}

}}  // namespace
}}  // namespace nodepool
"""


def check(folder: pathlib.Path, first: str, second: str):
    (folder / "src").mkdir()
    (folder / "src/CMakeLists.txt").write_text("nodepool_library(toy\n  SOURCES one.cc two.cc\n  DEPS nodepool::base)\n")
    for name, function in (("one", first), ("two", second)):
        (folder / f"src/{name}.cc").write_text(SOURCE.format(function=function))
    return subprocess.run([TOOL, folder], capture_output=True, text=True)


def test_other_parameters_are_no_excuse(tmp_path):
    done = check(tmp_path, "std::string NameIn(const std::string& text) {\n  return text;\n}",
                 "std::optional<std::string> NameIn(std::string_view host) {\n  return std::nullopt;\n}")
    assert done.returncode == 1
    assert "toy: NameIn is in the unnamed namespaces of src/one.cc, src/two.cc" in done.stdout


def test_names_that_differ(tmp_path):
    done = check(tmp_path, "bool IsOpen(int door) { return door > 0; }",
                 "bool Opens(int door) { return IsOpen(door); }  // which is declared elsewhere")
    assert done.returncode == 0, done.stdout


def test_the_tree_has_none():
    assert subprocess.run([TOOL], capture_output=True).returncode == 0
