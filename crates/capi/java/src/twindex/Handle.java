package twindex;

import java.lang.ref.Cleaner;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.LongConsumer;

/**
 * An object of the native library. It is freed by {@link #close()}, after the calls that use it have returned. An object that
 * was forgotten is freed some time after the garbage collector has found it. Any number of threads may use and close it; calls
 * after {@code close} throw {@link IllegalStateException}.
 */
public abstract class Handle implements AutoCloseable {
    private static final Cleaner CLEANER = Cleaner.create();

    private final State state;
    private final Cleaner.Cleanable cleanable;

    Handle(long address, LongConsumer free) {
        state = new State(address, free);
        cleanable = CLEANER.register(this, state);
    }

    /** The address, with the number of calls that use it. It has no reference to the handle, which can be collected. */
    private static final class State implements Runnable {
        private static final int CLOSED = 1 << 31;

        private final long address;
        private final LongConsumer free;
        /** The number of calls, and the bit {@code CLOSED}. Who leaves it at {@code CLOSED} alone frees the address. */
        private final AtomicInteger users = new AtomicInteger();

        State(long address, LongConsumer free) {
            this.address = address;
            this.free = free;
        }

        boolean enter() {
            for (int now = users.get(); now >= 0; now = users.get()) {
                if (users.compareAndSet(now, now + 1)) {
                    return true;
                }
            }
            return false;
        }

        void leave() {
            if (users.decrementAndGet() == CLOSED) {
                free.accept(address);
            }
        }

        @Override
        public void run() {
            int before = users.getAndUpdate(now -> now | CLOSED);
            if (before == 0) {
                free.accept(address);
            }
        }
    }

    /** Returns the address for a call. {@link #leave} must follow, in a {@code finally}. */
    final long enter() {
        if (!state.enter()) {
            throw new IllegalStateException(getClass().getSimpleName() + " is closed");
        }
        return state.address;
    }

    final void leave() {
        state.leave();
    }

    /** Frees the object, after the calls that use it. Does nothing if it is closed already. */
    @Override
    public void close() {
        cleanable.clean();
    }
}
