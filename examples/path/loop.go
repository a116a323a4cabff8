// The loop of a test in Go, through cgo: as loop.c.
//
//	cargo build --release -p sojourn-path-c
//	CGO_LDFLAGS="-L$PWD/target/release -Wl,-rpath,$PWD/target/release" go run examples/path/loop.go
package main

// #cgo CFLAGS: -I${SRCDIR}/../../include
// #cgo LDFLAGS: -lsojournpath
// #include <stdlib.h>
// #include "sojourn_path.h"
import "C"

import (
	"errors"
	"fmt"
	"hash"
	"hash/fnv"
	"log"
	"unsafe"
)

const (
	forward = "rate 10mbit delay 10ms jitter 2ms loss 1% drop 3,4,5 qdisc fq_codel"
	never   = uint64(C.SOJOURN_NEVER)
	second  = uint64(1_000_000_000)
	gap     = uint64(400_000)
)

// Path is a bottleneck; its times are nanoseconds.
type Path struct{ handle *C.struct_sojourn_path }

// NewPath builds a path with events.
func NewPath(forward string, seed uint64) (Path, error) {
	text := C.CString(forward)
	defer C.free(unsafe.Pointer(text))
	var config C.struct_sojourn_path_config
	config.abi = C.SOJOURN_ABI
	config.flags = C.SOJOURN_EVENTS | C.SOJOURN_STRICT
	config.seed = C.uint64_t(seed)
	config.forward = C.struct_sojourn_text{data: text, size: C.size_t(len(forward))}
	path := Path{C.sojourn_path_new(&config)}
	return path, path.err()
}

// Close ends the path.
func (path Path) Close() { C.sojourn_path_free(path.handle) }

func (path Path) err() error {
	if text := C.sojourn_path_error(path.handle); text != nil {
		return errors.New(C.GoString(text))
	}
	return nil
}

// Push offers the payload of a UDP datagram.
func (path Path) Push(now uint64, direction uint32, payload []byte, ecn, flow uint32) error {
	packet := C.sojourn_path_push(path.handle, C.uint64_t(now), C.uint32_t(direction),
		unsafe.Pointer(unsafe.SliceData(payload)), C.size_t(len(payload)), C.uint32_t(ecn), C.uint32_t(flow))
	if packet == C.SOJOURN_NO_PACKET {
		return path.err()
	}
	return nil
}

// Delivery is a packet that has arrived.
type Delivery struct {
	Packet    uint64
	Direction uint32
	ECN       uint8
	Bytes     []byte
}

// Poll returns the next packet that has arrived, or nil.
func (path Path) Poll(now uint64) (*Delivery, error) {
	var arrived C.struct_sojourn_delivery
	switch C.sojourn_path_poll(path.handle, C.uint64_t(now), &arrived) {
	case 1:
		return &Delivery{uint64(arrived.packet), uint32(arrived.direction), uint8(arrived.ecn),
			C.GoBytes(arrived.bytes, C.int(arrived.size))}, nil
	case 0:
		return nil, nil
	}
	return nil, path.err()
}

// Deadline is the time of the next Poll.
func (path Path) Deadline() uint64 { return uint64(C.sojourn_path_deadline(path.handle)) }

// AddEvents removes the events so far, adds them to a digest and counts them.
func (path Path) AddEvents(digest hash.Hash) int {
	var some [64]C.struct_sojourn_event
	for total := 0; ; {
		count := int(C.sojourn_path_events(path.handle, &some[0], C.size_t(len(some))))
		digest.Write(unsafe.Slice((*byte)(unsafe.Pointer(&some[0])), count*int(unsafe.Sizeof(some[0]))))
		if total += count; count < len(some) {
			return total
		}
	}
}

func check(err error) {
	if err != nil {
		log.Fatal("loop: ", err)
	}
}

func main() {
	path, err := NewPath(forward, 1)
	check(err)
	defer path.Close()
	// The stack of another project would be called here.
	payload, answer := make([]byte, 1200), make([]byte, 40)
	digest := fnv.New64a()
	events, sent, arrived := 0, 0, 0
	for now, next := uint64(0), uint64(0); now != never; now = min(next, path.Deadline()) {
		for {
			delivery, err := path.Poll(now)
			check(err)
			if delivery == nil {
				break
			}
			arrived++
			if delivery.Direction == C.SOJOURN_FORWARD && delivery.Packet%2 == 0 {
				check(path.Push(now, C.SOJOURN_REVERSE, answer, C.SOJOURN_NOT_ECT, 0))
			}
		}
		if now == next {
			// Two flows; only the first is ECN-capable.
			flow, ecn := uint32(sent%2), uint32(C.SOJOURN_NOT_ECT)
			if flow == 0 {
				ecn = C.SOJOURN_ECT0
			}
			check(path.Push(now, C.SOJOURN_FORWARD, payload, ecn, flow))
			sent++
			if next = now + gap; next >= 2*second {
				next = never
			}
		}
		events += path.AddEvents(digest)
	}
	var counters C.struct_sojourn_counters
	var p95 C.uint64_t
	if C.sojourn_path_counters(path.handle, C.SOJOURN_FORWARD, &counters) != 0 ||
		C.sojourn_path_sojourn(path.handle, C.SOJOURN_FORWARD, 0.95, &p95) != 0 {
		check(path.err())
	}
	fmt.Printf("arrived %d, dropped %d, marked %d, lost %d, p95 %d us, events %d, digest %016x\n",
		arrived, counters.drops_aqm, counters.marks_aqm, counters.lost_packets, p95/1000, events, digest.Sum64())
}
