package twindex;

/** All groups of a snapshot, from {@link Snapshot#groups}. */
public final class Groups extends Handle {
    /** Receives the documents of groups. */
    @FunctionalInterface
    public interface Visitor {
        /**
         * Receives a document.
         *
         * @param key its key
         * @param leader the key of its leader
         * @param size the size of its group
         * @return whether more documents are wanted
         */
        boolean visit(byte[] key, byte[] leader, int size);
    }

    Groups(long address) {
        super(address, Lib::twindex_groups_free);
    }

    /**
     * Returns the number of groups, including groups of one document.
     *
     * @return the number of groups
     */
    public long count() {
        long groups = enter();
        try {
            return Lib.twindex_groups_count(groups);
        } finally {
            leave();
        }
    }

    /**
     * Returns the leader and the size of the group of a document.
     *
     * @param key the key of the document
     * @return the group without its members; null if there is no such document
     * @throws TwindexException a key of the wrong kind, or damaged data
     */
    public Group leader(byte[] key) throws TwindexException {
        long groups = enter();
        try (Scratch call = Scratch.open()) {
            call.check(Lib.twindex_groups_leader(groups, call.bytes(key), key.length, call.out(), call.error()));
            return Group.of(call.outLong());
        } finally {
            leave();
        }
    }

    /**
     * Calls a visitor for each document whose group has at least this size, in the order of keys.
     *
     * @param minSize the smallest size
     * @param visitor the visitor; an exception that it throws ends the calls, and is thrown here
     * @throws TwindexException damaged data
     */
    public void forEach(int minSize, Visitor visitor) throws TwindexException {
        RuntimeException[] thrown = new RuntimeException[1];
        Lib.GroupVisitor each = (data, key, keyLength, leader, leaderLength, size) -> {
            try {
                return visitor.visit(Scratch.copy(key, keyLength), Scratch.copy(leader, leaderLength), size) ? 1 : 0;
            } catch (RuntimeException failed) {
                thrown[0] = failed;
                return 0;
            }
        };
        long groups = enter();
        try (Scratch call = Scratch.open()) {
            call.check(Lib.twindex_groups_for_each(groups, minSize, each, 0, call.error()));
        } finally {
            leave();
        }
        if (thrown[0] != null) {
            throw thrown[0];
        }
    }
}
