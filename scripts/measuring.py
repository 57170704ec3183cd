"""Measures of processes and disks, for the scripts beside this file. Needs Linux."""

import os
import subprocess
import sys
import threading
import time


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


def run(*command, out=subprocess.PIPE):
    """Runs a command, whose standard output goes to the file `out` or is returned. Returns the output, the seconds by the
    clock, the CPU seconds and the peak resident memory in bytes. Ends this program if the command fails."""
    begun = time.monotonic()
    process = subprocess.Popen([str(part) for part in command], stdout=out, text=True)
    printed = process.stdout.read() if process.stdout else ""
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}: ended with {process.returncode}")
    return printed, time.monotonic() - begun, used.ru_utime + used.ru_stime, used.ru_maxrss * 1024


def watched(process, folder, before, each=lambda: None):
    """Waits until a process ends, and reads its standard output if it is a pipe. Returns the output, and the peaks in bytes
    of its anonymous memory and of the disk in use above `before`. Calls `each` between two looks at the process."""
    peaks = {"memory": 0, "disk": 0}

    def watch():
        while process.poll() is None:
            peaks["memory"] = max(peaks["memory"], anonymous(process.pid))
            peaks["disk"] = max(peaks["disk"], used(folder) - before)
            each()
            time.sleep(0.02)

    watching = threading.Thread(target=watch)
    watching.start()
    printed = process.stdout.read() if process.stdout else ""
    watching.join()
    return printed, peaks
