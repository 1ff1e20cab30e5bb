"""The same as main.go with Python's protobuf package, which parses with upb, the C library. Argument: a descriptor set."""
import json
import sys

from google.protobuf import descriptor_pb2, descriptor_pool, message, message_factory

pool = descriptor_pool.DescriptorPool()
with open(sys.argv[1], "rb") as file:
    for proto in descriptor_pb2.FileDescriptorSet.FromString(file.read()).file:
        pool.Add(proto)
Request = message_factory.GetMessageClass(pool.FindMessageTypeByName("envoy.service.ratelimit.v3.RateLimitRequest"))


def descriptor(of):
    parsed = {"entries": [[entry.key, entry.value] for entry in of.entries], "isNegativeHits": of.is_negative_hits}
    if of.HasField("limit"):
        parsed["limit"] = {"requestsPerUnit": of.limit.requests_per_unit, "unit": of.limit.unit}
    if of.HasField("hits_addend"):
        parsed["hitsAddend"] = str(of.hits_addend.value)
    return parsed


for line in sys.stdin:
    try:
        request = Request.FromString(bytes.fromhex(line))
    except message.DecodeError:
        print("rejected")
        continue
    descriptors = [descriptor(of) for of in request.descriptors]
    parsed = {"domain": request.domain, "descriptors": descriptors, "hitsAddend": request.hits_addend}
    print(json.dumps(parsed, ensure_ascii=False, separators=(",", ":")))
