import { spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { readSettings } from '../../src/settings/read-settings';
import { settingsTable } from '../../src/settings/table/settings-table';
import { readServiceManager } from '../../src/settings/service-manager';

const UNITS = join(__dirname, '../../deploy/systemd');
/** Tenths: the highest exposure that is accepted. */
const THRESHOLD = 20;

const service = readFileSync(join(UNITS, 'weir.service'), 'utf8');
const names = readdirSync(UNITS).filter((name) => /\.(?:service|socket)$/.test(name));

/** Runs `systemd-analyze` on a copy of the units, in which Node is where it is on this machine. */
function analyze(args: readonly string[], edit: (unit: string) => string = (unit) => unit) {
  const folder = mkdtempSync(join(tmpdir(), 'weir-units-'));
  try {
    cpSync(UNITS, folder, { recursive: true });
    writeFileSync(join(folder, 'weir.service'), edit(service).replace('/usr/bin/node', process.execPath));
    const command = args.map((arg) => (names.includes(arg) ? join(folder, arg) : arg));
    // Plain output, and nothing of the settings of the machine.
    const env = { PATH: process.env['PATH'], SYSTEMD_COLORS: '0', SYSTEMD_LOG_LEVEL: 'warning' };
    const { status, stdout, stderr, error } = spawnSync('systemd-analyze', command, { encoding: 'utf8', env });
    if (error !== undefined) throw error;
    return { status, stdout, output: stdout + stderr };
  } finally {
    rmSync(folder, { recursive: true });
  }
}

function valuesOf(text: string, key: string): readonly string[] {
  return Array.from(text.matchAll(new RegExp(`^${key}=(.*)$`, 'gm')), ([, value]) => value!);
}

/** Assignments of `Environment=`, without the folder of credentials, which systemd fills in. */
function environmentOf(text: string): Readonly<Record<string, string>> {
  const assignments = valuesOf(text, 'Environment').flatMap((value) => value.split(' '));
  return Object.fromEntries(assignments.map((text_) => [text_.split('=')[0]!, text_.slice(text_.indexOf('=') + 1)]));
}

describe('the units of deploy/systemd', () => {
  it('are valid with the drop-ins: systemd-analyze verify prints nothing', () => {
    expect(analyze(['verify', '--man=no', ...names])).toEqual({ status: 0, stdout: '', output: '' });
  });

  // verify ends with 0 for these.
  it.each([
    ['an unknown key', 'ProtectSystem=', 'ProtectSystems=', "'ProtectSystems'"],
    ['an unknown value', 'Type=notify', 'Type=notifi', 'notifi'],
  ])('would not be with %s', (_, text, replacement, message) => {
    const { output } = analyze(['verify', '--man=no', 'weir.service'], (unit) => unit.replace(text, replacement));
    expect(output).toContain(message);
  });

  it('limit what the service can do: its exposure level is low', () => {
    const args = ['security', '--offline=true', `--threshold=${THRESHOLD}`, 'weir.service'];
    const { status, output } = analyze(args);
    expect(status).toBe(0);
    expect(output).toContain('Overall exposure level for weir.service: 1.');
    expect(analyze(args, (unit) => unit.replace(/^(?:Protect|Private|Restrict|System).*\n/gm, '')).status).not.toBe(0);
  });

  it('give settings that weir knows and accepts', () => {
    const environment = environmentOf(service);
    expect(Object.keys(environment).length).toBeGreaterThan(3);
    expect(readSettings(environment).settings).toMatchObject({
      runtimeRoot: '/etc/weir',
      runtimeAppdirectory: 'config',
      debugHost: '127.0.0.1',
    });
    const known = new Set(settingsTable.flatMap(({ settings }) => settings.map(({ name }) => name)));
    expect(Object.keys(environment).filter((name) => !known.has(name))).toEqual([]);
  });

  it('pass each credential to the setting of a secret', () => {
    const secrets = readFileSync(join(UNITS, 'weir.service.d/secrets.conf'), 'utf8');
    const loaded = valuesOf(secrets, 'LoadCredential').map((value) => `%d/${value.split(':')[0]}`);
    const environment = environmentOf(secrets);
    expect(Object.values(environment)).toEqual(loaded);
    const secretNames = settingsTable.flatMap(({ settings }) =>
      settings.filter(({ secret }) => secret !== undefined).map(({ name }) => `${name}_FILE`),
    );
    expect(secretNames).toEqual(expect.arrayContaining(Object.keys(environment)));
  });

  it('open a socket for gRPC, in the folder of the service, to a group that cannot be the one of its dynamic user', () => {
    const dropIn = readFileSync(join(UNITS, 'weir.service.d/grpc-socket.conf'), 'utf8');
    const [folder] = valuesOf(service, 'RuntimeDirectory');
    expect(readSettings(environmentOf(dropIn)).settings.grpcUds).toMatch(new RegExp(`^/run/${folder}/[^/]+$`));
    expect(valuesOf(service, 'DynamicUser')).toEqual(['yes']);
    expect(valuesOf(dropIn, 'Group')).not.toEqual(['weir']);
  });

  it('name each socket after a listener, at its default port', () => {
    const { settings } = readSettings({});
    const ports = { grpc: settings.grpcPort, http: settings.port, debug: settings.debugPort };
    const sockets = names
      .filter((name) => name.endsWith('.socket'))
      .map((name) => {
        const unit = readFileSync(join(UNITS, name), 'utf8');
        const [descriptor] = valuesOf(unit, 'FileDescriptorName');
        return [descriptor, Number(/(\d+)$/.exec(valuesOf(unit, 'ListenStream')[0]!)?.[1])] as const;
      });
    expect(Object.fromEntries(sockets)).toEqual(ports);
    const passed = { LISTEN_PID: '1', LISTEN_FDS: '3', LISTEN_FDNAMES: sockets.map(([name]) => name).join(':') };
    expect(readServiceManager(passed, 1).problems).toEqual([]);
  });
});
