package twindex;

/** An error of the library. {@link #code} says how a program can respond, and the message what failed, where and why. */
public final class TwindexException extends Exception {
    private static final long serialVersionUID = 1;

    /** The kinds of errors, as in {@code twindex_code}. */
    public enum Code {
        /** No error. */
        OK,
        /** There is no index at the path. */
        NOT_AN_INDEX,
        /** Something exists at the path at which an index was to be created. */
        ALREADY_EXISTS,
        /** The index has another writer. Try again after it was closed. */
        LOCKED,
        /** A newer version wrote the file, or the function is not available on this platform. */
        UNSUPPORTED,
        /** The parameters differ from those of the index. */
        PARAMS_MISMATCH,
        /** Data on disk is damaged. */
        CORRUPT,
        /** The operating system reported an error. */
        IO,
        /** An argument is invalid. */
        INVALID,
        /** A limit of the format was reached. Nothing was written. */
        LIMIT,
        /** The commit succeeded, but the writer failed after it. Close the writer and open another. */
        AFTER_COMMIT,
        /** The disk has too little free space for a merge, which was not started. */
        NO_SPACE,
        /** The writer had failed earlier. Close it and open another. */
        POISONED,
        /** A bug of the library. */
        PANICKED,
        /** An error without a code of its own. */
        OTHER,
        /** The work was ended early. Nothing was changed. */
        CANCELLED,
        /** The limit on queries was too low to decide a group. */
        UNDECIDED;

        static Code of(int number) {
            Code[] all = values();
            return number >= 0 && number < all.length ? all[number] : OTHER;
        }
    }

    /** The kind of error. */
    private final Code code;

    TwindexException(Code code, String message) {
        super(message);
        this.code = code;
    }

    /**
     * Returns the kind of error.
     *
     * @return the kind of error
     */
    public Code code() {
        return code;
    }
}
