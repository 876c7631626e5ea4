"""Files are written whole or not at all."""

import errno
import os
import signal
import subprocess
import sys

import pytest

from sparsistent.io import files
from sparsistent.io.files import write_folder, write_whole


def names_in(folder):
    return sorted(path.name for path in folder.iterdir())


def fill_disk(monkeypatch):
    """A disk that takes the first file and is full when it comes to the second."""
    calls = []

    def fsync(number):
        calls.append(number)
        if len(calls) > 1:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(files.os, "fsync", fsync)


def test_a_file_is_written_and_replaced_only_on_request(tmp_path):
    path = tmp_path / "a.txt"
    write_whole(path, "é")
    assert path.read_bytes() == "é".encode()
    with pytest.raises(FileExistsError, match=r"a\.txt is there already; choose another name"):
        write_whole(path, "b")
    write_whole(path, b"b", overwrite=True)
    assert path.read_bytes() == b"b"
    assert names_in(tmp_path) == ["a.txt"]


def test_a_file_has_the_rights_of_others(tmp_path):
    (tmp_path / "plain").write_text("")
    write_whole(tmp_path / "whole", "")
    assert (tmp_path / "whole").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_devices_and_folders_are_never_replaced(tmp_path):
    for path in ("/dev/full", tmp_path):
        with pytest.raises(FileExistsError, match="is no file"):
            write_whole(path, "", overwrite=True)


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "full"), KeyboardInterrupt()])
def test_a_file_that_fails_leaves_what_was_there(tmp_path, monkeypatch, error):
    def fail(number):
        raise error

    path = tmp_path / "a.txt"
    path.write_text("before")
    monkeypatch.setattr(files.os, "fsync", fail)
    with pytest.raises(type(error)):
        write_whole(path, "after", overwrite=True)
    assert path.read_text() == "before"
    assert names_in(tmp_path) == ["a.txt"]


def test_a_folder_is_made_with_its_parents(tmp_path):
    write_folder(tmp_path / "new" / "out", {"a": "a", "b": b"b"})
    assert names_in(tmp_path) == ["new"]
    assert names_in(tmp_path / "new" / "out") == ["a", "b"]


def test_a_folder_that_exists_keeps_what_is_not_replaced(tmp_path):
    write_folder(tmp_path, {"a": "1", "report": "1"})
    (tmp_path / "notes").write_text("mine")
    with pytest.raises(FileExistsError, match="a is there already"):
        write_folder(tmp_path, {"a": "2"})
    with pytest.raises(FileExistsError, match="report is there already"):
        write_folder(tmp_path, {"b": "2"}, stale=frozenset({"report"}))
    write_folder(tmp_path, {"a": "2"}, overwrite=True, stale=frozenset({"a", "report"}))
    assert names_in(tmp_path) == ["a", "notes"]
    assert (tmp_path / "a").read_text() == "2"


def test_a_full_disk_leaves_no_folder(tmp_path, monkeypatch):
    fill_disk(monkeypatch)
    with pytest.raises(OSError, match="No space left"):
        write_folder(tmp_path / "new" / "out", {"a": "a", "b": "b"})
    assert names_in(tmp_path) == []


def test_a_full_disk_leaves_an_older_folder_as_it_was(tmp_path, monkeypatch):
    write_folder(tmp_path, {"a": "1", "c": "1"})
    fill_disk(monkeypatch)
    with pytest.raises(OSError, match="No space left"):
        write_folder(tmp_path, {"a": "2", "b": "2"}, overwrite=True, stale=frozenset("abc"))
    assert names_in(tmp_path) == ["a", "c"]
    assert (tmp_path / "a").read_text() == "1"


def test_a_killed_process_leaves_no_part_of_a_file(tmp_path):
    code = (
        "import os, sys, time\n"
        "from sparsistent.io import files\n"
        "def fsync(number):\n"
        "    print('written', flush=True)\n"
        "    time.sleep(60)\n"
        "files.os.fsync = fsync\n"
        "files.write_folder(sys.argv[1] + '/out', {'a': 'a'})\n"
    )
    command = [sys.executable, "-c", code, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "written\n"
        process.send_signal(signal.SIGKILL)
    assert [name for name in names_in(tmp_path) if not name.endswith(".part")] == []


def test_a_folder_that_is_a_file_is_refused(tmp_path):
    (tmp_path / "out").write_text("")
    with pytest.raises(NotADirectoryError, match="is a file, not a folder"):
        write_folder(tmp_path / "out", {"a": "a"})
