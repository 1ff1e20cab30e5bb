import { is } from './condition';
import { group, setting } from './setting';
import { boolean, choice } from '../values/choices';
import { filePath } from '../values/text';

export const ruleSettings = group({
  title: 'Rules',
  note: 'Rule files are *.yaml and *.yml below RUNTIME_ROOT/RUNTIME_SUBDIRECTORY/RUNTIME_APPDIRECTORY.',
  settings: [
    setting({
      field: 'configType',
      name: 'CONFIG_TYPE',
      type: choice({ FILE: [], GRPC_XDS_SOTW: [] }),
      default: 'FILE',
      help: 'Source of the rules: FILE (rule files) or GRPC_XDS_SOTW (an xDS server).',
    }),
    setting({
      field: 'forceStartWithoutInitialConfig',
      name: 'FORCE_START_WITHOUT_INITIAL_CONFIG',
      type: boolean,
      default: false,
      help: 'Opens the gRPC and HTTP listeners before rules are loaded.',
    }),
    setting({
      field: 'healthyWithAtLeastOneConfigLoaded',
      name: 'HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED',
      type: boolean,
      default: false,
      help: 'Reports the service as healthy only while at least one domain is loaded.',
    }),
    setting({
      field: 'mergeDomainConfig',
      name: 'MERGE_DOMAIN_CONFIG',
      type: boolean,
      default: false,
      help: 'Allows several rule files to define rules of the same domain.',
    }),
    setting({
      field: 'runtimeRoot',
      name: 'RUNTIME_ROOT',
      type: filePath,
      default: '/srv/runtime_data/current',
      requires: [is('CONFIG_TYPE', 'FILE')],
      help: 'Directory that contains the configuration, or a symbolic link to it.',
    }),
    setting({
      field: 'runtimeSubdirectory',
      name: 'RUNTIME_SUBDIRECTORY',
      type: filePath,
      default: '',
      requires: [is('CONFIG_TYPE', 'FILE')],
      help: 'Directory below RUNTIME_ROOT.',
    }),
    setting({
      field: 'runtimeAppdirectory',
      name: 'RUNTIME_APPDIRECTORY',
      type: filePath,
      default: 'config',
      requires: [is('CONFIG_TYPE', 'FILE')],
      help: 'Directory below RUNTIME_SUBDIRECTORY that contains the rule files.',
    }),
    setting({
      field: 'runtimeIgnoredotfiles',
      name: 'RUNTIME_IGNOREDOTFILES',
      type: boolean,
      default: false,
      requires: [is('CONFIG_TYPE', 'FILE')],
      help: 'Skips files and directories whose names begin with a dot.',
    }),
    setting({
      field: 'runtimeWatchRoot',
      name: 'RUNTIME_WATCH_ROOT',
      type: boolean,
      default: true,
      requires: [is('CONFIG_TYPE', 'FILE')],
      help: 'Reloads the rules when RUNTIME_ROOT is switched to another directory; false: when a rule file changes.',
    }),
  ],
});
