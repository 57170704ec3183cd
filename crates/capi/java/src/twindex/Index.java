package twindex;

import com.sun.jna.Pointer;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;

/**
 * An index of near-duplicate documents in a directory. Any number of threads and processes may read it; one {@link Writer} at a
 * time changes it. Sketchers, writers and snapshots remain valid after the index was closed.
 *
 * <pre>{@code
 * try (Params params = new Params().set("near", "0.8").set("sets", "kept");
 *         Index index = Index.openOrCreate(Path.of("pages.twx"), params);
 *         Writer writer = index.writer()) {
 *     Admitted admitted = writer.admit("https://example.org/", "a rose is a rose is a rose");
 *     writer.commit();
 * }
 * }</pre>
 */
public final class Index extends Handle {
    /** How segment files are read. */
    public enum Access {
        /** Maps files, with advice to the operating system. */
        MAP,
        /** Maps files without advice. */
        PLAIN_MAP,
        /** Reads each page at its first use. An unreadable page is an error, and never ends the process. */
        READ,
        /** Reads each file completely when it is opened. */
        LOAD
    }

    /** What {@link #merge} does with a key that has different records in several indexes. */
    public enum OnConflict {
        /** Throws an exception. */
        REFUSE,
        /** Keeps the record of the first index. */
        FIRST,
        /** Keeps the record of the last index. */
        LAST
    }

    /**
     * The result of {@link #merge}.
     *
     * @param documents the number of documents in the new index
     * @param repeated the number of keys that several indexes contain with the same record
     * @param conflicts the number of keys that several indexes contain with different records
     */
    public record Merged(long documents, long repeated, long conflicts) {}

    /** A call that stores an address. */
    @FunctionalInterface
    private interface Call {
        int run(long index, Scratch call);
    }

    private Index(long address) {
        super(address, Lib::twindex_index_free);
    }

    /**
     * Creates an empty index in a new directory.
     *
     * @param path the directory
     * @param params the parameters
     * @return the index
     * @throws TwindexException the path exists and is not an empty directory
     */
    public static Index create(Path path, Params params) throws TwindexException {
        long with = params.enter();
        try (Scratch call = Scratch.open()) {
            call.check(Lib.twindex_index_create(call.path(path), with, call.out(), call.error()));
            return new Index(call.outLong());
        } finally {
            params.leave();
        }
    }

    /**
     * Opens the index at a path, or creates it.
     *
     * @param path the directory
     * @param params the parameters
     * @return the index
     * @throws TwindexException the index exists with other parameters
     */
    public static Index openOrCreate(Path path, Params params) throws TwindexException {
        long with = params.enter();
        try (Scratch call = Scratch.open()) {
            call.check(Lib.twindex_index_open_or_create(call.path(path), with, call.out(), call.error()));
            return new Index(call.outLong());
        } finally {
            params.leave();
        }
    }

    /**
     * Opens an existing index.
     *
     * @param path the directory
     * @return the index
     * @throws TwindexException there is no index, or it is damaged
     */
    public static Index open(Path path) throws TwindexException {
        return open(path, Access.MAP, 0);
    }

    /**
     * Opens an existing index with options.
     *
     * @param path the directory
     * @param access how segment files are read
     * @param generation the generation to open; 0 for the newest
     * @return the index
     * @throws TwindexException there is no index, or it is damaged
     */
    public static Index open(Path path, Access access, long generation) throws TwindexException {
        try (Scratch call = Scratch.open()) {
            long options = call.zeros(40);
            Pointer at = new Pointer(options);
            at.setLong(0, 40);
            at.setInt(8, access.ordinal());
            at.setLong(16, generation);
            call.check(Lib.twindex_index_open_with(call.path(path), options, call.out(), call.error()));
            return new Index(call.outLong());
        }
    }

    /**
     * Merges indexes with the same parameters into a new index.
     *
     * @param path the directory of the new index
     * @param indexes the indexes, which are not changed
     * @param onConflict what is done with a key that has different records
     * @param memory the memory budget in bytes
     * @return the numbers of documents
     * @throws TwindexException the parameters differ, a conflict was refused, or the path exists
     */
    public static Merged merge(Path path, List<Index> indexes, OnConflict onConflict, long memory) throws TwindexException {
        long[] all = new long[indexes.size()];
        int entered = 0;
        try (Scratch call = Scratch.open()) {
            for (; entered < all.length; entered++) {
                all[entered] = indexes.get(entered).enter();
            }
            long merged = call.zeros(32);
            Pointer at = new Pointer(merged);
            at.setLong(0, 32);
            call.check(Lib.twindex_index_merge(call.path(path), call.longs(all, all.length), all.length,
                    onConflict.ordinal(), memory, 0, merged, call.error()));
            return new Merged(at.getLong(8), at.getLong(16), at.getLong(24));
        } finally {
            for (int i = 0; i < entered; i++) {
                indexes.get(i).leave();
            }
        }
    }

    /**
     * Creates an index from segment files of other indexes.
     *
     * @param path the directory of the new index
     * @param params the parameters
     * @param segments the paths, from {@link Snapshot#segments}
     * @return the number of documents
     * @throws TwindexException a key is in two segments, or a segment has other parameters
     */
    public static long adopt(Path path, Params params, List<Path> segments) throws TwindexException {
        long with = params.enter();
        try (Scratch call = Scratch.open()) {
            call.check(Lib.twindex_index_adopt(call.path(path), with, call.strings(segments), segments.size(), call.out(),
                    call.error()));
            return call.outLong();
        } finally {
            params.leave();
        }
    }

    /**
     * Verifies all files of an index that may be too damaged to be opened.
     *
     * @param path the directory
     * @return the problems
     * @throws TwindexException a bug of the library
     */
    public static Findings verify(Path path) throws TwindexException {
        try (Scratch call = Scratch.open()) {
            call.check(Lib.twindex_verify(call.path(path), Access.READ.ordinal(), 0, 0, 0, call.out(), call.error()));
            return Findings.of(call.outLong());
        }
    }

    /**
     * Recovers the readable documents of a damaged index into a new index. Changes nothing at {@code path}.
     *
     * @param path the directory of the damaged index
     * @param out the directory of the new index
     * @return what was recovered
     * @throws TwindexException nothing can be recovered, or {@code out} exists
     */
    public static Salvage salvage(Path path, Path out) throws TwindexException {
        try (Scratch call = Scratch.open()) {
            call.check(Lib.twindex_salvage(call.path(path), call.path(out), call.out(), call.error()));
            return Salvage.of(call.outLong());
        }
    }

    private long call(Call run) throws TwindexException {
        long index = enter();
        try (Scratch call = Scratch.open()) {
            call.check(run.run(index, call));
            return call.outLong();
        } finally {
            leave();
        }
    }

    /**
     * Returns the absolute path of the index.
     *
     * @return the path
     */
    public Path path() {
        long index = enter();
        try {
            return Path.of(Scratch.text(Lib.twindex_index_path(index)));
        } finally {
            leave();
        }
    }

    /**
     * Returns the complete parameters of the index.
     *
     * @return the parameters
     * @throws TwindexException the table of document frequencies is damaged
     */
    public Params params() throws TwindexException {
        return new Params(call((index, call) -> Lib.twindex_index_params(index, call.out(), call.error())));
    }

    /**
     * Creates a sketcher with the parameters of the index.
     *
     * @return the sketcher
     * @throws TwindexException the table of document frequencies is damaged
     */
    public Sketcher sketcher() throws TwindexException {
        return new Sketcher(call((index, call) -> Lib.twindex_index_sketcher(index, call.out(), call.error())));
    }

    /**
     * Returns the current state of the index, which later commits do not change. It keeps its files open until it is closed.
     *
     * @return the snapshot
     * @throws TwindexException a bug of the library
     */
    public Snapshot snapshot() throws TwindexException {
        return new Snapshot(call((index, call) -> Lib.twindex_index_snapshot(index, call.out(), call.error())));
    }

    /**
     * Locks the index and creates its writer.
     *
     * @return the writer
     * @throws TwindexException any process has a writer of this index
     */
    public Writer writer() throws TwindexException {
        return new Writer(call((index, call) -> Lib.twindex_index_writer(index, call.out(), call.error())));
    }

    /**
     * Reads the commits of other processes.
     *
     * @return whether there were any
     * @throws TwindexException data on disk is damaged
     */
    public boolean refresh() throws TwindexException {
        return (call((index, call) -> Lib.twindex_index_refresh(index, call.out(), call.error())) & 1) != 0;
    }

    /**
     * Waits until the last commit is another one than {@code since}, and reads it.
     *
     * @param since the number of a commit
     * @param timeout the maximum time
     * @return false if the time passed without one
     * @throws TwindexException data on disk is damaged
     */
    public boolean waitFor(long since, Duration timeout) throws TwindexException {
        return (call((index, call) -> Lib.twindex_index_wait(
                index, since, timeout.toMillis(), call.out(), call.error())) & 1) != 0;
    }

    /**
     * Returns statistics.
     *
     * @return statistics
     * @throws TwindexException a bug of the library
     */
    public Metrics metrics() throws TwindexException {
        Metrics[] found = new Metrics[1];
        call((index, call) -> {
            long metrics = call.zeros(Metrics.SIZE);
            Pointer at = new Pointer(metrics);
            at.setLong(0, Metrics.SIZE);
            int code = Lib.twindex_index_metrics(index, metrics, call.error());
            found[0] = Metrics.of(at);
            return code;
        });
        return found[0];
    }

    /**
     * Verifies all files of the index.
     *
     * @return the problems
     * @throws TwindexException a bug of the library
     */
    public Findings verify() throws TwindexException {
        return Findings.of(call((index, call) -> Lib.twindex_index_verify(index, call.out(), call.error())));
    }

    /**
     * Merges all segments into one. The index must have no writer.
     *
     * @throws TwindexException the index has a writer, or the disk failed
     */
    public void compact() throws TwindexException {
        call((index, call) -> Lib.twindex_index_compact(index, call.error()));
    }

    /**
     * Removes files that the index does not need. The index must have no writer.
     *
     * @return their size in bytes
     * @throws TwindexException the index has a writer, or the disk failed
     */
    public long gc() throws TwindexException {
        return call((index, call) -> Lib.twindex_index_gc(index, call.out(), call.error()));
    }

    /**
     * Copies the current state to a new directory: a backup, while a writer may continue.
     *
     * @param to the new directory
     * @return the number of the copied commit
     * @throws TwindexException the directory exists, or the disk failed
     */
    public long copyTo(Path to) throws TwindexException {
        return call((index, call) -> Lib.twindex_index_copy_to(index, call.path(to), call.out(), call.error()));
    }
}
