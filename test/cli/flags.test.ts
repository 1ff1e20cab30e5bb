import { FlagError, type FlagSpec, flagHelp, parseFlags } from '../../src/cli/flags';
const SPEC = {
  address: { kind: 'string', default: 'localhost:8081', placeholder: 'host:port', help: 'address of the server' },
  domain: { kind: 'string', default: '', placeholder: 'name', help: 'domain to ask about' },
  descriptors: { kind: 'strings', placeholder: 'a=b,c=d', help: 'one descriptor' },
  hits: { kind: 'number', default: 0, max: 4294967295, placeholder: 'n', help: 'hits to add' },
  json: { kind: 'boolean', help: 'print JSON' },
} as const satisfies FlagSpec;

describe('parseFlags', () => {
  it('gives every flag its default when none is given', () => {
    expect(parseFlags([], SPEC)).toEqual({
      help: false,
      values: { address: 'localhost:8081', domain: '', descriptors: [], hits: 0, json: false },
      rest: [],
    });
  });

  it.each([['-domain x'], ['--domain x'], ['-domain=x'], ['--domain=x']])('reads %s', (line) => {
    expect(parseFlags(line.split(' '), SPEC).values.domain).toBe('x');
  });

  it('takes the next argument as the value even when it looks like a flag', () => {
    expect(parseFlags(['-domain', '-json'], SPEC).values).toMatchObject({ domain: '-json', json: false });
  });

  it('splits at the first equals sign only', () => {
    expect(parseFlags(['-descriptors=a=b,c=d'], SPEC).values.descriptors).toEqual(['a=b,c=d']);
  });

  it('takes an empty value', () => {
    expect(parseFlags(['-address=', '-domain', ''], SPEC).values).toMatchObject({ address: '', domain: '' });
  });

  it('keeps every value of a repeatable flag in order, and the last of any other', () => {
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
  ])('reads the boolean %s as %s', (argument, expected) => {
    expect(parseFlags([argument], SPEC).values.json).toBe(expected);
  });

  it('does not take the next argument as the value of a boolean', () => {
    expect(parseFlags(['-json', 'false'], SPEC)).toMatchObject({ values: { json: true }, rest: ['false'] });
  });

  it.each([
    ['the first argument that is no flag', ['-json', 'a', '-domain', 'x'], ['a', '-domain', 'x']],
    ['a single dash', ['-json', '-', '-domain', 'x'], ['-', '-domain', 'x']],
    ['two dashes, which are dropped', ['-json', '--', '-domain', 'x'], ['-domain', 'x']],
  ])('ends at %s', (_title, argv, rest) => {
    expect(parseFlags(argv, SPEC)).toMatchObject({ rest, values: { json: true, domain: '' } });
  });

  it.each([['-h'], ['--help'], ['-help']])('says that help is wanted for %s, whatever follows', (flag) => {
    expect(parseFlags(['-json', flag, '-unknown'], SPEC).help).toBe(true);
  });

  it('leaves -h to a program that has a flag of that name', () => {
    const spec = { h: { kind: 'string', default: '', placeholder: 'host', help: 'host' } } as const;
    expect(parseFlags(['-h', 'x'], spec)).toEqual({ help: false, values: { h: 'x' }, rest: [] });
  });

  it.each([
    [['-domian', 'x'], 'flag provided but not defined: -domian'],
    [['--toString'], 'flag provided but not defined: -toString'],
    [['-domain'], 'flag needs an argument: -domain name'],
    [['---domain', 'x'], 'bad flag syntax: ---domain'],
    [['-=x'], 'bad flag syntax: -=x'],
    [['--=x'], 'bad flag syntax: --=x'],
    [['-json=maybe'], 'invalid value "maybe" for flag -json: true or false expected'],
    [['-json='], 'invalid value "" for flag -json: true or false expected'],
    [['-hits', '-1'], 'invalid value "-1" for flag -hits: a whole number from 0 to 4294967295 expected'],
    [['-hits', '1.5'], 'invalid value "1.5" for flag -hits: a whole number from 0 to 4294967295 expected'],
    [['-hits', ''], 'invalid value "" for flag -hits: a whole number from 0 to 4294967295 expected'],
    [['-hits=4294967296'], 'invalid value "4294967296" for flag -hits: a whole number from 0 to 4294967295 expected'],
  ])('refuses %j', (argv, message) => {
    expect(() => parseFlags(argv, SPEC)).toThrow(new FlagError(message));
  });
});

describe('flagHelp', () => {
  it('aligns the flags and names defaults and what may be repeated', () => {
    expect(flagHelp(SPEC)).toBe(
      [
        '  -address host:port    address of the server (default localhost:8081)',
        '  -domain name          domain to ask about',
        '  -descriptors a=b,c=d  one descriptor (repeatable)',
        '  -hits n               hits to add',
        '  -json                 print JSON',
        '  -h, -help             print this help',
        '',
      ].join('\n'),
    );
  });
});
