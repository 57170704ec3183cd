package twindex;

/**
 * How a document was admitted.
 *
 * @param kind what was found and done
 * @param near the nearest other document, for {@link Kind#KNOWN} and {@link Kind#DUPLICATE}; otherwise null
 */
public record Admitted(Kind kind, Hit near) {
    /** What was found and done. */
    public enum Kind {
        /** No other document is near. The document was added. */
        NEW,
        /** A document with this key was replaced. No other document is near. */
        UPDATED,
        /** A document with this key was replaced. Another document is near. */
        KNOWN,
        /** Another document is near. The document was added, unless the writer drops duplicates. */
        DUPLICATE,
        /** The document has expired. It was not added. */
        EXPIRED;

        static Kind of(int number) {
            return values()[number];
        }
    }
}
