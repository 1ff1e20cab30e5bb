/** A first difference between the reactions of the two servers to one sequence. */
export interface Difference {
  /** The type of the last frame of the step. */
  readonly step: string;
  /** The server has reset the stream of that frame, or a higher one. */
  readonly isAfterReset: boolean;
  /** As in the recording, with `n` in place of the streams. */
  readonly weir: string;
  readonly xNet: string;
}

/** A class of differences: a row of the table in src/grpc/http2/README.md, and what it applies to. */
export interface Explanation {
  readonly sent: string;
  readonly weirDoes: string;
  readonly xNetDoes: string;
  readonly reason: string;
  readonly step: RegExp;
  readonly weir: RegExp;
  readonly xNet: RegExp;
}

const HEADER_BLOCK = /^(HEADERS|CONTINUATION)$/;

const list: Explanation[] = [];
/** `weir` and `xNet`: what each does in words, and the reactions. */
function explain(
  [sent, step]: readonly [string, RegExp],
  [weirDoes, weir]: readonly [string, RegExp],
  [xNetDoes, xNet]: readonly [string, RegExp],
  reason: string,
): void {
  list.push({ sent, weirDoes, xNetDoes, reason, step, weir, xNet });
}

// ---------------------------------------------------------------- preface and SETTINGS
explain(
  ['bytes that are not the preface', /^no preface/],
  ['GOAWAY PROTOCOL_ERROR', /^goaway 1$/],
  ['closes; waits if they are fewer than 24', /^(closed)?$/],
  '3.4: GOAWAY may be omitted',
);
explain(
  ['SETTINGS with one setting twice, or an acknowledgement that is not due', /^SETTINGS$/],
  ['accepts it; or rejects a value in it', /^(goaway 3)?$/],
  ['GOAWAY PROTOCOL_ERROR', /^goaway 1$/],
  '6.5.3: values are processed in their order; neither is named as an error',
);
explain(
  ['an acknowledgement as the first SETTINGS; SETTINGS that overflow an open window', /^SETTINGS$/],
  ['GOAWAY PROTOCOL_ERROR, FLOW_CONTROL_ERROR', /^goaway [13]$/],
  ['accepts the first; checks the window when it is used next', /^$/],
  '3.4, 6.9.2: both are connection errors',
);
explain(
  ['33 settings in a frame', /^SETTINGS$/],
  ['GOAWAY ENHANCE_YOUR_CALM', /^goaway 11$/],
  ['GOAWAY PROTOCOL_ERROR', /^goaway 1$/],
  'weir limits them, x/net accepts none twice',
);

// ---------------------------------------------------------------- frames with several errors, and incomplete ones
explain(
  ['a frame of a wrong length with another error', /./],
  ['GOAWAY PROTOCOL_ERROR', /^goaway 1$/],
  ['GOAWAY FRAME_SIZE_ERROR', /^goaway 6$/],
  'either error may be reported; weir checks stream and order first',
);
explain(
  ['a header block that HPACK cannot decode, with another error, or before its end', /./],
  ['GOAWAY PROTOCOL_ERROR or STREAM_CLOSED; waits for the end', /^(goaway [15])?$/],
  ['GOAWAY COMPRESSION_ERROR', /^goaway 9$/],
  'weir decodes complete blocks, x/net each frame before it checks the stream',
);
explain(
  ['the header of a frame that is not permitted, without its payload', / incomplete$/],
  ['GOAWAY at once', /^goaway [16]$/],
  ['waits for the payload', /^$/],
  'the header suffices',
);
explain(
  ['a payload too short for its pad length or priority', /^(HEADERS|DATA|PUSH_PROMISE|unknown)$| incomplete$/],
  ['GOAWAY FRAME_SIZE_ERROR or PROTOCOL_ERROR', /^goaway [16]$/],
  ['closes without GOAWAY', /^closed$/],
  '6.1, 6.2, 5.4.1: GOAWAY should be sent',
);
explain(
  [
    'HEADERS with too long padding, or malformed on a stream that cannot be opened',
    /^(HEADERS|CONTINUATION|.* incomplete)$/,
  ],
  ['GOAWAY PROTOCOL_ERROR or STREAM_CLOSED', /^goaway [15]$/],
  ['RST_STREAM PROTOCOL_ERROR', /^n:reset 1( goaway 1)?$/],
  '6.2, 5.1.1, 5.1: all are connection errors',
);

// ---------------------------------------------------------------- streams
explain(
  ['PRIORITY of an idle stream that depends on itself', /^PRIORITY$/],
  ['GOAWAY PROTOCOL_ERROR', /^goaway 1$/],
  ['RST_STREAM PROTOCOL_ERROR', /^n:reset 1$/],
  '6.4: an idle stream cannot be reset',
);
explain(
  ['PRIORITY of 4 bytes', /^PRIORITY$/],
  ['RST_STREAM FRAME_SIZE_ERROR', /^n:reset 6$/],
  ['GOAWAY FRAME_SIZE_ERROR', /^goaway 6$/],
  '6.3: a stream error',
);
explain(
  ['WINDOW_UPDATE of 0 on an idle stream', /^WINDOW_UPDATE$/],
  ['GOAWAY PROTOCOL_ERROR', /^goaway 1$/],
  ['RST_STREAM PROTOCOL_ERROR', /^n:reset 1$/],
  '5.1: a frame other than HEADERS and PRIORITY on an idle stream is a connection error',
);
explain(
  ['WINDOW_UPDATE of 0 on a closed stream', /^WINDOW_UPDATE$/],
  ['ignores it', /^$/],
  ['RST_STREAM PROTOCOL_ERROR', /^n:reset 1$/],
  '5.1: WINDOW_UPDATE on a closed stream may be ignored',
);
explain(
  ['DATA after the server has reset the stream', /^DATA after reset$/],
  ['ignores it', /^$/],
  ['RST_STREAM STREAM_CLOSED', /^n:reset 5$/],
  '5.1: frames that were sent before the reset arrived are ignored',
);
explain(
  ['frames after a malformed request, on the same stream or a lower one', / after reset$/],
  [
    'ignores them; on a lower stream GOAWAY PROTOCOL_ERROR, or RST_STREAM STREAM_CLOSED for DATA; GOAWAY COMPRESSION_ERROR if HPACK cannot decode them',
    /^(goaway [19]|n:reset 5)?$/,
  ],
  ['a request opens the stream; other frames GOAWAY PROTOCOL_ERROR', /^(goaway 1|n:.*)$/],
  '5.1, 5.1.1: the request has opened its stream and closed the lower ones; for x/net they are still idle',
);
explain(
  ['HEADERS on a stream that both sides have ended', HEADER_BLOCK],
  ['GOAWAY STREAM_CLOSED', /^goaway 5$/],
  ['GOAWAY PROTOCOL_ERROR', /^goaway 1$/],
  '5.1: STREAM_CLOSED',
);
explain(
  ['HEADERS on a stream that the client has reset', HEADER_BLOCK],
  ['RST_STREAM STREAM_CLOSED; GOAWAY COMPRESSION_ERROR if HPACK cannot decode it', /^(n:reset 5|goaway 9)$/],
  ['GOAWAY PROTOCOL_ERROR', /^goaway 1$/],
  '5.1: a stream error',
);
explain(
  ['a stream over MAX_CONCURRENT_STREAMS', HEADER_BLOCK],
  ['RST_STREAM REFUSED_STREAM', /^n:reset 7$/],
  ['RST_STREAM PROTOCOL_ERROR', /^n:reset 1$/],
  '5.1.2: both are permitted; REFUSED_STREAM lets the client try again',
);

// ---------------------------------------------------------------- header blocks and requests
explain(
  ['a table size update after a field, or three in a block', HEADER_BLOCK],
  ['GOAWAY COMPRESSION_ERROR', /^goaway 9$/],
  ['accepts it', /^(n:.*)?$/],
  'RFC 7541, 4.2: at most two, at the beginning',
);
explain(
  ['a malformed request in HEADERS and CONTINUATION', /^CONTINUATION$/],
  ['RST_STREAM PROTOCOL_ERROR; GOAWAY COMPRESSION_ERROR if HPACK cannot decode it', /^(n:reset 1|goaway 9)$/],
  ['GOAWAY PROTOCOL_ERROR', /^goaway 1$/],
  '8.1.1: a stream error',
);
explain(
  [
    'a field value with spaces around it; content-length that is no number, has two values, or is not 0 without a body',
    HEADER_BLOCK,
  ],
  ['RST_STREAM PROTOCOL_ERROR', /^n:reset 1$/],
  ['accepts it', /^(n:200.*)?$/],
  '8.2.1, 8.1.1: malformed',
);
explain(
  ['a connection-specific field, or `te` other than `trailers`', HEADER_BLOCK],
  ['RST_STREAM PROTOCOL_ERROR', /^n:reset 1$/],
  ['status 400', /^n:400,end(,reset 0)?$/],
  '8.1.1: a response is permitted before the reset',
);
explain(
  ['a body shorter than content-length', /^(DATA|HEADERS)$/],
  ['RST_STREAM PROTOCOL_ERROR', /^n:reset 1$/],
  ['its handler gets an error (here: RST_STREAM INTERNAL_ERROR)', /^n:reset 2$/],
  '8.1.1: malformed',
);
explain(
  ['`te: trailers` twice', HEADER_BLOCK],
  ['accepts it', /^(n:200,end)?$/],
  ['status 400', /^n:400,end(,reset 0)?$/],
  '8.2.2 permits `te: trailers`',
);
explain(
  ['control characters in a field value; a scheme with other characters than a scheme has', HEADER_BLOCK],
  ['accepts it', /^n:200,end$/],
  ['RST_STREAM PROTOCOL_ERROR', /^n:reset 1$/],
  '8.2.1 requires only the checks for NUL, CR and LF, and spaces at the ends',
);

// ---------------------------------------------------------------- floods
explain(
  [
    '20,000 times PING, SETTINGS, PRIORITY, WINDOW_UPDATE, an unknown or an empty frame, DATA of one byte, a request that is reset or malformed',
    /^flood$/,
  ],
  ['GOAWAY ENHANCE_YOUR_CALM', /^goaway 11$/],
  ['bears them', /^$/],
  '10.5: weir limits what such peers cost, see [Limits](#limits)',
);
explain(
  ['20,000 CONTINUATION frames of a header block', /^flood$/],
  ['GOAWAY ENHANCE_YOUR_CALM', /^goaway 11$/],
  ['GOAWAY PROTOCOL_ERROR', /^goaway 1$/],
  '10.5.1: either is permitted',
);

export const EXPLANATIONS: readonly Explanation[] = list;

export function explanationOf({ step, isAfterReset, weir, xNet }: Difference): Explanation | undefined {
  const names = isAfterReset ? [step, `${step} after reset`] : [step];
  return EXPLANATIONS.find(
    (it) => names.some((name) => it.step.test(name)) && it.weir.test(weir) && it.xNet.test(xNet),
  );
}

/** The rows of the table in src/grpc/http2/README.md. */
export function tableRows(): readonly string[] {
  return EXPLANATIONS.map(
    ({ sent, weirDoes, xNetDoes, reason }) => `| ${sent} | ${weirDoes} | ${xNetDoes} | ${reason} |`,
  );
}
