#!/usr/bin/env python3
"""Converts JSONL documents to WET files as in Common Crawl: one gzip member per record, with a warcinfo record first.

    scripts/experiment make_wet IN.jsonl[.gz] ... -o OUT.wet.gz [--records N] [--id-field id] [--text-field text]

A document's key becomes its address, with the prefix `http://wet.example/` if it is not a URL. With --records N, each
file has at most N records: OUT.wet.gz, OUT-2.wet.gz and so on. All times are equal, so that the same documents give the
same bytes. Needs only Python's standard library.
"""
import argparse
import gzip
import json
import os
import sys
import uuid

DATE = "2000-01-01T00:00:00Z"
NAMESPACE = uuid.UUID("00000000-0000-0000-0000-000000000000")


def record(head, content):
    lines = ["WARC/1.0", *(f"{name}: {value}" for name, value in head), f"Content-Length: {len(content)}", "", ""]
    whole = "\r\n".join(lines).encode() + content + b"\r\n\r\n"
    return gzip.compress(whole, 6, mtime=0)


def urn(name):
    return f"<urn:uuid:{uuid.uuid5(NAMESPACE, name)}>"


def info(name):
    head = [("WARC-Type", "warcinfo"), ("WARC-Date", DATE), ("WARC-Filename", name), ("WARC-Record-ID", urn(name)),
            ("Content-Type", "application/warc-fields")]
    return record(head, b"Software-Info: make-wet\r\n")


def conversion(key, text):
    uri = key if "://" in key else "http://wet.example/" + key
    uri = uri.replace("\r", "%0D").replace("\n", "%0A")
    head = [("WARC-Type", "conversion"), ("WARC-Target-URI", uri), ("WARC-Date", DATE), ("WARC-Record-ID", urn(uri)),
            ("Content-Type", "text/plain")]
    return record(head, text.encode("utf-8", "replace"))


def name_of(out, number):
    if number == 1:
        return out
    stem, dot, rest = out.partition(".wet")
    return f"{stem}-{number}{dot}{rest}"


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("inputs", nargs="+")
    options.add_argument("-o", "--out", required=True)
    options.add_argument("--records", type=int, default=0)
    options.add_argument("--id-field", default="id")
    options.add_argument("--text-field", default="text")
    options = options.parse_args()
    made = []
    try:
        write(options, made)
    except BaseException as error:
        # Removes incomplete files.
        for name in made:
            os.remove(name)
        if isinstance(error, FileExistsError):
            sys.exit(f"{error.filename}: already exists; choose another name")
        if isinstance(error, OSError):
            sys.exit(f"{error.filename or options.out}: {error.strerror or error}")
        raise


def write(options, made):
    out, records = None, 0
    for path in options.inputs:
        source = gzip.open(path, "rb") if path.endswith(".gz") else open(path, "rb")
        for number, line in enumerate(source, 1):
            if not line.strip():
                continue
            try:
                document = json.loads(line)
            except ValueError as error:
                sys.exit(f"{path}:{number}: no JSON: {error}")
            for field in (options.id_field, options.text_field):
                if not isinstance(document, dict) or field not in document:
                    there = ", ".join(document) if isinstance(document, dict) else type(document).__name__
                    sys.exit(f"{path}:{number}: no field {field!r}; there is {there} (--id-field, --text-field)")
            if out is None or options.records and records == options.records:
                records = 0
                if out is not None:
                    out.close()
                name = name_of(options.out, len(made) + 1)
                out = open(name, "xb")
                made.append(name)
                out.write(info(name.rpartition("/")[2]))
            out.write(conversion(str(document[options.id_field]), document[options.text_field]))
            records += 1
    if out is None:
        sys.exit("no document in the input; nothing was written")
    out.close()


main()
