"""tools/check-platforms: what builds on one release of the system only."""
import pathlib
import subprocess

import pytest

TOOL = pathlib.Path(__file__).resolve().parents[2] / "tools/check-platforms"
READ_PAGE = """template <class T>
Task<Page<T>> ReadPage(Session& session, std::string collection, {reader} read) {{
  ApiReply reply = co_await session.Call(collection);
  co_return PageOf(reply, read);
}}
"""
PASSED_ON = """template <class T>
Task<std::vector<T>> List(Session& session, T (*read)(const Object&)) {
  return ReadPages<T>(session, read);
}
"""
ALIAS = "template <class T>\nusing Read = T (*)(const Object&);\n\n"


def check(folder: pathlib.Path, name: str, text: str):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    subprocess.run(["git", "init", "-q", folder], check=True)
    subprocess.run(["git", "add", "-A"], cwd=folder, check=True)
    return subprocess.run([TOOL, folder], capture_output=True, text=True)


@pytest.mark.parametrize("reader", ["T (*read_it)(const Object&)", "std::vector<T> (*)(const Object&)"])
def test_a_coroutine_template_with_a_pointer_to_function(tmp_path, reader):
    done = check(tmp_path, "src/paging.h", READ_PAGE.format(reader=reader))
    assert done.returncode == 1 and "src/paging.h:1: a coroutine template takes a pointer to function" in done.stdout


def test_the_pointer_may_have_a_name(tmp_path):
    done = check(tmp_path, "src/paging.h", ALIAS + READ_PAGE.format(reader="Read<std::vector<T>>"))
    assert done.returncode == 1 and "src/paging.h:4: " in done.stdout


@pytest.mark.parametrize("text", [READ_PAGE.format(reader="std::function<T(const Object&)>"),
                                  READ_PAGE.format(reader="std::string (*next)(const Object&)"), PASSED_ON])
def test_what_the_compiler_can_do(tmp_path, text):
    done = check(tmp_path, "src/paging.h", text)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("name", ["clang++-16", "clang-tidy-19", "g++-14", "libboost1.81-dev", "libboost-json1.81-dev", "libyaml-cpp0.7"])
def test_a_version_of_one_release(tmp_path, name):
    done = check(tmp_path, "tools/build", f"run {name}\n")
    assert done.returncode == 1 and f"tools/build:1: {name} is what one release has" in done.stdout
    (tmp_path / "tools/build").unlink()
    assert check(tmp_path, "packages.txt", name).returncode == 0, "the list may name it"


@pytest.mark.parametrize("call", ['add_option("image", *image, "name of the image")', 'add_option_function<std::string>(\n      "image", set)'])
def test_a_positional_that_may_have_the_name_of_an_option(tmp_path, call):
    command = f'command->add_option("--image", *wanted);\ncommand->{call};\n'
    done = check(tmp_path, "src/images.cc", command)
    assert done.returncode == 1 and "src/images.cc:2: the positional image may have the name of an option" in done.stdout
    done = check(tmp_path, "src/images.cc", command.replace('"image"', '"IMAGE-or-BUILD"'))
    assert done.returncode == 0, done.stdout
