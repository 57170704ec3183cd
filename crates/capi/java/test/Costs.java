import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import twindex.Documents;
import twindex.Index;
import twindex.Keys;
import twindex.Params;
import twindex.Snapshot;
import twindex.Writer;

/** Prints what a document and a key cost from Java: {@code java Costs INDEX}. tests/costs.cc does the same from C++. */
public final class Costs {
    private static final int PAGES = 20_000;
    private static final int KEYS = 200_000;

    private Costs() {}

    /** The texts of tests/costs.cc. */
    static byte[] page(int number) {
        StringBuilder text = new StringBuilder();
        for (int i = 0; i < 100; i++) {
            text.append("word").append((number * 7919L + i * 104729L) % 99991).append(' ');
        }
        return Keys.bytes(text.toString());
    }

    private static final java.lang.management.ThreadMXBean THREADS = java.lang.management.ManagementFactory.getThreadMXBean();

    /** A measured step. */
    private interface Step {
        int run() throws Exception;
    }

    /** Prints the CPU time of this thread for an item. On one core, the library starts no others for texts. */
    private static void measure(String what, boolean isWarm, Step step) throws Exception {
        long start = THREADS.getCurrentThreadCpuTime();
        int count = step.run();
        if (isWarm) {
            System.out.printf("java %s %.2f us%n", what, (THREADS.getCurrentThreadCpuTime() - start) / 1e3 / count);
        }
    }

    private static int put(Index index, List<byte[]> keys, List<byte[]> texts, int batch) throws Exception {
        try (Writer writer = index.writer()) {
            writer.set("durability", "none").set("background_merges", "false");
            Documents documents = new Documents();
            for (int i = 0; i < keys.size(); i++) {
                if (batch == 1) {
                    writer.put(keys.get(i), texts.get(i));
                } else if (documents.add(keys.get(i), texts.get(i)).size() == batch) {
                    writer.putMany(documents);
                    documents.clear();
                }
            }
            writer.rollback();
        }
        return keys.size();
    }

    public static void main(String[] arguments) throws Exception {
        List<byte[]> keys = new ArrayList<>();
        List<byte[]> texts = new ArrayList<>();
        for (int i = 0; i < PAGES; i++) {
            keys.add(Keys.bytes("https://example.org/" + i));
            texts.add(page(i));
        }
        try (Params params = new Params().set("near", "0.8"); Index index = Index.create(Path.of(arguments[0]), params)) {
            for (boolean isWarm : new boolean[] {false, false, true, true, true}) {
                measure("document, single", isWarm, () -> put(index, keys, texts, 1));
                measure("document, batch", isWarm, () -> put(index, keys, texts, 100));
            }
            try (Writer writer = index.writer()) {
                Documents all = new Documents();
                for (int i = 0; i < PAGES; i++) {
                    all.add(keys.get(i), texts.get(i));
                }
                writer.putMany(all);
                writer.commit();
            }
            try (Snapshot snapshot = index.snapshot()) {
                for (boolean isWarm : new boolean[] {false, false, true, true, true}) {
                    measure("key looked up, single", isWarm, () -> {
                        for (int i = 0; i < KEYS; i++) {
                            snapshot.contains(keys.get(i % PAGES));
                        }
                        return KEYS;
                    });
                    measure("record, batch", isWarm, () -> {
                        for (int i = 0; i < KEYS; i += 100) {
                            snapshot.getMany(keys.subList(i % PAGES, i % PAGES + 100));
                        }
                        return KEYS;
                    });
                    measure("key listed, batch", isWarm, () -> {
                        int listed = 0;
                        for (int i = 0; i < 10; i++) {
                            try (Keys all = snapshot.keys()) {
                                for (; all.hasNext(); all.next()) {
                                    listed++;
                                }
                            }
                        }
                        return listed;
                    });
                }
            }
        }
    }
}
