from pathlib import Path

import pytest

from rasplens.workflows.output_files import check_file


def test_a_folder_is_no_file_and_the_message_says_what_one_could_be_called(folder):
    with pytest.raises(ValueError, match=r"\. is a folder\. Name a file in it, such as sort\.safetensors"):
        check_file(Path(), "sort.safetensors")


def test_a_folder_that_is_not_there_is_named(folder):
    with pytest.raises(ValueError, match=r"Cannot write a/b/x: the folder a/b does not exist\. Create it first"):
        check_file(Path("a/b/x"), "y")


@pytest.mark.parametrize("out", ["x", "sub/x", "sub/../x", "there"])
def test_a_file_may_be_new_or_written_over(folder, out):
    (folder / "sub").mkdir()
    (folder / "there").write_text("")
    check_file(Path(out), "y")
    assert sorted(path.name for path in folder.iterdir()) == ["sub", "there"]  # nothing is written
