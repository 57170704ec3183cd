"""Removes near-duplicates from a Hugging Face dataset: passes its columns to twindex, and selects the kept rows.

    python with_datasets.py

The dataset is created here, in memory; `datasets.load_dataset(...)` returns one of the same type.
"""

import os
import tempfile

import datasets

import twindex


def made():
    """Returns texts: every third is a near copy of the previous one, every fifth an exact copy."""
    texts = []
    for number in range(1000):
        if number % 5 == 4:
            texts.append(texts[-1])
        elif number % 3 == 2:
            texts.append(texts[-1] + " and a little more")
        else:
            texts.append(" ".join(f"w{number * 7919 % 10007}x{word}" for word in range(80)))
    return datasets.Dataset.from_dict({"id": [f"page-{number}" for number in range(len(texts))], "text": texts})


def column(dataset, name):
    """Returns a column as an Arrow array, without copying it to Python objects."""
    return dataset.with_format("arrow")[:][name]


def main():
    dataset = made()

    # In memory: all pairs, counted exactly.
    found = twindex.dedup(column(dataset, "text"), 0.8)
    kept = dataset.select(found.kept)
    print(f"{len(dataset)} documents, {len(found.pairs)} pairs, {len(kept)} kept")
    again = twindex.dedup(column(kept, "text"), 0.8)
    assert len(again.kept) == len(kept) < len(dataset)

    # With an index on disk: later documents are compared with all earlier ones.
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "pages.twx")
        with twindex.Index.create(path, words=5, simhash=3) as index:
            index.put_many(column(kept, "id"), column(kept, "text"))
        index = twindex.Index.open(path)

        def is_new(batch):
            return [not hits for hits in index.near_many(batch["text"], limit=1)]

        new = dataset.filter(is_new, batched=True, batch_size=256, new_fingerprint="new")
        print(f"{len(index)} in the index; {len(new)} of the dataset are not near one of them")
        assert len(new) == 0


if __name__ == "__main__":
    main()
