package twindex;

import java.util.Arrays;

/** Byte strings, one after the other, with their offsets. */
final class Bytes {
    private byte[] bytes = new byte[256];
    private long[] offsets = new long[17];
    private int count;

    void add(byte[] one) {
        int from = (int) offsets[count];
        int to = Math.addExact(from, one.length);
        if (to > bytes.length) {
            bytes = Arrays.copyOf(bytes, (int) Math.min(Integer.MAX_VALUE - 8, Math.max(to, 2L * bytes.length)));
        }
        if (count + 2 > offsets.length) {
            offsets = Arrays.copyOf(offsets, 2 * offsets.length);
        }
        System.arraycopy(one, 0, bytes, from, one.length);
        offsets[++count] = to;
    }

    /** Adds a fingerprint, which must be as long as those before. */
    void addCode(byte[] code) {
        if (count > 0 && code.length != codeLength()) {
            throw new IllegalArgumentException(
                    "code " + count + ": expected " + codeLength() + " bytes as the others have, found " + code.length);
        }
        add(code);
    }

    /** Returns the length of each fingerprint; 0 if there are none. */
    long codeLength() {
        return offsets[Math.min(count, 1)];
    }

    void clear() {
        count = 0;
    }

    int count() {
        return count;
    }

    long bytes(Scratch call) {
        return call.bytes(bytes, (int) offsets[count]);
    }

    long offsets(Scratch call) {
        return call.longs(offsets, count + 1);
    }
}
