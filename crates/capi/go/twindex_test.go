package twindex

import (
	"errors"
	"fmt"
	"path/filepath"
	"testing"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestIndex(t *testing.T) {
	path := filepath.Join(t.TempDir(), "go.twx")
	var failed *Error
	if _, err := Open(path); !errors.As(err, &failed) || failed.Code != NotAnIndex {
		t.Fatal(err)
	}
	if _, err := Open(path, Setting{"nearby", "1"}); !errors.As(err, &failed) || failed.Code != Invalid {
		t.Fatal(err)
	}
	index, err := Open(path, Setting{"words", "2"}, Setting{"near", "0.8"}, Setting{"sets", "kept"})
	must(t, err)
	defer index.Close()
	writer, err := index.Writer()
	must(t, err)
	defer writer.Close()
	if _, err := index.Writer(); !errors.As(err, &failed) || failed.Code != Locked {
		t.Fatal(err)
	}
	must(t, writer.Set("memtable", "1000,1M"))
	sketcher, err := index.Sketcher()
	must(t, err)
	defer sketcher.Close()
	sketches, err := sketcher.Sketch([]byte("a rose is a rose is a rose"), []byte("the sea and its tides"), []byte("A rose is a rose is a rose!"))
	must(t, err)
	defer sketches.Close()
	admitted, err := writer.Admit([][]byte{[]byte("a"), []byte("b"), []byte("c")}, sketches)
	must(t, err)
	if admitted[1].Kind != New || admitted[2].Kind != Duplicate || string(admitted[2].Near.Key) != "a" || admitted[2].Near.Resemblance != 1 {
		t.Fatal(admitted)
	}
	_, err = writer.Commit([]byte("3"))
	must(t, err)
	snapshot, err := index.Snapshot()
	must(t, err)
	defer snapshot.Close()
	near, err := snapshot.Near(sketches, 10)
	must(t, err)
	group, err := snapshot.Group([]byte("c"))
	must(t, err)
	leader, err := snapshot.Leader([]byte("c"))
	must(t, err)
	if len(near[0]) != 2 || len(near[1]) != 1 || group.Size != 2 || len(group.Members) != 2 || string(leader.Leader) != string(group.Leader) {
		t.Fatal(near, group, leader)
	}
	none, err := snapshot.Leader([]byte("none"))
	if none != nil || err != nil {
		t.Fatal(none, err)
	}
	contained, err := snapshot.Contains([]byte("b"))
	if !contained || err != nil || snapshot.Documents() != 3 || string(snapshot.Payload()) != "3" {
		t.Fatal(contained, err)
	}
	must(t, writer.Delete([]byte("b")))
	_, err = index.CopyTo(path + ".copy")
	must(t, err)
	if _, err := writer.Admit([][]byte{[]byte("a")}, sketches); !errors.As(err, &failed) || failed.Code != Invalid {
		t.Fatal(err)
	}
}

func index(b *testing.B) *Index {
	index, err := Open(filepath.Join(b.TempDir(), "bench.twx"), Setting{"near", "0.8"})
	if err != nil {
		b.Fatal(err)
	}
	return index
}

func BenchmarkKey(b *testing.B) {
	snapshot, err := index(b).Snapshot()
	if err != nil {
		b.Fatal(err)
	}
	key := []byte("https://example.org/page")
	b.ResetTimer()
	for i := 0; i < b.N; i++ {
		if _, err := snapshot.Contains(key); err != nil {
			b.Fatal(err)
		}
	}
}

// Documents with the texts of tests/costs.cc, in batches of 100; ns/op is for a document.
func BenchmarkDocument(b *testing.B) {
	index := index(b)
	writer, err := index.Writer()
	if err != nil {
		b.Fatal(err)
	}
	sketcher, err := index.Sketcher()
	if err != nil {
		b.Fatal(err)
	}
	keys, texts := make([][]byte, b.N), make([][]byte, b.N)
	for number := range keys {
		keys[number] = []byte(fmt.Sprintf("https://example.org/%d", number))
		for i := 0; i < 100; i++ {
			texts[number] = append(texts[number], fmt.Sprintf("word%d ", (number*7919+i*104729)%99991)...)
		}
	}
	b.ResetTimer()
	for from := 0; from < b.N; from += 100 {
		to := from + 100
		if to > b.N {
			to = b.N
		}
		sketches, err := sketcher.Sketch(texts[from:to]...)
		if err != nil {
			b.Fatal(err)
		}
		if err := writer.Put(keys[from:to], sketches); err != nil {
			b.Fatal(err)
		}
		sketches.Close()
	}
}
