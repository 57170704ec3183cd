import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import java.util.concurrent.Callable;
import twindex.Findings;
import twindex.Hit;
import twindex.Index;
import twindex.Keys;
import twindex.Params;
import twindex.Record;
import twindex.Sketch;
import twindex.Sketcher;
import twindex.Snapshot;
import twindex.TwindexException;
import twindex.UncheckedTwindexException;
import twindex.Writer;

/**
 * Answers queries about damaged indexes through the Java library, as tests/damage.c does through C. The head of
 * tests/alone_allocator/damage_doors.rs specifies the lines of input and output; scripts/damage --door java runs it.
 */
public final class Damage {
    private static final PrintStream OUT = new PrintStream(new java.io.FileOutputStream(java.io.FileDescriptor.out), false);
    private static final HexFormat HEX = HexFormat.of();

    /** Returns the result of a call; null, after a line with the code, if it failed. */
    private static <T> T good(String mark, Callable<T> call) {
        TwindexException error;
        try {
            return call.call();
        } catch (TwindexException failed) {
            error = failed;
        } catch (UncheckedTwindexException failed) {
            error = failed.getCause();
        } catch (Exception failed) {
            OUT.println("! " + failed.toString().replaceAll("[\r\n]", " "));
            return null;
        }
        if (error.code() == TwindexException.Code.PANICKED || error.getMessage() == null || error.getMessage().isEmpty()) {
            OUT.println("! " + error.code() + ": " + String.valueOf(error.getMessage()).replaceAll("[\r\n]", " "));
        } else {
            OUT.println(mark + " " + error.code().ordinal());
        }
        return null;
    }

    private static void printHits(List<Hit> hits) {
        if (hits == null) {
            return;
        }
        StringBuilder line = new StringBuilder(hits.isEmpty() ? "+ hits 0" : "+ hits 1");
        for (Hit hit : hits) {
            line.append(' ').append(HEX.formatHex(hit.key())).append(' ').append(hit.distance());
            line.append(String.format(" %.9f", hit.resemblance()));
        }
        OUT.println(line);
    }

    private static void answerKey(Snapshot snapshot, byte[] key) {
        Boolean contained = good("-", () -> snapshot.contains(key));
        if (contained != null) {
            OUT.println(contained ? "+ contained" : "+ absent");
        }
        Record[] record = good("-", () -> new Record[] {snapshot.get(key)});
        if (record == null) {
            return;
        }
        Record found = record[0];
        OUT.println(found == null
                ? "+ absent"
                : "+ fingerprint " + found.fingerprint() + " stamp " + found.stamp() + " priority " + found.priority()
                        + " duplicate " + found.isDuplicate() + " value "
                        + (found.value() == null ? "none" : HEX.formatHex(found.value())));
    }

    private static void answerText(Snapshot snapshot, Sketcher sketcher, String text) {
        Sketch sketch = sketcher == null ? null : good("-", () -> sketcher.sketch(text));
        if (sketch == null) {
            // Each query has a fixed number of answers.
            OUT.print(sketcher == null ? "- 8\n- 8\n- 8\n- 8\n" : "- 8\n- 8\n- 8\n");
            return;
        }
        try (sketch) {
            OUT.println("+ sketch " + sketch.fingerprint() + " " + sketch.set().length);
            printHits(good("-", () -> snapshot.near(sketch, 10)));
            printHits(good("-", () -> snapshot.resembling(sketch, 0.5, true, false, 10)));
            printHits(good("-", () -> snapshot.resembling(sketch, 0.9, false, true, 10)));
        }
    }

    private static void printKeys(String mark, String first, Snapshot snapshot) {
        // Prints a hash after the last key, because an error after some keys must be the only answer.
        long[] found = good(mark, () -> {
            try (Keys keys = snapshot.keys()) {
                long count = 0;
                int hash = 1;
                while (keys.hasNext()) {
                    hash = 31 * hash + Arrays.hashCode(keys.next());
                    count++;
                }
                return new long[] {count, hash};
            }
        });
        if (found != null) {
            OUT.println(first + "+ " + found[0] + " keys " + found[1]);
        }
    }

    private static void answerQueries(Index index, Snapshot snapshot, List<String> queries) {
        byte[] payload = snapshot.payload();
        OUT.println("+ " + snapshot.documents() + " documents, commit " + snapshot.commit() + ", payload "
                + (payload == null ? "" : HEX.formatHex(payload)));
        String params = good("-", () -> {
            try (Params all = index.params()) {
                return all.text();
            }
        });
        if (params != null) {
            OUT.println("+ " + params.replace('\n', ' '));
        }
        printKeys("-", "", snapshot);
        try (Sketcher sketcher = good("-", index::sketcher)) {
            if (sketcher != null) {
                OUT.println("+ sketcher");
            }
            for (String query : queries) {
                String argument = query.substring(query.indexOf(' ') + 1);
                if (query.startsWith("key ")) {
                    answerKey(snapshot, HEX.parseHex(argument));
                } else if (query.startsWith("number ")) {
                    answerKey(snapshot, Keys.bytes(Long.parseUnsignedLong(argument)));
                } else if (query.startsWith("text ")) {
                    answerText(snapshot, sketcher, argument);
                } else {
                    long fingerprint = Long.parseUnsignedLong(argument);
                    printHits(good("-", () -> snapshot.within(fingerprint, 3, 10)));
                }
            }
        }
    }

    /** Writes to the index and merges it. Every call may fail. */
    private static void write(Index index) {
        try (Writer writer = good("w", index::writer)) {
            if (writer != null) {
                good("w", () -> {
                    writer.put(Keys.bytes(7), Keys.bytes("a rose is a rose is a rose"));
                    return true;
                });
                good("w", writer::commit);
            }
        }
        good("w", () -> {
            index.compact();
            return true;
        });
        good("w", index::refresh);
        try (Snapshot snapshot = good("w", index::snapshot)) {
            if (snapshot != null) {
                printKeys("w", "w ", snapshot);
            }
        }
    }

    private static void answer(Path path, List<String> queries) {
        try (Index index = good("-", () -> Index.open(path))) {
            if (index == null) {
                return;
            }
            try (Snapshot snapshot = good("-", index::snapshot)) {
                if (snapshot != null) {
                    answerQueries(index, snapshot, queries);
                }
            }
            Findings findings = good("v -", index::verify);
            if (findings != null) {
                OUT.println("v " + findings.problems().size());
            }
            write(index);
        }
    }

    public static void main(String[] arguments) throws Exception {
        BufferedReader requests = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = requests.readLine(); line != null; line = requests.readLine()) {
            String[] request = line.split("\t");
            answer(Path.of(request[0]), Files.readAllLines(Path.of(request[1])));
            OUT.println(".");
            OUT.flush();
        }
    }
}
