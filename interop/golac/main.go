// Command golac is an L2TPv2 access concentrator built on the l2tp module of
// Katalix with its null data plane: the control protocol is theirs, and it
// needs neither kernel support nor privileges. The module's control protocol is
// version 2 only.
//
// It opens tunnels with sessions in each, prints a line for everything that
// comes up or goes down, and closes all of it when its standard input ends.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/go-kit/kit/log"
	"github.com/go-kit/kit/log/level"
	"github.com/katalix/go-l2tp/l2tp"
)

// printer writes one line for each event of the module.
type printer struct{}

func (printer) HandleEvent(event interface{}) {
	switch e := event.(type) {
	case *l2tp.TunnelUpEvent:
		fmt.Printf("tunnel up: %s local %d peer %d\n", e.TunnelName, e.Config.TunnelID, e.Config.PeerTunnelID)
	case *l2tp.TunnelDownEvent:
		fmt.Printf("tunnel down: %s\n", e.TunnelName)
	case *l2tp.SessionUpEvent:
		fmt.Printf("session up: %s %s local %d peer %d\n", e.TunnelName, e.SessionName,
			e.SessionConfig.SessionID, e.SessionConfig.PeerSessionID)
	case *l2tp.SessionDownEvent:
		fmt.Printf("session down: %s %s: %s\n", e.TunnelName, e.SessionName, e.Result)
	}
}

func main() {
	local := flag.String("local", "", "our address and port")
	peer := flag.String("peer", "", "the LNS's address and port")
	tunnels := flag.Uint("tunnels", 1, "how many tunnels to open, each from the next port")
	sessions := flag.Uint("sessions", 1, "how many sessions to open in each tunnel")
	flag.Parse()

	if err := run(*local, *peer, *tunnels, *sessions); err != nil {
		fmt.Fprintln(os.Stderr, "golac:", err)
		os.Exit(1)
	}
}

func run(local, peer string, tunnels, sessions uint) error {
	logger := level.NewFilter(log.NewLogfmtLogger(os.Stderr), level.AllowDebug())
	context, err := l2tp.NewContext(nil, logger)
	if err != nil {
		return err
	}
	context.RegisterEventHandler(printer{})

	for i := uint(1); i <= tunnels; i++ {
		name := fmt.Sprintf("t%d", i)
		// Without a given id the module draws a random one, which may be 0.
		// Its own HELLOs are disabled: version 0.1.8 never treats one as
		// acknowledged, and ends the tunnel after its retries.
		tunnel, err := context.NewDynamicTunnel(name, &l2tp.TunnelConfig{
			Local:          fmt.Sprintf("%s:%d", local, 1700+i),
			Peer:           peer,
			Version:        l2tp.ProtocolVersion2,
			Encap:          l2tp.EncapTypeUDP,
			TunnelID:       l2tp.ControlConnID(i),
			StopCCNTimeout: time.Second,
			HostName:       "golac.test",
			FramingCaps:    l2tp.FramingCapSync | l2tp.FramingCapAsync,
		})
		if err != nil {
			return fmt.Errorf("%s: %v", name, err)
		}
		for j := uint(1); j <= sessions; j++ {
			_, err := tunnel.NewSession(fmt.Sprintf("s%d", j), &l2tp.SessionConfig{
				SessionID:  l2tp.ControlConnID(j),
				Pseudowire: l2tp.PseudowireTypePPP,
			})
			if err != nil {
				return fmt.Errorf("%s: s%d: %v", name, j, err)
			}
		}
	}

	// Standard input ends when the process that started this program wants it closed.
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		return err
	}
	context.Close()
	fmt.Println("closed")
	return nil
}
