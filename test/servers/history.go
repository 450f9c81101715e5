// history.go FILE ... - asks Porcupine, which is not ours, whether each history that soak.c writes is linearizable as a mutex that
// has no owner: a line "FILE: VERDICT" for each. An operation whose outcome is unknown may have taken effect, at any time, or not.
//
// SPDX-FileCopyrightText: the redlock authors
// SPDX-License-Identifier: MIT
package main

import (
	"bufio"
	"fmt"
	"log"
	"os"
	"regexp"
	"time"

	"github.com/anishathalye/porcupine"
)

var fields = regexp.MustCompile(`:process (\d+).*:type :(\w+).*:f :(\w+)`)

// The output of an operation is whether it has taken effect for certain.
var mutex = porcupine.NondeterministicModel{
	Init: func() []interface{} { return []interface{}{false} },
	Step: func(locked, f, certain interface{}) (after []interface{}) {
		if !certain.(bool) {
			after = append(after, locked)
		}
		if locked.(bool) == (f == "release") {
			after = append(after, f == "acquire")
		}
		return after
	},
}

// Operations that failed are left out. What is unknown, or never ends, returns behind all events.
func read(name string) (operations []porcupine.Operation) {
	file, err := os.Open(name)
	if err != nil {
		log.Fatal(err)
	}
	defer file.Close()
	open := map[string]porcupine.Operation{} // of each process
	lines := bufio.NewScanner(file)
	for line := int64(1); lines.Scan(); line++ {
		event := fields.FindStringSubmatch(lines.Text())
		if event == nil {
			log.Fatalf("%s:%d: no event", name, line)
		}
		process, kind, f := event[1], event[2], event[3]
		operation := open[process]
		switch kind {
		case "invoke":
			open[process] = porcupine.Operation{Input: f, Output: false, Call: line, Return: 1 << 62}
		case "ok":
			operation.Output, operation.Return = true, line
			operations = append(operations, operation)
			delete(open, process)
		case "fail":
			delete(open, process)
		}
	}
	for _, operation := range open {
		operations = append(operations, operation)
	}
	return operations
}

func main() {
	for _, name := range os.Args[1:] {
		verdict := porcupine.CheckOperationsTimeout(mutex.ToModel(), read(name), time.Minute)
		text := map[porcupine.CheckResult]string{porcupine.Ok: "linearizable", porcupine.Illegal: "NOT linearizable"}[verdict]
		if text == "" {
			text = "unknown after a minute"
		}
		fmt.Printf("%s: %s\n", name, text)
	}
}
