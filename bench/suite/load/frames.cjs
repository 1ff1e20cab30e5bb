// The HTTP/2 frames of the load client.

const PREFACE = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 'latin1');
const MAX_31_BITS = 2 ** 31 - 1;
const DEFAULT_WINDOW = 65_535;

function frame(type, flags, stream, payload) {
  const header = Buffer.alloc(9);
  header.writeUIntBE(payload.length, 0, 3);
  header[3] = type;
  header[4] = flags;
  header.writeUInt32BE(stream, 5);
  return Buffer.concat([header, payload]);
}

const SETTINGS_ACK = frame(4, 1, 0, Buffer.alloc(0));

/**
 * The connection preface, SETTINGS with a stream window of 16 MiB as Envoy sends it, and a connection window that is
 * never exhausted.
 */
function opening() {
  const increment = Buffer.alloc(4);
  increment.writeUInt32BE(MAX_31_BITS - DEFAULT_WINDOW);
  return Buffer.concat([PREFACE, frame(4, 0, 0, Buffer.from([0, 4, 1, 0, 0, 0])), frame(8, 0, 0, increment)]);
}

function text(value) {
  return Buffer.concat([Buffer.from([value.length]), Buffer.from(value, 'latin1')]);
}

/** `:method: POST` and `:scheme: http`, both from the static table. */
const POST_HTTP = Buffer.from([0x83, 0x86]);
const PATH_NOT_INDEXED = Buffer.from([0x04]);
const STATIC_NAMES = { ':path': 4, ':authority': 1, 'content-type': 31, 'user-agent': 58 };
const TABLE_BYTES = 4_096;

/**
 * An HPACK encoder that inserts every field into the dynamic table, as grpc-go does, so that indices shift with every
 * insertion.
 */
class Encoder {
  inserted = 0;
  size = 0;
  entries = [];

  encode(fields) {
    return Buffer.concat([POST_HTTP, ...fields.map(([name, value]) => this.field(name, value))]);
  }

  field(name, value) {
    const known = this.entries.findLast((entry) => entry.name === name && entry.value === value);
    if (known !== undefined) return Buffer.from(integer(this.indexOf(known), 0x7f, 0x80));
    const named = STATIC_NAMES[name] ?? this.indexOf(this.entries.findLast((entry) => entry.name === name));
    const literal =
      named === 0 ? Buffer.concat([Buffer.from([0x40]), text(name)]) : Buffer.from(integer(named, 0x3f, 0x40));
    this.insert({ name, value, number: this.inserted, cost: name.length + value.length + 32 });
    this.inserted += 1;
    return Buffer.concat([literal, text(value)]);
  }

  indexOf(entry) {
    return entry === undefined ? 0 : 62 + this.inserted - 1 - entry.number;
  }

  insert(entry) {
    this.entries.push(entry);
    this.size += entry.cost;
    while (this.size > TABLE_BYTES) this.size -= this.entries.shift().cost;
  }
}

function integer(value, mask, flags) {
  return value < mask ? [flags | value] : [flags | mask, value - mask];
}

/** Encodes the n-th block of a connection once, when it is first used. */
function remembered(encode) {
  const blocks = [];
  return (call) => {
    while (blocks.length <= call) blocks.push(encode(blocks.length));
    return blocks[call];
  };
}

function envoy(path, timeout) {
  const fixed = Buffer.concat([POST_HTTP, PATH_NOT_INDEXED, text(path)]);
  const encoder = new Encoder();
  const fields = [
    [':authority', 'ratelimit'],
    ['te', 'trailers'],
    ['grpc-timeout', timeout],
    ['content-type', 'application/grpc'],
    ['x-envoy-internal', 'true'],
    ['x-forwarded-for', '10.0.0.7'],
    ['x-envoy-expected-rq-timeout-ms', '20'],
  ];
  const blocks = [0, 1].map(() => Buffer.concat([fixed, encoder.encode(fields).subarray(POST_HTTP.length)]));
  return (call) => blocks[Math.min(call, 1)];
}

/**
 * Header blocks as two kinds of client send them. Each profile returns a function from a call's number on its
 * connection to its header block. `envoy`: a literal path, everything else from the table, the same bytes in every
 * call; with a deadline of 20 s, or of 50 ms. `deadline`: as grpc-go with deadlines: every call inserts a new
 * grpc-timeout into the table, so that no two blocks are equal.
 */
const PROFILES = {
  envoy: (path) => envoy(path, '20S'),
  'envoy, 50 ms': (path) => envoy(path, '50m'),
  deadline(path) {
    const encoder = new Encoder();
    const fixed = [
      [':path', path],
      [':authority', 'localhost:8081'],
      ['content-type', 'application/grpc'],
      ['user-agent', 'grpc-go/1.85.0'],
      ['te', 'trailers'],
    ];
    return remembered((call) => encoder.encode([...fixed, ['grpc-timeout', `${9_000_000 + (call % 999_999)}u`]]));
  },
};

module.exports = { PROFILES, SETTINGS_ACK, frame, opening };
