import { readSettings } from '../../src/settings/read-settings';
import { settingsTable } from '../../src/settings/table/settings-table';
import { type Setting, namesOf } from '../../src/settings/table/setting';
import { type ReadSecretFile, fileNamesOf } from '../../src/settings/variables/secret-file';
import { renderings } from './manifests';

const rows = settingsTable.flatMap((group): readonly Setting[] => group.settings);
const names = new Set(rows.flatMap((row) => [...namesOf(row), ...fileNamesOf(row)]));
/** Variables of Node and OpenTelemetry. */
const FOREIGN = /^(?:NODE_|OTEL_)/;
/** What Kubernetes fills in. */
const POD = { CONFIG_GRPC_XDS_NODE_ID: 'weir-6d4f' };

/** The contents of the Secrets, which the renderings do not have. */
const readSecretFile: ReadSecretFile = (_path, { name }) =>
  name.endsWith('_URL') ? 'main,redis:26379' : 'sixteen-characters';

describe.each(renderings().map((rendering) => [rendering.name, rendering] as const))(
  'the environment of the variant %s',
  (_name, { environment, container }) => {
    it('consists of settings of weir, and of variables of Node and OpenTelemetry', () => {
      const own = container.env.map((variable) => variable.name).filter((name) => !FOREIGN.test(name));
      expect(own.filter((name) => !names.has(name))).toEqual([]);
      expect(own.length).toBeGreaterThan(10);
    });

    it('is accepted by weir, and every variable in it has an effect', () => {
      const filled = container.env.filter(({ valueFrom }) => valueFrom !== undefined).map((variable) => variable.name);
      const { warnings } = readSettings(
        { ...environment, ...Object.fromEntries(filled.map((name) => [name, POD[name as keyof typeof POD]])) },
        readSecretFile,
      );
      expect(warnings).toEqual([]);
    });
  },
);
