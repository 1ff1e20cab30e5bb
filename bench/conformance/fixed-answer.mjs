// The response that h2spec expects to any request: a few bytes.
const TEXT = Buffer.from('weir\n');

/** An `Application` for the HTTP/2 server of src/grpc/http2 that sends the same response to every request. `dist`: the build to load. */
export async function fixedAnswer(dist) {
  const { encodeBlock } = (await import(`${dist}/grpc/http2/hpack/static-table.js`)).default;
  const head = encodeBlock([
    [':status', '200'],
    ['content-type', 'text/plain'],
  ]);
  return {
    tags: new Map(),
    oversized: encodeBlock([[':status', '431']]),
    interpret: () => undefined,
    open(stream, _meaning, isEnded) {
      if (isEnded) stream.schedule();
    },
    data(stream, _source, start, end, isEnded) {
      stream.consumed(end - start);
      if (isEnded) stream.schedule();
    },
    run(stream) {
      stream.release();
      stream.sendHeaders(head);
      stream.sendData(TEXT);
      stream.end();
    },
    cancel() {},
    expire() {},
    displaced() {},
    drained() {},
    goingAway() {},
  };
}
