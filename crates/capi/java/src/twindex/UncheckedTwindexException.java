package twindex;

/** An error in a place where Java allows no checked one: in an iterator. */
public final class UncheckedTwindexException extends RuntimeException {
    private static final long serialVersionUID = 1;

    UncheckedTwindexException(TwindexException cause) {
        super(cause.getMessage(), cause);
    }

    /**
     * Returns the error.
     *
     * @return the error
     */
    @Override
    public synchronized TwindexException getCause() {
        return (TwindexException) super.getCause();
    }
}
