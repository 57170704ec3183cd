package twindex;

/**
 * The stored record of a document. A component is null if the document has none.
 *
 * @param fingerprint the fingerprint
 * @param value the value
 * @param stamp the stamp, unsigned
 * @param priority the priority, unsigned
 * @param isDuplicate whether the document is marked as a duplicate
 */
public record Record(Long fingerprint, byte[] value, Long stamp, Long priority, boolean isDuplicate) {}
