package twindex;

import com.sun.jna.Pointer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** A copy of the results of a call for many items. */
final class Results {
    /** The size of {@code twindex_arrays}. */
    private static final int SIZE = 128;

    private final int items;
    private final int entries;
    private final int[] codes;
    private final byte[] admitted;
    private final long[] starts;
    private final byte[] bytes;
    private final long[] offsets;
    private final int[] distances;
    private final double[] resemblances;
    private final byte[] flags;
    private final long[] fingerprints;
    private final long[] stamps;
    private final long[] priorities;
    private final byte[] recordCodes;
    private final int codeLength;
    private final Map<Integer, String> messages = new HashMap<>();

    /** Copies a batch and frees it. */
    Results(long batch) throws TwindexException {
        try (Scratch call = Scratch.open()) {
            long arrays = call.zeros(SIZE);
            Pointer at = new Pointer(arrays);
            at.setLong(0, SIZE);
            call.check(Lib.twindex_batch_arrays(batch, arrays, call.error()));
            items = Math.toIntExact(at.getLong(8));
            entries = Math.toIntExact(at.getLong(40));
            codes = items == 0 ? new int[0] : at.getPointer(16).getIntArray(0, items);
            admitted = Scratch.copy(at.getLong(24), items);
            starts = at.getPointer(32).getLongArray(0, items + 1);
            offsets = at.getPointer(56).getLongArray(0, entries + 1);
            bytes = Scratch.copy(at.getLong(48), offsets[entries]);
            distances = at.getLong(64) == 0 ? null : at.getPointer(64).getIntArray(0, entries);
            resemblances = at.getLong(72) == 0 ? null : at.getPointer(72).getDoubleArray(0, entries);
            flags = Scratch.copy(at.getLong(80), entries);
            fingerprints = longs(at.getLong(88));
            stamps = longs(at.getLong(96));
            priorities = longs(at.getLong(104));
            codeLength = Math.toIntExact(at.getLong(120));
            recordCodes = Scratch.copy(at.getLong(112), (long) entries * codeLength);
            for (int i = 0; i < items; i++) {
                if (codes[i] != 0) {
                    messages.put(i, Scratch.text(Lib.twindex_batch_message(batch, i)));
                }
            }
        } finally {
            Lib.twindex_batch_free(batch);
        }
    }

    private long[] longs(long address) {
        return address == 0 ? null : new Pointer(address).getLongArray(0, entries);
    }

    int items() {
        return items;
    }

    int entries() {
        return entries;
    }

    /** Returns the first entry of an item. The entries of item i end where those of item i + 1 begin. */
    int start(int item) {
        return (int) starts[item];
    }

    byte[] bytes(int entry) {
        int from = (int) offsets[entry];
        byte[] copy = new byte[(int) offsets[entry + 1] - from];
        if (copy.length > 0) {
            System.arraycopy(bytes, from, copy, 0, copy.length);
        }
        return copy;
    }

    Hit hit(int entry) {
        return new Hit(bytes(entry), distances[entry], resemblances[entry]);
    }

    /** Returns the hits of each item. Throws the error of the first item that has one. */
    List<List<Hit>> hits() throws TwindexException {
        List<List<Hit>> all = new ArrayList<>(items);
        for (int i = 0; i < items; i++) {
            check(i);
            List<Hit> hits = new ArrayList<>();
            for (int entry = start(i); entry < start(i + 1); entry++) {
                hits.add(hit(entry));
            }
            all.add(hits);
        }
        return all;
    }

    Record record(int entry) {
        int has = flags[entry];
        return new Record(
                (has & 1) == 0 || codeLength > 0 ? null : fingerprints[entry],
                (has & 1) == 0 || codeLength == 0 ? null : Arrays.copyOfRange(recordCodes, entry * codeLength, (entry + 1) * codeLength),
                (has & 2) == 0 ? null : bytes(entry),
                (has & 4) == 0 ? null : stamps[entry],
                (has & 8) == 0 ? null : priorities[entry],
                (has & 16) != 0);
    }

    /** Returns the error of an item; null if it succeeded. */
    TwindexException error(int item) {
        return codes[item] == 0 ? null : new TwindexException(TwindexException.Code.of(codes[item]), messages.get(item));
    }

    void check(int item) throws TwindexException {
        if (codes[item] != 0) {
            throw error(item);
        }
    }

    /** Returns how an item was admitted; null if it failed. */
    Admitted admitted(int item) {
        if (codes[item] != 0) {
            return null;
        }
        boolean hasHit = start(item) < start(item + 1);
        return new Admitted(Admitted.Kind.of(admitted[item]), hasHit ? hit(start(item)) : null);
    }
}
