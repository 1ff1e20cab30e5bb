// Who may import whom. One entry a folder: what it may reach, and why the rest is closed to it.
const PURE = ['src/rules', 'src/limiter', 'src/statistics', 'src/text'];

const layers = [
  {
    folder: 'src/text',
    mayReach: ['src/text'],
    why: 'text/ is pure and lies lowest: functions on text that every folder may use.',
  },
  {
    folder: 'src/net',
    mayReach: ['src/net', 'core'],
    why: 'net/ opens listeners with the means of Node alone; it imports nothing of weir.',
  },
  {
    folder: 'src/statistics',
    mayReach: ['src/statistics'],
    why: 'statistics/ is pure and lies lowest: no I/O, no RxJS, no clock; time comes in as a number.',
  },
  {
    folder: 'src/rules',
    mayReach: ['src/rules', 'src/statistics', 'src/text', 'node_modules/yaml'],
    why: 'rules/ is pure and lies below limiter/: no I/O, no RxJS, no clock. It reads YAML from text, never from files.',
  },
  {
    folder: 'src/limiter',
    mayReach: PURE,
    why: 'limiter/ is pure: no I/O, no RxJS, no clock; time comes in as a number.',
  },
  {
    folder: 'src/streams',
    mayReach: ['src/streams', ...PURE, 'node_modules/rxjs'],
    why: 'streams/ is the reactive core: rxjs and our own types only, so that virtual time sees everything.',
  },
  {
    folder: 'src/settings',
    mayReach: ['src/settings', 'src/text'],
    why: 'settings/ knows nobody; main/ and cli/ hand plain options down.',
  },
  {
    folder: 'src/sources',
    mayReach: ['src/sources', 'src/streams', ...PURE, 'src/gen', 'node_modules', 'core'],
    why: 'A source brings things in through the ports of streams/; it knows no sink, no door and no settings.',
  },
  {
    folder: 'src/sinks',
    mayReach: ['src/sinks', 'src/streams', ...PURE, 'node_modules', 'core'],
    why: 'A sink takes things out through the ports of streams/; it knows no source, no door and no settings.',
  },
  {
    folder: 'src/grpc/http2',
    mayReach: ['src/grpc/http2', 'core'],
    why: 'grpc/http2/ knows HTTP/2 and nothing of weir: it could be a package of its own.',
  },
  {
    folder: 'src/grpc',
    mayReach: ['src/grpc', 'src/net', 'src/streams', ...PURE, 'src/gen', 'node_modules', 'core'],
    why: 'A door knows the streams and the pure folders; settings come from main.ts, stores stay behind their port.',
  },
  {
    folder: 'src/http/versioning',
    mayReach: ['src/http/versioning', 'node_modules', 'core'],
    why: 'http/versioning/ is usable by itself: it imports nothing of weir.',
  },
  {
    folder: 'src/http',
    mayReach: ['src/http', 'src/net', 'src/streams', ...PURE, 'src/gen', 'node_modules', 'core'],
    why: 'A door knows the streams and the pure folders; settings come from main.ts, stores stay behind their port.',
  },
  {
    folder: 'src/cli',
    mayReach: ['src/cli', 'src/streams', ...PURE, 'src/settings', 'src/gen', 'src/sources', 'node_modules', 'core'],
    why: 'A program of the command line is a composition root of its own, but it starts no service.',
  },
];

const nested = (folder) => layers.filter((layer) => layer.folder.startsWith(`${folder}/`)).map((layer) => layer.folder);
const below = (folders) => `^(${folders.join('|')})/`;

module.exports = {
  forbidden: [
    ...layers.map(({ folder, mayReach, why }) => ({
      name: folder,
      comment: why,
      severity: 'error',
      from: { path: below([folder]), ...(nested(folder).length > 0 && { pathNot: below(nested(folder)) }) },
      to: {
        pathNot: below(mayReach.filter((place) => place !== 'core')),
        ...(mayReach.includes('core') && { dependencyTypesNot: ['core'] }),
      },
    })),
    {
      name: 'src/main',
      comment: 'main.ts and main/ are the composition root: they know everybody and nobody knows them.',
      severity: 'error',
      from: { pathNot: '^src/main(\\.ts$|/)' },
      to: { path: '^src/main(\\.ts$|/)' },
    },
  ],
  options: {
    parser: 'swc',
    doNotFollow: { path: 'node_modules' },
    exclude: { path: '^(dist|test|bench)/' },
    tsConfig: { fileName: 'tsconfig.json' },
    enhancedResolveOptions: {
      extensions: ['.ts', '.js', '.json'],
      exportsFields: ['exports'],
      conditionNames: ['require', 'node', 'default', 'types'],
    },
  },
};
