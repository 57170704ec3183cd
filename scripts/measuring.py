"""Measures of processes and disks, for the scripts beside this file. Needs Linux."""

import os


def anonymous(pid):
    """Returns the bytes of anonymous memory of a process, or 0 if it has ended."""
    try:
        for line in open(f"/proc/{pid}/status"):
            if line.startswith("RssAnon"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return 0


def used(folder):
    """Returns the bytes in use on the file system of a folder, because scratch files have no names."""
    state = os.statvfs(folder)
    return (state.f_blocks - state.f_bfree) * state.f_frsize


def size_of(memory):
    """Returns the bytes of a size such as 256M or 4G."""
    return int(memory[:-1]) * {"M": 1 << 20, "G": 1 << 30}[memory[-1]]
