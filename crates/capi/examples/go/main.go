// Command twindex-example finds near-duplicates among the lines of a file: twindex-example INDEX FILE. Each line is a
// document. Lines are sketched in parallel and admitted in order. scripts/capi examples runs it.
package main

// #cgo pkg-config: twindex
// #include <stdlib.h>
// #include <twindex.h>
import "C"

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
	"sync"
	"unsafe"
)

// check exits with the error message if code is not success.
func check(code C.twindex_code, failed *C.twindex_error) {
	if code != C.TWINDEX_CODE_OK {
		message := C.GoString(C.twindex_error_message(failed))
		C.twindex_error_free(failed)
		fmt.Fprintf(os.Stderr, "twindex: code %d: %s\n", code, message)
		os.Exit(1)
	}
}

// start returns the address of the first byte, or nil if text is empty.
func start(text []byte) *C.uint8_t {
	if len(text) == 0 {
		return nil
	}
	return (*C.uint8_t)(unsafe.Pointer(&text[0]))
}

func open(path string) *C.twindex_index {
	name := C.CString(path)
	defer C.free(unsafe.Pointer(name))
	params := C.twindex_params_new()
	defer C.twindex_params_free(params)
	var failed *C.twindex_error
	check(C.twindex_params_words(params, 2, &failed), failed)
	check(C.twindex_params_minhash(params, 20, 6, &failed), failed)
	check(C.twindex_params_sets(params, &failed), failed)
	check(C.twindex_params_near(params, 0.6, -1, &failed), failed)
	var index *C.twindex_index
	check(C.twindex_index_open_or_create(name, params, &index, &failed), failed)
	return index
}

func lines(path string) [][]byte {
	file, err := os.Open(path)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	defer file.Close()
	var found [][]byte
	scanner := bufio.NewScanner(file)
	for scanner.Scan() {
		found = append(found, append([]byte(nil), scanner.Bytes()...))
	}
	return found
}

// sketches computes the sketches of all texts in parallel, with one sketcher shared by all goroutines.
func sketches(index *C.twindex_index, texts [][]byte) []*C.twindex_sketch {
	var sketcher *C.twindex_sketcher
	var failed *C.twindex_error
	check(C.twindex_index_sketcher(index, &sketcher, &failed), failed)
	defer C.twindex_sketcher_free(sketcher)
	made := make([]*C.twindex_sketch, len(texts))
	workers := runtime.NumCPU()
	var all sync.WaitGroup
	for worker := 0; worker < workers; worker++ {
		all.Add(1)
		go func(first int) {
			defer all.Done()
			for at := first; at < len(texts); at += workers {
				var sketch *C.twindex_sketch
				var failed *C.twindex_error
				text := texts[at]
				check(C.twindex_sketcher_sketch(sketcher, start(text), C.size_t(len(text)), &sketch, &failed), failed)
				made[at] = sketch
			}
		}(worker)
	}
	all.Wait()
	return made
}

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: twindex-example INDEX FILE")
		os.Exit(2)
	}
	index := open(os.Args[1])
	defer C.twindex_index_free(index)
	texts := lines(os.Args[2])
	var writer *C.twindex_writer
	var failed *C.twindex_error
	check(C.twindex_index_writer(index, &writer, &failed), failed)
	for number, sketch := range sketches(index, texts) {
		key := []byte(fmt.Sprintf("line %d", number+1))
		// The document contains a pointer, so it must be allocated in C memory.
		document := (*C.twindex_document)(C.calloc(1, C.sizeof_twindex_document))
		document.struct_size = C.sizeof_twindex_document
		document.sketch = sketch
		var admitted C.twindex_admitted
		var near *C.twindex_hits
		check(C.twindex_writer_admit(writer, start(key), C.size_t(len(key)), document, &admitted, &near, &failed), failed)
		if admitted == C.TWINDEX_ADMITTED_DUPLICATE {
			var length C.size_t
			of := C.twindex_hits_key(near, 0, &length)
			fmt.Printf("%s is near %s, resemblance %.3f\n", key, C.GoBytes(unsafe.Pointer(of), C.int(length)),
				float64(C.twindex_hits_resemblance(near, 0)))
		}
		C.twindex_hits_free(near)
		C.free(unsafe.Pointer(document))
		C.twindex_sketch_free(sketch)
	}
	check(C.twindex_writer_commit(writer, nil, &failed), failed)
	C.twindex_writer_free(writer)
	var snapshot *C.twindex_snapshot
	check(C.twindex_index_snapshot(index, &snapshot, &failed), failed)
	fmt.Printf("%d lines, %d documents\n", len(texts), uint64(C.twindex_snapshot_documents(snapshot)))
	C.twindex_snapshot_free(snapshot)
}
