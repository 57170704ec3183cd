/* The C++ interface of twindex: the handles of twindex.h as classes that free themselves, errors as exceptions, and keys and
 * texts as std::string_view. C++17, this header alone, and the library of twindex.h. Functions of twindex.h that have no
 * method here can be called with `get()` of a handle. */
#ifndef TWINDEX_HPP
#define TWINDEX_HPP

#include <chrono>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "twindex.h"

namespace twindex {

/// An error of the library.
class Error : public std::runtime_error {
public:
    Error(twindex_code code, const std::string &message) : std::runtime_error(message), code_(code) {}
    /// The kind of error: one of TWINDEX_CODE_...
    twindex_code code() const noexcept { return code_; }

private:
    twindex_code code_;
};

namespace detail {

/// Receives the error of a call, and throws it.
class Check {
public:
    ~Check() { twindex_error_free(error_); }
    operator twindex_error **() noexcept { return &error_; }
    void operator()(twindex_code code) const {
        if (code != TWINDEX_CODE_OK) throw Error(code, twindex_error_message(error_));
    }

private:
    twindex_error *error_ = nullptr;
};

/// A handle that is freed by `Free`.
template <typename T, void (*Free)(T *)> class Handle {
public:
    explicit Handle(T *handle = nullptr) noexcept : handle_(handle) {}
    /// Returns the handle for functions of twindex.h. It stays owned by this object.
    T *get() const noexcept { return handle_.get(); }
    explicit operator bool() const noexcept { return handle_ != nullptr; }

private:
    struct Deleter {
        void operator()(T *handle) const noexcept { Free(handle); }
    };
    std::unique_ptr<T, Deleter> handle_;
};

inline const uint8_t *bytes(std::string_view text) noexcept { return reinterpret_cast<const uint8_t *>(text.data()); }

inline std::string text(const uint8_t *bytes, size_t len) {
    return bytes == nullptr ? std::string() : std::string(reinterpret_cast<const char *>(bytes), len);
}

/// Byte strings, one after the other, with their offsets.
struct Packed {
    std::vector<uint8_t> bytes;
    std::vector<uint64_t> offsets{0};
    void add(std::string_view one) {
        bytes.insert(bytes.end(), one.begin(), one.end());
        offsets.push_back(bytes.size());
    }
    void clear() {
        bytes.clear();
        offsets.assign(1, 0);
    }
    size_t size() const noexcept { return offsets.size() - 1; }
};

} // namespace detail

/// A key of an index whose keys are numbers.
inline std::string key(uint64_t number) {
    std::string bytes(sizeof number, '\0');
    std::memcpy(&bytes[0], &number, sizeof number);
    return bytes;
}

/// A document that a query found.
struct Hit {
    std::string key;
    int distance;       ///< -1 if it is unknown
    double resemblance; ///< -1 if it is unknown
};

/// How a document was admitted.
struct Admitted {
    twindex_admitted kind;
    std::optional<Hit> near; ///< the nearest other document, if it is near
};

/// The result of one document of a call for many.
struct Result {
    twindex_code code;
    std::string message; ///< of the error
    Admitted admitted;   ///< if there is no error
};

/// The group of a document.
struct Group {
    std::string leader;
    uint64_t size;                    ///< 0 if it was not asked for
    std::vector<std::string> members; ///< none if they were not asked for
};

/// A document whose leader changed.
struct LeaderChange {
    std::string key;
    std::optional<std::string> before; ///< none if the document did not exist
    std::optional<std::string> after;  ///< none if the document no longer exists
};

/// The stored record of a document.
struct Record {
    std::optional<uint64_t> fingerprint;
    std::optional<std::string> value;
    std::optional<uint64_t> stamp;
    std::optional<uint64_t> priority;
    bool is_duplicate;
};

namespace detail {

inline std::vector<Hit> hits(twindex_hits *found) {
    Handle<twindex_hits, twindex_hits_free> owned(found);
    std::vector<Hit> hits;
    for (size_t i = 0; i < twindex_hits_len(found); i++) {
        size_t len;
        const uint8_t *key = twindex_hits_key(found, i, &len);
        hits.push_back({text(key, len), twindex_hits_distance(found, i), twindex_hits_resemblance(found, i)});
    }
    return hits;
}

inline Admitted admitted(twindex_admitted kind, twindex_hits *near) {
    std::vector<Hit> found = hits(near);
    return {kind, found.empty() ? std::nullopt : std::optional<Hit>(std::move(found[0]))};
}

inline std::optional<Group> group(twindex_group *found) {
    Handle<twindex_group, twindex_group_free> owned(found);
    if (!owned) return std::nullopt;
    size_t len;
    const uint8_t *leader = twindex_group_leader(found, &len);
    Group group{text(leader, len), twindex_group_size(found), {}};
    for (size_t i = 0; const uint8_t *member = twindex_group_member(found, i, &len); i++)
        group.members.push_back(text(member, len));
    return group;
}

inline std::optional<Record> record(twindex_record *found) {
    Handle<twindex_record, twindex_record_free> owned(found);
    if (!owned) return std::nullopt;
    Record record{};
    uint64_t number;
    size_t len;
    if (twindex_record_fingerprint(found, &number)) record.fingerprint = number;
    if (const uint8_t *value = twindex_record_value(found, &len)) record.value = text(value, len);
    if (twindex_record_stamp(found, &number)) record.stamp = number;
    if (twindex_record_priority(found, &number)) record.priority = number;
    record.is_duplicate = twindex_record_is_duplicate(found);
    return record;
}

/// The results of a call for many.
struct Batch {
    Handle<twindex_batch, twindex_batch_free> owned;
    twindex_arrays arrays = TWINDEX_ARRAYS_INIT;
    explicit Batch(twindex_batch *batch) : owned(batch) {
        Check check;
        check(twindex_batch_arrays(batch, &arrays, check));
    }
    std::string entry(uint64_t i) const {
        return text(arrays.bytes + arrays.offsets[i], arrays.offsets[i + 1] - arrays.offsets[i]);
    }
    Hit hit(uint64_t i) const { return {entry(i), arrays.distances[i], arrays.resemblances[i]}; }
    void check(size_t item) const {
        if (arrays.codes[item] != TWINDEX_CODE_OK)
            throw Error(twindex_code(arrays.codes[item]), twindex_batch_message(owned.get(), item));
    }
};

} // namespace detail

/// The sketch of a text.
class Sketch : public detail::Handle<twindex_sketch, twindex_sketch_free> {
    using Handle::Handle;
};

/// The sketches of many texts.
class Sketches : public detail::Handle<twindex_sketches, twindex_sketches_free> {
public:
    using Handle::Handle;
    size_t size() const { return twindex_sketches_len(get()); }
};

/// Computes sketches of texts. Any number of threads may use it.
class Sketcher : public detail::Handle<twindex_sketcher, twindex_sketcher_free> {
public:
    using Handle::Handle;
    Sketch sketch(std::string_view text) const {
        detail::Check check;
        twindex_sketch *sketch;
        check(twindex_sketcher_sketch(get(), detail::bytes(text), text.size(), &sketch, check));
        return Sketch(sketch);
    }
    /// Computes the sketches of many texts, in parallel.
    template <typename Texts> Sketches sketch_many(const Texts &texts, size_t threads = 0) const {
        detail::Packed packed;
        for (const auto &text : texts) packed.add(text);
        detail::Check check;
        twindex_sketches *sketches;
        check(twindex_sketcher_sketch_many(get(), packed.bytes.data(), packed.offsets.data(), packed.size(), threads, &sketches,
                                           check));
        return Sketches(sketches);
    }
};

/// Parameters of an index.
class Params : public detail::Handle<twindex_params, twindex_params_free> {
public:
    Params() : Handle(twindex_params_new()) {}
    /// Sets settings by name, such as {{"near", "0.8"}, {"sets", "kept"}}.
    Params(std::initializer_list<std::pair<const char *, const char *>> settings) : Params() {
        for (const auto &setting : settings) set(setting.first, setting.second);
    }
    explicit Params(twindex_params *params) : Handle(params) {}
    Params &set(const char *name, const char *value) {
        detail::Check check;
        check(twindex_params_set(get(), name, value, check));
        return *this;
    }
    std::string text() const { return twindex_params_text(get()); }
};

/// Documents for calls for many. Either all or none have a value, and likewise a stamp and a priority.
class Documents {
public:
    Documents &add(std::string_view key, std::string_view text) {
        texts_.add(text);
        keys_.add(key);
        return *this;
    }
    /// Adds a document whose sketch is passed with the documents.
    Documents &add(std::string_view key) {
        keys_.add(key);
        return *this;
    }
    Documents &value(std::string_view value) {
        values_.add(value);
        return *this;
    }
    Documents &stamp(uint64_t stamp) {
        stamps_.push_back(stamp);
        return *this;
    }
    Documents &priority(uint64_t priority) {
        priorities_.push_back(priority);
        return *this;
    }
    void clear() {
        keys_.clear();
        texts_.clear();
        values_.clear();
        stamps_.clear();
        priorities_.clear();
    }
    size_t size() const noexcept { return keys_.size(); }
    /// Returns the structure of twindex.h. It is valid until the documents are changed.
    twindex_documents get(const Sketches *sketches) const {
        auto all_or_none = [this](size_t count) {
            if (count != 0 && count != size()) throw std::invalid_argument("documents: set all or none");
            return count != 0;
        };
        twindex_documents all = TWINDEX_DOCUMENTS_INIT;
        all.count = size();
        all.keys = keys_.bytes.data();
        all.key_offsets = keys_.offsets.data();
        if (sketches != nullptr) {
            all.sketches = sketches->get();
        } else if (all_or_none(texts_.size()) || size() == 0) {
            all.texts = texts_.bytes.data();
            all.text_offsets = texts_.offsets.data();
        }
        if (all_or_none(values_.size())) {
            all.values = values_.bytes.data();
            all.value_offsets = values_.offsets.data();
        }
        if (all_or_none(stamps_.size())) all.stamps = stamps_.data();
        if (all_or_none(priorities_.size())) all.priorities = priorities_.data();
        return all;
    }

private:
    detail::Packed keys_, texts_, values_;
    std::vector<uint64_t> stamps_, priorities_;
};

/// Keys of a snapshot, in ascending order.
class Keys : public detail::Handle<twindex_keys, twindex_keys_free> {
public:
    using Handle::Handle;
    /// Returns the next keys, at most `max`; none after the last.
    std::vector<std::string> next(size_t max = 1000) {
        detail::Check check;
        twindex_batch *found;
        check(twindex_keys_next_many(get(), max, &found, check));
        detail::Batch batch(found);
        std::vector<std::string> keys;
        for (size_t i = 0; i < batch.arrays.entries; i++) keys.push_back(batch.entry(i));
        return keys;
    }
};

/// The state of an index at one commit.
class Snapshot : public detail::Handle<twindex_snapshot, twindex_snapshot_free> {
public:
    using Handle::Handle;
    uint64_t documents() const { return twindex_snapshot_documents(get()); }
    uint64_t commit() const { return twindex_snapshot_commit(get()); }
    std::optional<std::string> payload() const {
        size_t len;
        const uint8_t *payload = twindex_snapshot_payload(get(), &len);
        return payload == nullptr ? std::nullopt : std::optional<std::string>(detail::text(payload, len));
    }
    bool contains(std::string_view key) const {
        detail::Check check;
        bool contained;
        check(twindex_snapshot_contains(get(), detail::bytes(key), key.size(), &contained, check));
        return contained;
    }
    std::optional<Record> get_record(std::string_view key) const {
        detail::Check check;
        twindex_record *record;
        check(twindex_snapshot_get(get(), detail::bytes(key), key.size(), &record, check));
        return detail::record(record);
    }
    Keys keys(std::string_view prefix = {}) const {
        detail::Check check;
        twindex_keys *keys;
        check(twindex_snapshot_keys(get(), detail::bytes(prefix), prefix.size(), &keys, check));
        return Keys(keys);
    }
    std::vector<Hit> near(const Sketch &sketch, size_t limit) const {
        twindex_query query = TWINDEX_QUERY_INIT;
        query.limit = limit;
        return near(sketch, query);
    }
    std::vector<Hit> near(const Sketch &sketch, const twindex_query &query) const {
        detail::Check check;
        twindex_hits *hits;
        check(twindex_snapshot_query(get(), sketch.get(), &query, &hits, check));
        return detail::hits(hits);
    }
    /// Finds the documents near each sketch, in parallel.
    std::vector<std::vector<Hit>> near_many(const Sketches &sketches, const twindex_query *query = nullptr,
                                            size_t threads = 0) const {
        detail::Check check;
        twindex_batch *found;
        check(twindex_snapshot_near_many(get(), sketches.get(), query, threads, &found, check));
        detail::Batch batch(found);
        std::vector<std::vector<Hit>> all(batch.arrays.items);
        for (size_t item = 0; item < all.size(); item++) {
            batch.check(item);
            for (uint64_t i = batch.arrays.starts[item]; i < batch.arrays.starts[item + 1]; i++)
                all[item].push_back(batch.hit(i));
        }
        return all;
    }
    std::optional<Group> leader(std::string_view key, uint64_t max_queries = TWINDEX_GROUP_QUERIES) const {
        return group_by(twindex_snapshot_leader, key, max_queries);
    }
    std::optional<Group> membership(std::string_view key, uint64_t max_queries = TWINDEX_GROUP_QUERIES) const {
        return group_by(twindex_snapshot_membership, key, max_queries);
    }
    std::optional<Group> group(std::string_view key, uint64_t max_queries = TWINDEX_GROUP_QUERIES) const {
        return group_by(twindex_snapshot_group, key, max_queries);
    }
    std::vector<LeaderChange> changed_leaders(const Snapshot &since) const {
        detail::Check check;
        twindex_changes *found;
        check(twindex_snapshot_changed_leaders(get(), since.get(), &found, check));
        detail::Handle<twindex_changes, twindex_changes_free> owned(found);
        std::vector<LeaderChange> changes;
        auto some = [](const uint8_t *key, size_t len) {
            return key == nullptr ? std::nullopt : std::optional<std::string>(detail::text(key, len));
        };
        for (size_t i = 0; i < twindex_changes_len(found); i++) {
            size_t len;
            const uint8_t *key = twindex_changes_key(found, i, &len);
            LeaderChange change{detail::text(key, len), std::nullopt, std::nullopt};
            key = twindex_changes_before(found, i, &len);
            change.before = some(key, len);
            key = twindex_changes_after(found, i, &len);
            change.after = some(key, len);
            changes.push_back(std::move(change));
        }
        return changes;
    }

private:
    template <typename Find>
    std::optional<Group> group_by(Find find, std::string_view key, uint64_t max_queries) const {
        detail::Check check;
        twindex_group *group;
        check(find(get(), detail::bytes(key), key.size(), max_queries, &group, check));
        return detail::group(group);
    }
};

/// The only writer of an index. Threads may share it.
class Writer : public detail::Handle<twindex_writer, twindex_writer_free> {
public:
    using Handle::Handle;
    Writer &set(const char *name, const char *value) {
        detail::Check check;
        check(twindex_writer_set(get(), name, value, check));
        return *this;
    }
    void put(std::string_view key, std::string_view text) {
        detail::Check check;
        check(twindex_writer_put_text(get(), detail::bytes(key), key.size(), detail::bytes(text), text.size(), check));
    }
    Admitted admit(std::string_view key, std::string_view text) {
        detail::Check check;
        twindex_admitted kind;
        twindex_hits *near;
        check(twindex_writer_admit_text(get(), detail::bytes(key), key.size(), detail::bytes(text), text.size(), &kind, &near,
                                        check));
        return detail::admitted(kind, near);
    }
    /// Adds documents. Throws the first error, after the others were added.
    void put_many(const Documents &documents, const Sketches *sketches = nullptr) {
        detail::Check check;
        twindex_documents all = documents.get(sketches);
        check(twindex_writer_put_many(get(), &all, nullptr, check));
    }
    std::vector<Result> admit_many(const Documents &documents, const Sketches *sketches = nullptr) {
        detail::Check check;
        twindex_documents all = documents.get(sketches);
        twindex_batch *found;
        check(twindex_writer_admit_many(get(), &all, &found, check));
        detail::Batch batch(found);
        std::vector<Result> results;
        for (size_t item = 0; item < batch.arrays.items; item++) {
            Result result{twindex_code(batch.arrays.codes[item]), twindex_batch_message(found, item), {}};
            if (result.code == TWINDEX_CODE_OK) {
                uint64_t at = batch.arrays.starts[item];
                result.admitted.kind = twindex_admitted(batch.arrays.admitted[item]);
                if (at < batch.arrays.starts[item + 1]) result.admitted.near = batch.hit(at);
            }
            results.push_back(std::move(result));
        }
        return results;
    }
    void remove(std::string_view key) {
        detail::Check check;
        check(twindex_writer_delete(get(), detail::bytes(key), key.size(), check));
    }
    uint64_t remove_prefix(std::string_view prefix) {
        detail::Check check;
        uint64_t removed;
        check(twindex_writer_delete_prefix(get(), detail::bytes(prefix), prefix.size(), &removed, check));
        return removed;
    }
    bool contains(std::string_view key) {
        detail::Check check;
        bool contained;
        check(twindex_writer_contains(get(), detail::bytes(key), key.size(), &contained, check));
        return contained;
    }
    uint64_t commit() {
        detail::Check check;
        uint64_t commit;
        check(twindex_writer_commit(get(), &commit, check));
        return commit;
    }
    uint64_t commit(std::string_view payload) {
        detail::Check check;
        uint64_t commit;
        check(twindex_writer_commit_with(get(), detail::bytes(payload), payload.size(), &commit, check));
        return commit;
    }
    void sync() {
        detail::Check check;
        check(twindex_writer_sync(get(), check));
    }
    void rollback() {
        detail::Check check;
        check(twindex_writer_rollback(get(), check));
    }
};

/// An open index.
class Index : public detail::Handle<twindex_index, twindex_index_free> {
public:
    using Handle::Handle;
    static Index create(const std::string &path, const Params &params) {
        detail::Check check;
        twindex_index *index;
        check(twindex_index_create(path.c_str(), params.get(), &index, check));
        return Index(index);
    }
    static Index open(const std::string &path) {
        detail::Check check;
        twindex_index *index;
        check(twindex_index_open(path.c_str(), &index, check));
        return Index(index);
    }
    static Index open_or_create(const std::string &path, const Params &params) {
        detail::Check check;
        twindex_index *index;
        check(twindex_index_open_or_create(path.c_str(), params.get(), &index, check));
        return Index(index);
    }
    Params params() const {
        detail::Check check;
        twindex_params *params;
        check(twindex_index_params(get(), &params, check));
        return Params(params);
    }
    Sketcher sketcher() const {
        detail::Check check;
        twindex_sketcher *sketcher;
        check(twindex_index_sketcher(get(), &sketcher, check));
        return Sketcher(sketcher);
    }
    Snapshot snapshot() const {
        detail::Check check;
        twindex_snapshot *snapshot;
        check(twindex_index_snapshot(get(), &snapshot, check));
        return Snapshot(snapshot);
    }
    Writer writer() const {
        detail::Check check;
        twindex_writer *writer;
        check(twindex_index_writer(get(), &writer, check));
        return Writer(writer);
    }
    bool refresh() const {
        detail::Check check;
        bool changed;
        check(twindex_index_refresh(get(), &changed, check));
        return changed;
    }
    bool wait(uint64_t since, std::chrono::milliseconds timeout) const {
        detail::Check check;
        bool changed;
        check(twindex_index_wait(get(), since, uint64_t(timeout.count()), &changed, check));
        return changed;
    }
    twindex_metrics metrics() const {
        detail::Check check;
        twindex_metrics metrics = TWINDEX_METRICS_INIT;
        check(twindex_index_metrics(get(), &metrics, check));
        return metrics;
    }
    /// Copies the current state to a new directory: a backup.
    uint64_t copy_to(const std::string &path) const {
        detail::Check check;
        uint64_t commit;
        check(twindex_index_copy_to(get(), path.c_str(), &commit, check));
        return commit;
    }
    void compact() const {
        detail::Check check;
        check(twindex_index_compact(get(), check));
    }
};

} // namespace twindex

#endif
