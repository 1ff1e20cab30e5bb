import { FlagError, type FlagSpec, flagHelp, parseFlags } from '../../src/cli/flags';

const SPEC = {
  address: { kind: 'string', default: 'localhost:8081', placeholder: 'host:port', help: 'address of the server' },
  domain: { kind: 'string', default: '', placeholder: 'name', help: 'domain of the request' },
  descriptors: { kind: 'strings', placeholder: 'a=b,c=d', help: 'one descriptor' },
  hits: { kind: 'number', default: 0, max: 4294967295, placeholder: 'n', help: 'hits to add' },
  json: { kind: 'boolean', help: 'print JSON' },
} as const satisfies FlagSpec;

describe('parseFlags', () => {
  it('returns the defaults when no flag is given', () => {
    expect(parseFlags([], SPEC)).toEqual({
      information: undefined,
      values: { address: 'localhost:8081', domain: '', descriptors: [], hits: 0, json: false },
      rest: [],
    });
  });

  it.each([['-domain x'], ['--domain x'], ['-domain=x'], ['--domain=x']])('parses %s', (line) => {
    expect(parseFlags(line.split(' '), SPEC).values.domain).toBe('x');
  });

  it('uses the next argument as the value even if it looks like a flag', () => {
    expect(parseFlags(['-domain', '-json'], SPEC).values).toMatchObject({ domain: '-json', json: false });
  });

  it('splits a flag at the first equals sign only', () => {
    expect(parseFlags(['-descriptors=a=b,c=d'], SPEC).values.descriptors).toEqual(['a=b,c=d']);
  });

  it('accepts an empty value', () => {
    expect(parseFlags(['-address=', '-domain', ''], SPEC).values).toMatchObject({ address: '', domain: '' });
  });

  it('returns all values of a repeatable flag in order, and the last value of any other flag', () => {
    const { values } = parseFlags(['-descriptors', 'a=b', '-domain', 'x', '--descriptors=c=d', '-domain', 'y'], SPEC);
    expect(values).toMatchObject({ descriptors: ['a=b', 'c=d'], domain: 'y' });
  });

  it.each([
    ['-json', true],
    ['--json', true],
    ['-json=true', true],
    ['-json=T', true],
    ['-json=1', true],
    ['-json=false', false],
    ['-json=F', false],
    ['-json=0', false],
  ])('parses the boolean %s as %s', (argument, expected) => {
    expect(parseFlags([argument], SPEC).values.json).toBe(expected);
  });

  it('does not use the next argument as the value of a boolean', () => {
    expect(parseFlags(['-json', 'false'], SPEC)).toMatchObject({ values: { json: true }, rest: ['false'] });
  });

  it('accepts flags between and after other arguments, which it returns in order', () => {
    expect(parseFlags(['a', '-json', '-', '-domain', 'x', 'b'], SPEC)).toMatchObject({
      values: { json: true, domain: 'x' },
      rest: ['a', '-', 'b'],
    });
  });

  it('takes everything after two dashes, which it drops, for arguments', () => {
    expect(parseFlags(['a', '-json', '--', '-domain', 'x', '--'], SPEC)).toMatchObject({
      values: { json: true, domain: '' },
      rest: ['a', '-domain', 'x', '--'],
    });
  });

  it.each([['-h'], ['--help'], ['-help']])(
    'returns the request for help of %s, ignoring the arguments after it',
    (flag) => {
      expect(parseFlags(['-json', flag, '-unknown'], SPEC).information).toBe('help');
    },
  );

  it.each(['-version', '--version'])('returns the request for the version of %s', (flag) => {
    expect(parseFlags(['-json', flag, '-unknown'], SPEC).information).toBe('version');
  });

  it('treats -h as an ordinary flag if the program has a flag of that name', () => {
    const spec = { h: { kind: 'string', default: '', placeholder: 'host', help: 'host' } } as const;
    expect(parseFlags(['-h', 'x'], spec)).toEqual({ information: undefined, values: { h: 'x' }, rest: [] });
  });

  it.each([
    [['-domian', 'x'], 'unknown flag -domian; did you mean -domain?'],
    [['--verison'], 'unknown flag -verison; did you mean -version?'],
    [['-port=80'], 'unknown flag -port'],
    [['--toString'], 'unknown flag -toString'],
    [['-domain'], 'missing value: -domain name'],
    [['---domain', 'x'], 'invalid flag ---domain: expected -name or -name=value'],
    [['-=x'], 'invalid flag -=x: expected -name or -name=value'],
    [['--=x'], 'invalid flag --=x: expected -name or -name=value'],
    [['-json=maybe'], 'invalid value "maybe" for flag -json: expected true or false'],
    [['-json='], 'invalid value "" for flag -json: expected true or false'],
    [['-hits', '-1'], 'invalid value "-1" for flag -hits: expected a whole number from 0 to 4294967295'],
    [['-hits', '1.5'], 'invalid value "1.5" for flag -hits: expected a whole number from 0 to 4294967295'],
    [['-hits', ''], 'invalid value "" for flag -hits: expected a whole number from 0 to 4294967295'],
    [['-hits=4294967296'], 'invalid value "4294967296" for flag -hits: expected a whole number from 0 to 4294967295'],
  ])('rejects %j', (argv, message) => {
    expect(() => parseFlags(argv, SPEC)).toThrow(new FlagError(message));
  });
});

describe('flagHelp', () => {
  it('aligns the flags and shows defaults and which flags are repeatable', () => {
    expect(flagHelp(SPEC)).toBe(
      [
        '  -address host:port    address of the server (default localhost:8081)',
        '  -domain name          domain of the request',
        '  -descriptors a=b,c=d  one descriptor (repeatable)',
        '  -hits n               hits to add',
        '  -json                 print JSON',
        '  -h, -help             print this help',
        '  -version              print the version',
        '',
      ].join('\n'),
    );
  });
});
