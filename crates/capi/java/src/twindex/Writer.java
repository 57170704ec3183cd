package twindex;

import com.sun.jna.Pointer;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/**
 * The only writer of an index. Threads may share it: texts are sketched in parallel, and changes are made one after the other.
 * Changes become visible at a commit; those that are not committed when the writer is closed are lost.
 */
public final class Writer extends Handle {
    Writer(long address) {
        super(address, Lib::twindex_writer_free);
    }

    /** A call that returns a code. */
    @FunctionalInterface
    private interface Call {
        int run(long writer, Scratch call) throws TwindexException;
    }

    /** A call that stores a result. */
    @FunctionalInterface
    private interface Result<T> {
        T of(Scratch call) throws TwindexException;
    }

    private <T> T call(Call run, Result<T> result) throws TwindexException {
        long writer = enter();
        try (Scratch call = Scratch.open()) {
            call.check(run.run(writer, call));
            return result.of(call);
        } finally {
            leave();
        }
    }

    private void call(Call run) throws TwindexException {
        call(run, call -> null);
    }

    /**
     * Sets an option by name, such as {@code drop_duplicates} to {@code true}; see {@code twindex_writer_set} in {@code
     * twindex.h}.
     *
     * @param name the name
     * @param value the value
     * @return this writer
     * @throws TwindexException the name is unknown, which lists all names, or the value is wrong
     */
    public Writer set(String name, String value) throws TwindexException {
        call((writer, call) -> Lib.twindex_writer_set(writer, call.string(name), call.string(value), call.error()));
        return this;
    }

    /**
     * Adds a document, or replaces the one with this key.
     *
     * @param key the key
     * @param text the text
     * @throws TwindexException the document cannot be stored
     */
    public void put(String key, String text) throws TwindexException {
        put(Keys.bytes(key), Keys.bytes(text));
    }

    /**
     * Adds a document, or replaces the one with this key.
     *
     * @param key the key
     * @param text the text in UTF-8
     * @throws TwindexException the document cannot be stored
     */
    public void put(byte[] key, byte[] text) throws TwindexException {
        call((writer, call) -> Lib.twindex_writer_put_text(
                writer, call.bytes(key), key.length, call.bytes(text), text.length, call.error()));
    }

    /**
     * Adds a document of an index made with {@link Params#codes}, or replaces the one with this key.
     *
     * @param key the key
     * @param code the fingerprint, the highest bits first: as many bytes as those of the index have
     * @throws TwindexException the fingerprint has another length, or the index stores none
     */
    public void putCode(byte[] key, byte[] code) throws TwindexException {
        call((writer, call) -> Lib.twindex_writer_put(
                writer, call.bytes(key), key.length, document(call, 0, code), call.error()));
    }

    /**
     * Adds documents, or replaces those with their keys. Texts are sketched in parallel.
     *
     * @param documents the documents, with texts or fingerprints
     * @return the errors of single documents
     * @throws TwindexException no document could be added
     */
    public Batch putMany(Documents documents) throws TwindexException {
        return many(documents, null, false);
    }

    /**
     * Adds documents with sketches that were computed before.
     *
     * @param documents the documents, without texts
     * @param sketches a sketch for each
     * @return the errors of single documents
     * @throws TwindexException no document could be added
     */
    public Batch putMany(Documents documents, Sketches sketches) throws TwindexException {
        return many(documents, sketches, false);
    }

    /**
     * Finds the nearest other document of each document and adds the document, as one atomic step for each, in order.
     *
     * @param documents the documents, with texts or fingerprints
     * @return how each was admitted
     * @throws TwindexException no document could be added
     */
    public Batch admitMany(Documents documents) throws TwindexException {
        return many(documents, null, true);
    }

    /**
     * As {@link #admitMany(Documents)}, with sketches that were computed before.
     *
     * @param documents the documents, without texts
     * @param sketches a sketch for each
     * @return how each was admitted
     * @throws TwindexException no document could be added
     */
    public Batch admitMany(Documents documents, Sketches sketches) throws TwindexException {
        return many(documents, sketches, true);
    }

    private Batch many(Documents documents, Sketches sketches, boolean admit) throws TwindexException {
        long sketched = sketches == null ? 0 : sketches.enter();
        try {
            return call(
                    (writer, call) -> {
                        long all = documents.write(call, sketched);
                        return admit
                                ? Lib.twindex_writer_admit_many(writer, all, call.out(), call.error())
                                : Lib.twindex_writer_put_many(writer, all, call.out(), call.error());
                    },
                    call -> new Batch(new Results(call.outLong()), admit));
        } finally {
            if (sketches != null) {
                sketches.leave();
            }
        }
    }

    /**
     * Finds the nearest other document and adds this document, as one atomic step.
     *
     * @param key the key
     * @param text the text
     * @return how it was admitted
     * @throws TwindexException the document cannot be stored
     */
    public Admitted admit(String key, String text) throws TwindexException {
        return admit(Keys.bytes(key), Keys.bytes(text));
    }

    /**
     * Finds the nearest other document and adds this document, as one atomic step.
     *
     * @param key the key
     * @param text the text in UTF-8
     * @return how it was admitted
     * @throws TwindexException the document cannot be stored
     */
    public Admitted admit(byte[] key, byte[] text) throws TwindexException {
        long writer = enter();
        try (Scratch call = Scratch.open()) {
            long admitted = call.zeros(8);
            call.check(Lib.twindex_writer_admit_text(writer, call.bytes(key), key.length, call.bytes(text), text.length,
                    admitted, call.out(), call.error()));
            return admitted(admitted, call);
        } finally {
            leave();
        }
    }

    /**
     * As {@link #admit(byte[], byte[])}, for an index made with {@link Params#codes}.
     *
     * @param key the key
     * @param code the fingerprint, the highest bits first: as many bytes as those of the index have
     * @return how it was admitted
     * @throws TwindexException the fingerprint has another length, or the index stores none
     */
    public Admitted admitCode(byte[] key, byte[] code) throws TwindexException {
        long writer = enter();
        try (Scratch call = Scratch.open()) {
            long admitted = call.zeros(8);
            call.check(Lib.twindex_writer_admit(writer, call.bytes(key), key.length, document(call, 0, code), admitted,
                    call.out(), call.error()));
            return admitted(admitted, call);
        } finally {
            leave();
        }
    }

    private static Admitted admitted(long address, Scratch call) {
        List<Hit> hits = Hits.of(call.outLong());
        return new Admitted(Admitted.Kind.of(new Pointer(address).getInt(0)), hits.isEmpty() ? null : hits.get(0));
    }

    /** Returns the address of a document that has nothing but a sketch or a fingerprint; the other is 0 or null. */
    private static long document(Scratch call, long sketch, byte[] code) {
        long address = call.zeros(96);
        Pointer at = new Pointer(address);
        at.setLong(0, 96);
        at.setLong(8, sketch);
        if (code != null) {
            at.setLong(80, call.bytes(code));
            at.setLong(88, code.length);
        }
        return address;
    }

    /**
     * The result of {@link #admitGrouped}.
     *
     * @param admitted how the document was admitted
     * @param group the group of the document without its members; null for a duplicate that was dropped
     */
    public record Grouped(Admitted admitted, Group group) {}

    /**
     * As {@link #admit}, and finds the leader and the size of the document's group, including uncommitted changes.
     *
     * @param key the key
     * @param sketch the sketch
     * @param maxQueries the maximum number of queries, such as {@link Group#QUERIES}
     * @return how it was admitted, and its group
     * @throws TwindexException the document cannot be stored, or the group takes more queries
     */
    public Grouped admitGrouped(byte[] key, Sketch sketch, long maxQueries) throws TwindexException {
        long with = sketch.enter();
        try {
            return admitGrouped(key, with, null, maxQueries);
        } finally {
            sketch.leave();
        }
    }

    /**
     * As {@link #admitGrouped(byte[], Sketch, long)}, for an index made with {@link Params#codes}.
     *
     * @param key the key
     * @param code the fingerprint, the highest bits first: as many bytes as those of the index have
     * @param maxQueries the maximum number of queries, such as {@link Group#QUERIES}
     * @return how it was admitted, and its group
     * @throws TwindexException the fingerprint has another length, or the group takes more queries
     */
    public Grouped admitCodeGrouped(byte[] key, byte[] code, long maxQueries) throws TwindexException {
        return admitGrouped(key, 0, code, maxQueries);
    }

    private Grouped admitGrouped(byte[] key, long sketch, byte[] code, long maxQueries) throws TwindexException {
        long writer = enter();
        try (Scratch call = Scratch.open()) {
            long admitted = call.zeros(8);
            long group = call.zeros(8);
            int done = Lib.twindex_writer_admit_grouped(writer, call.bytes(key), key.length, document(call, sketch, code),
                    maxQueries, admitted, call.out(), group, call.error());
            Admitted found = admitted(admitted, call);
            call.check(done);
            return new Grouped(found, Group.of(new Pointer(group).getLong(0)));
        } finally {
            leave();
        }
    }

    /**
     * Finds the documents near a sketch by the rule of this writer, including uncommitted changes.
     *
     * @param sketch the sketch
     * @param limit the maximum number of hits
     * @return the hits, nearest first
     * @throws TwindexException the sketch has other parameters, or damaged data
     */
    public List<Hit> near(Sketch sketch, long limit) throws TwindexException {
        long with = sketch.enter();
        try {
            return near(with, null, limit);
        } finally {
            sketch.leave();
        }
    }

    /**
     * As {@link #near(Sketch, long)}, for an index made with {@link Params#codes}.
     *
     * @param code the fingerprint, the highest bits first: as many bytes as those of the index have
     * @param limit the maximum number of hits
     * @return the hits, nearest first
     * @throws TwindexException the fingerprint has another length, or damaged data
     */
    public List<Hit> nearCode(byte[] code, long limit) throws TwindexException {
        return near(0, code, limit);
    }

    private List<Hit> near(long sketch, byte[] code, long limit) throws TwindexException {
        return call(
                (writer, call) -> Lib.twindex_writer_find_near(
                        writer, document(call, sketch, code), limit, call.out(), call.error()),
                call -> Hits.of(call.outLong()));
    }

    /**
     * Deletes the document with this key, if it exists.
     *
     * @param key the key
     * @throws TwindexException a key of the wrong kind
     */
    public void delete(byte[] key) throws TwindexException {
        call((writer, call) -> Lib.twindex_writer_delete(writer, call.bytes(key), key.length, call.error()));
    }

    /**
     * Deletes the documents with these keys, if they exist.
     *
     * @param keys the keys
     * @throws TwindexException a key of the wrong kind
     */
    public void deleteMany(List<byte[]> keys) throws TwindexException {
        Bytes packed = new Bytes();
        keys.forEach(packed::add);
        call((writer, call) -> Lib.twindex_writer_delete_many(
                writer, packed.bytes(call), packed.offsets(call), packed.count(), call.error()));
    }

    /**
     * Deletes all documents whose keys begin with these bytes.
     *
     * @param prefix the first bytes of the keys; all documents if there are none
     * @return the number of deleted documents
     * @throws TwindexException the keys of the index are numbers
     */
    public long deletePrefix(byte[] prefix) throws TwindexException {
        return call(
                (writer, call) -> Lib.twindex_writer_delete_prefix(
                        writer, call.bytes(prefix), prefix.length, call.out(), call.error()),
                Scratch::outLong);
    }

    /**
     * Returns whether a document with this key exists, including uncommitted changes.
     *
     * @param key the key
     * @return whether it exists
     * @throws TwindexException a key of the wrong kind
     */
    public boolean contains(byte[] key) throws TwindexException {
        return call(
                (writer, call) -> Lib.twindex_writer_contains(
                        writer, call.bytes(key), key.length, call.out(), call.error()),
                Scratch::outFlag);
    }

    /**
     * Returns the stored record of a document, including uncommitted changes.
     *
     * @param key the key
     * @return the record; null if there is no such document
     * @throws TwindexException a key of the wrong kind
     */
    public Record get(byte[] key) throws TwindexException {
        return call(
                (writer, call) -> Lib.twindex_writer_get(writer, call.bytes(key), key.length, call.out(), call.error()),
                call -> record(call.outLong()));
    }

    private static Record record(long record) {
        if (record == 0) {
            return null;
        }
        try (Scratch call = Scratch.open()) {
            Long fingerprint = Lib.twindex_record_fingerprint(record, call.out()) == 0 ? null : (Long) call.outLong();
            Long stamp = Lib.twindex_record_stamp(record, call.out()) == 0 ? null : (Long) call.outLong();
            Long priority = Lib.twindex_record_priority(record, call.out()) == 0 ? null : (Long) call.outLong();
            byte[] code = call.copyOut(Lib.twindex_record_code(record, call.out()));
            byte[] value = call.copyOut(Lib.twindex_record_value(record, call.out()));
            return new Record(fingerprint, code, value, stamp, priority, Lib.twindex_record_is_duplicate(record) != 0);
        } finally {
            Lib.twindex_record_free(record);
        }
    }

    /**
     * Returns the leader of a document, including uncommitted changes.
     *
     * @param key the key
     * @param maxQueries the maximum number of queries, such as {@link Group#QUERIES}
     * @return the group with its leader alone; null if there is no such document
     * @throws TwindexException it takes more queries
     */
    public Group leader(byte[] key, long maxQueries) throws TwindexException {
        return call(
                (writer, call) -> Lib.twindex_writer_leader(
                        writer, call.bytes(key), key.length, maxQueries, call.out(), call.error()),
                call -> Group.of(call.outLong()));
    }

    /**
     * Returns the group of a document with its members, including uncommitted changes.
     *
     * @param key the key
     * @param maxQueries the maximum number of queries, such as {@link Group#QUERIES}
     * @return the group; null if there is no such document
     * @throws TwindexException it takes more queries
     */
    public Group group(byte[] key, long maxQueries) throws TwindexException {
        return call(
                (writer, call) -> Lib.twindex_writer_group(
                        writer, call.bytes(key), key.length, maxQueries, call.out(), call.error()),
                call -> Group.of(call.outLong()));
    }

    /**
     * Removes the mark of a document.
     *
     * @param key the key
     * @return false if there is no such document, or if it has no mark
     * @throws TwindexException a key of the wrong kind
     */
    public boolean unmark(byte[] key) throws TwindexException {
        return call(
                (writer, call) -> Lib.twindex_writer_unmark(writer, call.bytes(key), key.length, call.out(), call.error()),
                Scratch::outFlag);
    }

    /**
     * Commits all changes, durably unless the option {@code durability} says otherwise.
     *
     * @return the commit number
     * @throws TwindexException the changes are lost, unless the code is {@code AFTER_COMMIT}; open another writer
     */
    public long commit() throws TwindexException {
        return call((writer, call) -> Lib.twindex_writer_commit(writer, call.out(), call.error()), Scratch::outLong);
    }

    /**
     * As {@link #commit()}, and stores up to 64 KiB of the caller's data with the commit, such as the position at which to
     * resume after a crash.
     *
     * @param payload the data
     * @return the commit number
     * @throws TwindexException as {@link #commit()}
     */
    public long commit(byte[] payload) throws TwindexException {
        return call(
                (writer, call) -> Lib.twindex_writer_commit_with(
                        writer, call.bytes(payload), payload.length, call.out(), call.error()),
                Scratch::outLong);
    }

    /**
     * Makes all commits survive a crash of the machine.
     *
     * @throws TwindexException the disk failed
     */
    public void sync() throws TwindexException {
        call((writer, call) -> Lib.twindex_writer_sync(writer, call.error()));
    }

    /**
     * Drops all uncommitted changes.
     *
     * @throws TwindexException the writer had failed
     */
    public void rollback() throws TwindexException {
        call((writer, call) -> Lib.twindex_writer_rollback(writer, call.error()));
    }

    /**
     * Writes the documents of the log to a segment.
     *
     * @throws TwindexException there are uncommitted changes, or the disk failed
     */
    public void flush() throws TwindexException {
        call((writer, call) -> Lib.twindex_writer_flush(writer, call.error()));
    }

    /**
     * Merges all segments and the batch into one segment, and commits it.
     *
     * @return the commit number
     * @throws TwindexException the disk failed or is full
     */
    public long compact() throws TwindexException {
        return call((writer, call) -> Lib.twindex_writer_compact(writer, 0, call.out(), call.error()), Scratch::outLong);
    }

    /**
     * Runs the next due merge of segments.
     *
     * @return false if none is due
     * @throws TwindexException the disk failed or is full
     */
    public boolean mergeStep() throws TwindexException {
        return call((writer, call) -> Lib.twindex_writer_merge_step(writer, 0, call.out(), call.error()), Scratch::outFlag);
    }

    /**
     * Waits for the merge in the background, if one is running.
     *
     * @throws TwindexException the merge failed
     */
    public void waitForMerge() throws TwindexException {
        call((writer, call) -> Lib.twindex_writer_wait_for_merge(writer, call.error()));
    }

    /**
     * Throws the error that stopped merges in the background, if there is one, and lets them begin again.
     *
     * @throws TwindexException that error
     */
    public void takeMergeFailure() throws TwindexException {
        call((writer, call) -> Lib.twindex_writer_take_merge_failure(writer, call.error()));
    }

    /**
     * Removes files that the index does not need.
     *
     * @return their size in bytes
     * @throws TwindexException there are uncommitted changes, or the disk failed
     */
    public long gc() throws TwindexException {
        return call((writer, call) -> Lib.twindex_writer_gc(writer, call.out(), call.error()), Scratch::outLong);
    }

    /**
     * Adds the documents of segment files of other indexes to the batch.
     *
     * @param segments the paths, from {@link Snapshot#segments}
     * @return the number of documents
     * @throws TwindexException a segment has other parameters or is damaged
     */
    public long ingest(List<Path> segments) throws TwindexException {
        List<Path> all = new ArrayList<>(segments);
        return call(
                (writer, call) -> Lib.twindex_writer_ingest(
                        writer, call.strings(all), all.size(), call.out(), call.error()),
                Scratch::outLong);
    }
}
