package twindex;

import com.sun.jna.Pointer;

/**
 * Statistics of an index.
 *
 * @param commit the number of the last commit
 * @param documents the number of live documents
 * @param loggedDocuments the number of live documents that are not in a segment yet
 * @param segments the number of segments on disk
 * @param memtableBytes the memory of the memtables
 * @param diskBytes the size of segments and logs
 * @param cachedBytes the memory of data that queries cached
 * @param verifiedBytes the bytes of segment pages whose checksums have been verified
 * @param commits commits that were appended to the log
 * @param flushes segments built from memtables
 * @param merges background merges of segments
 * @param stalls commits that waited because segments were written more slowly than documents arrived
 * @param writeAmplification the bytes that were written, divided by the bytes that commits appended to the log
 */
public record Metrics(
        long commit,
        long documents,
        long loggedDocuments,
        long segments,
        long memtableBytes,
        long diskBytes,
        long cachedBytes,
        long verifiedBytes,
        Activity commits,
        Activity flushes,
        Activity merges,
        Activity stalls,
        double writeAmplification) {
    /** The size of {@code twindex_metrics}. */
    static final int SIZE = 208;

    /**
     * Statistics of a repeated activity since the index was opened.
     *
     * @param count the number of times it was completed
     * @param seconds the total time
     * @param bytes the number of bytes written
     * @param failures the number of failures
     */
    public record Activity(long count, double seconds, long bytes, long failures) {
        static Activity of(Pointer at, int from) {
            return new Activity(at.getLong(from), at.getDouble(from + 8), at.getLong(from + 16), at.getLong(from + 24));
        }
    }

    static Metrics of(Pointer at) {
        return new Metrics(at.getLong(8), at.getLong(16), at.getLong(24), at.getLong(32), at.getLong(40), at.getLong(48),
                at.getLong(56), at.getLong(64), Activity.of(at, 72), Activity.of(at, 104), Activity.of(at, 136),
                Activity.of(at, 168), at.getDouble(200));
    }
}
