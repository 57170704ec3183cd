// Admits pages in the loop of an indexer, through JNA: `java Admit.java INDEX PAGES`. scripts/capi examples runs it.
//
// The search engine has its own store and commits it first. twindex then stores the number of processed pages with its
// commit, so that the loop resumes there after a crash. In this example, a list represents the search engine.
import com.sun.jna.Library;
import com.sun.jna.Native;
import com.sun.jna.Pointer;
import com.sun.jna.ptr.IntByReference;
import com.sun.jna.ptr.LongByReference;
import com.sun.jna.ptr.PointerByReference;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;

public final class Admit {
    /** The functions of twindex.h that this program uses. A size_t is a long on 64-bit machines. */
    interface Twindex extends Library {
        Pointer twindex_params_new();
        int twindex_params_words(Pointer params, byte width, PointerByReference error);
        int twindex_params_minhash(Pointer params, short bands, short rows, PointerByReference error);
        int twindex_params_sets(Pointer params, PointerByReference error);
        void twindex_params_free(Pointer params);
        int twindex_index_open_or_create(String path, Pointer params, PointerByReference index, PointerByReference error);
        int twindex_index_writer(Pointer index, PointerByReference writer, PointerByReference error);
        int twindex_index_snapshot(Pointer index, PointerByReference snapshot, PointerByReference error);
        void twindex_index_free(Pointer index);
        long twindex_snapshot_documents(Pointer snapshot);
        Pointer twindex_snapshot_payload(Pointer snapshot, LongByReference length);
        void twindex_snapshot_free(Pointer snapshot);
        int twindex_writer_admit_text(Pointer writer, byte[] key, long keyLength, byte[] text, long textLength,
                IntByReference admitted, PointerByReference near, PointerByReference error);
        int twindex_writer_commit_with(Pointer writer, byte[] payload, long length, LongByReference commit,
                PointerByReference error);
        void twindex_writer_free(Pointer writer);
        Pointer twindex_hits_key(Pointer hits, long at, LongByReference length);
        double twindex_hits_resemblance(Pointer hits, long at);
        void twindex_hits_free(Pointer hits);
        String twindex_error_message(Pointer error);
        void twindex_error_free(Pointer error);
    }

    static final Twindex LIB = Native.load("twindex", Twindex.class);
    static final int BATCH = 100;

    /** A call of a function whose last argument receives the error. */
    interface Call {
        int run(PointerByReference error);
    }

    static void check(Call call) {
        PointerByReference error = new PointerByReference();
        int code = call.run(error);
        if (code != 0) {
            String message = LIB.twindex_error_message(error.getValue());
            LIB.twindex_error_free(error.getValue());
            throw new IllegalStateException("twindex: code " + code + ": " + message);
        }
    }

    static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    /** Returns the text of a page. Every third page equals the previous page except for its last word. */
    static String page(int number) {
        int of = number % 3 == 2 ? number - 1 : number;
        StringBuilder text = new StringBuilder();
        for (int i = 0; i < 100; i++) {
            text.append("word").append((of * 7919L + i * 104729L) % 99991).append(' ');
        }
        return text.append(number == of ? "end" : "changed").toString();
    }

    public static void main(String[] arguments) {
        int pages = Integer.parseInt(arguments[1]);
        Pointer params = LIB.twindex_params_new();
        check(error -> LIB.twindex_params_words(params, (byte) 5, error));
        check(error -> LIB.twindex_params_minhash(params, (short) 20, (short) 6, error));
        check(error -> LIB.twindex_params_sets(params, error));
        PointerByReference out = new PointerByReference();
        check(error -> LIB.twindex_index_open_or_create(arguments[0], params, out, error));
        Pointer index = out.getValue();
        LIB.twindex_params_free(params);

        LongByReference length = new LongByReference();
        check(error -> LIB.twindex_index_snapshot(index, out, error));
        Pointer before = out.getValue();
        Pointer payload = LIB.twindex_snapshot_payload(before, length);
        int done = payload == null ? 0 : ByteBuffer.wrap(payload.getByteArray(0, (int) length.getValue())).getInt();
        LIB.twindex_snapshot_free(before);

        check(error -> LIB.twindex_index_writer(index, out, error));
        Pointer writer = out.getValue();
        List<String> searchable = new ArrayList<>();
        int duplicates = 0;
        IntByReference admitted = new IntByReference();
        for (int number = done; number < pages; number++) {
            byte[] key = bytes("https://example.org/" + number);
            byte[] text = bytes(page(number));
            PointerByReference near = new PointerByReference();
            check(error -> LIB.twindex_writer_admit_text(writer, key, key.length, text, text.length, admitted, near, error));
            if (admitted.getValue() == 0) { // TWINDEX_ADMITTED_NEW
                searchable.add(new String(key, StandardCharsets.UTF_8)); // IndexWriter.addDocument
            } else {
                byte[] of = LIB.twindex_hits_key(near.getValue(), 0, length).getByteArray(0, (int) length.getValue());
                if (duplicates++ == 0) {
                    System.out.printf("%s is near %s, resemblance %.3f%n", new String(key, StandardCharsets.UTF_8),
                            new String(of, StandardCharsets.UTF_8), LIB.twindex_hits_resemblance(near.getValue(), 0));
                }
            }
            LIB.twindex_hits_free(near.getValue());
            if ((number + 1) % BATCH == 0 || number + 1 == pages) {
                // Call IndexWriter.commit here, so that the search engine commits first.
                byte[] place = ByteBuffer.allocate(4).putInt(number + 1).array();
                check(error -> LIB.twindex_writer_commit_with(writer, place, place.length, null, error));
            }
        }
        LIB.twindex_writer_free(writer);
        check(error -> LIB.twindex_index_snapshot(index, out, error));
        System.out.printf("began at %d: %d new, %d duplicates, %d documents%n", done, searchable.size(), duplicates,
                LIB.twindex_snapshot_documents(out.getValue()));
        LIB.twindex_snapshot_free(out.getValue());
        LIB.twindex_index_free(index);
    }
}
