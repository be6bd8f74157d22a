// talk client ADDRESS:PORT says "hello" there and reads to the end; talk server ADDRESS:PORT answers one connection and
// closes it first, and so has it in TIME_WAIT.
package main

import (
	"io"
	"log"
	"net"
	"os"
)

func main() {
	if os.Args[1] == "client" {
		connection, err := net.Dial("tcp", os.Args[2])
		if err != nil {
			log.Fatal(err)
		}
		connection.Write([]byte("hello"))
		connection.(*net.TCPConn).CloseWrite()
		io.Copy(io.Discard, connection)
		return
	}
	listener, err := net.Listen("tcp", os.Args[2])
	if err != nil {
		log.Fatal(err)
	}
	connection, err := listener.Accept()
	if err != nil {
		log.Fatal(err)
	}
	connection.Read(make([]byte, 5))
	connection.Write([]byte("world"))
	connection.Close()
}
