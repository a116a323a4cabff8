package readers

import "fmt"

// Window says from when on, in microseconds, a congestion window and a threshold of slow start were in force, in
// segments; threshold 0: not set yet.
type Window struct{ At, Cwnd, Ssthresh uint64 }

func (w Window) String() string {
	return fmt.Sprintf("window %d with threshold %d", w.Cwnd, w.Ssthresh)
}

// CheckWindows returns the first difference from the windows of the kernel, those of a file, up to a time.
// Ours has a row for each change, in order of time.
func CheckWindows(kernel, ours []Window, until uint64) error {
	for _, row := range kernel {
		if row.At > until {
			break
		}
		// The kernel was sampled every millisecond; its times are accurate to this.
		tolerance := 400 + row.At/1000
		got, found := Window{}, false
		for n, window := range ours {
			if window.At > row.At+tolerance {
				break
			}
			// A window is in force until the next one.
			if n+1 == len(ours) || ours[n+1].At+1000+tolerance > row.At {
				got = window
				found = found || window.Cwnd == row.Cwnd && window.Ssthresh == row.Ssthresh
			}
		}
		if !found {
			return fmt.Errorf("at %d us: expected %s, got %s", row.At, row, got)
		}
	}
	return nil
}
