"""Deduplicates Arrow files and folders of tables that other programs wrote, and compares with what these programs read."""

import json
import os
import shutil
import subprocess

import pyarrow as pa
import pyarrow.dataset
import pyarrow.feather
import pyarrow.ipc
import pyarrow.parquet
import pytest


def run(*arguments):
    command = os.environ.get("TWINDEX") or shutil.which("twindex")
    if command is None:
        pytest.skip("no command: name it in TWINDEX")
    done = subprocess.run([command, *map(str, arguments)], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return done.stdout


def text(row):
    return " ".join(f"w{(row // 2 * 7919 + at * at) % 5003}" for at in range(30))


def table(rows):
    of_rows = range(rows)
    return pa.table(
        {
            "id": [f"k{row}" for row in of_rows],
            "text": pa.array([text(row) for row in of_rows], pa.large_string()),
            "kind": pa.array(["ab"[row % 2] for row in of_rows]).dictionary_encode(),
            "view": pa.array([f"of row {row}, in more than 12 bytes" for row in of_rows], pa.string_view()),
            "tags": pa.array([["x", None, f"t{row}"][: row % 4] for row in of_rows]),
            "meta": pa.array([{"n": row, "in": {"at": [row] * (row % 3)}} if row % 5 else None for row in of_rows]),
            "at": pa.array(list(of_rows), pa.timestamp("s", "UTC")),
            "raw": pa.array([bytes([row % 256]) for row in of_rows], pa.binary(1)),
        }
    ).replace_schema_metadata({"huggingface": '{"info": {}}'})


@pytest.mark.parametrize("compression", [None, "lz4", "zstd"])
@pytest.mark.parametrize("make", [pa.ipc.new_file, pa.ipc.new_stream])
def test_kept_rows_are_the_rows_that_pyarrow_wrote(tmp_path, make, compression):
    rows = table(1000)
    path = tmp_path / "in.arrow"
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with make(path, rows.schema, options=options) as writer:
        writer.write_table(rows, max_chunksize=300)
    run("dedup", path, "-o", tmp_path / "out")
    is_file = make is pa.ipc.new_file
    with (pa.ipc.open_file if is_file else pa.ipc.open_stream)(tmp_path / "out/kept.arrow") as reader:
        kept = reader.read_all()
    kept.validate(full=True)
    assert kept.schema.equals(rows.schema, check_metadata=True)
    assert kept.to_pylist() == rows.to_pylist()[::2]


def test_feather_files_are_read_and_kept_as_feather(tmp_path):
    rows = table(200)
    pa.feather.write_feather(rows, tmp_path / "in.feather")
    run("dedup", tmp_path / "in.feather", "-o", tmp_path / "out")
    assert pa.feather.read_table(tmp_path / "out/kept.arrow").num_rows == 100


def test_datasets_are_read_and_kept_with_their_features(tmp_path):
    datasets = pytest.importorskip("datasets")
    features = datasets.Features(
        {
            "id": datasets.Value("string"),
            "text": datasets.Value("string"),
            "label": datasets.ClassLabel(names=["no", "yes"]),
            "tags": datasets.Sequence(datasets.Value("string")),
        }
    )
    rows = {
        "id": [f"k{row}" for row in range(100)],
        "text": [text(row) for row in range(100)],
        "label": [row % 2 for row in range(100)],
        "tags": [["a", "b"][: row % 3] for row in range(100)],
    }
    of_rows = datasets.Dataset.from_dict(rows, features=features)
    of_rows.save_to_disk(tmp_path / "one", num_shards=3)
    datasets.DatasetDict(train=of_rows, test=of_rows.select(range(10))).save_to_disk(tmp_path / "both")

    said = run("dedup", tmp_path / "one", "-o", tmp_path / "out")
    assert "2 files passed over that describe the dataset" in said
    kept = datasets.Dataset.from_file(str(tmp_path / "out/kept.arrow"))
    assert kept.features == features
    assert list(kept["id"]) == rows["id"][::2] and list(kept["tags"]) == rows["tags"][::2]

    said = run("dedup", tmp_path / "both", "-o", tmp_path / "out-both")
    assert "5 files passed over that describe the dataset" in said and "110 documents" in said
    # The files of the split "test" come first.
    kept = datasets.Dataset.from_file(str(tmp_path / "out-both/kept.arrow"))
    assert list(kept["id"]) == rows["id"][::2]


def keys_read(tmp_path, folder, *options):
    """Returns the keys of the documents that the command reads from a folder, all with different texts."""
    out = tmp_path / "out"
    said = run("dedup", folder, "-o", out, "--near", "equal", "--force", "--json", *options)
    kept = sorted(path for path in out.glob("kept*") if not path.name.endswith(".keys"))
    keys = [key for path in kept for key in pa.parquet.read_table(path, columns=["id"])["id"].to_pylist()]
    assert json.loads(said.splitlines()[-1])["documents"] == len(keys)
    return sorted(keys)


def numbered(numbers):
    columns = {"id": "k{:03}", "text": "text of {}"}
    rows = {name: [form.format(number) for number in numbers] for name, form in columns.items()}
    return pa.table({**rows, "lang": ["de" if number % 3 else "en" for number in numbers]})


def test_folders_of_hive_are_read_as_pyarrow_reads_them(tmp_path):
    rows = numbered(range(60))
    pa.dataset.write_dataset(rows, tmp_path / "t", format="parquet", partitioning=["lang"], partitioning_flavor="hive")
    for number, path in enumerate(sorted((tmp_path / "t").rglob("*.parquet"))):
        path.rename(path.with_name(f"{number:06}_0"))  # as Hive names them
    (tmp_path / "t/_SUCCESS").touch()
    (tmp_path / "t/_temporary/0").mkdir(parents=True)
    pa.parquet.write_table(numbered([99]), tmp_path / "t/_temporary/0/000000_1")
    read = pa.dataset.dataset(tmp_path / "t", format="parquet", partitioning="hive").to_table()
    assert keys_read(tmp_path, tmp_path / "t", "--inside", "lang") == sorted(read["id"].to_pylist())


def test_tables_of_delta_have_the_rows_of_their_log(tmp_path):
    deltalake = pytest.importorskip("deltalake")
    path = tmp_path / "lake/t"

    def same(*options):
        table = deltalake.DeltaTable(path)
        keys = sorted(table.to_pyarrow_table(columns=["id"])["id"].to_pylist())
        for folder in (path, tmp_path / "lake"):
            assert keys_read(tmp_path, folder, *options) == keys

    deltalake.write_deltalake(path, numbered(range(30)), partition_by=["lang"])
    deltalake.write_deltalake(path, numbered(range(30, 60)), mode="append")
    same()
    deltalake.DeltaTable(path).delete("id = 'k004' or id = 'k033'")
    same("--inside", "lang")
    deltalake.write_deltalake(path, numbered(range(60, 90)), mode="append")
    deltalake.DeltaTable(path).create_checkpoint()
    deltalake.DeltaTable(path).update(updates={"text": "'changed'"}, predicate="id = 'k061'")
    same()
    for log in sorted((path / "_delta_log").glob("*.json"))[:3]:
        log.unlink()  # as writers do after a checkpoint
    same()
    deltalake.write_deltalake(path, numbered(range(100, 130)), mode="overwrite")
    same()
    next((path / "_delta_log").glob("*.parquet")).unlink()
    with pytest.raises(AssertionError, match="no commit 0"):
        keys_read(tmp_path, path)
