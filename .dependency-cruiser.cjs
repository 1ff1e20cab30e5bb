// The layers: for each folder, what it may import, and why other imports are forbidden (see CONTRIBUTING.md, Layers).
const PURE = ['src/explain', 'src/limiter', 'src/counting', 'src/rules', 'src/statistics', 'src/text'];

const layers = [
  {
    folder: 'src/text',
    mayReach: ['src/text', 'crypto', 'node_modules/re2js'],
    why: 'text/ is pure and the lowest layer: functions on text that every folder may use. Of Node, only digests.',
  },
  {
    folder: 'src/net',
    mayReach: ['src/net', 'src/text', 'core'],
    why: 'net/ is for listeners, TLS and its files with Node alone; of weir it imports only functions on text.',
  },
  {
    folder: 'src/statistics',
    mayReach: ['src/statistics', 'src/text'],
    why: 'statistics/ is pure and below rules/: no I/O, no RxJS, no clock; time comes in as a number.',
  },
  {
    folder: 'src/rules',
    mayReach: ['src/rules', 'src/statistics', 'src/text', 'node_modules/yaml', 'net'],
    why: 'rules/ is pure and below limiter/: no I/O, no RxJS, no clock. It reads YAML from text, never from files. Of net, only what addresses are.',
  },
  {
    folder: 'src/counting',
    mayReach: ['src/counting', 'src/rules', 'src/text'],
    why: 'counting/ is pure and below limiter/ and every store: operations, algorithms and limits; it knows the rules, and no request.',
  },
  {
    folder: 'src/limiter',
    mayReach: ['src/limiter', 'src/counting', 'src/rules', 'src/statistics', 'src/text'],
    why: 'limiter/ is pure and below explain/: no I/O, no RxJS, no clock; time comes in as a number.',
  },
  {
    folder: 'src/explain',
    mayReach: PURE,
    why: 'explain/ is pure: why a call would be answered as it would be, in types that the API and the console share.',
  },
  {
    folder: 'src/log',
    mayReach: ['src/log', 'node_modules/rxjs'],
    why: 'log/ is what every part of the service may log with; it writes nothing, and knows none of them.',
  },
  {
    folder: 'src/streams',
    mayReach: ['src/streams', 'src/log', ...PURE, 'node_modules/rxjs'],
    why: 'streams/ is the reactive core: only rxjs and the pure folders, so that tests control all of its time.',
  },
  {
    folder: 'src/settings',
    mayReach: ['src/settings', 'src/text'],
    why: 'settings/ depends on no other part of the service.',
  },
  {
    folder: 'src/sources',
    mayReach: [
      'src/sources',
      'src/settings',
      'src/net',
      'src/streams',
      'src/log',
      ...PURE,
      'src/gen',
      'node_modules',
      'core',
    ],
    why: 'A source delivers through the ports of streams/; it takes its settings as they are, and does not depend on sinks or servers.',
  },
  {
    folder: 'src/sinks',
    mayReach: ['src/sinks', 'src/settings', 'src/net', 'src/streams', 'src/log', ...PURE, 'node_modules', 'core'],
    why: 'A sink receives through the ports of streams/; it takes its settings as they are, and does not depend on sources or servers.',
  },
  {
    folder: 'src/reservations',
    mayReach: ['src/reservations', 'src/streams', ...PURE, 'core'],
    why: 'reservations/ makes and ends reservations with the limiter; stores are behind their port, and servers call it through one.',
  },
  {
    folder: 'src/operators',
    mayReach: ['src/operators', 'src/streams', ...PURE, 'core'],
    why: 'operators/ answers operators with what the streams and the limiter know; http/ serves it.',
  },
  {
    folder: 'src/grpc/http2',
    mayReach: ['src/grpc/http2', 'src/net/direct-socket.ts', 'core'],
    why: 'grpc/http2/ is HTTP/2 alone and could be a package of its own: of weir it imports only how sockets are read.',
  },
  {
    folder: 'src/grpc',
    mayReach: ['src/grpc', 'src/net', 'src/streams', ...PURE, 'src/gen', 'node_modules', 'core'],
    why: 'A server depends on streams/ and the pure folders; main/ passes settings on, and stores are behind their port.',
  },
  {
    folder: 'packages/versioning',
    mayReach: ['packages/versioning', 'node_modules', 'core'],
    why: 'packages/versioning is a package of its own: it imports nothing of weir.',
  },
  {
    folder: 'src/http',
    mayReach: [
      'src/http',
      'packages/versioning/src/index.ts',
      'src/net',
      'src/operators',
      'src/streams',
      'src/log',
      ...PURE,
      'src/gen',
      'node_modules',
      'core',
    ],
    why: 'A server depends on streams/, the pure folders and, for their API, operators/; main/ passes settings on, and stores are behind their port.',
  },
  {
    folder: 'src/workers',
    mayReach: ['src/workers', 'src/net', 'src/streams', 'src/log', ...PURE, 'node_modules/rxjs', 'core'],
    why: 'workers/ connects the processes of one instance through the ports of streams/; main/ passes it stores, servers and settings.',
  },
  {
    folder: 'src/cli',
    mayReach: [
      'src/cli',
      'src/version.ts',
      'src/net',
      'src/streams',
      ...PURE,
      'src/operators',
      'src/reservations',
      'src/settings',
      'src/gen',
      'src/sources',
      'src/sinks/counters/memory',
      'node_modules',
      'core',
    ],
    why: 'A command-line program is a composition root of its own, but does not start the service.',
  },
];

const nested = (folder) => layers.filter((layer) => layer.folder.startsWith(`${folder}/`)).map((layer) => layer.folder);
const below = (folders) => `^(${folders.join('|')})(/|$)`;

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
      comment:
        'main.ts, launch.ts and main/ are the composition root: they may import everything, and no other folder imports them.',
      severity: 'error',
      from: { pathNot: '^src/(?:launch\\.ts$|main(?:\\.ts$|/))' },
      to: { path: '^src/main(\\.ts$|/)' },
    },
    {
      name: 'no circles',
      comment:
        'Files that import each other, types included, can only be read together: move what both need to a third.',
      severity: 'error',
      from: {},
      to: { circular: true },
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
      conditionNames: ['source', 'require', 'node', 'default', 'types'],
    },
  },
};
