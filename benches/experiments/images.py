#!/usr/bin/env python3
"""Finds altered copies of images by their hashes: distances of copies and of other images, groups and what is in them.

  scripts/experiment images FOLDER...

Reads all PNG, JPEG and WebP files of the folders that are 64 pixels wide and high or more. Files of one name in folders that
differ only in a size (64x64, 128x128, 1920x1080), or whose names are such sizes, are one picture. Makes six copies of each
file: half and a quarter of the width, JPEG of quality 40, 2 % and 10 % cut off each side, grey. Computes a PDQ hash (pdqhash)
and a dHash of 64 and of 256 bits (ImageHash) of each, and prints for each hash the distances of copies from their original and
of pictures from each other. Then it runs `twindex dedup --near within:RADIUS --keep max:pixels` on the table of hashes, and
prints the groups: how many have several pictures, how many pictures are in several groups, and whether the kept file is the
largest. TWINDEX names a binary to use in place of the one that `cargo build --release` makes.
"""

import argparse
import csv
import io
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from multiprocessing import Pool
from pathlib import Path

from measuring import ROOT, tool

SIZE = re.compile(r"\d+x\d+(@\d+)?|vertical_\d+x\d+|scalable")
LEAST = 64
# The hashes with the radii at which people use them.
HASHES = {"pdq": (256, 31), "dhash": (64, 6), "dhash256": (256, 31)}


def picture_of(path):
    """Returns the name of the picture in a file: its path without sizes and without the suffix."""
    parts = [part for part in path.with_suffix("").parts if not SIZE.fullmatch(part)]
    return "/".join(parts[-4:])


def copies(image):
    """Yields altered copies of an image, each with its kind."""
    from PIL import Image

    width, height = image.size
    yield "original", image
    for name, part in (("half", 2), ("quarter", 4)):
        yield name, image.resize((max(1, width // part), max(1, height // part)), Image.Resampling.LANCZOS)
    packed = io.BytesIO()
    image.save(packed, "JPEG", quality=40)
    yield "jpeg 40", Image.open(packed).convert("RGB")
    for name, share in (("cut 2 %", 0.02), ("cut 10 %", 0.1)):
        x, y = int(width * share), int(height * share)
        yield name, image.crop((x, y, width - x, height - y))
    yield "grey", image.convert("L").convert("RGB")


def hashes_of(path):
    """Returns a row for each copy of a file: kind, pixels and hashes as hexadecimal digits; none for small images."""
    import imagehash
    import numpy
    import pdqhash
    from PIL import Image

    with Image.open(path) as opened:
        if min(opened.size) < LEAST:
            return path, []
        image = opened.convert("RGBA")
    white = Image.new("RGBA", image.size, "white")
    image = Image.alpha_composite(white, image).convert("RGB")
    rows = []
    for kind, copy in copies(image):
        pdq, _ = pdqhash.compute(numpy.asarray(copy))
        row = {"kind": kind, "pixels": copy.size[0] * copy.size[1], "pdq": numpy.packbits(pdq).tobytes().hex()}
        row["dhash"], row["dhash256"] = (str(imagehash.dhash(copy, size)) for size in (8, 16))
        rows.append(row)
    return path, rows


def quantiles(distances):
    distances = sorted(distances)
    return [distances[min(len(distances) - 1, int(len(distances) * share))] for share in (0.5, 0.9, 0.99)]


def distance(one, other):
    return (int(one, 16) ^ int(other, 16)).bit_count()


def groups_of(twindex, table, name, radius, work):
    """Runs the command. Returns its groups as lists of keys, and the kept keys."""
    out = work / name
    field = f"hex:{name}"
    subprocess.run([twindex, "dedup", table, "--out", out, "--id-field", "key", "--fingerprint-field", field,
                    "--near", f"within:{radius}", "--keep", "max:pixels", "--quiet"], check=True)
    with open(next(out.glob("kept.csv")), newline="", encoding="utf-8") as rows:
        kept = {row["key"] for row in csv.DictReader(rows)}
    groups = {}
    with open(out / "clusters.tsv", encoding="utf-8") as lines:
        next(lines)
        for line in lines:
            key, cluster = line.rstrip("\n").split("\t")[:2]
            groups.setdefault(cluster, []).append(key)
    return [group for group in groups.values() if len(group) > 1], kept


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", type=Path)
    parser.add_argument("--in-environment", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if not given.folders:
        parser.error("expected folders with images")
    if not given.in_environment:
        made = [ROOT / "scripts/python", "env", "images", "pdqhash==0.2.7", "ImageHash==4.3.2", "Pillow"]
        environment = subprocess.run(made, check=True, capture_output=True, text=True).stdout.strip()
        python = f"{environment}/bin/python"
        os.execv(python, [python, "-B", __file__, "--in-environment", *map(str, given.folders)])
    files = sorted(path for folder in given.folders for path in folder.rglob("*")
                   if path.suffix.lower() in (".png", ".jpg", ".jpeg", ".webp") and not path.is_symlink())
    rows = []
    with Pool() as pool:
        for path, made in pool.imap(hashes_of, files, 16):
            rows += [{"key": f"{path} {row['kind']}", "picture": picture_of(path), "file": str(path), **row} for row in made]
    originals = {row["file"]: row for row in rows if row["kind"] == "original"}
    if not originals:
        sys.exit("found no image of 64 pixels and more")
    print(f"{len(originals)} files of {len({row['picture'] for row in rows})} pictures, {len(rows)} hashes")
    firsts = {row["picture"]: row for row in originals.values()}.values()
    by_key, twindex = {row["key"]: row for row in rows}, tool()
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        table = work / "hashes.csv"
        with open(table, "w", newline="", encoding="utf-8") as out:
            writer = csv.DictWriter(out, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
        for name, (bits, radius) in HASHES.items():
            print(f"{name}, {bits} bits, within {radius}")
            for kind in dict.fromkeys(row["kind"] for row in rows if row["kind"] != "original"):
                far = [distance(row[name], originals[row["file"]][name]) for row in rows if row["kind"] == kind]
                near = sum(one <= radius for one in far) / len(far)
                print(f"  {kind:10} distance 50, 90, 99 %: {quantiles(far)}, near {near:.1%}")
            sample = list(firsts)[:1000]
            other = [distance(a[name], b[name]) for at, a in enumerate(sample) for b in sample[:at]]
            print(f"  other pictures: {len(other):,} pairs, {sum(one <= radius for one in other):,} near, least {min(other, default=0)}")
            groups, kept = groups_of(twindex, table, name, radius, work)
            mixed = [group for group in groups if len({by_key[key]["picture"] for key in group}) > 1]
            of_picture = Counter(by_key[key]["picture"] for key in kept)
            several = sum(1 for count in of_picture.values() if count > 1)
            print(f"  {len(kept)} kept; {len(groups)} groups, {len(mixed)} with several pictures, the largest of "
                  f"{max(map(len, groups), default=0)} files; {several} pictures kept more than once")


if __name__ == "__main__":
    main()
