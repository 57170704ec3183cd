package twindex;

/**
 * A document that a query found.
 *
 * @param key the key of the document
 * @param distance the number of bits in which the fingerprints differ; -1 if it is unknown
 * @param resemblance the resemblance from 0 to 1; -1 if it is unknown
 */
public record Hit(byte[] key, int distance, double resemblance) {
    /**
     * Returns the key as text.
     *
     * @return the key as text
     */
    public String text() {
        return Keys.text(key);
    }
}
