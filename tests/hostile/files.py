"""Servers that spoil the folder that they were given."""

import os, shutil, socket

from kit import OUTSIDE, ROOT, serve


def fills_its_root():
    """Fills the disk below its root, as far as it can and 64 MiB at most, and never tidies up."""
    try:
        for number in range(64):
            with open(os.path.join(ROOT, f"full-{number}"), "wb") as file:
                file.write(b"\xa5" * 2**20)
    except OSError:
        pass
    serve()


def deletes_its_root():
    """Deletes the folder it was given."""
    shutil.rmtree(ROOT, ignore_errors=True)
    serve()


def shuts_its_root():
    """Takes every right away from the folder it was given."""
    try:
        os.mkdir(os.path.join(ROOT, "deep"))
        open(os.path.join(ROOT, "deep", "file"), "w").close()
        os.chmod(os.path.join(ROOT, "deep"), 0)
    except OSError:
        pass
    os.chmod(ROOT, 0)
    serve()


def puts_a_link_in_place_of_its_root():
    """Replaces its root by a link to a folder that is none of our business."""
    try:
        os.rename(ROOT, ROOT + ".old")
        os.symlink(OUTSIDE, ROOT)
        os.symlink(OUTSIDE, os.path.join(ROOT + ".old", "link"))
    except OSError:
        pass
    serve()


def makes_ten_thousand_files():
    """Leaves ten thousand files below its root."""
    try:
        os.mkdir(os.path.join(ROOT, "many"))
        for number in range(10_000):
            os.close(os.open(os.path.join(ROOT, "many", f"{number}"), os.O_CREAT))
    except FileExistsError:
        pass
    serve()


def leaves_odd_files():
    """Leaves what a tidy-up may stumble over: pipes, a socket, names that are no text, a deep tree."""
    try:
        os.chdir(ROOT)
        os.mkfifo("pipe")
        socket.socket(socket.AF_UNIX).bind("socket")
        open(b"\xff\xfe\n\x1b[2J", "w").close()
        os.symlink("loop", "loop")
        os.symlink("/", "everything")
        for _ in range(1500):
            os.mkdir("deep")
            os.chdir("deep")
    except OSError:
        pass
    serve()
