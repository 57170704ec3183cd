package twindex;

import java.util.List;

/** Computes sketches of texts. Any number of threads may use it at the same time. */
public final class Sketcher extends Handle {
    Sketcher(long address) {
        super(address, Lib::twindex_sketcher_free);
    }

    /**
     * Computes the sketch of a text.
     *
     * @param text the text
     * @return its sketch
     * @throws TwindexException the text cannot be sketched
     */
    public Sketch sketch(String text) throws TwindexException {
        return sketch(Keys.bytes(text));
    }

    /**
     * Computes the sketch of a text in UTF-8. Invalid UTF-8 is replaced.
     *
     * @param text the text
     * @return its sketch
     * @throws TwindexException the text cannot be sketched
     */
    public Sketch sketch(byte[] text) throws TwindexException {
        long sketcher = enter();
        try (Scratch call = Scratch.open()) {
            call.check(Lib.twindex_sketcher_sketch(sketcher, call.bytes(text), text.length, call.out(), call.error()));
            return new Sketch(call.outLong());
        } finally {
            leave();
        }
    }

    /**
     * Computes the sketches of many texts, in parallel on all cores.
     *
     * @param texts the texts in UTF-8
     * @return the sketches, in the same order
     * @throws TwindexException out of memory or a bug of the library; a text that cannot be sketched is an error of the call
     *     that uses its sketch
     */
    public Sketches sketchMany(List<byte[]> texts) throws TwindexException {
        Bytes packed = new Bytes();
        texts.forEach(packed::add);
        long sketcher = enter();
        try (Scratch call = Scratch.open()) {
            call.check(Lib.twindex_sketcher_sketch_many(sketcher, packed.bytes(call), packed.offsets(call), packed.count(), 0,
                    call.out(), call.error()));
            return new Sketches(call.outLong());
        } finally {
            leave();
        }
    }
}
