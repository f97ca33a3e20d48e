// Which rules do two headers hit? In Go, through cgo.
//
//	cargo build --release -p classyard-capi
//	cd crates/capi/examples/go && go run .
package main

/*
#cgo CFLAGS: -I${SRCDIR}/../../include
#cgo LDFLAGS: -L${SRCDIR}/../../../../target/release -l:libclassyard_c.a
#cgo LDFLAGS: -lm -ldl -lpthread -lgcc_s
#include <stdlib.h>
#include "classyard.h"
*/
import "C"

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"unsafe"
)

const rules = `schema ipv4-5tuple
permit dst=10.1.0.0/16 dport=443
deny any
`

// check returns the message of a call that failed. The message belongs to the thread, so the
// caller has locked it.
func check(status uint32) error {
	if status == C.CY_STATUS_OK {
		return nil
	}
	return errors.New(C.GoString(C.cy_last_error()))
}

// classify returns the rule of each header. All slices have the same length.
func classify(reader *C.cy_reader, src, dst []uint32, sport, dport []uint16, proto []uint8) ([]uint32, error) {
	rows := len(src)
	found := make([]uint32, rows)
	if rows == 0 {
		return found, nil
	}
	// The garbage collector leaves pinned slices where C sees them.
	var pinner runtime.Pinner
	defer pinner.Unpin()
	column := func(kind uint32, values unsafe.Pointer) C.cy_column {
		pinner.Pin(values)
		return C.cy_column{kind: C.uint32_t(kind), values: values}
	}
	columns := []C.cy_column{
		column(C.CY_COLUMN_TYPE_U32, unsafe.Pointer(&src[0])),
		column(C.CY_COLUMN_TYPE_U32, unsafe.Pointer(&dst[0])),
		column(C.CY_COLUMN_TYPE_U16, unsafe.Pointer(&sport[0])),
		column(C.CY_COLUMN_TYPE_U16, unsafe.Pointer(&dport[0])),
		column(C.CY_COLUMN_TYPE_U8, unsafe.Pointer(&proto[0])),
	}
	pinner.Pin(&found[0])
	output := C.cy_output{rules: (*C.uint32_t)(unsafe.Pointer(&found[0]))}
	err := check(C.cy_classify_columns(reader, 0, &columns[0], C.size_t(len(columns)), C.size_t(rows), &output))
	return found, err
}

func run() error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	text := C.CString(rules)
	defer C.free(unsafe.Pointer(text))

	var policy *C.cy_policy
	if err := check(C.cy_policy_parse(text, C.size_t(len(rules)), nil, nil, nil, &policy)); err != nil {
		return err
	}
	defer C.cy_policy_free(policy)
	var table *C.cy_table
	if err := check(C.cy_table_new(policy, nil, &table)); err != nil {
		return err
	}
	defer C.cy_table_free(table)
	var reader *C.cy_reader
	if err := check(C.cy_reader_new(table, &reader)); err != nil {
		return err
	}
	defer C.cy_reader_free(reader)

	src, dst := []uint32{0xc0000201, 0xc0000201}, []uint32{0x0a010001, 0x0a020001}
	found, err := classify(reader, src, dst, []uint16{40000, 40000}, []uint16{443, 443}, []uint8{6, 6})
	if err != nil {
		return err
	}
	fmt.Println(found)
	return nil
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
