import { FlagError, type FlagSpec, flagHelp, parseFlags } from '../../src/cli/flags';

const SPEC = {
  address: { kind: 'string', default: 'localhost:8081', placeholder: 'host:port', help: 'address of the server' },
  domain: { kind: 'string', default: '', placeholder: 'name', help: 'domain of the request' },
  descriptors: { kind: 'strings', placeholder: 'a=b,c=d', help: 'one descriptor' },
  hits: { kind: 'number', default: 0, max: 4294967295, placeholder: 'n', help: 'hits to add' },
  json: { kind: 'boolean', help: 'print JSON' },
} as const satisfies FlagSpec;

const DEFAULTS = { address: 'localhost:8081', domain: '', descriptors: [], hits: 0, json: false };

describe('parseFlags', () => {
  it('returns the defaults when no flag is given', () => {
    expect(parseFlags([], SPEC)).toEqual({ information: undefined, values: DEFAULTS, rest: [] });
  });

  /** A command line, and the values and the other arguments that differ from the defaults. */
  it.each<[line: string, values: Readonly<Record<string, unknown>>, rest?: string[]]>([
    ['-domain x', { domain: 'x' }],
    ['-domain=x', { domain: 'x' }],
    // The next argument is the value even if it looks like a flag.
    ['-domain -json', { domain: '-json' }],
    ['-address=', { address: '' }],
    ['-descriptors a=b -domain x --descriptors=c=d -domain y', { descriptors: ['a=b', 'c=d'], domain: 'y' }],
    ['-hits 4294967295', { hits: 4294967295 }],
    ['-json', { json: true }],
    ['--json=true', { json: true }],
    ['-json=T', { json: true }],
    ['-json -json=false', { json: false }],
    ['-json -json=F', { json: false }],
    // A boolean has no next argument as its value.
    ['-json false', { json: true }, ['false']],
    ['a -json - -domain x b', { json: true, domain: 'x' }, ['a', '-', 'b']],
    ['a -json -- -domain x --', { json: true }, ['a', '-domain', 'x', '--']],
  ])('reads %s', (line, values, rest = []) => {
    expect(parseFlags(line.split(' '), SPEC)).toEqual({
      information: undefined,
      values: { ...DEFAULTS, ...values },
      rest,
    });
  });

  it.each([
    ['-h', 'help'],
    ['--help', 'help'],
    ['--version', 'version'],
  ])('reads %s as the request for information, ignoring the arguments after it', (flag, information) => {
    expect(parseFlags(['-json', flag, '-unknown'], SPEC).information).toBe(information);
  });

  it('treats -h as an ordinary flag if the program has a flag of that name', () => {
    const spec = { h: { kind: 'string', default: '', placeholder: 'host', help: 'host' } } as const;
    expect(parseFlags(['-h', 'x'], spec)).toEqual({ information: undefined, values: { h: 'x' }, rest: [] });
  });

  it.each([
    [['-domian', 'x'], 'unknown flag -domian; did you mean -domain?'],
    [['--verison'], 'unknown flag -verison; did you mean -version?'],
    [['--toString'], 'unknown flag -toString'],
    [['-domain'], 'missing value: -domain name'],
    [['---domain', 'x'], 'invalid flag ---domain: expected -name or -name=value'],
    [['--=x'], 'invalid flag --=x: expected -name or -name=value'],
    [['-json=maybe'], 'invalid value "maybe" for flag -json: expected true or false'],
    ...['-1', '1.5', '', '4294967296'].map((hits): [string[], string] => [
      [`-hits=${hits}`],
      `invalid value "${hits}" for flag -hits: expected a whole number from 0 to 4294967295`,
    ]),
  ])('rejects %j', (argv, message) => {
    expect(() => parseFlags(argv, SPEC)).toThrow(new FlagError(message));
  });
});

describe('flagHelp', () => {
  it('aligns the flags and shows defaults and which flags are repeatable', () => {
    expect(flagHelp(SPEC).split('\n')).toEqual([
      '  -address host:port    address of the server (default localhost:8081)',
      '  -domain name          domain of the request',
      '  -descriptors a=b,c=d  one descriptor (repeatable)',
      '  -hits n               hits to add',
      '  -json                 print JSON',
      '  -h, -help             print this help',
      '  -version              print the version',
      '',
    ]);
  });
});
