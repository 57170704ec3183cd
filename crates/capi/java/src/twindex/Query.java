package twindex;

import com.sun.jna.Pointer;

/** How near documents are found. {@code new Query()} finds the 10 nearest documents by the rule of the index. */
public final class Query {
    /** The size of {@code twindex_query}. */
    private static final int SIZE = 56;

    private long limit = 10;
    private double threshold;
    private int within = -1;
    private int flags;
    private int sharing;
    private int featureBits;
    private long visitLimit;

    /** Creates a query for the 10 nearest documents by the rule of the index. */
    public Query() {}

    /**
     * Sets the maximum number of hits.
     *
     * @param hits the maximum number of hits
     * @return this query
     */
    public Query limit(long hits) {
        limit = hits;
        return this;
    }

    /**
     * Finds documents with at least this resemblance, instead of by the rule of the index.
     *
     * @param resemblance above 0, at most 1
     * @return this query
     */
    public Query resembling(double resemblance) {
        threshold = resemblance;
        return this;
    }

    /**
     * Finds documents whose fingerprints differ in at most this number of bits, instead of by the rule of the index.
     *
     * @param bits the number of bits
     * @return this query
     */
    public Query within(int bits) {
        within = bits;
        return this;
    }

    /**
     * Returns all documents that share a band, without a check of their resemblance.
     *
     * @return this query
     */
    public Query unverified() {
        flags |= 1;
        return this;
    }

    /**
     * Estimates resemblances, even if the index stores sets.
     *
     * @return this query
     */
    public Query estimated() {
        flags |= 2;
        return this;
    }

    /**
     * Excludes marked duplicates near which a live unmarked document is.
     *
     * @return this query
     */
    public Query unmarked() {
        flags |= 4;
        return this;
    }

    /**
     * Ends the search at the first hit, which need not be the nearest.
     *
     * @return this query
     */
    public Query any() {
        flags |= 8;
        return this;
    }

    /**
     * Sets the number of bands that a near document must share.
     *
     * @param bands the number of bands
     * @return this query
     */
    public Query sharing(int bands) {
        sharing = bands;
        return this;
    }

    /**
     * Sets the number of leading bits of each feature that are compared.
     *
     * @param bits the number of bits
     * @return this query
     */
    public Query featureBits(int bits) {
        featureBits = bits;
        return this;
    }

    /**
     * Limits the number of table rows that are checked in each segment. Hits may then be missed.
     *
     * @param rows the number of rows
     * @return this query
     */
    public Query visitLimit(long rows) {
        visitLimit = rows;
        return this;
    }

    /** Returns the address of the query for a call. */
    long write(Scratch call) {
        long address = call.zeros(SIZE);
        Pointer at = new Pointer(address);
        at.setLong(0, SIZE);
        at.setLong(8, limit);
        at.setDouble(16, threshold);
        at.setInt(24, within);
        at.setInt(28, flags);
        at.setInt(32, sharing);
        at.setInt(36, featureBits);
        at.setLong(40, visitLimit);
        return address;
    }
}
