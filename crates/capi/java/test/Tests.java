import java.lang.ref.WeakReference;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.Callable;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.IntStream;
import twindex.Admitted;
import twindex.Batch;
import twindex.Documents;
import twindex.Findings;
import twindex.Group;
import twindex.Groups;
import twindex.Hit;
import twindex.Index;
import twindex.Keys;
import twindex.LeaderChange;
import twindex.Metrics;
import twindex.Params;
import twindex.Query;
import twindex.Record;
import twindex.Salvage;
import twindex.Sketch;
import twindex.Sketcher;
import twindex.Sketches;
import twindex.Snapshot;
import twindex.TwindexException;
import twindex.Writer;

/** Tests the Java library: {@code java Tests DIRECTORY}, with an empty directory. scripts/capi test runs it. */
public final class Tests {
    private static final String ROSE = "a rose is a rose is a rose is a rose";
    private static final String ROSES = "A rose is a rose is a rose is a rose!";
    private static final String OTHER = "entirely different words about the sea and its tides";

    private static Path directory;

    private interface Body {
        void run() throws Exception;
    }

    private static void check(boolean condition, Object found) {
        if (!condition) {
            throw new AssertionError("found " + found);
        }
    }

    private static void same(Object expected, Object found) {
        check(expected.equals(found), found + ", expected " + expected);
    }

    private static void fails(TwindexException.Code code, String words, Body body) throws Exception {
        try {
            body.run();
        } catch (TwindexException error) {
            same(code, error.code());
            check(error.getMessage().contains(words), error.getMessage());
            return;
        }
        throw new AssertionError("expected " + code);
    }

    private static void isClosed(Body body) throws Exception {
        try {
            body.run();
        } catch (IllegalStateException closed) {
            check(closed.getMessage().endsWith("is closed"), closed);
            return;
        }
        throw new AssertionError("a closed handle was used");
    }

    private static byte[] key(String text) {
        return Keys.bytes(text);
    }

    private static Params params() throws TwindexException {
        return new Params().set("words", "2").set("near", "0.8").set("sets", "kept");
    }

    private static Index create(String name) throws TwindexException {
        try (Params params = params().set("priorities", "kept").set("values", "kept").set("marks", "kept")) {
            return Index.create(directory.resolve(name), params);
        }
    }

    private static List<String> texts(Keys keys) {
        try (keys) {
            List<String> all = new ArrayList<>();
            keys.forEachRemaining(key -> all.add(Keys.text(key)));
            return all;
        }
    }

    private static void errors() throws Exception {
        fails(TwindexException.Code.NOT_AN_INDEX, "none.twx", () -> Index.open(directory.resolve("none.twx")));
        try (Params params = new Params()) {
            fails(TwindexException.Code.INVALID, "there is no setting \"nearby\": there are tokens, words",
                    () -> params.set("nearby", "0.8"));
            fails(TwindexException.Code.INVALID, "near: expected J", () -> params.set("near", "2"));
            fails(TwindexException.Code.INVALID, "", () -> Index.create(directory.resolve("nothing.twx"), params));
        }
        try (Index index = create("locked.twx"); Writer writer = index.writer()) {
            fails(TwindexException.Code.LOCKED, "process", index::writer);
            fails(TwindexException.Code.INVALID, "memtable: expected ROWS,SIZE", () -> writer.set("memtable", "many"));
            fails(TwindexException.Code.INVALID, "max_jump", () -> writer.set("jump", "1"));
            writer.set("memtable", "1000,1M").set("stalls", "1,4").set("max_jump", "100").set("merge_rate", "none");
            fails(TwindexException.Code.ALREADY_EXISTS, "locked.twx", () -> create("locked.twx"));
        }
    }

    private static void documents() throws Exception {
        try (Index index = create("documents.twx"); Sketcher sketcher = index.sketcher(); Writer writer = index.writer()) {
            same(directory.resolve("documents.twx").toAbsolutePath(), index.path());
            same(Admitted.Kind.NEW, writer.admit("a", ROSE).kind());
            Admitted duplicate = writer.admit("b", ROSES);
            same(Admitted.Kind.DUPLICATE, duplicate.kind());
            same("a", duplicate.near().text());
            same(1.0, duplicate.near().resemblance());
            same(Admitted.Kind.UPDATED, writer.admit("a", ROSE).kind());
            writer.put("sea", OTHER);
            check(writer.contains(key("sea")) && !writer.contains(key("see")), "contains");
            check(writer.get(key("b")).isDuplicate(), "a mark");
            check(writer.unmark(key("b")) && !writer.unmark(key("b")), "a mark");
            try (Sketch sketch = sketcher.sketch(ROSE)) {
                same(2, writer.near(sketch, 10).size());
                same("[]", Arrays.toString(sketch.set().length > 0 ? new long[0] : null));
            }
            writer.rollback();
            check(!writer.contains(key("a")), "a batch that was dropped");
            Documents many = new Documents();
            for (int i = 0; i < 50; i++) {
                String text = i % 2 == 0 ? "page number " + i + " has words of its own, such as " + i * 7 : ROSE;
                many.add("page/" + i, text).value(key("value " + i)).priority(100 - i);
            }
            Batch batch = writer.admitMany(many);
            batch.check();
            same(50, batch.size());
            same(Admitted.Kind.NEW, batch.get(1).kind());
            same(Admitted.Kind.DUPLICATE, batch.get(3).kind());
            same("page/1", batch.get(3).near().text());
            byte[] place = ByteBuffer.allocate(4).putInt(50).array();
            long commit = writer.commit(place);
            try (Snapshot snapshot = index.snapshot()) {
                same(50L, snapshot.documents());
                same(commit, snapshot.commit());
                check(Arrays.equals(place, snapshot.payload()), "payload");
                check(snapshot.now().isEmpty() && snapshot.uuid() != null, "no stamps");
                Record record = snapshot.get(key("page/7"));
                same("value 7", Keys.text(record.value()));
                same(93L, record.priority());
                check(record.isDuplicate() && record.stamp() == null, record);
                List<Record> records = snapshot.getMany(List.of(key("page/0"), key("none"), key("page/1")));
                check(records.get(0) != null && records.get(1) == null && !records.get(2).isDuplicate(), records);
                same(List.of("page/10", "page/11", "page/12"), texts(snapshot.range(key("page/10"), key("page/13"))));
                same(11, texts(snapshot.keys(key("page/1"))).size());
                same(50, texts(snapshot.keys()).size());
                try (Sketches sketches = sketcher.sketchMany(List.of(key(ROSE), key(OTHER), key("")))) {
                    List<List<Hit>> near = snapshot.nearMany(sketches, new Query().limit(3));
                    same(List.of(3, 0, 0), near.stream().map(List::size).toList());
                    try (Sketch rose = sketches.get(0)) {
                        same(near.get(0).get(0).text(), snapshot.near(rose, 3).get(0).text());
                        same(25L, snapshot.count(rose, new Query()));
                        same(1, snapshot.near(rose, new Query().unmarked()).size());
                        same(1, snapshot.near(rose, new Query().resembling(0.9).any()).size());
                        same(10, snapshot.near(rose, new Query().estimated()).size());
                    }
                    fails(TwindexException.Code.INVALID, "sketch 3", () -> sketches.get(3));
                }
            }
            same(10L, writer.deletePrefix(key("page/4")) - 1);
            writer.deleteMany(List.of(key("page/0"), key("none")));
            writer.delete(key("page/1"));
            writer.commit();
            writer.flush();
            writer.mergeStep();
            writer.waitForMerge();
            writer.takeMergeFailure();
            writer.compact();
            writer.gc();
            writer.sync();
            Metrics metrics = index.metrics();
            same(37L, metrics.documents());
            check(metrics.commits().count() > 0 && metrics.commits().seconds() > 0, metrics);
            Findings findings = index.verify();
            check(findings.problems().isEmpty() && findings.bytes() > 0, findings);
        }
    }

    private static void errorsOfItems() throws Exception {
        try (Params params = params().set("expire_after", "100");
                Index index = Index.create(directory.resolve("stamps.twx"), params);
                Writer writer = index.writer()) {
            Documents documents = new Documents().add("a", ROSE).stamp(1000).add("b", OTHER).stamp(5000).add("c", ROSES).stamp(1050);
            Batch batch = writer.admitMany(documents);
            same(Admitted.Kind.NEW, batch.get(0).kind());
            check(batch.get(1) == null, "a stamp too far ahead");
            check(batch.error(1).getMessage().contains("max_jump"), batch.error(1).getMessage());
            same(Admitted.Kind.DUPLICATE, batch.get(2).kind());
            fails(TwindexException.Code.INVALID, "", batch::check);
            writer.set("max_jump", "10000");
            documents.clear();
            same(Admitted.Kind.NEW, writer.admitMany(documents.add("b", OTHER).stamp(5000)).get(0).kind());
            writer.commit();
            try (Snapshot snapshot = index.snapshot()) {
                same(List.of("b"), texts(snapshot.keys()));
                same(5000L, snapshot.now().getAsLong());
            }
            try {
                writer.putMany(new Documents().add("a", ROSE).add("b", ROSE).stamp(1));
                throw new AssertionError("one stamp for two documents");
            } catch (IllegalArgumentException expected) {
                check(expected.getMessage().contains("all or none"), expected);
            }
        }
    }

    private static void groups() throws Exception {
        try (Index index = create("groups.twx"); Sketcher sketcher = index.sketcher(); Writer writer = index.writer()) {
            writer.putMany(new Documents()
                    .add("a", ROSE).value(key("")).priority(3)
                    .add("b", ROSES).value(key("")).priority(1)
                    .add("c", OTHER).value(key("")).priority(2)).check();
            same("b", writer.leader(key("a"), Group.QUERIES).leaderText());
            same(2, writer.group(key("a"), Group.QUERIES).members().size());
            writer.commit();
            try (Snapshot before = index.snapshot(); Sketch rose = sketcher.sketch(ROSE)) {
                same("b", before.leader(key("a"), Group.QUERIES).leaderText());
                same(2L, before.membership(key("a"), Group.QUERIES).size());
                check(before.leader(key("none"), Group.QUERIES) == null, "no such document");
                same(Snapshot.GroupRule.COUNTED, before.groupRule());
                Writer.Grouped grouped = writer.admitGrouped(key("d"), rose, Group.QUERIES);
                same(Admitted.Kind.DUPLICATE, grouped.admitted().kind());
                same(3L, grouped.group().size());
                writer.delete(key("b"));
                writer.commit();
                try (Snapshot after = index.snapshot()) {
                    Map<String, String> changes = new HashMap<>();
                    for (LeaderChange change : after.changedLeaders(before)) {
                        changes.put(Keys.text(change.key()), Keys.text(change.before()) + " -> " + Keys.text(change.after()));
                    }
                    same(Map.of("a", "b -> a", "b", "b -> null", "d", "null -> a"), changes);
                    try (Groups groups = after.groups(directory, 1 << 26)) {
                        same(2L, groups.count());
                        same("a", groups.leader(key("d")).leaderText());
                        List<String> lines = new ArrayList<>();
                        groups.forEach(2, (member, leader, size) -> {
                            // A callback may make calls.
                            try {
                                check(after.contains(member), member);
                            } catch (TwindexException failed) {
                                throw new AssertionError(failed);
                            }
                            return lines.add(Keys.text(member) + " " + Keys.text(leader) + " " + size);
                        });
                        same(List.of("a a 2", "d a 2"), lines);
                        try {
                            groups.forEach(1, (member, leader, size) -> {
                                throw new IllegalArgumentException("from a visitor");
                            });
                            throw new AssertionError("an exception was lost");
                        } catch (IllegalArgumentException expected) {
                            same("from a visitor", expected.getMessage());
                        }
                    }
                }
                fails(TwindexException.Code.UNDECIDED, "limit", () -> index.snapshot().group(key("a"), 0));
            }
        }
    }

    private static void copies() throws Exception {
        Path backup = directory.resolve("backup.twx");
        Path shard = directory.resolve("shard.twx");
        try (Params params = params(); Index index = Index.create(directory.resolve("original.twx"), params);
                Index other = Index.create(shard, params)) {
            try (Writer writer = index.writer(); Writer second = other.writer()) {
                writer.put("a", ROSE);
                long commit = writer.commit();
                writer.put("b", OTHER);
                same(commit, index.copyTo(backup));
                writer.commit();
                second.put("c", OTHER);
                second.commit();
                second.flush();
                List<Path> segments;
                try (Snapshot snapshot = other.snapshot()) {
                    segments = snapshot.segments();
                }
                same(1, segments.size());
                same(1L, writer.ingest(segments));
                writer.commit();
                same(1L, Index.adopt(directory.resolve("adopted.twx"), params, segments));
            }
            try (Index restored = Index.open(backup, Index.Access.READ, 0); Snapshot snapshot = restored.snapshot()) {
                same(List.of("a"), texts(snapshot.keys()));
            }
            Index.Merged merged = Index.merge(
                    directory.resolve("merged.twx"), List.of(index, other), Index.OnConflict.REFUSE, 1 << 26);
            same(new Index.Merged(3, 1, 0), merged);
            same(params().text(), "");
            check(index.params().text().contains("sets=kept"), index.params().text());
            Params.parse(index.params().text()).close();
        }
        Path segment;
        try (Index index = Index.open(shard); Snapshot snapshot = index.snapshot()) {
            segment = snapshot.segments().get(0);
        }
        byte[] bytes = Files.readAllBytes(segment);
        Arrays.fill(bytes, bytes.length / 2, bytes.length / 2 + 64, (byte) 0x55);
        Files.write(segment, bytes);
        check(!Index.verify(shard).problems().isEmpty(), "damage");
        Salvage salvage = Index.salvage(shard, directory.resolve("salvaged.twx"));
        check(!salvage.isWhole() && !salvage.problems().isEmpty() && salvage.documents() + salvage.lost() <= 1, salvage);
    }

    private static void numbers() throws Exception {
        try (Params params = new Params().set("keys", "u64").set("near", "within:3");
                Index index = Index.create(directory.resolve("numbers.twx"), params);
                Writer writer = index.writer()) {
            writer.put(Keys.bytes(7), key(ROSE));
            writer.put(Keys.bytes(-1), key(ROSES));
            fails(TwindexException.Code.INVALID, "keys of this index are numbers", () -> writer.put("text", ROSE));
            writer.commit();
            try (Snapshot snapshot = index.snapshot(); Keys keys = snapshot.keys()) {
                same(7L, Keys.number(keys.next()));
                same(-1L, Keys.number(keys.next()));
                check(!keys.hasNext(), "an end");
                long fingerprint = snapshot.get(Keys.bytes(7)).fingerprint();
                same(2, snapshot.within(fingerprint, 0, 10).size());
            }
        }
    }

    private static int distance(byte[] one, byte[] other) {
        int bits = 0;
        for (int i = 0; i < one.length; i++) {
            bits += Integer.bitCount((one[i] ^ other[i]) & 0xff);
        }
        return bits;
    }

    /** Returns random fingerprints, near copies of earlier ones, and equal ones. */
    private static List<byte[]> fingerprints(Random random, int length, int count) {
        List<byte[]> all = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            byte[] code = new byte[length];
            random.nextBytes(code);
            if (i > 0 && random.nextInt(3) > 0) {
                code = all.get(random.nextInt(i)).clone();
                for (int flips = random.nextInt(3) * length / 2; flips > 0; flips--) {
                    code[random.nextInt(length)] ^= (byte) (1 << random.nextInt(8));
                }
            }
            all.add(code);
        }
        return all;
    }

    /** Returns the hits of a comparison with each fingerprint, as lines of distance and key. */
    private static List<String> compared(List<byte[]> codes, byte[] query, int within) {
        return IntStream.range(0, codes.size()).filter(i -> distance(codes.get(i), query) <= within).boxed()
                .sorted(Comparator.comparing(i -> distance(codes.get(i), query)))
                .map(i -> distance(codes.get(i), query) + " " + i).toList();
    }

    private static List<String> lines(List<Hit> hits) {
        return hits.stream().map(hit -> hit.distance() + " " + Keys.number(hit.key())).toList();
    }

    private static void codes() throws Exception {
        for (int length : new int[] {16, 32}) {
            List<byte[]> codes = fingerprints(new Random(length), length, 200);
            List<byte[]> queries = new ArrayList<>(fingerprints(new Random(1), length, 10));
            queries.addAll(codes.subList(0, 50));
            try (Params params = new Params().set("keys", "u64").set("priorities", "kept").codes(8 * length, length);
                    Index index = Index.create(directory.resolve("codes-" + length + ".twx"), params);
                    Writer writer = index.writer()) {
                writer.putCode(Keys.bytes(0), codes.get(0));
                for (int i = 1; i < 50; i++) {
                    List<String> before = compared(codes.subList(0, i), codes.get(i), length);
                    same(before, lines(writer.nearCode(codes.get(i), 1000)));
                    Admitted admitted = i % 2 == 0
                            ? writer.admitCode(Keys.bytes(i), codes.get(i))
                            : writer.admitCodeGrouped(Keys.bytes(i), codes.get(i), Group.QUERIES).admitted();
                    same(before.isEmpty() ? Admitted.Kind.NEW : Admitted.Kind.DUPLICATE, admitted.kind());
                    same(before.stream().limit(1).toList(),
                            lines(admitted.near() == null ? List.of() : List.of(admitted.near())));
                }
                check(Arrays.equals(codes.get(9), writer.get(Keys.bytes(9)).code()), "a code");
                Documents documents = new Documents();
                for (int i = 50; i < 100; i++) {
                    documents.addCode(Keys.bytes(i), codes.get(i)).priority(i % 7);
                }
                writer.putMany(documents).check();
                writer.commit();
                writer.flush();
                documents.clear();
                for (int i = 100; i < 200; i++) {
                    documents.addCode(Keys.bytes(i), codes.get(i)).priority(i % 7);
                }
                Batch batch = writer.admitMany(documents);
                batch.check();
                for (int i = 100; i < 200; i++) {
                    Admitted admitted = batch.get(i - 100);
                    same(compared(codes.subList(0, i), codes.get(i), length).stream().limit(1).toList(),
                            lines(admitted.near() == null ? List.of() : List.of(admitted.near())));
                }
                writer.commit();
                try (Snapshot snapshot = index.snapshot(); Groups groups = snapshot.groups(directory, 1 << 26)) {
                    for (int within : new int[] {0, length, 8 * length}) {
                        List<List<Hit>> all = snapshot.codesWithin(queries, within, Long.MAX_VALUE);
                        for (int i = 0; i < queries.size(); i++) {
                            List<String> expected = compared(codes, queries.get(i), within);
                            same(expected, lines(all.get(i)));
                            same(expected.stream().limit(3).toList(), lines(snapshot.codeWithin(queries.get(i), within, 3)));
                        }
                    }
                    same(List.of(), snapshot.codesWithin(List.of(), length, 10));
                    List<Record> records = snapshot.getMany(List.of(Keys.bytes(3), Keys.bytes(200), Keys.bytes(150)));
                    check(Arrays.equals(codes.get(3), records.get(0).code()) && records.get(1) == null, records);
                    check(Arrays.equals(codes.get(150), records.get(2).code()) && records.get(2).fingerprint() == null, records);
                    same(Snapshot.GroupRule.BY_DISTANCE, snapshot.groupRule());
                    List<Integer> leaders = new ArrayList<>();
                    for (int i = 0; i < 200; i++) {
                        int leader = (int) Keys.number(snapshot.leader(Keys.bytes(i), Group.QUERIES).leader());
                        same((long) leader, Keys.number(groups.leader(Keys.bytes(i)).leader()));
                        check(distance(codes.get(i), codes.get(leader)) <= length, leader);
                        if (leader == i) {
                            leaders.forEach(other -> check(distance(codes.get(leader), codes.get(other)) > length, other));
                            leaders.add(i);
                        }
                    }
                    same((long) leaders.size(), groups.count());
                    byte[] other = new byte[48 - length];
                    fails(TwindexException.Code.INVALID, "this one has " + 8 * other.length,
                            () -> snapshot.codeWithin(other, 3, 1));
                    fails(TwindexException.Code.INVALID, "this one has", () -> snapshot.codesWithin(List.of(other), 3, 1));
                    fails(TwindexException.Code.INVALID, "found 7", () -> snapshot.codeWithin(new byte[7], 3, 1));
                    fails(TwindexException.Code.INVALID, "bits apart", () -> snapshot.codeWithin(codes.get(0), 8 * length + 1, 1));
                    refuses("expected " + length + " bytes", () -> snapshot.codesWithin(List.of(codes.get(0), other), 3, 1));
                    fails(TwindexException.Code.INVALID, "has one of " + 8 * other.length,
                            () -> writer.putCode(Keys.bytes(0), other));
                    fails(TwindexException.Code.INVALID, "found 0", () -> writer.admitCode(Keys.bytes(0), new byte[0]));
                    Documents some = new Documents().addCode(Keys.bytes(0), other);
                    check(writer.putMany(some).error(0).getMessage().contains("has one of"), "another width");
                    refuses("expected " + other.length + " bytes", () -> some.addCode(Keys.bytes(1), codes.get(0)));
                    refuses("all or none", () -> writer.putMany(new Documents().addCode(key("a"), other).add("b", ROSE)));
                    fails(TwindexException.Code.INVALID, "bits", () -> writer.put(Keys.bytes(0), key(ROSE)));
                }
            }
        }
        try (Index index = create("texts.twx"); Writer writer = index.writer(); Snapshot snapshot = index.snapshot()) {
            byte[] code = new byte[32];
            fails(TwindexException.Code.INVALID, "keeps no fingerprints of 256 bits", () -> writer.putCode(key("a"), code));
            fails(TwindexException.Code.INVALID, "keeps no fingerprints of 256 bits", () -> writer.admitCode(key("a"), code));
            fails(TwindexException.Code.INVALID, "this one has 256", () -> snapshot.codeWithin(code, 3, 1));
            fails(TwindexException.Code.INVALID, "this one has 256", () -> snapshot.codesWithin(List.of(code), 3, 1));
        }
        try (Params params = new Params()) {
            refuses("found 256 and -1", () -> params.codes(256, -1));
            refuses("found 65792 and 31", () -> params.codes(65536 + 256, 31));
            params.codes(100, 3);
            fails(TwindexException.Code.INVALID, "codes is 100", () -> Index.create(directory.resolve("wide.twx"), params));
        }
    }

    private static void refuses(String words, Body body) throws Exception {
        try {
            body.run();
        } catch (IllegalArgumentException error) {
            check(error.getMessage().contains(words), error.getMessage());
            return;
        }
        throw new AssertionError("expected a refusal: " + words);
    }

    private static void threads() throws Exception {
        try (Params params = params(); Index index = Index.create(directory.resolve("threads.twx"), params);
                Writer writer = index.writer()) {
            writer.set("durability", "none");
            ExecutorService threads = Executors.newFixedThreadPool(8);
            List<Future<Void>> all = new ArrayList<>();
            for (int thread = 0; thread < 8; thread++) {
                int number = thread;
                all.add(threads.submit((Callable<Void>) () -> {
                    Documents documents = new Documents();
                    for (int page = 0; page < 200; page++) {
                        documents.add(number + "/" + page, "thread " + number + " page " + page + " with its own words "
                                + (number * 1000 + page) + " and " + page * 31);
                        if (documents.size() == 50) {
                            writer.putMany(documents).check();
                            documents.clear();
                            writer.commit();
                            try (Snapshot snapshot = index.snapshot()) {
                                check(snapshot.contains(key(number + "/" + page)), "a committed page");
                            }
                        }
                    }
                    return null;
                }));
            }
            for (Future<Void> one : all) {
                one.get(60, TimeUnit.SECONDS);
            }
            threads.shutdown();
            try (Snapshot snapshot = index.snapshot()) {
                same(1600L, snapshot.documents());
                check(!index.waitFor(snapshot.commit(), Duration.ofMillis(1)) || !index.refresh(), "no other process");
            }
        }
    }

    /** Closes handles that other threads are using: each call either works or says that the handle is closed. */
    private static void closedHandles() throws Exception {
        Index index = create("closed.twx");
        try (Writer writer = index.writer()) {
            writer.putMany(new Documents().add("a", ROSE).value(key(""))).check();
            writer.commit();
        }
        ExecutorService threads = Executors.newFixedThreadPool(4);
        AtomicInteger worked = new AtomicInteger();
        for (int round = 0; round < 50; round++) {
            Snapshot snapshot = index.snapshot();
            Sketcher sketcher = index.sketcher();
            CountDownLatch begun = new CountDownLatch(3);
            List<Future<Void>> all = new ArrayList<>();
            for (int thread = 0; thread < 3; thread++) {
                all.add(threads.submit((Callable<Void>) () -> {
                    begun.countDown();
                    try {
                        while (true) {
                            try (Sketch sketch = sketcher.sketch(ROSE)) {
                                same(1, snapshot.near(sketch, 1).size());
                                worked.incrementAndGet();
                            }
                        }
                    } catch (IllegalStateException closed) {
                        return null;
                    }
                }));
            }
            begun.await();
            snapshot.close();
            sketcher.close();
            snapshot.close();
            for (Future<Void> one : all) {
                one.get(60, TimeUnit.SECONDS);
            }
            isClosed(snapshot::documents);
            isClosed(() -> sketcher.sketch(ROSE));
        }
        threads.shutdown();
        check(worked.get() > 0, worked);
        index.close();
        isClosed(index::snapshot);
    }

    /** Forgets handles under load: the collector frees them, and calls that are in progress end well. */
    private static void garbage() throws Exception {
        WeakReference<Snapshot> forgotten;
        try (Index index = create("garbage.twx")) {
            try (Writer writer = index.writer()) {
                writer.putMany(new Documents().add("a", ROSE).value(key(""))).check();
                writer.commit();
            }
            ExecutorService threads = Executors.newFixedThreadPool(3);
            List<Future<Void>> all = new ArrayList<>();
            for (int thread = 0; thread < 3; thread++) {
                all.add(threads.submit((Callable<Void>) () -> {
                    for (int i = 0; i < 400; i++) {
                        // None of these is closed.
                        same(1, index.snapshot().near(index.sketcher().sketch(ROSE), 1).size());
                        same("a", Keys.text(index.snapshot().keys().next()));
                        byte[][] filler = new byte[64][];
                        for (int j = 0; j < filler.length; j++) {
                            filler[j] = new byte[4096];
                        }
                        if (i % 100 == 0) {
                            System.gc();
                        }
                    }
                    return null;
                }));
            }
            for (Future<Void> one : all) {
                one.get(120, TimeUnit.SECONDS);
            }
            threads.shutdown();
            forgotten = new WeakReference<>(index.snapshot());
        }
        for (int i = 0; i < 100 && forgotten.get() != null; i++) {
            System.gc();
            Thread.sleep(10);
        }
        check(forgotten.get() == null, "a forgotten handle stays");
    }

    public static void main(String[] arguments) throws Exception {
        directory = Path.of(arguments[0]);
        Map<String, Body> tests = new java.util.LinkedHashMap<>();
        tests.put("errors", Tests::errors);
        tests.put("documents", Tests::documents);
        tests.put("errorsOfItems", Tests::errorsOfItems);
        tests.put("groups", Tests::groups);
        tests.put("copies", Tests::copies);
        tests.put("numbers", Tests::numbers);
        tests.put("codes", Tests::codes);
        tests.put("threads", Tests::threads);
        tests.put("closedHandles", Tests::closedHandles);
        tests.put("garbage", Tests::garbage);
        for (Map.Entry<String, Body> test : tests.entrySet()) {
            long start = System.nanoTime();
            try {
                test.getValue().run();
            } catch (Throwable failed) {
                System.err.println("Tests: " + test.getKey() + " failed");
                failed.printStackTrace();
                System.exit(1);
            }
            if (arguments.length > 1) {
                System.out.printf("%s %.1f s%n", test.getKey(), (System.nanoTime() - start) / 1e9);
            }
        }
        System.out.println("Tests: passed");
        System.exit(0);
    }
}
