package twindex;

import java.util.AbstractList;

/**
 * The results of {@link Writer#putMany} or {@link Writer#admitMany}, in the order of the documents. A document that failed is
 * null, and {@link #error} has its error; the other documents were added.
 */
public final class Batch extends AbstractList<Admitted> {
    private final Results results;
    private final boolean hasAdmitted;

    Batch(Results results, boolean hasAdmitted) {
        this.results = results;
        this.hasAdmitted = hasAdmitted;
    }

    @Override
    public Admitted get(int at) {
        java.util.Objects.checkIndex(at, size());
        return hasAdmitted ? results.admitted(at) : null;
    }

    @Override
    public int size() {
        return results.items();
    }

    /**
     * Returns the error of a document.
     *
     * @param at its position
     * @return the error; null if the document was added
     */
    public TwindexException error(int at) {
        return results.error(at);
    }

    /**
     * Throws the first error, if there is one.
     *
     * @throws TwindexException the first error
     */
    public void check() throws TwindexException {
        for (int i = 0; i < size(); i++) {
            results.check(i);
        }
    }
}
