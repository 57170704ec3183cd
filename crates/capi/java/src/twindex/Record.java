package twindex;

/**
 * The stored record of a document. A component is null if the document has none.
 *
 * @param fingerprint the fingerprint of 64 bits
 * @param code the fingerprint in an index made with {@link Params#codes}, the highest bits first: 8 to 64 bytes
 * @param value the value
 * @param stamp the stamp, unsigned
 * @param priority the priority, unsigned
 * @param isDuplicate whether the document is marked as a duplicate
 */
public record Record(
        Long fingerprint, byte[] code, byte[] value, Long stamp, Long priority, boolean isDuplicate) {}
