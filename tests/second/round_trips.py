#!/usr/bin/env python3
"""Writes corpora with other libraries, lets `twindex dedup` keep a part of each, and reads that part with other
libraries. Rows must have the values, types and metadata of the input.

    TWINDEX=target/release/twindex tests/second/round_trips.py

Writers and readers that are not installed are skipped with a notice. Exits with 1 if anything differs.
"""

import base64
import datetime
import decimal
import gzip
import hashlib
import io
import os
import re
import subprocess
import sys
import tempfile
import uuid
from pathlib import Path

TWINDEX = os.environ.get("TWINDEX", "target/release/twindex")
ROWS = 60
PROFILE = "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest"
failures = []


def module(name):
    try:
        return __import__(name, fromlist=["_"])
    except ImportError:
        print(f"skipped: the Python module {name} is missing")
        return None


def text(row):
    """Returns texts: rows 2, 5, 8 and so on have the text of the row two before."""
    source = row - 2 if row % 3 == 2 else row
    return " ".join(f"w{source}x{word}" for word in range(9))


KEPT = [row for row in range(ROWS) if row % 3 != 2]


def check(what, found, wanted):
    if found != wanted:
        failures.append(what)
        print(f"DIFFERS: {what}\n  found  {str(found)[:600]}\n  wanted {str(wanted)[:600]}")


def dedup(folder, inputs, *options):
    out = folder / f"out-{inputs[0].name}"
    line = [TWINDEX, "dedup", *map(str, inputs), "-o", str(out), "-q", *options]
    done = subprocess.run(line, capture_output=True, text=True)
    if done.returncode != 0:
        failures.append(inputs[0].name)
        print(f"FAILED: {inputs[0].name}: {done.stderr}")
        return None
    return out


def columns():
    """Returns values that are easily changed by a conversion."""
    day = datetime.date(2024, 2, 29)
    return {
        "id": [f"k{row:03}" for row in range(ROWS)],
        "text": [text(row) for row in range(ROWS)],
        "whole": [(1 << 62) + row for row in range(ROWS)],
        "share": [row / 7 if row % 4 else None for row in range(ROWS)],
        "flag": [row % 2 == 0 for row in range(ROWS)],
        "day": [day + datetime.timedelta(days=row) for row in range(ROWS)],
        "when": [datetime.datetime(9999 if row % 2 else 1, 12, 31, 23, 59, 59, row) for row in range(ROWS)],
        "price": [decimal.Decimal(row * 10**15 + row).scaleb(-4) for row in range(ROWS)],
        "tags": [[f"t{row}", None] if row % 5 else [] for row in range(ROWS)],
        "where": [{"lat": row / 3, "name": f"n{row}" if row % 2 else None} for row in range(ROWS)],
        "raw": [bytes([row, 0, 255]) if row % 6 else None for row in range(ROWS)],
    }


def plain(table):
    """Decodes dictionary columns. Their dictionaries may differ, so only the values are compared."""
    for at, field in enumerate(table.schema):
        if hasattr(field.type, "value_type") and str(field.type).startswith("dictionary"):
            table = table.set_column(at, field.name, table.column(at).cast(field.type.value_type))
    return table.combine_chunks()


def compare_parquet(name, before, after, pq, polars, duckdb, exact_metadata=True):
    if after is None:
        return
    files = sorted(path.name for path in after.glob("*.parquet"))
    check(f"{name}: one file", files, ["kept.parquet"])
    after = after / "kept.parquet"
    if pq:
        old, new = pq.ParquetFile(before), pq.ParquetFile(after)
        check(f"{name}: schema", str(new.schema).split("\n", 1)[1:], str(old.schema).split("\n", 1)[1:])
        check(f"{name}: Arrow schema", new.schema_arrow.equals(old.schema_arrow, check_metadata=exact_metadata), True)
        check(f"{name}: metadata", new.metadata.metadata, old.metadata.metadata)
        check(f"{name}: groups", new.num_row_groups, old.num_row_groups)
        for number in range(min(old.num_row_groups, new.num_row_groups)):
            a, b = old.metadata.row_group(number), new.metadata.row_group(number)
            check(f"{name}: order of group {number}", b.sorting_columns, a.sorting_columns)
            codecs = [[group.column(at).compression for at in range(group.num_columns)] for group in (b, a)]
            check(f"{name}: codecs of group {number}", *codecs)
        check(f"{name}: rows by pyarrow", plain(new.read()).equals(plain(old.read().take(KEPT))), True)
    if polars:
        try:
            old = polars.read_parquet(before)
        except BaseException as error:  # a panic of polars is not an Exception
            print(f"skipped: {name} by polars, which does not read the input: {str(error)[:100]}")
        else:
            new = polars.read_parquet(after)
            check(f"{name}: schema by polars", new.schema, old.schema)
            check(f"{name}: rows by polars", new.equals(old[KEPT]), True)
    if duckdb:
        described = [duckdb.sql(f"describe select * from '{path}'").fetchall() for path in (after, before)]
        check(f"{name}: types by duckdb", *described)
        rows = duckdb.sql(f"select * from '{before}'").fetchall()
        check(f"{name}: rows by duckdb", duckdb.sql(f"select * from '{after}'").fetchall(), [rows[row] for row in KEPT])


def parquet(folder, pa, pq, polars, duckdb, pandas, fastparquet):
    if pa:
        values = columns()
        types = {
            "when": pa.timestamp("us", tz="Europe/Berlin"),
            "price": pa.decimal128(30, 4),
            "tags": pa.large_list(pa.string()),
            "share": pa.float32(),
            "text": pa.large_string(),
        }
        arrays = {name: pa.array(column, types.get(name)) for name, column in values.items()}
        arrays["kind"] = pa.array([f"kind {row % 3}" for row in range(ROWS)]).dictionary_encode()
        arrays["uuid"] = pa.array([uuid.UUID(int=row).bytes for row in range(ROWS)], pa.uuid())
        arrays["pairs"] = pa.array([[("a", row), ("b", None)] for row in range(ROWS)], pa.map_(pa.string(), pa.int16()))
        arrays["clock"] = pa.array([row * 10**9 for row in range(ROWS)], pa.time64("ns"))
        table = pa.table(arrays).replace_schema_metadata({"owner": "somebody", "huggingface": '{"info": 1}'})
        for name, options in {
            "arrow.parquet": {"compression": {"text": "zstd", "tags.list.element": "gzip"}},
            "sorted.parquet": {"sorting_columns": [pq.SortingColumn(0)], "compression": "snappy"},
            "v2.parquet": {"data_page_version": "2.0", "use_dictionary": False, "compression": "brotli"},
        }.items():
            path = folder / name
            pq.write_table(table, path, row_group_size=20, **options)
            compare_parquet(name, path, dedup(folder, [path]), pq, polars, duckdb)
        path = folder / "int96.parquet"
        pq.write_table(pa.table({name: pa.array(values[name]) for name in ("id", "text", "when")}), path,
                       use_deprecated_int96_timestamps=True, store_schema=False)
        out = dedup(folder, [path])
        if out and duckdb:
            rows = duckdb.sql(f"select * from '{path}'").fetchall()
            check("int96 by duckdb", duckdb.sql(f"select * from '{out}/kept.parquet'").fetchall(), [rows[row] for row in KEPT])
            check("int96: type", pq.ParquetFile(out / "kept.parquet").schema.column(2).physical_type, "INT96")
    if polars:
        path = folder / "polars.parquet"
        frame = polars.DataFrame(columns(), schema_overrides={"price": polars.Decimal(30, 4)})
        frame = frame.with_columns(kind=polars.col("flag").cast(polars.String).cast(polars.Categorical))
        frame.write_parquet(path, row_group_size=20)
        compare_parquet("polars.parquet", path, dedup(folder, [path]), pq, polars, duckdb)
    if duckdb:
        path = folder / "duckdb.parquet"
        duckdb.sql(f"""
            copy (select 'k' || i as id, list_aggregate([('w' || (case when i % 3 = 2 then i - 2 else i end) || 'x' || j)
                          for j in range(9)], 'string_agg', ' ') as text,
                         uuid() as u, ('{{"a": ' || i || '}}')::json as j, i::utinyint as small, interval (i) day as span,
                         map {{'a': i}} as m, make_timestamp_ns(i) as t, (i / 3)::decimal(18, 3) as d, i::hugeint as huge
                  from range({ROWS}) as rows(i))
            to '{path}' (format parquet, kv_metadata {{owner: 'somebody'}}, compression zstd)""")
        compare_parquet("duckdb.parquet", path, dedup(folder, [path]), pq, polars, duckdb)
    if pandas and pa:
        path = folder / "pandas.parquet"
        frame = pandas.DataFrame({"id": columns()["id"], "text": columns()["text"], "kind": pandas.Categorical(["a", "b", "c"] * 20)},
                                 index=[f"row {row}" for row in range(ROWS)])
        frame.to_parquet(path)
        out = dedup(folder, [path])
        compare_parquet("pandas.parquet", path, out, pq, polars, duckdb)
        if out:
            kept, wanted = (of.astype({"kind": object}) for of in (pandas.read_parquet(out / "kept.parquet"), frame.iloc[KEPT]))
            check("pandas: frame", kept.equals(wanted), True)
        shards = []
        for number in range(3):
            shards.append(folder / f"shard-{number}.parquet")
            frame[["id", "text"]].iloc[number * 20:][:20].reset_index(drop=True).to_parquet(shards[-1])
        out = dedup(folder, shards)
        if out:
            check("shards: one file", sorted(path.name for path in out.glob("*.parquet")), ["kept.parquet"])
            kept = pandas.read_parquet(out / "kept.parquet")
            check("shards: frame", kept.equals(frame[["id", "text"]].iloc[KEPT].reset_index(drop=True)), True)
    if fastparquet and pandas:
        path = folder / "fast.parquet"
        frame = pandas.DataFrame({"id": columns()["id"], "text": columns()["text"], "n": range(ROWS)}).astype({"id": object, "text": object})
        fastparquet.write(str(path), frame, compression="GZIP", row_group_offsets=20, write_index=False)
        out = dedup(folder, [path])
        compare_parquet("fast.parquet", path, out, pq, polars, duckdb)
        if out:
            kept = fastparquet.ParquetFile(str(out / "kept.parquet")).to_pandas()
            check("fastparquet: rows", kept["n"].tolist(), KEPT)


def lines(folder, polars, duckdb, pandas):
    """Tables and JSON objects: the kept lines must have the same bytes."""
    plain = {name: columns()[name] for name in ("id", "text", "share", "flag")}
    plain["note"] = [f'a "quoted", word {row}' for row in range(ROWS)]
    written = {}
    if pandas:
        frame = pandas.DataFrame(plain)
        written["pandas.jsonl"] = frame.to_json(orient="records", lines=True, force_ascii=False).encode()
        written["pandas.csv"] = frame.to_csv(index=False, lineterminator="\r\n").encode("utf-8-sig")
        written["pandas.tsv"] = frame.drop(columns="note").to_csv(index=False, sep="\t").encode()
    if polars:
        frame = polars.DataFrame(plain)
        written["polars.jsonl"] = frame.write_ndjson().encode()
        written["polars.csv"] = frame.write_csv(quote_style="always").encode()
    if duckdb and pandas:
        frame = pandas.DataFrame(plain)
        for name, options in {"duckdb.jsonl": "format json", "duckdb.csv": "header, delimiter ','"}.items():
            duckdb.sql(f"copy (select * from frame) to '{folder / name}' ({options})")
            written[name] = (folder / name).read_bytes()
    for name, content in written.items():
        path = folder / name
        path.write_bytes(content)
        out = dedup(folder, [path])
        if out is None:
            continue
        rows = content.splitlines(keepends=True)
        head = 0 if name.endswith("jsonl") else 1
        wanted = b"".join(rows[:head] + [rows[head + row] for row in KEPT])
        check(f"{name}: bytes", (out / f"kept.{name.rsplit('.')[-1]}").read_bytes(), wanted)


def archives(folder, warcio, brotli):
    if not warcio:
        return
    from warcio.archiveiterator import ArchiveIterator
    from warcio.statusandheaders import StatusAndHeaders
    from warcio.warcwriter import WARCWriter
    import zlib

    def deflated(content):
        packer = zlib.compressobj(wbits=-15)
        return packer.compress(content) + packer.flush()

    for name in ("plain.warc", "packed.warc.gz"):
        buffer = io.BytesIO()
        writer = WARCWriter(buffer, gzip=name.endswith("gz"))
        writer.write_record(writer.create_warcinfo_record(name, {"software": "round-trips"}))
        for row in range(ROWS):
            content = f"<!doctype html><title>{text(row)}</title>".encode()
            headers = [("Content-Type", "text/html; charset=utf-8")]
            if row % 4 == 1:
                content, headers = deflated(content), headers + [("Content-Encoding", "deflate")]
            elif row % 4 == 2 and brotli:
                content, headers = brotli.compress(content), headers + [("Content-Encoding", "br")]
            elif row % 4 == 3:
                headers = []
            http = StatusAndHeaders("200 OK", headers, protocol="HTTP/1.1")
            uri = f"http://s.example/{row}"
            writer.write_record(writer.create_warc_record(uri, "request", http_headers=StatusAndHeaders("GET / HTTP/1.1", [], is_http_request=True)))
            writer.write_record(writer.create_warc_record(uri, "response", payload=io.BytesIO(content), http_headers=http))
            if row % 10 == 0:
                writer.write_record(writer.create_revisit_record(uri + "?", "sha1:A", uri, "2024-01-01T00:00:00Z"))
        path = folder / name
        path.write_bytes(buffer.getvalue())
        out = dedup(folder, [path])
        if out is None:
            continue

        def read(file):
            found = {}
            with open(file, "rb") as stream:
                for record in ArchiveIterator(stream):
                    if record.rec_type == "response":
                        head = record.rec_headers
                        found[head["WARC-Target-URI"]] = (head.headers, record.http_headers.headers, record.raw_stream.read())
            return found

        before, after = read(path), read(out / "kept.warc")
        check(f"{name}: records by warcio", after, {uri: before[uri] for uri in (f"http://s.example/{row}" for row in KEPT)})


def digest(payload):
    return "sha1:" + base64.b32encode(hashlib.sha1(payload).digest()).decode()


def revisits(folder, warcio):
    """Revisit records, read by warcio: one for each copy of a payload, with a reference to the original."""
    if not warcio:
        return
    from warcio.archiveiterator import ArchiveIterator
    from warcio.statusandheaders import StatusAndHeaders
    from warcio.warcwriter import WARCWriter

    for name, states in (("stated.warc", True), ("silent.warc", False)):
        path = folder / name
        with open(path, "wb") as stream:
            writer = WARCWriter(stream, gzip=False)
            for row in range(ROWS):
                # Rows 2, 5 and so on are copies; every other copy has different markup, and so another payload.
                tag = "div" if row % 6 == 5 else "p"
                content = f"<!doctype html><{tag}>{text(row)}</{tag}>".encode()
                headers = [("Content-Type", "text/html"), ("X-Row", str(row))]
                http = StatusAndHeaders("200 OK", headers, protocol="HTTP/1.1")
                record = writer.create_warc_record(
                    f"http://s.example/{row}", "response", payload=io.BytesIO(content), http_headers=http,
                    warc_headers_dict={"WARC-Date": f"2026-01-01T00:00:{row:02}Z"},
                )
                writer.write_record(record)
        if not states:
            path.write_bytes(re.sub(rb"WARC-(Payload|Block)-Digest: [^\r]*\r\n", b"", path.read_bytes()))
        out = dedup(folder, [path], "--also revisits")
        if out is None:
            continue
        before = {}
        with open(path, "rb") as stream:
            for record in ArchiveIterator(stream):
                head = record.rec_headers
                row = int(record.http_headers["X-Row"])
                before[row] = (head["WARC-Record-ID"], head["WARC-Target-URI"], head["WARC-Date"], record.raw_stream.read())
        wanted, found = [], []
        for row in (row for row in range(ROWS) if row % 6 == 2):
            kept, own = before[row - 2], before[row]
            wanted.append((own[1], own[2], kept[0], kept[1], kept[2], digest(own[3]), PROFILE, str(row), b"", "1.1"))
        with open(out / "revisits.warc", "rb") as stream:
            for record in ArchiveIterator(stream, check_digests="raise"):
                head = record.rec_headers
                fields = ["WARC-Target-URI", "WARC-Date", "WARC-Refers-To", "WARC-Refers-To-Target-URI"]
                fields += ["WARC-Refers-To-Date", "WARC-Payload-Digest", "WARC-Profile"]
                assert record.rec_type == "revisit", record.rec_type
                rest = (record.http_headers["X-Row"], record.raw_stream.read(), head.protocol.split("/")[1])
                found.append(tuple(head[field] for field in fields) + rest)
        check(f"{name}: revisits by warcio", found, wanted)


def arcs(folder, warcio):
    """ARC files: warcio must find the same pages before and after."""
    if not warcio:
        return
    from warcio.archiveiterator import ArchiveIterator

    def record(url, kind, content):
        return f"{url} 192.0.2.1 20260131120000 {kind} {len(content)}\n".encode() + content + b"\n"

    names = b"URL IP-address Archive-date Content-type Archive-length\n"
    members = [record("filedesc://a.arc", "text/plain", b"1 0 Maker\n" + names + b"\n")]
    for row in range(ROWS):
        page = f"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<p>{text(row)}</p>".encode()
        members.append(record(f"http://s.example/{row}", "text/html", page))
    for name, pack in (("plain.arc", lambda member: member), ("packed.arc.gz", gzip.compress)):
        path = folder / name
        path.write_bytes(b"".join(map(pack, members)))
        out = dedup(folder, [path])
        if out is None:
            continue

        def read(file):
            with open(file, "rb") as stream:
                records = ArchiveIterator(stream, arc2warc=True)
                pages = ((record.rec_headers["WARC-Target-URI"], record.raw_stream.read()) for record in records if record.rec_type == "response")
                return dict(pages)

        before = read(path)
        check(f"{name}: pages by warcio", len(before), ROWS)
        check(f"{name}: kept by warcio", read(out / "kept.arc"), {uri: before[uri] for uri in (f"http://s.example/{row}" for row in KEPT)})


def main():
    pa, pandas, polars, duckdb = map(module, ("pyarrow", "pandas", "polars", "duckdb"))
    pq = module("pyarrow.parquet") if pa else None
    fastparquet, warcio, brotli = map(module, ("fastparquet", "warcio", "brotli"))
    with tempfile.TemporaryDirectory() as folder:
        parquet(Path(folder), pa, pq, polars, duckdb, pandas, fastparquet)
        lines(Path(folder), polars, duckdb, pandas)
        archives(Path(folder), warcio, brotli)
        revisits(Path(folder), warcio)
        arcs(Path(folder), warcio)
    print(f"{len(failures)} differences")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
