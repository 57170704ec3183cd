import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import twindex.Admitted;
import twindex.Documents;
import twindex.Group;
import twindex.Groups;
import twindex.Hit;
import twindex.Index;
import twindex.Keys;
import twindex.Params;
import twindex.Sketch;
import twindex.Sketcher;
import twindex.Sketches;
import twindex.Snapshot;
import twindex.Writer;

/**
 * The indexer of a search engine: {@code java Engine DIRECTORY PAGES KILLS}. A process of its own admits pages with eight
 * threads that share one writer, and commits the number of pages with each batch. It is killed several times, and must go on
 * from its last commit without a page lost. Then groups, a backup and its restoration are compared with brute force.
 */
public final class Engine {
    private static final int THREADS = 8;
    private static final int BATCH = 100;
    private static final double NEAR = 0.8;

    private Engine() {}

    /** Returns the text of a page. One page in four is an earlier one with a few words changed. */
    static String page(int number) {
        Random random = new Random(number * 0x9E3779B97F4A7C15L);
        boolean isCopy = number > 20 && random.nextInt(4) == 0;
        int of = isCopy ? random.nextInt(number) : number;
        Random words = new Random(of * 31L + 7);
        int length = 60 + words.nextInt(60);
        int changed = isCopy ? random.nextInt(length) : -1;
        StringBuilder text = new StringBuilder();
        for (int i = 0; i < length; i++) {
            text.append(i == changed ? "changed" + number : "word" + words.nextInt(100_000)).append(' ');
        }
        return text.toString();
    }

    static byte[] key(int number) {
        return Keys.bytes(String.format("https://example.org/%08d", number));
    }

    private static int done(Index index) throws Exception {
        try (Snapshot snapshot = index.snapshot()) {
            byte[] payload = snapshot.payload();
            return payload == null ? 0 : ByteBuffer.wrap(payload).getInt();
        }
    }

    private static Index open(Path path) throws Exception {
        try (Params params = new Params().set("near", "" + NEAR).set("sets", "kept").set("priorities", "kept")) {
            return Index.openOrCreate(path, params);
        }
    }

    /** Admits pages from the last commit on, and prints each commit after it has returned. */
    private static void work(Path path, int pages) throws Exception {
        try (Index index = open(path); Writer writer = index.writer(); Sketcher sketcher = index.sketcher()) {
            int from = done(index);
            ExecutorService threads = Executors.newFixedThreadPool(THREADS);
            while (from < pages) {
                int round = from;
                int to = Math.min(pages, round + THREADS * BATCH);
                CyclicBarrier barrier = new CyclicBarrier(THREADS);
                List<Future<Void>> all = new ArrayList<>();
                for (int thread = 0; thread < THREADS; thread++) {
                    int first = Math.min(to, round + thread * BATCH);
                    int last = Math.min(to, first + BATCH);
                    all.add(threads.submit((Callable<Void>) () -> {
                        barrier.await();
                        Documents documents = new Documents();
                        List<byte[]> texts = new ArrayList<>();
                        for (int number = first; number < last; number++) {
                            documents.add(key(number)).priority(number);
                            texts.add(Keys.bytes(page(number)));
                        }
                        if (first < last) {
                            try (Sketches sketches = sketcher.sketchMany(texts)) {
                                writer.admitMany(documents, sketches).check();
                            }
                        }
                        return null;
                    }));
                }
                for (Future<Void> one : all) {
                    one.get();
                }
                writer.commit(ByteBuffer.allocate(4).putInt(to).array());
                System.out.println(to);
                from = to;
            }
            threads.shutdown();
        }
    }

    /** Runs {@link #work} in a process; kills it after some commits if {@code kills}. Returns the last printed commit. */
    private static int run(Path path, int pages, boolean kills, Random random) throws Exception {
        ProcessBuilder builder = new ProcessBuilder(Path.of(System.getProperty("java.home"), "bin", "java").toString(), "-cp",
                System.getProperty("java.class.path"), "-Djna.library.path=" + System.getProperty("jna.library.path"), "Engine",
                "--work", path.toString(), "" + pages);
        Process process = builder.redirectError(ProcessBuilder.Redirect.INHERIT).start();
        int last = 0;
        int commits = 1 + random.nextInt(3);
        try (BufferedReader lines = new BufferedReader(new InputStreamReader(process.getInputStream()))) {
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                last = Integer.parseInt(line);
                if (kills && --commits == 0) {
                    Thread.sleep(random.nextInt(20));
                    process.toHandle().destroyForcibly(); // leaves the stream of lines open
                }
            }
        }
        int ended = process.waitFor();
        check(kills || ended == 0, "the process ended with " + ended);
        return last;
    }

    private static void check(boolean condition, Object found) {
        if (!condition) {
            throw new AssertionError("found " + found);
        }
    }

    /** The distinct runs of five words of a text. */
    private static Set<List<String>> shingles(String text) {
        String[] words = text.trim().split(" ");
        Set<List<String>> all = new HashSet<>();
        for (int i = 0; i + 5 <= words.length; i++) {
            all.add(List.of(Arrays.copyOfRange(words, i, i + 5)));
        }
        return all;
    }

    /** Compares the leaders and the near documents of sampled pages with brute force over all pages. */
    private static void compare(Snapshot snapshot, Sketcher sketcher, int pages, int sample, Path scratch) throws Exception {
        // Pages that share a run of five words with a sampled page are candidates; all others have resemblance 0.
        Random random = new Random(5);
        Map<List<String>, List<Integer>> wanted = new HashMap<>();
        Map<Integer, Set<List<String>>> sampled = new HashMap<>();
        for (int i = 0; i < sample; i++) {
            int number = random.nextInt(pages);
            sampled.computeIfAbsent(number, of -> shingles(page(of)));
        }
        sampled.forEach((number, set) -> set.forEach(run -> wanted.computeIfAbsent(run, any -> new ArrayList<>()).add(number)));
        Map<Integer, Set<String>> near = new HashMap<>();
        for (int number = 0; number < pages; number++) {
            Set<List<String>> set = shingles(page(number));
            Map<Integer, Integer> shared = new HashMap<>();
            for (List<String> run : set) {
                for (int other : wanted.getOrDefault(run, List.of())) {
                    shared.merge(other, 1, Integer::sum);
                }
            }
            for (Map.Entry<Integer, Integer> one : shared.entrySet()) {
                int all = set.size() + sampled.get(one.getKey()).size() - one.getValue();
                if (one.getValue() >= NEAR * all) {
                    near.computeIfAbsent(one.getKey(), any -> new HashSet<>()).add(Keys.text(key(number)));
                }
            }
        }
        Groups groups = snapshot.groups(scratch, 1 << 28);
        for (int number : sampled.keySet()) {
            Set<String> found = new HashSet<>();
            try (Sketch sketch = sketcher.sketch(page(number))) {
                for (Hit hit : snapshot.near(sketch, pages)) {
                    found.add(hit.text());
                }
            }
            check(found.equals(near.get(number)), found + " near " + number + ", expected " + near.get(number));
            // The priority of a page is its number, so that a page is a leader if it is near no earlier leader.
            Group leader = snapshot.leader(key(number), Group.QUERIES);
            check(leader.leaderText().equals(groups.leader(key(number)).leaderText()), leader.leaderText());
            check(found.contains(leader.leaderText()) || found.isEmpty(), leader.leaderText());
        }
        groups.close();
    }

    public static void main(String[] arguments) throws Exception {
        if (arguments[0].equals("--work")) {
            work(Path.of(arguments[1]), Integer.parseInt(arguments[2]));
            return;
        }
        Path directory = Path.of(arguments[0]);
        Path path = directory.resolve("engine.twx");
        int pages = Integer.parseInt(arguments[1]);
        int kills = Integer.parseInt(arguments[2]);
        Random random = new Random(pages);
        int printed = 0;
        int killed = 0;
        long start = System.nanoTime();
        for (int i = 0; i < kills; i++) {
            // Kills happen within the first pages of the remaining ones, so that all of them find work.
            printed = Math.max(printed, run(path, pages, true, random));
            try (Index index = Index.open(path)) {
                int done = done(index);
                check(done >= printed, done + " after a commit of " + printed + " had returned");
                try (Snapshot snapshot = index.snapshot()) {
                    check(snapshot.documents() == done, snapshot.documents() + " documents of " + done);
                }
                killed += done < pages ? 1 : 0;
            }
        }
        run(path, pages, false, random);
        double seconds = (System.nanoTime() - start) / 1e9;
        try (Index index = Index.open(path); Sketcher sketcher = index.sketcher()) {
            try (Snapshot snapshot = index.snapshot()) {
                check(snapshot.documents() == pages, snapshot.documents());
                compare(snapshot, sketcher, pages, Math.min(pages, 200), directory);
            }
            check(index.verify().problems().isEmpty(), "problems");
            Path backup = directory.resolve("backup.twx");
            index.copyTo(backup);
            try (Writer writer = index.writer()) {
                writer.deletePrefix(Keys.bytes("https://"));
                writer.commit();
            }
            // Restores the backup into a new index, which goes on from it.
            try (Index restored = Index.open(backup)) {
                restored.copyTo(directory.resolve("restored.twx"));
            }
            try (Index restored = open(directory.resolve("restored.twx")); Writer writer = restored.writer();
                    Snapshot snapshot = restored.snapshot(); Snapshot deleted = index.snapshot()) {
                check(snapshot.documents() == pages && deleted.documents() == 0, snapshot.documents());
                check(done(restored) == pages, done(restored));
                Admitted again = writer.admit(key(pages), Keys.bytes(page(0)));
                check(again.kind() == Admitted.Kind.DUPLICATE && again.near() != null, again);
            }
        }
        System.out.printf("Engine: passed: %d pages, %d kills before the end, %.0f pages a second%n", pages, killed, pages / seconds);
        System.exit(0);
    }
}
