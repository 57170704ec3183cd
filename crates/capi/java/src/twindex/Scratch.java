package twindex;

import com.sun.jna.Memory;
import com.sun.jna.Pointer;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/**
 * Native memory for the arguments and results of one call. Each thread reuses its own. Calls can be nested, because a callback
 * may make calls: a nested call uses the memory after that of the outer one.
 */
final class Scratch implements AutoCloseable {
    private static final int FIRST = 1 << 16;
    private static final int MAX_KEPT = 1 << 22;
    private static final ThreadLocal<Scratch> OF_THREAD = ThreadLocal.withInitial(Scratch::new);

    /** A block of memory, and a view of it. */
    private static final class Block {
        final Memory memory;
        final ByteBuffer view;
        final long address;

        Block(int size) {
            memory = new Memory(size);
            view = memory.getByteBuffer(0, size).order(ByteOrder.nativeOrder());
            address = Pointer.nativeValue(memory);
        }
    }

    private final List<Block> blocks = new ArrayList<>();
    private final List<int[]> outer = new ArrayList<>();
    private Block block = new Block(FIRST);
    private int at;
    private int used;
    private long error;
    private long out;

    private Scratch() {
        blocks.add(block);
    }

    /** Begins a call. */
    static Scratch open() {
        Scratch scratch = OF_THREAD.get();
        scratch.outer.add(new int[] {scratch.at, scratch.used});
        scratch.error = scratch.zeros(8);
        scratch.out = scratch.zeros(8);
        return scratch;
    }

    /** Ends a call. */
    @Override
    public void close() {
        int[] before = outer.remove(outer.size() - 1);
        at = before[0];
        used = before[1];
        block = blocks.get(at);
        // A call with very large arguments does not keep its memory.
        if (outer.isEmpty()) {
            while (blocks.size() > 1 && blocks.get(blocks.size() - 1).view.capacity() > MAX_KEPT) {
                blocks.remove(blocks.size() - 1);
            }
        }
    }

    /** Returns the offset in the current block of this many bytes, aligned to 8. */
    private int take(long size) {
        long rounded = (size + 7) & -8L;
        if (rounded > Integer.MAX_VALUE - 8) {
            throw new IllegalArgumentException("more than 2 GB in one call");
        }
        while (used + rounded > block.view.capacity()) {
            if (at + 1 == blocks.size()) {
                blocks.add(new Block((int) Math.max(rounded, 2L * block.view.capacity() > MAX_KEPT ? FIRST : 2L * block.view.capacity())));
            }
            at++;
            block = blocks.get(at);
            used = 0;
        }
        int from = used;
        used += (int) rounded;
        return from;
    }

    long zeros(int size) {
        int from = take(size);
        for (int i = from; i < from + ((size + 7) & -8); i += 8) {
            block.view.putLong(i, 0);
        }
        return block.address + from;
    }

    long bytes(byte[] bytes) {
        return bytes(bytes, bytes.length);
    }

    long bytes(byte[] bytes, int length) {
        int from = take(Math.max(length, 1));
        block.view.put(from, bytes, 0, length);
        return block.address + from;
    }

    long longs(long[] numbers, int count) {
        int from = take(Math.max(8L * count, 8));
        block.view.position(from);
        block.view.asLongBuffer().put(numbers, 0, count);
        block.view.position(0);
        return block.address + from;
    }

    /** Returns the address of a string that ends with a zero byte. */
    long string(String text) {
        byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
        int from = take(bytes.length + 1);
        block.view.put(from, bytes).put(from + bytes.length, (byte) 0);
        return block.address + from;
    }

    long path(Path path) {
        return string(path.toString());
    }

    /** Returns the address of addresses of strings. */
    long strings(List<Path> paths) {
        long[] all = new long[paths.size()];
        for (int i = 0; i < all.length; i++) {
            all[i] = path(paths.get(i));
        }
        return longs(all, all.length);
    }

    /** Returns the address at which a call stores its result. */
    long out() {
        return out;
    }

    long error() {
        return error;
    }

    long outLong() {
        return new Pointer(out).getLong(0);
    }

    boolean outFlag() {
        return new Pointer(out).getByte(0) != 0;
    }

    /** Throws the error of a call, unless it succeeded. */
    void check(int code) throws TwindexException {
        if (code != 0) {
            long failed = new Pointer(error).getLong(0);
            String message = text(Lib.twindex_error_message(failed));
            Lib.twindex_error_free(failed);
            throw new TwindexException(TwindexException.Code.of(code), message);
        }
    }

    /** Returns a copy of the string at an address; null for null. */
    static String text(long address) {
        return address == 0 ? null : new Pointer(address).getString(0, "UTF-8");
    }

    /** Returns a copy of bytes at an address; null for null. */
    static byte[] copy(long address, long length) {
        if (address == 0) {
            return null;
        }
        byte[] bytes = new byte[Math.toIntExact(length)];
        new Pointer(address).read(0, bytes, 0, bytes.length);
        return bytes;
    }

    /** Returns a copy of the bytes at an address whose length a call has stored in {@link #out}. */
    byte[] copyOut(long address) {
        return copy(address, outLong());
    }
}
