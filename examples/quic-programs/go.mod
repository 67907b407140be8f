module transfer

go 1.24

require (
	github.com/quic-go/quic-go v0.59.1
	golang.org/x/crypto v0.41.0 // indirect
	golang.org/x/net v0.43.0 // indirect
	golang.org/x/sys v0.35.0 // indirect
)
