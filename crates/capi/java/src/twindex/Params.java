package twindex;

/**
 * The parameters of an index: which data it stores, and how texts are converted to sketches. {@code new Params().set("near",
 * "0.8").set("sets", "kept")} is enough for an index that finds all documents with a resemblance of 0.8 or more.
 */
public final class Params extends Handle {
    /** Creates parameters with default settings: keys are bytes, shingles have 5 words, and nothing is stored yet. */
    public Params() {
        this(Lib.twindex_params_new());
    }

    Params(long address) {
        super(address, Lib::twindex_params_free);
    }

    /**
     * Parses parameters from their canonical text.
     *
     * @param text the result of {@link #text}
     * @return the parameters
     * @throws TwindexException the text is not in this form
     */
    public static Params parse(String text) throws TwindexException {
        try (Scratch call = Scratch.open()) {
            call.check(Lib.twindex_params_parse(call.string(text), call.out(), call.error()));
            return new Params(call.outLong());
        }
    }

    /**
     * Sets a setting by name. Names and values are those of the command {@code twindex build}, with {@code _} for {@code -}:
     * see {@code twindex_params_set} in {@code twindex.h}.
     *
     * @param name the name, such as {@code near}
     * @param value the value, such as {@code 0.8}
     * @return these parameters
     * @throws TwindexException the name is unknown, which lists all names, or the value is wrong
     */
    public Params set(String name, String value) throws TwindexException {
        long params = enter();
        try (Scratch call = Scratch.open()) {
            call.check(Lib.twindex_params_set(params, call.string(name), call.string(value), call.error()));
            return this;
        } finally {
            leave();
        }
    }

    /**
     * Makes the index store fingerprints that the caller computes, such as hashes of images, instead of sketches of texts.
     *
     * @param bits the number of bits of each fingerprint: 64, 128, 192, 256, 384 or 512; others are refused when the index is
     *     created
     * @param near the maximum number of bits in which the fingerprints of near documents differ, 0 to {@code bits}
     * @return these parameters
     * @throws TwindexException a bug of the library
     * @throws IllegalArgumentException a negative number, or one above {@code Short.MAX_VALUE}
     */
    public Params codes(int bits, int near) throws TwindexException {
        if (bits < 0 || bits > Short.MAX_VALUE || near < 0 || near > Short.MAX_VALUE) {
            throw new IllegalArgumentException(
                    "codes: expected 64 to 512 bits, and near from 0 to as many, found " + bits + " and " + near);
        }
        long params = enter();
        try (Scratch call = Scratch.open()) {
            call.check(Lib.twindex_params_codes(params, (short) bits, (short) near, call.error()));
            return this;
        } finally {
            leave();
        }
    }

    /**
     * Returns the canonical text of complete parameters, one setting on each line.
     *
     * @return the text; empty unless the parameters are of an index, or parsed
     */
    public String text() {
        long params = enter();
        try {
            return Scratch.text(Lib.twindex_params_text(params));
        } finally {
            leave();
        }
    }

    /**
     * Creates a sketcher without an index.
     *
     * @return the sketcher
     * @throws TwindexException the parameters contradict each other
     */
    public Sketcher sketcher() throws TwindexException {
        long params = enter();
        try (Scratch call = Scratch.open()) {
            call.check(Lib.twindex_params_sketcher(params, call.out(), call.error()));
            return new Sketcher(call.outLong());
        } finally {
            leave();
        }
    }
}
