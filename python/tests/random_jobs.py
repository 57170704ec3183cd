"""Runs the random jobs of tools/tests/it/jobs.rs, which compares the answers with those of the command:

    python python/tests/random_jobs.py python|spark < JOBS

The first line of JOBS has the documents, and each other line has a job: its number, and the arguments of a call. Each
line of the output has the `id` of the documents that stay, or the message of the refusal.
"""

import json
import sys

import twindex


def tables(documents):
    """Returns the documents as a table of each library that is installed; a job uses one of them."""
    columns = {name: [one[name] for one in documents] for name in documents[0]}
    made = [columns]
    for library, make in [
        ("pyarrow", lambda module: module.table(columns)),
        ("pandas", lambda module: module.DataFrame(columns)),
        ("polars", lambda module: module.DataFrame(columns)),
    ]:
        try:
            made.append(make(__import__(library)))
        except ImportError:
            pass
    return made


def in_python(documents):
    given = tables(documents)

    def run(number, call):
        decided = twindex.dedup(given[number % len(given)], **call)
        return [documents[at]["id"] for at in decided.kept]

    return run


def in_spark(documents):
    from pyspark.sql import SparkSession

    from twindex import spark

    session = SparkSession.builder.master("local[2]").appName("random jobs")
    for name, value in {
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "1",
        "spark.default.parallelism": "1",
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
    }.items():
        session = session.config(name, value)
    session = session.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    rows = [{**one, "place": f"{place:06}"} for place, one in enumerate(documents)]
    lines = session.sparkContext.parallelize([json.dumps(one) for one in rows], 1)
    frame = session.read.json(lines).cache()
    names = {name: one["id"] for one in rows for name in (one["id"], one["place"])}

    def run(_, call):
        decided = spark.dedup(frame, **call)
        kept = [names[row.key] for row in decided.where("key = kept").collect()]
        decided.unpersist()
        return kept

    return run


def main():
    lines = [json.loads(line) for line in sys.stdin]
    run = {"python": in_python, "spark": in_spark}[sys.argv[1]](lines[0]["documents"])
    for line in lines[1:]:
        try:
            answer = {"kept": sorted(run(line["job"], line["call"]))}
        except (twindex.Error, TypeError) as error:
            answer = {"refused": str(error)}
        except Exception as error:
            answer = {"broken": f"{type(error).__name__}: {error}"[:2000]}
        print(json.dumps({"job": line["job"], **answer}), flush=True)


if __name__ == "__main__":
    main()
