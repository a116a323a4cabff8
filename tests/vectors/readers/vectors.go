// Package readers replays a test vector of the kernel on a queue; ../README.md specifies the format.
package readers

import "fmt"

// Packet is a packet. A queue marks it by setting the two lowest bits of Tos.
type Packet struct{ Number, Flow, Size, Tos uint64 }

// Queue is what is tested; now is in nanoseconds. Dequeue returns nil if no packet may leave.
type Queue interface {
	Enqueue(now uint64, packet Packet)
	Dequeue(now uint64) *Packet
}

// Check returns the first difference from the kernel in the events and marks of a file.
func Check(events [][]uint64, marks []uint64, queue Queue) error {
	arrived, now, ce := []Packet{}, uint64(0), map[bool]string{true: " with CE"}
	for _, event := range events {
		if now = event[0]; len(event) == 4 {
			arrived = append(arrived, Packet{uint64(len(arrived)), event[1], event[2], event[3]})
			queue.Enqueue(now, arrived[len(arrived)-1])
			continue
		}
		marked := arrived[event[1]].Tos&3 == 3
		for _, mark := range marks {
			marked = marked || mark == event[1]
		}
		expected, got := fmt.Sprint("packet ", event[1], ce[marked]), "no packet"
		if packet := queue.Dequeue(now); packet != nil {
			got = fmt.Sprint("packet ", packet.Number, ce[packet.Tos&3 == 3])
		}
		if got != expected {
			return fmt.Errorf("at %d ns: expected %s, got %s", now, expected, got)
		}
	}
	if packet := queue.Dequeue(now); packet != nil {
		return fmt.Errorf("at the end: expected no packet, got packet %d", packet.Number)
	}
	return nil
}
