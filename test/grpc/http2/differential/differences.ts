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

/**
 * A class of differences. `sent` is the beginning of its row in the table of src/grpc/http2/README.md, which describes and
 * justifies it; the others are what it applies to.
 */
export type Explanation = readonly [sent: string, step: RegExp, weir: RegExp, xNet: RegExp];

const BLOCK = /^(HEADERS|CONTINUATION)$/;
const TOO_SHORT = /^(HEADERS|DATA|PUSH_PROMISE|unknown)$| incomplete$/;

/** In the order of the table. The first that applies explains a difference. */
export const EXPLANATIONS: readonly Explanation[] = [
  ['bytes that are not the preface', /^no preface/, /^goaway 1$/, /^(closed)?$/],
  ['SETTINGS with one setting twice', /^SETTINGS$/, /^(goaway 3)?$/, /^goaway 1$/],
  ['an acknowledgement as the first SETTINGS', /^SETTINGS$/, /^goaway [13]$/, /^$/],
  ['33 settings in a frame', /^SETTINGS$/, /^goaway 11$/, /^goaway 1$/],

  ['a frame of a wrong length with another error', /./, /^goaway 1$/, /^goaway 6$/],
  ['a header block that HPACK cannot decode', /./, /^(goaway [15])?$/, /^goaway 9$/],
  ['the header of a frame that is not permitted', / incomplete$/, /^goaway [16]$/, /^$/],
  ['a payload too short for its pad length or priority', TOO_SHORT, /^goaway [16]$/, /^closed$/],
  [
    'HEADERS with too long padding',
    /^(HEADERS|CONTINUATION|.* incomplete)$/,
    /^goaway [15]$/,
    /^n:reset 1( goaway 1)?$/,
  ],

  ['PRIORITY of an idle stream that depends on itself', /^PRIORITY$/, /^goaway 1$/, /^n:reset 1$/],
  ['PRIORITY of 4 bytes', /^PRIORITY$/, /^n:reset 6$/, /^goaway 6$/],
  ['WINDOW_UPDATE of 0 on an idle stream', /^WINDOW_UPDATE$/, /^goaway 1$/, /^n:reset 1$/],
  ['WINDOW_UPDATE of 0 on a closed stream', /^WINDOW_UPDATE$/, /^$/, /^n:reset 1$/],
  ['DATA after the server has reset the stream', /^DATA after reset$/, /^$/, /^n:reset 5$/],
  ['frames after a malformed request', / after reset$/, /^(goaway [19]|n:reset 5)?$/, /^(goaway 1|n:.*)$/],
  ['HEADERS on a stream that both sides have ended', BLOCK, /^goaway 5$/, /^goaway 1$/],
  ['HEADERS on a stream that the client has reset', BLOCK, /^(n:reset 5|goaway 9)$/, /^goaway 1$/],
  ['a stream over MAX_CONCURRENT_STREAMS', BLOCK, /^n:reset 7$/, /^n:reset 1$/],

  ['a table size update after a field', BLOCK, /^goaway 9$/, /^(n:.*)?$/],
  ['a malformed request in HEADERS and CONTINUATION', /^CONTINUATION$/, /^(n:reset 1|goaway 9)$/, /^goaway 1$/],
  ['a field value with spaces around it; content-length', BLOCK, /^n:reset 1$/, /^(n:200.*)?$/],
  ['a connection-specific field, or `te`', BLOCK, /^n:reset 1$/, /^n:400,end(,reset 0)?$/],
  ['a body shorter than content-length', /^(DATA|HEADERS)$/, /^n:reset 1$/, /^n:reset 2$/],
  ['`te: trailers` twice', BLOCK, /^(n:200,end)?$/, /^n:400,end(,reset 0)?$/],
  ['control characters in a field value', BLOCK, /^n:200,end$/, /^n:reset 1$/],

  ['20,000 times PING', /^flood$/, /^goaway 11$/, /^$/],
  ['20,000 CONTINUATION frames', /^flood$/, /^goaway 11$/, /^goaway 1$/],
];

export function explanationOf({ step, isAfterReset, weir, xNet }: Difference): Explanation | undefined {
  const names = isAfterReset ? [step, `${step} after reset`] : [step];
  return EXPLANATIONS.find(
    ([, forStep, forWeir, forXNet]) =>
      names.some((name) => forStep.test(name)) && forWeir.test(weir) && forXNet.test(xNet),
  );
}
