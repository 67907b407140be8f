// A bulk transfer over quic-go, for quic-go.toml: "serve ADDRESS" listens; "send ADDRESS BYTES" sends
// and waits until all has arrived.
package main

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"io"
	"log"
	"math/big"
	"os"
	"strconv"

	"github.com/quic-go/quic-go"
)

const port = ":4433"

var protocols = []string{"transfer"}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// certificate is one that has signed itself.
func certificate() tls.Certificate {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	check(err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, public, private)
	check(err)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: private}
}

func serve(address string) {
	certificates := []tls.Certificate{certificate()}
	config := &tls.Config{Certificates: certificates, NextProtos: protocols}
	listener, err := quic.ListenAddr(address+port, config, nil)
	check(err)
	for {
		connection, err := listener.Accept(context.Background())
		check(err)
		go func() {
			stream, err := connection.AcceptStream(context.Background())
			check(err)
			io.Copy(io.Discard, stream)
			stream.Write([]byte("done"))
			stream.Close()
		}()
	}
}

func send(address string, size int) {
	config := &tls.Config{InsecureSkipVerify: true, NextProtos: protocols}
	connection, err := quic.DialAddr(context.Background(), address+port, config, nil)
	check(err)
	stream, err := connection.OpenStreamSync(context.Background())
	check(err)
	_, err = stream.Write(make([]byte, size))
	check(err)
	check(stream.Close())
	_, err = io.ReadAll(stream)
	check(err)
}

func main() {
	if os.Args[1] == "serve" {
		serve(os.Args[2])
		return
	}
	size, err := strconv.Atoi(os.Args[3])
	check(err)
	send(os.Args[2], size)
}
