package twindex;

/** The sketches of many texts, from {@link Sketcher#sketchMany}. */
public final class Sketches extends Handle {
    Sketches(long address) {
        super(address, Lib::twindex_sketches_free);
    }

    /**
     * Returns the number of sketches.
     *
     * @return the number of sketches
     */
    public int size() {
        long sketches = enter();
        try {
            return Math.toIntExact(Lib.twindex_sketches_len(sketches));
        } finally {
            leave();
        }
    }

    /**
     * Returns a copy of one sketch.
     *
     * @param at its position, counted from 0
     * @return the sketch
     * @throws TwindexException the text could not be sketched, or there is no such position
     */
    public Sketch get(int at) throws TwindexException {
        long sketches = enter();
        try (Scratch call = Scratch.open()) {
            call.check(Lib.twindex_sketches_get(sketches, at, call.out(), call.error()));
            return new Sketch(call.outLong());
        } finally {
            leave();
        }
    }
}
