package twindex;

import com.sun.jna.Pointer;
import java.util.OptionalLong;

/** The sketch of a text: the fingerprint, minima and hashes that the parameters specify. */
public final class Sketch extends Handle {
    Sketch(long address) {
        super(address, Lib::twindex_sketch_free);
    }

    /**
     * Returns whether the text had no tokens.
     *
     * @return whether the text had no tokens
     */
    public boolean isEmpty() {
        long sketch = enter();
        try {
            return Lib.twindex_sketch_is_empty(sketch) != 0;
        } finally {
            leave();
        }
    }

    /**
     * Returns the fingerprint.
     *
     * @return the fingerprint, if the sketch has one
     */
    public OptionalLong fingerprint() {
        long sketch = enter();
        try (Scratch call = Scratch.open()) {
            boolean has = Lib.twindex_sketch_fingerprint(sketch, call.out()) != 0;
            return has ? OptionalLong.of(call.outLong()) : OptionalLong.empty();
        } finally {
            leave();
        }
    }

    /**
     * Returns the distinct shingle hashes in ascending order, as unsigned numbers.
     *
     * @return the hashes; none if the index stores no sets
     */
    public long[] set() {
        long sketch = enter();
        try (Scratch call = Scratch.open()) {
            long from = Lib.twindex_sketch_set(sketch, call.out());
            int count = Math.toIntExact(call.outLong());
            return count == 0 ? new long[0] : new Pointer(from).getLongArray(0, count);
        } finally {
            leave();
        }
    }
}
