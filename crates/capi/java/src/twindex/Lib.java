package twindex;

import com.sun.jna.Callback;
import com.sun.jna.Native;

/**
 * The functions of {@code twindex.h}. JNA calls them, because Java has a final interface for foreign functions only from version
 * 22 on, and Debian 12 has 17. Pointers and sizes are {@code long}: JNA maps such functions directly, which costs a fraction of
 * a call with objects.
 */
final class Lib {
    /** The version of the C interface that this library needs. */
    private static final int ABI = 3;

    static {
        Native.register(Lib.class, "twindex");
        if (twindex_abi_version() < ABI) {
            throw new UnsatisfiedLinkError("libtwindex has version " + twindex_abi_version() + " of its interface, and "
                    + ABI + " is needed");
        }
    }

    private Lib() {}

    /** Receives the groups of a snapshot. */
    interface GroupVisitor extends Callback {
        int invoke(long data, long key, long keyLength, long leader, long leaderLength, int size);
    }

    static native int twindex_abi_version();

    static native int twindex_error_code(long error);
    static native long twindex_error_message(long error);
    static native void twindex_error_free(long error);

    static native long twindex_params_new();
    static native int twindex_params_set(long params, long name, long value, long error);
    static native int twindex_params_parse(long text, long out, long error);
    static native int twindex_params_codes(long params, short bits, short near, long error);
    static native long twindex_params_text(long params);
    static native int twindex_params_sketcher(long params, long out, long error);
    static native void twindex_params_free(long params);

    static native int twindex_index_create(long path, long params, long out, long error);
    static native int twindex_index_open_with(long path, long options, long out, long error);
    static native int twindex_index_open_or_create(long path, long params, long out, long error);
    static native long twindex_index_path(long index);
    static native int twindex_index_params(long index, long out, long error);
    static native int twindex_index_sketcher(long index, long out, long error);
    static native int twindex_index_snapshot(long index, long out, long error);
    static native int twindex_index_writer(long index, long out, long error);
    static native int twindex_index_refresh(long index, long changed, long error);
    static native int twindex_index_wait(long index, long since, long milliseconds, long changed, long error);
    static native int twindex_index_metrics(long index, long metrics, long error);
    static native int twindex_index_verify(long index, long out, long error);
    static native int twindex_index_compact(long index, long error);
    static native int twindex_index_gc(long index, long bytes, long error);
    static native int twindex_index_copy_to(long index, long path, long commit, long error);
    static native int twindex_index_merge(long path, long indexes, long count, int onConflict, long memory, long threads,
            long merged, long error);
    static native int twindex_index_adopt(long path, long params, long segments, long count, long documents, long error);
    static native void twindex_index_free(long index);

    static native int twindex_verify(long path, int access, long cancel, long progress, long data, long out, long error);
    static native long twindex_findings_problems(long findings);
    static native long twindex_findings_problem(long findings, long at);
    static native long twindex_findings_notes(long findings);
    static native long twindex_findings_note(long findings, long at);
    static native long twindex_findings_bytes(long findings);
    static native void twindex_findings_free(long findings);

    static native int twindex_salvage(long path, long to, long out, long error);
    static native byte twindex_salvaged_is_whole(long salvaged);
    static native long twindex_salvaged_documents(long salvaged);
    static native long twindex_salvaged_lost(long salvaged);
    static native long twindex_salvaged_doubtful(long salvaged);
    static native long twindex_salvaged_problem(long salvaged, long at);
    static native long twindex_salvaged_lost_key(long salvaged, long at, long length);
    static native void twindex_salvaged_free(long salvaged);

    static native int twindex_sketcher_sketch(long sketcher, long text, long length, long out, long error);
    static native int twindex_sketcher_sketch_many(long sketcher, long texts, long offsets, long count, long threads,
            long out, long error);
    static native void twindex_sketcher_free(long sketcher);
    static native byte twindex_sketch_is_empty(long sketch);
    static native byte twindex_sketch_fingerprint(long sketch, long out);
    static native long twindex_sketch_set(long sketch, long length);
    static native void twindex_sketch_free(long sketch);
    static native long twindex_sketches_len(long sketches);
    static native int twindex_sketches_get(long sketches, long at, long out, long error);
    static native void twindex_sketches_free(long sketches);

    static native long twindex_snapshot_documents(long snapshot);
    static native long twindex_snapshot_commit(long snapshot);
    static native long twindex_snapshot_durable_commit(long snapshot);
    static native long twindex_snapshot_payload(long snapshot, long length);
    static native byte twindex_snapshot_now(long snapshot, long out);
    static native int twindex_snapshot_uuid(long snapshot, long high, long low, long error);
    static native long twindex_snapshot_segment(long snapshot, long at);
    static native int twindex_snapshot_contains(long snapshot, long key, long length, long out, long error);
    static native int twindex_snapshot_get_many(long snapshot, long keys, long offsets, long count, long threads, long out,
            long error);
    static native int twindex_snapshot_keys(long snapshot, long prefix, long length, long out, long error);
    static native int twindex_snapshot_range(long snapshot, long from, long fromLength, long to, long toLength, int flags,
            long out, long error);
    static native int twindex_snapshot_query(long snapshot, long sketch, long query, long out, long error);
    static native int twindex_snapshot_count(long snapshot, long sketch, long query, long out, long error);
    static native int twindex_snapshot_resembling(long snapshot, long sketch, double threshold, int flags, long limit,
            long out, long error);
    static native int twindex_snapshot_within(long snapshot, long fingerprint, int within, long limit, long out, long error);
    static native int twindex_snapshot_code_within(long snapshot, long code, long length, int within, long limit, long out,
            long error);
    static native int twindex_snapshot_codes_within(long snapshot, long codes, long length, long count, int within,
            long limit, long threads, long out, long error);
    static native int twindex_snapshot_near_many(long snapshot, long sketches, long query, long threads, long out,
            long error);
    static native int twindex_snapshot_leader(long snapshot, long key, long length, long queries, long out, long error);
    static native int twindex_snapshot_membership(long snapshot, long key, long length, long queries, long out, long error);
    static native int twindex_snapshot_group(long snapshot, long key, long length, long queries, long out, long error);
    static native int twindex_snapshot_group_rule(long snapshot, long out, long error);
    static native int twindex_snapshot_groups(long snapshot, long directory, long memory, long threads, long cancel,
            long out, long error);
    static native int twindex_snapshot_changed_leaders(long snapshot, long since, long out, long error);
    static native void twindex_snapshot_free(long snapshot);

    static native long twindex_hits_len(long hits);
    static native byte twindex_hits_has_more(long hits);
    static native long twindex_hits_key(long hits, long at, long length);
    static native int twindex_hits_distance(long hits, long at);
    static native double twindex_hits_resemblance(long hits, long at);
    static native void twindex_hits_free(long hits);

    static native int twindex_keys_next_many(long keys, long max, long out, long error);
    static native void twindex_keys_free(long keys);

    static native long twindex_group_leader(long group, long length);
    static native long twindex_group_size(long group);
    static native long twindex_group_member(long group, long at, long length);
    static native void twindex_group_free(long group);
    static native long twindex_changes_len(long changes);
    static native long twindex_changes_key(long changes, long at, long length);
    static native long twindex_changes_before(long changes, long at, long length);
    static native long twindex_changes_after(long changes, long at, long length);
    static native void twindex_changes_free(long changes);
    static native long twindex_groups_count(long groups);
    static native int twindex_groups_leader(long groups, long key, long length, long out, long error);
    static native int twindex_groups_for_each(long groups, int minSize, GroupVisitor each, long data, long error);
    static native void twindex_groups_free(long groups);

    static native int twindex_batch_arrays(long batch, long arrays, long error);
    static native long twindex_batch_message(long batch, long at);
    static native void twindex_batch_free(long batch);

    static native int twindex_writer_put_many(long writer, long documents, long out, long error);
    static native int twindex_writer_admit_many(long writer, long documents, long out, long error);
    static native int twindex_writer_put(long writer, long key, long length, long document, long error);
    static native int twindex_writer_admit(long writer, long key, long length, long document, long admitted, long near,
            long error);
    static native int twindex_writer_put_text(long writer, long key, long length, long text, long textLength, long error);
    static native int twindex_writer_admit_text(long writer, long key, long length, long text, long textLength,
            long admitted, long near, long error);
    static native int twindex_writer_admit_grouped(long writer, long key, long length, long document, long queries,
            long admitted, long near, long group, long error);
    static native int twindex_writer_admit_inside(long writer, long key, long length, long document, long admitted,
            long near, long error);
    static native int twindex_writer_delete(long writer, long key, long length, long error);
    static native int twindex_writer_delete_many(long writer, long keys, long offsets, long count, long error);
    static native int twindex_writer_delete_prefix(long writer, long prefix, long length, long removed, long error);
    static native int twindex_writer_contains(long writer, long key, long length, long out, long error);
    static native int twindex_writer_get(long writer, long key, long length, long out, long error);
    static native int twindex_writer_find_near(long writer, long document, long limit, long out, long error);
    static native int twindex_writer_leader(long writer, long key, long length, long queries, long out, long error);
    static native int twindex_writer_group(long writer, long key, long length, long queries, long out, long error);
    static native int twindex_writer_unmark(long writer, long key, long length, long out, long error);
    static native int twindex_writer_commit_with(long writer, long payload, long length, long commit, long error);
    static native int twindex_writer_commit(long writer, long commit, long error);
    static native int twindex_writer_sync(long writer, long error);
    static native int twindex_writer_rollback(long writer, long error);
    static native int twindex_writer_flush(long writer, long error);
    static native int twindex_writer_compact(long writer, long cancel, long commit, long error);
    static native int twindex_writer_merge_step(long writer, long cancel, long merged, long error);
    static native int twindex_writer_wait_for_merge(long writer, long error);
    static native int twindex_writer_take_merge_failure(long writer, long error);
    static native int twindex_writer_gc(long writer, long bytes, long error);
    static native int twindex_writer_ingest(long writer, long segments, long count, long documents, long error);
    static native int twindex_writer_set(long writer, long name, long value, long error);
    static native void twindex_writer_free(long writer);

    static native byte twindex_record_fingerprint(long record, long out);
    static native long twindex_record_code(long record, long length);
    static native long twindex_record_value(long record, long length);
    static native byte twindex_record_stamp(long record, long out);
    static native byte twindex_record_priority(long record, long out);
    static native byte twindex_record_is_duplicate(long record);
    static native void twindex_record_free(long record);
}
