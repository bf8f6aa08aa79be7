"""A file is replaced completely or not at all, whatever kind of file it is."""

from __future__ import annotations

import errno
import os
import stat

import numpy as np
import pytest

pytest.importorskip("resource", reason="This system has no limits and permissions of files.")

from children import in_child, small_files

from gpclass import GaussianProcessClassifier
from gpclass.core.files import replacing
from gpclass.sparse.checkpoint import Checkpoint


def write(path, content=b"new"):
    with replacing(path) as file:
        file.write(content)


def mode(path):
    return stat.S_IMODE(os.stat(path).st_mode)


def test_a_new_file_follows_the_umask_and_a_replaced_one_keeps_its_mode(tmp_path):
    path = tmp_path / "f"
    before = os.umask(0o027)
    try:
        write(path)
        assert mode(path) == 0o640
        path.chmod(0o604)
        write(path, b"newer")
    finally:
        os.umask(before)
    assert mode(path) == 0o604
    assert path.read_bytes() == b"newer"
    assert os.listdir(tmp_path) == ["f"]


def test_an_error_leaves_what_was_there(tmp_path):
    path = tmp_path / "f"
    for old in (None, b"old"):
        if old is not None:
            path.write_bytes(old)
        with pytest.raises(TypeError), replacing(path) as file:
            file.writelines([b"half", None])
        assert os.listdir(tmp_path) == ([] if old is None else ["f"])
    assert path.read_bytes() == b"old"


def test_links_stay_links(tmp_path):
    (tmp_path / "folder").mkdir()
    target, link = tmp_path / "folder" / "target", tmp_path / "link"
    link.symlink_to(target)
    for content in (b"one", b"two"):  # at first the target does not exist
        write(link, content)
        assert link.is_symlink()
        assert target.read_bytes() == content


def test_a_name_may_be_as_long_as_the_system_allows(tmp_path):
    path = tmp_path / ("n" * 255)
    write(path)
    assert path.read_bytes() == b"new"


def test_pipes_and_standard_output_are_written_directly(tmp_path):
    assert in_child(lambda: write("/dev/stdout")).stdout == "new"
    write(os.devnull)
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)
    path = tmp_path / "log"
    path.write_bytes(b"old ")
    log = os.open(path, os.O_WRONLY | os.O_APPEND)  # as `>> log` in a shell
    assert in_child(lambda: write("/dev/stdout"), stdout=log).code == 0
    os.close(log)
    assert path.read_bytes() == b"old new"


def test_a_read_only_file_is_not_replaced(tmp_path):
    path = tmp_path / "f"
    path.write_bytes(b"old")
    path.chmod(0o444)
    for folder in (tmp_path, *tmp_path.parents[:2]):
        folder.chmod(0o777)

    def work():
        if os.geteuid() == 0:  # who may write everything
            os.setuid(65534)
        os.chdir(tmp_path)
        write("f")

    assert "PermissionError" in in_child(work).stderr
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["f"]


def test_a_directory_is_an_error(tmp_path):
    with pytest.raises(IsADirectoryError):
        write(tmp_path)


@pytest.fixture(scope="module")
def fitted():
    X = np.random.default_rng(0).normal(size=(60, 2))
    return GaussianProcessClassifier(optimizer=None).fit(X, X[:, 0] > 0)


@pytest.mark.parametrize("kind", ["model", "onnx", "checkpoint"])
def test_a_full_disk_is_an_error_of_the_system_and_keeps_the_old_file(fitted, kind, tmp_path):
    if kind == "model":
        pytest.importorskip("safetensors")
        save = fitted.save
    elif kind == "onnx":
        pytest.importorskip("onnx")
        from gpclass.onnx import to_onnx

        def save(path):
            to_onnx(fitted, path)
    else:

        def save(path):
            Checkpoint(path, {}).write(theta=np.zeros(2), Z=np.zeros((60, 2)), P=np.eye(60))

    path = tmp_path / "f"
    before = os.umask(0o022)
    try:
        save(path)
    finally:
        os.umask(before)
    assert mode(path) == 0o644
    old = path.read_bytes()

    def work():
        small_files(2000)
        try:
            save(path)
        except OSError as error:
            raise SystemExit(error.errno) from None

    ended = in_child(work)
    assert ended.code == errno.EFBIG, ended.stderr
    assert ended.stderr == ""
    assert path.read_bytes() == old
    assert os.listdir(tmp_path) == ["f"]
