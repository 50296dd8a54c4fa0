package main

import (
	"fmt"
	"strconv"

	"github.com/spf13/pflag"

	"go.opendefense.cloud/krop/test/testbed"
)

// lastPort leaves room for the ports after the first.
const lastPort = 1<<16 - testbed.PortCount

// port is the first of the ports that a playground takes, as a flag.
type port int

var _ pflag.Value = new(port)

// Set implements pflag.Value.
func (p *port) Set(text string) error {
	number, err := strconv.Atoi(text)
	if err != nil || number < 1 || number > lastPort {
		return fmt.Errorf("expected a number from 1 to %d (make playground takes it from PLAYGROUND_PORT)", lastPort)
	}
	*p = port(number)
	return nil
}

// String implements pflag.Value.
func (p *port) String() string { return strconv.Itoa(int(*p)) }

// Type implements pflag.Value.
func (p *port) Type() string { return "port" }
