import { group, setting } from './setting';
import { boolean } from '../values/choices';
import { ratio } from '../values/numbers';

export const decisionSettings = group({
  title: 'Decisions',
  settings: [
    setting({
      field: 'nearLimitRatio',
      name: 'NEAR_LIMIT_RATIO',
      type: ratio({ min: 0, max: 1 }),
      default: 0.8,
      help: 'Share of a limit above which hits count as near it.',
    }),
    setting({
      field: 'shadowMode',
      name: 'SHADOW_MODE',
      type: boolean,
      default: false,
      help: 'Lets every call pass, and counts those that would not have.',
    }),
    setting({
      field: 'quotaMode',
      name: 'QUOTA_MODE',
      type: boolean,
      default: false,
      help: 'Treats every rule as a quota rule: a call passes while one of its quotas does.',
    }),
    setting({
      field: 'responseDynamicMetadata',
      name: 'RESPONSE_DYNAMIC_METADATA',
      type: boolean,
      default: false,
      help: 'Adds the request and the metadata of its rules to each answer.',
    }),
  ],
});
