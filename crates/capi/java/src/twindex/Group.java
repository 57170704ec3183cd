package twindex;

import java.util.ArrayList;
import java.util.List;

/**
 * The group of a document.
 *
 * @param leader the key of its leader
 * @param size the number of its documents; 0 if only the leader was asked for
 * @param members the keys of its documents in ascending order; none unless they were asked for
 */
public record Group(byte[] leader, long size, List<byte[]> members) {
    /** A limit on queries that suits most uses. */
    public static final long QUERIES = 10_000;

    /**
     * Returns the key of the leader as text.
     *
     * @return the key of the leader as text
     */
    public String leaderText() {
        return Keys.text(leader);
    }

    /** Copies a group and frees it; null for null. */
    static Group of(long group) {
        if (group == 0) {
            return null;
        }
        try (Scratch call = Scratch.open()) {
            byte[] leader = call.copyOut(Lib.twindex_group_leader(group, call.out()));
            List<byte[]> members = new ArrayList<>();
            for (long at = 0;; at++) {
                long member = Lib.twindex_group_member(group, at, call.out());
                if (member == 0) {
                    break;
                }
                members.add(call.copyOut(member));
            }
            return new Group(leader, Lib.twindex_group_size(group), List.copyOf(members));
        } finally {
            Lib.twindex_group_free(group);
        }
    }
}
