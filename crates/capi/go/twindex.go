// Package twindex is an index of near-duplicate documents, by the C interface of twindex. It needs the library of
// scripts/capi install, which pkg-config finds. Close frees what the library holds; nothing is freed by itself.
package twindex

// #cgo pkg-config: twindex
// #include <stdlib.h>
// #include <twindex.h>
import "C"

import (
	"fmt"
	"unsafe"
)

// Error is an error of the library. Code is one of TWINDEX_CODE_... of twindex.h.
type Error struct {
	Code    int
	Message string
}

func (e *Error) Error() string { return fmt.Sprintf("twindex: %s (code %d)", e.Message, e.Code) }

// Codes that programs commonly handle; twindex.h has the others.
const (
	NotAnIndex = int(C.TWINDEX_CODE_NOT_AN_INDEX)
	Locked     = int(C.TWINDEX_CODE_LOCKED)
	Corrupt    = int(C.TWINDEX_CODE_CORRUPT)
	Invalid    = int(C.TWINDEX_CODE_INVALID)
	Undecided  = int(C.TWINDEX_CODE_UNDECIDED)
)

// GroupQueries is a limit on queries that suits most uses.
const GroupQueries = uint64(C.TWINDEX_GROUP_QUERIES)

// Kind says how a document was admitted.
type Kind int

// How a document was admitted, as in twindex_admitted.
const (
	New Kind = iota
	Updated
	Known
	Duplicate
	Expired
)

// Hit is a document that a query found. Distance and Resemblance are -1 if they are unknown.
type Hit struct {
	Key         []byte
	Distance    int
	Resemblance float64
}

// Admitted is the result of one document. Near is nil if no other document is near, and Err if the document was added.
type Admitted struct {
	Kind Kind
	Near *Hit
	Err  error
}

// Group is the group of a document. Size and Members are set if they were asked for.
type Group struct {
	Leader  []byte
	Size    uint64
	Members [][]byte
}

func check(code C.twindex_code, failed *C.twindex_error) error {
	if code == C.TWINDEX_CODE_OK {
		return nil
	}
	defer C.twindex_error_free(failed)
	return &Error{int(code), C.GoString(C.twindex_error_message(failed))}
}

func start(bytes []byte) *C.uint8_t {
	if len(bytes) == 0 {
		return nil
	}
	return (*C.uint8_t)(unsafe.Pointer(&bytes[0]))
}

func copied(from *C.uint8_t, len C.size_t) []byte {
	if from == nil {
		return nil
	}
	return C.GoBytes(unsafe.Pointer(from), C.int(len))
}

// packed is byte strings, one after the other, in memory of C: a structure that is passed to C must not point to memory of Go.
type packed struct {
	bytes   *C.uint8_t
	offsets *C.uint64_t
}

func pack(all [][]byte) packed {
	total := 0
	for _, one := range all {
		total += len(one)
	}
	p := packed{(*C.uint8_t)(C.malloc(C.size_t(total + 1))), (*C.uint64_t)(C.malloc(C.size_t(8 * (len(all) + 1))))}
	bytes := unsafe.Slice((*byte)(unsafe.Pointer(p.bytes)), total+1)
	offsets := unsafe.Slice((*uint64)(unsafe.Pointer(p.offsets)), len(all)+1)
	at := 0
	offsets[0] = 0
	for i, one := range all {
		at += copy(bytes[at:], one)
		offsets[i+1] = uint64(at)
	}
	return p
}

func (p packed) free() {
	C.free(unsafe.Pointer(p.bytes))
	C.free(unsafe.Pointer(p.offsets))
}

// Setting is a setting of a new index: names and values are those of twindex build, with _ for -.
type Setting struct{ Name, Value string }

// Index is an open index. Goroutines may share it.
type Index struct{ handle *C.twindex_index }

// Open opens the index at a path. With settings, it creates the index if there is none.
func Open(path string, settings ...Setting) (*Index, error) {
	name := C.CString(path)
	defer C.free(unsafe.Pointer(name))
	var failed *C.twindex_error
	index := &Index{}
	if len(settings) == 0 {
		return index, check(C.twindex_index_open(name, &index.handle, &failed), failed)
	}
	params := C.twindex_params_new()
	defer C.twindex_params_free(params)
	for _, one := range settings {
		key, value := C.CString(one.Name), C.CString(one.Value)
		err := check(C.twindex_params_set(params, key, value, &failed), failed)
		C.free(unsafe.Pointer(key))
		C.free(unsafe.Pointer(value))
		if err != nil {
			return nil, err
		}
	}
	return index, check(C.twindex_index_open_or_create(name, params, &index.handle, &failed), failed)
}

// Close closes the index. Snapshots, sketchers and writers remain valid.
func (i *Index) Close() {
	C.twindex_index_free(i.handle)
	i.handle = nil
}

// CopyTo copies the current state to a new directory: a backup.
func (i *Index) CopyTo(path string) (commit uint64, err error) {
	name := C.CString(path)
	defer C.free(unsafe.Pointer(name))
	var failed *C.twindex_error
	var number C.uint64_t
	err = check(C.twindex_index_copy_to(i.handle, name, &number, &failed), failed)
	return uint64(number), err
}

// Sketcher computes sketches of texts. Goroutines may share it.
type Sketcher struct{ handle *C.twindex_sketcher }

// Sketcher creates a sketcher with the parameters of the index.
func (i *Index) Sketcher() (*Sketcher, error) {
	var failed *C.twindex_error
	sketcher := &Sketcher{}
	return sketcher, check(C.twindex_index_sketcher(i.handle, &sketcher.handle, &failed), failed)
}

// Close frees the sketcher.
func (s *Sketcher) Close() {
	C.twindex_sketcher_free(s.handle)
	s.handle = nil
}

// Sketches are the sketches of texts.
type Sketches struct{ handle *C.twindex_sketches }

// Sketch computes the sketches of texts in UTF-8, in parallel on all cores.
func (s *Sketcher) Sketch(texts ...[]byte) (*Sketches, error) {
	all := pack(texts)
	defer all.free()
	var failed *C.twindex_error
	sketches := &Sketches{}
	return sketches, check(C.twindex_sketcher_sketch_many(s.handle, all.bytes, all.offsets, C.size_t(len(texts)), 0,
		&sketches.handle, &failed), failed)
}

// Close frees the sketches.
func (s *Sketches) Close() {
	C.twindex_sketches_free(s.handle)
	s.handle = nil
}

// Writer is the only writer of an index. Goroutines may share it.
type Writer struct{ handle *C.twindex_writer }

// Writer locks the index and creates its writer.
func (i *Index) Writer() (*Writer, error) {
	var failed *C.twindex_error
	writer := &Writer{}
	return writer, check(C.twindex_index_writer(i.handle, &writer.handle, &failed), failed)
}

// Close frees the writer. Uncommitted changes are lost.
func (w *Writer) Close() {
	C.twindex_writer_free(w.handle)
	w.handle = nil
}

// Set sets an option by name; see twindex_writer_set in twindex.h.
func (w *Writer) Set(name, value string) error {
	key, text := C.CString(name), C.CString(value)
	defer C.free(unsafe.Pointer(key))
	defer C.free(unsafe.Pointer(text))
	var failed *C.twindex_error
	return check(C.twindex_writer_set(w.handle, key, text, &failed), failed)
}

// arrays returns the arrays of a batch, in memory of C, which the caller frees.
func arrays(batch *C.twindex_batch) (*C.twindex_arrays, error) {
	all := (*C.twindex_arrays)(C.calloc(1, C.sizeof_twindex_arrays))
	all.struct_size = C.sizeof_twindex_arrays
	var failed *C.twindex_error
	return all, check(C.twindex_batch_arrays(batch, all, &failed), failed)
}

func hit(all *C.twindex_arrays, at int) *Hit {
	offsets := unsafe.Slice((*uint64)(unsafe.Pointer(all.offsets)), int(all.entries)+1)
	from := unsafe.Pointer(uintptr(unsafe.Pointer(all.bytes)) + uintptr(offsets[at]))
	return &Hit{
		C.GoBytes(from, C.int(offsets[at+1]-offsets[at])),
		int(unsafe.Slice(all.distances, int(all.entries))[at]),
		float64(unsafe.Slice(all.resemblances, int(all.entries))[at]),
	}
}

// pass calls with documents that have these keys and sketches, in memory of C.
func pass(keys [][]byte, sketches *Sketches, call func(*C.twindex_documents) error) error {
	names := pack(keys)
	defer names.free()
	documents := (*C.twindex_documents)(C.calloc(1, C.sizeof_twindex_documents))
	defer C.free(unsafe.Pointer(documents))
	documents.struct_size = C.sizeof_twindex_documents
	documents.count = C.size_t(len(keys))
	documents.keys = names.bytes
	documents.key_offsets = names.offsets
	documents.sketches = sketches.handle
	return call(documents)
}

// Put adds documents, or replaces those with these keys. sketches has a sketch for each key. It returns the first error, after
// the other documents were added.
func (w *Writer) Put(keys [][]byte, sketches *Sketches) error {
	return pass(keys, sketches, func(documents *C.twindex_documents) error {
		var failed *C.twindex_error
		return check(C.twindex_writer_put_many(w.handle, documents, nil, &failed), failed)
	})
}

// Admit finds the nearest other document of each document and adds the document, in order. sketches has a sketch for each key.
func (w *Writer) Admit(keys [][]byte, sketches *Sketches) ([]Admitted, error) {
	var batch *C.twindex_batch
	err := pass(keys, sketches, func(documents *C.twindex_documents) error {
		var failed *C.twindex_error
		return check(C.twindex_writer_admit_many(w.handle, documents, &batch, &failed), failed)
	})
	if err != nil {
		return nil, err
	}
	defer C.twindex_batch_free(batch)
	all, err := arrays(batch)
	defer C.free(unsafe.Pointer(all))
	if err != nil || len(keys) == 0 {
		return nil, err
	}
	codes := unsafe.Slice(all.codes, len(keys))
	starts := unsafe.Slice(all.starts, len(keys)+1)
	admitted := make([]Admitted, len(keys))
	for i := range admitted {
		if codes[i] != 0 {
			admitted[i].Err = &Error{int(codes[i]), C.GoString(C.twindex_batch_message(batch, C.size_t(i)))}
			continue
		}
		admitted[i].Kind = Kind(unsafe.Slice(all.admitted, len(keys))[i])
		if starts[i] < starts[i+1] {
			admitted[i].Near = hit(all, int(starts[i]))
		}
	}
	return admitted, nil
}

// Delete deletes the document with this key, if it exists.
func (w *Writer) Delete(key []byte) error {
	var failed *C.twindex_error
	return check(C.twindex_writer_delete(w.handle, start(key), C.size_t(len(key)), &failed), failed)
}

// Commit commits all changes. A payload that is not nil is stored with the commit.
func (w *Writer) Commit(payload []byte) (commit uint64, err error) {
	var failed *C.twindex_error
	var number C.uint64_t
	if payload == nil {
		err = check(C.twindex_writer_commit(w.handle, &number, &failed), failed)
	} else {
		err = check(C.twindex_writer_commit_with(w.handle, start(payload), C.size_t(len(payload)), &number, &failed), failed)
	}
	return uint64(number), err
}

// Snapshot is the state of an index at one commit. Goroutines may share it.
type Snapshot struct{ handle *C.twindex_snapshot }

// Snapshot returns the current state of the index.
func (i *Index) Snapshot() (*Snapshot, error) {
	var failed *C.twindex_error
	snapshot := &Snapshot{}
	return snapshot, check(C.twindex_index_snapshot(i.handle, &snapshot.handle, &failed), failed)
}

// Close frees the snapshot.
func (s *Snapshot) Close() {
	C.twindex_snapshot_free(s.handle)
	s.handle = nil
}

// Documents returns the number of live documents.
func (s *Snapshot) Documents() uint64 { return uint64(C.twindex_snapshot_documents(s.handle)) }

// Payload returns the payload of the last commit that has one; nil if there is none.
func (s *Snapshot) Payload() []byte {
	var len C.size_t
	payload := C.twindex_snapshot_payload(s.handle, &len)
	return copied(payload, len)
}

// Contains returns whether there is a document with this key.
func (s *Snapshot) Contains(key []byte) (bool, error) {
	var failed *C.twindex_error
	var contained C.bool
	err := check(C.twindex_snapshot_contains(s.handle, start(key), C.size_t(len(key)), &contained, &failed), failed)
	return bool(contained), err
}

// Near finds the documents near each sketch by the rule of the index, at most limit for each, in parallel.
func (s *Snapshot) Near(sketches *Sketches, limit int) ([][]Hit, error) {
	query := (*C.twindex_query)(C.calloc(1, C.sizeof_twindex_query))
	defer C.free(unsafe.Pointer(query))
	query.struct_size = C.sizeof_twindex_query
	query.limit = C.size_t(limit)
	query.within = -1
	var batch *C.twindex_batch
	var failed *C.twindex_error
	if err := check(C.twindex_snapshot_near_many(s.handle, sketches.handle, query, 0, &batch, &failed), failed); err != nil {
		return nil, err
	}
	defer C.twindex_batch_free(batch)
	all, err := arrays(batch)
	defer C.free(unsafe.Pointer(all))
	if err != nil {
		return nil, err
	}
	near := make([][]Hit, int(all.items))
	for i := range near {
		if code := unsafe.Slice(all.codes, len(near))[i]; code != 0 {
			return nil, &Error{int(code), C.GoString(C.twindex_batch_message(batch, C.size_t(i)))}
		}
		starts := unsafe.Slice(all.starts, len(near)+1)
		for at := starts[i]; at < starts[i+1]; at++ {
			near[i] = append(near[i], *hit(all, int(at)))
		}
	}
	return near, nil
}

func group(found *C.twindex_group) *Group {
	if found == nil {
		return nil
	}
	defer C.twindex_group_free(found)
	var len C.size_t
	leader := C.twindex_group_leader(found, &len)
	g := &Group{Leader: copied(leader, len), Size: uint64(C.twindex_group_size(found))}
	for at := C.size_t(0); ; at++ {
		member := C.twindex_group_member(found, at, &len)
		if member == nil {
			return g
		}
		g.Members = append(g.Members, copied(member, len))
	}
}

// Leader returns the leader of a document; nil if there is no such document.
func (s *Snapshot) Leader(key []byte) (*Group, error) {
	var failed *C.twindex_error
	var found *C.twindex_group
	err := check(C.twindex_snapshot_leader(s.handle, start(key), C.size_t(len(key)), C.TWINDEX_GROUP_QUERIES, &found, &failed),
		failed)
	return group(found), err
}

// Group returns the group of a document with its members; nil if there is no such document.
func (s *Snapshot) Group(key []byte) (*Group, error) {
	var failed *C.twindex_error
	var found *C.twindex_group
	err := check(C.twindex_snapshot_group(s.handle, start(key), C.size_t(len(key)), C.TWINDEX_GROUP_QUERIES, &found, &failed),
		failed)
	return group(found), err
}
