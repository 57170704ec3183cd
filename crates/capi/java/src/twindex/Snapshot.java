package twindex;

import com.sun.jna.Pointer;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.OptionalLong;
import java.util.UUID;

/** The state of an index at one commit, which never changes. It keeps its files open until it is closed. */
public final class Snapshot extends Handle {
    /** How an index decides which stored documents are near. */
    public enum GroupRule {
        /** By the exact distance of their fingerprints. */
        BY_DISTANCE,
        /** By the exact resemblance of their sets. */
        COUNTED,
        /** By the resemblance that their signatures estimate. */
        ESTIMATED
    }

    Snapshot(long address) {
        super(address, Lib::twindex_snapshot_free);
    }

    /** A call that returns a code. */
    @FunctionalInterface
    private interface Call {
        int run(long snapshot, Scratch call);
    }

    /** A call that stores a result. */
    @FunctionalInterface
    private interface Result<T> {
        T of(Scratch call) throws TwindexException;
    }

    private <T> T call(Call run, Result<T> result) throws TwindexException {
        long snapshot = enter();
        try (Scratch call = Scratch.open()) {
            call.check(run.run(snapshot, call));
            return result.of(call);
        } finally {
            leave();
        }
    }

    /**
     * Returns the number of live documents.
     *
     * @return the number of live documents
     */
    public long documents() {
        long snapshot = enter();
        try {
            return Lib.twindex_snapshot_documents(snapshot);
        } finally {
            leave();
        }
    }

    /**
     * Returns the number of the snapshot's commit.
     *
     * @return the number of the commit
     */
    public long commit() {
        long snapshot = enter();
        try {
            return Lib.twindex_snapshot_commit(snapshot);
        } finally {
            leave();
        }
    }

    /**
     * Returns the number of the last commit that is known to survive a crash of the machine.
     *
     * @return the number of the commit
     */
    public long durableCommit() {
        long snapshot = enter();
        try {
            return Lib.twindex_snapshot_durable_commit(snapshot);
        } finally {
            leave();
        }
    }

    /**
     * Returns the data of the last {@link Writer#commit(byte[])}.
     *
     * @return the data; null if there is none
     */
    public byte[] payload() {
        long snapshot = enter();
        try (Scratch call = Scratch.open()) {
            return call.copyOut(Lib.twindex_snapshot_payload(snapshot, call.out()));
        } finally {
            leave();
        }
    }

    /**
     * Returns the highest committed stamp, relative to which documents expire.
     *
     * @return the stamp, if there is one
     */
    public OptionalLong now() {
        long snapshot = enter();
        try (Scratch call = Scratch.open()) {
            boolean has = Lib.twindex_snapshot_now(snapshot, call.out()) != 0;
            return has ? OptionalLong.of(call.outLong()) : OptionalLong.empty();
        } finally {
            leave();
        }
    }

    /**
     * Returns the UUID of the index.
     *
     * @return the UUID
     * @throws TwindexException a bug of the library
     */
    public UUID uuid() throws TwindexException {
        long[] high = new long[1];
        return call(
                (snapshot, call) -> {
                    high[0] = call.zeros(8);
                    return Lib.twindex_snapshot_uuid(snapshot, high[0], call.out(), call.error());
                },
                call -> new UUID(new Pointer(high[0]).getLong(0), call.outLong()));
    }

    /**
     * Returns the paths of the segments on disk, oldest first.
     *
     * @return the paths
     */
    public List<Path> segments() {
        long snapshot = enter();
        try {
            List<Path> paths = new ArrayList<>();
            for (long at = 0;; at++) {
                String path = Scratch.text(Lib.twindex_snapshot_segment(snapshot, at));
                if (path == null) {
                    return paths;
                }
                paths.add(Path.of(path));
            }
        } finally {
            leave();
        }
    }

    /**
     * Returns whether there is a document with this key.
     *
     * @param key the key
     * @return whether there is one
     * @throws TwindexException a key of the wrong kind, or damaged data
     */
    public boolean contains(byte[] key) throws TwindexException {
        return call(
                (snapshot, call) -> Lib.twindex_snapshot_contains(
                        snapshot, call.bytes(key), key.length, call.out(), call.error()),
                Scratch::outFlag);
    }

    /**
     * Returns the stored record of a document.
     *
     * @param key the key
     * @return the record; null if there is no such document
     * @throws TwindexException a key of the wrong kind, or damaged data
     */
    public Record get(byte[] key) throws TwindexException {
        return getMany(List.of(key)).get(0);
    }

    /**
     * Returns the stored records of documents.
     *
     * @param keys the keys
     * @return a record for each key; null if there is no such document
     * @throws TwindexException a key of the wrong kind, or damaged data
     */
    public List<Record> getMany(List<byte[]> keys) throws TwindexException {
        Bytes packed = new Bytes();
        keys.forEach(packed::add);
        return call(
                (snapshot, call) -> Lib.twindex_snapshot_get_many(snapshot, packed.bytes(call), packed.offsets(call),
                        packed.count(), 0, call.out(), call.error()),
                call -> {
                    Results results = new Results(call.outLong());
                    List<Record> records = new ArrayList<>(results.items());
                    for (int i = 0; i < results.items(); i++) {
                        results.check(i);
                        boolean has = results.start(i) < results.start(i + 1);
                        records.add(has ? results.record(results.start(i)) : null);
                    }
                    return records;
                });
    }

    /**
     * Returns all keys in ascending order.
     *
     * @return the keys, to be closed
     * @throws TwindexException damaged data
     */
    public Keys keys() throws TwindexException {
        return keys(new byte[0]);
    }

    /**
     * Returns the keys that begin with these bytes, in ascending order.
     *
     * @param prefix the first bytes
     * @return the keys, to be closed
     * @throws TwindexException the keys of the index are numbers, or damaged data
     */
    public Keys keys(byte[] prefix) throws TwindexException {
        return call(
                (snapshot, call) -> Lib.twindex_snapshot_keys(
                        snapshot, call.bytes(prefix), prefix.length, call.out(), call.error()),
                call -> new Keys(call.outLong()));
    }

    /**
     * Returns the keys from one key up to, but without, another, in ascending order.
     *
     * @param from the first key; null for no bound
     * @param to the key before which the range ends; null for no bound
     * @return the keys, to be closed
     * @throws TwindexException a key of the wrong kind, or damaged data
     */
    public Keys range(byte[] from, byte[] to) throws TwindexException {
        return call(
                (snapshot, call) -> Lib.twindex_snapshot_range(snapshot, from == null ? 0 : call.bytes(from),
                        from == null ? 0 : from.length, to == null ? 0 : call.bytes(to), to == null ? 0 : to.length, 0,
                        call.out(), call.error()),
                call -> new Keys(call.outLong()));
    }

    /**
     * Finds the documents near a sketch by the rule of the index.
     *
     * @param sketch the sketch
     * @param limit the maximum number of hits
     * @return the hits, nearest first
     * @throws TwindexException the sketch has other parameters, or damaged data
     */
    public List<Hit> near(Sketch sketch, long limit) throws TwindexException {
        return near(sketch, new Query().limit(limit));
    }

    /**
     * Finds the documents near a sketch.
     *
     * @param sketch the sketch
     * @param query how they are found
     * @return the hits, nearest first
     * @throws TwindexException the index cannot answer the query, or damaged data
     */
    public List<Hit> near(Sketch sketch, Query query) throws TwindexException {
        long with = sketch.enter();
        try {
            return call(
                    (snapshot, call) -> Lib.twindex_snapshot_query(
                            snapshot, with, query.write(call), call.out(), call.error()),
                    call -> Hits.of(call.outLong()));
        } finally {
            sketch.leave();
        }
    }

    /**
     * Finds the documents near each of many sketches, in parallel on all cores.
     *
     * @param sketches the sketches
     * @param query how they are found
     * @return the hits for each sketch, nearest first
     * @throws TwindexException the index cannot answer a query, or damaged data
     */
    public List<List<Hit>> nearMany(Sketches sketches, Query query) throws TwindexException {
        long with = sketches.enter();
        try {
            return call(
                    (snapshot, call) -> Lib.twindex_snapshot_near_many(
                            snapshot, with, query.write(call), 0, call.out(), call.error()),
                    call -> new Results(call.outLong()).hits());
        } finally {
            sketches.leave();
        }
    }

    /**
     * Returns the number of documents near a sketch, without regard to the limit of the query.
     *
     * @param sketch the sketch
     * @param query how they are found
     * @return their number
     * @throws TwindexException the index cannot answer the query, or damaged data
     */
    public long count(Sketch sketch, Query query) throws TwindexException {
        long with = sketch.enter();
        try {
            return call(
                    (snapshot, call) -> Lib.twindex_snapshot_count(
                            snapshot, with, query.write(call), call.out(), call.error()),
                    Scratch::outLong);
        } finally {
            sketch.leave();
        }
    }

    /**
     * Finds documents whose resemblance to a sketch made with other parameters, but equal bands, is at least a threshold; for
     * sketches with the parameters of the index, {@link #near(Sketch, Query)} does the same.
     *
     * @param sketch the sketch
     * @param threshold the threshold; 0 with {@code unverified} for all documents that share a band
     * @param unverified whether resemblance is not compared with the threshold
     * @param estimated whether resemblance is estimated even if the index stores sets
     * @param limit the maximum number of hits
     * @return the hits, nearest first
     * @throws TwindexException the index cannot answer the query, or damaged data
     */
    public List<Hit> resembling(Sketch sketch, double threshold, boolean unverified, boolean estimated, long limit)
            throws TwindexException {
        long with = sketch.enter();
        try {
            int flags = (unverified ? 1 : 0) | (estimated ? 2 : 0);
            return call(
                    (snapshot, call) -> Lib.twindex_snapshot_resembling(
                            snapshot, with, threshold, flags, limit, call.out(), call.error()),
                    call -> Hits.of(call.outLong()));
        } finally {
            sketch.leave();
        }
    }

    /**
     * Finds documents whose fingerprints differ from a fingerprint in at most this number of bits.
     *
     * @param fingerprint the fingerprint
     * @param bits the number of bits
     * @param limit the maximum number of hits
     * @return the hits, nearest first
     * @throws TwindexException the index has no fingerprints, or damaged data
     */
    public List<Hit> within(long fingerprint, int bits, long limit) throws TwindexException {
        return call(
                (snapshot, call) -> Lib.twindex_snapshot_within(
                        snapshot, fingerprint, bits, limit, call.out(), call.error()),
                call -> Hits.of(call.outLong()));
    }

    /**
     * As {@link #within}, for an index made with {@link Params#codes}.
     *
     * @param code the fingerprint, the highest bits first: as many bytes as those of the index have
     * @param bits the number of bits, at most those of a fingerprint
     * @param limit the maximum number of hits
     * @return the hits, nearest first
     * @throws TwindexException a fingerprint of another length, more bits, or damaged data
     */
    public List<Hit> codeWithin(byte[] code, int bits, long limit) throws TwindexException {
        return call(
                (snapshot, call) -> Lib.twindex_snapshot_code_within(
                        snapshot, call.bytes(code), code.length, bits, limit, call.out(), call.error()),
                call -> Hits.of(call.outLong()));
    }

    /**
     * As {@link #codeWithin} for many fingerprints, in parallel on all cores. The stored fingerprints are read once for many of
     * them.
     *
     * @param codes the fingerprints, the highest bits first: each has as many bytes as those of the index
     * @param bits the number of bits, at most those of a fingerprint
     * @param limit the maximum number of hits for each
     * @return the hits for each fingerprint, nearest first
     * @throws TwindexException fingerprints of another length, more bits, or damaged data
     * @throws IllegalArgumentException fingerprints of several lengths
     */
    public List<List<Hit>> codesWithin(List<byte[]> codes, int bits, long limit) throws TwindexException {
        Bytes packed = new Bytes();
        codes.forEach(packed::addCode);
        return call(
                (snapshot, call) -> Lib.twindex_snapshot_codes_within(snapshot, packed.bytes(call), packed.codeLength(),
                        packed.count(), bits, limit, 0, call.out(), call.error()),
                call -> new Results(call.outLong()).hits());
    }

    /**
     * Returns the leader of a document.
     *
     * @param key the key
     * @param maxQueries the maximum number of queries, such as {@link Group#QUERIES}
     * @return the group with its leader alone; null if there is no such document
     * @throws TwindexException it takes more queries
     */
    public Group leader(byte[] key, long maxQueries) throws TwindexException {
        return call(
                (snapshot, call) -> Lib.twindex_snapshot_leader(
                        snapshot, call.bytes(key), key.length, maxQueries, call.out(), call.error()),
                call -> Group.of(call.outLong()));
    }

    /**
     * Returns the leader of a document and the size of its group.
     *
     * @param key the key
     * @param maxQueries the maximum number of queries, such as {@link Group#QUERIES}
     * @return the group without members; null if there is no such document
     * @throws TwindexException it takes more queries
     */
    public Group membership(byte[] key, long maxQueries) throws TwindexException {
        return call(
                (snapshot, call) -> Lib.twindex_snapshot_membership(
                        snapshot, call.bytes(key), key.length, maxQueries, call.out(), call.error()),
                call -> Group.of(call.outLong()));
    }

    /**
     * Returns the group of a document with its members.
     *
     * @param key the key
     * @param maxQueries the maximum number of queries, such as {@link Group#QUERIES}
     * @return the group; null if there is no such document
     * @throws TwindexException it takes more queries
     */
    public Group group(byte[] key, long maxQueries) throws TwindexException {
        return call(
                (snapshot, call) -> Lib.twindex_snapshot_group(
                        snapshot, call.bytes(key), key.length, maxQueries, call.out(), call.error()),
                call -> Group.of(call.outLong()));
    }

    /**
     * Returns how the index decides which stored documents are near.
     *
     * @return the rule
     * @throws TwindexException the index cannot decide it
     */
    public GroupRule groupRule() throws TwindexException {
        return call(
                (snapshot, call) -> Lib.twindex_snapshot_group_rule(snapshot, call.out(), call.error()),
                call -> GroupRule.values()[new Pointer(call.out()).getInt(0)]);
    }

    /**
     * Computes all groups.
     *
     * @param scratch a directory for scratch files
     * @param memory the memory budget in bytes
     * @return the groups
     * @throws TwindexException damaged data, or the disk failed
     */
    public Groups groups(Path scratch, long memory) throws TwindexException {
        return call(
                (snapshot, call) -> Lib.twindex_snapshot_groups(
                        snapshot, call.path(scratch), memory, 0, 0, call.out(), call.error()),
                call -> new Groups(call.outLong()));
    }

    /**
     * Finds the documents whose leader differs between an earlier snapshot and this one.
     *
     * @param since the earlier snapshot
     * @return the documents, in the order of keys
     * @throws TwindexException a snapshot of another index, or damaged data
     */
    public List<LeaderChange> changedLeaders(Snapshot since) throws TwindexException {
        long before = since.enter();
        try {
            return call(
                    (snapshot, call) -> Lib.twindex_snapshot_changed_leaders(snapshot, before, call.out(), call.error()),
                    call -> changes(call.outLong()));
        } finally {
            since.leave();
        }
    }

    private static List<LeaderChange> changes(long changes) {
        try (Scratch call = Scratch.open()) {
            List<LeaderChange> all = new ArrayList<>();
            for (long at = 0; at < Lib.twindex_changes_len(changes); at++) {
                all.add(new LeaderChange(
                        call.copyOut(Lib.twindex_changes_key(changes, at, call.out())),
                        call.copyOut(Lib.twindex_changes_before(changes, at, call.out())),
                        call.copyOut(Lib.twindex_changes_after(changes, at, call.out()))));
            }
            return all;
        } finally {
            Lib.twindex_changes_free(changes);
        }
    }
}
