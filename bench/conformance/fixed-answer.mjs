// The response that h2spec expects to any request: a few bytes.
const TEXT = Buffer.from('weir\n');

/**
 * A `RequestInterpreter` for the HTTP/2 server of src/grpc/http2 that sends the same response to every request. `dist`:
 * the build to load.
 */
export async function fixedAnswer(dist) {
  const { encodeBlock } = (await import(`${dist}/grpc/http2/hpack/static-table.js`)).default;
  const head = encodeBlock([
    [':status', '200'],
    ['content-type', 'text/plain'],
  ]);
  const trailers = encodeBlock([['x-end', '']]);
  function open(streams, stream, isEnded) {
    stream.call = {
      data(_source, start, end, hasEnded) {
        streams.consumed(stream, end - start);
        if (hasEnded) streams.schedule(stream);
      },
      run() {
        streams.release(stream);
        streams.sendHeaders(stream, head);
        streams.sendData(stream, TEXT);
        streams.sendTrailers(stream, trailers);
      },
      waits() {},
      cancel() {},
      expire() {},
      drained() {},
      stop() {},
    };
    if (isEnded) streams.schedule(stream);
  }
  return { oversized: encodeBlock([[':status', '431']]), interpret: () => ({ open }) };
}
