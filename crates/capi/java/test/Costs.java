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

    private static void print(String what, long start, int count) {
        System.out.printf("java %s %.2f us%n", what, (System.nanoTime() - start) / 1e3 / count);
    }

    public static void main(String[] arguments) throws Exception {
        List<byte[]> keys = new ArrayList<>();
        List<byte[]> texts = new ArrayList<>();
        for (int i = 0; i < PAGES; i++) {
            keys.add(Keys.bytes("https://example.org/" + i));
            texts.add(page(i));
        }
        for (String warm : new String[] {"warm", ""}) {
            try (Params params = new Params().set("near", "0.8");
                    Index index = Index.create(Path.of(arguments[0] + warm), params);
                    Writer writer = index.writer()) {
                writer.set("durability", "none").set("threads", "1");
                long start = System.nanoTime();
                for (int i = 0; i < PAGES / 2; i++) {
                    writer.put(keys.get(i), texts.get(i));
                }
                if (warm.isEmpty()) {
                    print("document, single", start, PAGES / 2);
                }
                writer.commit();
                Documents documents = new Documents();
                start = System.nanoTime();
                for (int i = PAGES / 2; i < PAGES; i++) {
                    documents.add(keys.get(i), texts.get(i));
                    if (documents.size() == 100) {
                        writer.putMany(documents);
                        documents.clear();
                    }
                }
                if (warm.isEmpty()) {
                    print("document, batch", start, PAGES / 2);
                }
                writer.commit();
                try (Snapshot snapshot = index.snapshot()) {
                    start = System.nanoTime();
                    for (int i = 0; i < KEYS; i++) {
                        snapshot.contains(keys.get(i % PAGES));
                    }
                    if (warm.isEmpty()) {
                        print("key looked up, single", start, KEYS);
                    }
                    start = System.nanoTime();
                    for (int i = 0; i < KEYS; i += 100) {
                        snapshot.getMany(keys.subList(i % PAGES, i % PAGES + 100));
                    }
                    if (warm.isEmpty()) {
                        print("record, batch", start, KEYS);
                    }
                    start = System.nanoTime();
                    int listed = 0;
                    for (int i = 0; i < 10; i++) {
                        try (Keys all = snapshot.keys()) {
                            for (; all.hasNext(); all.next()) {
                                listed++;
                            }
                        }
                    }
                    if (warm.isEmpty()) {
                        print("key listed, batch", start, listed);
                    }
                }
            }
        }
    }
}
