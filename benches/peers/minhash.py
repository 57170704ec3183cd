"""Finds the candidate pairs of a JSONL file with a Python MinHash library, used as its documentation shows:

    minhash.py datasketch|rensa IN.jsonl OUT.tsv

Words are split at white space; the script uses shingles of 5 words, 128 minima and an index for resemblance 0.8. It adds
each document and then queries for it. The output has the documents that share a band, without any verification.
"""
import json
import sys

WIDTH, MINIMA, THRESHOLD = 5, 128, 0.8


def shingles(text):
    words = text.split()
    return list({" ".join(words[at : at + WIDTH]) for at in range(max(1, len(words) - WIDTH + 1))})


def datasketch():
    import datasketch

    index = datasketch.MinHashLSH(threshold=THRESHOLD, num_perm=MINIMA)

    def sketch(text):
        minima = datasketch.MinHash(num_perm=MINIMA)
        minima.update_batch([shingle.encode() for shingle in shingles(text)])
        return minima

    return index, sketch


def rensa():
    import rensa

    index = rensa.RMinHashLSH(threshold=THRESHOLD, num_perm=MINIMA, num_bands=16)

    def sketch(text):
        minima = rensa.RMinHash(num_perm=MINIMA, seed=42)
        minima.update(shingles(text))
        return minima

    return index, sketch


def main():
    library, path, out = sys.argv[1:]
    index, sketch = {"datasketch": datasketch, "rensa": rensa}[library]()
    sketches = []
    with open(path, encoding="utf-8") as lines:
        for number, line in enumerate(lines):
            sketches.append(sketch(json.loads(line)["text"]))
            index.insert(number, sketches[-1])
    with open(out, "w", encoding="utf-8") as pairs:
        for number, one in enumerate(sketches):
            pairs.writelines(f"{number}\t{other}\n" for other in index.query(one) if other > number)


main()
