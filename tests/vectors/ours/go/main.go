// Replays vectors on the queues of Sojourn: main right|wrong FILE... Prints the first difference of each.
package main

// #cgo CFLAGS: -I${SRCDIR}/..
// #cgo LDFLAGS: -lvectors_queues
// #include <stdlib.h>
// #include "queues.h"
import "C"

import (
	"encoding/json"
	"fmt"
	"os"
	"unsafe"

	"sojourn/vectors/readers"
)

type queue struct{ self unsafe.Pointer }

func (q queue) Enqueue(now uint64, p readers.Packet) {
	packet := [4]C.uint64_t{C.uint64_t(p.Number), C.uint64_t(p.Flow), C.uint64_t(p.Size), C.uint64_t(p.Tos)}
	C.sojourn_vectors_enqueue(q.self, C.uint64_t(now), unsafe.Pointer(&packet))
}

func (q queue) Dequeue(now uint64) *readers.Packet {
	var p [4]C.uint64_t
	if C.sojourn_vectors_dequeue(q.self, C.uint64_t(now), unsafe.Pointer(&p)) == 0 {
		return nil
	}
	return &readers.Packet{Number: uint64(p[0]), Flow: uint64(p[1]), Size: uint64(p[2]), Tos: uint64(p[3])}
}

func main() {
	for _, path := range os.Args[2:] {
		var vector struct {
			Qdisc  string
			Rate   uint64 `json:"rate_bps"`
			Mtu    uint64
			Events [][]uint64
			Marks  []uint64
		}
		file, err := os.ReadFile(path)
		if err == nil {
			err = json.Unmarshal(file, &vector)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
		text := C.CString(vector.Qdisc)
		self := C.sojourn_vectors_queue(text, C.uint64_t(vector.Rate), C.uint64_t(vector.Mtu), os.Args[1] == "wrong")
		C.free(unsafe.Pointer(text))
		fmt.Println(readers.Check(vector.Events, vector.Marks, queue{self}))
	}
}
