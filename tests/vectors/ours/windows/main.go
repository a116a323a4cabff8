// A player of a window vector: main FROM FILE. From row FROM on, its windows are one segment larger.
package main

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"strconv"

	"sojourn/vectors/readers"
)

func main() {
	var vector struct{ Events [][]any }
	from, err := strconv.ParseUint(os.Args[1], 10, 64)
	if err == nil {
		var file []byte
		if file, err = os.ReadFile(os.Args[2]); err == nil {
			err = json.Unmarshal(file, &vector)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	var kernel, ours []readers.Window
	for _, row := range vector.Events {
		if row[1] == "window" {
			threshold, _ := row[3].(float64) // null: 0
			kernel = append(kernel, readers.Window{At: uint64(row[0].(float64)), Cwnd: uint64(row[2].(float64)), Ssthresh: uint64(threshold)})
		}
	}
	for n, window := range kernel {
		if uint64(n) >= from {
			window.Cwnd++
		}
		ours = append(ours, window)
	}
	fmt.Print(len(kernel))
	if err := readers.CheckWindows(kernel, ours, math.MaxUint64); err != nil {
		fmt.Print(" ", err)
	}
	fmt.Println()
}
