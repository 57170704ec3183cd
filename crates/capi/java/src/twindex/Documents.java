package twindex;

import com.sun.jna.Pointer;
import java.util.Arrays;

/**
 * Documents for {@link Writer#putMany} and {@link Writer#admitMany}. Either all or none have a value, and likewise a stamp and
 * a priority. Can be used again after {@link #clear}. Not for several threads at the same time.
 */
public final class Documents {
    /** The size of {@code twindex_documents}. */
    private static final int SIZE = 128;

    private final Bytes keys = new Bytes();
    private final Bytes texts = new Bytes();
    private final Bytes codes = new Bytes();
    private final Bytes values = new Bytes();
    private long[] stamps = new long[16];
    private long[] priorities = new long[16];
    private byte[] duplicates = new byte[16];
    private int stamped;
    private int prioritized;
    private boolean hasDuplicates;

    /** Creates an empty list. */
    public Documents() {}

    /**
     * Adds a document.
     *
     * @param key its key
     * @param text its text
     * @return this list
     */
    public Documents add(String key, String text) {
        return add(Keys.bytes(key), Keys.bytes(text));
    }

    /**
     * Adds a document.
     *
     * @param key its key
     * @param text its text in UTF-8
     * @return this list
     */
    public Documents add(byte[] key, byte[] text) {
        texts.add(text);
        return add(key);
    }

    /**
     * Adds a document without a text: its sketch has the same position in the {@link Sketches} that are passed with the list.
     *
     * @param key its key
     * @return this list
     */
    public Documents add(byte[] key) {
        keys.add(key);
        if (duplicates.length < keys.count()) {
            duplicates = Arrays.copyOf(duplicates, 2 * duplicates.length);
        }
        duplicates[keys.count() - 1] = 0;
        return this;
    }

    /**
     * Adds a document of an index made with {@link Params#codes}.
     *
     * @param key its key
     * @param code its fingerprint, the highest bits first: as many bytes as the others of the list have
     * @return this list
     * @throws IllegalArgumentException it has another number of bytes
     */
    public Documents addCode(byte[] key, byte[] code) {
        codes.addCode(code);
        return add(key);
    }

    /**
     * Sets the value of the last document.
     *
     * @param value the value
     * @return this list
     */
    public Documents value(byte[] value) {
        values.add(value);
        return this;
    }

    /**
     * Sets the stamp of the last document.
     *
     * @param stamp the stamp, unsigned
     * @return this list
     */
    public Documents stamp(long stamp) {
        if (stamped == stamps.length) {
            stamps = Arrays.copyOf(stamps, 2 * stamped);
        }
        stamps[stamped++] = stamp;
        return this;
    }

    /**
     * Sets the priority of the last document.
     *
     * @param priority the priority, unsigned
     * @return this list
     */
    public Documents priority(long priority) {
        if (prioritized == priorities.length) {
            priorities = Arrays.copyOf(priorities, 2 * prioritized);
        }
        priorities[prioritized++] = priority;
        return this;
    }

    /**
     * Marks the last document as a duplicate.
     *
     * @return this list
     */
    public Documents duplicate() {
        duplicates[keys.count() - 1] = 1;
        hasDuplicates = true;
        return this;
    }

    /**
     * Returns the number of documents.
     *
     * @return the number of documents
     */
    public int size() {
        return keys.count();
    }

    /** Removes all documents, and keeps the memory. */
    public void clear() {
        keys.clear();
        texts.clear();
        codes.clear();
        values.clear();
        stamped = 0;
        prioritized = 0;
        hasDuplicates = false;
    }

    private void checkCount(String of, int count) {
        if (count != 0 && count != size()) {
            throw new IllegalArgumentException(count + " " + of + " for " + size() + " documents: set all or none");
        }
    }

    /** Returns the address of the documents for a call. {@code sketches} is the address of sketches, or 0 for texts. */
    long write(Scratch call, long sketches) {
        int count = size();
        checkCount("texts", texts.count());
        checkCount("codes", codes.count());
        checkCount("values", values.count());
        checkCount("stamps", stamped);
        checkCount("priorities", prioritized);
        int kinds = (texts.count() > 0 ? 1 : 0) + (codes.count() > 0 ? 1 : 0) + (sketches != 0 ? 1 : 0);
        if (kinds != 1 && count > 0) {
            throw new IllegalArgumentException("texts, codes or sketches: one of them, for all documents");
        }
        long address = call.zeros(SIZE);
        Pointer at = new Pointer(address);
        at.setLong(0, SIZE);
        at.setLong(8, count);
        at.setLong(16, keys.bytes(call));
        at.setLong(24, keys.offsets(call));
        if (codes.count() > 0) {
            at.setLong(112, codes.bytes(call));
            at.setLong(120, codes.codeLength());
        } else if (sketches == 0) {
            at.setLong(32, texts.bytes(call));
            at.setLong(40, texts.offsets(call));
        }
        at.setLong(48, sketches);
        if (values.count() > 0) {
            at.setLong(64, values.bytes(call));
            at.setLong(72, values.offsets(call));
        }
        if (stamped > 0) {
            at.setLong(80, call.longs(stamps, count));
        }
        if (prioritized > 0) {
            at.setLong(88, call.longs(priorities, count));
        }
        if (hasDuplicates) {
            at.setLong(96, call.bytes(duplicates, count));
        }
        return address;
    }
}
