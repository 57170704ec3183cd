"""Helpers of the scripts in this folder: measure processes and disks, and build the other tools of comparisons. Needs
Linux."""

import gzip
import os
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# The programs of benches/peers.
PEERS = ROOT / "target" / "peers"


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


def folder_bytes(path):
    """Returns the total size in bytes of the files in a folder, or the size of a file."""
    path = Path(path)
    return sum(file.stat().st_size for file in ([path] if path.is_file() else path.rglob("*")) if file.is_file())


def size_of(memory):
    """Returns the bytes of a size such as 256M or 4G."""
    return int(memory[:-1]) * {"M": 1 << 20, "G": 1 << 30}[memory[-1]]


def run(*command, out=subprocess.PIPE):
    """Runs a command. Returns its standard output (empty if `out` is a file, which then receives it), the wall time and the
    CPU time in seconds, and the peak resident memory in bytes. Ends this program if the command fails."""
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


def native():
    """Returns the environment for building other tools: for this processor, with the output in target/peers. twindex chooses
    its kernels at run time, so it would be unfair to build the others for an older processor."""
    return dict(os.environ, CARGO_TARGET_DIR=str(PEERS), RUSTFLAGS="-C target-cpu=native")


def build_peers():
    """Builds the programs of benches/peers."""
    manifest = str(ROOT / "benches/peers/Cargo.toml")
    subprocess.run(["cargo", "build", "--release", "--locked", "--quiet", "--manifest-path", manifest], env=native(), check=True)


def tool():
    """Returns the path of the binary that TWINDEX names; otherwise builds `twindex` and returns its path."""
    if os.environ.get("TWINDEX"):
        return Path(os.environ["TWINDEX"]).absolute()
    subprocess.run(["cargo", "build", "--release", "--locked", "--quiet"], cwd=ROOT, check=True)
    return Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release" / "twindex"


def plain(path, folder):
    """Returns the path of an uncompressed file. A .gz or .zst file is decompressed to a file in `folder`."""
    path = Path(path)
    if not path.exists():
        sys.exit(f"{path}: no such file")
    out = Path(folder) / path.stem
    if path.suffix == ".gz":
        with gzip.open(path) as packed, out.open("wb") as file:
            shutil.copyfileobj(packed, file)
    elif path.suffix == ".zst":
        if not shutil.which("zstd"):
            sys.exit(f"{path}: unpacking it needs the program zstd; or unpack it and name the .jsonl file")
        subprocess.run(["zstd", "-q", "-d", "-f", str(path), "-o", str(out)], check=True)
    else:
        return path
    return out


def commit():
    """Returns the commit of the checkout, with the suffix `-dirty` if tracked files differ from it."""
    describe = ["git", "describe", "--always", "--dirty"]
    return subprocess.run(describe, cwd=ROOT, capture_output=True, text=True).stdout.strip()
