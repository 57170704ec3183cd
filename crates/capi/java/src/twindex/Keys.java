package twindex;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.Iterator;
import java.util.NoSuchElementException;

/**
 * Keys of a snapshot, in ascending order. Reads a thousand keys with each call. An error ends the iteration with an {@link
 * UncheckedTwindexException}.
 */
public final class Keys extends Handle implements Iterator<byte[]> {
    private static final int BATCH = 1000;

    private final Deque<byte[]> read = new ArrayDeque<>();
    private boolean ended;

    Keys(long address) {
        super(address, Lib::twindex_keys_free);
    }

    /**
     * Converts a text to a key.
     *
     * @param key the text
     * @return its bytes in UTF-8
     */
    public static byte[] bytes(String key) {
        return key.getBytes(StandardCharsets.UTF_8);
    }

    /**
     * Converts a number to a key, for an index whose keys are numbers.
     *
     * @param key the number, unsigned
     * @return its bytes
     */
    public static byte[] bytes(long key) {
        return ByteBuffer.allocate(8).order(ByteOrder.nativeOrder()).putLong(key).array();
    }

    /**
     * Converts a key to a number, for an index whose keys are numbers.
     *
     * @param key the key
     * @return the number, unsigned
     */
    public static long number(byte[] key) {
        return ByteBuffer.wrap(key).order(ByteOrder.nativeOrder()).getLong();
    }

    /**
     * Converts a key to a text.
     *
     * @param key the key in UTF-8; may be null
     * @return the text; null for null
     */
    public static String text(byte[] key) {
        return key == null ? null : new String(key, StandardCharsets.UTF_8);
    }

    private void fill() {
        if (ended || !read.isEmpty()) {
            return;
        }
        long keys = enter();
        try (Scratch call = Scratch.open()) {
            call.check(Lib.twindex_keys_next_many(keys, BATCH, call.out(), call.error()));
            Results results = new Results(call.outLong());
            for (int i = 0; i < results.entries(); i++) {
                read.add(results.bytes(i));
            }
            ended = read.isEmpty();
        } catch (TwindexException failed) {
            ended = true;
            throw new UncheckedTwindexException(failed);
        } finally {
            leave();
        }
    }

    @Override
    public synchronized boolean hasNext() {
        fill();
        return !read.isEmpty();
    }

    @Override
    public synchronized byte[] next() {
        fill();
        if (read.isEmpty()) {
            throw new NoSuchElementException();
        }
        return read.remove();
    }
}
