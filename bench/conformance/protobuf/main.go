// Parses RateLimitRequests with the protobuf library of Go. Reads a message in hexadecimal digits from each line of its input,
// and writes a line with the parsed request in JSON, or "rejected".
package main

import (
	"bufio"
	"encoding/hex"
	"encoding/json"
	"os"

	ratelimit "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/protobuf/proto"
)

type limit struct {
	RequestsPerUnit uint32 `json:"requestsPerUnit"`
	Unit            int32  `json:"unit"`
}

type descriptor struct {
	Entries [][2]string `json:"entries"`
	Limit   *limit      `json:"limit,omitempty"`
	// 64 bits: a text, because JSON numbers have 53.
	HitsAddend     *uint64 `json:"hitsAddend,omitempty,string"`
	IsNegativeHits bool    `json:"isNegativeHits"`
}

type request struct {
	Domain      string       `json:"domain"`
	Descriptors []descriptor `json:"descriptors"`
	HitsAddend  uint32       `json:"hitsAddend"`
}

func parse(bytes []byte) (request, error) {
	var message ratelimit.RateLimitRequest
	if err := proto.Unmarshal(bytes, &message); err != nil {
		return request{}, err
	}
	parsed := request{Domain: message.Domain, HitsAddend: message.HitsAddend, Descriptors: []descriptor{}}
	for _, from := range message.Descriptors {
		to := descriptor{Entries: [][2]string{}, IsNegativeHits: from.IsNegativeHits}
		for _, entry := range from.Entries {
			to.Entries = append(to.Entries, [2]string{entry.Key, entry.Value})
		}
		if from.Limit != nil {
			to.Limit = &limit{from.Limit.RequestsPerUnit, int32(from.Limit.Unit)}
		}
		if from.HitsAddend != nil {
			to.HitsAddend = &from.HitsAddend.Value
		}
		parsed.Descriptors = append(parsed.Descriptors, to)
	}
	return parsed, nil
}

func main() {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 64<<20)
	output := bufio.NewWriter(os.Stdout)
	defer output.Flush()
	encoder := json.NewEncoder(output)
	encoder.SetEscapeHTML(false)
	for lines.Scan() {
		bytes, err := hex.DecodeString(lines.Text())
		if err != nil {
			panic(err)
		}
		if parsed, err := parse(bytes); err == nil {
			encoder.Encode(parsed)
		} else {
			output.WriteString("rejected\n")
		}
	}
	if err := lines.Err(); err != nil {
		panic(err)
	}
}
