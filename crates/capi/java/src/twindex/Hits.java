package twindex;

import java.util.ArrayList;
import java.util.List;

/** Copies hits of the native library. */
final class Hits {
    private Hits() {}

    /** Copies hits and frees them; none for null. */
    static List<Hit> of(long hits) {
        if (hits == 0) {
            return List.of();
        }
        try (Scratch call = Scratch.open()) {
            int count = Math.toIntExact(Lib.twindex_hits_len(hits));
            List<Hit> all = new ArrayList<>(count);
            for (int i = 0; i < count; i++) {
                byte[] key = call.copyOut(Lib.twindex_hits_key(hits, i, call.out()));
                all.add(new Hit(key, Lib.twindex_hits_distance(hits, i), Lib.twindex_hits_resemblance(hits, i)));
            }
            return all;
        } finally {
            Lib.twindex_hits_free(hits);
        }
    }
}
