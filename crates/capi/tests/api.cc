// Tests the C++ header: api DIRECTORY, with an empty directory. scripts/capi test runs it under AddressSanitizer.
#include <cstdio>
#include <cstdlib>
#include <twindex.hpp>

#define CHECK(condition)                                                                  \
    do {                                                                                  \
        if (!(condition)) {                                                               \
            std::fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition); \
            std::exit(1);                                                                 \
        }                                                                                 \
    } while (0)

static const char *ROSE = "a rose is a rose is a rose is a rose";
static const char *ROSES = "A rose is a rose is a rose is a rose!";
static const char *OTHER = "entirely different words about the sea and its tides";

template <typename Call> static void fails(twindex_code code, const char *words, Call call) {
    try {
        call();
    } catch (const twindex::Error &error) {
        CHECK(error.code() == code && std::strstr(error.what(), words) != nullptr);
        return;
    }
    CHECK(!"an exception");
}

int main(int argc, char **argv) {
    CHECK(argc == 2);
    std::string path = std::string(argv[1]) + "/cpp.twx";
    fails(TWINDEX_CODE_NOT_AN_INDEX, "cpp.twx", [&] { twindex::Index::open(path); });
    twindex::Params params{{"words", "2"}, {"near", "0.8"}, {"sets", "kept"}, {"priorities", "kept"}, {"values", "kept"}};
    fails(TWINDEX_CODE_INVALID, "there is no setting", [&] { params.set("nearby", "1"); });
    twindex::Index index = twindex::Index::create(path, params);
    twindex::Writer writer = index.writer();
    fails(TWINDEX_CODE_LOCKED, "process", [&] { index.writer(); });
    CHECK(writer.admit("a", ROSE).kind == TWINDEX_ADMITTED_NEW);
    twindex::Admitted admitted = writer.admit("b", ROSES);
    CHECK(admitted.kind == TWINDEX_ADMITTED_DUPLICATE && admitted.near->key == "a" && admitted.near->resemblance == 1.0);
    twindex::Documents documents;
    documents.add("c", OTHER).value("sea").priority(7).add("d", ROSE).value("rose").priority(1);
    std::vector<twindex::Result> results = writer.admit_many(documents);
    CHECK(results.size() == 2 && results[0].admitted.kind == TWINDEX_ADMITTED_NEW && !results[0].admitted.near);
    CHECK(results[1].admitted.near && results[1].code == TWINDEX_CODE_OK);
    uint64_t commit = writer.commit("at 4");
    twindex::Snapshot before = index.snapshot();
    CHECK(before.documents() == 4 && before.commit() == commit && before.payload() == "at 4");
    CHECK(before.contains("c") && !before.contains("e"));
    CHECK(before.get_record("c")->value == "sea" && before.get_record("c")->priority == 7u && !before.get_record("e"));
    CHECK(before.leader("a")->leader == "d" && before.membership("a")->size == 3 && !before.leader("e"));
    CHECK((before.group("a")->members == std::vector<std::string>{"a", "b", "d"}));
    twindex::Sketcher sketcher = index.sketcher();
    twindex::Sketches sketches = sketcher.sketch_many(std::vector<std::string>{ROSE, OTHER, ""});
    std::vector<std::vector<twindex::Hit>> near = before.near_many(sketches);
    CHECK(sketches.size() == 3 && near[0].size() == 3 && near[1].size() == 1 && near[2].empty());
    CHECK(before.near(sketcher.sketch(ROSE), 1).size() == 1);
    CHECK((before.keys().next(3) == std::vector<std::string>{"a", "b", "c"}));
    writer.put_many(twindex::Documents().add("f").value("").add("g").value("").add("h").value(""), &sketches);
    writer.remove("d");
    writer.commit();
    std::vector<twindex::LeaderChange> changes = index.snapshot().changed_leaders(before);
    CHECK(changes.size() == 6);
    CHECK(changes[2].key == "d" && changes[2].before == "d" && !changes[2].after);
    CHECK(writer.remove_prefix("a") == 1 && !writer.contains("a"));
    writer.rollback();
    CHECK(writer.contains("a"));
    CHECK(index.metrics().documents == 6 && index.copy_to(std::string(argv[1]) + "/copy.twx") == index.snapshot().commit());
    CHECK(index.params().text().find("sets=kept") != std::string::npos);
    std::puts("api.cc: passed");
    return 0;
}
