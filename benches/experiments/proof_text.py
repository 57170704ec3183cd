#!/usr/bin/env python3
"""Deduplicates very much text in bounded memory, and checks the result: size, costs, recall, brute force, a kill.

  scripts/experiment proof_text [--gigabytes 30] [--small 1] [--memory 4G] [--texts FOLDER] [--folder DIR] [--made DIR]
                     [--kill] [--kill-options OPTIONS]

Makes documents of 300 words from the text files of FOLDER (by default the sources in cargo's cache) with planted
near-duplicates, in a .zst file. Runs `twindex dedup --compress zstd` on them, for a small and a large size, and prints for
both the CPU time and the wall time per GB of text, the peak of anonymous memory, and the peak of disk space per byte of
text. Then it checks that of no planted pair with a resemblance of 0.8 or more both documents were kept. It also compares a
sample with all documents by brute force (tools/examples/sampled.rs): each removed document of the sample must be near an
earlier kept document, and each kept document must not be. --made writes the documents to DIR and keeps them, and uses
documents of the same size from an earlier run if they are there. --kill runs the large size again with --resume and
OPTIONS, kills the run with SIGKILL after a fifth of the time of the first run and, resumed, after half of it, resumes it
again, and compares its kept documents, pairs and clusters with those of the first run, byte for byte. OPTIONS must not
change these. Needs Linux, zstd, and disk space of about twice the text, on
a disk to which nothing else writes at the same time. TWINDEX names a binary to use in place of the one that `cargo build --release` makes.
"""

import argparse
import hashlib
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from measuring import used, watched

ROOT = Path(__file__).resolve().parents[2]
WORDS = 300


def make(target, texts, gigabytes, folder):
    """Writes compressed documents and the table of planted pairs, unless they exist. Returns both paths, the number of
    documents, and the size of the text in bytes."""
    source, truth, size = (folder / f"documents-{gigabytes}.{end}" for end in ("jsonl.zst", "tsv", "json"))
    if not size.exists():
        planted = target / "examples/planted"
        # Measures the mean size of a line, to choose the number of documents.
        probe = subprocess.run([planted, "2000", str(WORDS), "0", "/dev/null", texts], stdout=subprocess.PIPE, check=True).stdout
        documents = int(gigabytes * 1e9 / (len(probe) / 2000))
        with open(source, "wb") as out:
            making = subprocess.Popen([planted, str(documents), str(WORDS), "0.15", truth, texts], stdout=subprocess.PIPE)
            subprocess.run(["zstd", "-q", "-c"], stdin=making.stdout, stdout=out, check=True)
            making.stdout.close()
            if making.wait():
                sys.exit("planted failed")
        size.write_text(json.dumps([documents, documents * len(probe) // 2000]))
    return source, truth, *json.loads(size.read_text())


def dedup(binary, source, out, memory, options=(), before=None, kill_after=None):
    before = before or used(out.parent)
    command = [binary, "dedup", str(source), "-o", str(out), "--memory", memory, "--compress", "zstd", "--json", "--quiet"]
    command += options
    begun = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)

    def kill_in_time():
        if kill_after and time.monotonic() - begun > kill_after:
            process.send_signal(signal.SIGKILL)

    printed, peaks = watched(process, out.parent, before, kill_in_time)
    clock = time.monotonic() - begun
    if kill_after and process.returncode == -signal.SIGKILL:
        return None, peaks, clock
    if process.returncode:
        sys.exit(f"{' '.join(command)}: ended with {process.returncode}")
    return json.loads(printed.splitlines()[-1]), peaks, clock


def digests(out):
    """Returns the hashes of the files of kept documents, pairs and clusters."""
    found = {}
    for path in out.iterdir():
        if path.is_file() and path.name.startswith(("kept", "pairs", "clusters")):
            with open(path, "rb") as file:
                found[path.name] = hashlib.file_digest(file, "blake2b").hexdigest()
    return found


def number(key):
    return int(key.rsplit(b"/", 1)[1])


def kept_numbers(out, documents):
    """Returns a byte for each document: 1 if it was kept."""
    kept = bytearray(documents)
    path = next(out.glob("kept.jsonl*"))
    command = ["zstd", "-dcq", str(path)] if path.suffix == ".zst" else ["cat", str(path)]
    lines = subprocess.Popen(command, stdout=subprocess.PIPE)
    for line in lines.stdout:
        kept[number(line[7 : line.index(b'"', 7)])] = 1
    if lines.wait():
        sys.exit(f"{path} could not be read")
    return kept


def check(target, out, source, truth, documents, every):
    kept = kept_numbers(out, documents)
    pairs = missed = 0
    with open(truth, "rb") as rows:
        next(rows)
        for row in rows:
            copy, original, both, either = row.split()
            if 10 * int(both) >= 8 * int(either):
                pairs += 1
                missed += kept[number(copy)] and kept[number(original)]
    covers = {}
    with open(out / "pairs.tsv", "rb") as rows:
        for row in rows:
            fields = row.rstrip(b"\n").split(b"\t")
            if fields[0].startswith(b"http") and fields[1].startswith(b"http"):
                first, second = number(fields[0]), number(fields[1])
                covers[max(first, second)] = min(first, second)
    found = subprocess.run(
        [target / "examples/sampled", source, str(every), "0.8"], stdout=subprocess.PIPE, check=True).stdout
    near, sampled = {}, []
    for line in found.splitlines():
        fields = line.split(b"\t")
        if fields[0] == b"sampled":
            sampled = [int(field) for field in fields[1:]]
        else:
            near.setdefault(int(fields[0]), []).append(int(fields[1]))
    wrong = 0
    for document in sampled:
        earlier = [other for other in near.get(document, []) if other < document and kept[other]]
        wrong += kept[document] != (not earlier) or (bool(earlier) and covers.get(document) != min(earlier))
    print(f"    planted pairs of 0.8 or more: {pairs}, kept both: {missed}; sample of {len(sampled)} by brute force: "
          f"{sum(map(len, near.values()))} near pairs, {sum(not kept[one] for one in sampled)} removed, wrong: {wrong}", flush=True)
    return missed + wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gigabytes", type=float, default=30.0)
    parser.add_argument("--small", type=float, default=1.0)
    parser.add_argument("--memory", default="4G")
    parser.add_argument("--every", type=int, default=20_000, help="one document in this number is in the sample")
    parser.add_argument("--texts", default=str(Path(os.environ.get("CARGO_HOME", Path.home() / ".cargo")) / "registry/src"))
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--made", type=Path, metavar="DIR", help="where the documents are kept")
    parser.add_argument("--kill", action="store_true", help="kill a second run twice, resume it, compare the results")
    parser.add_argument("--kill-options", default="", metavar="OPTIONS", help="options of the run that is killed")
    given = parser.parse_args()
    target = ROOT / "target/release"
    build = ["cargo", "build", "--release", "--locked", "-p", "twindex-tools", "--example", "planted", "--example", "sampled"]
    subprocess.run(build + ([] if "TWINDEX" in os.environ else ["--bin", "twindex"]), cwd=ROOT, check=True)
    binary = os.environ.get("TWINDEX", str(target / "twindex"))
    folder = Path(tempfile.mkdtemp(prefix="twindex-proof-", dir=given.folder))
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True)
    print(f"{time.strftime('%F')}, commit {commit.stdout.strip()}, {os.cpu_count()} cores, --memory {given.memory}", flush=True)
    faults = 0
    try:
        for gigabytes in (given.small, given.gigabytes):
            source, truth, documents, text = make(target, given.texts, gigabytes, given.made or folder)
            load = os.getloadavg()[0]
            out = folder / "out"
            report, peaks, clock = dedup(binary, source, out, given.memory)
            stages = {name: round(seconds / gigabytes, 2) for name, seconds in report["stages"].items() if seconds >= 0.01}
            print(f"{gigabytes} GB, {documents} documents, {source.stat().st_size / text:.2f} bytes compressed a byte: "
                  f"{report['cpu_seconds'] / gigabytes:.2f} CPU s a GB, {clock:.0f} s by the clock, "
                  f"{peaks['memory'] / 1e9:.2f} GB anonymous, disk {peaks['disk'] / text:.2f} bytes a byte at the peak, "
                  f"kept {report.get('kept')}; {stages}; load {load:.1f} before", flush=True)
            faults += check(target, out, source, truth, documents, max(1, int(given.every * gigabytes / given.gigabytes)))
            if given.kill and gigabytes == given.gigabytes:
                whole = digests(out)
                shutil.rmtree(out)
                options = ["--resume", *shlex.split(given.kill_options)]
                before = used(folder)
                runs = [dedup(binary, source, out, given.memory, options, before, share * clock) for share in (0.2, 0.5)]
                if any(report for report, *_ in runs):
                    sys.exit("a run ended before it was killed")
                runs.append(dedup(binary, source, out, given.memory, options, before))
                same = digests(out) == whole
                faults += not same
                clocks = ", ".join(f"{run_clock:.0f}" for *_, run_clock in runs)
                disk = max(run_peaks["disk"] for _, run_peaks, _ in runs)
                memory = max(run_peaks["memory"] for _, run_peaks, _ in runs)
                print(f"    {' '.join(options)}, killed twice: runs of {clocks} s, {memory / 1e9:.2f} GB anonymous, disk "
                      f"{disk / text:.2f} bytes a byte at the peak, {'same' if same else 'OTHER'} results: {sorted(whole)}", flush=True)
            shutil.rmtree(out)
            if not given.made:
                source.unlink()
                truth.unlink()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    sys.exit(f"{faults} faults" if faults else 0)


main()
