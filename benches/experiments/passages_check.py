#!/usr/bin/env python3
"""Compares `twindex passages` with a suffix array, and prints a table of its cost by input size.

  scripts/experiment passages_check [--megabytes 100,1000] [--compare 100] [--min-words 50] [--memory 1G] [--threads 1]
                         [--index] [--queries N] [--altered 0.1,0,0.05,0.2] [--input FILE.jsonl] [--folder DIR]

Generates documents with planted near-duplicates (tools/examples/planted.rs: 15 % are copies with up to one word in 25
replaced), or takes those of --input, and runs the command on prefixes of them. For inputs of up to --compare megabytes,
the spans must equal those
computed with a suffix array of the crate divsufsort (crates/corpus/examples/suffix_spans.rs), byte for byte; its time
and memory are printed, too. The table has for each size: megabytes of text, CPU seconds, MB per CPU second, wall-clock
seconds, the peak anonymous memory relative to the limit, temporary and final bytes on disk relative to the input, and
the number of spans; with --index, also the bytes of an index of passages per byte of text.

With --queries N, N runs of 50 to 200 words of the documents are searched in an index of the largest size with
--min-words 12, once for each probability in --altered: each word is replaced with this probability by a word that no
document has. Prints, by probability and by length, how many queries keep an unaltered run of 12 words, and how many find
the document that they were taken from. All queries that keep a run must find it. Every row must be a run of at least 12
words that is the same, word by word, in the query and in the listed document. Then prints the CPU microseconds per query
without the start-up of the command, the bytes of the index, and the temporary disk space used for building and for
queries.

The load of the machine is printed before each run. Disk use is measured by the free bytes of the file system, so nothing
else should write to it. Needs Linux. PROFILE names a cargo profile other than `release`, and TWINDEX another binary.
"""

import argparse
import json
import os
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from measuring import size_of, used, watched

ROOT = Path(__file__).resolve().parents[2]
# Number of words of the shortest passage that queries find.
MIN_WORDS = 12


def run(command, folder, out=subprocess.PIPE):
    """Runs a command. Returns its output, its CPU seconds, and its peaks of anonymous memory and disk use."""
    before, spent = used(folder), resource.getrusage(resource.RUSAGE_CHILDREN)
    began = time.monotonic()
    process = subprocess.Popen([str(part) for part in command], stdout=out, text=True)
    printed, peaks = watched(process, folder, before)
    if process.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}: ended with {process.returncode}")
    now = resource.getrusage(resource.RUSAGE_CHILDREN)
    peaks["cpu"] = now.ru_utime + now.ru_stime - spent.ru_utime - spent.ru_stime
    peaks["clock"] = time.monotonic() - began
    return printed, peaks


def beginning(everything, part, megabytes, is_last):
    """Returns a file with complete lines up to a size, and its length. The largest size truncates the full file in
    place."""
    with open(everything, "rb") as lines:
        lines.seek(int(megabytes * 1e6))
        lines.readline()
        size = min(lines.tell(), os.path.getsize(everything))
        if is_last:
            os.truncate(everything, size)
            return everything, size
        lines.seek(0)
        with open(part, "wb") as out:
            while out.tell() < size:
                out.write(lines.read(min(1 << 20, size - out.tell())))
    return part, size


def bytes_of(folder):
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def sampled(source, count):
    """Returns a uniform random sample of documents."""
    chance = random.Random(11)
    lines = []
    with open(source, "rb") as documents:
        for number, line in enumerate(documents):
            if len(lines) < count:
                lines.append(line)
            elif (at := chance.randrange(number + 1)) < count:
                lines[at] = line
    return [json.loads(line) for line in lines]


def altered_runs(documents, share, out):
    """Writes a query for each document. Returns by key: its words, its document, and whether it keeps an unaltered
    run."""
    chance = random.Random(f"altered {share}")
    asked = {}
    with open(out, "w") as lines:
        for number, document in enumerate(documents):
            words = document["text"].split()
            length = min(len(words), chance.randrange(50, 201))
            start = chance.randrange(len(words) - length + 1)
            run = longest = 0
            query = words[start : start + length]
            for at in range(length):
                if chance.random() < share:
                    query[at], run = f"altered{number}x{at}", 0
                else:
                    run += 1
                longest = max(longest, run)
            asked[str(number)] = (" ".join(query), document["id"], longest >= MIN_WORDS)
            lines.write(json.dumps({"id": str(number), "text": " ".join(query)}) + "\n")
    return asked


def unlike(rows, asked, source):
    """Returns the number of rows that are not the same MIN_WORDS or more words in the query and in the document. The
    generated texts are ASCII, so byte offsets equal character offsets."""
    by_document = {}
    for row in rows:
        by_document.setdefault(row[1], []).append(row)
    wrong, found = 0, set()
    with open(source, "rb") as lines:
        for line in lines:
            # The key is the first field, so that only documents in answers need to be parsed.
            key = line.split(b'"', 4)[3].decode()
            if key not in by_document:
                continue
            found.add(key)
            text = json.loads(line)["text"]
            for query, _, start, end, document_start, document_end, words in by_document[key]:
                ours = asked[query][0][int(start) : int(end)].split(" ")
                theirs = text[int(document_start) : int(document_end)].split(" ")
                wrong += ours != theirs or len(ours) != int(words) or len(ours) < MIN_WORDS
    return wrong + sum(len(rows) for key, rows in by_document.items() if key not in found)


def queries(binary, source, folder, count, shares, memory):
    """Searches an index for altered runs of words from the documents, and prints the results."""
    index, out = folder / "queries.psg", folder / "indexed"
    build = [binary, "passages", source, "-o", out, "--min-words", MIN_WORDS, "--index", index]
    load = os.getloadavg()[0]
    _, built = run([*build, "--memory", memory, "--threads", "1", "--json", "-q"], folder)
    size, written = bytes_of(index), os.path.getsize(source)
    temporary = max(0, built["disk"] - size - bytes_of(out))
    print(
        f"index of --min-words {MIN_WORDS}: {size / 1e6:.0f} MB of {written / 1e6:.0f} MB of input, made in {built['cpu']:.1f} CPU s, "
        f"{built['memory'] / size_of(memory):.2f} of --memory {memory}, {temporary / 1e6:.0f} MB of temporary disk "
        f"({temporary / written:.2f} of the input); load {load:.1f} before",
        flush=True,
    )
    shutil.rmtree(out)
    documents = sampled(source, count)
    lacking = wrong = 0
    print("altered   words  queries  keep a run  found  of those that keep  of all  others found", flush=True)
    for share in shares:
        asked = altered_runs(documents, share, folder / "queries.jsonl")
        with open(folder / "one.jsonl", "w") as one, open(folder / "queries.jsonl") as all_of_them:
            one.write(all_of_them.readline())
        command = [binary, "passages", "query", index]
        _, start = run([*command, folder / "one.jsonl", "--threads", "1", "-q"], folder)
        load = os.getloadavg()[0]
        printed, cost = run([*command, folder / "queries.jsonl", "--threads", "1", "-q"], folder)
        rows = [row.split("\t") for row in printed.splitlines()[1:]]
        found = {row[0] for row in rows if asked[row[0]][1] == row[1]}
        for shortest, longest in [(50, 99), (100, 149), (150, 200), (50, 200)]:
            of_length = {key for key, one in asked.items() if shortest <= len(one[0].split()) <= longest}
            keep = {key for key in of_length if asked[key][2]}
            there = of_length & found
            lacking += len(keep - there) if (shortest, longest) == (50, 200) else 0
            print(
                f"{share:7.2f} {shortest:3}-{longest:3} {len(of_length):8} {len(keep):11} {len(there):6} "
                f"{100 * len(keep & there) / max(1, len(keep)):17.2f} % {100 * len(there) / max(1, len(of_length)):6.2f} % "
                f"{len(there - keep):12}"
            )
        bad = unlike(rows, asked, source)
        wrong += bad
        print(
            f"        {len(rows)} rows, {bad} of them not the same {MIN_WORDS} words or more; "
            f"{1e6 * max(0, cost['cpu'] - start['cpu']) / count:.0f} CPU microseconds a query, {1e3 * start['cpu']:.0f} ms to start, "
            f"{cost['memory'] / 1e6:.0f} MB of anonymous memory, {max(0, cost['disk']) / 1e6:.1f} MB of temporary disk; load {load:.1f} before",
            flush=True,
        )
    if lacking or wrong:
        sys.exit(f"{lacking} queries that keep a run did not find their document; {wrong} rows are not the same words")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", default="100,1000")
    parser.add_argument("--compare", type=float, default=100)
    parser.add_argument("--min-words", type=int, default=50)
    parser.add_argument("--memory", default="1G")
    parser.add_argument("--threads", default="1")
    parser.add_argument("--index", action="store_true")
    parser.add_argument("--queries", type=int, default=0)
    parser.add_argument("--altered", default="0.1,0,0.05,0.2")
    parser.add_argument("--input", type=Path)
    parser.add_argument("--folder", type=Path)
    given = parser.parse_args()
    if given.input and given.queries:
        parser.error("--queries needs generated documents, whose words are separated by spaces: leave out --input")
    profile = os.environ.get("PROFILE", "release")
    target = ROOT / "target" / ("debug" if profile == "dev" else profile)
    binary = os.environ.get("TWINDEX", str(target / "twindex"))
    # Builds both packages together, so that they share the engine's features and its build.
    build = ["cargo", "build", "--profile", profile, "--locked", "-p", "twindex-tools", "-p", "twindex-corpus"]
    build += ["--example", "planted", "--example", "suffix_spans"]
    subprocess.run(build + ([] if "TWINDEX" in os.environ else ["--bin", "twindex"]), cwd=ROOT, check=True)
    folder = Path(tempfile.mkdtemp(prefix="twindex-passages-", dir=given.folder))
    sizes = sorted(float(size) for size in given.megabytes.split(","))
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True)
    print(f"{time.strftime('%F')}, commit {commit.stdout.strip()}, {os.cpu_count()} cores, profile {profile}, --min-words {given.min_words}")
    print("    MB  CPU s  MB/CPU s  clock  peak/bound  disk/input  spans", flush=True)
    try:
        everything = folder / "documents.jsonl"
        if given.input:
            shutil.copyfile(given.input, everything)
        else:
            with open(everything, "wb") as out:
                planted = [target / "examples/planted", str(int(sizes[-1] * 1e6 / 2200) + 1000), "300", "0.15"]
                subprocess.run(planted, stdout=out, check=True)
        for size in sizes:
            source, written = beginning(everything, folder / "part.jsonl", size, size == sizes[-1])
            options = ["--min-words", given.min_words, "--memory", given.memory, "--threads", given.threads, "--json", "-q"]
            if given.index:
                shutil.rmtree(folder / "all.psg", ignore_errors=True)
                options += ["--index", folder / "all.psg"]
            load = os.getloadavg()[0]
            printed, cost = run([binary, "passages", source, "-o", folder / "out", "--force", *options], folder)
            report = json.loads(printed.splitlines()[-1])
            text = report["text_bytes"] / 1e6
            line = (
                f"{text:6.0f} {cost['cpu']:6.1f} {text / cost['cpu']:9.1f} {cost['clock']:6.1f} "
                f"{cost['memory'] / size_of(given.memory):11.2f} {cost['disk'] / written:11.2f} {report['spans']:6}"
            )
            if given.index:
                line += f", index {sum(file.stat().st_size for file in (folder / 'all.psg').iterdir()) / text / 1e6:.2f} of the text"
            print(f"{line}; load {load:.1f} before", flush=True)
            if size <= given.compare:
                table = folder / "suffixes.tsv"
                with open(table, "w") as out:
                    command = [target / "examples/suffix_spans", source, given.min_words]
                    _, cost = run(command, folder, out)
                if table.read_bytes() != (folder / "out/spans.tsv").read_bytes():
                    sys.exit("other spans than those of the suffix array")
                print(
                    f"       the same spans, byte for byte, by a suffix array: {cost['cpu']:.1f} CPU s, "
                    f"{text / cost['cpu']:.1f} MB/CPU s, {cost['memory'] / 1e6:.0f} MB of memory",
                    flush=True,
                )
        if given.queries:
            shutil.rmtree(folder / "out", ignore_errors=True)
            shares = [float(share) for share in given.altered.split(",")]
            queries(binary, source, folder, given.queries, shares, given.memory)
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
