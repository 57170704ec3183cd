package twindex;

import java.util.ArrayList;
import java.util.List;

/**
 * The result of {@link Index#salvage}.
 *
 * @param isWhole whether no problem was found, so that the new index has all documents of the old one
 * @param documents the number of documents in the new index
 * @param lost the number of documents that are known to be lost
 * @param doubtful the number of documents that may have been deleted or replaced by lost commits
 * @param problems the problems
 * @param lostKeys the keys of lost documents that could be read
 */
public record Salvage(
        boolean isWhole, long documents, long lost, long doubtful, List<String> problems, List<byte[]> lostKeys) {
    /** Copies a result and frees it. */
    static Salvage of(long salvaged) {
        try (Scratch call = Scratch.open()) {
            List<String> problems = new ArrayList<>();
            for (long at = 0;; at++) {
                String problem = Scratch.text(Lib.twindex_salvaged_problem(salvaged, at));
                if (problem == null) {
                    break;
                }
                problems.add(problem);
            }
            List<byte[]> keys = new ArrayList<>();
            for (long at = 0;; at++) {
                byte[] key = call.copyOut(Lib.twindex_salvaged_lost_key(salvaged, at, call.out()));
                if (key == null) {
                    break;
                }
                keys.add(key);
            }
            return new Salvage(Lib.twindex_salvaged_is_whole(salvaged) != 0, Lib.twindex_salvaged_documents(salvaged),
                    Lib.twindex_salvaged_lost(salvaged), Lib.twindex_salvaged_doubtful(salvaged), List.copyOf(problems),
                    List.copyOf(keys));
        } finally {
            Lib.twindex_salvaged_free(salvaged);
        }
    }
}
