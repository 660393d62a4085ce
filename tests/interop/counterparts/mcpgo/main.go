// mark3labs/mcp-go as a counterpart: what steps.py and isthmus_server.py say, in one program.
//
//	counterpart client PLAN
//	counterpart server stdio | http PORT | sse PORT
package main

import "os"

func main() {
	if os.Args[1] == "client" {
		visit(os.Args[2])
	} else {
		serve(os.Args[2:])
	}
}
