"""Servers that spoil the folder that they were given."""

import contextlib, mmap, os, shutil, socket, time

from kit import ARGUMENT, OUTSIDE, ROOT, messages, serve


def fills_its_root():
    """Fills the disk below its root, as far as it can and 64 MiB at most, and never tidies up."""
    try:
        for number in range(64):
            with open(os.path.join(ROOT, f"full-{number}"), "wb") as file:
                file.write(b"\xa5" * 2**20)
    except OSError:
        pass
    serve()


def _takes(how):
    """Takes 32 MiB or 8192 files of the disk of its root, and returns the open files."""
    most = 2**23
    place, kept = os.environ["HOME"] if how == "home" else ROOT, []
    if how == "files":
        for number in range(2**13):
            os.close(os.open(f"{ROOT}/{number}", os.O_CREAT))
    elif how == "folders":
        for number in range(2**12):
            os.makedirs(f"{ROOT}/{number}/below")
    elif how == "single":
        with open(f"{ROOT}/0", "wb", buffering=0) as file:
            for _ in range(4):
                file.write(bytes(most))
    else:
        for number in range(4):
            file = open(f"{place}/{number}", "w+b", buffering=0)
            if how in ("unnamed", "again"):
                os.unlink(file.name)
            if how in ("mapped", "sparse"):
                file.truncate(most)
            if how == "mapped":
                with mmap.mmap(file.fileno(), most) as shared:
                    shared[:] = bytes(most)
            elif how != "sparse":
                file.write(bytes(most))
            if how == "again":
                file.close()
            kept.append(file)
    return kept


def takes_too_much():
    """Takes more than it may, and then answers nothing."""
    kept = []
    with contextlib.suppress(OSError):  # a file may not grow so far, which it may meet first
        kept = _takes(ARGUMENT)
    for _ in messages():
        time.sleep(600)


def takes_much():
    """Takes much, but less at a time than it may."""
    kept = _takes(ARGUMENT)
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


def fills_its_own_places():
    """Fills a file system that its sandbox has for itself, and says nothing of it."""
    kind, _, place = ARGUMENT.partition(" ")
    try:
        if kind == "files":
            for number in range(2**16):
                os.close(os.open(f"{place}/{number}", os.O_CREAT))
        else:
            with open(f"{place}/large", "wb", buffering=0) as file:
                while file.write(bytes(2**20)):
                    pass
    except OSError:
        pass
    if kind == "leaves":
        os._exit(1)
    serve()
