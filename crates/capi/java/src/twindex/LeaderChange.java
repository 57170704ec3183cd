package twindex;

/**
 * A document whose leader differs between two snapshots.
 *
 * @param key the key of the document
 * @param before the key of its leader in the earlier snapshot; null if the document did not exist
 * @param after the key of its leader in the later snapshot; null if the document no longer exists
 */
public record LeaderChange(byte[] key, byte[] before, byte[] after) {}
